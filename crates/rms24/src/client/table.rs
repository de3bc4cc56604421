//! A client's hints in memory: find one, spend it, put the next backup in its place, keep all of them up to date.
//!
//! Everything here is a function of the table and its arguments, so that a journal of the steps rebuilds the table.
//! Randomness and files are the callers' business.
//!
//! SEC: the order of the slots is part of the proof of privacy. The first slot that holds an entry is spent, and what
//! replaces it stands in the same place; then the slots before it still hold the entry with no chance, this one for
//! certain, the others as ever: the table is distributed as if nothing had been asked.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::hints::{Hints, INVALID};
use crate::params::{Params, Place};
use crate::prf::Prf;
use crate::wire::{Query, Update};

/// Bits of a slot's tag beside the id: the hint holds the upper half of its blocks.
pub(super) const FLIPPED: u64 = 1 << 60;
/// The parity is worthless: an answer it was made from was lost or wrong.
pub(super) const POISONED: u64 = 1 << 61;
const ID: u64 = FLIPPED - 1;

/// The hints.
pub(super) struct Table {
    pub(super) params: Params,
    pub(super) prf: Prf,
    /// Ids and flags of the slots.
    pub(super) tags: Vec<u64>,
    pub(super) cutoffs: Vec<u32>,
    pub(super) extras: Vec<Place>,
    pub(super) parities: Vec<u8>,
    pub(super) pairs: Pairs,
    /// Queries without an answer yet, by number.
    pub(super) pending: BTreeMap<u64, Pending>,
}

/// Backup pairs, consecutive ids; the first `used` are spent or were skipped.
pub(super) struct Pairs {
    pub(super) first: u64,
    pub(super) used: usize,
    pub(super) cutoffs: Vec<u32>,
    pub(super) low: Vec<u8>,
    pub(super) high: Vec<u8>,
}

/// A query that was sent, or was about to be.
pub(super) struct Pending {
    /// The hint that was spent.
    hint: Hint,
    pub(super) place: Place,
    /// The colour of the true side is the opposite of this.
    flip: bool,
    pub(super) slot: usize,
    /// The number of the query whose answer completes the spent hint's parity.
    waits_for: Option<u64>,
}

/// One regular hint.
#[derive(Clone)]
struct Hint {
    tag: u64,
    cutoff: u32,
    extra: Place,
    parity: Vec<u8>,
}

fn add(sum: &mut [u8], other: &[u8]) {
    for (sum, byte) in sum.iter_mut().zip(other) {
        *sum ^= byte;
    }
}

impl Table {
    pub(super) fn new(params: Params, prf: Prf, hints: Hints) -> Result<Table> {
        let skeleton = hints.skeleton;
        let (m, size) = (skeleton.regular_len(), params.entry_size());
        let fits = skeleton.regular == (0..params.regular())
            && skeleton.cutoffs.len() == m + skeleton.backups_len()
            && skeleton.extras.len() == m
            && skeleton.backups.start >= params.regular()
            && hints.parities.len() == m * size
            && [&hints.low, &hints.high].iter().all(|half| half.len() == skeleton.backups_len() * size);
        if !fits {
            return Err(Error::Mismatch("these hints were made for other parameters".into()));
        }
        let mut cutoffs = skeleton.cutoffs;
        let of_pairs = cutoffs.split_off(m);
        Ok(Table {
            params,
            prf,
            tags: skeleton.regular.collect(),
            cutoffs,
            extras: skeleton.extras,
            parities: hints.parities,
            pairs: Pairs {
                first: skeleton.backups.start,
                used: 0,
                cutoffs: of_pairs,
                low: hints.low,
                high: hints.high,
            },
            pending: BTreeMap::new(),
        })
    }

    /// Pairs that can still replace a hint.
    pub(super) fn remaining(&self) -> u64 {
        self.pairs.cutoffs[self.pairs.used..].iter().filter(|cutoff| **cutoff != INVALID).count() as u64
    }

    /// Calls `found` for every slot that holds the entry, in no special order.
    ///
    /// SEC: always looks at all slots. The time to the first one would tell a server that waits for the query whether
    /// the same slot was used before.
    fn holders(&self, place: Place, mut found: impl FnMut(usize)) {
        let Place { block, offset } = place;
        let mut check = |slot: usize, its_offset: u32| {
            if its_offset == offset && self.cutoffs[slot] != INVALID {
                let tag = self.tags[slot];
                if self.prf.is_low(tag & ID, self.cutoffs[slot], block) != (tag & FLIPPED != 0) {
                    found(slot);
                }
            }
        };
        // Slots whose hint is still the one with their own number: sixteen groups of sixteen at a time.
        let mut moved: Vec<usize> = Vec::new();
        for first in (0..self.tags.len()).step_by(256) {
            let groups: [u64; 16] = std::array::from_fn(|g| (first / 16 + g) as u64);
            let offsets = self.prf.offsets_of_groups(&groups, block);
            for slot in first..self.tags.len().min(first + 256) {
                if self.tags[slot] & ID == slot as u64 {
                    check(slot, offsets[slot % 16][slot / 16 % 16]);
                } else {
                    moved.push(slot);
                }
            }
        }
        for slots in moved.chunks(16) {
            let mut ids = [0; 16];
            for (id, &slot) in ids.iter_mut().zip(slots) {
                *id = self.tags[slot] & ID;
            }
            let offsets = self.prf.offsets_of_ids(&ids, block);
            for (&slot, offset) in slots.iter().zip(offsets) {
                check(slot, offset);
            }
        }
        for (slot, extra) in self.extras.iter().enumerate() {
            if *extra == place && self.cutoffs[slot] != INVALID {
                found(slot);
            }
        }
    }

