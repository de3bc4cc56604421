//! Several field elements side by side: the seam between the walk and an instruction set.
//!
//! The walk is written once over [`Lanes`]. [`Fe`] itself is the portable lane (one element); `ifma::Fe8` is
//! eight elements in AVX-512 registers. Beside field arithmetic a lane type knows *words*: the 32 most
//! significant bits of x/p, which is all that a search for prefixes reads.
//!
//! # Safety
//! Every method of an implementation for an instruction set may be called only where that set is present and
//! only from code compiled for it; `platform` decides once. They are `inline(always)` so that they become part
//! of such code.

use super::Fe;
use crate::walk::Term;

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

/// Field elements side by side. See the module's safety rules.
///
/// Magnitudes: an element is *tight* when it comes out of `mul`, `square`, `mul_add`, `splat` or `with_lane`,
/// and *loose* when it comes out of `add`, `sub` or `negate`. Products take either; `add` and `sub` take tight
/// operands or, where stated, one loose one. Implementations check their own bounds in debug builds.
#[expect(clippy::missing_safety_doc, reason = "one rule for all, in the module's head")]
pub trait Lanes: Copy {
    /// Elements side by side.
    const N: usize;
    /// One element known in advance, stored so that reading it into all lanes is cheap.
    type Constant: Copy + Send + Sync;
    /// 2N words: for each lane one of the plus side and one of the minus side.
    type Words: Copy;
    /// The canonical residues as four 64-bit words each, most significant first.
    type Wide: Copy;
    /// The top 64 bits of x/p, one a lane, at most 2^16 short.
    type Tops: Copy;

    /// Stores an element for `splat`.
    fn constant(value: Fe) -> Self::Constant;
    /// The same element in all lanes; tight.
    unsafe fn splat(value: &Self::Constant) -> Self;
    /// The element of one lane.
    unsafe fn lane(&self, lane: usize) -> Fe;
    /// The same elements but for one lane; tight if they were.
    unsafe fn with_lane(self, lane: usize, value: Fe) -> Self;
    /// One element from each of the first `N` places; tight.
    unsafe fn gather(from: &[&Fe; 8]) -> Self;
    /// Has the line of memory of an element brought near, where the instruction set has a way to ask for that.
    unsafe fn fetch(of: &Fe);
    /// The product; tight.
    unsafe fn mul(self, other: Self) -> Self;
    /// `self * factor + addend`, `addend` tight, reduced once; tight.
    unsafe fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// The square; tight.
    unsafe fn square(self) -> Self;
    /// The sum of a tight or loose element and a tight one; loose. At most four such sums in a row.
    unsafe fn add(self, other: Self) -> Self;
    /// The difference of a tight or loose element and a tight one; loose. At most three of them in a row.
    unsafe fn sub(self, other: Self) -> Self;
    /// The sum, and where the lane's bit in `minus` is set the difference, of two tight elements; loose.
    unsafe fn add_or_sub(self, other: Self, minus: u32) -> Self;
    /// Minus a loose element; loose.
    unsafe fn negate(self) -> Self;
    /// The same element, of a loose one; tight.
    unsafe fn tighten(self) -> Self;
    /// Whether any lane holds zero; of a tight element.
    unsafe fn any_zero(self) -> bool;

    /// The canonical residues of a loose element.
    unsafe fn wide(self) -> Self::Wide;
    /// Writes the words of the lanes, lane 0 to place `at`, for which there must be room.
    unsafe fn wide_store(x: &Self::Wide, to: &mut [[u64; 8]; 4], at: usize);
    /// Reads what `wide_store` wrote, or the words of any residues; tight.
    unsafe fn wide_load(from: &[[u64; 8]; 4], at: usize) -> Self;
    /// Bit l of the result is set where lane l satisfies the term.
    unsafe fn wide_accepts(x: &Self::Wide, term: &Term) -> u32;

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
    /// A number by which words can be shifted, less than 32: its first 64 bits.
    unsafe fn word_count(count: u32) -> Self::Words;
    /// 0, 1, 2 and so on, place by place: lane 0 plus, lane 0 minus, lane 1 plus.
    unsafe fn word_places() -> Self::Words;
    /// Reads 2N words, place by place.
    unsafe fn word_load(from: *const u32) -> Self::Words;
    /// Writes 2N words, place by place.
    unsafe fn word_store(a: Self::Words, to: *mut u32);
    /// The bits set in either.
    unsafe fn word_or(a: Self::Words, b: Self::Words) -> Self::Words;
    /// Asks a table. The shifts say by how much a word is shifted right, each less than 32, to be the number of a table
    /// entry, and to have in its low five bits the numbers of two bits of that, counted from the most significant. The
    /// top bit of the result is set where both of these are.
    ///
    /// Only places whose bit is set in `asking` take part. A table entry is the first of `STRIDE` (1 or 2) words, and
    /// `table` must have one for every number.
    unsafe fn word_ask<const STRIDE: usize>(
        a: Self::Words,
        table: *const u32,
        shifts: &[Self::Words; 3],
        asking: u32,
    ) -> Self::Words;
    /// Bit i is the top bit of the word in place i.
    unsafe fn word_signs(a: Self::Words) -> u32;
    /// Writes the words whose bit in `passed` is set (numbered as those of `word_signs`) one after another, and
    /// returns how many. There must be room for all of them.
    unsafe fn word_append(a: Self::Words, passed: u32, to: *mut u32) -> usize;
    /// The same element; the compiler forms it before what the program does next, not where it is needed. Left alone
    /// it moves products across loads and stores that were meant to be waited for beside them.
    unsafe fn now(self) -> Self;
    /// The word of one lane on one side (0 plus, 1 minus).
    unsafe fn word(a: &Self::Words, lane: usize, side: usize) -> u32;
}

