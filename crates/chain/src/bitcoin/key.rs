//! From a point to what an address commits to.
//!
//! The reference for the recipes: hashes one at a time, and taproot's addition by libsecp256k1.

use secp256k1::{Scalar, XOnlyPublicKey};

use super::AddressType;
use crate::hash::{hash160, sha256};
use crate::{Digest, PublicPoint};

/// The key as 33 bytes.
pub(super) fn compressed(point: &PublicPoint) -> [u8; 33] {
    let mut bytes = [0; 33];
    bytes[0] = 2 | (point.y[31] & 1);
    bytes[1..].copy_from_slice(&point.x);
    bytes
}

/// The key as 65 bytes.
pub(super) fn uncompressed(point: &PublicPoint) -> [u8; 65] {
    let mut bytes = [4; 65];
    bytes[1..33].copy_from_slice(&point.x);
    bytes[33..].copy_from_slice(&point.y);
    bytes
}

/// What a filter sees of a point.
pub(super) fn digest(address_type: AddressType, point: &PublicPoint) -> Digest {
    match address_type {
        AddressType::P2pkh | AddressType::P2wpkh => Digest::new(&hash160(&compressed(point))),
        AddressType::P2pkhUncompressed => Digest::new(&hash160(&uncompressed(point))),
        AddressType::P2sh => {
            // OP_0 and a push of 20 bytes: the witness program of version 0.
            let mut script = [0; 22];
            script[1] = 20;
            script[2..].copy_from_slice(&hash160(&compressed(point)));
            Digest::new(&hash160(&script))
        }
        AddressType::P2tr => Digest::new(&taproot_output(&point.x)),
        AddressType::Rawtr => Digest::new(&point.x),
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
