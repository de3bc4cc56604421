//! How characters become a key, and what tells that they do not: of hexadecimal digits nothing, of WIF a version, a flag and a
//! checksum by SHA-256, of an nsec a checksum that is linear.

use sha2::{Digest as _, Sha256};
use warpsmith_chain::coin::wif_versions;

use super::key;
use crate::interval::U256;

/// A kind of text. What its characters contribute is added up in any order.
pub(super) trait Scheme {
    type Sum: Copy;
    /// What is kept from one candidate to the next.
    type State: Default;

    fn nothing(&self) -> Self::Sum;
    fn add(a: Self::Sum, b: Self::Sum) -> Self::Sum;
    /// What a value contributes as the character `at` of so many.
    fn part(&self, length: usize, at: usize, value: u8) -> Self::Sum;
    /// The key, if the text is one of a key. `symbols` are its values.
    fn key(
        &self,
        state: &mut Self::State,
        sum: Self::Sum,
        symbols: impl FnOnce() -> Vec<u8>,
    ) -> Option<[u8; 32]>;
}

pub(super) struct Hex;

impl Scheme for Hex {
    type Sum = U256;
    type State = ();

    fn nothing(&self) -> U256 {
        U256::ZERO
    }
    fn add(a: U256, b: U256) -> U256 {
        a + b
    }
    fn part(&self, length: usize, at: usize, value: u8) -> U256 {
        U256::from(value) << (4 * (length - 1 - at) as u32)
    }
    fn key(&self, (): &mut (), sum: U256, _: impl FnOnce() -> Vec<u8>) -> Option<[u8; 32]> {
        key(sum)
    }
}

/// Wallet import format: in base 58 a version, the key, for compressed public keys a 1, and four bytes of the double SHA-256 of
/// these.
pub(super) struct Wif {
    compressed: bool,
    versions: Vec<u8>,
}

/// A number of 320 bits, the lowest word first: 58^52 has 305.
type Words = [u64; 5];

/// The last text hashed but for its checksum, and that.
#[derive(Default)]
pub(super) struct Hashed(Option<(Words, u32)>);

impl Wif {
    pub fn new(compressed: bool) -> Self {
        Self { compressed, versions: wif_versions() }
    }
}

impl Scheme for Wif {
    type Sum = Words;
    type State = Hashed;

    fn nothing(&self) -> Words {
        [0; 5]
    }

    #[inline]
    fn add(a: Words, b: Words) -> Words {
        let mut carry = false;
        std::array::from_fn(|i| {
            let (sum, over) = a[i].overflowing_add(b[i]);
            let (sum, more) = sum.overflowing_add(u64::from(carry));
            carry = over | more;
            sum
        })
    }

    fn part(&self, length: usize, at: usize, value: u8) -> Words {
        (at + 1..length).fold([u64::from(value), 0, 0, 0, 0], |number, _| {
            let mut carry = 0;
            number.map(|word| {
                let product = u128::from(word) * 58 + carry;
                carry = product >> 64;
                product as u64
            })
        })
    }

    #[inline]
    fn key(&self, Hashed(last): &mut Hashed, sum: Words, _: impl FnOnce() -> Vec<u8>) -> Option<[u8; 32]> {
        let checksum = sum[0] as u32;
        // All but the checksum.
        let payload: Words =
            std::array::from_fn(|i| sum[i] >> 32 | sum.get(i + 1).map_or(0, |word| word << 32));
        let expected = match last {
            Some((hashed, expected)) if *hashed == payload => *expected,
            _ => {
                let (bytes, key_at, length) = self.payload(&payload)?;
                debug_assert!(key_at == 1);
                let digest = Sha256::digest(Sha256::digest(&bytes[..length]));
                let expected = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
                *last = Some((payload, expected));
                expected
            }
        };
        if expected != checksum {
            return None;
        }
        let (bytes, ..) = self.payload(&payload)?;
        key(U256::from_be_bytes(bytes[1..33].try_into().expect("32 bytes")))
    }
}

impl Wif {
    /// The bytes before the checksum, where the key begins in them, and how many there are; none where version or flag are wrong.
    #[inline]
    fn payload(&self, words: &Words) -> Option<([u8; 34], usize, usize)> {
        let length = if self.compressed { 34 } else { 33 };
        let mut all = [0; 40];
        for (bytes, word) in all.rchunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        let (above, bytes) = all.split_at(40 - length);
        let is_wif = above.iter().all(|byte| *byte == 0)
            && self.versions.contains(&bytes[0])
            && (!self.compressed || bytes[33] == 1);
        let mut payload = [0; 34];
        payload[..length].copy_from_slice(bytes);
        is_wif.then_some((payload, 1, length))
    }
}

/// NIP-19: bech32 of 32 bytes with the head `nsec`.
pub(super) struct Nsec {
    /// The remainder of the head with nothing behind it, and the 1 that a whole text has.
    head: u32,
}

/// The generator of the code (BIP-173).
const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];

/// One more value of five bits.
fn remainder(before: u32, value: u8) -> u32 {
    let shifted = (before & 0x1ff_ffff) << 5 ^ u32::from(value);
    let top = before >> 25;
    GENERATOR.iter().enumerate().filter(|(bit, _)| top >> bit & 1 == 1).fold(shifted, |sum, (_, by)| sum ^ by)
}

impl Nsec {
    /// Characters behind the head: 52 of the key, six of the checksum.
    const LENGTH: usize = 58;

    pub fn new() -> Self {
        let head = b"nsec";
        let high = head.iter().map(|byte| byte >> 5);
        let low = head.iter().map(|byte| byte & 31);
        let head = high.chain([0]).chain(low).fold(1, remainder);
        Self { head: (0..Self::LENGTH).fold(head, |sum, _| remainder(sum, 0)) ^ 1 }
    }
}

impl Scheme for Nsec {
    type Sum = u32;
    type State = ();

    fn nothing(&self) -> u32 {
        self.head
    }
    #[inline]
    fn add(a: u32, b: u32) -> u32 {
        a ^ b
    }
    fn part(&self, length: usize, at: usize, value: u8) -> u32 {
        (at + 1..length).fold(u32::from(value), |sum, _| remainder(sum, 0))
    }

    #[inline]
    fn key(&self, (): &mut (), sum: u32, symbols: impl FnOnce() -> Vec<u8>) -> Option<[u8; 32]> {
        if sum != 0 {
            return None;
        }
        let symbols = symbols();
        // 51 whole characters and the highest bit of the next.
        let number = symbols[..51].iter().fold(U256::ZERO, |number, value| number << 5 | U256::from(*value));
        key(number << 1 | U256::from(symbols[51] >> 4))
    }
}
