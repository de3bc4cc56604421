//! The sieve for many prefixes, up to millions.
//!
//! Every key asks a table that is too large for the first-level cache, and some percent of them a second one that
//! is too large for any private cache. Neither may be waited for, and no branch may depend on the answers: a
//! wrong guess every few keys would cost more than the walk. So the keys of an entry are only noted when the
//! entry is visited. Between the multiplications of the next one, a slice at a time, they ask the first table,
//! which takes load ports and time the multiplications leave free. What passes is appended to a queue without a
//! branch, and the queue moves on by one key a slice: its entry of the second table is asked for, and some slices
//! later read. What passes that too, about two keys in a thousand, waits until some entries have gathered, and is
//! settled by its top 64 bits.

use super::bits::{Bits, Probed};
use super::words::{image_of, top64};
use super::{Hit, Lanes, Orbit, Place, SLICES, Visitor};
use crate::Fe;

/// Entries whose keys are settled together.
const ENTRIES: usize = 16;
/// The most keys of an entry: nine sums in both signs of at most eight lanes.
const MOST: usize = SLICES * 16;

/// The number of a slice in each byte.
const MARKS: [u32; ENTRIES * SLICES] = {
    let mut marks = [0; ENTRIES * SLICES];
    let mut i = 0;
    while i < marks.len() {
        marks[i] = i as u32 * 0x0101_0101;
        i += 1;
    }
    marks
};

/// A table, and the shifts in all places.
struct Level<L: Lanes> {
    table: *const u32,
    shifts: [L::Words; 3],
}

impl<L: Lanes> Level<L> {
    #[inline(always)]
    unsafe fn new(Probed { table, shifts: [a, b, c] }: Probed) -> Self {
        // SAFETY: the caller's.
        let shifts = unsafe { [L::word_count(a), L::word_count(b), L::word_count(c)] };
        Level { table, shifts }
    }
}

/// Tops of T0, T1, T2: [term][times 1, times beta][side].
type Tops<L> = [[[<L as Lanes>::Tops; 2]; 2]; 3];

/// What is remembered of the keys that passed the first table.
struct Pending<L: Lanes> {
    /// Their words, and room for one vector more.
    words: [u32; ENTRIES * MOST + 16],
    /// Places in `words` of those that passed the second table too.
    passed: [u32; ENTRIES * MOST + 16],
    /// The slice each of them came from.
    slices: [u8; ENTRIES * MOST + 16],
    /// For each slice where its words begin, and which of its places passed.
    begins: [u16; ENTRIES * SLICES],
    masks: [u16; ENTRIES * SLICES],
    /// For each entry its number and tops. Number 0 is no entry, and its keys are none.
    indexes: [u32; ENTRIES],
    tops: [Tops<L>; ENTRIES],
}

/// The visitor that asks the tables. Where the first lets so little pass (`SPARSE`) that a branch guesses it well, the
/// rest is left to `settle`.
pub(super) struct Many<'a, L: Lanes, const SPARSE: bool> {
    bits: &'a Bits,
    step: u64,
    hits: &'a mut Vec<Hit>,
    skip: u32,
    /// Words of T0, T1, T2 times the powers of beta for the entry visited last: [term][power].
    words: [[L::Words; 3]; 3],
    pending: Box<Pending<L>>,
    /// The place of that entry in `pending`.
    slot: usize,
    /// Words appended, and those that were when the entry was visited.
    end: usize,
    ready: usize,
    /// Those whose entry of the second table was asked for, and those for which it was when the entry was visited.
    asked: usize,
    due: usize,
    /// Those for which it was read, and how many of them passed.
    read: usize,
    passed: usize,
    coarse: Level<L>,
    fine: Level<L>,
}

