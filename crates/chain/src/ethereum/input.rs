//! What a person gives beside an address: hashes, init code, the layout of a salt.

use warpsmith_text::Shown;

use super::{Address, decode};

use crate::Error;

/// A given text or file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// Not 32 bytes of hex.
    #[error("a hash has 64 hex digits, with or without 0x before them; this has {given} characters{}", if *.is_hex { "" } else { ", not all of them hex digits" })]
    Hash {
        /// How many characters follow the 0x.
        given: usize,
        /// Whether all of them are digits.
        is_hex: bool,
    },
    /// No salt of the factory's type.
    #[error("'{}' is no salt: write 64 hex digits, or as the factory takes it, {of}: {why}", Shown(.text))]
    Salt {
        /// What was given.
        text: String,
        /// The type.
        of: String,
        /// What is wrong.
        why: String,
    },
    /// A layout that is not known.
    #[error(
        "a salt layout is written caller:0x.. with the address of the account that will call the factory"
    )]
    Layout,
    /// A layout with a wrong address.
    #[error("the caller's address cannot be read: {0}")]
    Caller(Error),
    /// Nothing in the file.
    #[error("it is empty; give the contract's creation code, or 0x if it really has none")]
    NoCode,
    /// Text that is not hex.
    #[error(
        "it is text but not hex digits (character {position}); give the creation code alone, in hex or binary, with \
         libraries linked and constructor arguments appended"
    )]
    Code {
        /// Where the first other character stands, counted from 1 after 0x.
        position: usize,
    },
    /// Text of two bytes a character.
    #[error(
        "it is text in UTF-16, as PowerShell's > writes it; save it as UTF-8 (`| Out-File -Encoding ascii`)"
    )]
    Wide,
    /// Half a byte.
    #[error("it has an odd number of hex digits ({digits}), so something is missing")]
    OddCode {
        /// How many.
        digits: usize,
    },
}

/// Reads a hash: 64 hex digits, with or without `0x`.
pub fn parse_hash(text: &str) -> Result<[u8; 32], InputError> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let wrong = InputError::Hash { given: digits.chars().count(), is_hex };
    if !is_hex {
        return Err(wrong);
    }
    bytes(digits.as_bytes()).try_into().ok().filter(|_| digits.len() == 64).ok_or(wrong)
}

/// Reads a salt layout, `caller:0x..`: the account that will call the factory.
pub fn parse_layout(text: &str) -> Result<Address, InputError> {
    decode(text.strip_prefix("caller:").ok_or(InputError::Layout)?).map_err(InputError::Caller)
}

/// What some editors put before UTF-8. No code begins so: EF is no instruction.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The init code in a file: hex digits, with or without `0x` and white space around them, or the bytes
/// themselves. Init code that is all printable text does not occur, so text that is not hex is a mistake.
pub fn read_init_code(file: &[u8]) -> Result<Vec<u8>, InputError> {
    let file = file.strip_prefix(BYTE_ORDER_MARK).unwrap_or(file);
    // As some shells write whatever is sent to a file. No code begins so: FE is no instruction, and FF has nothing to work on.
    if file.starts_with(b"\xff\xfe") || file.starts_with(b"\xfe\xff") {
        return Err(InputError::Wide);
    }
    let is_text = file.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    if !is_text {
        return Ok(file.to_vec());
    }
    let text = file.trim_ascii();
    if text.is_empty() {
        return Err(InputError::NoCode);
    }
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if let Some(index) = digits.iter().position(|byte| !byte.is_ascii_hexdigit()) {
        return Err(InputError::Code { position: index + 1 });
    }
    if digits.len() % 2 == 1 {
        return Err(InputError::OddCode { digits: digits.len() });
    }
    Ok(bytes(digits))
}

/// Pairs of hex digits as bytes.
fn bytes(digits: &[u8]) -> Vec<u8> {
    let value = |digit: &u8| char::from(*digit).to_digit(16).map_or(0, |value| value as u8);
    digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | value(digit))).collect()
}
