//! Many sums P + t*G at once: a table of multiples of G, and affine additions that share their inversions.
//!
//! t is read in windows of w = [`WINDOW`] bits with values v, from the lowest on. For every window i but the last the table
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
//! Cost a sum: with [`WINDOWS`] additions of 5 M + 1 S, the last without y, and its share of an inversion a window.
//!
//! Points of equal x, which nobody meets who has not looked for them, make a product vanish. All sums that shared it are
//! then done one by one with complete additions.

use crate::field::lanes::{self, Lanes};
use crate::group::{self, Affine, Point};
use crate::platform::Simd;
use crate::{Fe, Scalar};

/// Bits of a window. The table takes 1.5 MiB with 11, of a second-level cache of two (see docs/performance.md).
const WINDOW: u32 = 11;

/// Windows of 256 bits.
const WINDOWS: usize = 256usize.div_ceil(WINDOW as usize);

/// Entries of a window but the last.
const HALF: usize = 1 << (WINDOW - 1);

/// Entries of the last window.
const LAST: usize = 1 << (256 - WINDOW as usize * (WINDOWS - 1));

/// Sums, by eight, that share an inversion: more would leave the cache, fewer would pay more for it.
const TOGETHER: usize = 256;

/// Eight sums side by side. Words are most significant first, those of one place for all eight together.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Eight {
    /// x of the points; when done, x of the sums, canonical.
    pub x: [[u64; 8]; 4],
    /// y of the points.
    pub y: [[u64; 8]; 4],
    /// The multiples of G that are added, any numbers below 2^256.
    pub t: [[u64; 8]; 4],
    /// Bit i is set where there is an i-th sum; when done, where that is not infinity.
    pub live: u8,
}

/// A table entry: one line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Entry(Affine);

/// Multiples of G.
pub struct Multiples {
    simd: Simd,
    entries: Vec<Entry>,
}

/// What is read of a number in a window, for eight of them: entries, and the places where their opposites are meant.
struct Picked {
    at: [u32; 8],
    opposite: u32,
}

impl Multiples {
    /// The table, for an instruction set this machine must have.
    pub fn new(simd: Simd) -> Multiples {
        assert!(simd.is_available(), "this machine has no {simd}");
        let mut entries = Vec::with_capacity((WINDOWS - 1) * HALF + LAST);
        // n is odd: (n + 1) / 2 is a half modulo n, and n - 1 = -1.
        let half = group::multiply(half_of(Scalar::ONE), Some(Affine::G)).expect("half of G");
        let (mut base, mut short) = (half, None);
        for _ in 0..WINDOWS - 1 {
            // base, 3 base, 5 base: each round doubles their number, by adding 2, 4, 8 base.
            let (mut odd, mut step) = (vec![base], base.double());
            while odd.len() < HALF {
                let more = group::add_all(step, &odd).expect("odd multiples are no even ones");
                odd.extend(more);
                step = step.double();
            }
            entries.extend(odd.iter().copied().map(Entry));
            // M/2 of this window, M times its base, is its last entry.
            short = group::add(short, odd.last().copied());
            base = step;
        }
        // The base is that of a half: twice of it is one.
        let (one, mut point) = (base.double(), short);
        for _ in 0..LAST {
            entries.push(Entry(point.expect("no multiple of n")));
            point = group::add(point, Some(one));
        }
        Multiples { simd, entries }
    }

    /// Takes each point P to P + t*G.
    pub fn add_to(&self, sums: &mut [Eight]) {
        for sums in sums.chunks_mut(TOGETHER) {
            // SAFETY: a table exists only for an instruction set this machine has.
            let done = unsafe {
                match self.simd {
                    #[cfg(target_arch = "x86_64")]
                    Simd::Avx512Ifma => self.together_ifma(sums),
                    _ => self.together::<Fe>(sums),
                }
            };
            if !done {
                self.one_by_one(sums);
            }
        }
    }

    /// The same code as the portable one, compiled for AVX-512 IFMA.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vpopcntdq,bmi2,popcnt")]
    unsafe fn together_ifma(&self, sums: &mut [Eight]) -> bool {
        // SAFETY: the caller checked the instruction set.
        unsafe { self.together::<crate::field::ifma::Fe8>(sums) }
    }

