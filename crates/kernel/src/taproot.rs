//! Buffers of programs that make taproot outputs (`c/digest/taproot.h`): two more than others have.
//!
//! The table of the tweak holds `d * 2^(bits * i) * G` for every window i and `d = 1..=half`, x and y least significant word
//! first, at entry `i * half + d - 1`. The host writes the small multiples of each window and hands over giants; the entry
//! point [`FILL`] computes the rest. The sums are the device's own.

use crate::{Fragment, fragment};

/// The entry point that fills the table: table, giants, [`small_bits`], how many giants.
pub const FILL: &str = "taproot_fill";

/// Words of an entry.
pub const ENTRY_WORDS: usize = 16;

/// Keys of a lane that wait for one inversion.
const KEYS: u32 = 96;

/// The text of both programs that make outputs.
pub(crate) const FRAGMENTS: [Fragment; 4] = [
    fragment!("hash/sha256.h"),
    fragment!("tweak.h", "digest/tweak.h"),
    fragment!("taproot.h", "digest/taproot.h"),
    fragment!("taproot_fill.c", "entry/taproot_fill.c"),
];

/// Digits of a tweak: the top one has room for a carry.
pub const fn windows(bits: u32) -> u32 {
    256 / bits + 1
}

/// The largest digit.
pub const fn half(bits: u32) -> u32 {
    1 << (bits - 1)
}

/// Entries of the table.
pub const fn entries(bits: u32) -> u64 {
    windows(bits) as u64 * half(bits) as u64
}

/// Small multiples are those below 2 to this, giants the multiples of that up to [`half`].
pub const fn small_bits(bits: u32) -> u32 {
    (bits - 1) / 2
}

/// Giants of a window.
pub const fn giants(bits: u32) -> u32 {
    half(bits) >> small_bits(bits)
}

/// Words of the sums of the keys that wait.
pub const fn sums_words(lanes: u32) -> usize {
    8 * (3 * KEYS as usize + 1) * lanes as usize
}

/// # Panics
///
/// When a digit has fewer than 2 bits, or more than 28.
pub(crate) fn defines(bits: u32) -> Vec<(&'static str, u32)> {
    assert!((2..=28).contains(&bits), "no digits of {bits} bits");
    vec![("TWEAK_BITS", bits), ("TWEAK_WINDOWS", windows(bits)), ("TAPROOT_KEYS", KEYS)]
}
