//! NIP-49: a private key as `ncryptsec`, under scrypt and XChaCha20-Poly1305.
//!
//! <https://github.com/nostr-protocol/nips/blob/master/49.md>

use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use crate::{Error, Password, Result, Scrypt, random};

const FORMAT: &str = "ncryptsec";
const VERSION: u8 = 2;

/// Version, LOG_N, salt, nonce, key security, and the key with its tag.
const LENGTH: usize = 1 + 1 + 16 + 24 + 1 + 48;

/// The usual cost: 64 MiB for a try.
pub const LOG_N: u8 = 16;

/// What is known of the life of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySecurity {
    /// It has been known in the clear: shown, pasted, or kept without encryption.
    Shown = 0,
    /// It has been known to nobody but the program that encrypted it.
    NeverShown = 1,
    /// Nobody kept track.
    Unknown = 2,
}

/// A key, and what its text says of it.
pub struct Decrypted {
    /// The key.
    pub secret: Zeroizing<[u8; 32]>,
    /// What is known of its life.
    pub security: KeySecurity,
}

/// The key under this password, at the cost 2^`log_n`.
pub fn encrypt(secret: &[u8; 32], password: &Password, log_n: u8, security: KeySecurity) -> Result<String> {
    encrypt_with(secret, password, log_n, security, random()?, random()?)
}

fn encrypt_with(
    secret: &[u8; 32],
    password: &Password,
    log_n: u8,
    security: KeySecurity,
    salt: [u8; 16],
    nonce: [u8; 24],
) -> Result<String> {
    let key = derive(&cost(log_n)?, password, &salt)?;
    let payload = Payload { msg: secret, aad: &[security as u8] };
    let sealed = cipher(&key).encrypt(&XNonce::from(nonce), payload).expect("32 bytes can be sealed");
    let mut bytes = Vec::with_capacity(LENGTH);
    bytes.extend([VERSION, log_n]);
    bytes.extend(salt);
    bytes.extend(nonce);
    bytes.push(security as u8);
    bytes.extend(sealed);
    let hrp = Hrp::parse(FORMAT).expect("the prefix is valid");
    Ok(bech32::encode_lower::<Bech32>(hrp, &bytes).expect("91 bytes fit"))
}

/// What a text holds, all of it checked but for the password.
pub struct Sealed {
    cost: Scrypt,
    salt: [u8; 16],
    nonce: [u8; 24],
    security: KeySecurity,
    sealed: [u8; 48],
}

/// Reads a text.
pub fn read(text: &str) -> Result<Sealed> {
    let bad = |why: &str| Error::malformed(FORMAT, why);
    let parsed = CheckedHrpstring::new::<Bech32>(text).map_err(|_| bad("its checksum does not fit"))?;
    if parsed.hrp().to_lowercase() != FORMAT {
        return Err(bad("expected text that begins with ncryptsec1"));
    }
    let bytes: Vec<u8> = parsed.byte_iter().collect();
    let bytes: &[u8; LENGTH] = bytes.as_slice().try_into().map_err(|_| bad("it does not have 91 bytes"))?;
    let [version, log_n, rest @ ..] = bytes;
    if *version != VERSION {
        return Err(bad(&format!("its version is {version}, and 2 is known")));
    }
    let (salt, rest) = rest.split_first_chunk().expect("91 bytes");
    let (nonce, rest) = rest.split_first_chunk().expect("91 bytes");
    let security = match rest[0] {
        0 => KeySecurity::Shown,
        1 => KeySecurity::NeverShown,
        2 => KeySecurity::Unknown,
        other => return Err(bad(&format!("its key security is {other}; it can be 0, 1 or 2"))),
    };
    let sealed = *rest[1..].first_chunk().expect("91 bytes");
    Ok(Sealed { cost: cost(*log_n)?, salt: *salt, nonce: *nonce, security, sealed })
}

impl Sealed {
    /// The key, by its password.
    pub fn decrypt(&self, password: &Password) -> Result<Decrypted> {
        let key = derive(&self.cost, password, &self.salt)?;
        let payload = Payload { msg: &self.sealed, aad: &[self.security as u8] };
        let opened = cipher(&key).decrypt(&XNonce::from(self.nonce), payload);
        let opened = Zeroizing::new(opened.map_err(|_| Error::WrongPassword { format: FORMAT })?);
        let mut secret = Zeroizing::new([0; 32]);
        secret.copy_from_slice(&opened);
        Ok(Decrypted { secret, security: self.security })
    }

