//! The coins of a UTXO set added up by address, before they meet what other sources say of it.
//!
//! A set has some 190 million coins of a third as many addresses, in no order of theirs. They are sorted in a scratch file of their
//! own, and each address is handed on once with the sum.

use std::io::{BufReader, Read};
use std::path::Path;

use crossbeam_channel::{Receiver, bounded};

use super::BuildOptions;
use super::build::scratch_file;
use super::snapshot::{self, Snapshot};
use super::sort::{Amounts, Runs};
use crate::Error;
use crate::record::Entry;

/// Addresses handed on together.
const TOGETHER: usize = 1 << 14;

/// Reads a UTXO set and hands on its addresses in order with what they have, for as long as anybody wants to go on.
pub(super) fn add_up(
    path: &Path,
    source: &mut dyn Read,
    scratch: &Path,
    options: &BuildOptions,
    goes_on: &dyn Fn() -> bool,
    hand_on: impl Fn(Vec<Entry>) -> bool,
) -> Result<Snapshot, Error> {
    let runs = Runs::new(scratch_file(scratch)?, scratch, Amounts::Sum);
    let threads = options.threads.max(1);
    let capacity = (options.memory / 2 / threads / size_of::<Entry>()).max(1 << 10);
    let (sender, receiver) = bounded(2 * threads);
    let (read, sorted) = std::thread::scope(|scope| {
        let sorters: Vec<_> = (0..threads)
            .map(|_| {
                let (receiver, runs) = (receiver.clone(), &runs);
                scope.spawn(move || sort(receiver, runs, capacity))
            })
            .collect();
        drop(receiver);
        let source = BufReader::with_capacity(1 << 18, source);
        let read = snapshot::read(path, source, |coins| goes_on() && sender.send(coins).is_ok());
        drop(sender);
        let sorted: Result<Vec<()>, Error> =
            sorters.into_iter().map(|sorter| sorter.join().expect("sorting does not panic")).collect();
        (read, sorted)
    });
    // Where sorting failed, reading was stopped by that.
    sorted?;
    let snapshot = read?;
    if !goes_on() {
        return Err(Error::Stopped);
    }
    let mut batch = Vec::with_capacity(TOGETHER);
    runs.merge(|entry| {
        batch.push(entry);
        let is_full = batch.len() == TOGETHER;
        match is_full && !hand_on(std::mem::replace(&mut batch, Vec::with_capacity(TOGETHER))) {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    })?;
    match hand_on(batch) {
        true => Ok(snapshot),
        false => Err(Error::Stopped),
    }
}

/// Makes runs of coins.
fn sort(receiver: Receiver<Vec<Entry>>, runs: &Runs, capacity: usize) -> Result<(), Error> {
    let mut buffer = Vec::new();
    for coins in receiver {
        if buffer.len() + coins.len() > capacity {
            runs.spill(&mut buffer)?;
        }
        // All of it at once: a buffer that grows has twice as much for a while.
        buffer.reserve_exact(capacity.saturating_sub(buffer.len()));
        buffer.extend(coins);
    }
    runs.spill(&mut buffer).map(|_| ())
}
