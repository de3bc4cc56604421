//! Which instruction set the lanes use: decided once, at run time.

use std::fmt;

/// An implementation of the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Simd {
    /// One element at a time in 64-bit registers; runs everywhere.
    Portable,
    /// Eight elements at a time with AVX-512 IFMA.
    Avx512Ifma,
}

impl Simd {
    /// All implementations, the fastest first.
    pub const ALL: [Simd; 2] = [Simd::Avx512Ifma, Simd::Portable];

    /// The fastest one this machine has.
    pub fn detect() -> Simd {
        Simd::ALL.into_iter().find(|s| s.is_available()).unwrap_or(Simd::Portable)
    }

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            Simd::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Ifma => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512ifma")
                    && is_x86_feature_detected!("avx512vbmi")
                    && is_x86_feature_detected!("avx512vbmi2")
                    && is_x86_feature_detected!("avx512vpopcntdq")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Simd::Avx512Ifma => false,
        }
    }

    /// The name by which a person selects it.
    pub fn name(self) -> &'static str {
        match self {
            Simd::Portable => "portable",
            Simd::Avx512Ifma => "avx512ifma",
        }
    }
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
