//! How a device gets from a candidate to a digest: plain data, the same for every device.
//!
//! Knows the computations by name and their constants. Does not compute: the target does, as the reference, and
//! each device in its own way.

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
    /// Keccak-256 of these bytes and the salt.
    Prefixed(Vec<u8>),
}

impl Guard {
    /// The most bytes before the salt: with the salt they fit one block of Keccak-256 (136 bytes) with room.
    pub const MOST: usize = 64;
}
