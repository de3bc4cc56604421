//! Hashes for search, and ChaCha12: of one message, and of eight or sixteen messages side by side.
//!
//! Knows bytes only: no curve, no address, no pattern. Nothing here is secret and nothing runs in constant time
//! on purpose; the messages are public keys and what is made of them. (ChaCha has no branch and no table: its time depends on
//! nothing.)
//!
//! The form for lanes is structure of arrays: word i of eight messages is one `[u64; 8]`, or of sixteen one
//! `[u32; 16]`, so that a word of all of them is one register. [`Lanes`] says with which instruction set, decided once, at run time.

pub mod chacha;
pub mod hash160;
pub mod keccak;
mod lanes;
pub mod ripemd160;
pub mod sha256;

pub use warpsmith_simd::{Lanes, Simd};

/// The blocks of a message with the padding of SHA-256 and RIPEMD-160: a one bit, zeros, and the length in bits as the
/// last eight bytes, which `length` writes.
fn padded_blocks(message: &[u8], length: fn(u64) -> [u8; 8], mut each: impl FnMut(&[u8; 64])) {
    let (blocks, rest) = message.as_chunks();
    blocks.iter().for_each(&mut each);
    let mut block = [0; 64];
    block[..rest.len()].copy_from_slice(rest);
    block[rest.len()] = 0x80;
    if rest.len() >= 56 {
        each(&block);
        block = [0; 64];
    }
    block[56..].copy_from_slice(&length(8 * message.len() as u64));
    each(&block);
}

/// The instruction sets with code of their own, the fastest first.
pub const SETS: [Simd; 3] = [Simd::Avx512, Simd::Avx2, Simd::Portable];