impl Lanes for Fe {
    const N: usize = 1;
    type Constant = Fe;
    type Words = [u32; 2];
    type Wide = [u64; 4];
    type Tops = u64;

    #[inline(always)]
    fn constant(value: Fe) -> Fe {
        value
    }
    #[inline(always)]
    unsafe fn splat(value: &Fe) -> Fe {
        *value
    }
    #[inline(always)]
    unsafe fn lane(&self, _: usize) -> Fe {
        *self
    }
    #[inline(always)]
    unsafe fn with_lane(self, _: usize, value: Fe) -> Fe {
        value
    }
    #[inline(always)]
    unsafe fn gather(from: &[&Fe; 8]) -> Fe {
        *from[0]
    }
    #[inline(always)]
    unsafe fn fetch(_: &Fe) {}
    #[inline(always)]
    unsafe fn mul(self, other: Fe) -> Fe {
        Fe::mul(self, other)
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Fe, addend: Fe) -> Fe {
        Fe::mul_add(self, factor, addend)
    }
    #[inline(always)]
    unsafe fn square(self) -> Fe {
        Fe::square(self)
    }
    #[inline(always)]
    unsafe fn add(self, other: Fe) -> Fe {
        Fe::add(self, other)
    }
    #[inline(always)]
    unsafe fn sub(self, other: Fe) -> Fe {
        Fe::sub(self, other)
    }
    #[inline(always)]
    unsafe fn add_or_sub(self, other: Fe, minus: u32) -> Fe {
        if minus & 1 == 1 { Fe::sub(self, other) } else { Fe::add(self, other) }
    }
    #[inline(always)]
    unsafe fn negate(self) -> Fe {
        Fe::negate(self)
    }
    #[inline(always)]
    unsafe fn tighten(self) -> Fe {
        self
    }
    #[inline(always)]
    unsafe fn any_zero(self) -> bool {
        self.is_zero()
    }

    #[inline(always)]
    unsafe fn wide(self) -> [u64; 4] {
        self.to_words()
    }
    #[inline(always)]
    unsafe fn wide_store(x: &[u64; 4], to: &mut [[u64; 8]; 4], at: usize) {
        for (to, word) in to.iter_mut().zip(x) {
            to[at] = *word;
        }
    }
    #[inline(always)]
    unsafe fn wide_load(from: &[[u64; 8]; 4], at: usize) -> Fe {
        Fe([from[3][at], from[2][at], from[1][at], from[0][at]])
    }
    #[inline(always)]
    unsafe fn wide_accepts(x: &[u64; 4], term: &Term) -> u32 {
        term.accepts(x) as u32
    }

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
    unsafe fn word_count(count: u32) -> [u32; 2] {
        [count; 2]
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
    unsafe fn word_or(a: [u32; 2], b: [u32; 2]) -> [u32; 2] {
        [a[0] | b[0], a[1] | b[1]]
    }
    #[inline(always)]
    unsafe fn word_ask<const STRIDE: usize>(
        a: [u32; 2],
        table: *const u32,
        shifts: &[[u32; 2]; 3],
        asking: u32,
    ) -> [u32; 2] {
        let shifts = [shifts[0][0], shifts[1][0], shifts[2][0]];
        // A place that does not ask reads the first entry, not one nobody has fetched.
        let [first, second] = [(asking & 1).wrapping_neg(), (asking >> 1 & 1).wrapping_neg()];
        // SAFETY: the caller's.
        unsafe {
            [
                probe::<STRIDE>(a[0] & first, table, &shifts) & first,
                probe::<STRIDE>(a[1] & second, table, &shifts) & second,
            ]
        }
    }
    #[inline(always)]
    unsafe fn word_signs(a: [u32; 2]) -> u32 {
        a[0] >> 31 | a[1] >> 31 << 1
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
    unsafe fn now(self) -> Fe {
        self
    }
    #[inline(always)]
    unsafe fn word(a: &[u32; 2], _: usize, side: usize) -> u32 {
        a[side]
    }
}

/// The inverses of a tight element's lanes, but for those in `skip`. Lanes that hold zero join `skip`. The inverse of a
/// lane in it is one.
///
/// # Safety
/// As for all of [`Lanes`].
#[inline(always)]
pub(crate) unsafe fn invert<L: Lanes>(of: L, skip: &mut u32) -> L {
    // SAFETY: the caller's.
    unsafe {
        if of.any_zero() {
            for lane in 0..L::N {
                if of.lane(lane).is_zero() {
                    *skip |= 1 << lane;
                }
            }
        }
        let mut inverses = [Fe::ONE; 16];
        for (lane, value) in inverses.iter_mut().take(L::N).enumerate() {
            if *skip >> lane & 1 == 0 {
                *value = of.lane(lane);
            }
        }
        Fe::invert_all(&mut inverses[..L::N]);
        let mut inverse = of;
        for (lane, &value) in inverses.iter().take(L::N).enumerate() {
            inverse = inverse.with_lane(lane, value);
        }
        inverse
    }
}

/// One place of [`Lanes::word_ask`].
///
/// # Safety
/// The table must have an entry for every number.
#[inline(always)]
pub(crate) unsafe fn probe<const STRIDE: usize>(word: u32, table: *const u32, shifts: &[u32; 3]) -> u32 {
    // SAFETY: the caller's.
    let entry = unsafe { *table.add((word >> shifts[0]) as usize * STRIDE) };
    // The count of these shifts is taken modulo 32, which leaves the low five bits.
    entry.wrapping_shl(word >> shifts[1]) & entry.wrapping_shl(word >> shifts[2])
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
