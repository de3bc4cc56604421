//! Many sums P + t*G at once: a table of multiples of G, and affine additions that share their inversions.
//!
//! t is read in windows of w bits with values v, from the lowest on. For every window i but the last the table
//! has (v - M/2) 2^(w i) G, M = 2^w - 1: an odd multiple of half a point, so never infinity, and that of v is the opposite
//! of that of M - v, so half of them are stored. The last window, of the bits that are left, has v 2^(w i) G and what all
//! the others are short of together. So a sum takes one addition a window, and none of them is a special case:
//!
//! ```text
//! A + T:  m = (ya - yt) / (xa - xt)    x = m^2 - xa - xt    -y = m (x - xa) + ya
//! ```
//!
//! That leaves -y where there was y; the next addition takes -y and the opposite of its entry, and leaves y again.
//!
//! Cost a sum: an addition a window, of 5 M + 1 S, the last without y where nobody asks for it, and its share of an
//! inversion a window.
//!
//! Points of equal x, which nobody meets who has not looked for them, make a product vanish. All sums that shared it are
//! then done one by one with complete additions.

use warpsmith_simd::Simd;

use crate::field::dispatch::{self, Job, Registers};
use crate::field::lanes::{self, Lanes};
use crate::field::leading::Leading;
use crate::group::{self, Affine, Point};
use crate::{Fe, Scalar};

/// How a number is cut into windows.
#[derive(Clone, Copy, Debug)]
struct Windows {
    bits: u32,
    count: usize,
}

impl Windows {
    /// The table takes 1.5 MiB, of a second-level cache of two (see docs/measurements/hashes-cpu.md).
    const SMALL: Self = Self::of(11);
    /// For numbers in plenty: 5 MiB, and five additions of six. With 16 bits, 35 MiB and two of three, fetching takes what adding saves.
    const LARGE: Self = Self::of(13);

    const fn of(bits: u32) -> Self {
        let count = 256usize.div_ceil(bits as usize);
        // After an even number of additions y is that of the sum and not of its opposite.
        assert!(count.is_multiple_of(2));
        Self { bits, count }
    }

    /// Entries of a window but the last.
    const fn half(self) -> usize {
        1 << (self.bits - 1)
    }

    /// Entries of the last window.
    const fn last(self) -> usize {
        1 << (256 - self.bits as usize * (self.count - 1))
    }
}

/// Sums, by eight, that share an inversion: more would leave the cache, fewer would pay more for it.
pub const TOGETHER: usize = 256;

/// Pairs of vectors between the fetching of an entry and its use.
const AHEAD: usize = 8;

/// Eight sums side by side. Words are most significant first, those of one place for all eight together.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Eight {
    /// x of the points; when done, x of the sums, canonical.
    pub x: [[u64; 8]; 4],
    /// y of the points; when done, that of the sums, canonical, if it was asked for.
    pub y: [[u64; 8]; 4],
    /// The multiples of G that are added, any numbers below 2^256.
    pub t: [[u64; 8]; 4],
    /// Bit i is set where there is an i-th sum; when done, where that is not infinity.
    pub live: u8,
}

/// A table entry: one line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Multiple(Affine);

/// What is wanted of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    X,
    Both,
}

/// Multiples of G.
pub struct Multiples {
    simd: Simd,
    windows: Windows,
    entries: Vec<Multiple>,
}

/// What a window of a number stands for, of one number a lane: entries, and the lanes where their opposites are meant.
struct Picked {
    at: [u32; 8],
    opposite: u32,
}

/// Sums that share their inversions.
struct Together<'a> {
    table: &'a Multiples,
    sums: &'a mut [Eight],
    wanted: Wanted,
}

impl Job for Together<'_> {
    type Output = bool;

    #[inline(always)]
    unsafe fn run<L: Leading>(self) -> bool {
        // SAFETY: the caller's.
        unsafe { self.table.together::<L>(self.sums, self.wanted) }
    }
}

