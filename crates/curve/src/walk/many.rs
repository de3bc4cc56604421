//! The sieve for many prefixes, up to millions: a bitmap that fits a private cache, asked once a key; then, for
//! the few percent it lets pass, a larger bitmap on more bits; then the ranges themselves.

use super::sieve::Range;
use super::words::{image_of, top64};
use super::{Entry, Hit, Lanes, Orbit, Place, Visitor};
use crate::Fe;
use crate::field::lanes::{WORD_ABOVE, WORD_BELOW};

/// How far a sum of three computed tops may be off: each less than 2^16, the exact ones of a table less than 1.
const SLACK: u64 = 1 << 18;

/// Ranges of the top 64 bits of x as bitmaps.
#[derive(Clone, Debug)]
pub struct Bits {
    /// One bit for each value of the leading bits of a word, as far as `shift` leaves them.
    coarse: Vec<u32>,
    shift: u32,
    /// The same for the leading bits of the top 64, more of them.
    fine: Vec<u32>,
    fine_shift: u32,
    /// Ranges sorted by value, and where those of each leading 16 bits begin.
    ranges: Vec<Range>,
    starts: Vec<u32>,
}

/// Sets the bits `first..=last` of a bitmap of 2^log2 bits, counted around the circle.
fn set(bits: &mut [u32], log2: u32, first: u64, last: u64) {
    let turn = (1u64 << log2) - 1;
    for at in first..=last.min(first + turn) {
        let at = at & turn;
        bits[(at >> 5) as usize] |= 1 << (at & 31);
    }
}

impl Bits {
    /// The bitmaps of sorted, disjoint ranges; the first has 2^log2 bits, 5 to 27.
    pub fn new(ranges: &[Range], log2: u32) -> Bits {
        assert!((5..=27).contains(&log2), "a bitmap has 2^5 to 2^27 bits, not 2^{log2}");
        let fine_log2 = (log2 + 3).min(27);
        let (shift, fine_shift) = (32 - log2, 64 - fine_log2);
        let mut coarse = vec![0u32; 1 << (log2 - 5)];
        let mut fine = vec![0u32; 1 << (fine_log2 - 5)];
        // Values are counted from one turn up, so that what reaches below zero stays positive.
        for range in ranges {
            let first = (1u64 << 32) + (range.first >> 32) - WORD_ABOVE as u64;
            let last = (1u64 << 32) + (range.last >> 32) + WORD_BELOW as u64;
            set(&mut coarse, log2, first >> shift, last >> shift);
            let first = (1u128 << 64) + range.first as u128 - SLACK as u128;
            let last = (1u128 << 64) + range.last as u128 + SLACK as u128;
            set(&mut fine, fine_log2, (first >> fine_shift) as u64, (last >> fine_shift) as u64);
        }
        let mut starts = vec![0; (1 << 16) + 1];
        for (at, start) in starts.iter_mut().enumerate() {
            *start = ranges.partition_point(|r| r.last >> 48 < at as u64) as u32;
        }
        Bits { coarse, shift, fine, fine_shift, ranges: ranges.to_vec(), starts }
    }

    /// Whether the finer bitmap lets an x with these top bits pass.
    #[inline(always)]
    fn is_fine(&self, top: u64) -> bool {
        let at = top >> self.fine_shift;
        self.fine[(at >> 5) as usize] >> (at & 31) & 1 == 1
    }

    /// Whether an x whose top bits are within the slack of `top` can lie in a range.
    pub(super) fn holds(&self, top: u64, slack: u64) -> bool {
        // The ranges that end in the bucket of `top` or later, up to one that begins after it; and, where the slack
        // reaches into a neighbouring bucket, those of that one.
        let in_bucket = |value: u64| {
            let bucket = (value >> 48) as usize;
            let to = (self.starts[bucket + 1] as usize + 1).min(self.ranges.len());
            let candidates = &self.ranges[self.starts[bucket] as usize..to];
            let after = candidates.partition_point(|r| r.first <= top.saturating_add(slack));
            candidates[after.saturating_sub(2)..(after + 1).min(candidates.len())]
                .iter()
                .any(|r| r.holds(top, slack))
        };
        let (low, high) = (top.wrapping_sub(slack), top.wrapping_add(slack));
        in_bucket(low) || (low >> 48 != high >> 48 && in_bucket(high))
    }
}

/// The visitor that asks the bitmaps.
pub(super) struct Many<'a, L: Lanes> {
    bits: &'a Bits,
    step: u64,
    hits: &'a mut Vec<Hit>,
    skip: u32,
    /// Tops of c, beta c, beta^2 c.
    c: Option<[L::Tops; 3]>,
    /// Tops of T0 - c, T1 - t, T2 times the powers of beta: [term][power][side].
    tops: Box<[[[[u64; 8]; 2]; 3]; 3]>,
}

