//! RIPEMD-160 (Dobbertin, Bosselaers, Preneel 1996): of one message, and of sixteen messages of one block side by
//! side.
//!
//! Words are numbers here: a block's bytes are read least significant first by whoever makes one.

use crate::lanes::{Lanewise, Set, Word32, dispatch, sixteen};
use crate::sha256::Word16;
use warpsmith_simd::Lanes;

const START: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// What one of the two lines adds, reads and rotates by in each of its rounds.
struct Line {
    constants: [u32; 5],
    words: [[usize; 16]; 5],
    rotations: [[u32; 16]; 5],
}

const LEFT: Line = Line {
    constants: [0, 0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc, 0xa953_fd4e],
    words: [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [7, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8],
        [3, 10, 14, 4, 9, 15, 8, 1, 2, 7, 0, 6, 13, 11, 5, 12],
        [1, 9, 11, 10, 0, 8, 12, 4, 13, 3, 7, 15, 14, 5, 6, 2],
        [4, 0, 5, 9, 7, 12, 2, 10, 14, 1, 3, 8, 11, 6, 15, 13],
    ],
    rotations: [
        [11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8],
        [7, 6, 8, 13, 11, 9, 7, 15, 7, 12, 15, 9, 11, 7, 13, 12],
        [11, 13, 6, 7, 14, 9, 13, 15, 14, 8, 13, 6, 5, 12, 7, 5],
        [11, 12, 14, 15, 14, 15, 9, 8, 9, 14, 5, 6, 8, 6, 5, 12],
        [9, 15, 5, 11, 6, 8, 13, 12, 5, 12, 13, 14, 11, 8, 5, 6],
    ],
};

const RIGHT: Line = Line {
    constants: [0x50a2_8be6, 0x5c4d_d124, 0x6d70_3ef3, 0x7a6d_76e9, 0],
    words: [
        [5, 14, 7, 0, 9, 2, 11, 4, 13, 6, 15, 8, 1, 10, 3, 12],
        [6, 11, 3, 7, 0, 13, 5, 10, 14, 15, 8, 12, 4, 9, 1, 2],
        [15, 5, 1, 3, 7, 14, 6, 9, 11, 8, 12, 2, 10, 0, 4, 13],
        [8, 6, 4, 1, 3, 11, 15, 0, 5, 12, 2, 13, 9, 7, 10, 14],
        [12, 15, 10, 4, 1, 5, 8, 7, 6, 2, 13, 14, 0, 3, 9, 11],
    ],
    rotations: [
        [8, 9, 9, 11, 13, 15, 15, 5, 7, 7, 8, 11, 14, 14, 12, 6],
        [9, 13, 15, 7, 12, 8, 9, 11, 7, 7, 12, 7, 6, 15, 13, 11],
        [9, 7, 15, 11, 8, 6, 6, 14, 12, 13, 5, 14, 13, 13, 7, 5],
        [15, 5, 8, 11, 14, 14, 6, 14, 6, 9, 12, 9, 12, 5, 15, 8],
        [8, 5, 12, 9, 12, 5, 14, 6, 8, 13, 6, 5, 15, 13, 11, 11],
    ],
};

/// The function of a round of the left line; the right line has them in reverse order.
///
/// # Safety
/// As for all of [`Word32`]; likewise for the functions below.
#[inline(always)]
unsafe fn mix<W: Word32>(round: usize, b: W, c: W, d: W) -> W {
    // SAFETY: the caller's.
    unsafe {
        match round {
            0 => b.xor3(c, d),
            1 => b.choose(c, d),
            2 => b.or_not_xor(c, d),
            3 => d.choose(b, c),
            _ => b.xor_or_not(c, d),
        }
    }
}

/// One step of a line. `function` is the number of its function.
#[inline(always)]
unsafe fn step<W: Word32>(
    [a, b, c, d, e]: [W; 5],
    function: usize,
    word: W,
    constant: u32,
    by: u32,
) -> [W; 5] {
    // SAFETY: the caller's.
    unsafe {
        let sum = a.add(mix(function, b, c, d)).add(word.add(W::splat(constant)));
        [e, sum.rotate_left(by).add(e), b, c.rotate_left(10), d]
    }
}

/// The state after a block.
#[inline(always)]
pub(crate) unsafe fn compress<W: Word32>(start: [W; 5], w: &[W; 16]) -> [W; 5] {
    let (mut left, mut right) = (start, start);
    // Both lines at once, each hides the other's latency.
    macro_rules! round {
        ($round:literal) => {
            sixteen!(I, {
                const L: (usize, u32) = (LEFT.words[$round][I], LEFT.rotations[$round][I]);
                const R: (usize, u32) = (RIGHT.words[$round][I], RIGHT.rotations[$round][I]);
                // SAFETY: the caller's.
                unsafe {
                    left = step(left, $round, w[L.0], LEFT.constants[$round], L.1);
                    right = step(right, 4 - $round, w[R.0], RIGHT.constants[$round], R.1);
                }
            })
        };
    }
    round!(0);
    round!(1);
    round!(2);
    round!(3);
    round!(4);
    let [h0, h1, h2, h3, h4] = start;
    let ([al, bl, cl, dl, el], [ar, br, cr, dr, er]) = (left, right);
    // SAFETY: the caller's.
    unsafe {
        [h1.add(cl).add(dr), h2.add(dl).add(er), h3.add(el).add(ar), h4.add(al).add(br), h0.add(bl).add(cr)]
    }
}

/// The state before the first block.
#[inline(always)]
pub(crate) unsafe fn start<W: Word32>() -> [W; 5] {
    let [a, b, c, d, e] = START;
    // SAFETY: the caller's.
    unsafe { [W::splat(a), W::splat(b), W::splat(c), W::splat(d), W::splat(e)] }
}

/// The RIPEMD-160 of a message of any length.
pub fn ripemd160(message: &[u8]) -> [u8; 20] {
    let mut state = START;
    crate::padded_blocks(message, u64::to_le_bytes, |block| {
        let (words, _) = block.as_chunks();
        let words = std::array::from_fn(|i| u32::from_le_bytes(words[i]));
        // SAFETY: `u32` needs no instruction set.
        state = unsafe { compress(state, &words) };
    });
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

/// The digests of sixteen messages of one block each, padding included.
pub fn one_block(lanes: Lanes, block: &[Word16; 16]) -> [Word16; 5] {
    struct OneBlock;
    impl Lanewise for OneBlock {
        type Input = [Word16; 16];
        type Output = [Word16; 5];
        #[inline(always)]
        unsafe fn run<S: Set>(block: &[Word16; 16]) -> [Word16; 5] {
            let mut output = [[0; 16]; 5];
            for at in (0..16).step_by(S::Word32::N) {
                // SAFETY: the caller's.
                unsafe {
                    let mut words = [S::Word32::splat(0); 16];
                    sixteen!(I, {
                        words[I] = S::Word32::load(&block[I], at);
                    });
                    for (word, to) in compress(start::<S::Word32>(), &words).into_iter().zip(&mut output) {
                        word.store(to, at);
                    }
                }
            }
            output
        }
    }
    dispatch::<OneBlock>(lanes, block)
}
