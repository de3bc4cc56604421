//! Searches that cards join while the processor is at work.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::bounded;
use warpsmith_chain::find;
use warpsmith_device::drivers_are_busy;
use warpsmith_pattern::{Options, compile};

use super::tests::{Fate, Masked};
use super::*;
use crate::cpu::Cpu;
use crate::simd;
use crate::worker::Backend;

/// What a search told: matches by device, warnings and notes.
#[derive(Default)]
struct Told {
    by: HashMap<String, u64>,
    warnings: Vec<String>,
    notes: Vec<String>,
}

/// Searches with the processor, and with cards that are found later, until enough was told or it ends by itself.
fn search(
    pattern: &str,
    count: Option<u64>,
    cards: impl FnOnce() -> Vec<Arc<dyn Backend>> + Send + 'static,
    enough: impl Fn(&Told) -> bool,
) -> (Outcome, Told) {
    let cpu = Arc::new(Cpu::new(simd::detect(), 1)) as Arc<dyn Backend>;
    let devices = Devices::with_later(vec![cpu], cards);
    let target = find("npub").expect("npub is a target");
    let patterns = compile([pattern], target, &Options::default()).expect("a possible pattern");
    let interval = Duration::from_millis(10);
    let job = Job { count, interval, ..Job::new(Subject::Key(target), Wanted::Patterns(&patterns)) };
    let (mut told, interrupt) = (Told::default(), AtomicBool::new(false));
    let outcome = run(&job, &devices, &interrupt, &mut |event| {
        match event {
            Event::Found(found) => {
                found.iter().for_each(|found| *told.by.entry(found.device.clone()).or_insert(0) += 1)
            }
            Event::Warning(text) => told.warnings.push(text),
            Event::Note(text) => told.notes.push(text),
            Event::Progress(_) => {}
        }
        interrupt.store(enough(&told), Ordering::Relaxed);
        Ok(())
    });
    (outcome.expect("the processor searches"), told)
}

#[test]
fn a_card_joins_and_both_find() {
    let (outcome, told) = search(
        "qq",
        None,
        || vec![Masked::card(Fate::Honest, None)],
        |told| told.by.len() == 2 && !told.notes.is_empty(),
    );
    assert_eq!(outcome.ended, Ended::Interrupted);
    assert_eq!(told.by.values().sum::<u64>(), outcome.matches);
    assert!(told.notes[0].starts_with("card:0 joins after "));
    assert_eq!(told.warnings, Vec::<String>::new());
}

/// Nobody waits for a driver: a match ends the search, and a person too, while cards are still looked for.
#[test]
fn a_search_ends_while_cards_are_looked_for() {
    for count in [Some(1), None] {
        let (release, held) = bounded::<()>(0);
        let cards = move || {
            let _ = held.recv();
            vec![Masked::card(Fate::Honest, None)]
        };
        let (outcome, told) = search("q", count, cards, |told| !told.by.is_empty());
        assert!(outcome.matches >= 1 && drivers_are_busy());
        assert_eq!((told.notes.len(), told.warnings.len()), (0, 0));
        drop(release);
    }
}

#[test]
fn a_card_that_fails_its_test_does_not_join() {
    let (outcome, told) =
        search("qq", None, || vec![Masked::card(Fate::Stutters, None)], |told| !told.warnings.is_empty());
    assert!(told.warnings[0].contains("self-test failed on card:0"), "{:?}", told.warnings);
    assert!(told.by.keys().all(|device| device != "card:0"));
    assert_eq!(told.by.values().sum::<u64>(), outcome.matches);
}

#[test]
fn the_processor_steps_back_where_it_adds_nothing_and_what_it_found_counts() {
    let stepped = |told: &Told| told.notes.iter().any(|note| note.contains("steps aside"));
    let (outcome, told) = search("qqq", None, || vec![Masked::card(Fate::Boasts(1000), None)], stepped);
    assert_eq!(told.notes.len(), 2, "{:?}", told.notes);
    assert!(told.notes[1].starts_with("cpu steps aside"), "{:?}", told.notes);
    assert_eq!(told.by.values().sum::<u64>(), outcome.matches);
}

/// Nor for a compiler, of a card that was asked for.
#[test]
fn a_search_is_interrupted_while_its_only_card_compiles() {
    let (release, gate) = bounded::<()>(0);
    let devices = Devices::of(vec![Masked::card(Fate::Honest, Some(gate))]);
    let target = find("npub").expect("npub is a target");
    let patterns = compile(["q"], target, &Options::default()).expect("a possible pattern");
    let job = Job::new(Subject::Key(target), Wanted::Patterns(&patterns));
    let outcome = run(&job, &devices, &AtomicBool::new(true), &mut |_| Ok(())).expect("ended");
    assert_eq!((outcome.ended, outcome.tried, outcome.matches), (Ended::Interrupted, 0, 0));
    assert!(drivers_are_busy());
    drop(release);
}