    /// What a password costs to try, in blocks of scrypt.
    pub fn blocks(&self) -> u64 {
        self.cost.blocks
    }
}

/// The key of a text, by its password.
pub fn decrypt(text: &str, password: &Password) -> Result<Decrypted> {
    read(text)?.decrypt(password)
}

fn cost(log_n: u8) -> Result<Scrypt> {
    Scrypt::new([log_n.into(), 8, 1], FORMAT)
}

fn derive(cost: &Scrypt, password: &Password, salt: &[u8]) -> Result<Zeroizing<[u8; 32]>> {
    cost.key(password.nfkc().as_bytes(), salt)
}

fn cipher(key: &[u8; 32]) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(key.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(text: &str) -> Password {
        Password::new(text.to_owned().into()).unwrap()
    }

    /// The one that NIP-49 gives.
    const VECTOR: &str = "ncryptsec1qgg9947rlpvqu76pj5ecreduf9jxhselq2nae2kghhvd5g7dgjtcxfqtd67p9m0w57lspw8gsq6yphnm8623nsl8xn9j4jdzz84zm3frztj3z7s35vpzmqf6ksu8r89qk5z2zxfmu5gv8th8wclt0h4p";

    #[test]
    fn the_vector_of_the_standard_is_read_and_written() {
        let read = decrypt(VECTOR, &password("nostr")).unwrap();
        let expected = "3501454135014541350145413501453fefb02227e449e57cf4d3a3ce05378683";
        assert_eq!(const_hex::encode(*read.secret), expected);
        let bytes: Vec<u8> = CheckedHrpstring::new::<Bech32>(VECTOR).unwrap().byte_iter().collect();
        let (salt, nonce) = (bytes[2..18].try_into().unwrap(), bytes[18..42].try_into().unwrap());
        let written = encrypt_with(&read.secret, &password("nostr"), bytes[1], read.security, salt, nonce);
        assert_eq!(written.unwrap(), VECTOR);
    }

    #[test]
    fn keys_go_there_and_back_under_every_spelling_of_the_password() {
        let (key, typed) = ([0xa5; 32], password("\u{212b}\u{2126}\u{1e9b}\u{323}"));
        for security in [KeySecurity::Shown, KeySecurity::NeverShown, KeySecurity::Unknown] {
            let text = encrypt(&key, &typed, 3, security).unwrap();
            assert_eq!(text.len(), 162);
            let read = decrypt(&text, &password("\u{c5}\u{3a9}\u{1e69}")).unwrap();
            assert_eq!((*read.secret, read.security), (key, security));
            assert_eq!(*decrypt(&text.to_uppercase(), &typed).unwrap().secret, key);
            assert!(matches!(decrypt(&text, &password("other")), Err(Error::WrongPassword { .. })));
            assert_ne!(encrypt(&key, &typed, 3, security).unwrap(), text, "a salt of its own");
        }
    }

    #[test]
    fn what_is_altered_is_refused() {
        let key = [1; 32];
        let text = encrypt(&key, &password("p"), 3, KeySecurity::NeverShown).unwrap();
        let bytes: Vec<u8> = CheckedHrpstring::new::<Bech32>(&text).unwrap().byte_iter().collect();
        let with = |at: usize, value: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            bech32::encode_lower::<Bech32>(Hrp::parse(FORMAT).unwrap(), &bytes).unwrap()
        };
        for (at, value) in [(0, 1), (1, 200), (1, 0), (42, 3)] {
            assert!(decrypt(&with(at, value), &password("p")).is_err(), "byte {at} as {value}");
        }
        for at in [1, 2, 17, 18, 41, 42, 43, 90] {
            assert!(decrypt(&with(at, bytes[at] ^ 2), &password("p")).is_err(), "byte {at}");
        }
        for other in ["", "ncryptsec1", &text[..161], &text.replace("ncryptsec", "nsec"), VECTOR] {
            assert!(decrypt(other, &password("p")).is_err());
        }
    }
}