impl<'a, L: Lanes, const SPARSE: bool> Many<'a, L, SPARSE> {
    #[inline(always)]
    pub unsafe fn new(bits: &'a Bits, step: u64, hits: &'a mut Vec<Hit>) -> Self {
        // SAFETY: the caller's.
        let word = unsafe { L::word_splat(0) };
        // SAFETY: the caller's.
        let (coarse, fine) = unsafe { (Level::new(bits.coarse()), Level::new(bits.fine())) };
        // SAFETY: the caller's.
        let top = unsafe { L::splat(&L::constant(Fe::ZERO)).tops() };
        let pending = Box::new(Pending {
            words: [0; ENTRIES * MOST + 16],
            passed: [0; ENTRIES * MOST + 16],
            slices: [0; ENTRIES * MOST + 16],
            begins: [0; ENTRIES * SLICES],
            masks: [0; ENTRIES * SLICES],
            indexes: [0; ENTRIES],
            tops: [[[[top; 2]; 2]; 3]; ENTRIES],
        });
        Many {
            bits,
            step,
            hits,
            skip: 0,
            words: [[word; 3]; 3],
            pending,
            slot: 0,
            end: 0,
            ready: 0,
            asked: 0,
            due: 0,
            read: 0,
            passed: 0,
            coarse,
            fine,
        }
    }

    /// Notes the tops of one term and the words of it times 1, beta, beta^2.
    #[inline(always)]
    unsafe fn term(&mut self, term: usize, x: &[L; 2]) {
        // SAFETY: the caller's.
        unsafe {
            let a = [x[0].tops(), x[1].tops()];
            let b = [x[0].beta_tops(), x[1].beta_tops()];
            self.pending.tops[self.slot][term] = [a, b];
            // beta^2 = -1 - beta. The word of -s is the complement of that of s, or one more where the rest of s
            // is zero.
            let s = L::tops_words(L::tops_add(a[0], b[0]), L::tops_add(a[1], b[1]));
            self.words[term] = [
                L::tops_words(a[0], a[1]),
                L::tops_words(b[0], b[1]),
                L::word_sub(L::word_splat(u32::MAX), s),
            ];
        }
    }

    /// One sum of the entry visited last: both signs in all lanes ask the first table.
    #[inline(always)]
    unsafe fn ask(&mut self, sum: usize) {
        let (p, q) = (sum / 3, sum % 3);
        let [t0, t1, t2] = &self.words;
        let at = self.slot * SLICES + sum;
        debug_assert!(self.end + 32 <= self.pending.words.len() && at < ENTRIES * SLICES);
        // SAFETY: the caller's; there are 2^log2 entries; each slice appends 16 words at most, so there is room for as
        // many slices as there are and a vector more; and the slot is below ENTRIES.
        unsafe {
            let word = L::word_add(L::word_add(t1[p], t2[q]), t0[image_of(p, q)]);
            let passed = L::word_probe::<1>(word, self.coarse.table, &self.coarse.shifts, u32::MAX);
            if SPARSE && passed == 0 {
                return;
            }
            *self.pending.begins.get_unchecked_mut(at) = self.end as u16;
            *self.pending.masks.get_unchecked_mut(at) = passed as u16;
            self.pending
                .slices
                .as_mut_ptr()
                .add(self.end)
                .cast::<[u32; 4]>()
                .write_unaligned([*MARKS.get_unchecked(at); 4]);
            self.end += L::word_append(word, passed, self.pending.words.as_mut_ptr().add(self.end));
        }
    }

    /// Asks for the entries of the second table of the next two keys, where there are any.
    #[inline(always)]
    fn prefetch(&mut self) {
        for _ in 0..2 {
            let due = self.asked < self.ready;
            // SAFETY: `asked` is at most `end`, after which there is room.
            let word = unsafe { *self.pending.words.get_unchecked(self.asked) };
            // What is no key asks for the first entry, which does no harm; its own would cost as much as a key's.
            self.bits.prefetch(word & (due as u32).wrapping_neg());
            self.asked += due as usize;
        }
    }

    /// Reads the second table for some keys for which it was asked an entry ago, where there are any.
    #[inline(always)]
    unsafe fn read(&mut self) {
        // SAFETY: the caller's; `read` is at most `end` and `passed` at most `read`, with room for a vector after both.
        unsafe {
            let word = L::word_load(self.pending.words.as_ptr().add(self.read));
            let count = (self.due - self.read).min(2 * L::N);
            let passed = L::word_probe::<2>(word, self.fine.table, &self.fine.shifts, (1 << count) - 1);
            let places = L::word_add(L::word_places(), L::word_splat(self.read as u32));
            self.passed += L::word_append(places, passed, self.pending.passed.as_mut_ptr().add(self.passed));
            self.read += count;
        }
    }

