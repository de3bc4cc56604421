//! The leading bits of x/p of several elements side by side: all that a search for prefixes reads.
//!
//! *Words* are the 32 most significant bits, *tops* 64 of them. For the rule of safety see `lanes`.

use super::bloom::Marked;
use super::lanes::Lanes;
use super::{FOLD, Fe};

/// How far a computed word can lie from the true one. With `true` the floor of 2^32 * x/p of a key and
/// `word` what the walk computed for it: `true - word` modulo 2^32 lies in `-WORD_BELOW..=WORD_ABOVE`.
///
/// A key's word is a sum of three words (see `walk`), of T0, T1 and T2, each times 1, beta or beta^2. A word of an
/// element is the floor of its top, which is [`SHORT`] short at most: error e in `[0, 1 + 2^-12)`. For beta^2 it is minus
/// the sum of the other two: error in `(-2 - 2^-11, 0]`. Three of them lie in (-6, 3), within 2^-9; the floor of the
/// truth itself can only move the difference down to the next integer: -7 to 3.
pub const WORD_BELOW: u32 = 7;
/// See [`WORD_BELOW`].
pub const WORD_ABOVE: u32 = 3;

/// How far the top of a product can lie below the true one: eleven units of 48 bits. It is never above.
pub const SHORT: u64 = 11 << 16;

/// The sums of an entry: the keys it has in a lane on either side.
pub(crate) const SUMS: usize = 9;

/// Some keys, and of which entry each is. Written and read in whole vectors: what was stored in parts cannot be read until
/// all of it has reached the cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Listed {
    /// Numbers of keys in an entry.
    pub keys: [u8; LISTED],
    /// Numbers of entries.
    pub slots: [u8; LISTED],
}

/// Keys a list has room for.
pub const LISTED: usize = 64;

/// Leading bits of field elements. See the safety rules of `lanes`.
#[expect(clippy::missing_safety_doc, reason = "one rule for all, in the head of the module `lanes`")]
pub trait Leading: Lanes {
    /// 2N words: for each lane one of the plus side and one of the minus side.
    type Words: Copy;
    /// The top 64 bits of x/p, one a lane, at most [`SHORT`] short: plain integers.
    type Tops: Copy;
    /// What asking a table of some size takes.
    type Asker: Copy;
    /// Which of an entry's keys passed a table, as far as its sums have asked.
    type Answers: Copy + Default;

    /// How many of an entry's keys `word_first` finds, a multiple of 2N and at most sixteen: seldom do more pass.
    const FIRST: usize;

    /// The top 64 bits of a tight element.
    unsafe fn tops(self) -> Self::Tops;
    /// The top 64 bits of the product of two factors and an addend whose own are given, [`SHORT`] short at most: a fifth of
    /// the work of the product.
    unsafe fn product_tops(self, factor: Self, addend: Self::Tops) -> Self::Tops;
    /// Sum modulo 2^64.
    unsafe fn tops_add(a: Self::Tops, b: Self::Tops) -> Self::Tops;
    /// The top of one lane.
    unsafe fn tops_lane(a: &Self::Tops, lane: usize) -> u64;
    /// The words of tops of the plus side and of the minus side.
    unsafe fn tops_words(plus: Self::Tops, minus: Self::Tops) -> Self::Words;
    /// One word in all places.
    unsafe fn word_splat(word: u32) -> Self::Words;
    /// Sum modulo 2^32.
    unsafe fn word_add(a: Self::Words, b: Self::Words) -> Self::Words;
    /// Difference modulo 2^32.
    unsafe fn word_sub(a: Self::Words, b: Self::Words) -> Self::Words;
    /// The smaller of two, place by place.
    unsafe fn word_min(a: Self::Words, b: Self::Words) -> Self::Words;
    /// Whether any place is at most `limit`.
    unsafe fn word_any_at_most(a: Self::Words, limit: u32) -> bool;
    /// Reads 2N words, place by place.
    unsafe fn word_load(from: *const u32) -> Self::Words;
    /// Prepares asking a table of 2^log2 entries, `STRIDE` bytes apart.
    unsafe fn asker<const STRIDE: usize>(log2: u32) -> Self::Asker;
    /// Asks a table (see `bloom`): bit i is set where the word in place i passes.
    ///
    /// Only places whose bit is set in `asking` take part. Entries are `STRIDE` (1, 4 or 8) bytes apart, and `table` must
    /// have as many as the asker was prepared for.
    unsafe fn word_ask<const STRIDE: usize>(
        a: Self::Words,
        table: *const u8,
        asker: &Self::Asker,
        asking: u32,
    ) -> u32;
    /// Adds what `word_ask` answered for a sum to the answers for those before it: in turn, all of an entry's.
    unsafe fn answer(answers: Self::Answers, sum: usize, passed: u32) -> Self::Answers;
    /// The first keys of an entry that passed a table, and how many did in all.
    ///
    /// Keys are numbered through all sums, 2N to each. The words after the sums' must be zero. Writes
    /// [`FIRST`](Leading::FIRST) numbers and their words: after the last that
    /// passed a number beyond all keys, with the word zero.
    unsafe fn word_first(
        words: &[Self::Words; SUMS + 1],
        passed: Self::Answers,
        keys: &mut [u8; 16],
        found: &mut [u32; 16],
    ) -> u32;
    /// Puts the numbers whose bit in `held` is set, of the first [`FIRST`](Leading::FIRST), after the first `listed` of a
    /// list, as far as it has room, and `slot` beside each. What the list has after them means nothing; `listed` is below 256.
    unsafe fn key_append(list: &mut Listed, listed: usize, keys: &[u8; 16], held: u32, slot: u8);
    /// The word of one lane on one side (0 plus, 1 minus).
    unsafe fn word(a: &Self::Words, lane: usize, side: usize) -> u32;
}

