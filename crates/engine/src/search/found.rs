//! What a search found.

use std::time::Duration;

use zeroize::Zeroizing;

use crate::details::Details;
use crate::origin::Secret;
use crate::split::Split;

/// A verified result.
pub struct Match {
    /// The target's name.
    pub target: &'static str,
    /// The word that tells targets of one name apart: the type of a Bitcoin address.
    pub variant: Option<&'static str>,
    /// The pattern as it was written; none in a search for the best.
    pub pattern: Option<String>,
    /// The text that matches.
    pub address: String,
    /// Its score, in a search for the best.
    pub score: Option<u32>,
    /// The compressed public key, if the subject is a key.
    pub public_key: Option<[u8; 33]>,
    /// The private key, unless the search was split.
    pub secret: Option<Secret>,
    /// The private key as its users import it.
    pub export: Option<Zeroizing<String>>,
    /// How the private key follows from the user's, if the search was split.
    pub split: Option<Split>,
    /// The salt, if the subject is one.
    pub salt: Option<[u8; 32]>,
    /// The nonce at which the key's account creates the contract that `address` is.
    pub nonce: Option<u64>,
    /// What lies between the key or salt and the address, and how to use it. SEC: the texts may hold the private key.
    pub details: Details,
    /// The same without the private key, for where it must not go.
    pub public_details: Details,
    /// Where it was found.
    pub device: String,
    /// Addresses tested until then.
    pub tried: u64,
    /// Time since the start.
    pub elapsed: Duration,
}

/// SEC: shows nothing that holds a private key.
impl std::fmt::Debug for Match {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Match { target, pattern, address, device, .. } = self;
        let mut shown = f.debug_struct("Match");
        shown
            .field("target", target)
            .field("pattern", pattern)
            .field("address", address)
            .field("device", device);
        shown.finish_non_exhaustive()
    }
}