    /// Settles all keys of the entries so far and begins with the first slot again.
    #[cold]
    #[inline(never)]
    fn settle(&mut self) {
        for at in self.asked..self.end {
            self.bits.prefetch(self.pending.words[at]);
        }
        for at in self.read..self.end {
            self.pending.passed[self.passed] = at as u32;
            self.passed += self.bits.may_hold(self.pending.words[at]) as usize;
        }
        for i in 0..self.passed {
            let at = self.pending.passed[i] as u16;
            let slice = self.pending.slices[at as usize] as usize;
            let mut mask = self.pending.masks[slice];
            for _ in self.pending.begins[slice]..at {
                mask &= mask - 1;
            }
            self.decide(slice / SLICES, slice % SLICES, mask.trailing_zeros());
        }
        (self.end, self.ready, self.asked, self.due, self.read, self.passed) = (0, 0, 0, 0, 0, 0);
        self.slot = 0;
    }

    /// Decides a key by its top 64 bits.
    fn decide(&mut self, slot: usize, sum: usize, place: u32) {
        let (lane, side) = (place / 2, (place % 2) as usize);
        let index = self.pending.indexes[slot];
        if index == 0 || self.skip >> lane & 1 == 1 {
            return;
        }
        let (p, q) = (sum / 3, sum % 3);
        let j = image_of(p, q);
        let top = |term: usize, power: usize| {
            let [a, b] = &self.pending.tops[slot][term];
            // SAFETY: tops exist only where their instruction set does.
            let (a, b) =
                unsafe { (L::tops_lane(&a[side], lane as usize), L::tops_lane(&b[side], lane as usize)) };
            [a, b, a.wrapping_add(b).wrapping_neg()][power]
        };
        let top = top(0, j).wrapping_add(top(1, p)).wrapping_add(top(2, q));
        if self.bits.holds_near(top) {
            let orbit = ((q + 3 - p) % 3) as u8;
            let place = Place {
                lane,
                step: self.step,
                index,
                minus: side == 1,
                orbit,
                image: j as u8,
                negate: false,
            };
            self.hits.push(Hit { place, x: None });
        }
    }
}

impl<L: Lanes, const SPARSE: bool> Visitor<L> for Many<'_, L, SPARSE> {
    #[inline(always)]
    unsafe fn centre(&mut self, c: L, skip: u32) {
        self.skip = skip;
        for lane in (0..L::N).filter(|l| skip >> l & 1 == 0) {
            // SAFETY: the caller's.
            self.exact(lane as u32, 0, false, 0, unsafe { c.lane(lane) });
        }
    }

    #[inline(always)]
    unsafe fn between(&mut self, slice: usize, product: L) -> L {
        // SAFETY: the caller's.
        unsafe {
            let product = product.now();
            self.ask(slice);
            if !SPARSE {
                // One lane alone passes on about one key an entry, eight lanes about ten.
                if L::N > 1 || slice == 4 {
                    self.prefetch();
                }
                if slice == 4 {
                    self.read();
                }
            }
            product
        }
    }

    #[inline(always)]
    unsafe fn orbit(&mut self, index: u32, orbit: &Orbit<L>) {
        self.slot += 1;
        (self.due, self.ready) = (self.asked, self.end);
        if self.slot == ENTRIES {
            self.slot -= 1;
            self.settle();
        }
        self.pending.indexes[self.slot] = index;
        // SAFETY: the caller's.
        unsafe {
            self.term(0, &orbit.t0);
            self.term(1, &orbit.t1);
            self.term(2, &orbit.t2);
        }
    }

    #[inline(always)]
    unsafe fn finish(&mut self) {
        // A loop, not nine copies: once a group there is no hurry.
        for sum in 0..core::hint::black_box(SLICES) {
            // SAFETY: the caller's.
            unsafe { self.ask(sum) }
        }
        self.settle();
    }

    fn exact(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, x: Fe) {
        let mut image = x;
        for j in 0..3 {
            if self.bits.holds_exactly(top64(image)) {
                let place = Place { lane, step: self.step, index, minus, orbit, image: j, negate: false };
                self.hits.push(Hit { place, x: None });
            }
            image = image.mul(Fe::BETA);
        }
    }
}
