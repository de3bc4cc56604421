//! Earlier epochs: what their entries were the state of, and how to go back to one.

use std::collections::BTreeMap;

use super::{Live, Now};
use crate::error::Result;
use crate::keyword::{Layout, RecordLayout};
use crate::wire::Update;

/// The entries at all places of the records that tell the head, each with its place.
struct HeadRecords {
    layout: &'static dyn RecordLayout,
    by_key: Vec<Vec<(u64, Vec<u8>)>>,
}

impl Live {
    /// Returns the newest epoch and its head, if the records tell it ([`RecordLayout::head`]).
    pub fn newest(&self) -> (u64, Option<String>) {
        let now = self.read();
        (now.epoch, now.head(self.records))
    }

    /// Returns the heads of all epochs that are known, from the newest back: also of those before
    /// the file, as far as they are kept.
    pub fn heads(&self) -> Vec<(u64, Option<String>)> {
        let now = self.read();
        let Some(mut records) = now.head_records(self.records) else { return Vec::new() };
        let mut heads = vec![(now.epoch, records.head())];
        for update in now.updates.iter().rev() {
            for (index, delta) in update.changes(now.params().entry_size()) {
                for (place, record) in records.by_key.iter_mut().flatten() {
                    if *place == index {
                        record.iter_mut().zip(delta).for_each(|(byte, delta)| *byte ^= delta);
                    }
                }
            }
            heads.push((update.number - 1, records.head()));
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
    /// The head of the newest epoch.
    pub(super) fn head(&self, layout: Option<&'static dyn RecordLayout>) -> Option<String> {
        self.head_records(layout)?.head()
    }

    /// The entries at the places of the records that tell the head; none of a database that has no
    /// such records.
    fn head_records(&self, layout: Option<&'static dyn RecordLayout>) -> Option<HeadRecords> {
        let shape =
            self.base.description().keyword.as_ref().filter(|shape| shape.layout == Layout::Records)?;
        let layout = layout?;
        let at_places = |key: &Vec<u8>| {
            let places = shape.places_of(key).into_iter();
            // What is damaged is told where it is asked for.
            places.filter_map(|place| Some((place, self.entries.entry(&self.base, place).ok()?))).collect()
        };
        Some(HeadRecords { layout, by_key: layout.head_keys().iter().map(at_places).collect() })
    }
}

impl HeadRecords {
    fn head(&self) -> Option<String> {
        let without_places =
            |records: &Vec<(u64, Vec<u8>)>| records.iter().map(|(_, record)| record.clone()).collect();
        self.layout.head(&self.by_key.iter().map(without_places).collect::<Vec<_>>())
    }
}
