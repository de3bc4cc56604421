//! Nostr keys as NIP-19 writes them: bech32 of 32 bytes, `npub` for the x coordinate, `nsec` for the secret.
//!
//! Knows prefixes, lengths and errors; the `bech32` crate does the encoding and the checksum. Vectors are in
//! `vectors.json`.

use std::sync::{Arc, LazyLock};

use bech32::primitives::decode::UncheckedHrpstring;
use bech32::{Bech32, Hrp};
use zeroize::Zeroizing;

use crate::text::bech32::{ALPHABET, CHECKSUM, linear};
use crate::{
    AddressKind, Birthday, Chain, Digest, Encoding, EncryptedForm, Error, Form, KeyTarget, Listed,
    PublicPoint, Target,
};

/// A NIP-19 `npub`: the x coordinate of a public key.
#[derive(Clone, Copy, Debug)]
pub struct Npub;

const PUBLIC: &str = "npub";
/// What an npub begins with.
pub(crate) const PUBLIC_HEAD: &str = "npub1";
const SECRET: &str = "nsec";

/// How to give a client the key.
const USE: &str = "a Nostr signer or client imports the nsec where it asks for a private key; one that takes NIP-49 imports \
                   an encrypted key";

/// Symbols that hold the 32 bytes; the last carries one bit of them and four of padding.
const DATA: usize = 52;

/// Characters of an npub or nsec: prefix, separator, data, checksum.
const LENGTH: usize = PUBLIC.len() + 1 + DATA + CHECKSUM;

/// Prefixes of other NIP-19 texts, to say what was given instead.
const OTHERS: &[&str] = &[PUBLIC, SECRET, "note", "nprofile", "nevent", "naddr", "nrelay", "ncryptsec"];

static ENCODING: LazyLock<Encoding> = LazyLock::new(|| Encoding::Linear(linear("npub1", 32)));

/// The chain's row.
pub(crate) fn chain() -> Chain {
    Chain {
        name: "npub",
        title: "Nostr",
        sought: "Nostr key whose npub looks as you like".to_owned(),
        example: "cafe",
        shows: "the npub and its private key (nsec and hex)",
        coin: None,
        addresses: vec![Listed {
            target: Arc::new(Npub),
            network: None,
            writing: None,
            kind: Some(AddressKind::NPUB),
        }],
        of_address: None,
    }
}

impl Target for Npub {
    fn name(&self) -> &'static str {
        "npub"
    }

    fn encoding(&self) -> &'static Encoding {
        &ENCODING
    }

    fn encode(&self, digest: &Digest) -> String {
        debug_assert_eq!(digest.as_bytes().len(), 32);
        let mut text = String::with_capacity(LENGTH);
        write_bech32(PUBLIC, digest.as_bytes(), &mut text);
        text
    }

    fn decode(&self, text: &str) -> Result<Digest, Error> {
        let mut bytes = [0; 32];
        read_bech32(PUBLIC, text, &mut bytes)?;
        Ok(Digest::new(&bytes))
    }
}

impl KeyTarget for Npub {
    fn form(&self) -> Form {
        Form::X
    }

    fn export(&self, secret: &[u8; 32]) -> Zeroizing<String> {
        // SEC: the capacity is enough, so the string never moves and leaves no copy behind.
        let mut text = Zeroizing::new(String::with_capacity(LENGTH));
        write_bech32(SECRET, secret, &mut text);
        text
    }

    fn encrypted_form(&self) -> Option<EncryptedForm> {
        Some(EncryptedForm::Ncryptsec)
    }

    fn explain(
        &self,
        _: &PublicPoint,
        secret: Option<&[u8; 32]>,
        _: Birthday,
    ) -> Vec<(&'static str, Zeroizing<String>)> {
        secret.map(|_| ("use", Zeroizing::new(USE.to_owned()))).into_iter().collect()
    }
}

/// The secret key of an `nsec`. Whether it is a valid scalar is for the curve to say.
pub fn decode_secret(text: &str) -> Result<Zeroizing<[u8; 32]>, Error> {
    let mut bytes = Zeroizing::new([0; 32]);
    read_bech32(SECRET, text, &mut bytes)?;
    Ok(bytes)
}

fn write_bech32(hrp: &'static str, bytes: &[u8], text: &mut String) {
    let hrp = Hrp::parse(hrp).expect("the prefixes are valid");
    bech32::encode_lower_to_fmt::<Bech32, _>(text, hrp, bytes).expect("32 bytes fit and a string takes them");
}

/// What a text with this prefix begins with.
fn head(prefix: &str) -> &'static str {
    if prefix == SECRET { "nsec1" } else { "npub1" }
}

/// Decodes into `bytes`, which are written only when everything about the text is right.
fn read_bech32(expected: &'static str, text: &str, bytes: &mut [u8; 32]) -> Result<(), Error> {
    let begins = |prefix: &str| {
        let found = text.as_bytes().get(..prefix.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(prefix.as_bytes()))
            && text.as_bytes().get(prefix.len()) == Some(&b'1')
    };
    if !begins(expected) {
        if begins(SECRET) {
            return Err(Error::Secret { given: SECRET, expected });
        }
        let given = OTHERS.iter().find(|prefix| begins(prefix)).map(|prefix| format!("{prefix}1"));
        return Err(Error::Prefix { given, expected: head(expected) });
    }
    if text.bytes().any(|c| c.is_ascii_lowercase()) && text.bytes().any(|c| c.is_ascii_uppercase()) {
        return Err(Error::MixedCase);
    }
    for (index, character) in text.chars().enumerate().skip(expected.len() + 1) {
        if !ALPHABET.contains(character.to_ascii_lowercase()) {
            let (position, head) = (index + 1, head(expected));
            return Err(Error::Character { character, position, head, alphabet: ALPHABET });
        }
    }
    // From here on the text is ASCII, so bytes are characters.
    if text.len() != LENGTH {
        return Err(Error::Length { given: text.len(), wanted: LENGTH, expected });
    }
    let checked = UncheckedHrpstring::new(text)
        .ok()
        .and_then(|parsed| parsed.validate_and_remove_checksum::<Bech32>().ok())
        .ok_or(Error::Checksum)?;
    let last = checked.fe32_iter().last().map_or(0, |symbol| symbol.to_u8());
    if last & 0b1111 != 0 {
        return Err(Error::Padding { position: expected.len() + 1 + DATA });
    }
    for (to, from) in bytes.iter_mut().zip(checked.byte_iter()) {
        *to = from;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
