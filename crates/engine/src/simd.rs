//! Which instruction sets the processor's workers use, for the curve and the hashes together.

pub use warpsmith_simd::Simd;

/// Those a person may choose, the fastest first. With AVX2 keys are walked one at a time, since four products of a field side
/// by side take longer than four in turn, and hashed four at a time.
pub(crate) const SETS: [Simd; 3] = [Simd::Avx512Ifma, Simd::Avx2, Simd::Portable];

/// The fastest of them that this machine has.
pub(crate) fn detect() -> Simd {
    Simd::first_available(&SETS)
}

/// All of them that this machine has.
pub(crate) fn available() -> impl Iterator<Item = Simd> {
    Simd::available(&SETS)
}
