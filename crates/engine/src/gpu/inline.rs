//! Whether helper functions of kernels are inlined.

use std::str::FromStr;

use warpsmith_device::Vendor;

/// Whether a kernel's helper functions are inlined. Compilers based on LLVM take minutes over the one large function
/// that makes (AMD's took 8 to 16), and seconds where the helpers stay out of line; but that runs several times slower.
///
/// ```
/// use warpsmith_engine::{Devices, Inline};
///
/// let devices = Devices::open_with(&["cpu".parse().unwrap()], None, Inline::No)?;
/// # Ok::<(), warpsmith_engine::Error>(())
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
    pub(crate) fn resolve(self, vendor: &Vendor) -> bool {
        match self {
            Inline::Auto => *vendor != Vendor::Amd,
            Inline::Yes => true,
            Inline::No => false,
        }
    }
}

impl FromStr for Inline {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Inline, String> {
        match text {
            "auto" => Ok(Inline::Auto),
            "yes" => Ok(Inline::Yes),
            "no" => Ok(Inline::No),
            _ => Err("give auto, yes or no".to_owned()),
        }
    }
}

/// How cards are used.
///
/// ```
/// use warpsmith_engine::{CardOptions, Devices, Inline};
///
/// // Launches of 10 ms leave a card that also draws a desktop fluent.
/// let options = CardOptions { launch_ms: 10, inline: Inline::Auto };
/// let devices = Devices::open_with(&["cpu".parse().unwrap()], None, options)?;
/// # Ok::<(), warpsmith_engine::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardOptions {
    /// How kernels are built.
    pub inline: Inline,
    /// How long a launch shall take, in milliseconds: long enough to hide its overhead, short enough for a display.
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
