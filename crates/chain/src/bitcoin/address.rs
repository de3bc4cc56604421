//! The text of an address: base58 with a version and a checksum, or bech32 of a witness program (BIP-173, BIP-350).
//!
//! The `bech32` crate writes and reads the latter, so that it and the encoding test each other.

use std::sync::LazyLock;

use bech32::Hrp;
use bech32::primitives::decode::{SegwitHrpstring, UncheckedHrpstring};
use bech32::{Bech32, Bech32m};

use super::{AddressType, Bitcoin, Network};
use crate::text::{Base58, base58, bech32 as bech32_layout};
use crate::{Digest, Encoding, Error};

/// How the addresses of a type and network are written.
enum Form {
    /// With this encoding, version and what texts begin with, in words.
    Base58(&'static LazyLock<Encoding>, u8, &'static str),
    /// With this encoding, prefix and start.
    Bech32(&'static LazyLock<Encoding>, &'static str, &'static str),
}

static PKH_MAIN: LazyLock<Encoding> = LazyLock::new(|| Encoding::Base58(Base58::new(0)));
static SH_MAIN: LazyLock<Encoding> = LazyLock::new(|| Encoding::Base58(Base58::new(5)));
static PKH_TEST: LazyLock<Encoding> = LazyLock::new(|| Encoding::Base58(Base58::new(111)));
static SH_TEST: LazyLock<Encoding> = LazyLock::new(|| Encoding::Base58(Base58::new(196)));
static WPKH_MAIN: LazyLock<Encoding> = LazyLock::new(|| Encoding::Linear(bech32_layout::segwit("bc1q", 20)));
static WPKH_TEST: LazyLock<Encoding> = LazyLock::new(|| Encoding::Linear(bech32_layout::segwit("tb1q", 20)));
static TR_MAIN: LazyLock<Encoding> = LazyLock::new(|| Encoding::Linear(bech32_layout::segwit("bc1p", 32)));
static TR_TEST: LazyLock<Encoding> = LazyLock::new(|| Encoding::Linear(bech32_layout::segwit("tb1p", 32)));

fn form(target: &Bitcoin) -> Form {
    use AddressType::{P2pkh, P2pkhUncompressed, P2sh, P2tr, P2wpkh, Rawtr};
    match (target.address_type, target.network) {
        (P2pkh | P2pkhUncompressed, Network::Main) => Form::Base58(&PKH_MAIN, 0, "1"),
        (P2pkh | P2pkhUncompressed, Network::Test) => Form::Base58(&PKH_TEST, 111, "m or n"),
        (P2sh, Network::Main) => Form::Base58(&SH_MAIN, 5, "3"),
        (P2sh, Network::Test) => Form::Base58(&SH_TEST, 196, "2"),
        (P2wpkh, Network::Main) => Form::Bech32(&WPKH_MAIN, "bc", "bc1q"),
        (P2wpkh, Network::Test) => Form::Bech32(&WPKH_TEST, "tb", "tb1q"),
        (P2tr | Rawtr, Network::Main) => Form::Bech32(&TR_MAIN, "bc", "bc1p"),
        (P2tr | Rawtr, Network::Test) => Form::Bech32(&TR_TEST, "tb", "tb1p"),
    }
}

/// What addresses begin with, in words.
pub(super) fn head(target: &Bitcoin) -> &'static str {
    match form(target) {
        Form::Base58(_, _, head) | Form::Bech32(_, _, head) => head,
    }
}

/// The version byte of base58 addresses.
pub(super) fn version(target: &Bitcoin) -> Option<u8> {
    match form(target) {
        Form::Base58(_, version, _) => Some(version),
        Form::Bech32(..) => None,
    }
}

pub(super) fn encoding(target: &Bitcoin) -> &'static Encoding {
    match form(target) {
        Form::Base58(encoding, ..) | Form::Bech32(encoding, ..) => encoding,
    }
}

pub(super) fn encode(target: &Bitcoin, digest: &Digest) -> String {
    match form(target) {
        Form::Base58(_, version, _) => {
            debug_assert_eq!(digest.as_bytes().len(), 20);
            let mut text = String::new();
            base58::push_checked(&mut text, &[&[version], digest.as_bytes()].concat());
            text
        }
        Form::Bech32(_, hrp, start) => {
            let hrp = Hrp::parse(hrp).expect("the prefixes are valid");
            let text = match start.ends_with('q') {
                true => bech32::segwit::encode_v0(hrp, digest.as_bytes()),
                false => bech32::segwit::encode_v1(hrp, digest.as_bytes()),
            };
            text.expect("a digest has the length of a witness program")
        }
    }
}

