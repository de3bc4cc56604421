//! CREATE in lanes: the contracts that eight accounts make at one nonce.

use warpsmith_hash::Lanes;
use warpsmith_hash::keccak::{RATE, RATE_WORDS, Word8, one_block_address, padded};

use super::digest_filter::Digests;

/// Where the account begins in the hashed message.
pub(crate) const ACCOUNT: usize = 2;
/// Its length.
const ACCOUNT_BYTES: usize = 20;

/// The hashed message but for the account: the RLP of a list of 20 bytes and a number, padded.
pub(super) struct Create {
    block: [Word8; RATE_WORDS],
    /// The first and third word, most significant byte first, with zeros for the account.
    first: u64,
    third: u64,
}

/// The hashed message, with zeros for the account's bytes, which begin at [`ACCOUNT`].
pub(crate) fn message(nonce: u64) -> Vec<u8> {
    // A number is written without leading zeros; alone from 1 to 127, else after its length.
    let bytes = nonce.to_be_bytes();
    let bytes = &bytes[nonce.leading_zeros() as usize / 8..];
    let mut message = vec![0; ACCOUNT + ACCOUNT_BYTES];
    if !matches!(nonce, 1..=0x7f) {
        message.push(0x80 + bytes.len() as u8);
    }
    message.extend(bytes);
    message[0] = 0xc0 + (message.len() - 1) as u8;
    message[1] = 0x80 + ACCOUNT_BYTES as u8;
    message
}

impl Create {
    pub fn new(nonce: u64) -> Create {
        let message: [u8; RATE] = padded(&message(nonce));
        let word = |i: usize| std::array::from_fn(|byte| message[8 * i + byte]);
        Create {
            block: std::array::from_fn(|i| [u64::from_le_bytes(word(i)); 8]),
            first: u64::from_be_bytes(word(0)),
            third: u64::from_be_bytes(word(2)),
        }
    }

    /// The contracts of eight accounts.
    pub fn addresses(&self, lanes: Lanes, [a, b, c]: &Digests) -> Digests {
        let mut block = self.block;
        for lane in 0..8 {
            // Two bytes on: the account's words straddle the message's.
            block[0][lane] = (self.first | a[lane] >> 16).swap_bytes();
            block[1][lane] = (a[lane] << 48 | b[lane] >> 16).swap_bytes();
            block[2][lane] = (self.third | b[lane] << 48 | c[lane] >> 16).swap_bytes();
        }
        one_block_address(lanes, &block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd;
    use warpsmith_chain::Digest;
    use warpsmith_chain::ethereum::create;

    #[test]
    fn contracts_are_those_of_the_reference_at_every_length_of_nonce() {
        let mut nonces = vec![0, 1, 127, 128, 255, 256, 1 << 32, u64::MAX - 1];
        nonces.extend((1..8).flat_map(|bytes| [(1u64 << (8 * bytes)) - 1, 1 << (8 * bytes)]));
        for simd in simd::available() {
            for &nonce in &nonces {
                let senders: [[u8; 20]; 8] = std::array::from_fn(|lane| {
                    std::array::from_fn(|i| (nonce as u8) ^ (lane * 31 + i * 7) as u8)
                });
                let words = senders.map(|sender| Digest::new(&sender).words());
                let accounts = std::array::from_fn(|word| words.map(|w| w[word]));
                let got = Create::new(nonce).addresses(Lanes::new(simd), &accounts);
                for (lane, sender) in senders.iter().enumerate() {
                    let expected = Digest::new(&create(sender, nonce)).words();
                    assert_eq!([got[0][lane], got[1][lane], got[2][lane], 0], expected, "{simd} {nonce}");
                }
            }
        }
    }
}
