//! What the epochs were: of which blocks, and how to go back to one.

use std::collections::BTreeMap;

use super::{Live, Now};
use crate::error::Result;
use crate::ethereum::ChainHead;
use crate::keyword::Layout;
use crate::wire::Update;

/// The entries at all places of the two records that tell the block, each with its place.
type HeadRecords = [Vec<(u64, Vec<u8>)>; 2];

impl Live {
    /// The newest epoch, and the block of a chain that its entries tell of, if they do.
    pub fn newest(&self) -> (u64, Option<ChainHead>) {
        let now = self.read();
        (now.epoch, now.head())
    }

    /// The blocks of all epochs that are known, from the newest back: also of those before the file, as far as they are kept.
    pub fn heads(&self) -> Vec<(u64, Option<ChainHead>)> {
        let now = self.read();
        let Some(mut records) = now.head_records() else { return Vec::new() };
        let mut heads = vec![(now.epoch, find(&records))];
        for update in now.updates.iter().rev() {
            for (index, delta) in update.changes(now.params().entry_size()) {
                for (place, record) in records.iter_mut().flatten() {
                    if *place == index {
                        record.iter_mut().zip(delta).for_each(|(byte, delta)| *byte ^= delta);
                    }
                }
            }
            heads.push((update.number - 1, find(&records)));
        }
        heads
    }

    /// The update that makes the entries what they were in an earlier epoch.
    ///
    /// # Errors
    ///
    /// When the epoch lies before the oldest that is kept, or after the newest.
    pub fn back_to(&self, epoch: u64) -> Result<Update> {
        let now = self.read();
        let first = now.since(epoch)?;
        let size = now.params().entry_size();
        let mut sums: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for update in &now.updates[first..] {
            for (index, delta) in update.changes(size) {
                let sum = sums.entry(index).or_insert_with(|| vec![0; size]);
                sum.iter_mut().zip(delta).for_each(|(sum, byte)| *sum ^= byte);
            }
        }
        sums.retain(|_, sum| sum.iter().any(|byte| *byte != 0));
        let (indices, deltas): (Vec<u64>, Vec<Vec<u8>>) = sums.into_iter().unzip();
        Ok(Update { number: now.epoch + 1, indices, deltas: deltas.concat() })
    }
}

impl Now {
    /// The block that the entries tell of.
    pub(super) fn head(&self) -> Option<ChainHead> {
        self.head_records().and_then(|records| find(&records))
    }

    /// The entries at the places of the two records that tell the block; none of a database that is no state.
    fn head_records(&self) -> Option<HeadRecords> {
        let shape = self.base.description().keyword.as_ref()?;
        let records = (shape.layout == Layout::State).then(ChainHead::keys)?.map(|key| {
            let places = shape.places_of(&key).into_iter();
            // What is damaged is told where it is asked for.
            places.filter_map(|place| Some((place, self.entries.entry(&self.base, place).ok()?))).collect()
        });
        Some(records)
    }
}

fn find(records: &HeadRecords) -> Option<ChainHead> {
    let records = records
        .each_ref()
        .map(|records| records.iter().map(|(_, record)| record.clone()).collect::<Vec<_>>());
    ChainHead::find([&records[0], &records[1]])
}
