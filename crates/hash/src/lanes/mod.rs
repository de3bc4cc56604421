//! Words side by side: the seam between a hash and an instruction set.
//!
//! A hash is written once over [`Word64`] or [`Word32`]; `u64` and `u32` themselves are the portable words of one
//! message. [`dispatch`] picks the words.
//!
//! # Safety
//! Every method of an implementation for an instruction set may be called only where that set is present and
//! only from code compiled for it: [`warpsmith_simd::Lanes`] is the proof. They are `inline(always)` so that they become
//! part of such code.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use warpsmith_simd::{Lanes, Simd, compile_for};

/// The words of an instruction set.
pub(crate) trait Set {
    type Word32: Word32;
    type Word64: Word64;
}

struct Portable;
impl Set for Portable {
    type Word32 = u32;
    type Word64 = u64;
}

#[cfg(target_arch = "x86_64")]
struct Avx2;
#[cfg(target_arch = "x86_64")]
impl Set for Avx2 {
    type Word32 = core::arch::x86_64::__m256i;
    type Word64 = core::arch::x86_64::__m256i;
}

#[cfg(target_arch = "x86_64")]
struct Avx512;
#[cfg(target_arch = "x86_64")]
impl Set for Avx512 {
    type Word32 = core::arch::x86_64::__m512i;
    type Word64 = core::arch::x86_64::__m512i;
}

/// A computation on all messages of a block; a type, so that the whole of it is compiled for each instruction set as
/// one piece.
pub(crate) trait Lanewise {
    type Input: ?Sized;
    type Output;

    /// Computes it with the words of `S`.
    unsafe fn run<S: Set>(input: &Self::Input) -> Self::Output;
}

/// Has the caller's stack frame aligned to whole cache lines, which an aligned variable in it brings about. Without
/// one the compiler puts the registers it runs out of at any multiple of 16 bytes, often across two lines.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn align_frame() {
    #[repr(align(64))]
    struct Line(#[expect(dead_code, reason = "only its place matters")] u64);
    std::hint::black_box(&mut Line(0));
}

/// Computes `J` with the instruction set of `lanes`.
pub(crate) fn dispatch<J: Lanewise>(lanes: Lanes, input: &J::Input) -> J::Output {
    compile_for! { avx2
        unsafe fn avx2<J: Lanewise>(input: &J::Input) -> J::Output {
            align_frame();
            // SAFETY: the caller checked the instruction set.
            unsafe { J::run::<Avx2>(input) }
        }
    }
    compile_for! { avx512
        unsafe fn avx512<J: Lanewise>(input: &J::Input) -> J::Output {
            align_frame();
            // SAFETY: the caller checked the instruction set.
            unsafe { J::run::<Avx512>(input) }
        }
    }
    // SAFETY: `Lanes` exists only for an instruction set this machine has.
    unsafe {
        match lanes.simd() {
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 | Simd::Avx512Ifma => avx512::<J>(input),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 | Simd::AvxIfma => avx2::<J>(input),
            _ => J::run::<Portable>(input),
        }
    }
}

/// A 64-bit word of each of N messages. See the module's safety rules.
pub(crate) trait Word64: Copy {
    /// Messages side by side; divides 8.
    const N: usize;

    /// The words from `at` on.
    unsafe fn load(from: &[u64; 8], at: usize) -> Self;
    /// Writes the words from `at` on.
    unsafe fn store(self, to: &mut [u64; 8], at: usize);
    /// The same word for all messages.
    unsafe fn splat(word: u64) -> Self;
    /// `self ^ b`.
    unsafe fn xor(self, b: Self) -> Self;
    /// `self ^ b ^ c`.
    unsafe fn xor3(self, b: Self, c: Self) -> Self;
    /// `self ^ (!b & c)`.
    unsafe fn xor_not_and(self, b: Self, c: Self) -> Self;
    /// Rotation to the left; `by` is a constant below 64 wherever it matters.
    unsafe fn rotate_left(self, by: u32) -> Self;
    /// The bytes of each word in reverse.
    unsafe fn swap_bytes(self) -> Self;
    /// The low half of this word, then the high half of the next: with words most significant first, the word
    /// that begins four bytes later.
    unsafe fn four_bytes_on(self, next: Self) -> Self;
}

impl Word64 for u64 {
    const N: usize = 1;

