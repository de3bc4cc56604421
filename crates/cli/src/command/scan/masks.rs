//! `warpsmith scan --mask KEY`: what is left of a key, and every key that it can be.

use std::sync::Arc;

use warpsmith::store::{Interval, KeyMask, U256};
use warpsmith_console::exit::Failure;
use warpsmith_console::input;

use super::Scan;
use crate::advice;
use crate::keys;

/// Which keys are tested.
pub(super) enum Scanned {
    Range(Interval),
    Mask(Arc<KeyMask>),
}

impl Scanned {
    /// How many there are.
    pub fn count(&self) -> U256 {
        match self {
            Self::Range(range) => range.count(),
            Self::Mask(mask) => mask.count(),
        }
    }

    pub fn mask(&self) -> Option<&Arc<KeyMask>> {
        match self {
            Self::Range(_) => None,
            Self::Mask(mask) => Some(mask),
        }
    }
}

impl Scan {
    /// The mask as it was given. SEC: no message repeats anything of it.
    pub(super) fn read_mask(&self) -> Result<KeyMask, Failure> {
        let missing = usize::from(self.missing.unwrap_or(0));
        if let Some(text) = &self.mask {
            return KeyMask::parse(text, missing)
                .map_err(|error| Failure::Usage(format!("--mask: {}", advice::of_mask(&error))));
        }
        let file = self.mask_file.as_deref().unwrap_or("-");
        let bad = |why: String| Failure::Usage(format!("--mask-file {}: {why}", input::name(file)));
        let content = keys::content("--mask-file", file, &bad)?;
        let text = std::str::from_utf8(&content).map_err(|_| bad("it is not text".to_owned()))?;
        KeyMask::parse(text, missing).map_err(|error| bad(advice::of_mask(&error)))
    }
}
