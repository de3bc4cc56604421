//! Which instruction set the lanes use: decided once, at run time.

use std::fmt;

/// An implementation of the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Simd {
    /// One message at a time in ordinary registers; runs everywhere.
    Portable,
    /// Registers of 256 bits.
    Avx2,
    /// Registers of 512 bits, with rotations and three-input logic.
    Avx512,
}

impl Simd {
    /// All implementations, the fastest first.
    pub const ALL: [Simd; 3] = [Simd::Avx512, Simd::Avx2, Simd::Portable];

    /// The fastest one this machine has.
    pub fn detect() -> Simd {
        Simd::ALL.into_iter().find(|s| s.is_available()).unwrap_or(Simd::Portable)
    }

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            Simd::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw"),
            #[cfg(not(target_arch = "x86_64"))]
            Simd::Avx2 | Simd::Avx512 => false,
        }
    }

    /// The name by which a person selects it.
    pub fn name(self) -> &'static str {
        match self {
            Simd::Portable => "portable",
            Simd::Avx2 => "avx2",
            Simd::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An instruction set this machine was asked for and has: what the functions for lanes take, so that they need
/// not ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes(Simd);

impl Lanes {
    /// Lanes of this instruction set.
    ///
    /// # Panics
    ///
    /// When this machine does not have it.
    pub fn new(simd: Simd) -> Lanes {
        assert!(simd.is_available(), "this machine has no {simd}");
        Lanes(simd)
    }

    /// The fastest this machine has.
    pub fn detect() -> Lanes {
        Lanes::new(Simd::detect())
    }

    /// The instruction set.
    pub fn simd(self) -> Simd {
        self.0
    }
}
