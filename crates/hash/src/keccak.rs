//! Keccak-256 as Ethereum uses it: the sponge of FIPS 202 with rate 136 and the padding of the original
//! submission (0x01, not SHA-3's 0x06).
//!
//! The state is five rows of five words. One permutation is written once over `Word64`: `u64` for one message, AVX2
//! registers for four, AVX-512 registers for eight.

use crate::lanes::{Lanewise, Set, Word64, dispatch};
use warpsmith_simd::Lanes;

/// Bytes absorbed before each permutation.
pub const RATE: usize = 136;

/// Words absorbed before each permutation.
pub const RATE_WORDS: usize = RATE / 8;

/// Rounds of one permutation.
const ROUNDS: usize = 24;

/// Iota's constants: bit 2^j - 1 of constant r is bit j + 7r of the sequence of x^8 + x^6 + x^5 + x^4 + 1.
const ROUND_CONSTANTS: [u64; ROUNDS] = round_constants();

const fn round_constants() -> [u64; ROUNDS] {
    let mut constants = [0; ROUNDS];
    let mut state: u8 = 1;
    let mut round = 0;
    while round < ROUNDS {
        let mut j = 0;
        while j < 7 {
            constants[round] |= (state as u64 & 1) << ((1 << j) - 1);
            state = state << 1 ^ if state >> 7 == 1 { 0x71 } else { 0 };
            j += 1;
        }
        round += 1;
    }
    constants
}

/// Rho's rotation of word x of row y: triangular numbers along the walk (x, y) -> (y, 2x + 3y) from (1, 0).
const ROTATIONS: [[u32; 5]; 5] = rotations();

const fn rotations() -> [[u32; 5]; 5] {
    let mut rotations = [[0; 5]; 5];
    let (mut x, mut y) = (1, 0);
    let mut t = 1;
    while t <= 24 {
        rotations[y][x] = (t * (t + 1) / 2 % 64) as u32;
        (x, y) = (y, (2 * x + 3 * y) % 5);
        t += 1;
    }
    rotations
}

/// Five rows of five words.
type State<W> = [[W; 5]; 5];

/// Theta's parts: the columns' parities, and the same rotated by one.
struct Parities<W> {
    plain: [W; 5],
    rotated: [W; 5],
}

// No loops and no closures from here on: a loop over rotations is not unrolled in time for them to become
// constants, and a closure does not inherit the instruction set.

/// # Safety
/// As for all of [`Word64`]; likewise for the functions below.
#[inline(always)]
unsafe fn parity<W: Word64>(a: &State<W>, x: usize) -> W {
    // SAFETY: the caller's.
    unsafe { a[0][x].xor3(a[1][x], a[2][x]).xor3(a[3][x], a[4][x]) }
}

#[inline(always)]
unsafe fn parities<W: Word64>(a: &State<W>) -> Parities<W> {
    // SAFETY: the caller's.
    unsafe {
        let plain = [parity(a, 0), parity(a, 1), parity(a, 2), parity(a, 3), parity(a, 4)];
        let [p0, p1, p2, p3, p4] = plain;
        let rotated =
            [p0.rotate_left(1), p1.rotate_left(1), p2.rotate_left(1), p3.rotate_left(1), p4.rotate_left(1)];
        Parities { plain, rotated }
    }
}

/// Word x of row y after theta, rho and pi: it comes from column x + 3y of row x.
#[inline(always)]
unsafe fn word<W: Word64>(a: &State<W>, p: &Parities<W>, x: usize, y: usize) -> W {
    let column = (x + 3 * y) % 5;
    // SAFETY: the caller's.
    unsafe {
        a[x][column]
            .xor3(p.plain[(column + 4) % 5], p.rotated[(column + 1) % 5])
            .rotate_left(ROTATIONS[x][column])
    }
}

