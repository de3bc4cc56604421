//! Which instruction sets the processor's workers use, for the curve and the hashes together.

pub use warpsmith_simd::Simd;

/// Those a person may choose, the fastest first. With products of 52 bits keys are walked eight (AVX-512) or four (AVX-IFMA) at a
/// time; without them one, since products of a field side by side take longer than the same in turn. They are hashed four (AVX2
/// and AVX-IFMA) or eight (AVX-512) at a time.
pub(crate) const SETS: [Simd; 5] = Simd::ALL;

/// The fastest of them that this machine has.
pub(crate) fn detect() -> Simd {
    Simd::first_available(&SETS)
}

/// All of them that this machine has.
pub(crate) fn available() -> impl Iterator<Item = Simd> {
    Simd::available(&SETS)
}
