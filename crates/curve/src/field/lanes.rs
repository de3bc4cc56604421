//! Several field elements side by side: the seam between the walk and an instruction set.
//!
//! The walk is written once over [`Lanes`]. [`Fe`] itself is the portable lane (one element); `ifma::Fe8` is
//! eight elements in AVX-512 registers, `ifma::Fe4` four in those of AVX2. What a search for prefixes reads of them is in `leading`.
//!
//! # Safety
//! Every method of an implementation for an instruction set may be called only where that set is present and
//! only from code compiled for it (`warpsmith_simd`). They are `inline(always)` so that they become part
//! of such code.

use super::Fe;
use super::term::Term;

/// Field elements side by side. See the module's safety rules.
///
/// Magnitudes: an element is *tight* when it comes out of `mul`, `square`, `mul_add`, `splat` or `with_lane`,
/// *loose* when it comes out of `add`, `sub` or `negate`, and *raw* when it comes out of what is called so: then it is fit
/// to be a factor and for nothing else, and cheaper to form. Products take any factors; `add` and `sub` take tight
/// operands or, where stated, one loose one. Implementations check their own bounds in debug builds.
#[expect(clippy::missing_safety_doc, reason = "one rule for all, in the module's head")]
pub trait Lanes: Copy {
    /// Elements side by side.
    const N: usize;
    /// One element known in advance, stored so that reading it into all lanes is cheap.
    type Constant: Copy + Send + Sync;
    /// The canonical residues as four 64-bit words each, most significant first.
    type Wide: Copy;

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
    /// The product; raw.
    #[inline(always)]
    unsafe fn mul_raw(self, other: Self) -> Self {
        // SAFETY: the caller's, as for the three below.
        unsafe { self.mul(other) }
    }
    /// `self * factor + addend`, `addend` tight; raw.
    #[inline(always)]
    unsafe fn mul_add_raw(self, factor: Self, addend: Self) -> Self {
        // SAFETY: the caller's.
        unsafe { self.mul_add(factor, addend) }
    }
    /// The square; raw.
    #[inline(always)]
    unsafe fn square_raw(self) -> Self {
        // SAFETY: the caller's.
        unsafe { self.square() }
    }
    /// The sum of two tight elements; raw.
    #[inline(always)]
    unsafe fn add_raw(self, other: Self) -> Self {
        // SAFETY: the caller's.
        unsafe { self.add(other) }
    }
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
    /// The same element; the compiler forms it before what the program does next, not where it is needed. Left alone
    /// it moves products across loads and stores that were meant to be waited for beside them.
    unsafe fn now(self) -> Self;
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
}

impl Lanes for Fe {
    const N: usize = 1;
    type Constant = Fe;
    type Wide = [u64; 4];

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
    unsafe fn now(self) -> Fe {
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
