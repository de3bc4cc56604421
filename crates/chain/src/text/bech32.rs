//! The linear encoding of a bech32 text (BIP-173) and of an address of SegWit (BIP-350): data symbols of five bits, then six
//! of checksum.
//!
//! The checksum is a remainder of polynomials over GF(32), so each of its bits is a sum of data bits and a
//! constant. Knows the code of BIP-173 only; the texts themselves are written and read by another
//! implementation, against which this one is tested.

use super::Linear;
use super::code::{self, WIDTH};

/// The characters of bech32, by value.
pub const ALPHABET: &str = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// Symbols of checksum at the end of a text.
pub const CHECKSUM: usize = 6;

/// What the remainder is added to: 1, or for bech32m (BIP-350) another number.
const PLAIN: u32 = 1;
const MODIFIED: u32 = 0x2bc8_30a3;

/// The encoding of `bytes` bytes under a prefix; `head` is the prefix and the separator `1`.
pub fn linear(head: &'static str, bytes: usize) -> Linear {
    let hrp = head.strip_suffix('1').expect("the head of a bech32 text ends with the separator");
    Linear { head, ..after(hrp, &[], bytes, PLAIN) }
}

/// The encoding of a witness program of `bytes` bytes; `start` is the prefix, the separator `1` and the symbol of the
/// program's version, which patterns are written with.
pub fn segwit(start: &'static str, bytes: usize) -> Linear {
    let (hrp, version) = start.split_once('1').expect("the start has the separator");
    let version = ALPHABET.find(version).expect("one symbol is the version") as u8;
    Linear { start, ..after(hrp, &[version], bytes, if version == 0 { PLAIN } else { MODIFIED }) }
}

/// The symbols of `bytes` bytes after the prefix and some symbols that are not the digest's.
fn after(hrp: &str, before: &[u8], bytes: usize, constant: u32) -> Linear {
    debug_assert!(hrp.bytes().all(|c| c.is_ascii_lowercase()));
    let checksum = |values: &[u8]| u64::from(checksum(hrp, &[before, values].concat()) ^ constant);
    Linear {
        head: "",
        start: "",
        alphabet: ALPHABET.as_bytes(),
        symbols: code::symbols(0, bytes * 8, CHECKSUM, checksum),
        checked_case: false,
    }
}

/// The remainder that the checksum is made of: six symbols, the first in the most significant of 30 bits (BIP-173,
/// "Checksum").
fn checksum(hrp: &str, data: &[u8]) -> u32 {
    let high = hrp.bytes().map(|c| c >> 5);
    let low = hrp.bytes().map(|c| c & 31);
    let all = high.chain([0]).chain(low).chain(data.iter().copied()).chain([0; CHECKSUM]);
    all.fold(1, step)
}

/// One step of the remainder: `state * x + value` modulo the generator of the code, six coefficients of five bits.
fn step(state: u32, value: u8) -> u32 {
    /// The generator times 1, 2, 4, 8 and 16 (BIP-173, `bech32_polymod`).
    const MULTIPLES: [u32; WIDTH] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let carry = state >> 25;
    let shifted = (state & 0x01ff_ffff) << 5 ^ u32::from(value);
    MULTIPLES
        .iter()
        .enumerate()
        .fold(shifted, |s, (i, multiple)| if carry >> i & 1 == 1 { s ^ multiple } else { s })
}

#[cfg(test)]
mod tests {
    use super::super::BitSum;
    use super::*;
    use crate::Digest;
    use ::bech32::{Bech32, Hrp};
    use proptest::prelude::*;

    fn oracle(hrp: &str, bytes: &[u8]) -> String {
        ::bech32::encode::<Bech32>(Hrp::parse(hrp).unwrap(), bytes).unwrap()
    }

    #[test]
    fn each_single_bit_and_the_extremes_agree_with_the_encoder() {
        let encoding = linear("npub1", 32);
        assert_eq!(encoding.symbols.len(), 58);
        let mut cases = vec![[0; 32], [0xff; 32]];
        for bit in 0..256 {
            let mut bytes = [0; 32];
            bytes[bit / 8] |= 0x80 >> (bit % 8);
            cases.push(bytes);
        }
        for bytes in cases {
            assert_eq!(encoding.text(&Digest::new(&bytes)), oracle("npub", &bytes));
        }
    }

    #[test]
    fn padding_bits_are_constant_zero() {
        let encoding = linear("npub1", 32);
        assert_ne!(encoding.symbols[51][0].mask, [0; 4]);
        for bit in &encoding.symbols[51][1..] {
            assert_eq!(*bit, BitSum { mask: [0; 4], constant: false });
        }
    }

    proptest! {
        #[test]
        fn random_digests_agree_with_the_encoder(bytes: [u8; 32]) {
            prop_assert_eq!(linear("npub1", 32).text(&Digest::new(&bytes)), oracle("npub", &bytes));
        }

        #[test]
        fn witness_programs_agree_with_the_encoder(bytes: [u8; 32]) {
            let (main, test) = (Hrp::parse("bc").unwrap(), Hrp::parse("tb").unwrap());
            let v0 = ::bech32::segwit::encode_v0(main, &bytes[..20]).unwrap();
            prop_assert_eq!(segwit("bc1q", 20).text(&Digest::new(&bytes[..20])), v0);
            let v1 = ::bech32::segwit::encode_v1(test, &bytes).unwrap();
            prop_assert_eq!(segwit("tb1p", 32).text(&Digest::new(&bytes)), v1);
        }

        #[test]
        fn shorter_digests_and_other_heads_agree_too(bytes in proptest::collection::vec(any::<u8>(), 0..32)) {
            prop_assert_eq!(linear("nsec1", bytes.len()).text(&Digest::new(&bytes)), oracle("nsec", &bytes));
        }
    }
}