/// [`Leading::key_append`], one key after the other.
#[inline(always)]
pub(super) fn append(list: &mut Listed, mut listed: usize, keys: &[u8], held: u32, slot: u8) {
    for (i, &key) in keys.iter().enumerate() {
        // Each is written in any case and kept by moving on: no branch to guess.
        if listed < LISTED {
            (list.keys[listed], list.slots[listed]) = (key, slot);
        }
        listed += (held >> i & 1) as usize;
    }
}

impl Leading for Fe {
    type Words = [u32; 2];
    type Tops = u64;
    type Asker = u32;
    type Answers = u32;

    const FIRST: usize = 4;

    #[inline(always)]
    unsafe fn tops(self) -> u64 {
        self.0[3]
    }
    #[inline(always)]
    unsafe fn product_tops(self, factor: Fe, addend: u64) -> u64 {
        let (a, b) = (&self.0, &factor.0);
        let wide = |i: usize, j: usize| u128::from(a[i]) * u128::from(b[j]);
        let high = |i: usize, j: usize| (wide(i, j) >> 64) as u64;
        // The upper two of eight limbs of the product, without what the sixth hands on: at most 4 short in the lower,
        // which the fold makes nothing.
        let upper = wide(3, 3) + u128::from(high(2, 3)) + u128::from(high(3, 2));
        let (c6, c7) = (upper as u64, (upper >> 64) as u64);
        // The fourth, without what the third hands on.
        let mut c3 = addend;
        for i in 0..4 {
            c3 = c3.wrapping_add(a[i].wrapping_mul(b[3 - i]));
        }
        for i in 0..3 {
            c3 = c3.wrapping_add(high(i, 2 - i));
        }
        // The fold of the upper half.
        let folded = ((u128::from(c6) * u128::from(FOLD)) >> 64) as u64;
        c3.wrapping_add(c7.wrapping_mul(FOLD)).wrapping_add(folded)
    }
    #[inline(always)]
    unsafe fn tops_add(a: u64, b: u64) -> u64 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    unsafe fn tops_lane(a: &u64, _: usize) -> u64 {
        *a
    }
    #[inline(always)]
    unsafe fn tops_words(plus: u64, minus: u64) -> [u32; 2] {
        [(plus >> 32) as u32, (minus >> 32) as u32]
    }
    #[inline(always)]
    unsafe fn word_splat(word: u32) -> [u32; 2] {
        [word; 2]
    }
    #[inline(always)]
    unsafe fn word_add(a: [u32; 2], b: [u32; 2]) -> [u32; 2] {
        [a[0].wrapping_add(b[0]), a[1].wrapping_add(b[1])]
    }
    #[inline(always)]
    unsafe fn word_sub(a: [u32; 2], b: [u32; 2]) -> [u32; 2] {
        [a[0].wrapping_sub(b[0]), a[1].wrapping_sub(b[1])]
    }
    #[inline(always)]
    unsafe fn word_min(a: [u32; 2], b: [u32; 2]) -> [u32; 2] {
        [a[0].min(b[0]), a[1].min(b[1])]
    }
    #[inline(always)]
    unsafe fn word_any_at_most(a: [u32; 2], limit: u32) -> bool {
        a[0].min(a[1]) <= limit
    }
    #[inline(always)]
    unsafe fn word_load(from: *const u32) -> [u32; 2] {
        // SAFETY: the caller's.
        unsafe { [*from, *from.add(1)] }
    }
    #[inline(always)]
    unsafe fn asker<const STRIDE: usize>(log2: u32) -> u32 {
        log2
    }
    #[inline(always)]
    unsafe fn word_ask<const STRIDE: usize>(a: [u32; 2], table: *const u8, &log2: &u32, asking: u32) -> u32 {
        let table = Marked::<STRIDE> { table, log2 };
        // A place that does not ask reads the first entry, not one nobody has fetched.
        let [first, second] = [(asking & 1).wrapping_neg(), (asking >> 1 & 1).wrapping_neg()];
        // SAFETY: the caller's.
        let passed = unsafe { table.holds(a[0] & first) as u32 | (table.holds(a[1] & second) as u32) << 1 };
        passed & asking
    }
    #[inline(always)]
    unsafe fn answer(answers: u32, sum: usize, passed: u32) -> u32 {
        (if sum == 0 { 0 } else { answers }) | passed << (2 * sum)
    }
    #[inline(always)]
    unsafe fn word_first(
        words: &[[u32; 2]; SUMS + 1],
        mut left: u32,
        keys: &mut [u8; 16],
        found: &mut [u32; 16],
    ) -> u32 {
        let count = left.count_ones();
        for i in 0..Self::FIRST {
            // Always so many, without a branch: past the last it is the number after all keys.
            let key = (left | 1 << (2 * SUMS)).trailing_zeros();
            left &= left.wrapping_sub(1);
            keys[i] = key as u8;
            found[i] = words.as_flattened()[key as usize];
        }
        count
    }
    #[inline(always)]
    unsafe fn key_append(list: &mut Listed, listed: usize, keys: &[u8; 16], held: u32, slot: u8) {
        append(list, listed, &keys[..Self::FIRST], held, slot);
    }
    #[inline(always)]
    unsafe fn word(a: &[u32; 2], _: usize, side: usize) -> u32 {
        a[side]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::dispatch::{Job, test_all};
    use crate::random::random;

    /// Picks out what passed in every number, from none to all keys, in places all over the sums.
    #[inline(always)]
    unsafe fn pick<L: Leading>() {
        let (keys_of_sum, mut state) = (2 * L::N, 5);
        let all = SUMS * keys_of_sum;
        for round in 0..20 * (all + 1) {
            let count = round % (all + 1);
            let words: Vec<u32> = (0..all).map(|_| random(&mut state) as u32).collect();
            let mut numbers: Vec<usize> = (0..all).collect();
            match round / (all + 1) {
                // The first, the last, and any.
                0 => {}
                1 => numbers.reverse(),
                _ => numbers.sort_by_cached_key(|_| random(&mut state)),
            }
            let mut chosen = numbers[..count].to_vec();
            chosen.sort_unstable();
            let mut passed = [0u32; SUMS];
            for key in &chosen {
                passed[key / keys_of_sum] |= 1 << (key % keys_of_sum);
            }
            let (mut keys, mut found) = ([0; 16], [0; 16]);
            // SAFETY: the caller's; there are words for all sums.
            let got = unsafe {
                let mut vectors = [L::word_splat(0); SUMS + 1];
                for (vector, words) in vectors.iter_mut().zip(words.chunks(keys_of_sum)) {
                    *vector = L::word_load(words.as_ptr());
                }
                let mut answers = L::Answers::default();
                for (sum, &passed) in passed.iter().enumerate() {
                    answers = L::answer(answers, sum, passed);
                }
                L::word_first(&vectors, answers, &mut keys, &mut found)
            };
            assert_eq!(got as usize, count);
            for i in 0..L::FIRST {
                let (key, word) = chosen.get(i).map_or((all, 0), |&key| (key, words[key]));
                assert_eq!((keys[i] as usize, found[i]), (key, word), "key {i} of {count}");
            }
            // Some of those are kept, by chance, all and none.
            let held = [random(&mut state) as u32, u32::MAX, 0][round % 3] & ((1 << L::FIRST) - 1);
            let kept: Vec<u8> = (0..L::FIRST).filter(|i| held >> i & 1 == 1).map(|i| keys[i]).collect();
            // After some others, as far as there is room.
            let listed = random(&mut state) as usize % [49, 65, 256][round % 3];
            let (before, end) = (listed.min(LISTED), (listed + kept.len()).min(LISTED));
            let mut list = Listed { keys: [200; LISTED], slots: [100; LISTED] };
            // SAFETY: the caller's.
            unsafe { L::key_append(&mut list, listed, &keys, held, 7) };
            assert_eq!(list.keys[before..end], kept[..end - before], "{held:b} after {listed}");
            assert!(list.slots[before..end].iter().all(|&slot| slot == 7), "{held:b} after {listed}");
            assert!(list.keys[..before].iter().all(|&key| key == 200), "{held:b} after {listed}");
            assert!(list.slots[..before].iter().all(|&slot| slot == 100), "{held:b} after {listed}");
        }
    }

    struct Pick;

    impl Job for Pick {
        type Output = ();

        #[inline(always)]
        unsafe fn run<L: Leading>(self) {
            // SAFETY: the caller's.
            unsafe { pick::<L>() }
        }
    }

    #[test]
    fn keys_that_passed_are_picked_out_in_order() {
        test_all(|| Pick);
    }
}
