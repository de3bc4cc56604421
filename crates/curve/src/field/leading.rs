//! The leading bits of x/p of several elements side by side: all that a search for prefixes reads.
//!
//! *Words* are the 32 most significant bits, *tops* 64 of them. For the rule of safety see `lanes`.

use super::Fe;
use super::lanes::Lanes;
use super::marks::Marked;

/// How far a computed word can lie from the true one. With `true` the floor of 2^32 * x/p of a key and
/// `word` what the walk computed for it: `true - word` modulo 2^32 lies in `-WORD_BELOW..=WORD_ABOVE`.
///
/// A key's word is a sum of three words (see `walk`), of T0, T1 and T2, each times 1, beta or beta^2. A word of an
/// element is the floor of its fraction, less than 10 * 2^-52 of it lost on the way: error e in `[0, 1 + 2^-16)`. For
/// beta^2 it is minus the sum of the other two: error in `(-2 - 2^-15, 0]`. Three of them lie in (-6, 3), within
/// 2^-13; the floor of the truth itself can only move the difference down to the next integer: -7 to 3.
pub const WORD_BELOW: u32 = 7;
/// See [`WORD_BELOW`].
pub const WORD_ABOVE: u32 = 3;

/// The fraction beta/p, 320 bits of it: limb j holds the bits of weight 2^-64(j+1) ..., most significant
/// first. Used as: the fraction of beta*x mod p over p is that of x * (beta/p).
pub(crate) const BETA_OVER_P: [u64; 5] = beta_over_p();

/// Long division of BETA * 2^320 by p: p is so near 2^256 that beta/p = beta/2^256 * (1 + d + d^2 ...), with
/// d = FOLD/2^256; beyond the first term nothing reaches into the top 320 bits but beta * d itself, which is
/// below 2^-222 and starts at bit 222.
const fn beta_over_p() -> [u64; 5] {
    let b = Fe::BETA.0;
    // beta * FOLD, 5 limbs, least significant first: its weight is 2^-512 relative to the integer part.
    let mut prod = [0u64; 5];
    let mut carry = 0u128;
    let mut i = 0;
    while i < 4 {
        let t = b[i] as u128 * super::FOLD as u128 + carry;
        prod[i] = t as u64;
        carry = t >> 64;
        i += 1;
    }
    prod[4] = carry as u64;
    // beta / 2^256 occupies limbs weight 2^-64..2^-256; beta*FOLD/2^512 has limb prod[k] at weight
    // 2^(64k - 512): prod[4] at 2^-256, prod[3] at 2^-320.
    let (l256, carry) = b[0].overflowing_add(prod[4]);
    let (l192, carry) = b[1].overflowing_add(carry as u64);
    let (l128, carry) = b[2].overflowing_add(carry as u64);
    let l64 = b[3] + carry as u64;
    [l64, l128, l192, l256, prod[3]]
}

/// Leading bits of field elements. See the safety rules of `lanes`.
#[expect(clippy::missing_safety_doc, reason = "one rule for all, in the head of the module `lanes`")]
pub trait Leading: Lanes {
    /// 2N words: for each lane one of the plus side and one of the minus side.
    type Words: Copy;
    /// The top 64 bits of x/p, one a lane, at most 2^16 short: plain integers.
    type Tops: Copy;
    /// What asking a table of some size takes.
    type Asker: Copy;

    /// The words of a tight element for the plus side and another for the minus side.
    unsafe fn words(plus: Self, minus: Self) -> Self::Words;
    /// The words of beta times a tight element, likewise.
    unsafe fn beta_words(plus: Self, minus: Self) -> Self::Words;
    /// The top 64 bits of a tight element.
    unsafe fn tops(self) -> Self::Tops;
    /// The top 64 bits of beta times a tight element.
    unsafe fn beta_tops(self) -> Self::Tops;
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
    /// 0, 1, 2 and so on, place by place: lane 0 plus, lane 0 minus, lane 1 plus.
    unsafe fn word_places() -> Self::Words;
    /// Reads 2N words, place by place.
    unsafe fn word_load(from: *const u32) -> Self::Words;
    /// Writes 2N words, place by place.
    unsafe fn word_store(a: Self::Words, to: *mut u32);
    /// Prepares asking a table of 2^log2 entries, 1 to 22.
    unsafe fn asker(log2: u32) -> Self::Asker;
    /// Asks a table (see `marks`): bit i is set where the word in place i passes.
    ///
    /// Only places whose bit is set in `asking` take part. A table entry is the first of `STRIDE` (1 or 2) words, and
    /// `table` must have as many as the asker was prepared for.
    unsafe fn word_ask<const STRIDE: usize>(
        a: Self::Words,
        table: *const u32,
        asker: &Self::Asker,
        asking: u32,
    ) -> u32;
    /// Writes the words whose bit in `passed` is set (numbered as by `word_ask`) one after another, and
    /// returns how many. There must be room for all of them.
    unsafe fn word_append(a: Self::Words, passed: u32, to: *mut u32) -> usize;
    /// The place of the set bit of a mask before which there are n others; there must be one.
    unsafe fn set_bit(mask: u64, n: u32) -> u32;
    /// The word of one lane on one side (0 plus, 1 minus).
    unsafe fn word(a: &Self::Words, lane: usize, side: usize) -> u32;
}