impl Multiples {
    /// The table, for an instruction set this machine must have.
    pub fn new(simd: Simd) -> Multiples {
        Multiples::with(simd, Windows::SMALL)
    }

    /// A larger table, with which sums take fewer additions: for millions of them.
    pub fn large(simd: Simd) -> Multiples {
        Multiples::with(simd, Windows::LARGE)
    }

    fn with(simd: Simd, windows: Windows) -> Multiples {
        assert!(simd.is_available(), "this machine has no {simd}");
        let half_count = windows.half();
        let mut entries = Vec::with_capacity((windows.count - 1) * half_count + windows.last());
        // n is odd: (n + 1) / 2 is a half modulo n, and n - 1 = -1.
        let half = group::multiply(half_of(Scalar::ONE), Some(Affine::G)).expect("half of G");
        let (mut base, mut short) = (half, None);
        for _ in 0..windows.count - 1 {
            // base, 3 base, 5 base: each round doubles their number, by adding 2, 4, 8 base.
            let (mut odd, mut step) = (vec![base], base.double());
            while odd.len() < half_count {
                let more = group::add_all(step, &odd).expect("odd multiples are no even ones");
                odd.extend(more);
                step = step.double();
            }
            entries.extend(odd.iter().copied().map(Multiple));
            // M/2 of this window, M times its base, is its last entry.
            short = group::add(short, odd.last().copied());
            base = step;
        }
        // The base is that of a half: twice of it is one.
        let (one, point) = (base.double(), short);
        let last = point.expect("no multiple of n");
        entries.extend(in_steps(last, one, windows.last()).into_iter().map(Multiple));
        Multiples { simd, windows, entries }
    }

    /// Takes each point P to P + t*G, of which x alone is formed.
    pub fn add_to(&self, sums: &mut [Eight]) {
        self.add(sums, Wanted::X);
    }

    /// Takes each point P to P + t*G, both coordinates.
    pub fn add_points(&self, sums: &mut [Eight]) {
        self.add(sums, Wanted::Both);
    }

    fn add(&self, sums: &mut [Eight], wanted: Wanted) {
        for sums in sums.chunks_mut(TOGETHER) {
            let done = dispatch::run(Registers::of(self.simd), Together { table: self, sums, wanted });
            if !done {
                self.one_by_one(sums);
            }
        }
    }

