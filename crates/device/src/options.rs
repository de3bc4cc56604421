//! Options for the use of GPUs: inlining of kernels, and the length of launches.

use std::str::FromStr;

use crate::{Refusal, Vendor};

/// Whether a kernel's helper functions are inlined. Compilers based on LLVM take minutes over the one large function
/// that makes (AMD's took 8 to 16), and seconds where the helpers stay out of line; but that runs several times slower.
///
/// ```
/// use warpsmith_device::Inline;
///
/// assert_eq!("no".parse(), Ok(Inline::No));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inline {
    /// As suits the vendor: out of line on AMD's cards, inlined on all others.
    #[default]
    Auto,
    /// Inlined.
    Yes,
    /// Out of line.
    No,
}

impl Inline {
    /// Returns whether helpers are inlined on devices of this vendor.
    pub fn resolve(self, vendor: &Vendor) -> bool {
        match self {
            Inline::Auto => *vendor != Vendor::Amd,
            Inline::Yes => true,
            Inline::No => false,
        }
    }
}

impl FromStr for Inline {
    type Err = Refusal;

    fn from_str(text: &str) -> std::result::Result<Inline, Refusal> {
        match text {
            "auto" => Ok(Inline::Auto),
            "yes" => Ok(Inline::Yes),
            "no" => Ok(Inline::No),
            _ => Err(Refusal("give auto, yes or no".to_owned())),
        }
    }
}

/// Options for the use of GPUs.
///
/// ```
/// use warpsmith_device::{CardOptions, Inline};
///
/// // Launches of 10 ms keep the desktop responsive.
/// let options = CardOptions { launch_ms: 10, inline: Inline::Auto };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardOptions {
    /// Whether the helper functions of kernels are inlined.
    pub inline: Inline,
    /// Target duration of a launch in milliseconds: long enough to hide its overhead, short enough for a display.
    pub launch_ms: u32,
}

impl Default for CardOptions {
    fn default() -> CardOptions {
        CardOptions { inline: Inline::Auto, launch_ms: 100 }
    }
}

impl From<Inline> for CardOptions {
    fn from(inline: Inline) -> CardOptions {
        CardOptions { inline, ..CardOptions::default() }
    }
}
