//! Which address a text is, of all that are known: the text alone says the chain, the type and the network.
//!
//! For lists of millions of addresses, so each is decoded once; only what cannot be decoded is looked at again, for the
//! reason. What is known follows from the table of chains.

use std::sync::LazyLock;

use ::bech32::primitives::decode::SegwitHrpstring;
use warpsmith_text::any_of;

use crate::coin::{COINS, Network, looks_secret};
use crate::cosmos::{self, Told};
use crate::text::{Writing, base58, bech32, cashaddr};
use crate::{AddressKind, CHAINS, Digest, Error, Listed, Target, ethereum, nostr};

/// An address of some chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address that a single key may have. A hash of a script may be that of another script, and the hash of a key does
    /// not say whether the key is compressed.
    Key(AddressKind, Digest),
    /// A valid address that no single key has, with the reason.
    Script(&'static str),
}

/// What stands before a bare hash.
pub(crate) const BARE: &str = "hash160:";

/// What texts begin with, by their writing.
struct Known {
    /// For each version of base58 the row that is written so.
    base58: [Option<&'static Listed>; 256],
    /// Versions of hashed scripts, for coins that have none of a single key.
    scripts: Vec<u8>,
    /// Human-readable part and separator, with the rows of witness versions 0 and 1.
    segwit: Vec<(&'static str, [&'static Listed; 2])>,
    /// Rows in cashaddr.
    cashaddr: Vec<&'static Listed>,
    /// The ways addresses begin, in words.
    heads: String,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let mut known = Known {
        base58: [None; 256],
        scripts: Vec::new(),
        segwit: Vec::new(),
        cashaddr: Vec::new(),
        heads: String::new(),
    };
    let mut heads: [Vec<&str>; 2] = [Vec::new(), vec![]];
    let rows = || CHAINS.iter().flat_map(|chain| &chain.addresses);
    for row in rows() {
        let on = &mut heads[usize::from(row.network == Some(Network::Test))];
        let mut add = |head: &'static str| {
            if !on.contains(&head) {
                on.push(head);
            }
        };
        match row.writing {
            Some(writing @ Writing::Base58 { version, .. }) => {
                // Of rows that write alike the first is meant.
                known.base58[usize::from(version)].get_or_insert(row);
                writing.heads().for_each(add);
            }
            Some(Writing::Segwit { start, .. }) => {
                let hrp = &start[..start.len() - 1];
                add(hrp);
                if known.segwit.iter().all(|(other, _)| *other != hrp) {
                    known.segwit.push((hrp, [row; 2]));
                } else if let Some((_, [v0, v1])) = known.segwit.iter_mut().find(|(other, _)| *other == hrp)
                    && v0.writing == v1.writing
                {
                    *v1 = row;
                }
            }
            Some(Writing::Bech32 { head }) => add(head),
            Some(Writing::CashAddr { start }) => {
                add(start);
                known.cashaddr.push(row);
            }
            None => {}
        }
    }
    for params in COINS.iter().flat_map(|coin| &coin.networks) {
        if let Some(Writing::Base58 { version, .. }) = params.p2sh
            && known.base58[usize::from(version)].is_none()
        {
            known.scripts.push(version);
        }
    }
    let [mut main, test] = heads;
    main.push(ethereum::HEAD);
    main.push(nostr::PUBLIC_HEAD);
    main.push(BARE);
    known.heads = format!("{} (or {} on a test network)", any_of(&main), any_of(&test));
    known
});

fn unknown() -> Error {
    Error::Prefix { given: None, expected: KNOWN.heads.as_str() }
}

