//! The sieve for many prefixes, up to millions, whose first table lets some percent of all keys pass.
//!
//! No branch may depend on a single answer, a wrong guess every few keys would cost more than the walk, and the second
//! table, too large for any private cache, may not be waited for. So what passes the first table is appended to a
//! queue without a branch. After each entry the queue moves on: the next keys' entries of the second table are asked
//! for, and those asked for an entry earlier are read. What passes that too, about two keys in a thousand, waits until
//! some entries have gathered, and is settled by its top 64 bits.

use core::hint::black_box;

use super::bits::Bits;
use super::many::{Judge, Level, Tops, tops, words};
use super::{Hit, Lanes, Orbit, SLICES, Visitor};
use crate::Fe;

/// Entries whose keys are settled together.
const ENTRIES: usize = 16;
/// Sums of an entry: one a slice.
const SUMS: usize = SLICES;
/// The most keys of an entry: nine sums in both signs of at most eight lanes.
const MOST: usize = SUMS * 16;

/// The number of a sum of an entry in each byte.
const MARKS: [u32; ENTRIES * SUMS] = {
    let mut marks = [0; ENTRIES * SUMS];
    let mut i = 0;
    while i < marks.len() {
        marks[i] = i as u32 * 0x0101_0101;
        i += 1;
    }
    marks
};

/// What is remembered of the keys that passed the first table.
struct Pending<L: Lanes> {
    /// Their words, and room for two vectors more.
    words: [u32; ENTRIES * MOST + 32],
    /// Places in `words` of those that passed the second table too.
    passed: [u32; ENTRIES * MOST + 16],
    /// The sum each of them came from.
    sums: [u8; ENTRIES * MOST + 16],
    /// For each sum where its words begin, and which of its places passed.
    begins: [u16; ENTRIES * SUMS],
    masks: [u16; ENTRIES * SUMS],
    /// For each entry its number and tops. Number 0 is no entry, and its keys are none.
    indexes: [u32; ENTRIES],
    tops: [Tops<L>; ENTRIES],
}

/// The visitor that asks the tables.
pub(super) struct Dense<'a, L: Lanes> {
    judge: Judge<'a>,
    pending: Box<Pending<L>>,
    /// The words of the entry visited last, and its place in `pending`.
    words: [L::Words; SUMS],
    slot: usize,
    /// Words appended, those whose entry of the second table was asked for, and those for which it was read.
    end: usize,
    asked: usize,
    read: usize,
    /// How many of these passed.
    passed: usize,
    coarse: Level<L>,
    fine: Level<L>,
}

impl<'a, L: Lanes> Dense<'a, L> {
    /// # Safety
    /// As for all of [`Lanes`].
    #[inline(always)]
    pub unsafe fn new(bits: &'a Bits, step: u64, hits: &'a mut Vec<Hit>) -> Self {
        // SAFETY: the caller's.
        let (coarse, fine) = unsafe { (Level::new(bits.coarse()), Level::new(bits.fine())) };
        // SAFETY: the caller's.
        let (word, top) = unsafe { (L::word_splat(0), L::splat(&L::constant(Fe::ZERO)).tops()) };
        let pending = Box::new(Pending {
            words: [0; ENTRIES * MOST + 32],
            passed: [0; ENTRIES * MOST + 16],
            sums: [0; ENTRIES * MOST + 16],
            begins: [0; ENTRIES * SUMS],
            masks: [0; ENTRIES * SUMS],
            indexes: [0; ENTRIES],
            tops: [[[[top; 2]; 2]; 3]; ENTRIES],
        });
        let judge = Judge::new(bits, step, hits);
        Dense {
            judge,
            pending,
            words: [word; SUMS],
            slot: 0,
            end: 0,
            asked: 0,
            read: 0,
            passed: 0,
            coarse,
            fine,
        }
    }

    /// One sum of the entry visited last: both signs in all lanes ask the first table.
    #[inline(always)]
    unsafe fn ask(&mut self, sum: usize) {
        let (word, at) = (self.words[sum], self.slot * SUMS + sum);
        debug_assert!(self.end + 16 <= self.pending.sums.len() && at < ENTRIES * SUMS);
        // SAFETY: the caller's; the table is borrowed; each sum appends 16 words at most, so there is room for as many
        // sums as there are and a vector more.
        unsafe {
            let passed = L::word_signs(self.coarse.ask::<1>(word, u32::MAX));
            *self.pending.begins.get_unchecked_mut(at) = self.end as u16;
            *self.pending.masks.get_unchecked_mut(at) = passed as u16;
            self.pending
                .sums
                .as_mut_ptr()
                .add(self.end)
                .cast::<[u32; 4]>()
                .write_unaligned([*MARKS.get_unchecked(at); 4]);
            self.end += L::word_append(word, passed, self.pending.words.as_mut_ptr().add(self.end));
        }
    }

