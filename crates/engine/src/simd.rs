//! Which instruction set the processor's workers use, for the curve and the hashes together.

use std::fmt;

use warpsmith_curve::platform::Simd as CurveSimd;
use warpsmith_hash::{Lanes, Simd as HashSimd};

/// An instruction set of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Simd {
    /// AVX-512 with IFMA: eight keys and eight hashes at a time.
    Avx512Ifma,
    /// AVX2: keys one at a time, since four products of a field side by side take longer than four in turn, and
    /// hashes four at a time.
    Avx2,
    /// Neither; runs everywhere.
    Portable,
}

impl Simd {
    /// All of them, the fastest first.
    pub const ALL: [Simd; 3] = [Simd::Avx512Ifma, Simd::Avx2, Simd::Portable];

    /// The fastest this machine has.
    pub fn detect() -> Simd {
        Simd::ALL.into_iter().find(|s| s.is_available()).unwrap_or(Simd::Portable)
    }

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        self.curve().is_available() && self.hash().is_available()
    }

    /// The name by which a person selects it.
    pub fn name(self) -> &'static str {
        match self {
            Simd::Avx512Ifma => "avx512ifma",
            Simd::Avx2 => "avx2",
            Simd::Portable => "portable",
        }
    }

    /// What the walk uses.
    pub(crate) fn curve(self) -> CurveSimd {
        match self {
            Simd::Avx512Ifma => CurveSimd::Avx512Ifma,
            Simd::Avx2 | Simd::Portable => CurveSimd::Portable,
        }
    }

    fn hash(self) -> HashSimd {
        match self {
            Simd::Avx512Ifma => HashSimd::Avx512,
            Simd::Avx2 => HashSimd::Avx2,
            Simd::Portable => HashSimd::Portable,
        }
    }

    /// What the hashes use. The machine must have it.
    pub(crate) fn hash_lanes(self) -> Lanes {
        Lanes::new(self.hash())
    }
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