    #[inline(always)]
    unsafe fn load(from: &[u64; 8], at: usize) -> u64 {
        from[at]
    }
    #[inline(always)]
    unsafe fn store(self, to: &mut [u64; 8], at: usize) {
        to[at] = self;
    }
    #[inline(always)]
    unsafe fn splat(word: u64) -> u64 {
        word
    }
    #[inline(always)]
    unsafe fn xor(self, b: u64) -> u64 {
        self ^ b
    }
    #[inline(always)]
    unsafe fn xor3(self, b: u64, c: u64) -> u64 {
        self ^ b ^ c
    }
    #[inline(always)]
    unsafe fn xor_not_and(self, b: u64, c: u64) -> u64 {
        self ^ (!b & c)
    }
    #[inline(always)]
    unsafe fn rotate_left(self, by: u32) -> u64 {
        u64::rotate_left(self, by)
    }
    #[inline(always)]
    unsafe fn swap_bytes(self) -> u64 {
        u64::swap_bytes(self)
    }
    #[inline(always)]
    unsafe fn four_bytes_on(self, next: u64) -> u64 {
        self << 32 | next >> 32
    }
}

/// A 32-bit word of each of N messages. See the module's safety rules.
pub(crate) trait Word32: Copy {
    /// Messages side by side; divides 16.
    const N: usize;

    /// The words from `at` on.
    unsafe fn load(from: &[u32; 16], at: usize) -> Self;
    /// Writes the words from `at` on.
    unsafe fn store(self, to: &mut [u32; 16], at: usize);
    /// The same word for all messages.
    unsafe fn splat(word: u32) -> Self;
    /// The sum modulo 2^32.
    unsafe fn add(self, b: Self) -> Self;
    /// `self ^ b`.
    unsafe fn xor(self, b: Self) -> Self;
    /// `self ^ b ^ c`.
    unsafe fn xor3(self, b: Self, c: Self) -> Self;
    /// Bits of `b` where `self` has ones, else bits of `c`.
    unsafe fn choose(self, b: Self, c: Self) -> Self;
    /// Bits that at least two have.
    unsafe fn majority(self, b: Self, c: Self) -> Self;
    /// `(self | !b) ^ c`.
    unsafe fn or_not_xor(self, b: Self, c: Self) -> Self;
    /// `self ^ (b | !c)`.
    unsafe fn xor_or_not(self, b: Self, c: Self) -> Self;
    /// Rotation to the left; `by` is a constant from 1 to 31 wherever it matters.
    unsafe fn rotate_left(self, by: u32) -> Self;
    /// Shift to the right; as for rotations.
    unsafe fn shift_right(self, by: u32) -> Self;
    /// The bytes of each word in reverse.
    unsafe fn swap_bytes(self) -> Self;
}

impl Word32 for u32 {
    const N: usize = 1;

    #[inline(always)]
    unsafe fn load(from: &[u32; 16], at: usize) -> u32 {
        from[at]
    }
    #[inline(always)]
    unsafe fn store(self, to: &mut [u32; 16], at: usize) {
        to[at] = self;
    }
    #[inline(always)]
    unsafe fn splat(word: u32) -> u32 {
        word
    }
    #[inline(always)]
    unsafe fn add(self, b: u32) -> u32 {
        self.wrapping_add(b)
    }
    #[inline(always)]
    unsafe fn xor(self, b: u32) -> u32 {
        self ^ b
    }
    #[inline(always)]
    unsafe fn xor3(self, b: u32, c: u32) -> u32 {
        self ^ b ^ c
    }
    #[inline(always)]
    unsafe fn choose(self, b: u32, c: u32) -> u32 {
        c ^ (self & (b ^ c))
    }
    #[inline(always)]
    unsafe fn majority(self, b: u32, c: u32) -> u32 {
        (self & b) | (c & (self | b))
    }
    #[inline(always)]
    unsafe fn or_not_xor(self, b: u32, c: u32) -> u32 {
        (self | !b) ^ c
    }
    #[inline(always)]
    unsafe fn xor_or_not(self, b: u32, c: u32) -> u32 {
        self ^ (b | !c)
    }
    #[inline(always)]
    unsafe fn rotate_left(self, by: u32) -> u32 {
        u32::rotate_left(self, by)
    }
    #[inline(always)]
    unsafe fn shift_right(self, by: u32) -> u32 {
        self >> by
    }
    #[inline(always)]
    unsafe fn swap_bytes(self) -> u32 {
        u32::swap_bytes(self)
    }
}

/// The block once for each of sixteen constants of the given name: loops are not always unrolled in time for
/// rotations and places to become constants.
macro_rules! sixteen {
    ($i:ident, $body:block) => {
        sixteen!(@ $i, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@ $i:ident, $body:block, $($n:literal)*) => {
        $({
            const $i: usize = $n;
            $body
        })*
    };
}
pub(crate) use sixteen;
