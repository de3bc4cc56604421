//! RIPEMD-160 of SHA-256, of messages of fixed lengths: 33 and 65 bytes with two fields of 32, and 22 bytes with one of
//! 20. Sixteen side by side, given and returned as eight and eight.

use std::marker::PhantomData;

use crate::keccak::Word8;
use crate::lanes::{Lanewise, Set, Word32, dispatch};
use crate::ripemd160::{self, ripemd160};
use crate::sha256::{self, Word16, halves, sha256};
use warpsmith_simd::Lanes;

/// Twenty bytes of eight messages: words most significant byte first, the last in its upper half.
pub type Digest8 = [Word8; 3];

/// The RIPEMD-160 of the SHA-256 of a message of any length.
pub fn hash160(message: &[u8]) -> [u8; 20] {
    ripemd160(&sha256(message))
}

/// Hashes blocks of which the words from the last given one to the length are zero: one block each, or two, of which
/// the second has one word.
///
/// # Safety
/// As for all of [`Word32`].
#[inline(always)]
unsafe fn hash<S: Set, const N: usize>(
    words: &[Word16; N],
    rest: Option<&Word16>,
    bytes: u32,
) -> [Digest8; 2] {
    let mut out = [[0; 16]; 5];
    for at in (0..16).step_by(S::Word32::N) {
        // SAFETY: the caller's.
        unsafe {
            let zero = S::Word32::splat(0);
            let mut block = [zero; 16];
            for i in 0..N {
                block[i] = S::Word32::load(&words[i], at);
            }
            let bits = S::Word32::splat(8 * bytes);
            let state = match rest {
                None => {
                    block[15] = bits;
                    sha256::compress(sha256::start(), block)
                }
                Some(rest) => {
                    let mut second = [zero; 16];
                    (second[0], second[15]) = (S::Word32::load(rest, at), bits);
                    sha256::compress(sha256::compress(sha256::start(), block), second)
                }
            };
            // SHA-256 gives its digest most significant byte first, RIPEMD-160 reads the least first. The length is
            // 256 bits in the lower of two words.
            let [a, b, c, d, e, f, g, h] = state;
            let block = [
                a.swap_bytes(),
                b.swap_bytes(),
                c.swap_bytes(),
                d.swap_bytes(),
                e.swap_bytes(),
                f.swap_bytes(),
                g.swap_bytes(),
                h.swap_bytes(),
                S::Word32::splat(0x80),
                zero,
                zero,
                zero,
                zero,
                zero,
                S::Word32::splat(256),
                zero,
            ];
            for (word, to) in ripemd160::compress(ripemd160::start(), &block).into_iter().zip(&mut out) {
                word.swap_bytes().store(to, at);
            }
        }
    }
    let mut digests = [[[0; 8]; 3]; 2];
    for (half, digest) in digests.iter_mut().enumerate() {
        for lane in 0..8 {
            let word = |i: usize| u64::from(out[i][lane + 8 * half]);
            digest[0][lane] = word(0) << 32 | word(1);
            digest[1][lane] = word(2) << 32 | word(3);
            digest[2][lane] = word(4) << 32;
        }
    }
    digests
}

/// Of eight messages of 33 bytes, 0x02 and x, and eight more, 0x03 and x. Words of x have the most significant byte
/// first.
pub fn compressed(lanes: Lanes, x: &[Word8; 4]) -> [Digest8; 2] {
    compressed_of(lanes, [x, x], [0, u8::MAX])
}

/// Of sixteen messages of 33 bytes, eight and eight: 0x02 and x, or 0x03 and x where the bit of `odd` is set.
pub fn compressed_keys(lanes: Lanes, x: &[[Word8; 4]; 2], odd: [u8; 2]) -> [Digest8; 2] {
    compressed_of(lanes, x.each_ref(), odd)
}