    /// Asks for the entries of the second table of the next keys, where there are any.
    #[inline(always)]
    unsafe fn fetch(&mut self) {
        // SAFETY: the caller's; `asked` is at most `end`, after which there is room for two vectors.
        unsafe {
            // What is no key asks for the first entry, which does no harm; any other would cost as much as a key's.
            L::word_store(L::word_splat(0), self.pending.words.as_mut_ptr().add(self.end));
            for i in 0..L::N {
                self.judge.bits.prefetch(*self.pending.words.get_unchecked(self.asked + i));
            }
        }
        self.asked = (self.asked + L::N).min(self.end);
    }

    /// Reads the second table for some keys for which it was asked an entry ago or earlier, where there are any.
    #[inline(always)]
    unsafe fn read(&mut self) {
        // SAFETY: the caller's; the table is borrowed; `read` is at most `end` and `passed` at most `read`, with room
        // for a vector after both.
        unsafe {
            let word = L::word_load(self.pending.words.as_ptr().add(self.read));
            let count = (self.asked - self.read).min(2 * L::N);
            let passed = L::word_signs(self.fine.ask::<2>(word, (1 << count) - 1));
            let places = L::word_add(L::word_places(), L::word_splat(self.read as u32));
            self.passed += L::word_append(places, passed, self.pending.passed.as_mut_ptr().add(self.passed));
            self.read += count;
        }
    }

    /// Settles all keys of the entries so far and begins with the first again.
    #[inline(always)]
    fn settle(&mut self) {
        settle(&mut self.judge, &mut self.pending, self.asked, self.read, self.passed, self.end);
        (self.slot, self.end, self.asked, self.read, self.passed) = (0, 0, 0, 0, 0);
    }
}

/// Decides the keys up to `end`: of those from `asked` on no entry of the second table was asked for, of those from
/// `read` on none was read, and `passed` of the others passed it. Apart from `Dense`, whose fields can so stay in
/// registers.
#[cold]
#[inline(never)]
fn settle<L: Lanes>(
    judge: &mut Judge<'_>,
    pending: &mut Pending<L>,
    asked: usize,
    read: usize,
    mut passed: usize,
    end: usize,
) {
    for &word in &pending.words[asked..end] {
        judge.bits.prefetch(word);
    }
    for at in read..end {
        pending.passed[passed] = at as u32;
        passed += judge.bits.may_hold(pending.words[at]) as usize;
    }
    for &at in &pending.passed[..passed] {
        let sum = pending.sums[at as usize] as usize;
        let mut mask = pending.masks[sum];
        for _ in u32::from(pending.begins[sum])..at {
            mask &= mask - 1;
        }
        let (entry, sum) = (sum / SUMS, sum % SUMS);
        let index = pending.indexes[entry];
        if index != 0 {
            judge.decide::<L>(index, sum, mask.trailing_zeros(), &pending.tops[entry]);
        }
    }
}

impl<L: Lanes> Visitor<L> for Dense<'_, L> {
    #[inline(always)]
    unsafe fn centre(&mut self, c: L, skip: u32) {
        // SAFETY: the caller's.
        unsafe { self.judge.centre(c, skip) }
    }

    #[inline(always)]
    unsafe fn between(&mut self, slice: usize, product: L) -> L {
        // SAFETY: the caller's.
        unsafe {
            let product = product.now();
            self.ask(slice);
            match slice {
                2 => self.read(),
                4 | 8 => self.fetch(),
                _ => {}
            }
            product
        }
    }

    #[inline(always)]
    unsafe fn orbit(&mut self, index: u32, orbit: &Orbit<L>) {
        self.slot += 1;
        if self.slot == ENTRIES {
            self.settle();
        }
        // SAFETY: the caller's.
        unsafe {
            let tops = tops(orbit);
            self.pending.indexes[self.slot] = index;
            self.pending.tops[self.slot] = tops;
            self.words = words::<L>(&tops);
        }
    }

    #[inline(always)]
    unsafe fn finish(&mut self) {
        // A loop, not nine copies: once a group there is no hurry.
        for sum in 0..black_box(SUMS) {
            // SAFETY: the caller's.
            unsafe { self.ask(sum) }
        }
        self.settle();
    }

    fn exact(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, x: Fe) {
        self.judge.exact(lane, index, minus, orbit, x);
    }
}
