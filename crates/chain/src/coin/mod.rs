//! Coins of Bitcoin's kind: addresses of single keys as P2PKH, P2SH-P2WPKH, P2WPKH and P2TR, private keys in wallet import
//! format. A coin is one row of [`COINS`].
//!
//! What is hashed is a [`Form`], the text a [`Writing`]. What a wallet imports is in `export`, which address a pattern is
//! about in `infer`, the rows themselves in `rows`. Vectors are in `vectors.json`.

mod export;
mod infer;
mod output;
mod rows;

pub use export::{Wif, decode_wif, descriptor_checksum, wif_heads, wif_versions};
pub use infer::{Inference, Refusal, infer};
pub use output::{Outputs, output_script};
pub use rows::{BITCOIN, BITCOIN_CASH, COINS, DOGECOIN, LITECOIN};

use std::sync::Arc;

use zeroize::Zeroizing;

use crate::text::Writing;
use crate::{
    AddressKind, Birthday, Chain, Digest, Encoding, EncryptedForm, Error, Form, KeyTarget, Listed,
    PublicPoint, Target,
};

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

/// A coin of Bitcoin's kind.
#[derive(Debug)]
pub struct Coin {
    /// The word for it on the command line and in results.
    pub name: &'static str,
    /// Its name.
    pub title: &'static str,
    /// A pattern that many of its addresses match, for help texts.
    pub example: &'static str,
    /// The types of addresses that its wallets know, the oldest first.
    pub types: &'static [AddressType],
    /// Whether its wallets import output descriptors (BIP-380).
    pub descriptors: bool,
    /// How a wallet is given the key of such an address. SEC: by a file, since what stands on a command line stays in its history.
    pub importing: fn(AddressType, Birthday) -> String,
    /// How the main and the test network write.
    pub networks: [Params; 2],
}

/// How one network of a coin writes.
#[derive(Debug)]
pub struct Params {
    /// Addresses of hashed keys.
    pub p2pkh: Writing,
    /// Addresses of hashed scripts.
    pub p2sh: Option<Writing>,
    /// Witness programs of versions 0 and 1.
    pub segwit: Option<[Writing; 2]>,
    /// The first byte of a private key in wallet import format.
    pub wif: u8,
    /// What such keys begin with: of an uncompressed public key first.
    pub wif_heads: &'static [&'static str],
    /// The record bytes of P2PKH, P2SH, P2WPKH and P2TR are this and 1 to 4: those on disk, which never change.
    pub records: u8,
}

/// Addresses of one type on one network of a coin.
#[derive(Clone, Copy, Debug)]
pub struct CoinAddress {
    /// The coin.
    pub coin: &'static Coin,
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
    pub const fn name(self) -> &'static str {
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

    /// What an address commits to, in words.
    pub const fn commits_to(self) -> &'static str {
        match self {
            Self::P2pkh => "the hash of a key",
            Self::P2pkhUncompressed => "the hash of an uncompressed key",
            Self::P2sh => "a P2WPKH program in a script hash",
            Self::P2wpkh => "a witness program with the hash of a key",
            Self::P2tr => "taproot, spent by key",
            Self::Rawtr => "taproot of the key itself, much faster to search",
        }
    }
}

impl Network {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Main, Self::Test];

    /// The word for it on the command line.
    pub const fn name(self) -> &'static str {
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

impl Coin {
    /// Addresses of this type on the main network.
    pub const fn main(&'static self, address_type: AddressType) -> CoinAddress {
        self.on(Network::Main, address_type)
    }

    /// Addresses of this type on this network.
    pub const fn on(&'static self, network: Network, address_type: AddressType) -> CoinAddress {
        CoinAddress { coin: self, address_type, network }
    }

    /// Every type on every network.
    pub fn addresses(&'static self) -> impl Iterator<Item = CoinAddress> {
        let on = move |network| self.types.iter().map(move |address_type| self.on(network, *address_type));
        Network::ALL.into_iter().flat_map(on)
    }

    /// How this network writes.
    pub const fn params(&self, network: Network) -> &Params {
        match network {
            Network::Main => &self.networks[0],
            Network::Test => &self.networks[1],
        }
    }