/// The same without copies: they took three percent of a search.
#[inline(always)]
fn compressed_of(lanes: Lanes, x: [&[Word8; 4]; 2], odd: [u8; 2]) -> [Digest8; 2] {
    struct Compressed<'x>(PhantomData<&'x ()>);
    impl<'x> Lanewise for Compressed<'x> {
        type Input = ([&'x [Word8; 4]; 2], u16);
        type Output = [Digest8; 2];
        #[inline(always)]
        unsafe fn run<S: Set>(([first, second], odd): &Self::Input) -> [Digest8; 2] {
            let x: [Word16; 8] = halves(*first, *second);
            let mut words = [[0; 16]; 9];
            for lane in 0..16 {
                // One byte on.
                words[0][lane] = (0x02 | u32::from(odd >> lane & 1)) << 24 | x[0][lane] >> 8;
                for i in 1..8 {
                    words[i][lane] = x[i - 1][lane] << 24 | x[i][lane] >> 8;
                }
                words[8][lane] = x[7][lane] << 24 | 0x80 << 16;
            }
            // SAFETY: the caller's.
            unsafe { hash::<S, 9>(&words, None, 33) }
        }
    }
    dispatch::<Compressed<'_>>(lanes, &(x, u16::from_le_bytes(odd)))
}

/// Of eight messages of 65 bytes, 0x04, x and the first y, and eight more with the second y.
pub fn uncompressed(lanes: Lanes, x: &[Word8; 4], y: &[[Word8; 4]; 2]) -> [Digest8; 2] {
    uncompressed_of(lanes, [x, x], y)
}

/// Of sixteen messages of 65 bytes, eight and eight: 0x04, x and y.
pub fn uncompressed_keys(lanes: Lanes, x: &[[Word8; 4]; 2], y: &[[Word8; 4]; 2]) -> [Digest8; 2] {
    uncompressed_of(lanes, x.each_ref(), y)
}

#[inline(always)]
fn uncompressed_of(lanes: Lanes, x: [&[Word8; 4]; 2], y: &[[Word8; 4]; 2]) -> [Digest8; 2] {
    struct Uncompressed<'x>(PhantomData<&'x ()>);
    impl<'x> Lanewise for Uncompressed<'x> {
        type Input = ([&'x [Word8; 4]; 2], &'x [[Word8; 4]; 2]);
        type Output = [Digest8; 2];
        #[inline(always)]
        unsafe fn run<S: Set>((x, y): &Self::Input) -> [Digest8; 2] {
            let (x, y): ([Word16; 8], [Word16; 8]) = (halves(x[0], x[1]), halves(&y[0], &y[1]));
            let (mut words, mut rest) = ([[0; 16]; 16], [0; 16]);
            for lane in 0..16 {
                // One byte on; the last byte falls into a block of its own.
                words[0][lane] = 0x04 << 24 | x[0][lane] >> 8;
                for i in 1..8 {
                    words[i][lane] = x[i - 1][lane] << 24 | x[i][lane] >> 8;
                    words[i + 8][lane] = y[i - 1][lane] << 24 | y[i][lane] >> 8;
                }
                words[8][lane] = x[7][lane] << 24 | y[0][lane] >> 8;
                rest[lane] = y[7][lane] << 24 | 0x80 << 16;
            }
            // SAFETY: the caller's.
            unsafe { hash::<S, 16>(&words, Some(&rest), 65) }
        }
    }
    dispatch::<Uncompressed<'_>>(lanes, &(x, y))
}

/// Of sixteen messages of 22 bytes: 0x00, 0x14 and twenty bytes as the functions here return them.
pub fn witness_scripts(lanes: Lanes, digests: &[Digest8; 2]) -> [Digest8; 2] {
    struct Scripts;
    impl Lanewise for Scripts {
        type Input = [Digest8; 2];
        type Output = [Digest8; 2];
        #[inline(always)]
        unsafe fn run<S: Set>([first, second]: &[Digest8; 2]) -> [Digest8; 2] {
            let digest: [Word16; 5] = halves(first, second);
            let mut words = [[0; 16]; 6];
            for lane in 0..16 {
                // Two bytes on.
                words[0][lane] = 0x0014 << 16 | digest[0][lane] >> 16;
                for i in 1..5 {
                    words[i][lane] = digest[i - 1][lane] << 16 | digest[i][lane] >> 16;
                }
                words[5][lane] = digest[4][lane] << 16 | 0x80 << 8;
            }
            // SAFETY: the caller's.
            unsafe { hash::<S, 6>(&words, None, 22) }
        }
    }
    dispatch::<Scripts>(lanes, digests)
}
