//! A register of 64-bit numbers: what elements in five limbs need of one, whatever its width.
//!
//! For the rule of safety see `lanes`.

use crate::Fe;

/// Some numbers of 64 bits side by side, one a lane: plain integers, lane 0 first in memory.
#[expect(clippy::missing_safety_doc, reason = "one rule for all, in the head of the module `lanes`")]
pub trait Register: Copy {
    /// Numbers side by side.
    const N: usize;

    /// How much every limb of a difference borrows of the next one beforehand: nothing where [`above_52`](Register::above_52)
    /// is signed, else so much that no limb gets negative.
    const BORROW: i64;

    /// Some of the lanes.
    type Mask: Copy;

    /// The same number in all lanes.
    unsafe fn splat(number: i64) -> Self;
    /// The sum.
    unsafe fn add(self, other: Self) -> Self;
    /// The difference.
    unsafe fn sub(self, other: Self) -> Self;
    /// The bits of both.
    unsafe fn and(self, other: Self) -> Self;
    /// The bits of either.
    unsafe fn or(self, other: Self) -> Self;
    /// The bits of one.
    unsafe fn xor(self, other: Self) -> Self;
    /// Moved up by a number of bits known when compiled.
    unsafe fn up(self, bits: u32) -> Self;
    /// Moved down by a number of bits known when compiled, zeros above.
    unsafe fn down(self, bits: u32) -> Self;
    /// What lies above 52 bits; of negative numbers only where nothing is borrowed.
    unsafe fn above_52(self) -> Self;
    /// Adds the low 52 bits of the product of the low 52 bits.
    unsafe fn add_low(self, a: Self, b: Self) -> Self;
    /// Adds the high 52 bits of it.
    unsafe fn add_high(self, a: Self, b: Self) -> Self;

    /// The lanes whose bits are set in a number.
    unsafe fn lanes(bits: u32) -> Self::Mask;
    /// The lanes in which a bit, known when compiled, is set.
    unsafe fn with_bit(self, bit: u32) -> Self::Mask;
    /// `yes` in these lanes, `no` in the others.
    unsafe fn select(lanes: Self::Mask, yes: Self, no: Self) -> Self;
    /// Bit l is set where lane l is zero.
    unsafe fn zeros(self) -> u32;
    /// Bit l is set where lane l has an odd number of bits.
    unsafe fn odd(self) -> u32;

    /// N numbers.
    unsafe fn load(from: *const u64) -> Self;
    /// Writes N numbers.
    unsafe fn store(self, to: *mut u64);
    /// The four limbs of the first N elements, limb by limb.
    unsafe fn gather(from: &[&Fe; 8]) -> [Self; 4];

    /// A number in all lanes, of which the compiler does not know what it is. A loop that runs out of registers would read
    /// numbers it knows from memory at each use before anything else; this one it keeps if it is used often.
    unsafe fn kept(number: i64) -> Self;
    /// See [`Lanes::now`](crate::field::lanes::Lanes::now).
    unsafe fn formed(self) -> Self;
}