    /// The first slot that holds the entry.
    pub(super) fn find(&self, place: Place) -> Option<usize> {
        let mut first = None;
        self.holders(place, |slot| first = Some(first.map_or(slot, |other: usize| other.min(slot))));
        first
    }

    /// Spends a slot for query number `query`: the next backup replaces it, all but its parity complete.
    pub(super) fn spend(&mut self, query: u64, slot: usize, place: Place, flip: bool) -> Result<()> {
        let size = self.params.entry_size();
        let valid = self.pairs.cutoffs[self.pairs.used..].iter().position(|cutoff| *cutoff != INVALID);
        let pair = self.pairs.used + valid.ok_or(Error::Exhausted(self.params.backups()))?;
        if slot >= self.tags.len() || self.cutoffs[slot] == INVALID || self.pending.contains_key(&query) {
            return Err(Error::format("journal", format!("query {query} cannot spend slot {slot}")));
        }
        self.pairs.used = pair + 1;
        let (id, cutoff) = (self.pairs.first + pair as u64, self.pairs.cutoffs[pair]);
        let is_low = self.prf.is_low(id, cutoff, place.block);
        // The half that does not hold the entry's block; the entry completes it.
        let half = if is_low { &self.pairs.high } else { &self.pairs.low };
        let parity = &mut self.parities[slot * size..][..size];
        let spent = Hint {
            tag: self.tags[slot],
            cutoff: self.cutoffs[slot],
            extra: self.extras[slot],
            parity: parity.to_vec(),
        };
        parity.copy_from_slice(&half[pair * size..][..size]);
        self.tags[slot] = id | if is_low { FLIPPED } else { 0 };
        self.cutoffs[slot] = cutoff;
        self.extras[slot] = place;
        // SEC: no hint can be built again from what is left of its pair.
        self.pairs.low[pair * size..][..size].fill(0);
        self.pairs.high[pair * size..][..size].fill(0);
        let waits_for =
            self.pending.iter().rev().find(|(_, other)| other.slot == slot).map(|(number, _)| *number);
        self.pending.insert(query, Pending { hint: spent, place, flip, slot, waits_for });
        Ok(())
    }

    /// The id of the hint a pending query spends.
    pub(super) fn spent_id(&self, query: u64) -> Option<u64> {
        self.pending.get(&query).map(|pending| pending.hint.tag & ID)
    }

    /// The bytes of a pending query: the same whenever they are asked for.
    pub(super) fn query(&self, query: u64) -> Result<Query> {
        let Pending { hint, place, flip, .. } = self.pending_query(query)?;
        let c = self.params.blocks();
        let (mut colours, mut offsets) = (Vec::with_capacity(c as usize), Vec::with_capacity(c as usize / 2));
        for first in (0..c).step_by(16) {
            let blocks: [u32; 16] = std::array::from_fn(|lane| first + lane as u32);
            let (choices, own_offsets) = self.prf.draw_of_id(hint.tag & ID, &blocks);
            for lane in 0..16.min((c - first) as usize) {
                let block = blocks[lane];
                let is_low = self.prf.is_below(choices[lane], hint.cutoff, hint.tag & ID, block);
                let is_extra = block == hint.extra.block;
                let holds = is_extra || is_low != (hint.tag & FLIPPED != 0);
                // SEC: the block of the entry always goes to the dummy side.
                let is_true = holds && block != place.block;
                if is_true {
                    offsets.push(if is_extra { hint.extra.offset } else { own_offsets[lane] });
                }
                colours.push(is_true != *flip);
            }
        }
        // SEC: any other shape would tell the server that something is special about this query.
        if offsets.len() != c as usize / 2 {
            return Err(Error::format(
                "state",
                format!("the hint of query {query} does not hold half the blocks"),
            ));
        }
        Ok(Query::new(&self.params, &colours, &offsets))
    }

    fn pending_query(&self, query: u64) -> Result<&Pending> {
        self.pending.get(&query).ok_or_else(|| Error::Mismatch(format!("query {query} waits for no answer")))
    }

    /// Whether answers to these queries can be taken in this order: all of them wait, and for no other than each other.
    pub(super) fn check_order(&self, queries: &[u64]) -> Result<()> {
        for (i, &query) in queries.iter().enumerate() {
            let pending = self.pending_query(query)?;
            if let Some(other) = pending.waits_for.filter(|other| !queries[..i].contains(other)) {
                return Err(Error::Mismatch(format!("query {query} waits for the answer to query {other}")));
            }
        }
        Ok(())
    }