/// Row y after the whole round but iota.
#[inline(always)]
unsafe fn row<W: Word64>(a: &State<W>, p: &Parities<W>, y: usize) -> [W; 5] {
    // SAFETY: the caller's.
    unsafe {
        let [b0, b1, b2, b3, b4] =
            [word(a, p, 0, y), word(a, p, 1, y), word(a, p, 2, y), word(a, p, 3, y), word(a, p, 4, y)];
        [
            b0.xor_not_and(b1, b2),
            b1.xor_not_and(b2, b3),
            b2.xor_not_and(b3, b4),
            b3.xor_not_and(b4, b0),
            b4.xor_not_and(b0, b1),
        ]
    }
}

#[inline(always)]
unsafe fn round<W: Word64>(a: &State<W>, constant: u64) -> State<W> {
    // SAFETY: the caller's.
    unsafe {
        let p = &parities(a);
        let mut next = [row(a, p, 0), row(a, p, 1), row(a, p, 2), row(a, p, 3), row(a, p, 4)];
        next[0][0] = next[0][0].xor(W::splat(constant));
        next
    }
}

#[inline(always)]
unsafe fn permute<W: Word64>(mut a: State<W>) -> State<W> {
    for constant in ROUND_CONSTANTS {
        // SAFETY: the caller's.
        a = unsafe { round(&a, constant) };
    }
    a
}

/// The first four words of the permuted state: of the last round only one row is needed.
#[inline(always)]
unsafe fn digest<W: Word64>(mut a: State<W>) -> [W; 4] {
    let (last, rounds) = ROUND_CONSTANTS.split_last().expect("there are rounds");
    // SAFETY: the caller's.
    unsafe {
        // Apart from the others: where the caller knows words of the block, their work falls away.
        a = round(&a, rounds[0]);
        for &constant in &rounds[1..] {
            a = round(&a, constant);
        }
        let [r0, r1, r2, r3, _] = row(&a, &parities(&a), 0);
        [r0.xor(W::splat(*last)), r1, r2, r3]
    }
}

/// Bytes 12 to 32 of a digest as words most significant first, the last one in its upper half.
#[inline(always)]
unsafe fn last_twenty_bytes<W: Word64>(digest: [W; 4]) -> [W; 3] {
    // SAFETY: the caller's.
    unsafe {
        let [_, b, c, d] = digest;
        let (b, c, d) = (b.swap_bytes(), c.swap_bytes(), d.swap_bytes());
        [b.four_bytes_on(c), c.four_bytes_on(d), d.four_bytes_on(W::splat(0))]
    }
}