impl Leading for Fe {
    type Words = [u32; 2];
    type Tops = u64;
    type Asker = u32;

    #[inline(always)]
    unsafe fn words(plus: Fe, minus: Fe) -> [u32; 2] {
        [(plus.0[3] >> 32) as u32, (minus.0[3] >> 32) as u32]
    }
    #[inline(always)]
    unsafe fn beta_words(plus: Fe, minus: Fe) -> [u32; 2] {
        [(beta_top(plus) >> 32) as u32, (beta_top(minus) >> 32) as u32]
    }
    #[inline(always)]
    unsafe fn tops(self) -> u64 {
        self.0[3]
    }
    #[inline(always)]
    unsafe fn beta_tops(self) -> u64 {
        beta_top(self)
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
    unsafe fn word_places() -> [u32; 2] {
        [0, 1]
    }
    #[inline(always)]
    unsafe fn word_load(from: *const u32) -> [u32; 2] {
        // SAFETY: the caller's.
        unsafe { [*from, *from.add(1)] }
    }
    #[inline(always)]
    unsafe fn word_store(a: [u32; 2], to: *mut u32) {
        // SAFETY: the caller's.
        unsafe {
            to.write(a[0]);
            to.add(1).write(a[1]);
        }
    }
    #[inline(always)]
    unsafe fn asker(log2: u32) -> u32 {
        log2
    }
    #[inline(always)]
    unsafe fn word_ask<const STRIDE: usize>(a: [u32; 2], table: *const u32, &log2: &u32, asking: u32) -> u32 {
        let table = Marked { table, log2 };
        // A place that does not ask reads the first entry, not one nobody has fetched.
        let [first, second] = [(asking & 1).wrapping_neg(), (asking >> 1 & 1).wrapping_neg()];
        // SAFETY: the caller's.
        let passed = unsafe {
            table.holds::<STRIDE>(a[0] & first) as u32 | (table.holds::<STRIDE>(a[1] & second) as u32) << 1
        };
        passed & asking
    }
    #[inline(always)]
    unsafe fn word_append(a: [u32; 2], passed: u32, to: *mut u32) -> usize {
        // Each is written in any case and kept by moving on: no branch to guess.
        let first = (passed & 1) as usize;
        // SAFETY: the caller gives room for both.
        unsafe {
            to.write(a[0]);
            to.add(first).write(a[1]);
        }
        first + (passed >> 1) as usize
    }
    #[inline(always)]
    unsafe fn set_bit(mut mask: u64, n: u32) -> u32 {
        for _ in 0..n {
            mask &= mask.wrapping_sub(1);
        }
        mask.trailing_zeros()
    }
    #[inline(always)]
    unsafe fn word(a: &[u32; 2], _: usize, side: usize) -> u32 {
        a[side]
    }
}

/// The top 64 bits of beta * x: the products that end at weight 2^-64, low halves of the neighbours one step apart
/// and high halves of those two apart; what is left out is below 8 * 2^-64.
#[inline(always)]
fn beta_top(x: Fe) -> u64 {
    let mut sum = 0u64;
    for i in 0..4 {
        sum = sum.wrapping_add(x.0[i].wrapping_mul(BETA_OVER_P[i]));
        sum = sum.wrapping_add(((x.0[i] as u128 * BETA_OVER_P[i + 1] as u128) >> 64) as u64);
    }
    sum
}
