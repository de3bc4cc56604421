//! ChaCha with twelve rounds, as a function from a key and a place to sixteen words: of one place, and of sixteen places
//! side by side.
//!
//! The layout is that of RFC 8439: four constants, eight words of key, a counter, three words of nonce. Only the number
//! of rounds differs from ChaCha20. A place is the counter and the nonce. Words are numbers here: a keystream's bytes are
//! these words, least significant byte first.

use crate::lanes::{Lanewise, Set, Word32, dispatch};
use warpsmith_simd::Lanes;
#[cfg(target_arch = "x86_64")]
use warpsmith_simd::Simd;

/// A word of sixteen places.
pub type Word16 = [u32; 16];

/// A key, as words.
pub type Key = [u32; 8];

/// "expand 32-byte k".
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// Rounds are done in pairs: columns, then diagonals.
const DOUBLE_ROUNDS: usize = 6;

/// What ChaCha asks of words side by side.
trait Arx: Copy {
    unsafe fn add(self, b: Self) -> Self;
    unsafe fn xor(self, b: Self) -> Self;
    unsafe fn rotate_left(self, by: u32) -> Self;
}

impl<W: Word32> Arx for W {
    #[inline(always)]
    unsafe fn add(self, b: W) -> W {
        // SAFETY: the caller's.
        unsafe { Word32::add(self, b) }
    }
    #[inline(always)]
    unsafe fn xor(self, b: W) -> W {
        // SAFETY: the caller's.
        unsafe { Word32::xor(self, b) }
    }
    #[inline(always)]
    unsafe fn rotate_left(self, by: u32) -> W {
        // SAFETY: the caller's.
        unsafe { Word32::rotate_left(self, by) }
    }
}

/// # Safety
/// As for all of [`Word32`]; likewise for the functions below.
#[inline(always)]
unsafe fn quarter_round<W: Arx>([a, b, c, d]: [W; 4]) -> [W; 4] {
    // SAFETY: the caller's.
    unsafe {
        let a = a.add(b);
        let d = d.xor(a).rotate_left(16);
        let c = c.add(d);
        let b = b.xor(c).rotate_left(12);
        let a = a.add(b);
        let d = d.xor(a).rotate_left(8);
        let c = c.add(d);
        let b = b.xor(c).rotate_left(7);
        [a, b, c, d]
    }
}

#[inline(always)]
unsafe fn permuted<W: Arx>(start: &[W; 16]) -> [W; 16] {
    let [mut a0, mut a1, mut a2, mut a3, mut b0, mut b1, mut b2, mut b3, ..] = *start;
    let [.., mut c0, mut c1, mut c2, mut c3, mut d0, mut d1, mut d2, mut d3] = *start;
    for _ in 0..DOUBLE_ROUNDS {
        // SAFETY: the caller's.
        unsafe {
            [a0, b0, c0, d0] = quarter_round([a0, b0, c0, d0]);
            [a1, b1, c1, d1] = quarter_round([a1, b1, c1, d1]);
            [a2, b2, c2, d2] = quarter_round([a2, b2, c2, d2]);
            [a3, b3, c3, d3] = quarter_round([a3, b3, c3, d3]);
            [a0, b1, c2, d3] = quarter_round([a0, b1, c2, d3]);
            [a1, b2, c3, d0] = quarter_round([a1, b2, c3, d0]);
            [a2, b3, c0, d1] = quarter_round([a2, b3, c0, d1]);
            [a3, b0, c1, d2] = quarter_round([a3, b0, c1, d2]);
        }
    }
    [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3]
}

/// The words at one place: `place` is the counter, then the nonce.
pub fn words(key: &Key, place: [u32; 4]) -> [u32; 16] {
    let mut start = [0; 16];
    start[..4].copy_from_slice(&CONSTANTS);
    start[4..12].copy_from_slice(key);
    start[12..].copy_from_slice(&place);
    // SAFETY: `u32` needs no instruction set.
    let end = unsafe { permuted(&start) };
    std::array::from_fn(|i| start[i].wrapping_add(end[i]))
}

