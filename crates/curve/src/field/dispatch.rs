//! A computation with the lanes of an instruction set, compiled for it as one piece.

use core::fmt;

use warpsmith_simd::{Ifma256, Simd, compile_for};

#[cfg(all(target_arch = "x86_64", feature = "evex"))]
use super::ifma::Evex;
#[cfg(target_arch = "x86_64")]
use super::ifma::{Fe4, Fe8, Vex};
use super::lanes::Lanes as _;
use super::leading::Leading;
use crate::Fe;

/// Where lanes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// Eight, in those of 512 bits.
    Zmm,
    /// Four, in those of 256 bits, with products in this encoding.
    Ymm(Ifma256),
    /// One, in ordinary ones.
    General,
}

impl Registers {
    /// All there are.
    pub const ALL: [Registers; 4] =
        [Registers::Zmm, Registers::Ymm(Ifma256::Vex), Registers::Ymm(Ifma256::Evex), Registers::General];

    /// Those of an instruction set on this machine.
    pub fn of(simd: Simd) -> Registers {
        match simd {
            Simd::Avx512Ifma => Registers::Zmm,
            Simd::AvxIfma => Registers::Ymm(Ifma256::detect().unwrap_or(Ifma256::Vex)),
            Simd::Avx512 | Simd::Avx2 | Simd::Portable => Registers::General,
        }
    }

    /// Whether this machine has them.
    pub fn is_available(self) -> bool {
        match self {
            Registers::Zmm => Simd::Avx512Ifma.is_available(),
            Registers::Ymm(encoding) => encoding.is_available(),
            Registers::General => true,
        }
    }
}

impl fmt::Display for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Registers::Zmm => "AVX-512 IFMA",
            Registers::Ymm(Ifma256::Vex) => "AVX-IFMA",
            Registers::Ymm(Ifma256::Evex) => "AVX-512 IFMA in 256 bits",
            Registers::General => "ordinary registers",
        })
    }
}

/// Number of elements that an instruction set has side by side.
pub fn lane_count(simd: Simd) -> usize {
    match simd {
        #[cfg(target_arch = "x86_64")]
        Simd::Avx512Ifma => Fe8::N,
        #[cfg(target_arch = "x86_64")]
        Simd::AvxIfma => Fe4::<Vex>::N,
        _ => Fe::N,
    }
}

/// A computation written for any lanes.
pub trait Job {
    /// What comes of it.
    type Output;

    /// Computes it with the lanes `L`; to be `inline(always)`, so that it becomes part of code for their instruction set.
    ///
    /// # Safety
    /// As the module `lanes` has it.
    unsafe fn run<L: Leading>(self) -> Self::Output;
}

compile_for! { avx512ifma
    unsafe fn eight<J: Job>(job: J) -> J::Output {
        // SAFETY: the caller checked the instruction set, here and below.
        unsafe { job.run::<Fe8>() }
    }
}

compile_for! { avxifma
    unsafe fn four<J: Job>(job: J) -> J::Output {
        // SAFETY: as above.
        unsafe { job.run::<Fe4<Vex>>() }
    }
}

#[cfg(feature = "evex")]
compile_for! { evexifma
    unsafe fn four_evex<J: Job>(job: J) -> J::Output {
        // SAFETY: as above.
        unsafe { job.run::<Fe4<Evex>>() }
    }
}

/// Computes with lanes in these registers.
///
/// # Panics
///
/// When this machine lacks them.
pub fn run<J: Job>(registers: Registers, job: J) -> J::Output {
    assert!(registers.is_available(), "this machine has no {registers}");
    // SAFETY: just checked; the portable lane needs nothing.
    unsafe {
        match registers {
            #[cfg(target_arch = "x86_64")]
            Registers::Zmm => eight(job),
            #[cfg(target_arch = "x86_64")]
            Registers::Ymm(Ifma256::Vex) => four(job),
            #[cfg(all(target_arch = "x86_64", feature = "evex"))]
            Registers::Ymm(Ifma256::Evex) => four_evex(job),
            _ => job.run::<Fe>(),
        }
    }
}

/// Runs a test with every kind of lanes this machine has, and says aloud which it lacks.
#[doc(hidden)]
pub fn test_all<J: Job<Output = ()>>(job: impl Fn() -> J) {
    for registers in Registers::ALL {
        if registers.is_available() {
            run(registers, job());
        } else {
            eprintln!("SKIPPED: this machine has no {registers}");
        }
    }
}
