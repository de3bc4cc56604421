//! Bitcoin addresses of single keys: P2PKH, P2SH-P2WPKH, P2WPKH and P2TR, on the main and the test network.
//!
//! What is hashed is a `Form`, the text in `address`, what a wallet imports in `export`, and which address a pattern is
//! about in `infer`. Vectors are in `vectors.json`.

mod address;
mod export;
mod infer;

pub use export::{decode_wif, descriptor_checksum};
pub use infer::{Refusal, infer};

use zeroize::Zeroizing;

use crate::{Digest, Encoding, Error, Form, KeyTarget, PublicPoint, Target};

/// What an address commits to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressType {
    /// The hash of the compressed key.
    P2pkh,
    /// The hash of the uncompressed key.
    P2pkhUncompressed,
    /// The hash of a script that is a P2WPKH witness program.
    P2sh,
    /// The witness program of version 0 with the hash of the compressed key.
    P2wpkh,
    /// The witness program of version 1 with the key after the tweak of BIP-341 for no scripts, as wallets of BIP-86 use.
    P2tr,
    /// The witness program of version 1 with the key itself: a taproot output whose key has no tweak.
    Rawtr,
}

/// Which network an address is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Network {
    /// The main network.
    #[default]
    Main,
    /// The test networks, signet among them: their addresses are alike.
    Test,
}

/// Addresses of one type on one network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bitcoin {
    /// What an address commits to.
    pub address_type: AddressType,
    /// The network.
    pub network: Network,
}

impl AddressType {
    /// Every type.
    pub const ALL: [Self; 6] =
        [Self::P2pkh, Self::P2pkhUncompressed, Self::P2sh, Self::P2wpkh, Self::P2tr, Self::Rawtr];

    /// The word for it on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::P2pkh => "p2pkh",
            Self::P2pkhUncompressed => "p2pkh-uncompressed",
            Self::P2sh => "p2sh",
            Self::P2wpkh => "p2wpkh",
            Self::P2tr => "p2tr",
            Self::Rawtr => "rawtr",
        }
    }

    /// The type with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|address_type| address_type.name() == name)
    }
}

impl Network {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Main, Self::Test];

    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Test => "test",
        }
    }

    /// The network with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|network| network.name() == name)
    }
}

impl Bitcoin {
    /// Addresses of this type on the main network.
    pub const fn main(address_type: AddressType) -> Self {
        Self { address_type, network: Network::Main }
    }

    /// Every type on every network.
    pub fn all() -> impl Iterator<Item = Self> {
        let on = |network| AddressType::ALL.map(|address_type| Self { address_type, network });
        Network::ALL.into_iter().flat_map(on)
    }

    /// The version byte of addresses in base58.
    pub(crate) fn base58_version(&self) -> Option<u8> {
        address::version(self)
    }

    /// Whether addresses are of taproot, where the private key belongs to x alone.
    pub fn is_taproot(&self) -> bool {
        matches!(self.address_type, AddressType::P2tr | AddressType::Rawtr)
    }
}

impl Target for Bitcoin {
    fn name(&self) -> &'static str {
        "btc"
    }

    fn summary(&self) -> &'static str {
        match self.address_type {
            AddressType::P2pkh => "Bitcoin address of a key (1...)",
            AddressType::P2pkhUncompressed => "Bitcoin address of an uncompressed key (1...)",
            AddressType::P2sh => "Bitcoin address of a witness program in a script hash (3...)",
            AddressType::P2wpkh => "Bitcoin address of a witness program (bc1q...)",
            AddressType::P2tr => "Bitcoin taproot address, spent by key (bc1p...)",
            AddressType::Rawtr => "Bitcoin taproot address of the key itself (bc1p...)",
        }
    }

    fn variant(&self) -> Option<&'static str> {
        Some(self.address_type.name())
    }

    fn encoding(&self) -> &'static Encoding {
        address::encoding(self)
    }

    fn encode(&self, digest: &Digest) -> String {
        address::encode(self, digest)
    }

    fn decode(&self, text: &str) -> Result<Digest, Error> {
        address::decode(self, text)
    }
}

impl KeyTarget for Bitcoin {
    fn form(&self) -> Form {
        match self.address_type {
            AddressType::P2pkh | AddressType::P2wpkh => Form::Hash160,
            AddressType::P2pkhUncompressed => Form::Hash160Uncompressed,
            AddressType::P2sh => Form::ScriptHash160,
            AddressType::P2tr => Form::Taproot,
            AddressType::Rawtr => Form::X,
        }
    }

    /// The private key in wallet import format.
    fn export(&self, secret: &[u8; 32]) -> Zeroizing<String> {
        export::wif(self, secret)
    }

    fn explain(
        &self,
        point: &PublicPoint,
        secret: Option<&[u8; 32]>,
    ) -> Vec<(&'static str, Zeroizing<String>)> {
        export::explain(self, point, secret)
    }
}

#[cfg(test)]
mod tests;
