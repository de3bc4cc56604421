//! Cashaddr, the addresses of Bitcoin Cash: a prefix and a colon, then symbols of five bits: a version byte, a hash of 20
//! bytes, and a checksum of 40 bits. The prefix is part of the checksum and may be left out.
//!
//! The first symbol is five zero bits of the version and so a `q` in every address of a key; a script's begins with `p`.
//! The second holds the other three bits and the hash's first two.

use super::bech32::ALPHABET;
use super::code::{self, WIDTH};
use super::{Linear, check_body};
use crate::{Digest, Error};

/// Symbols of checksum.
const CHECKSUM: usize = 8;

/// Bytes of the hash, bits of the version, and the symbols that hold both.
const HASH: usize = 20;
const VERSION: usize = 8;
const DATA: usize = (VERSION + HASH * 8).div_ceil(WIDTH);

/// What follows the colon: data and checksum.
pub const BODY: usize = DATA + CHECKSUM;

/// The encoding under a start such as `bitcoincash:q`.
pub(super) fn linear(start: &'static str) -> Linear {
    let (head, first) = split(start);
    let mut symbols = code::symbols(VERSION, HASH * 8, CHECKSUM, |data| checksum(head, data));
    symbols.remove(0);
    Linear { head, start: first, alphabet: ALPHABET.as_bytes(), symbols, checked_case: false }
}

/// The text of a hash.
pub(super) fn encode(start: &str, digest: &Digest) -> String {
    let (head, _) = split(start);
    debug_assert_eq!(digest.as_bytes().len(), HASH);
    let mut data = Vec::with_capacity(DATA);
    let (mut held, mut count) = (0u32, 0);
    // The version byte is zero; two zero bits fill up the last symbol.
    for byte in [0].into_iter().chain(digest.as_bytes().iter().copied()) {
        (held, count) = (held << 8 | u32::from(byte), count + 8);
        while count >= WIDTH {
            count -= WIDTH;
            data.push((held >> count & 31) as u8);
        }
        held &= (1 << count) - 1;
    }
    data.push((held << (WIDTH - count)) as u8);
    let sum = checksum(head, &data);
    let sums = (0..CHECKSUM).rev().map(|at| (sum >> (at * WIDTH) & 31) as u8);
    let symbol = |value: u8| char::from(ALPHABET.as_bytes()[usize::from(value)]);
    head.chars().chain(data.iter().copied().chain(sums).map(symbol)).collect()
}

/// The hash of a text, with its prefix or without.
pub(super) fn decode(start: &'static str, text: &str) -> Result<Digest, Error> {
    let (head, _) = split(start);
    let has_head = text.as_bytes().get(..head.len()).is_some_and(|s| s.eq_ignore_ascii_case(head.as_bytes()));
    let before = if has_head { head.len() } else { 0 };
    // What is no `q` is another kind of address, or none.
    if !text[before..].starts_with(['q', 'Q']) {
        return Err(Error::Prefix { given: None, expected: start });
    }
    check_body(text, before, start, before + BODY)?;
    let data = checked(start, &text[before..]).ok_or(Error::Checksum)?;
    // All bits but the version's eight and the two that fill up the end.
    let mut bytes = [0; HASH];
    let bit = |at: usize| data[at / WIDTH] >> (WIDTH - 1 - at % WIDTH) & 1;
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = (0..8).fold(0, |byte, i| byte << 1 | bit(VERSION + 8 * at + i));
    }
    if (0..VERSION).any(|at| bit(at) == 1) {
        return Err(Error::Prefix { given: None, expected: start });
    }
    match (VERSION + 8 * HASH..DATA * WIDTH).all(|at| bit(at) == 0) {
        true => Ok(Digest::new(&bytes)),
        false => Err(Error::Padding { position: before + DATA }),
    }
}

/// The data symbols of what follows a prefix, if the checksum fits: of whatever version.
pub(crate) fn checked(start: &str, body: &str) -> Option<Vec<u8>> {
    let value = |byte: u8| ALPHABET.bytes().position(|other| other == byte.to_ascii_lowercase());
    let values: Option<Vec<u8>> = body.bytes().map(|byte| value(byte).map(|value| value as u8)).collect();
    let mut data = values.filter(|values| values.len() == BODY)?;
    let sums = data.split_off(DATA);
    let sum = sums.iter().fold(0, |sum, &value| sum << WIDTH | u64::from(value));
    (sum == checksum(split(start).0, &data)).then_some(data)
}

