//! What a chain makes of a public key: a digest, and the text a person reads.
//!
//! Knows points as bytes, digests and encodings. Knows no patterns, no devices and no search.
//! A new chain is a new folder beside `nostr` and one line in [`TARGETS`].

mod digest;
mod error;
pub mod layout;
pub mod nostr;

use zeroize::Zeroizing;

pub use digest::Digest;
pub use error::Error;
pub use layout::{Affine, Layout, Linear};

/// A public key as affine coordinates, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicPoint {
    /// The x coordinate.
    pub x: [u8; 32],
    /// The y coordinate.
    pub y: [u8; 32],
}

/// What a chain makes of a public key.
pub trait Target: Send + Sync {
    /// The word that selects this target on the command line and in results.
    fn name(&self) -> &'static str;

    /// One line for help texts.
    fn summary(&self) -> &'static str;

    /// How the digest's bits become text.
    fn layout(&self) -> &Layout;

    /// What a filter sees of this point.
    fn digest(&self, point: &PublicPoint) -> Digest;

    /// The whole text of a digest, head included. The digest must have the length [`Target::digest`] gives.
    fn encode(&self, digest: &Digest) -> String;

    /// The digest of a text that [`Target::encode`] could have written. Upper case as a whole is accepted
    /// where the encoding allows it.
    fn decode(&self, text: &str) -> Result<Digest, Error>;

    /// The secret key in the chain's own text form, for a wallet to import.
    fn export(&self, secret: &[u8; 32]) -> Zeroizing<String>;

    /// Whether the digest depends on x alone, so that a key and its negation give the same text.
    fn x_only(&self) -> bool;
}

/// Every target there is; help, self-tests and benches iterate over it.
pub static TARGETS: &[&dyn Target] = &[&nostr::Npub];

/// The target with this name.
pub fn find(name: &str) -> Option<&'static dyn Target> {
    TARGETS.iter().copied().find(|target| target.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_found_by_its_name_and_names_are_unique() {
        for target in TARGETS {
            assert_eq!(find(target.name()).map(|found| found.summary()), Some(target.summary()));
            assert_eq!(TARGETS.iter().filter(|other| other.name() == target.name()).count(), 1);
        }
        assert!(find("NPUB").is_none());
        assert!(find("").is_none());
    }
}
