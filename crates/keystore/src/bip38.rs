//! BIP-38: a Bitcoin key as `6P...`, under scrypt and AES-256.
//!
//! <https://github.com/bitcoin/bips/blob/master/bip-0038.mediawiki>. SEC: its cost is fixed at what was much in 2012, 16 MiB for a
//! try, and what is called its salt follows from the address. It is written because wallets read it; the password must be the
//! stronger. Keys made from an intermediate code (EC multiplication) are told apart and not read.

use aes::Aes256;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use sha2::{Digest, Sha256};
use warpsmith_chain::text::base58;
use zeroize::Zeroizing;

use crate::{Error, Password, Result, Scrypt};

const FORMAT: &str = "BIP-38 key";

/// The first bytes: of a key that was encrypted as it is, and of one made from an intermediate code.
const PLAIN: [u8; 2] = [0x01, 0x42];
const MULTIPLIED: [u8; 2] = [0x01, 0x43];

/// The flags of such a key, and the one for a compressed public key.
const FLAGS: u8 = 0xc0;
const COMPRESSED: u8 = 0x20;

/// A key, and what its text says of it.
pub struct Decrypted {
    /// The key.
    pub secret: Zeroizing<[u8; 32]>,
    /// Whether its public key is compressed.
    pub is_compressed: bool,
}

/// The key under this password. `address` is its P2PKH address on the main network, of the compressed public key or not.
pub fn encrypt(secret: &[u8; 32], is_compressed: bool, address: &str, password: &Password) -> Result<String> {
    let hash = address_hash(address);
    let keys = derive(password, &hash)?;
    let cipher = cipher(&keys);
    let mut bytes = Vec::with_capacity(39);
    bytes.extend(PLAIN);
    bytes.push(if is_compressed { FLAGS | COMPRESSED } else { FLAGS });
    bytes.extend(hash);
    for (half, mask) in secret.chunks_exact(16).zip(keys[..32].chunks_exact(16)) {
        let mut block = aes::Block::default();
        for ((to, byte), mask) in block.iter_mut().zip(half).zip(mask) {
            *to = byte ^ mask;
        }
        cipher.encrypt_block(&mut block);
        bytes.extend_from_slice(&block);
    }
    let mut text = String::with_capacity(58);
    base58::push_checked(&mut text, &bytes);
    Ok(text)
}

/// What a text holds, all of it checked but for the password.
pub struct Sealed {
    /// Of the address.
    hash: [u8; 4],
    sealed: [u8; 32],
    is_compressed: bool,
}

/// Reads a text.
pub fn read(text: &str) -> Result<Sealed> {
    let bad = |why: &str| Error::malformed(FORMAT, why);
    let bytes = base58::bytes(text).ok_or_else(|| bad("it is not base58"))?;
    let payload = base58::checked_payload(&bytes).ok_or_else(|| bad("its checksum does not fit"))?;
    let payload: &[u8; 39] = payload.try_into().map_err(|_| bad("it does not have 39 bytes"))?;
    let (head, flags) = ([payload[0], payload[1]], payload[2]);
    if head == MULTIPLIED {
        return Err(bad("it was made from an intermediate code (EC multiplication), which is not read here"));
    }
    if head != PLAIN || flags & !COMPRESSED != FLAGS {
        return Err(bad("it begins with other bytes or flags"));
    }
    let (hash, sealed) = payload[3..].split_first_chunk().expect("39 bytes");
    let sealed = *sealed.first_chunk().expect("39 bytes");
    Ok(Sealed { hash: *hash, sealed, is_compressed: flags & COMPRESSED != 0 })
}

impl Sealed {
    /// The key; `address_of` computes the P2PKH address of a key, which tells whether the password is right.
    pub fn decrypt(
        &self,
        password: &Password,
        address_of: impl FnOnce(&[u8; 32], bool) -> Option<String>,
    ) -> Result<Decrypted> {
        let keys = derive(password, &self.hash)?;
        let cipher = cipher(&keys);
        let mut secret = Zeroizing::new([0; 32]);
        for (at, half) in self.sealed.chunks_exact(16).enumerate() {
            let mut block = aes::Block::default();
            block.copy_from_slice(half);
            cipher.decrypt_block(&mut block);
            for (i, byte) in block.iter_mut().enumerate() {
                secret[16 * at + i] = *byte ^ keys[16 * at + i];
                *byte = 0;
            }
        }
        let is_compressed = self.is_compressed;
        let fits =
            address_of(&secret, is_compressed).is_some_and(|address| address_hash(&address) == self.hash);
        if fits {
            Ok(Decrypted { secret, is_compressed })
        } else {
            Err(Error::WrongPassword { format: FORMAT })
        }
    }
}

/// The key of a text, by its password and [`Sealed::decrypt`]'s address.
pub fn decrypt(
    text: &str,
    password: &Password,
    address_of: impl FnOnce(&[u8; 32], bool) -> Option<String>,
) -> Result<Decrypted> {
    read(text)?.decrypt(password, address_of)
}