/// Prefix and colon, and the first symbol.
fn split(start: &str) -> (&str, &str) {
    start.split_at(start.len() - 1)
}

/// The checksum of data under a prefix that ends with its colon: eight symbols, the first in the most significant of 40 bits.
fn checksum(head: &str, data: &[u8]) -> u64 {
    // The low five bits of each letter of the prefix, then a zero.
    let prefix = head.trim_end_matches(':').bytes().map(|byte| byte & 31).chain([0]);
    prefix.chain(data.iter().copied()).chain([0; CHECKSUM]).fold(1, step) ^ 1
}

/// One step of the remainder: `state * x + value` modulo the generator of the code, eight coefficients of five bits.
fn step(state: u64, value: u8) -> u64 {
    /// The generator times 1, 2, 4, 8 and 16, as the specification of cashaddr has them.
    const MULTIPLES: [u64; WIDTH] =
        [0x98_f2bc_8e61, 0x79_b76d_99e2, 0xf3_3e5f_b3c4, 0xae_2eab_e2a8, 0x1e_4f43_e470];
    let carry = state >> 35;
    let shifted = (state & 0x7_ffff_ffff) << 5 ^ u64::from(value);
    MULTIPLES
        .iter()
        .enumerate()
        .fold(shifted, |s, (i, multiple)| if carry >> i & 1 == 1 { s ^ multiple } else { s })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAIN: &str = "bitcoincash:q";

    /// The pairs of the specification: hash, main network, test network where it has one.
    const VECTORS: [(&str, &str); 4] = [
        (
            "76a04053bda0a88bda5177b86a15c3b29f559873",
            "bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a",
        ),
        (
            "cb481232299cd5743151ac4b2d63ae198e7bb0a9",
            "bitcoincash:qr95sy3j9xwd2ap32xkykttr4cvcu7as4y0qverfuy",
        ),
        (
            "011f28e473c95f4013d7d53ec5fbc3b42df8ed10",
            "bitcoincash:qqq3728yw0y47sqn6l2na30mcw6zm78dzqre909m2r",
        ),
        (
            "f5bf48b397dae70be82b3cca4793f8eb2b6cdac9",
            "bitcoincash:qr6m7j9njldwwzlg9v7v53unlr4jkmx6eylep8ekg2",
        ),
    ];

    #[test]
    fn vectors_encode_and_decode_in_either_case_and_without_the_prefix() {
        for (hash, text) in VECTORS {
            let digest = Digest::new(&const_hex::decode(hash).unwrap());
            assert_eq!(encode(MAIN, &digest), text);
            for written in [text.to_owned(), text.to_uppercase(), text["bitcoincash:".len()..].to_owned()] {
                assert_eq!(decode(MAIN, &written), Ok(digest), "{written}");
                // The prefix is in the checksum.
                assert!(decode("bchtest:q", &written).is_err(), "{written}");
            }
        }
    }

    #[test]
    fn other_texts_say_why() {
        let error = |text: &str| decode(MAIN, text).unwrap_err();
        // A script, of the specification.
        let script = "bitcoincash:ppm2qsznhks23z7629mms6s4cwef74vcwvn0h829pq";
        assert!(matches!(error(script), Error::Prefix { .. }));
        assert!(matches!(error(""), Error::Prefix { .. }));
        assert!(matches!(error("bitcoincash:qpm2"), Error::Length { .. }));
        assert!(matches!(error(&VECTORS[0].1.replace("qsz", "qSz")), Error::MixedCase));
        assert!(matches!(error(&VECTORS[0].1.replace("qsz", "qbz")), Error::Character { position: 18, .. }));
        for at in "bitcoincash:q".len()..VECTORS[0].1.len() {
            let mut wrong = VECTORS[0].1.to_owned();
            let other = if &wrong[at..=at] == "x" { "z" } else { "x" };
            wrong.replace_range(at..=at, other);
            assert_eq!(error(&wrong), Error::Checksum, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn the_encoding_agrees_with_the_text(hash: [u8; 20]) {
            let digest = Digest::new(&hash);
            for start in [MAIN, "bchtest:q"] {
                let text = encode(start, &digest);
                prop_assert_eq!(linear(start).text(&digest), text.clone());
                prop_assert_eq!(decode(start, &text), Ok(digest));
            }
        }

        #[test]
        fn any_text_gets_an_answer(text in "\\PC{0,60}") {
            let _ = decode(MAIN, &text);
        }
    }
}
