//! What a search found.

use std::time::Duration;

use warpsmith_chain::Digest;
use zeroize::Zeroizing;

use super::Wanted;
use crate::details::Details;
use crate::origin::Secret;
use crate::split::Split;

/// A verified result: an address, and what leads to it.
///
/// See [`run`](crate::run()).
pub struct Match {
    /// The target's name.
    pub target: &'static str,
    /// The word that tells targets of one name apart: the type of a Bitcoin address.
    pub variant: Option<&'static str>,
    /// The text that matches.
    pub address: String,
    /// Why it was wanted.
    pub why: Why,
    /// The key or the salt that leads to it.
    pub solution: Solution,
    /// The nonce at which the key's account creates the contract that `address` is, where it is one. A contract's key may be
    /// whole or split as any other.
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

/// Why a result was wanted.
///
/// See [`run`](crate::run()).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It matches this pattern, as it was written.
    Pattern(String),
    /// It has this score.
    Score {
        /// How much.
        score: u32,
        /// Of what, as it is written.
        of: String,
        /// The pattern that it matches besides, as it was written.
        pattern: Option<String>,
    },
}

impl Why {
    /// Why an address is wanted; none if it does not match. Whether its score is high enough is not asked.
    pub(crate) fn of(wanted: &Wanted<'_>, address: &str, digest: &Digest) -> Option<Why> {
        let pattern = match wanted.patterns() {
            Some(patterns) => Some(patterns.text(patterns.find(address)?).to_owned()),
            None => None,
        };
        match wanted {
            Wanted::Patterns(_) => pattern.map(Why::Pattern),
            Wanted::Best { ranking, .. } => {
                let score = ranking.score();
                Some(Why::Score { score: score.of(digest), of: score.name(), pattern })
            }
        }
    }
}

/// What leads to an address.
///
/// ```
/// use warpsmith_engine::Solution;
///
/// fn tell(solution: &Solution) -> String {
///     match solution {
///         Solution::Key { export, .. } => format!("keep this to yourself: {}", export.as_str()),
///         Solution::Split { .. } => "join it with your own key".to_owned(),
///         Solution::Salt(salt) => format!("deploy with this salt: {salt:02x?}"),
///         _ => "something new".to_owned(),
///     }
/// }
/// assert!(tell(&Solution::Salt([0; 32])).contains("salt"));
/// # Ok::<(), warpsmith_engine::Error>(())
/// ```
pub enum Solution {
    /// A private key.
    Key {
        /// Its public key, compressed.
        public_key: [u8; 33],
        /// The key itself.
        secret: Secret,
        /// The key as its users import it.
        export: Zeroizing<String>,
    },
    /// A split key: worth nothing without the private key of the one who asked for it.
    Split {
        /// The public key of the address, compressed.
        public_key: [u8; 33],
        /// How its private key follows from the owner's.
        split: Split,
    },
    /// A salt for a contract factory.
    Salt([u8; 32]),
}

impl Match {
    /// The pattern that matched, as it was written; none in a search for the best of all.
    pub fn pattern(&self) -> Option<&str> {
        match &self.why {
            Why::Pattern(pattern) => Some(pattern),
            Why::Score { pattern, .. } => pattern.as_deref(),
        }
    }

    /// What the score is of, as it is written: [`Score::parse`](warpsmith_pattern::Score::parse) reads it.
    pub fn scored(&self) -> Option<&str> {
        match &self.why {
            Why::Score { of, .. } => Some(of),
            Why::Pattern(_) => None,
        }
    }

    /// The score, in a search for the best.
    pub fn score(&self) -> Option<u32> {
        match self.why {
            Why::Score { score, .. } => Some(score),
            Why::Pattern(_) => None,
        }
    }

    /// The compressed public key; none of a salt.
    pub fn public_key(&self) -> Option<&[u8; 33]> {
        match &self.solution {
            Solution::Key { public_key, .. } | Solution::Split { public_key, .. } => Some(public_key),
            Solution::Salt(_) => None,
        }
    }

    /// The private key; none where the search was split, and none of a salt.
    pub fn secret(&self) -> Option<&Secret> {
        match &self.solution {
            Solution::Key { secret, .. } => Some(secret),
            Solution::Split { .. } | Solution::Salt(_) => None,
        }
    }

    /// The private key as its users import it, where there is one.
    pub fn export(&self) -> Option<&str> {
        match &self.solution {
            Solution::Key { export, .. } => Some(export),
            Solution::Split { .. } | Solution::Salt(_) => None,
        }
    }

    /// How the private key follows from the owner's, if the search was split.
    pub fn split(&self) -> Option<&Split> {
        match &self.solution {
            Solution::Split { split, .. } => Some(split),
            Solution::Key { .. } | Solution::Salt(_) => None,
        }
    }

    /// The salt, if that is what was searched.
    pub fn salt(&self) -> Option<&[u8; 32]> {
        match &self.solution {
            Solution::Salt(salt) => Some(salt),
            Solution::Key { .. } | Solution::Split { .. } => None,
        }
    }
}

/// SEC: shows nothing that holds a private key.
impl std::fmt::Debug for Match {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Match { target, why, address, device, .. } = self;
        let mut shown = f.debug_struct("Match");
        shown.field("target", target).field("why", why).field("address", address).field("device", device);
        shown.finish_non_exhaustive()
    }
}