    /// What an answer says: the entry, or none where the spent hint's parity was worthless.
    pub(super) fn decode(&self, query: u64, answer: &[u8]) -> Result<Option<Vec<u8>>> {
        let pending = self.pending_query(query)?;
        if let Some(other) = pending.waits_for {
            return Err(Error::Mismatch(format!("query {query} waits for the answer to query {other}")));
        }
        let size = self.params.entry_size();
        if answer.len() != 2 * size {
            return Err(Error::format("answer", format!("{} bytes instead of {}", answer.len(), 2 * size)));
        }
        // The true side has colour 1, or 0 when the colours are swapped.
        let side = if pending.flip { &answer[..size] } else { &answer[size..] };
        let mut entry = pending.hint.parity.clone();
        add(&mut entry, side);
        Ok((pending.hint.tag & POISONED == 0).then_some(entry))
    }

    /// Ends a query: the entry completes the parity of the hint that took the slot. Without an entry that hint is worthless,
    /// but keeps its place.
    pub(super) fn settle(&mut self, query: u64, entry: Option<&[u8]>) -> Result<()> {
        let pending = self.pending_query(query)?;
        if pending.waits_for.is_some_and(|other| self.pending.contains_key(&other)) {
            return Err(Error::Mismatch(format!("query {query} waits for an earlier one")));
        }
        let slot = pending.slot;
        let size = self.params.entry_size();
        if entry.is_some_and(|entry| entry.len() != size) {
            return Err(Error::format("journal", "an entry of the wrong size"));
        }
        self.pending.remove(&query);
        // The hint may have been spent already, by a later query of the same batch.
        let next = self.pending.values_mut().find(|later| later.waits_for == Some(query));
        let (tag, parity) = match next {
            Some(later) => {
                later.waits_for = None;
                (&mut later.hint.tag, &mut later.hint.parity[..])
            }
            None => (&mut self.tags[slot], &mut self.parities[slot * size..][..size]),
        };
        match entry {
            Some(entry) => add(parity, entry),
            None => *tag |= POISONED,
        }
        Ok(())
    }

    /// Declares the hint in a slot worthless: the answer it was made from turned out wrong.
    pub(super) fn spoil(&mut self, slot: usize) -> Result<()> {
        let tag =
            self.tags.get_mut(slot).ok_or_else(|| Error::format("journal", format!("no slot {slot}")))?;
        *tag |= POISONED;
        Ok(())
    }

    /// Brings all parities to the next version of the database.
    pub(super) fn update(&mut self, update: &Update) -> Result<()> {
        if !self.pending.is_empty() {
            return Err(Error::Mismatch(
                "queries wait for answers: receive or abandon them before an update".into(),
            ));
        }
        let size = self.params.entry_size();
        let places = update.indices.iter().map(|&i| self.params.place(i)).collect::<Result<Vec<_>>>()?;
        let mut holding = Vec::new();
        for (place, delta) in places.into_iter().zip(update.deltas.chunks_exact(size)) {
            holding.clear();
            self.holders(place, |slot| holding.push(slot));
            for &slot in &holding {
                add(&mut self.parities[slot * size..][..size], delta);
            }
            self.pairs.update(&self.prf, place, delta);
        }
        Ok(())
    }

    /// Adds pairs of the following ids.
    pub(super) fn top_up(&mut self, hints: &Hints) -> Result<()> {
        let size = self.params.entry_size();
        let next = self.pairs.first + self.pairs.cutoffs.len() as u64;
        let Hints { skeleton, low, high, .. } = hints;
        let count = skeleton.backups_len();
        if skeleton.backups.start != next || skeleton.regular_len() != 0 {
            return Err(Error::Mismatch(format!("the next pairs begin with id {next}")));
        }
        if skeleton.cutoffs.len() != count || low.len() != count * size || high.len() != count * size {
            return Err(Error::Mismatch("these pairs were made for other parameters".into()));
        }
        self.pairs.cutoffs.extend(&skeleton.cutoffs);
        self.pairs.low.extend(low);
        self.pairs.high.extend(high);
        Ok(())
    }
}

impl Pairs {
    fn update(&mut self, prf: &Prf, place: Place, delta: &[u8]) {
        let size = delta.len();
        // Ids begin anywhere in a group once some were dropped.
        let (first, count) = (self.first, self.cutoffs.len() as u64);
        let start = (first + self.used as u64) & !15;
        for from in (start..first + count).step_by(256) {
            let groups: [u64; 16] = std::array::from_fn(|g| from / 16 + g as u64);
            let offsets = prf.offsets_of_groups(&groups, place.block);
            for id in from.max(first + self.used as u64)..(first + count).min(from + 256) {
                let in_lot = (id - from) as usize;
                let pair = (id - first) as usize;
                if offsets[in_lot % 16][in_lot / 16] != place.offset || self.cutoffs[pair] == INVALID {
                    continue;
                }
                let is_low = prf.is_low(id, self.cutoffs[pair], place.block);
                let half = if is_low { &mut self.low } else { &mut self.high };
                add(&mut half[pair * size..][..size], delta);
            }
        }
    }
}
