//! Instruction sets: what they are called, which of them this machine has, and a proof that it has one.
//!
//! [`Simd`] lists them, [`Simd::is_available`] asks the machine, [`Lanes`] is the proof that code for an instruction set takes,
//! and [`compile_for!`] compiles a function for one. The features of each stand once, in [`with_features!`]: what is compiled
//! for a set and what is asked of the machine cannot differ.

use std::fmt;

/// An instruction set. Each has all that those below it have, but that AVX-512 of some processors comes without products of
/// 52 bits.
///
/// ```
/// use warpsmith_simd::Simd;
///
/// assert!(Simd::Portable.is_available());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Simd {
    /// AVX-512 with products of 52 bits: eight elements of a field and eight hashes at a time.
    Avx512Ifma,
    /// Registers of 256 bits with products of 52 bits ([`Ifma256`]): four elements of a field and four hashes at a time.
    AvxIfma,
    /// AVX-512 in words of 32 and 64 bits, with rotations and three-input logic: eight hashes at a time. Products of a field
    /// side by side take longer than one after the other.
    Avx512,
    /// Registers of 256 bits: four hashes at a time.
    Avx2,
    /// Ordinary registers; runs everywhere.
    Portable,
}

impl Simd {
    /// All of them, the fastest first.
    pub const ALL: [Simd; 5] = [Simd::Avx512Ifma, Simd::AvxIfma, Simd::Avx512, Simd::Avx2, Simd::Portable];

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            Simd::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => with_features!(avx2 are_detected),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => with_features!(avx512 are_detected),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512Ifma => with_features!(avx512ifma are_detected),
            Simd::AvxIfma => Ifma256::detect().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Simd::Avx2 | Simd::Avx512 | Simd::Avx512Ifma => false,
        }
    }

    /// Those of a list that this machine has, in the order of the list.
    pub fn available(among: &[Simd]) -> impl Iterator<Item = Simd> + use<'_> {
        among.iter().copied().filter(|simd| simd.is_available())
    }

    /// The first of a list that this machine has; portable if it has none.
    pub fn first_available(among: &[Simd]) -> Simd {
        Simd::available(among).next().unwrap_or(Simd::Portable)
    }

    /// The name by which a person selects it.
    pub fn name(self) -> &'static str {
        match self {
            Simd::Avx512Ifma => "avx512ifma",
            Simd::AvxIfma => "avxifma",
            Simd::Avx512 => "avx512",
            Simd::Avx2 => "avx2",
            Simd::Portable => "portable",
        }
    }
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a processor encodes the products of [`Simd::AvxIfma`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ifma256 {
    /// As AVX-IFMA has them, which processors without AVX-512 may have.
    Vex,
    /// As AVX-512 IFMA and VL have them. Only with the feature `evex`: it stands in for the other one in tests.
    Evex,
}

impl Ifma256 {
    /// Both, first the one that is used where a processor has both.
    pub const ALL: [Ifma256; 2] = [Ifma256::Vex, Ifma256::Evex];

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Ifma256::Vex => with_features!(avxifma are_detected),
            #[cfg(all(target_arch = "x86_64", feature = "evex"))]
            Ifma256::Evex => {
                with_features!(evexifma are_detected) && are_detected!(["avx512ifma" "avx512vl"])
            }
            #[cfg(not(all(target_arch = "x86_64", feature = "evex")))]
            _ => false,
        }
    }

    /// The one that is used, if there is one.
    pub fn detect() -> Option<Ifma256> {
        Ifma256::ALL.into_iter().find(|encoding| encoding.is_available())
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
        Lanes(Simd::first_available(&Simd::ALL))
    }

    /// The instruction set.
    pub fn simd(self) -> Simd {
        self.0
    }
}

/// Hands the features of an instruction set to a macro of this crate: the one place where they stand.
#[doc(hidden)]
#[macro_export]
macro_rules! with_features {
    (avx2 $then:ident $($rest:tt)*) => {
        $crate::$then! { ["avx2"] $($rest)* }
    };
    (avxifma $then:ident $($rest:tt)*) => {
        $crate::$then! { ["avx2" "avxifma" "bmi1" "bmi2" "popcnt"] $($rest)* }
    };
    // The products themselves are left out, see `compile_for`.
    (evexifma $then:ident $($rest:tt)*) => {
        $crate::$then! { ["avx2" "bmi1" "bmi2" "popcnt"] $($rest)* }
    };
    (avx512 $then:ident $($rest:tt)*) => {
        $crate::$then! { ["avx512f" "avx512bw" "avx512dq" "avx512vl"] $($rest)* }
    };
    (avx512ifma $then:ident $($rest:tt)*) => {
        $crate::$then! {
            [
                "avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512ifma" "avx512vbmi" "avx512vbmi2" "avx512vpopcntdq"
                "bmi1" "bmi2" "popcnt"
            ]
            $($rest)*
        }
    };
}

/// Whether the machine has all of these features.
#[doc(hidden)]
#[macro_export]
macro_rules! are_detected {
    ([$($feature:tt)*]) => { true $(&& std::arch::is_x86_feature_detected!($feature))* };
}

/// The function with these features.
#[doc(hidden)]
#[macro_export]
macro_rules! function_with {
    ([$($feature:tt)*] $function:item) => {
        #[cfg(target_arch = "x86_64")]
        $(#[target_feature(enable = $feature)])*
        $function
    };
}

/// Compiles a function for an instruction set (`avx2`, `avx512`, `avx512ifma`, and `avxifma` and `evexifma` for the encodings
/// of [`Ifma256`]), where processors have it; elsewhere it is left out. Whoever calls it must have asked for the set.
///
/// With `evexifma` the compiler may not use AVX-512, so that the function is what it is in the other encoding; what it has of
/// products is written in assembly.
///
/// ```
/// # #[cfg(target_arch = "x86_64")] {
/// use warpsmith_simd::{Simd, compile_for};
///
/// compile_for! { avx2
///     unsafe fn sum(of: &[u32]) -> u32 {
///         of.iter().sum()
///     }
/// }
/// if Simd::Avx2.is_available() {
///     // SAFETY: just asked.
///     assert_eq!(unsafe { sum(&[1, 2, 3]) }, 6);
/// }
/// # }
/// ```
#[macro_export]
macro_rules! compile_for {
    ($set:ident $function:item) => {
        $crate::with_features! { $set function_with $function }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_all_that_a_set_it_has_contains() {
        for (set, contained) in [
            (Simd::Avx512Ifma, &[Simd::AvxIfma, Simd::Avx512][..]),
            (Simd::AvxIfma, &[Simd::Avx2]),
            (Simd::Avx512, &[Simd::Avx2]),
            (Simd::Avx2, &[Simd::Portable]),
        ] {
            assert!(!set.is_available() || contained.iter().all(|simd| simd.is_available()), "{set}");
        }
        assert!(Simd::Portable.is_available());
    }

    #[test]
    fn the_first_that_a_machine_has_is_detected() {
        let first = Simd::ALL.iter().position(|simd| simd.is_available()).expect("portable is always there");
        assert_eq!(Lanes::detect().simd(), Simd::ALL[first]);
        assert_eq!(Simd::available(&Simd::ALL).next(), Some(Simd::ALL[first]));
    }

    #[test]
    fn names_differ() {
        let names: std::collections::HashSet<_> = Simd::ALL.iter().map(|simd| simd.name()).collect();
        assert_eq!(names.len(), Simd::ALL.len());
    }
}
