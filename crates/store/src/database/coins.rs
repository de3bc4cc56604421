//! The coins of a UTXO set added up by address, before they meet what other sources say of it; or by script.
//!
//! A set has some 190 million coins of a third as many addresses, in no order of theirs. They are sorted in a scratch file of their
//! own, and each address is handed on once with the sum.

use std::cell::RefCell;
use std::fs;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, bounded};
use warpsmith_files::with_suffix;

use super::BuildOptions;
use super::scratch::scratch_file;
use super::snapshot::{self, By, Snapshot};
use super::sort::{Amounts, Runs};
use super::{Progress, Stage};
use crate::Error;
use crate::input::unpacked;
use crate::record::Entry;

/// Addresses handed on together.
const TOGETHER: usize = 1 << 14;

/// The coins that one script has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptCoins {
    /// The SHA-256 of the script.
    pub script: [u8; 32],
    /// What they are worth together.
    pub satoshi: u64,
    /// How many there are.
    pub coins: u64,
}

impl Snapshot {
    /// Whether a file begins as a UTXO set of Bitcoin Core does, packed or not.
    pub fn is_at(path: &Path) -> bool {
        let mut head = Vec::new();
        let source = unpacked(path, |_| ());
        let read = source.map(|source| source.take(snapshot::MAGIC.len() as u64).read_to_end(&mut head));
        matches!(read, Ok(Ok(_))) && head == snapshot::MAGIC
    }

    /// Hands on what each script of a UTXO set has, in the order of their hashes, until `take` says no. What is sorted lies in a
    /// file without a name beside `beside`.
    ///
    /// # Errors
    ///
    /// When the file is no such set, is damaged, or cannot be sorted there, and [`Error::Stopped`].
    pub fn each_script(
        path: &Path,
        beside: &Path,
        options: &BuildOptions,
        take: &mut dyn FnMut(&ScriptCoins) -> bool,
    ) -> Result<Snapshot, Error> {
        let total = fs::metadata(path).map_or(0, |file| file.len());
        let done = AtomicU64::new(0);
        let goes_on = || {
            let done = done.load(Ordering::Relaxed);
            (options.progress)(Progress { stage: Stage::Reading, done, total, addresses: 0 });
            !options.stop.load(Ordering::Relaxed)
        };
        let mut source = unpacked(path, |count| _ = done.fetch_add(count, Ordering::Relaxed))?;
        let take = RefCell::new(take);
        let hand_on = |entries: Vec<Entry>| {
            entries.iter().all(|entry| {
                let both = entry.amount().unwrap_or_default();
                let script = entry.digest().try_into().expect("a hash of 32 bytes");
                let coins = ScriptCoins { script, satoshi: both as u64, coins: (both >> 64) as u64 };
                (*take.borrow_mut())(&coins)
            })
        };
        add_up(path, &mut source, By::Script, &with_suffix(beside, ".coins"), options, &goes_on, hand_on)
    }
}

/// Reads a UTXO set and hands on its addresses in order with what they have, for as long as anybody wants to go on.
pub(super) fn add_up(
    path: &Path,
    source: &mut dyn Read,
    by: By,
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
        let read = snapshot::read(path, source, by, |coins| goes_on() && sender.send(coins).is_ok());
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
