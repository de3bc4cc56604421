//! SHA-256 (FIPS 180-4): of one message, and of sixteen messages of one block side by side.
//!
//! Words are numbers here: a block's bytes are read most significant first by whoever makes one.

use crate::keccak::Word8;
use crate::lanes::{Lanewise, Set, Word32, dispatch, sixteen};
use warpsmith_simd::Lanes;

/// A word of sixteen messages.
pub type Word16 = [u32; 16];

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
const ROUND_CONSTANTS: [[u32; 16]; 4] = {
    let primes = primes();
    let mut constants = [[0; 16]; 4];
    let mut i = 0;
    while i < 64 {
        constants[i / 16][i % 16] = root(primes[i] << 96, 3);
        i += 1;
    }
    constants
};

/// The same of the square roots of the first eight.
const START: [u32; 8] = {
    let primes = primes();
    let mut start = [0; 8];
    let mut i = 0;
    while i < 8 {
        start[i] = root(primes[i] << 64, 2);
        i += 1;
    }
    start
};

const fn primes() -> [u128; 64] {
    let mut primes = [0; 64];
    let (mut found, mut candidate) = (0, 2);
    while found < 64 {
        let mut i = 0;
        while i < found && candidate % primes[i] != 0 {
            i += 1;
        }
        if i == found {
            primes[found] = candidate;
            found += 1;
        }
        candidate += 1;
    }
    primes
}

/// The lowest 32 bits of the integer root: of p * 2^(32 * degree) those are the first of the fraction. The root of a
/// number below 2^105 has at most 37 bits.
const fn root(of: u128, degree: u32) -> u32 {
    let mut root: u128 = 0;
    let mut bit = 1u128 << 40;
    while bit > 0 {
        if (root | bit).pow(degree) <= of {
            root |= bit;
        }
        bit >>= 1;
    }
    root as u32
}

/// `x` rotated by two numbers and rotated or shifted by a third, added without carry.
///
/// # Safety
/// As for all of [`Word32`]; likewise for the functions below.
#[inline(always)]
unsafe fn sigma<W: Word32>(x: W, right: [u32; 3], shifted: bool) -> W {
    // SAFETY: the caller's.
    unsafe {
        let last = if shifted { x.shift_right(right[2]) } else { x.rotate_left(32 - right[2]) };
        x.rotate_left(32 - right[0]).xor3(x.rotate_left(32 - right[1]), last)
    }
}

/// The state after a block.
#[inline(always)]
pub(crate) unsafe fn compress<W: Word32>(start: [W; 8], mut w: [W; 16]) -> [W; 8] {
    // SAFETY: the caller's.
    unsafe {
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = start;
        for (part, constants) in ROUND_CONSTANTS.iter().enumerate() {
            sixteen!(I, {
                if part > 0 {
                    // Sixteen words at a time: w[i] is w[i - 16], of which the next is made.
                    let s0 = sigma(w[(I + 1) % 16], [7, 18, 3], true);
                    let s1 = sigma(w[(I + 14) % 16], [17, 19, 10], true);
                    w[I] = w[I].add(s0).add(w[(I + 9) % 16]).add(s1);
                }
                let input = w[I].add(W::splat(constants[I]));
                let t = h.add(input).add(e.choose(f, g)).add(sigma(e, [6, 11, 25], false));
                let sum = sigma(a, [2, 13, 22], false).add(a.majority(b, c));
                (h, g, f, e, d, c, b, a) = (g, f, e, d.add(t), c, b, a, t.add(sum));
            });
        }
        let [a0, b0, c0, d0, e0, f0, g0, h0] = start;
        [a0.add(a), b0.add(b), c0.add(c), d0.add(d), e0.add(e), f0.add(f), g0.add(g), h0.add(h)]
    }
}

/// The state before the first block.
#[inline(always)]
pub(crate) unsafe fn start<W: Word32>() -> [W; 8] {
    let [a, b, c, d, e, f, g, h] = START;
    // SAFETY: the caller's.
    unsafe {
        let (a, b, c, d) = (W::splat(a), W::splat(b), W::splat(c), W::splat(d));
        [a, b, c, d, W::splat(e), W::splat(f), W::splat(g), W::splat(h)]
    }
}

