//! secp256k1 for search on the CPU: field, scalars, points, and the walk that tests many keys for a few field
//! multiplications each.
//!
//! Knows numbers only: no bytes of any chain, no patterns, no devices. Variable time throughout: it is given
//! public points and public offsets, never a private key (those stay with libsecp256k1 in the engine).

pub mod field;
pub mod group;
pub mod multiply;
#[cfg(test)]
mod random;
pub mod scalar;
pub mod walk;

pub use field::Fe;
pub use group::Affine;
pub use scalar::Scalar;
use warpsmith_simd::Simd;

/// The instruction sets with code of their own, the fastest first. The others walk as the portable one.
pub const SETS: [Simd; 3] = [Simd::Avx512Ifma, Simd::AvxIfma, Simd::Portable];