/// The address of a text. What is wrong with a text that is none is said as exactly as its beginning allows.
pub fn identify(text: &str) -> Result<Address, Error> {
    let begins = |head: &str| {
        text.as_bytes().get(..head.len()).is_some_and(|start| start.eq_ignore_ascii_case(head.as_bytes()))
    };
    if begins(ethereum::HEAD) {
        return ethereum::Account.decode(text).map(|digest| Address::Key(AddressKind::ETHEREUM, digest));
    }
    if begins(BARE) {
        return bare(&text[BARE.len()..]).map(|digest| Address::Key(AddressKind::HASH160, digest));
    }
    if begins(nostr::PUBLIC_HEAD) {
        return nostr::Npub.decode(text).map(|digest| Address::Key(AddressKind::NPUB, digest));
    }
    if let Some(told) = public_key(text) {
        return told;
    }
    // Before the heads of bech32, which upper case does not tell from base58: `TB1...` may be Tron's, `LTC1...` Litecoin's.
    if let Some(payload) = base58::address_payload(text) {
        return of_payload(payload);
    }
    if let Some((_, rows)) = KNOWN.segwit.iter().find(|(hrp, _)| begins(hrp)) {
        return witness(text, *rows);
    }
    if let Some(told) = cosmos::tell(text) {
        return match told {
            Told::Account(digest) => Ok(Address::Key(AddressKind::COSMOS, digest)),
            Told::Wrong => Err(Error::Checksum),
        };
    }
    if let Some(told) = cash(text, begins) {
        return told;
    }
    Err(no_base58(text))
}

/// The x coordinate of a public key in hexadecimal digits, compressed or not, by which alone keys are told; none where it does not look
/// like one.
fn public_key(text: &str) -> Option<Result<Address, Error>> {
    let looks = match text.len() {
        66 => text.starts_with("02") || text.starts_with("03"),
        130 => text.starts_with("04"),
        _ => false,
    };
    if !looks || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let bytes = hex_bytes(text);
    let key = secp256k1::PublicKey::from_slice(&bytes).map_err(|_| Error::NoPoint);
    Some(key.map(|_| Address::Key(AddressKind::NPUB, Digest::new(&bytes[1..33]))))
}

/// The bytes of hexadecimal digits.
fn hex_bytes(digits: &str) -> Vec<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16).map_or(0, |value| value as u8);
    digits.as_bytes().chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}

/// The address of a text that is or looks like cashaddr. Its prefix may be left out: then 42 characters of bech32 are left, and
/// the checksum tells the network.
fn cash(text: &str, begins: impl Fn(&str) -> bool) -> Option<Result<Address, Error>> {
    let head = |row: &Listed| row.writing.map_or("", |writing| writing.head().trim_end_matches('q'));
    let is_symbol = |byte: u8| bech32::ALPHABET.as_bytes().contains(&byte.to_ascii_lowercase());
    let is_bare = text.len() == cashaddr::BODY && text.bytes().all(is_symbol);
    let named = KNOWN.cashaddr.iter().find(|row| begins(head(row)));
    let rows: Vec<&Listed> = match named {
        Some(row) => vec![row],
        None if is_bare => KNOWN.cashaddr.clone(),
        None => return None,
    };
    let body = named.map_or(text, |row| &text[head(row).len()..]);
    let fits = |row: &&Listed| row.writing.is_some_and(|w| cashaddr::checked(w.head(), body).is_some());
    if body.starts_with(['p', 'P']) && rows.iter().any(fits) {
        return Some(Ok(Address::Script("the hash of a script, in cashaddr")));
    }
    let found = rows.iter().find_map(|row| Some(key(row, row.target.decode(text).ok()?)));
    found.or_else(|| rows.first().map(|row| Err(row.target.decode(text).err().unwrap_or_else(unknown))))
}

/// A row's address with this digest.
fn key(row: &Listed, digest: Digest) -> Result<Address, Error> {
    row.kind.map(|kind| Address::Key(kind, digest)).ok_or_else(unknown)
}