    /// All of them with one inversion a window; says whether that went well. If not, nothing was written.
    ///
    /// # Safety
    /// As for all of [`Lanes`].
    #[inline(always)]
    unsafe fn together<L: Lanes>(&self, sums: &mut [Eight], wanted: Wanted) -> bool {
        // SAFETY: the caller's, throughout.
        unsafe {
            let one = L::splat(&L::constant(Fe::ONE));
            // Two at a time, in two chains of products: one alone would wait for its own latency. The last may be there
            // twice.
            let count = sums.len() * (8 / L::N);
            let mut state = Vec::with_capacity(count.next_multiple_of(2));
            for i in 0..count.next_multiple_of(2) {
                let (eight, at) = where_is::<L>(i.min(count - 1));
                let (x, y) = (L::wide_load(&sums[eight].x, at), L::wide_load(&sums[eight].y, at));
                state.push(Sum { x, y, before: one, picked: Picked { at: [0; 8], opposite: 0 } });
            }
            let (pairs, _) = state.as_chunks_mut::<2>();
            for window in 0..self.windows.count {
                let mut chain = [one, one];
                for i in 0..pairs.len().min(AHEAD) {
                    self.pick::<L>(sums, &mut pairs[i], i, window);
                }
                for i in 0..pairs.len() {
                    if i + AHEAD < pairs.len() {
                        self.pick::<L>(sums, &mut pairs[i + AHEAD], i + AHEAD, window);
                    }
                    let [a, b] = &mut pairs[i];
                    let d = [a.x.sub(self.x::<L>(&a.picked)), b.x.sub(self.x::<L>(&b.picked))];
                    (a.before, b.before) = (chain[0], chain[1]);
                    chain = [chain[0].mul(d[0]), chain[1].mul(d[1])];
                }
                let mut met = 0;
                let inverse = lanes::invert(chain[0].mul(chain[1]), &mut met);
                if met != 0 {
                    return false;
                }
                let mut undo = [inverse.mul(chain[1]), inverse.mul(chain[0])];
                // Every other time y is that of the opposite, and so is the entry's: the difference then is of the
                // opposite entry, and a sum of the entry itself.
                let turned = if window & 1 == 1 { 0 } else { u32::MAX };
                for [a, b] in pairs.iter_mut().rev() {
                    let xt = [self.x::<L>(&a.picked), self.x::<L>(&b.picked)];
                    let v = [undo[0].mul(a.before), undo[1].mul(b.before)];
                    undo = [undo[0].mul(a.x.sub(xt[0])), undo[1].mul(b.x.sub(xt[1]))];
                    let yt = [self.y::<L>(&a.picked), self.y::<L>(&b.picked)];
                    let n = [
                        a.y.add_or_sub(yt[0], a.picked.opposite ^ turned),
                        b.y.add_or_sub(yt[1], b.picked.opposite ^ turned),
                    ];
                    let m = [n[0].mul(v[0]), n[1].mul(v[1])];
                    let square = [m[0].square(), m[1].square()];
                    let x =
                        [square[0].sub(a.x).sub(xt[0]).tighten(), square[1].sub(b.x).sub(xt[1]).tighten()];
                    if window < self.windows.count - 1 || wanted == Wanted::Both {
                        a.y = m[0].mul_add(x[0].sub(a.x), a.y);
                        b.y = m[1].mul_add(x[1].sub(b.x), b.y);
                    }
                    (a.x, b.x) = (x[0], x[1]);
                }
            }
            for (i, sum) in pairs.as_flattened().iter().enumerate().take(count) {
                let (eight, at) = where_is::<L>(i);
                L::wide_store(&sum.x.wide(), &mut sums[eight].x, at);
                if wanted == Wanted::Both {
                    L::wide_store(&sum.y.wide(), &mut sums[eight].y, at);
                }
            }
            true
        }
    }

    /// Reads a window for the i-th pair, and has its entries fetched.
    #[inline(always)]
    unsafe fn pick<L: Lanes>(&self, sums: &[Eight], pair: &mut [Sum<L>; 2], i: usize, window: usize) {
        let last = sums.len() * (8 / L::N) - 1;
        for (side, sum) in pair.iter_mut().enumerate() {
            let (eight, at) = where_is::<L>((2 * i + side).min(last));
            sum.picked = self.windows.pick::<L>(&sums[eight].t, at, window);
            for lane in 0..L::N {
                // SAFETY: the caller's.
                unsafe { L::fetch(&self.entries[sum.picked.at[lane] as usize].0.x) };
            }
        }
    }

    /// x of the entries picked.
    #[inline(always)]
    unsafe fn x<L: Lanes>(&self, picked: &Picked) -> L {
        let mut from = [&self.entries[0].0.x; 8];
        for lane in 0..L::N {
            from[lane] = &self.entries[picked.at[lane] as usize].0.x;
        }
        // SAFETY: the caller's.
        unsafe { L::gather(&from) }
    }

    /// y of the entries picked.
    #[inline(always)]
    unsafe fn y<L: Lanes>(&self, picked: &Picked) -> L {
        let mut from = [&self.entries[0].0.y; 8];
        for lane in 0..L::N {
            from[lane] = &self.entries[picked.at[lane] as usize].0.y;
        }
        // SAFETY: the caller's.
        unsafe { L::gather(&from) }
    }