/// The SHA-256 of a message of any length.
pub fn sha256(message: &[u8]) -> [u8; 32] {
    let mut state = START;
    crate::padded_blocks(message, u64::to_be_bytes, |block| {
        let (words, _) = block.as_chunks();
        let words = std::array::from_fn(|i| u32::from_be_bytes(words[i]));
        // SAFETY: `u32` needs no instruction set.
        state = unsafe { compress(state, words) };
    });
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

/// The digests of sixteen messages of one block each, padding included.
pub fn one_block(lanes: Lanes, block: &[Word16; 16]) -> [Word16; 8] {
    struct OneBlock;
    impl Lanewise for OneBlock {
        type Input = [Word16; 16];
        type Output = [Word16; 8];
        #[inline(always)]
        unsafe fn run<S: Set>(block: &[Word16; 16]) -> [Word16; 8] {
            let mut output = [[0; 16]; 8];
            for at in (0..16).step_by(S::Word32::N) {
                // SAFETY: the caller's.
                unsafe {
                    let mut words = [S::Word32::splat(0); 16];
                    sixteen!(I, {
                        words[I] = S::Word32::load(&block[I], at);
                    });
                    for (word, to) in compress(start::<S::Word32>(), words).into_iter().zip(&mut output) {
                        word.store(to, at);
                    }
                }
            }
            output
        }
    }
    dispatch::<OneBlock>(lanes, block)
}

/// Tagged hashes (BIP-340): SHA-256 of the tag's digest, the same again, and a message. Those 64 bytes are one block and
/// hashed once.
#[derive(Clone, Debug)]
pub struct Tagged {
    state: [u32; 8],
}

impl Tagged {
    /// Hashes with this tag.
    pub fn new(tag: &[u8]) -> Tagged {
        let digest = sha256(tag);
        let (words, _) = digest.as_chunks();
        let words = std::array::from_fn(|i| u32::from_be_bytes(words[i % 8]));
        // SAFETY: `u32` needs no instruction set.
        Tagged { state: unsafe { compress(START, words) } }
    }

    /// The digests of eight messages of 32 bytes and eight more. Words have the most significant byte first.
    pub fn of_32_bytes(&self, lanes: Lanes, messages: [&[Word8; 4]; 2]) -> [[Word8; 4]; 2] {
        struct OneMore;
        impl Lanewise for OneMore {
            type Input = ([u32; 8], [Word16; 8]);
            type Output = [Word16; 8];
            #[inline(always)]
            unsafe fn run<S: Set>((state, message): &Self::Input) -> [Word16; 8] {
                let mut output = [[0; 16]; 8];
                for at in (0..16).step_by(S::Word32::N) {
                    // SAFETY: the caller's.
                    unsafe {
                        let zero = S::Word32::splat(0);
                        let (mut start, mut block) = ([zero; 8], [zero; 16]);
                        for i in 0..8 {
                            start[i] = S::Word32::splat(state[i]);
                            block[i] = S::Word32::load(&message[i], at);
                        }
                        // 64 bytes of tag and 32 of message.
                        block[8] = S::Word32::splat(0x80 << 24);
                        block[15] = S::Word32::splat(8 * 96);
                        for (word, to) in compress(start, block).into_iter().zip(&mut output) {
                            word.store(to, at);
                        }
                    }
                }
                output
            }
        }
        let message = halves(messages[0], messages[1]);
        let digests = dispatch::<OneMore>(lanes, &(self.state, message));
        let mut out = [[[0; 8]; 4]; 2];
        for (half, out) in out.iter_mut().enumerate() {
            for (i, word) in out.iter_mut().enumerate() {
                for lane in 0..8 {
                    let part = |i: usize| u64::from(digests[i][lane + 8 * half]);
                    word[lane] = part(2 * i) << 32 | part(2 * i + 1);
                }
            }
        }
        out
    }
}

/// Word i of eight and of eight more, in halves: 32-bit words of sixteen messages, most significant first.
#[inline(always)]
pub(crate) fn halves<const N: usize>(first: &[Word8], second: &[Word8]) -> [Word16; N] {
    let mut words = [[0; 16]; N];
    for (i, word) in words.iter_mut().enumerate() {
        let shift = 32 * (1 - i % 2);
        for lane in 0..8 {
            word[lane] = (first[i / 2][lane] >> shift) as u32;
            word[lane + 8] = (second[i / 2][lane] >> shift) as u32;
        }
    }
    words
}
