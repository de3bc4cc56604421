//! How a device gets from a candidate to a digest: plain data, the same for every device.
//!
//! Knows the computations by name and their constants. Does not compute: the target does, as the reference, and
//! each device in its own way.

use std::ops::Range;

use crate::{Form, SaltMask};

/// How a device gets from a candidate to a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// The candidate is a key, and this is computed of it.
    Key(Form),
    /// No key at all: the candidate is a salt.
    Salted(Salted),
}

impl Recipe {
    /// What is computed of a key; none where the candidate is a salt.
    pub fn form(&self) -> Option<Form> {
        match self {
            Self::Key(form) => Some(*form),
            Self::Salted(_) => None,
        }
    }
}

/// From a salt to the address of a contract made with CREATE2, or of one made by a proxy made with CREATE2.
///
/// ```text
/// salt'   = guard(salt)
/// first   = keccak256(0xff || deployer || salt' || code_hash)[12..]
/// second  = keccak256(0xd6 || 0x94 || first || 0x01)[12..]          where `create`: CREATE at nonce 1
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salted {
    /// What the factory makes of the salt it is given.
    pub guard: Guard,
    /// The contract that executes CREATE2.
    pub deployer: [u8; 20],
    /// Keccak-256 of the code CREATE2 is given: the contract's, or the proxy's.
    pub code_hash: [u8; 32],
    /// Whether what CREATE2 makes is a proxy whose first contract is the result.
    pub create: bool,
    /// Which bytes of the salt are free.
    pub salt: SaltMask,
}

/// What a factory makes of the salt it is given before CREATE2 sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Nothing.
    None,
    /// Keccak-256 of a message with the salt in it.
    Hashed(Hashed),
}

/// A message with a salt in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashed {
    /// What stands before the salt.
    pub before: Vec<u8>,
    /// Which bytes of the salt stand in it: all, where the factory takes a salt of 32 bytes.
    pub salt: Range<usize>,
    /// What stands behind the salt.
    pub after: Vec<u8>,
}

impl Guard {
    /// Keccak-256 of these bytes and the salt.
    pub fn prefixed(before: Vec<u8>) -> Guard {
        Guard::Hashed(Hashed { before, salt: 0..32, after: Vec::new() })
    }
}

impl Hashed {
    /// The most bytes of a message: they fit one block of Keccak-256 (136 bytes) with its padding.
    pub const MOST: usize = 135;

    /// The message of a salt.
    pub fn message(&self, salt: &[u8; 32]) -> Vec<u8> {
        [&self.before, &salt[self.salt.clone()], &self.after].concat()
    }
}