    /// Each by itself, with complete additions.
    fn one_by_one(&self, sums: &mut [Eight]) {
        for eight in sums {
            for lane in (0..8).filter(|lane| eight.live >> lane & 1 == 1).collect::<Vec<_>>() {
                let coordinate = |words: &[[u64; 8]; 4]| Fe::from_words(&words.map(|word| word[lane]));
                let mut sum: Point = Some(Affine { x: coordinate(&eight.x), y: coordinate(&eight.y) });
                for window in 0..self.windows.count {
                    let Picked { at, opposite } = self.windows.pick::<Fe>(&eight.t, lane, window);
                    let entry = self.entries[at[0] as usize].0;
                    let entry = if opposite == 1 { entry.negate() } else { entry };
                    sum = group::add(sum, Some(entry));
                }
                match sum {
                    Some(sum) => {
                        let words = eight.x.iter_mut().chain(&mut eight.y);
                        for (word, value) in words.zip(sum.x.to_words().into_iter().chain(sum.y.to_words())) {
                            word[lane] = value;
                        }
                    }
                    None => eight.live &= !(1 << lane),
                }
            }
        }
    }
}

/// Sums under way, one a lane: a point, x tight and y or -y tight, the product of the differences before its own, and the
/// entry that is added next.
struct Sum<L> {
    x: L,
    y: L,
    before: L,
    picked: Picked,
}

/// Which of the eights the i-th vector of lanes belongs to, and where in it.
#[inline(always)]
fn where_is<L: Lanes>(i: usize) -> (usize, usize) {
    (i * L::N / 8, i * L::N % 8)
}

impl Windows {
    /// Reads a window of the numbers from `at` on, one for each lane.
    #[inline(always)]
    fn pick<L: Lanes>(self, t: &[[u64; 8]; 4], at: usize, window: usize) -> Picked {
        let bit = window * self.bits as usize;
        let (word, shift) = (3 - bit / 64, bit % 64);
        let half = self.half() as u32;
        let first = window as u32 * half;
        let mut picked = Picked { at: [0; 8], opposite: 0 };
        for lane in 0..L::N {
            let mut value = t[word][at + lane] >> shift;
            if shift > 64 - self.bits as usize && word > 0 {
                value |= t[word - 1][at + lane] << (64 - shift);
            }
            if window == self.count - 1 {
                picked.at[lane] = first + value as u32;
                continue;
            }
            // The upper half of the values has the entries in order, the lower half their opposites in reverse.
            let upper = (value >> (self.bits - 1) & 1) as u32;
            picked.at[lane] = first + ((value as u32 ^ upper.wrapping_sub(1)) & (half - 1));
            picked.opposite |= (1 - upper) << lane;
        }
        picked
    }
}

/// So many points from one on, each a step further.
fn in_steps(first: Affine, step: Affine, count: usize) -> Vec<Affine> {
    let (mut points, mut way) = (vec![first], Some(step));
    // Each round doubles their number, by adding as many steps as there are points.
    while points.len() < count {
        let way_now = way.expect("a small multiple is not infinity");
        let room = (count - points.len()).min(points.len());
        let more: Vec<Affine> = match group::add_all(way_now, &points[..room]) {
            Some(more) => more,
            // One of them has the x of the way.
            None => points[..room]
                .iter()
                .map(|point| group::add(Some(*point), way).expect("no multiple of n"))
                .collect(),
        };
        points.extend(more);
        way = Some(way_now.double());
    }
    points
}

/// Half of a number modulo n, which is odd: times (n + 1) / 2.
pub fn half_of(s: Scalar) -> Scalar {
    // n - 1 = -1 is even as an integer; its half is (n - 1) / 2, one less than (n + 1) / 2.
    let mut bytes = Scalar::ONE.negate().to_be_bytes();
    let mut carry = 0;
    for byte in &mut bytes {
        (*byte, carry) = (*byte >> 1 | carry << 7, *byte & 1);
    }
    s.mul(Scalar::from_be_bytes(&bytes).expect("less than n").add(Scalar::ONE))
}
