//! Buffers of the search for taproot outputs (`c/taproot.c`): those of the point walk, and two more.
//!
//! The table of the tweak holds `d * 2^(bits * i) * G` for every window i and `d = 1..=half`, x and y least significant word
//! first, at entry `i * half + d - 1`. The host writes the small multiples of each window and hands over giants; the entry
//! point [`FILL`] computes the rest. The sums are the device's own.

/// The entry point that fills the table: table, giants, [`small_bits`], how many giants.
pub const FILL: &str = "taproot_fill";

/// Words of an entry.
pub const ENTRY_WORDS: usize = 16;

/// Points whose keys wait for one inversion.
const POINTS: u32 = 32;

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
    8 * (9 * POINTS as usize + 1) * lanes as usize
}

/// # Panics
///
/// When a digit has fewer than 2 bits, or more than 28.
pub(crate) fn defines(bits: u32) -> Vec<(&'static str, u32)> {
    assert!((2..=28).contains(&bits), "no digits of {bits} bits");
    vec![("TWEAK_BITS", bits), ("TWEAK_WINDOWS", windows(bits)), ("TAPROOT_POINTS", POINTS)]
}