/// The bytes of a bare hash.
fn bare(digits: &str) -> Result<Digest, Error> {
    for (index, character) in digits.chars().enumerate() {
        if !character.is_ascii_hexdigit() {
            let (position, alphabet) = (BARE.len() + index + 1, crate::text::hex::ALPHABET);
            return Err(Error::Character { character, position, head: BARE, alphabet });
        }
    }
    let (given, wanted) = (BARE.len() + digits.len(), BARE.len() + 40);
    if given != wanted {
        return Err(Error::Length { given, wanted, expected: "address as hash160: and 40 hex digits" });
    }
    Ok(Digest::new(&hex_bytes(digits)))
}

/// The address of a version and a hash.
fn of_payload([version, hash @ ..]: [u8; 21]) -> Result<Address, Error> {
    if KNOWN.scripts.contains(&version) {
        return Ok(Address::Script("the hash of a script, on a chain without witness programs"));
    }
    key(KNOWN.base58[usize::from(version)].ok_or_else(unknown)?, Digest::new(&hash))
}

/// Why a text is not 25 bytes with a checksum that fits: a decoder says what it is instead.
fn no_base58(text: &str) -> Error {
    if let Some(given) = looks_secret(text) {
        return Error::Secret { given, expected: "address" };
    }
    let begins = |row: &&Listed| row.writing.is_some_and(|w| w.heads().any(|head| text.starts_with(head)));
    let row = KNOWN.base58.iter().flatten().copied().find(begins);
    row.and_then(|row| row.target.decode(text).err()).unwrap_or_else(unknown)
}

