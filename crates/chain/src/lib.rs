//! What a chain makes of a public key, or of a salt: a digest, and the text a person reads.
//!
//! Knows points and salts as bytes, digests and encodings. Knows no patterns, no devices and no search.
//! A new chain is a new folder beside `nostr` and one line in [`CHAINS`]; a coin of Bitcoin's kind is one row of
//! [`coin::COINS`].

mod account;
mod birthday;
mod chains;
pub mod coin;
pub mod cosmos;
mod digest;
mod error;
pub mod ethereum;
mod form;
mod hash;
mod identify;
mod lent;
pub mod nostr;
mod recipe;
mod salt;
pub mod text;
pub mod tron;

use zeroize::Zeroizing;

pub use account::PlainAccount;
pub use birthday::Birthday;
pub use chains::{AddressKind, CHAINS, Chain, KeyType, Listed, OfAddress, TYPES, TypeError, find};
pub use digest::Digest;
pub use error::Error;
pub use form::{Form, Reads, taproot_output, taproot_tweak};
pub use identify::{Address, identify};
pub use recipe::{Guard, Hashed, Recipe, Salted};
pub use salt::{MaskError, SaltMask};
pub use text::{Base58, BitSum, Encoding, Linear};

/// A public key as affine coordinates, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicPoint {
    /// The x coordinate.
    pub x: [u8; 32],
    /// The y coordinate.
    pub y: [u8; 32],
}

impl PublicPoint {
    /// The point with this x coordinate whose y is odd or even; `None` where no point has it.
    pub fn of_x(x: &[u8; 32], is_odd: bool) -> Option<PublicPoint> {
        let mut compressed = [2 | u8::from(is_odd); 33];
        compressed[1..].copy_from_slice(x);
        let key = secp256k1::PublicKey::from_slice(&compressed).ok()?.serialize_uncompressed();
        let y = std::array::from_fn(|at| key[33 + at]);
        Some(PublicPoint { x: *x, y })
    }

    /// The key as 33 bytes: 2 or 3 (y even or odd), then x.
    pub fn compressed(&self) -> [u8; 33] {
        let mut bytes = [0; 33];
        bytes[0] = 2 | (self.y[31] & 1);
        bytes[1..].copy_from_slice(&self.x);
        bytes
    }

    /// The key as 65 bytes: 4, then x and y.
    pub fn uncompressed(&self) -> [u8; 65] {
        let mut bytes = [4; 65];
        bytes[1..33].copy_from_slice(&self.x);
        bytes[33..].copy_from_slice(&self.y);
        bytes
    }
}

/// What is searched for: how a candidate becomes a digest, and a digest text.
pub trait Target: Send + Sync {
    /// The word that selects this target on the command line and in results.
    fn name(&self) -> &'static str;

    /// The word that tells targets of one name apart in results: the type of a Bitcoin address.
    fn variant(&self) -> Option<&'static str> {
        None
    }

    /// How the digest's bits become text.
    fn encoding(&self) -> &'static Encoding;

    /// The whole text of a digest, head included. The digest must have the length this target's digests have.
    fn encode(&self, digest: &Digest) -> String;

    /// The digest of a text that [`Target::encode`] could have written. Other ways to write it in upper or lower
    /// case are accepted where the encoding allows them.
    fn decode(&self, text: &str) -> Result<Digest, Error>;
}

/// How the programs of a chain keep a private key under a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncryptedForm {
    /// NIP-49: `ncryptsec1...`.
    Ncryptsec,
    /// Web3 Secret Storage, version 3: a JSON document.
    Web3,
    /// BIP-38: `6P...`. Whether the public key is compressed is part of it, the type of address is not.
    Bip38 {
        /// Whether the public key is compressed.
        is_compressed: bool,
    },
}

/// A target whose candidates are keys.
pub trait KeyTarget: Target {
    /// What is computed of a key.
    fn form(&self) -> Form;

    /// What a filter sees of this point: the form's reference.
    fn digest(&self, point: &PublicPoint) -> Digest {
        self.form().reference(point)
    }

    /// The secret key in the chain's own text form, for a wallet to import.
    fn export(&self, secret: &[u8; 32]) -> Zeroizing<String>;

    /// The form under a password that wallets of the chain import, where there is one.
    fn encrypted_form(&self) -> Option<EncryptedForm> {
        None
    }

    /// What else a person should know to use the key: values between it and the address, other forms to import. Without
    /// the secret, for a split key, what can be told from the point. The texts may hold the secret. The birthday decides from when on a
    /// wallet that imports the key looks for payments.
    fn explain(
        &self,
        _point: &PublicPoint,
        _secret: Option<&[u8; 32]>,
        _birthday: Birthday,
    ) -> Vec<(&'static str, Zeroizing<String>)> {
        Vec::new()
    }
}

/// A target whose candidates are salts.
pub trait SaltTarget: Target {
    /// How a device gets from a salt to a digest.
    fn salted(&self) -> &Salted;

    /// What a filter sees of this salt.
    fn digest(&self, salt: &[u8; 32]) -> Digest;

    /// Every value between the salt and the digest, and what to do with the salt, in words a person can check.
    fn explain(&self, salt: &[u8; 32]) -> Vec<(&'static str, String)>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_and_edges_are_prefixes_of_their_size() {
        let npub = find("npub").unwrap().encoding();
        assert_eq!(npub.sample(35.0), "cafewav");
        assert_eq!(npub.sample(0.0), "c");
        assert_eq!(npub.sample(1e9).len(), 29);
        assert_eq!((npub.edge(false, 60), npub.edge(true, 56)), ("q".repeat(12), "l".repeat(12)));
        let eth = find("eth").unwrap().encoding();
        assert_eq!(eth.sample(32.0), "cafeaeba");
        assert_eq!((eth.edge(false, 60), eth.edge(true, 1)), ("0".repeat(15), "f".to_owned()));
        assert_eq!((eth.head(), eth.width(), eth.symbols_for(33)), ("0x", 4, 9));
        assert_eq!((eth.body("0xCafe"), eth.body("Cafe")), ("Cafe", "Cafe"));
    }
}
