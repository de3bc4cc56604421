//! Hints by the book: one at a time, every order sorted, every entry looked up. Not fast; meant to be read, and to judge
//! the others.

use super::{Hints, INVALID, Skeleton};
use crate::params::{Params, Place};
use crate::prf::Prf;

/// The cutoff of a hint: exactly half the blocks have an order below it. [`INVALID`] when the two in the middle are equal.
pub fn cutoff(prf: &Prf, blocks: u32, id: u64) -> u32 {
    let mut orders: Vec<u32> = (0..blocks).map(|block| prf.order(id, block)).collect();
    orders.sort_unstable();
    let middle = orders.len() / 2;
    if orders[middle - 1] == orders[middle] { INVALID } else { orders[middle] }
}

/// A database in memory, without the entries that only fill its last blocks.
#[derive(Clone, Copy)]
pub struct Database<'a> {
    params: &'a Params,
    bytes: &'a [u8],
}

impl<'a> Database<'a> {
    /// A database of these bytes.
    ///
    /// # Panics
    ///
    /// When they are not as many as the parameters say.
    pub fn new(params: &'a Params, bytes: &'a [u8]) -> Database<'a> {
        assert_eq!(bytes.len() as u64, params.entries() * params.entry_size() as u64);
        Database { params, bytes }
    }

    /// The entry at a place; zeros past the end.
    pub fn entry(&self, place: Place) -> Vec<u8> {
        let size = self.params.entry_size();
        let index = place.block as usize * self.params.block_size() as usize + place.offset as usize;
        self.bytes.get(index * size..(index + 1) * size).map_or_else(|| vec![0; size], <[u8]>::to_vec)
    }
}

fn add(sum: &mut [u8], entry: &[u8]) {
    for (sum, byte) in sum.iter_mut().zip(entry) {
        *sum ^= byte;
    }
}

/// The parities of a hint's lower and upper half, without any extra.
pub fn halves(prf: &Prf, database: &Database<'_>, id: u64, cutoff: u32) -> [Vec<u8>; 2] {
    let size = database.params.entry_size();
    let mut halves = [vec![0; size], vec![0; size]];
    for block in 0..database.params.blocks() {
        let entry = database.entry(Place { block, offset: prf.offset(id, block) });
        let half = if prf.order(id, block) < cutoff { 0 } else { 1 };
        add(&mut halves[half], &entry);
    }
    halves
}

/// All hints of a skeleton.
pub fn hints(prf: &Prf, database: &Database<'_>, skeleton: &Skeleton) -> Hints {
    let (mut parities, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
    let ids = skeleton.regular.clone().chain(skeleton.backups.clone());
    for (i, (id, &cutoff)) in ids.zip(&skeleton.cutoffs).enumerate() {
        let mut halves = halves(prf, database, id, cutoff);
        if cutoff == INVALID {
            halves = halves.map(|half| vec![0; half.len()]);
        }
        let [lower, upper] = &mut halves;
        if i < skeleton.regular_len() {
            if cutoff != INVALID {
                add(lower, &database.entry(skeleton.extras[i]));
            }
            parities.append(lower);
        } else {
            low.append(lower);
            high.append(upper);
        }
    }
    Hints { skeleton: skeleton.clone(), parities, low, high }
}
