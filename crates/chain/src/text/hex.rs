//! The linear encoding of hexadecimal text: each symbol is four digest bits, in order.

use zeroize::Zeroizing;

use super::{BitSum, Linear};

/// The characters of hex, by value; a text may write the letters in upper case.
pub const ALPHABET: &str = "0123456789abcdef";

/// Bits in a symbol.
const WIDTH: usize = 4;

/// The encoding of `bytes` bytes after `head`. `checked_case` says whether the case of the letters is a checksum.
pub fn linear(head: &'static str, bytes: usize, checked_case: bool) -> Linear {
    let bit = |bit: usize| {
        let mut mask = [0; 4];
        mask[bit / 64] = 1 << (63 - bit % 64);
        BitSum { mask, constant: false }
    };
    let all: Vec<BitSum> = (0..bytes * 8).map(bit).collect();
    Linear {
        head,
        start: "",
        alphabet: ALPHABET.as_bytes(),
        symbols: all.chunks(WIDTH).map(<[BitSum]>::to_vec).collect(),
        checked_case,
    }
}

/// Appends bytes as hex digits, without any copy in between.
pub(crate) fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from(ALPHABET.as_bytes()[usize::from(nibble)]));
        }
    }
}

/// A secret key as hex digits after a head.
///
/// SEC: the capacity is enough, so the string never moves and leaves no copy behind.
pub(crate) fn secret(head: &str, secret: &[u8; 32]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(head.len() + 64));
    text.push_str(head);
    push_hex(&mut text, secret);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn random_digests_agree_with_an_encoder(bytes in proptest::collection::vec(any::<u8>(), 0..=32)) {
            let encoding = linear("0x", bytes.len(), false);
            prop_assert_eq!(encoding.symbols.len(), 2 * bytes.len());
            prop_assert_eq!(encoding.text(&Digest::new(&bytes)), format!("0x{}", const_hex::encode(&bytes)));
        }
    }
}