    /// The chain of this coin, with all its addresses.
    pub(crate) fn chain(&'static self) -> Chain {
        let listed = |address: CoinAddress| Listed {
            network: Some(address.network),
            kind: Some(address.kind()),
            writing: Some(address.writing()),
            target: Arc::new(address),
        };
        Chain {
            name: self.name,
            title: self.title,
            sought: format!("{} address", self.title),
            example: self.example,
            shows: "the address, its private key (WIF and hex) and what a wallet needs to import it",
            coin: Some(self),
            addresses: self.addresses().map(listed).collect(),
            of_address: None,
        }
    }
}

impl CoinAddress {
    /// How such addresses are written.
    ///
    /// # Panics
    ///
    /// When the coin does not have this type.
    pub fn writing(&self) -> Writing {
        let params = self.coin.params(self.network);
        let writing = match self.address_type {
            AddressType::P2pkh | AddressType::P2pkhUncompressed => Some(params.p2pkh),
            AddressType::P2sh => params.p2sh,
            AddressType::P2wpkh => params.segwit.map(|[v0, _]| v0),
            AddressType::P2tr | AddressType::Rawtr => params.segwit.map(|[_, v1]| v1),
        };
        writing.unwrap_or_else(|| panic!("{} has no {}", self.coin.title, self.address_type.name()))
    }

    /// What a record of such an address says: types that look alike have one kind.
    pub fn kind(&self) -> AddressKind {
        let number = match self.address_type {
            AddressType::P2pkh | AddressType::P2pkhUncompressed => 1,
            AddressType::P2sh => 2,
            AddressType::P2wpkh => 3,
            AddressType::P2tr | AddressType::Rawtr => 4,
        };
        AddressKind::new(self.coin.params(self.network).records + number)
    }

    /// Whether addresses are of taproot, where the private key belongs to x alone.
    pub fn is_taproot(&self) -> bool {
        matches!(self.address_type, AddressType::P2tr | AddressType::Rawtr)
    }
}

impl PartialEq for CoinAddress {
    fn eq(&self, other: &Self) -> bool {
        (self.coin.name, self.address_type, self.network)
            == (other.coin.name, other.address_type, other.network)
    }
}

impl Eq for CoinAddress {}

impl Target for CoinAddress {
    fn name(&self) -> &'static str {
        self.coin.name
    }

    fn variant(&self) -> Option<&'static str> {
        Some(self.address_type.name())
    }

    fn encoding(&self) -> &'static Encoding {
        self.writing().encoding()
    }

    fn encode(&self, digest: &Digest) -> String {
        self.writing().encode(digest)
    }

    fn decode(&self, text: &str) -> Result<Digest, Error> {
        if let Some(given) = looks_secret(text) {
            return Err(Error::Secret { given, expected: "address" });
        }
        self.writing().decode(text)
    }
}

impl KeyTarget for CoinAddress {
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

    /// BIP-38 is Bitcoin's, and commits to an address of the main network.
    fn encrypted_form(&self) -> Option<EncryptedForm> {
        let is_compressed = self.address_type != AddressType::P2pkhUncompressed;
        let fits = self.coin.name == BITCOIN.name && self.network == Network::Main;
        fits.then_some(EncryptedForm::Bip38 { is_compressed })
    }

    fn explain(
        &self,
        point: &PublicPoint,
        secret: Option<&[u8; 32]>,
        birthday: Birthday,
    ) -> Vec<(&'static str, Zeroizing<String>)> {
        export::explain(self, point, secret, birthday)
    }
}

/// What gives a text away as a private key or something that holds one, by its look alone.
pub(crate) fn looks_secret(text: &str) -> Option<&'static str> {
    let text = text.trim();
    let is_base58 = || text.bytes().all(|byte| crate::text::base58::value(byte).is_some());
    let begins = |heads: &[&str]| heads.iter().any(|head| text.starts_with(head));
    let begins_like_wif =
        || COINS.iter().flat_map(|coin| &coin.networks).any(|params| begins(params.wif_heads));
    match text.len() {
        64 if text.bytes().all(|byte| byte.is_ascii_hexdigit()) => Some("64 hex digits"),
        51 | 52 if begins_like_wif() && is_base58() => Some("WIF"),
        58 if begins(&["6P"]) && is_base58() => Some("BIP-38"),
        100.. if begins(&["xprv", "yprv", "zprv", "tprv", "uprv", "vprv"]) => Some("extended private key"),
        _ => None,
    }
}

#[cfg(test)]
mod row_tests;
#[cfg(test)]
mod tests;
