//! Which address a text is, of all that are known: the text alone says the chain, the type and the network.
//!
//! For lists of millions of addresses, so each is decoded once; only what cannot be decoded is looked at again, for the
//! reason.

use bech32::primitives::decode::SegwitHrpstring;

use crate::bitcoin::{AddressType, Bitcoin, Network};
use crate::text::base58;
use crate::{Digest, Error, Target, ethereum};

/// An address of some chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Bitcoin address that a single key may have. A P2SH address may be that of another script, and a P2PKH address
    /// does not say whether its key is compressed: it is told as [`AddressType::P2pkh`].
    Bitcoin(Bitcoin, Digest),
    /// An Ethereum account or contract.
    Ethereum(Digest),
    /// A valid address that no single key has, with the reason.
    Script(&'static str),
}

/// The ways addresses begin.
const HEADS: &str = "1, 3, bc1 or 0x (or m, n, 2 or tb1 on a test network)";

/// The address of a text. What is wrong with a text that is none is said as exactly as its beginning allows.
pub fn identify(text: &str) -> Result<Address, Error> {
    let begins = |head: &str| {
        text.as_bytes().get(..head.len()).is_some_and(|start| start.eq_ignore_ascii_case(head.as_bytes()))
    };
    if begins("0x") {
        return ethereum::Account.decode(text).map(Address::Ethereum);
    }
    for (network, head) in [(Network::Main, "bc1"), (Network::Test, "tb1")] {
        if begins(head) {
            return witness(text, network);
        }
    }
    base58(text)
}

fn base58(text: &str) -> Result<Address, Error> {
    if let Some(payload) = base58::address_payload(text) {
        let [version, hash @ ..] = payload;
        let digest = Digest::new(&hash);
        let found = [AddressType::P2pkh, AddressType::P2sh].into_iter().find_map(|address_type| {
            let on = |network| Bitcoin { address_type, network };
            Network::ALL.into_iter().map(on).find(|target| target.base58_version() == Some(version))
        });
        let unknown = Error::Prefix { given: None, expected: HEADS };
        return found.map(|target| Address::Bitcoin(target, digest)).ok_or(unknown);
    }
    // Not 25 bytes with a checksum that fits: the decoder says what they are instead.
    let known = text.starts_with(['1', '3', 'm', 'n', '2']);
    match Bitcoin::main(AddressType::P2pkh).decode(text) {
        Err(error @ Error::Secret { .. }) => Err(error),
        Err(error) if known => Err(error),
        _ => Err(Error::Prefix { given: None, expected: HEADS }),
    }
}

fn witness(text: &str, network: Network) -> Result<Address, Error> {
    let Ok(parsed) = SegwitHrpstring::new(text) else {
        let is_taproot = text.as_bytes().get(3).is_some_and(|version| version.eq_ignore_ascii_case(&b'p'));
        let address_type = if is_taproot { AddressType::P2tr } else { AddressType::P2wpkh };
        // Whatever it is, it is no address: where the decoder sees another length only, the crate saw more.
        return Err(Bitcoin { address_type, network }.decode(text).err().unwrap_or(Error::Checksum));
    };
    let mut program = [0; 40];
    let mut length = 0;
    for byte in parsed.byte_iter() {
        program[length] = byte;
        length += 1;
    }
    let address_type = match (parsed.witness_version().to_u8(), length) {
        (0, 20) => AddressType::P2wpkh,
        (0, _) => return Ok(Address::Script("a P2WSH address is the hash of a script")),
        (1, 32) => AddressType::P2tr,
        (1, _) => return Ok(Address::Script("a witness program of version 1 that is no taproot output")),
        _ => return Ok(Address::Script("a witness program of a version without a meaning yet")),
    };
    Ok(Address::Bitcoin(Bitcoin { address_type, network }, Digest::new(&program[..length])))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_of_every_type_are_told_by_their_text() {
        for target in Bitcoin::all() {
            let length = if target.is_taproot() { 32 } else { 20 };
            for fill in [0, 1, 0x7f, 0xff] {
                let digest = Digest::new(&vec![fill; length]);
                let text = target.encode(&digest);
                let Ok(Address::Bitcoin(found, same)) = identify(&text) else { panic!("{text}") };
                assert_eq!((found.network, same), (target.network, digest), "{text}");
                assert_eq!(found.encode(&digest), text);
                let told = match target.address_type {
                    AddressType::P2pkhUncompressed => AddressType::P2pkh,
                    AddressType::Rawtr => AddressType::P2tr,
                    other => other,
                };
                assert_eq!(found.address_type, told);
            }
        }
        let account = Digest::new(&[0xca; 20]);
        let text = ethereum::Account.encode(&account);
        assert_eq!(identify(&text), Ok(Address::Ethereum(account)));
        assert_eq!(identify(&text.to_lowercase()), Ok(Address::Ethereum(account)));
    }

    /// BIP-173 and BIP-350 list these among valid addresses.
    #[test]
    fn addresses_that_no_key_has_are_told_apart() {
        for text in [
            "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3",
            "tb1qqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesrxh6hy",
            "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y",
            "BC1SW50QGDZ25J",
            "bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs",
        ] {
            assert!(matches!(identify(text), Ok(Address::Script(_))), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_told_why() {
        let error = |text: &str| identify(text).unwrap_err();
        assert_eq!(error("1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3"), Error::Checksum);
        assert_eq!(error("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5"), Error::Checksum);
        assert!(matches!(error("1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN0"), Error::Character { position: 34, .. }));
        assert!(matches!(error("1BvBMSEY"), Error::Lengths { .. }));
        assert!(matches!(error("0x1234"), Error::Length { .. }));
        for text in [
            "",
            "hello",
            "LVg2kJoFNg45Nbpy53h7Fe1wKyeXVRhMH9",
            "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7k3k4sj5",
        ] {
            assert!(matches!(error(text), Error::Prefix { .. }), "{text}");
        }
        // A key is never repeated in a message.
        let wif = "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ";
        assert!(matches!(error(wif), Error::Secret { .. }));
        assert!(matches!(error(&"ab".repeat(32)), Error::Secret { .. }));
    }

    proptest! {
        /// For any text: what the decoder of a type reads is told as that type, and nothing else is.
        #[test]
        fn identifying_agrees_with_decoding(
            hash in any::<[u8; 32]>(), zeros in 0..4usize, target in 0..12usize, at in any::<prop::sample::Index>(), with in "[ -~]",
        ) {
            let target = Bitcoin::all().nth(target).unwrap();
            let mut hash = hash;
            hash[..zeros].fill(0);
            let digest = Digest::new(&hash[..if target.is_taproot() { 32 } else { 20 }]);
            let mut text = target.encode(&digest);
            for _ in 0..2 {
                let decoded: Vec<_> = Bitcoin::all().filter_map(|target| target.decode(&text).ok()).collect();
                match identify(&text) {
                    Ok(Address::Bitcoin(_, digest)) => prop_assert!(decoded.contains(&digest)),
                    _ => prop_assert!(decoded.is_empty(), "{}", text),
                }
                let at = at.index(text.len());
                text.replace_range(at..=at, &with);
            }
        }

        #[test]
        fn any_text_gets_an_answer(text in "\\PC{0,90}") {
            let _ = identify(&text);
        }
    }
}
