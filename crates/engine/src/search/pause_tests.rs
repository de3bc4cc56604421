//! Searches that are held, and go on or end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use warpsmith_chain::find;
use warpsmith_pattern::{Options, compile};

use super::tests::{Fate, NEVER, devices};
use super::{Ended, Event, Job, Wanted, run};
use crate::run::pause::Pause;
use crate::space::Subject;

/// Reports in which nothing may move, and those after which a batch that was under way has certainly ended.
const STILL: u32 = 50;
const LANDED: u32 = 100;

#[test]
fn a_search_that_is_held_does_nothing_and_goes_on_where_it_was() {
    let target = find("npub").expect("npub is a target");
    let patterns = compile([NEVER], target, &Options::default()).expect("a possible pattern");
    let (pause, interrupt) = (Pause::default(), AtomicBool::new(false));
    let job = Job {
        pause: Some(&pause),
        interval: Duration::from_millis(10),
        ..Job::new(Subject::Key(target), Wanted::Patterns(&patterns))
    };
    let (mut held, mut reports, mut resumed) = (None::<(u64, Duration)>, 0, false);
    let outcome = run(&job, &devices(&[("a", Fate::Honest)]), &interrupt, &mut |event| {
        let Event::Progress(progress) = event else { return Ok(()) };
        match held {
            None if progress.tried > 0 => {
                pause.set(true);
                held = Some((0, Duration::ZERO));
            }
            None => {}
            Some(_) if resumed => interrupt.store(progress.tried > held.unwrap().0, Ordering::Relaxed),
            Some(before) => {
                reports += 1;
                if reports <= LANDED {
                    held = Some((progress.tried, progress.elapsed));
                } else {
                    assert_eq!((progress.tried, progress.elapsed), before, "it goes on, or its clock does");
                }
                if reports == LANDED + STILL {
                    resumed = true;
                    pause.set(false);
                }
            }
        }
        Ok(())
    });
    let outcome = outcome.expect("it was interrupted");
    assert_eq!(outcome.ended, Ended::Interrupted);
    let (tried, elapsed) = held.expect("it was held");
    assert!(outcome.tried > tried && outcome.elapsed > elapsed);
}

#[test]
fn a_search_that_is_held_can_be_ended() {
    let target = find("npub").expect("npub is a target");
    let patterns = compile([NEVER], target, &Options::default()).expect("a possible pattern");
    let (pause, interrupt) = (Pause::default(), AtomicBool::new(false));
    pause.set(true);
    let job = Job {
        pause: Some(&pause),
        interval: Duration::from_millis(10),
        ..Job::new(Subject::Key(target), Wanted::Patterns(&patterns))
    };
    let mut reports = 0;
    let outcome = run(&job, &devices(&[("a", Fate::Honest)]), &interrupt, &mut |_| {
        reports += 1;
        interrupt.store(reports > 3, Ordering::Relaxed);
        Ok(())
    });
    let outcome = outcome.expect("it was interrupted");
    assert_eq!((outcome.ended, outcome.tried), (Ended::Interrupted, 0));
}