/// The words at sixteen places under one key: word i of the place of lane l is `[i][l]`.
pub fn words_of_sixteen(lanes: Lanes, key: &Key, places: &[Word16; 4]) -> [Word16; 16] {
    #[cfg(target_arch = "x86_64")]
    if lanes.simd() == Simd::Portable {
        return four_at_a_time::words_of_sixteen(key, places);
    }
    struct Sixteen;
    impl Lanewise for Sixteen {
        type Input = (Key, [Word16; 4]);
        type Output = [Word16; 16];
        #[inline(always)]
        unsafe fn run<S: Set>((key, places): &(Key, [Word16; 4])) -> [Word16; 16] {
            let mut output = [[0; 16]; 16];
            for at in (0..16).step_by(S::Word32::N) {
                // SAFETY: the caller's.
                unsafe {
                    let mut start = [S::Word32::splat(0); 16];
                    for (word, constant) in start.iter_mut().zip(CONSTANTS.iter().chain(key)) {
                        *word = S::Word32::splat(*constant);
                    }
                    for (word, place) in start[12..].iter_mut().zip(places) {
                        *word = S::Word32::load(place, at);
                    }
                    let end = permuted(&start);
                    for i in 0..16 {
                        Word32::add(start[i], end[i]).store(&mut output[i], at);
                    }
                }
            }
            output
        }
    }
    dispatch::<Sixteen>(lanes, &(*key, *places))
}

/// Registers of 128 bits, which every processor of this kind has: the compiler does not find them by itself.
#[cfg(target_arch = "x86_64")]
mod four_at_a_time {
    use core::arch::x86_64::*;

    use super::{Arx, CONSTANTS, Key, Word16, permuted};

    #[derive(Clone, Copy)]
    struct Four(__m128i);

    impl Arx for Four {
        #[inline(always)]
        unsafe fn add(self, b: Four) -> Four {
            // SAFETY: SSE2 is part of x86-64.
            Four(unsafe { _mm_add_epi32(self.0, b.0) })
        }
        #[inline(always)]
        unsafe fn xor(self, b: Four) -> Four {
            // SAFETY: SSE2 is part of x86-64.
            Four(unsafe { _mm_xor_si128(self.0, b.0) })
        }
        #[inline(always)]
        unsafe fn rotate_left(self, by: u32) -> Four {
            // SAFETY: SSE2 is part of x86-64. With a constant the shifts take the immediate form.
            unsafe {
                let left = _mm_sll_epi32(self.0, _mm_cvtsi32_si128(by as i32));
                Four(_mm_or_si128(left, _mm_srl_epi32(self.0, _mm_cvtsi32_si128(32 - by as i32))))
            }
        }
    }

    #[inline(always)]
    fn splat(word: u32) -> Four {
        // SAFETY: SSE2 is part of x86-64.
        Four(unsafe { _mm_set1_epi32(word as i32) })
    }

    pub(super) fn words_of_sixteen(key: &Key, places: &[Word16; 4]) -> [Word16; 16] {
        let mut output = [[0; 16]; 16];
        for at in (0..16).step_by(4) {
            let mut start = [splat(0); 16];
            for (word, constant) in start.iter_mut().zip(CONSTANTS.iter().chain(key)) {
                *word = splat(*constant);
            }
            for (word, place) in start[12..].iter_mut().zip(places) {
                let place: &[u32; 4] = place[at..].first_chunk().expect("sixteen is a multiple of four");
                // SAFETY: four words are there to be read; SSE2 is part of x86-64.
                *word = Four(unsafe { _mm_loadu_si128(place.as_ptr().cast()) });
            }
            // SAFETY: SSE2 is part of x86-64.
            let end = unsafe { permuted(&start) };
            for i in 0..16 {
                let to: &mut [u32; 4] =
                    output[i][at..].first_chunk_mut().expect("sixteen is a multiple of four");
                // SAFETY: four words are there to be written; SSE2 is part of x86-64.
                unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), start[i].add(end[i]).0) }
            }
        }
        output
    }
}