impl<'a, L: Lanes> Many<'a, L> {
    pub fn new(bits: &'a Bits, step: u64, hits: &'a mut Vec<Hit>) -> Self {
        Many { bits, step, hits, skip: 0, c: None, tops: Box::new([[[[0; 8]; 2]; 3]; 3]) }
    }

    /// The tops of x, beta x, beta^2 x = -(x + beta x).
    #[inline(always)]
    unsafe fn images(x: L) -> [L::Tops; 3] {
        // SAFETY: the caller's.
        unsafe {
            let (a, b) = (x.tops(), x.beta_tops());
            [a, b, L::tops_sub(L::tops_sub(L::tops_splat(0), a), b)]
        }
    }

    /// Stores the tops of one term and returns its words.
    #[inline(always)]
    unsafe fn term(&mut self, term: usize, x: &[L; 2], less: Option<&[L::Tops; 3]>) -> [L::Words; 3] {
        // SAFETY: the caller's.
        unsafe {
            let (mut plus, mut minus) = (Self::images(x[0]), Self::images(x[1]));
            if let Some(less) = less {
                for j in 0..3 {
                    plus[j] = L::tops_sub(plus[j], less[j]);
                    minus[j] = L::tops_sub(minus[j], less[j]);
                }
            }
            for j in 0..3 {
                L::tops_store(plus[j], &mut self.tops[term][j][0]);
                L::tops_store(minus[j], &mut self.tops[term][j][1]);
            }
            [
                L::tops_words(plus[0], minus[0]),
                L::tops_words(plus[1], minus[1]),
                L::tops_words(plus[2], minus[2]),
            ]
        }
    }

    /// A key the finer bitmap let pass: decided by the ranges.
    #[cold]
    #[inline(never)]
    fn decide(&mut self, index: u32, at: usize, lane: u32, side: usize, top: u64) {
        if self.skip >> lane & 1 == 0 && self.bits.holds(top, SLACK) {
            let (p, q) = (at / 3, at % 3);
            let (orbit, image) = (((q + 3 - p) % 3) as u8, image_of(p, q) as u8);
            let place = Place { lane, step: self.step, index, minus: side == 1, orbit, image, negate: false };
            self.hits.push(Hit { place, x: None });
        }
    }
}

impl<L: Lanes> Visitor<L> for Many<'_, L> {
    #[inline(always)]
    unsafe fn centre(&mut self, c: L, skip: u32) {
        // SAFETY: the caller's.
        unsafe {
            self.c = Some(Self::images(c));
            self.skip = skip;
            for lane in (0..L::N).filter(|l| skip >> l & 1 == 0) {
                self.exact(lane as u32, 0, false, 0, c.lane(lane));
            }
        }
    }

    #[inline(always)]
    unsafe fn orbit(&mut self, index: u32, entry: &Entry<L>, orbit: &Orbit<L>) {
        let Some(c) = self.c else { return };
        // SAFETY: the caller's; the bitmap has 2^(32 - shift) bits.
        unsafe {
            let t0 = self.term(0, &orbit.t0, Some(&c));
            let t = entry.tops;
            let t = [L::tops_splat(t[0]), L::tops_splat(t[1]), L::tops_splat(t[2])];
            let t1 = self.term(1, &orbit.t1, Some(&t));
            let t2 = self.term(2, &orbit.t2, None);
            // Survivors of up to three sums at a time, sixteen places each, in one word: one loop, and so one
            // badly predicted exit, for three sums.
            for p in 0..3 {
                let mut passed = 0u64;
                for q in 0..3 {
                    let word = L::word_add(L::word_add(t1[p], t2[q]), t0[image_of(p, q)]);
                    passed |= (L::word_bits(word, &self.bits.coarse, self.bits.shift) as u64) << (16 * q);
                }
                while passed != 0 {
                    let bit = passed.trailing_zeros() as usize;
                    passed &= passed - 1;
                    let (q, lane, side) = (bit >> 4, (bit >> 1) & 7, bit & 1);
                    let top = self.tops[0][image_of(p, q)][side][lane]
                        .wrapping_add(self.tops[1][p][side][lane])
                        .wrapping_add(self.tops[2][q][side][lane]);
                    if self.bits.is_fine(top) {
                        self.decide(index, p * 3 + q, lane as u32, side, top);
                    }
                }
            }
        }
    }

    fn exact(&mut self, lane: u32, index: u32, minus: bool, orbit: u8, x: Fe) {
        let mut image = x;
        for j in 0..3 {
            if self.bits.holds(top64(image), 1) {
                let place = Place { lane, step: self.step, index, minus, orbit, image: j, negate: false };
                self.hits.push(Hit { place, x: None });
            }
            image = image.mul(Fe::BETA);
        }
    }
}