pub(super) fn decode(target: &Bitcoin, text: &str) -> Result<Digest, Error> {
    if let Some(given) = secret(text) {
        return Err(Error::Secret { given, expected: "address" });
    }
    match form(target) {
        Form::Base58(_, version, head) => decode_base58(text, version, head),
        Form::Bech32(encoding, _, start) => decode_bech32(text, encoding, start),
    }
}

fn decode_base58(text: &str, version: u8, head: &'static str) -> Result<Digest, Error> {
    for (index, character) in text.chars().enumerate() {
        if !base58::ALPHABET.contains(character) {
            let position = index + 1;
            return Err(Error::Character { character, position, head, alphabet: base58::ALPHABET });
        }
    }
    // 58^34 < 2^200: a number of 25 bytes has 35 digits at most, and with leading zero bytes 25 characters at least.
    const LENGTHS: std::ops::RangeInclusive<usize> = 25..=35;
    let wrong_length = Error::Lengths { given: text.len(), least: 26, most: 35 };
    if !LENGTHS.contains(&text.len()) {
        return Err(wrong_length);
    }
    let bytes = base58::bytes(text).ok_or(Error::Checksum)?;
    let payload = base58::checked_payload(&bytes).ok_or(Error::Checksum)?;
    match payload {
        [found, hash @ ..] if hash.len() == 20 && *found == version => Ok(Digest::new(hash)),
        [_, hash @ ..] if hash.len() == 20 => Err(Error::Prefix { given: None, expected: head }),
        _ => Err(wrong_length),
    }
}

fn decode_bech32(text: &str, encoding: &Encoding, start: &'static str) -> Result<Digest, Error> {
    let begins = text.as_bytes().get(..start.len()).is_some_and(|s| s.eq_ignore_ascii_case(start.as_bytes()));
    if !begins {
        return Err(Error::Prefix { given: None, expected: start });
    }
    if text.bytes().any(|c| c.is_ascii_lowercase()) && text.bytes().any(|c| c.is_ascii_uppercase()) {
        return Err(Error::MixedCase);
    }
    for (index, character) in text.chars().enumerate().skip(start.len()) {
        if !bech32_layout::ALPHABET.contains(character.to_ascii_lowercase()) {
            let (position, alphabet) = (index + 1, bech32_layout::ALPHABET);
            return Err(Error::Character { character, position, head: start, alphabet });
        }
    }
    let Encoding::Linear(linear) = encoding else { unreachable!("a bech32 address has a linear encoding") };
    let wanted = start.len() + linear.symbols.len();
    if text.len() != wanted {
        return Err(Error::Length { given: text.len(), wanted, expected: "address" });
    }
    let fits = UncheckedHrpstring::new(text).is_ok_and(|parsed| match start.ends_with('q') {
        true => parsed.has_valid_checksum::<Bech32>(),
        false => parsed.has_valid_checksum::<Bech32m>(),
    });
    if !fits {
        return Err(Error::Checksum);
    }
    // What can still be wrong are the bits that fill up the last symbol before the checksum.
    let padding = Error::Padding { position: wanted - bech32_layout::CHECKSUM };
    let parsed = SegwitHrpstring::new(text).map_err(|_| padding)?;
    let mut bytes = [0; 32];
    let mut length = 0;
    for byte in parsed.byte_iter() {
        bytes[length] = byte;
        length += 1;
    }
    Ok(Digest::new(&bytes[..length]))
}

/// What gives a text away as a private key or something that holds one, by its look alone.
pub(super) fn secret(text: &str) -> Option<&'static str> {
    let text = text.trim();
    let is_base58 = || text.bytes().all(|byte| base58::value(byte).is_some());
    let begins = |heads: &[&str]| heads.iter().any(|head| text.starts_with(head));
    match text.len() {
        64 if text.bytes().all(|byte| byte.is_ascii_hexdigit()) => Some("64 hex digits"),
        51 | 52 if begins(&["5", "K", "L", "9", "c"]) && is_base58() => Some("WIF"),
        58 if begins(&["6P"]) && is_base58() => Some("BIP-38"),
        100.. if begins(&["xprv", "yprv", "zprv", "tprv", "uprv", "vprv"]) => Some("extended private key"),
        _ => None,
    }
}
