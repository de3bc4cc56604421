//! The text of an address: `0x` and 40 hex digits, whose letters are in upper case where a hash of the text in lower
//! case says so (EIP-55). Reads all lower case and all upper case too, which carry no checksum.

use super::{Address, keccak256};
use crate::text::hex::{ALPHABET, push_hex};
use crate::{Digest, Error};

pub(crate) const HEAD: &str = "0x";

/// Hex digits of an address, and of a secret key.
const DIGITS: usize = 40;
const SECRET_DIGITS: usize = 64;

/// The text of an address.
pub fn encode(address: &Address) -> String {
    let mut text = String::with_capacity(HEAD.len() + DIGITS);
    text.push_str(HEAD);
    push_hex(&mut text, address);
    let hash = keccak256(&text.as_bytes()[HEAD.len()..]);
    let nibble = |index: usize| hash[index / 2] >> (4 * (1 - index % 2)) & 15;
    let cased = |(index, character): (usize, char)| match index.checked_sub(HEAD.len()) {
        Some(index) if nibble(index) >= 8 => character.to_ascii_uppercase(),
        _ => character,
    };
    text.char_indices().map(cased).collect()
}

/// The address of a text. Where letters of both cases occur, they must be as [`encode`] writes them.
pub fn decode(text: &str) -> Result<Address, Error> {
    let body = text.strip_prefix(HEAD).or_else(|| text.strip_prefix("0X"));
    let digits = body.unwrap_or(text);
    // SEC: a key pasted in the wrong place is told from a mistyped address by its length.
    if digits.len() == SECRET_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Error::Secret { given: "64 hex digits", expected: "address" });
    }
    let Some(body) = body else {
        return Err(Error::Prefix { given: None, expected: "0x and has 40 hex digits behind it" });
    };
    for (index, character) in body.chars().enumerate() {
        if !character.is_ascii_hexdigit() {
            let position = HEAD.len() + index + 1;
            return Err(Error::Character { character, position, head: HEAD, alphabet: ALPHABET });
        }
    }
    // From here on the text is ASCII, so bytes are characters.
    if body.len() != DIGITS {
        let (given, wanted) = (HEAD.len() + body.len(), HEAD.len() + DIGITS);
        return Err(Error::Length { given, wanted, expected: "address" });
    }
    let mut address = [0; 20];
    for (byte, pair) in address.iter_mut().zip(body.as_bytes().chunks_exact(2)) {
        *byte = pair.iter().fold(0, |byte, &digit| byte << 4 | value(digit));
    }
    let has = |test: fn(&u8) -> bool| body.as_bytes().iter().any(test);
    if has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) {
        let right = encode(&address);
        if let Some(index) =
            body.bytes().zip(right[HEAD.len()..].bytes()).position(|(given, right)| given != right)
        {
            return Err(Error::CaseChecksum { position: HEAD.len() + index + 1 });
        }
    }
    Ok(address)
}

/// [`encode`] and [`decode`] for digests.
pub(super) fn encode_digest(digest: &Digest) -> String {
    encode(digest.as_bytes().try_into().expect("the digest of an address has 20 bytes"))
}

pub(super) fn decode_digest(text: &str) -> Result<Digest, Error> {
    decode(text).map(|address| Digest::new(&address))
}

fn value(digit: u8) -> u8 {
    char::from(digit).to_digit(16).map_or(0, |value| value as u8)
}
