//! Self-tests of a card side by side: most of their time is that of compilers and of the processor that recomputes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;

use crossbeam_channel::{Sender, unbounded};

use super::SelfTest;
use crate::error::Result;
use crate::run::threads::spawn;
use crate::worker::{Backend, Runner};

/// Tests at a time, at most so many: each may take a quarter of the memory that a small card has.
fn at_a_time(device: &dyn Backend, most: u64) -> usize {
    const EACH: u64 = 8 << 30;
    match device.runner() {
        Runner::Card(card) if card.info().is_gpu => (card.info().memory / EACH).clamp(1, most) as usize,
        Runner::Card(_) | Runner::Processor { .. } => 1,
    }
}

/// Proves each of these on a device, several at a time where it has the room, but no more than `most`, and reports in their order;
/// the first failure in that order ends it.
pub(crate) fn side_by_side<T: Sync>(
    device: &dyn Backend,
    most: u64,
    all: &[T],
    prove: impl Fn(&T, &mut dyn FnMut(&SelfTest)) -> Result<()> + Sync,
    report: &mut dyn FnMut(&SelfTest),
) -> Result<()> {
    let _open = device.hold();
    by(at_a_time(device, most), all, prove, report)
}

fn by<T: Sync>(
    threads: usize,
    all: &[T],
    prove: impl Fn(&T, &mut dyn FnMut(&SelfTest)) -> Result<()> + Sync,
    report: &mut dyn FnMut(&SelfTest),
) -> Result<()> {
    if threads == 1 {
        return all.iter().try_for_each(|one| prove(one, report));
    }
    let (next, prove) = (&AtomicUsize::new(0), &prove);
    scope(|scope| {
        let (tell, told) = unbounded();
        let work = move |tell: Sender<_>| {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(one) = all.get(at) else { return };
                let mut tests = Vec::new();
                let proved = prove(one, &mut |test| tests.push(test.clone()));
                if tell.send((at, tests, proved)).is_err() {
                    return;
                }
            }
        };
        for _ in 0..threads {
            let tell = tell.clone();
            // With fewer threads it takes longer.
            spawn(scope, move || work(tell), drop);
        }
        drop(tell);
        let (mut waiting, mut due) = (BTreeMap::new(), 0);
        for (at, tests, proved) in told {
            waiting.insert(at, (tests, proved));
            while let Some((tests, proved)) = waiting.remove(&due) {
                tests.iter().for_each(&mut *report);
                if proved.is_err() {
                    // No further ones are begun.
                    next.store(all.len(), Ordering::Relaxed);
                    return proved;
                }
                due += 1;
            }
        }
        // Where there was no thread to be had this one does it.
        all[due..].iter().try_for_each(|one| prove(one, report))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn test(case: usize) -> SelfTest {
        SelfTest { device: "card:0".to_owned(), target: "npub", case: case.to_string(), planted: 1 }
    }

    /// Proves forty by so many threads, two tests each, of which those from `fails` on fail; returns the cases reported.
    fn prove(threads: usize, fails: usize) -> (Result<()>, Vec<String>) {
        let (all, mut seen): (Vec<usize>, _) = ((0..40).collect(), Vec::new());
        let one = |&one: &usize, report: &mut dyn FnMut(&SelfTest)| {
            if one >= fails {
                return Err(Error::NoDevice(one.to_string()));
            }
            report(&test(2 * one));
            report(&test(2 * one + 1));
            Ok(())
        };
        (by(threads, &all, one, &mut |test| seen.push(test.case.clone())), seen)
    }

    fn cases(count: usize) -> Vec<String> {
        (0..count).map(|case| case.to_string()).collect()
    }

    #[test]
    fn each_is_proved_once_and_reported_in_order_up_to_the_first_failure() {
        for threads in [1, 4] {
            let (proved, seen) = prove(threads, usize::MAX);
            assert!(proved.is_ok());
            assert_eq!(seen, cases(80), "{threads}");
            let (proved, seen) = prove(threads, 7);
            assert!(matches!(proved, Err(Error::NoDevice(what)) if what == "7"), "{threads}");
            assert_eq!(seen, cases(14), "{threads}");
        }
    }
}
