//! Which instruction sets the processor's workers use, for the curve and the hashes together.

pub use warpsmith_simd::Simd;

/// Those a person may choose, the fastest first. Without products of 52 bits keys are walked one at a time, since products of a
/// field side by side take longer than the same in turn, and hashed four (AVX2) or eight (AVX-512) at a time.
pub(crate) const SETS: [Simd; 4] = Simd::ALL;

/// The fastest of them that this machine has.
pub(crate) fn detect() -> Simd {
    Simd::first_available(&SETS)
}

/// All of them that this machine has.
pub(crate) fn available() -> impl Iterator<Item = Simd> {
    Simd::available(&SETS)
}