fn witness(text: &str, [v0, v1]: [&'static Listed; 2]) -> Result<Address, Error> {
    let Ok(parsed) = SegwitHrpstring::new(text) else {
        let begins_like = |row: &Listed| {
            let start = row.writing.map_or("", |writing| writing.head());
            text.as_bytes()
                .get(..start.len())
                .is_some_and(|given| given.eq_ignore_ascii_case(start.as_bytes()))
        };
        // Whatever it is, it is no address: where the decoder sees another length only, the crate saw more.
        let row = if begins_like(v1) { v1 } else { v0 };
        return Err(row.target.decode(text).err().unwrap_or(Error::Checksum));
    };
    let mut program = [0; 40];
    let mut length = 0;
    for byte in parsed.byte_iter() {
        program[length] = byte;
        length += 1;
    }
    let row = match (parsed.witness_version().to_u8(), length) {
        (0, 20) => v0,
        (0, _) => return Ok(Address::Script("a P2WSH address is the hash of a script")),
        (1, 32) => v1,
        (1, _) => return Ok(Address::Script("a witness program of version 1 that is no taproot output")),
        _ => return Ok(Address::Script("a witness program of a version without a meaning yet")),
    };
    key(row, Digest::new(&program[..length]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    /// Generator and its opposite: the same x, in every way to write it.
    #[test]
    fn public_keys_are_told_by_x() {
        let x = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        let y = "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8";
        let npub = nostr::Npub.encode(&Digest::new(&hex_bytes(x)));
        let expected = Ok(Address::Key(AddressKind::NPUB, Digest::new(&hex_bytes(x))));
        for text in [format!("02{x}"), format!("03{}", x.to_uppercase()), format!("04{x}{y}"), npub] {
            assert_eq!(identify(&text), expected, "{text}");
        }
        // 5 is the x of no point, and with another y this is none.
        assert_eq!(identify(&format!("02{:064x}", 5)), Err(Error::NoPoint));
        assert_eq!(identify(&format!("04{x}{}", y.replace('8', "9"))), Err(Error::NoPoint));
        assert!(identify(&format!("05{x}")).is_err());
    }

    use super::*;
    use crate::TYPES;
    use crate::text::Base58;

    /// Every row's text is told as its kind.
    #[test]
    fn addresses_of_every_type_are_told_by_their_text() {
        for row in CHAINS.iter().flat_map(|chain| &chain.addresses) {
            let Some(kind) = row.kind else { continue };
            for fill in [0, 1, 0x7f, 0xff] {
                let digest = Digest::new(&vec![fill; kind.digest_bytes()]);
                let text = row.target.encode(&digest);
                let Ok(Address::Key(found, same)) = identify(&text) else { panic!("{text}") };
                assert_eq!((found.text(&same), found, same), (text, kind, digest));
            }
        }
        let account = Digest::new(&[0xca; 20]);
        let text = ethereum::Account.encode(&account);
        assert_eq!(identify(&text.to_lowercase()), Ok(Address::Key(AddressKind::ETHEREUM, account)));
        let bare = Address::Key(AddressKind::HASH160, account);
        assert_eq!(identify(&format!("hash160:{}", "ca".repeat(20))), Ok(bare));
        assert_eq!(identify(&format!("HASH160:{}", "CA".repeat(20))), Ok(bare));
    }

    /// Base58 that begins as bech32 in upper case does, as a few in 100,000 of these chains' addresses do.
    #[test]
    fn base58_is_told_from_bech32_in_upper_case() {
        for (chain, head) in [("tron", "TB1"), ("ltc", "LTC1")] {
            let row = &CHAINS.iter().find(|known| known.name == chain).unwrap().addresses[0];
            let Some(Writing::Base58 { version, .. }) = row.writing else { panic!("{chain}") };
            let digits: Vec<u8> = head.bytes().map(|character| base58::value(character).unwrap()).collect();
            let ranges = Base58::new(version).ranges(&digits);
            assert!(!ranges.is_empty(), "{head}");
            for [mut first, mut last] in ranges.iter().map(base58::Range::hashes) {
                // Within the range whatever the checksum is.
                (first[19], last[19]) = (0xff, 0);
                for hash in [first, last] {
                    let digest = Digest::new(&hash);
                    let text = row.target.encode(&digest);
                    assert!(text.starts_with(head), "{text}");
                    assert_eq!(identify(&text), Ok(Address::Key(row.kind.unwrap(), digest)), "{text}");
                }
            }
        }
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
            // Of Dogecoin Core's base58_keys_valid.json.
            "A7HRQk3GFCW2QasvdZxXuYj8kkQK5QrYLs",
            // Of the specification of cashaddr.
            "bitcoincash:ppm2qsznhks23z7629mms6s4cwef74vcwvn0h829pq",
            "pr6m7j9njldwwzlg9v7v53unlr4jkmx6eyvwc0uz5t",
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
        assert!(matches!(error("hash160:1234"), Error::Length { .. }));
        assert!(matches!(error("hash160:12x4"), Error::Character { position: 11, .. }));
        // The last is of a version that no chain here has.
        for text in [
            "",
            "hello",
            "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7k3k4sj5",
            "t1KstPVzcNEK4ZeauQ6cogoqxQBMDSiRnGr",
        ] {
            assert!(matches!(error(text), Error::Prefix { .. }), "{text}");
        }
        // A key is never repeated in a message.
        let wif = "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ";
        assert!(matches!(error(wif), Error::Secret { .. }));
        assert!(matches!(error(&"ab".repeat(32)), Error::Secret { .. }));
    }

    proptest! {
        /// For any text: what the decoder of a row reads is told as an address with that digest, and nothing else is.
        #[test]
        fn identifying_agrees_with_decoding(
            hash in any::<[u8; 32]>(), zeros in 0..4usize, row in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(), with in "[ -~]",
        ) {
            let kept: Vec<&Listed> =
                TYPES.iter().flat_map(|known| &known.on).copied().filter(|row| row.kind.is_some()).collect();
            let row = row.get(&kept);
            let mut hash = hash;
            hash[..zeros].fill(0);
            let digest = Digest::new(&hash[..row.target.form().bytes()]);
            let mut text = row.target.encode(&digest);
            for _ in 0..2 {
                let decoded: Vec<_> = kept.iter().filter_map(|row| row.target.decode(&text).ok()).collect();
                match identify(&text) {
                    Ok(Address::Key(_, digest)) => prop_assert!(decoded.contains(&digest)),
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
