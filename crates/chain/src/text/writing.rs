//! How a chain writes digests down: the one place where the text of an address is made and read.
//!
//! Plain data, so that rows of a table can hold it. Base58 is this crate's own; the `bech32` crate writes and reads what is
//! of that family, so that it and the encoding that patterns reason about test each other.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use bech32::primitives::decode::{CheckedHrpstring, SegwitHrpstring, UncheckedHrpstring};
use bech32::{Bech32, Bech32m, Hrp};

use super::bech32 as linear;
use super::{Base58, Encoding, base58, cashaddr};
use crate::{Digest, Error};

/// How a digest is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writing {
    /// Base58 of a version, 20 bytes and a checksum.
    Base58 {
        /// The version.
        version: u8,
        /// What texts begin with, in words: `1`, or `m or n`.
        head: &'static str,
    },
    /// A witness program in bech32 (BIP-173) or, from version 1 on, bech32m (BIP-350).
    Segwit {
        /// The human-readable part and the version's symbol: `bc1q`. Patterns are written with it.
        start: &'static str,
        /// Bytes of the program.
        bytes: usize,
    },
    /// 20 bytes in bech32 (BIP-173) under a prefix.
    Bech32 {
        /// The prefix and the separator: `cosmos1`. Patterns leave it out.
        head: &'static str,
    },
    /// Cashaddr of a hashed key.
    CashAddr {
        /// The prefix, its colon and the first symbol: `bitcoincash:q`. Patterns are written from that symbol on.
        start: &'static str,
    },
}

impl Writing {
    /// Witness programs of version 0 that hold a hash of 20 bytes.
    pub const fn segwit_v0(start: &'static str) -> Self {
        Self::Segwit { start, bytes: 20 }
    }

    /// Witness programs of version 1, taproot outputs.
    pub const fn segwit_v1(start: &'static str) -> Self {
        Self::Segwit { start, bytes: 32 }
    }

    /// What texts begin with, in words.
    pub const fn head(&self) -> &'static str {
        match self {
            Self::Base58 { head, .. } | Self::Bech32 { head } => head,
            Self::Segwit { start, .. } | Self::CashAddr { start } => start,
        }
    }

    /// Each way that texts begin: `m` and `n` of `m or n`.
    pub fn heads(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.head().split(" or ")
    }

    /// The encoding, for patterns to reason about. Made once for each writing and kept.
    pub fn encoding(&self) -> &'static Encoding {
        static MADE: LazyLock<Mutex<HashMap<Writing, &'static Encoding>>> = LazyLock::new(Mutex::default);
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        made.entry(*self).or_insert_with(|| {
            Box::leak(Box::new(match *self {
                Self::Base58 { version, .. } => Encoding::Base58(Base58::new(version)),
                Self::Segwit { start, bytes } => Encoding::Linear(linear::segwit(start, bytes)),
                Self::Bech32 { head } => Encoding::Linear(linear::linear(head, 20)),
                Self::CashAddr { start } => Encoding::Linear(cashaddr::linear(start)),
            }))
        })
    }

    /// The text of a digest.
    pub fn encode(&self, digest: &Digest) -> String {
        match *self {
            Self::Base58 { version, .. } => {
                debug_assert_eq!(digest.as_bytes().len(), 20);
                let mut text = String::new();
                base58::push_checked(&mut text, &[&[version], digest.as_bytes()].concat());
                text
            }
            Self::Segwit { start, .. } => {
                let hrp = start.split_once('1').map_or(start, |(hrp, _)| hrp);
                let hrp = Hrp::parse(hrp).expect("the prefixes are valid");
                let text = match start.ends_with('q') {
                    true => bech32::segwit::encode_v0(hrp, digest.as_bytes()),
                    false => bech32::segwit::encode_v1(hrp, digest.as_bytes()),
                };
                text.expect("a digest has the length of a witness program")
            }
            Self::Bech32 { head } => {
                let hrp = Hrp::parse(head.trim_end_matches('1')).expect("the prefixes are valid");
                bech32::encode::<Bech32>(hrp, digest.as_bytes()).expect("20 bytes fit")
            }
            Self::CashAddr { start } => cashaddr::encode(start, digest),
        }
    }

    /// The digest of a text that [`Writing::encode`] could have written, in upper or lower case where both are allowed.
    pub fn decode(&self, text: &str) -> Result<Digest, Error> {
        match *self {
            Self::Base58 { version, head } => decode_base58(text, version, head),
            Self::Segwit { start, bytes } => decode_segwit(text, start, bytes),
            Self::Bech32 { head } => decode_bech32(text, head),
            Self::CashAddr { start } => cashaddr::decode(start, text),
        }
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

fn decode_segwit(text: &str, start: &'static str, bytes: usize) -> Result<Digest, Error> {
    check_symbols(text, start, start.len() + (bytes * 8).div_ceil(5) + linear::CHECKSUM)?;
    let fits = UncheckedHrpstring::new(text).is_ok_and(|parsed| match start.ends_with('q') {
        true => parsed.has_valid_checksum::<Bech32>(),
        false => parsed.has_valid_checksum::<Bech32m>(),
    });
    if !fits {
        return Err(Error::Checksum);
    }
    // What can still be wrong are the bits that fill up the last symbol before the checksum.
    let padding = Error::Padding { position: text.len() - linear::CHECKSUM };
    let parsed = SegwitHrpstring::new(text).map_err(|_| padding)?;
    Ok(collect(parsed.byte_iter()))
}

fn decode_bech32(text: &str, head: &'static str) -> Result<Digest, Error> {
    // 160 bits are a whole number of symbols: nothing fills up the last.
    check_symbols(text, head, head.len() + 32 + linear::CHECKSUM)?;
    let read = CheckedHrpstring::new::<Bech32>(text).map_err(|_| Error::Checksum)?;
    Ok(collect(read.byte_iter()))
}

/// Looks at what every text of bech32's family has: how it begins, one case, its characters, and so many of them.
fn check_symbols(text: &str, start: &'static str, wanted: usize) -> Result<(), Error> {
    let begins = text.as_bytes().get(..start.len()).is_some_and(|s| s.eq_ignore_ascii_case(start.as_bytes()));
    if !begins {
        return Err(Error::Prefix { given: None, expected: start });
    }
    check_body(text, start.len(), start, wanted)
}

/// The same without the beginning: one case, characters of bech32 from `from` on, and so many in all.
pub(super) fn check_body(text: &str, from: usize, start: &'static str, wanted: usize) -> Result<(), Error> {
    if text.bytes().any(|c| c.is_ascii_lowercase()) && text.bytes().any(|c| c.is_ascii_uppercase()) {
        return Err(Error::MixedCase);
    }
    for (index, character) in text.chars().enumerate().skip(from) {
        if !linear::ALPHABET.contains(character.to_ascii_lowercase()) {
            let (position, alphabet) = (index + 1, linear::ALPHABET);
            return Err(Error::Character { character, position, head: start, alphabet });
        }
    }
    if text.len() != wanted {
        return Err(Error::Length { given: text.len(), wanted, expected: "address" });
    }
    Ok(())
}

/// At most 32 bytes as a digest.
fn collect(bytes: impl Iterator<Item = u8>) -> Digest {
    let mut all = [0; Digest::MAX];
    let mut length = 0;
    for (to, byte) in all.iter_mut().zip(bytes) {
        *to = byte;
        length += 1;
    }
    Digest::new(&all[..length])
}
