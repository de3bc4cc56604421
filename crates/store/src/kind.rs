//! The kinds of addresses a database holds, as one byte of a record.

use warpsmith_chain::bitcoin::{AddressType, Bitcoin, Network};
use warpsmith_chain::{Address, Digest, Form, Target as _, ethereum};

/// What an address says of a key. The numbers are those of records on disk and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Kind {
    /// The hash of a key, compressed or not.
    P2pkh = 0x01,
    /// The hash of a script; it can match as that of a P2WPKH witness program.
    P2sh = 0x02,
    /// The witness program with the hash of a compressed key.
    P2wpkh = 0x03,
    /// A taproot output key.
    P2tr = 0x04,
    /// An Ethereum account.
    Ethereum = 0x05,
    /// A Bitcoin hash of 20 bytes of which it is not known what it is of: BitcoinAddressFinder keeps no more.
    Hash160 = 0x06,
    /// [`Kind::P2pkh`] on a test network.
    P2pkhTest = 0x11,
    /// [`Kind::P2sh`] on a test network.
    P2shTest = 0x12,
    /// [`Kind::P2wpkh`] on a test network.
    P2wpkhTest = 0x13,
    /// [`Kind::P2tr`] on a test network.
    P2trTest = 0x14,
}

impl Kind {
    /// Every kind, by ascending byte.
    pub const ALL: [Self; 10] = [
        Self::P2pkh,
        Self::P2sh,
        Self::P2wpkh,
        Self::P2tr,
        Self::Ethereum,
        Self::Hash160,
        Self::P2pkhTest,
        Self::P2shTest,
        Self::P2wpkhTest,
        Self::P2trTest,
    ];

    /// The kind with this byte.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// The kind with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::P2pkh => "p2pkh",
            Self::P2sh => "p2sh",
            Self::P2wpkh => "p2wpkh",
            Self::P2tr => "p2tr",
            Self::Ethereum => "eth",
            Self::Hash160 => "hash160",
            Self::P2pkhTest => "p2pkh-test",
            Self::P2shTest => "p2sh-test",
            Self::P2wpkhTest => "p2wpkh-test",
            Self::P2trTest => "p2tr-test",
        }
    }

    /// How many bytes its digests have.
    pub fn digest_bytes(self) -> usize {
        match self {
            Self::P2tr | Self::P2trTest => 32,
            _ => 20,
        }
    }

    /// The kinds that hold digests of a form: where to look for what a device found. None for what no database holds.
    pub fn of_form(form: Form) -> &'static [Self] {
        match form {
            Form::Hash160 => &[Self::P2pkh, Self::P2wpkh, Self::Hash160, Self::P2pkhTest, Self::P2wpkhTest],
            Form::Hash160Uncompressed => &[Self::P2pkh, Self::Hash160, Self::P2pkhTest],
            Form::ScriptHash160 => &[Self::P2sh, Self::Hash160, Self::P2shTest],
            Form::Taproot | Form::X => &[Self::P2tr, Self::P2trTest],
            Form::Account => &[Self::Ethereum],
            Form::Contract { .. } => &[],
        }
    }

    /// The address with this digest: its text, or for a bare hash its hex digits.
    pub fn text(self, digest: &Digest) -> String {
        match self.bitcoin() {
            Some(bitcoin) => bitcoin.encode(digest),
            None if self == Self::Ethereum => ethereum::Account.encode(digest),
            None => digest.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// The Bitcoin address this is, if one. A P2PKH address does not say whether the key is compressed.
    pub fn bitcoin(self) -> Option<Bitcoin> {
        let (address_type, network) = match self {
            Self::P2pkh => (AddressType::P2pkh, Network::Main),
            Self::P2sh => (AddressType::P2sh, Network::Main),
            Self::P2wpkh => (AddressType::P2wpkh, Network::Main),
            Self::P2tr => (AddressType::P2tr, Network::Main),
            Self::P2pkhTest => (AddressType::P2pkh, Network::Test),
            Self::P2shTest => (AddressType::P2sh, Network::Test),
            Self::P2wpkhTest => (AddressType::P2wpkh, Network::Test),
            Self::P2trTest => (AddressType::P2tr, Network::Test),
            Self::Ethereum | Self::Hash160 => return None,
        };
        Some(Bitcoin { address_type, network })
    }

    /// The kind of an address, `None` for that of a script.
    pub fn of_address(address: &Address) -> Option<(Self, Digest)> {
        match *address {
            Address::Bitcoin(Bitcoin { address_type, network }, digest) => {
                let kind = match (address_type, network) {
                    (AddressType::P2pkh | AddressType::P2pkhUncompressed, Network::Main) => Self::P2pkh,
                    (AddressType::P2pkh | AddressType::P2pkhUncompressed, Network::Test) => Self::P2pkhTest,
                    (AddressType::P2sh, Network::Main) => Self::P2sh,
                    (AddressType::P2sh, Network::Test) => Self::P2shTest,
                    (AddressType::P2wpkh, Network::Main) => Self::P2wpkh,
                    (AddressType::P2wpkh, Network::Test) => Self::P2wpkhTest,
                    (AddressType::P2tr | AddressType::Rawtr, Network::Main) => Self::P2tr,
                    (AddressType::P2tr | AddressType::Rawtr, Network::Test) => Self::P2trTest,
                };
                Some((kind, digest))
            }
            Address::Ethereum(digest) => Some((Self::Ethereum, digest)),
            Address::Script(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use warpsmith_chain::KeyTarget as _;

    use super::*;

    #[test]
    fn kinds_go_to_bytes_names_and_texts_and_back() {
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(Kind::from_byte(kind as u8), Some(kind));
            assert_eq!(Kind::find(kind.name()), Some(kind));
            assert!(index == 0 || Kind::ALL[index - 1] < kind);
            let digest = Digest::new(&vec![0x5a; kind.digest_bytes()]);
            let text = kind.text(&digest);
            if kind != Kind::Hash160 {
                let address = warpsmith_chain::identify(&text).unwrap();
                assert_eq!(Kind::of_address(&address), Some((kind, digest)), "{text}");
            }
        }
        assert_eq!(Kind::from_byte(0), None);
        assert_eq!(Kind::find("p2wsh"), None);
        assert_eq!(Kind::Hash160.text(&Digest::new(&[0xab; 20])), "ab".repeat(20));
    }

    /// What a database calls a kind is where the targets that have such addresses are looked up.
    #[test]
    fn targets_are_looked_up_in_kinds_of_their_own() {
        for target in Bitcoin::all() {
            let kinds = Kind::of_form(target.form());
            let digest = Digest::new(&vec![7; if target.is_taproot() { 32 } else { 20 }]);
            let (kind, _) = Kind::of_address(&Address::Bitcoin(target, digest)).unwrap();
            assert!(kinds.contains(&kind), "{target:?}");
            assert!(kinds.iter().all(|kind| kind.digest_bytes() == digest.as_bytes().len()));
        }
        assert_eq!(Kind::of_form(Form::Account), [Kind::Ethereum]);
        assert!(Kind::of_form(Form::Contract { nonce: 0 }).is_empty());
    }
}