/// The first four bytes of SHA-256 of SHA-256.
fn address_hash(address: &str) -> [u8; 4] {
    let hash = Sha256::digest(Sha256::digest(address));
    [hash[0], hash[1], hash[2], hash[3]]
}

fn derive(password: &Password, address_hash: &[u8]) -> Result<Zeroizing<[u8; 64]>> {
    Scrypt::new([14, 8, 8], FORMAT)?.key(password.nfc().as_bytes(), address_hash)
}

/// Of the second half of what was derived.
fn cipher(keys: &[u8; 64]) -> Aes256 {
    let mut half = Zeroizing::new([0; 32]);
    half.copy_from_slice(&keys[32..]);
    Aes256::new((&*half).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNICODE: &str = "\u{3d2}\u{301}\u{0}\u{10400}\u{1f4a9}";

    /// The vectors of the standard without EC multiplication; the third of them with its address compressed as well.
    const VECTORS: &[(&str, &str, &str, &str)] = &[
        (
            "TestingOneTwoThree",
            "cbf4b9f70470856bb4f40f80b87edb90865997ffee6df315ab166d713af433a5",
            "1Jq6MksXQVWzrznvZzxkV6oY57oWXD9TXB",
            "6PRVWUbkzzsbcVac2qwfssoUJAN1Xhrg6bNk8J7Nzm5H7kxEbn2Nh2ZoGg",
        ),
        (
            "Satoshi",
            "09c2686880095b1a4c249ee3ac4eea8a014f11e6f986d0b5025ac1f39afbd9ae",
            "1AvKt49sui9zfzGeo8EyL8ypvAhtR2KwbL",
            "6PRNFFkZc2NZ6dJqFfhRoFNMR9Lnyj7dYGrzdgXXVMXcxoKTePPX1dWByq",
        ),
        (
            UNICODE,
            "64eeab5f9be2a01a8365a579511eb3373c87c40da6d2a25f05bda68fe077b66e",
            "16ktGzmfrurhbhi6JGqsMWf7TyqK9HNAeF",
            "6PRW5o9FLp4gJDDVqJQKJFTpMvdsSGJxMYHtHaQBF3ooa8mwD69bapcDQn",
        ),
        (
            "TestingOneTwoThree",
            "cbf4b9f70470856bb4f40f80b87edb90865997ffee6df315ab166d713af433a5",
            "164MQi977u9GUteHr4EPH27VkkdxmfCvGW",
            "6PYNKZ1EAgYgmQfmNVamxyXVWHzK5s6DGhwP4J5o44cvXdoY7sRzhtpUeo",
        ),
        (
            "Satoshi",
            "09c2686880095b1a4c249ee3ac4eea8a014f11e6f986d0b5025ac1f39afbd9ae",
            "1HmPbwsvG5qJ3KJfxzsZRZWhbm1xBMuS8B",
            "6PYLtMnXvfG3oJde97zRyLYFZCYizPU5T3LwgdYJz1fRhh16bU7u6PPmY7",
        ),
    ];

    fn password(text: &str) -> Password {
        Password::new(text.to_owned().into()).unwrap()
    }

    #[test]
    fn the_vectors_of_the_standard_are_read_and_written() {
        for (typed, key, address, text) in VECTORS {
            let is_compressed = text.starts_with("6PY");
            let key: [u8; 32] = const_hex::decode_to_array(key).unwrap();
            assert_eq!(encrypt(&key, is_compressed, address, &password(typed)).unwrap(), *text);
            let read = decrypt(text, &password(typed), |_, compressed| {
                assert_eq!(compressed, is_compressed);
                Some((*address).to_owned())
            });
            assert_eq!(*read.unwrap().secret, key);
        }
    }

    #[test]
    fn other_passwords_and_other_texts_are_refused() {
        let (_, key, address, text) = VECTORS[0];
        let key: [u8; 32] = const_hex::decode_to_array(key).unwrap();
        // With another password another key comes out, whose address is another.
        let read = decrypt(text, &password("other"), |found, _| {
            assert_ne!(*found, key);
            Some("1AvKt49sui9zfzGeo8EyL8ypvAhtR2KwbL".to_owned())
        });
        assert!(matches!(read, Err(Error::WrongPassword { .. })));
        let read = decrypt(text, &password("other"), |_, _| None);
        assert!(matches!(read, Err(Error::WrongPassword { .. })));
        let refused = |text: &str| decrypt(text, &password("p"), |_, _| Some(address.to_owned()));
        // Made from an intermediate code, as the standard shows one.
        let multiplied = refused("6PfQu77ygVyJLZjfvMLyhLMQbYnu5uguoJJ4kMCLqWwPEdfpwANVS76gTX");
        assert!(multiplied.err().unwrap().to_string().contains("intermediate code"));
        for other in ["", "6P", &text[1..], "5KN7MzqK5wt2TP1fQCYyHBtDrXdJuXbUzm4A9rKAteGu3Qi5CVR"] {
            assert!(matches!(refused(other), Err(Error::Malformed { .. })), "{other}");
        }
    }
}
