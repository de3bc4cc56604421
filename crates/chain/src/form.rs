//! What is computed of a public key: the digest that filters test, databases hold and texts are made of.
//!
//! The one list of these computations, each with its reference: hashes one at a time by the usual crates, and taproot's
//! addition by libsecp256k1. Devices compute them in ways of their own and are judged by this file. Knows no texts: two
//! chains that hash alike share a form.

use secp256k1::{Scalar, XOnlyPublicKey};

use crate::ethereum::{account_of, create};
use crate::hash::{hash160, sha256};
use crate::{Digest, PublicPoint};

/// What is computed of a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// The x coordinate.
    X,
    /// RIPEMD-160 of SHA-256 of the compressed key: 2 or 3 (y even or odd), then x.
    Hash160,
    /// RIPEMD-160 of SHA-256 of the uncompressed key: 4, then x and y.
    Hash160Uncompressed,
    /// RIPEMD-160 of SHA-256 of the script `00 14 hash160(compressed key)`: a witness program in a script hash.
    ScriptHash160,
    /// The last 20 bytes of Keccak-256 over x and y: the account of a key.
    Account,
    /// The contract that the account of a key creates with CREATE at this nonce.
    Contract {
        /// The account's nonce, at most 2^64 - 2.
        nonce: u64,
    },
    /// The x coordinate of `P + t*G`, where P has the key's x and an even y, and t is the tagged hash `TapTweak` of that
    /// x (BIP-341 with no scripts).
    Taproot,
}

/// What a form reads of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reads {
    /// The x coordinate alone.
    X,
    /// The x coordinate and whether y is odd.
    Parity,
    /// Both coordinates.
    Both,
}

impl Form {
    /// The forms that a scan computes and a database can hold, cheapest first: all but the contract, which differs with
    /// its nonce.
    pub const SCANNED: [Self; 6] = [
        Self::X,
        Self::Hash160,
        Self::Hash160Uncompressed,
        Self::ScriptHash160,
        Self::Account,
        Self::Taproot,
    ];

    /// Bytes of its digests.
    pub const fn bytes(self) -> usize {
        match self {
            Self::X | Self::Taproot => 32,
            _ => 20,
        }
    }

    /// What it reads of a point.
    pub const fn reads(self) -> Reads {
        match self {
            Self::X | Self::Taproot => Reads::X,
            Self::Hash160 | Self::ScriptHash160 => Reads::Parity,
            Self::Hash160Uncompressed | Self::Account | Self::Contract { .. } => Reads::Both,
        }
    }

    /// Whether a key and its negation, which have the same x, are two candidates.
    pub const fn signs(self) -> bool {
        !matches!(self.reads(), Reads::X)
    }

    /// The digest of a point, by the reference code. For [`Form::Taproot`] the point must lie on the curve.
    pub fn reference(self, point: &PublicPoint) -> Digest {
        match self {
            Self::X => Digest::new(&point.x),
            Self::Hash160 => Digest::new(&hash160(&point.compressed())),
            Self::Hash160Uncompressed => Digest::new(&hash160(&point.uncompressed())),
            Self::ScriptHash160 => {
                // OP_0 and a push of 20 bytes: the witness program of version 0.
                let mut script = [0; 22];
                script[1] = 20;
                script[2..].copy_from_slice(&hash160(&point.compressed()));
                Digest::new(&hash160(&script))
            }
            Self::Account => Digest::new(&account_of(point)),
            Self::Contract { nonce } => Digest::new(&create(&account_of(point), nonce)),
            Self::Taproot => Digest::new(&taproot_output(&point.x)),
        }
    }
}

/// The tweak of an internal key without scripts: the tagged hash `TapTweak` of its x coordinate (BIP-341).
pub fn taproot_tweak(internal: &[u8; 32]) -> [u8; 32] {
    let tag = sha256(b"TapTweak");
    sha256(&[tag, tag, *internal].concat())
}

/// The x coordinate of the output key of an internal key without scripts: of `P + t*G`, where P has this x coordinate
/// and an even y, and t is the tweak (BIP-341).
///
/// # Panics
///
/// When no point of the curve has this x coordinate. A tweak that is not below the group order, or is the negative of the
/// key, would be another reason; each has a chance of 2^-128 or less.
pub fn taproot_output(internal: &[u8; 32]) -> [u8; 32] {
    let key = XOnlyPublicKey::from_byte_array(*internal).expect("an internal key is a point's x coordinate");
    let tweak = Scalar::from_be_bytes(taproot_tweak(internal)).expect("a hash is below the group order");
    let (output, _) = key.add_tweak(&tweak).expect("a hash is not the negative of a key");
    output.to_byte_array()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key 1 and its negation.
    fn generator() -> [PublicPoint; 2] {
        let secret = secp256k1::SecretKey::from_secret_bytes({
            let mut one = [0; 32];
            one[31] = 1;
            one
        })
        .unwrap();
        let key = secp256k1::PublicKey::from_secret_key(&secret);
        [key, key.negate()].map(|key| {
            let bytes = key.serialize_uncompressed();
            PublicPoint { x: bytes[1..33].try_into().unwrap(), y: bytes[33..].try_into().unwrap() }
        })
    }

    /// What `bytes`, `reads` and `signs` say is what `reference` does: y changes a digest exactly where it is read.
    #[test]
    fn forms_read_what_they_say_and_have_their_length() {
        let [point, negated] = generator();
        // Another y of the same parity: on no curve, but hashes do not mind.
        let mut other = point;
        other.y[0] ^= 1;
        for form in Form::SCANNED.into_iter().chain([Form::Contract { nonce: 7 }]) {
            let digest = form.reference(&point);
            assert_eq!(digest.as_bytes().len(), form.bytes(), "{form:?}");
            assert_eq!(digest != form.reference(&negated), form.signs(), "{form:?}");
            assert_eq!(digest != form.reference(&other), form.reads() == Reads::Both, "{form:?}");
        }
    }
}