    /// All of them with one inversion a window; says whether that went well. If not, nothing was written.
    ///
    /// # Safety
    /// As for all of [`Lanes`].
    #[inline(always)]
    unsafe fn together<L: Lanes>(&self, sums: &mut [Eight]) -> bool {
        // SAFETY: the caller's, throughout.
        unsafe {
            let one = L::splat(&L::constant(Fe::ONE));
            let mut state = Vec::with_capacity(sums.len() * (8 / L::N));
            for eight in sums.iter() {
                for at in (0..8).step_by(L::N) {
                    let (x, y) = (L::wide_load(&eight.x, at), L::wide_load(&eight.y, at));
                    state.push(Sum { x, y, before: one });
                }
            }
            for window in 0..WINDOWS {
                // Two interleaved chains of products: one would wait for its own latency.
                let mut chain = [one, one];
                for (i, sum) in state.iter_mut().enumerate() {
                    let picked = pick(&sums[i * L::N / 8].t, window);
                    let d = sum.x.sub(L::gather(&self.coordinates::<L>(&picked, i)[0]));
                    sum.before = chain[i & 1];
                    chain[i & 1] = chain[i & 1].mul(d);
                }
                let mut met = 0;
                let inverse = lanes::invert(chain[0].mul(chain[1]), &mut met);
                if met != 0 {
                    return false;
                }
                let mut undo = [inverse.mul(chain[1]), inverse.mul(chain[0])];
                for (i, sum) in state.iter_mut().enumerate().rev() {
                    let picked = pick(&sums[i * L::N / 8].t, window);
                    let [x, y] = self.coordinates::<L>(&picked, i);
                    let (xt, yt) = (L::gather(&x), L::gather(&y));
                    let v = undo[i & 1].mul(sum.before);
                    undo[i & 1] = undo[i & 1].mul(sum.x.sub(xt));
                    // Every other time y is that of the opposite, and so is the entry's: the difference then is of the
                    // opposite entry, and a sum of the entry itself.
                    let turned = if window & 1 == 1 { u32::MAX } else { 0 };
                    let minus = !(picked.opposite ^ turned) >> (i * L::N % 8);
                    let m = sum.y.add_or_sub(yt, minus).mul(v);
                    let x = m.square().sub(sum.x).sub(xt).tighten();
                    if window < WINDOWS - 1 {
                        sum.y = m.mul_add(x.sub(sum.x), sum.y);
                    }
                    sum.x = x;
                }
            }
            for (i, sum) in state.iter().enumerate() {
                L::wide_store(&sum.x.wide(), &mut sums[i * L::N / 8].x, i * L::N % 8);
            }
            true
        }
    }

    /// Where the coordinates x and y lie that were picked for the lanes of the i-th element.
    #[inline(always)]
    fn coordinates<L: Lanes>(&self, picked: &Picked, i: usize) -> [[&Fe; 8]; 2] {
        let first = &self.entries[0].0;
        let mut all = [[&first.x; 8], [&first.y; 8]];
        for lane in 0..L::N {
            let entry = &self.entries[picked.at[i * L::N % 8 + lane] as usize].0;
            (all[0][lane], all[1][lane]) = (&entry.x, &entry.y);
        }
        all
    }

    /// Each by itself, with complete additions.
    fn one_by_one(&self, sums: &mut [Eight]) {
        for eight in sums {
            for lane in (0..8).filter(|lane| eight.live >> lane & 1 == 1).collect::<Vec<_>>() {
                let coordinate = |words: &[[u64; 8]; 4]| Fe::from_words(&words.map(|word| word[lane]));
                let mut sum: Point = Some(Affine { x: coordinate(&eight.x), y: coordinate(&eight.y) });
                for window in 0..WINDOWS {
                    let Picked { at, opposite } = pick(&eight.t, window);
                    let entry = self.entries[at[lane] as usize].0;
                    let entry = if opposite >> lane & 1 == 1 { entry.negate() } else { entry };
                    sum = group::add(sum, Some(entry));
                }
                match sum {
                    Some(sum) => {
                        for (word, value) in eight.x.iter_mut().zip(sum.x.to_words()) {
                            word[lane] = value;
                        }
                    }
                    None => eight.live &= !(1 << lane),
                }
            }
        }
    }
}

/// Sums under way: a point, x tight and y or -y tight, and the product of the differences before its own.
struct Sum<L> {
    x: L,
    y: L,
    before: L,
}

/// Reads a window of eight numbers.
#[inline(always)]
fn pick(t: &[[u64; 8]; 4], window: usize) -> Picked {
    let bit = window * WINDOW as usize;
    let (word, shift) = (3 - bit / 64, bit % 64);
    let mut picked = Picked { at: [0; 8], opposite: 0 };
    for lane in 0..8 {
        let mut value = t[word][lane] >> shift;
        if shift > 64 - WINDOW as usize && word > 0 {
            value |= t[word - 1][lane] << (64 - shift);
        }
        let first = (window * HALF) as u32;
        if window == WINDOWS - 1 {
            picked.at[lane] = first + value as u32;
            continue;
        }
        // The upper half of the values has the entries in order, the lower half their opposites in reverse.
        let upper = (value >> (WINDOW - 1) & 1) as u32;
        picked.at[lane] = first + ((value as u32 ^ upper.wrapping_sub(1)) & (HALF as u32 - 1));
        picked.opposite |= (1 - upper) << lane;
    }
    picked
}

/// Half of a number modulo n, which is odd: times (n + 1) / 2.
fn half_of(s: Scalar) -> Scalar {
    // n - 1 = -1 is even as an integer; its half is (n - 1) / 2, one less than (n + 1) / 2.
    let mut bytes = Scalar::ONE.negate().to_be_bytes();
    let mut carry = 0;
    for byte in &mut bytes {
        (*byte, carry) = (*byte >> 1 | carry << 7, *byte & 1);
    }
    s.mul(Scalar::from_be_bytes(&bytes).expect("less than n").add(Scalar::ONE))
}
