//! What the tests of all hashes share.
#![allow(dead_code, reason = "each test file takes what it needs")]

use warpsmith_hash::{Lanes, SETS};

/// All the lanes this machine has; says which it has not.
pub fn all_lanes() -> impl Iterator<Item = Lanes> {
    SETS.into_iter().filter_map(|simd| {
        if !simd.is_available() {
            println!("SKIPPED: this machine has no {simd}");
        }
        simd.is_available().then(|| Lanes::new(simd))
    })
}

/// Bytes that differ from lane to lane and from seed to seed.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        })
        .collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The twenty bytes of one lane; the lower half of the last word must be empty.
pub fn twenty_bytes(words: &[[u64; 8]; 3], lane: usize) -> [u8; 20] {
    let all: Vec<u8> = words.iter().flat_map(|w| w[lane].to_be_bytes()).collect();
    assert_eq!(all[20..], [0; 4]);
    all[..20].try_into().expect("twenty bytes")
}