/// The Keccak-256 of a message of any length.
pub fn keccak256(message: &[u8]) -> [u8; 32] {
    let mut a: State<u64> = [[0; 5]; 5];
    let mut absorb = |block: &[u8; RATE]| {
        for (word, bytes) in a.as_flattened_mut().iter_mut().zip(block.as_chunks().0) {
            *word ^= u64::from_le_bytes(*bytes);
        }
        // SAFETY: `u64` needs no instruction set.
        a = unsafe { permute(a) };
    };
    let (blocks, rest) = message.as_chunks();
    blocks.iter().for_each(&mut absorb);
    absorb(&padded(rest));
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(8).zip(a.as_flattened()) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

/// The last block of a message that ends with `rest`.
///
/// # Panics
///
/// When `rest` fills a block or more: then it is not the last.
pub fn padded(rest: &[u8]) -> [u8; RATE] {
    assert!(rest.len() < RATE, "{} bytes leave no room for padding", rest.len());
    let mut block = [0; RATE];
    block[..rest.len()].copy_from_slice(rest);
    block[rest.len()] ^= 0x01;
    block[RATE - 1] ^= 0x80;
    block
}

/// A word of eight messages.
pub type Word8 = [u64; 8];

/// The state that has absorbed a block, given as words.
#[inline(always)]
unsafe fn absorbed<W: Word64>(block: &[Word8; RATE_WORDS], at: usize) -> State<W> {
    // SAFETY: the caller's.
    unsafe {
        let mut a = [[W::splat(0); 5]; 5];
        for (a, word) in a.as_flattened_mut().iter_mut().zip(block) {
            *a = W::load(word, at);
        }
        a
    }
}

/// Four words given most significant byte first, as Keccak reads them.
#[inline(always)]
unsafe fn big_endian<W: Word64>(words: &[Word8; 4], at: usize) -> [W; 4] {
    // SAFETY: the caller's.
    unsafe {
        [
            W::load(&words[0], at).swap_bytes(),
            W::load(&words[1], at).swap_bytes(),
            W::load(&words[2], at).swap_bytes(),
            W::load(&words[3], at).swap_bytes(),
        ]
    }
}

/// The digests of eight messages of one block each, padding included, in words as Keccak reads and gives them:
/// least significant byte first.
pub fn one_block(lanes: Lanes, block: &[Word8; RATE_WORDS]) -> [Word8; 4] {
    struct OneBlock;
    impl Lanewise for OneBlock {
        type Input = [Word8; RATE_WORDS];
        type Output = [Word8; 4];
        #[inline(always)]
        unsafe fn run<S: Set>(block: &[Word8; RATE_WORDS]) -> [Word8; 4] {
            let mut output = [[0; 8]; 4];
            for at in (0..8).step_by(S::Word64::N) {
                // SAFETY: the caller's.
                unsafe {
                    for (word, to) in digest(absorbed::<S::Word64>(block, at)).into_iter().zip(&mut output) {
                        word.store(to, at);
                    }
                }
            }
            output
        }
    }
    dispatch::<OneBlock>(lanes, block)
}

/// The last twenty bytes of the digests of eight messages of one block each, padding included, in words as
/// Keccak reads them. The result's words have the most significant byte first; the last holds four bytes, in
/// its upper half.
pub fn one_block_address(lanes: Lanes, block: &[Word8; RATE_WORDS]) -> [Word8; 3] {
    struct Address;
    impl Lanewise for Address {
        type Input = [Word8; RATE_WORDS];
        type Output = [Word8; 3];
        #[inline(always)]
        unsafe fn run<S: Set>(block: &[Word8; RATE_WORDS]) -> [Word8; 3] {
            let mut output = [[0; 8]; 3];
            for at in (0..8).step_by(S::Word64::N) {
                // SAFETY: the caller's.
                unsafe {
                    let bytes = last_twenty_bytes(digest(absorbed::<S::Word64>(block, at)));
                    for (word, to) in bytes.into_iter().zip(&mut output) {
                        word.store(to, at);
                    }
                }
            }
            output
        }
    }
    dispatch::<Address>(lanes, block)
}

/// The last twenty bytes of the digests of eight messages of 64 bytes, x then y: four words each, most
/// significant byte and word first. The result is as [`one_block_address`] gives it.
pub fn address_of_points(lanes: Lanes, x: &[Word8; 4], y: &[Word8; 4]) -> [Word8; 3] {
    struct Points;
    impl Lanewise for Points {
        type Input = [[Word8; 4]; 2];
        type Output = [Word8; 3];
        #[inline(always)]
        unsafe fn run<S: Set>([x, y]: &[[Word8; 4]; 2]) -> [Word8; 3] {
            let mut output = [[0; 8]; 3];
            for at in (0..8).step_by(S::Word64::N) {
                // SAFETY: the caller's.
                unsafe {
                    let [x0, x1, x2, x3] = big_endian::<S::Word64>(x, at);
                    let [y0, y1, y2, y3] = big_endian::<S::Word64>(y, at);
                    let zero = S::Word64::splat(0);
                    // The padding begins with byte 64 and ends with byte 135: words 8 and 16.
                    let (first, last) = (S::Word64::splat(0x01), S::Word64::splat(0x80 << 56));
                    let a = [
                        [x0, x1, x2, x3, y0],
                        [y1, y2, y3, first, zero],
                        [zero; 5],
                        [zero, last, zero, zero, zero],
                        [zero; 5],
                    ];
                    for (word, to) in last_twenty_bytes(digest(a)).into_iter().zip(&mut output) {
                        word.store(to, at);
                    }
                }
            }
            output
        }
    }
    dispatch::<Points>(lanes, &[*x, *y])
}
