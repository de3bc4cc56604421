//! age, version 1: text for one X25519 recipient, for machines without a person to type a password.
//!
//! <https://github.com/C2SP/C2SP/blob/main/age.md>. Only what is needed to write one file of less than a chunk is here. The `age`
//! crate brings 180 others and a generator of its own beside the operating system's.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, PAD};
use bech32::Bech32;
use bech32::primitives::decode::CheckedHrpstring;
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use crate::{Error, Result, random};

const UNPADDED: GeneralPurpose = GeneralPurpose::new(&STANDARD, NO_PAD);
const PADDED: GeneralPurpose = GeneralPurpose::new(&STANDARD, PAD);

/// The most that one file holds here: the chunk of age.
const CHUNK: usize = 1 << 16;

/// Who can decrypt: `age1...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipient([u8; 32]);

impl Recipient {
    /// Reads `age1...`.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = |why: &str| Error::malformed("age recipient", why);
        if text.get(..15).is_some_and(|head| head.eq_ignore_ascii_case("AGE-SECRET-KEY-")) {
            return Err(bad(
                "it is an age identity, which is secret; give the recipient, which begins with age1",
            ));
        }
        let parsed = CheckedHrpstring::new::<Bech32>(text)
            .map_err(|_| bad("it is not age1 and 58 letters and digits with a checksum that fits"))?;
        if parsed.hrp().to_lowercase() != "age" {
            return Err(bad("expected text that begins with age1"));
        }
        let bytes: Vec<u8> = parsed.byte_iter().collect();
        Ok(Self(bytes.try_into().map_err(|_| bad("it does not have 32 bytes"))?))
    }
}

/// An armored file that only the recipient can read.
///
/// # Panics
///
/// When the text is longer than a chunk, which no result is.
pub fn encrypt(text: &[u8], recipient: &Recipient) -> Result<String> {
    assert!(text.len() <= CHUNK, "a result is shorter than a chunk");
    let (file_key, ephemeral): (Zeroizing<[u8; 16]>, _) = (random()?.into(), Zeroizing::new(random()?));
    let nonce: [u8; 16] = random()?;
    let ephemeral = StaticSecret::from(*ephemeral);
    let share = PublicKey::from(&ephemeral);
    let shared = ephemeral.diffie_hellman(&PublicKey::from(recipient.0));
    if !shared.was_contributory() {
        return Err(Error::malformed("age recipient", "nobody can have the key of this point"));
    }
    let salt = [*share.as_bytes(), recipient.0].concat();
    let wrap = derive(&salt, shared.as_bytes(), b"age-encryption.org/v1/X25519");
    let mut file = format!(
        "age-encryption.org/v1\n-> X25519 {}\n{}\n---",
        UNPADDED.encode(share.as_bytes()),
        UNPADDED.encode(seal(&wrap, [0; 12], &*file_key)),
    );
    let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&*derive(&[], &*file_key, b"header"))
        .expect("any length is a key");
    mac.update(file.as_bytes());
    file += &format!(" {}\n", UNPADDED.encode(mac.finalize().into_bytes()));
    let mut bytes = file.into_bytes();
    bytes.extend(nonce);
    // The first chunk, which is the last.
    let mut number = [0; 12];
    number[11] = 1;
    bytes.extend(seal(&derive(&nonce, &*file_key, b"payload"), number, text));
    Ok(armor(&bytes))
}

fn derive(salt: &[u8], from: &[u8], info: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    Hkdf::<Sha256>::new(Some(salt), from).expand(info, &mut *key).expect("32 bytes are few");
    key
}

fn seal(key: &[u8; 32], nonce: [u8; 12], text: &[u8]) -> Vec<u8> {
    ChaCha20Poly1305::new(key.into()).encrypt(&Nonce::from(nonce), text).expect("a chunk can be sealed")
}

fn armor(bytes: &[u8]) -> String {
    let body = PADDED.encode(bytes);
    let mut text = "-----BEGIN AGE ENCRYPTED FILE-----\n".to_owned();
    for line in body.as_bytes().chunks(64) {
        text.extend(line.iter().copied().map(char::from));
        text.push('\n');
    }
    text + "-----END AGE ENCRYPTED FILE-----\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file as the standard says, apart from what writes one.
    fn decrypt(armored: &str, identity: [u8; 32]) -> Option<Vec<u8>> {
        let body: String = armored.lines().filter(|line| !line.starts_with('-')).collect();
        let bytes = PADDED.decode(body).ok()?;
        let end = bytes.windows(5).position(|part| part == b"\n--- ")? + 5;
        let line_end = end + bytes[end..].iter().position(|&byte| byte == b'\n')?;
        let header = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = header.lines();
        assert_eq!(lines.next(), Some("age-encryption.org/v1"));
        let share = UNPADDED.decode(lines.next()?.strip_prefix("-> X25519 ")?).ok()?;
        let share: [u8; 32] = share.try_into().ok()?;
        let wrapped = UNPADDED.decode(lines.next()?).ok()?;
        let identity = StaticSecret::from(identity);
        let own = PublicKey::from(&identity);
        let shared = identity.diffie_hellman(&PublicKey::from(share));
        let salt = [share, *own.as_bytes()].concat();
        let wrap = derive(&salt, shared.as_bytes(), b"age-encryption.org/v1/X25519");
        let open = |key: &[u8; 32], nonce: [u8; 12], sealed: &[u8]| {
            ChaCha20Poly1305::new(key.into()).decrypt(&Nonce::from(nonce), sealed).ok()
        };
        let file_key = open(&wrap, [0; 12], &wrapped)?;
        let mac = UNPADDED.decode(&bytes[end..line_end]).ok()?;
        let mut expected =
            <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&*derive(&[], &file_key, b"header")).ok()?;
        expected.update(&bytes[..end - 1]);
        assert_eq!(mac, expected.finalize().into_bytes().to_vec());
        let (nonce, payload) = bytes[line_end + 1..].split_at(16);
        open(&derive(nonce, &file_key, b"payload"), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], payload)
    }

    #[test]
    fn only_the_recipient_reads_it() {
        let identity: [u8; 32] = random().unwrap();
        let recipient = Recipient(*PublicKey::from(&StaticSecret::from(identity)).as_bytes());
        for length in [0, 1, 500, CHUNK] {
            let text = vec![b'x'; length];
            let file = encrypt(&text, &recipient).unwrap();
            assert!(file.lines().all(|line| line.len() <= 64));
            assert_eq!(decrypt(&file, identity).as_ref(), Some(&text));
            assert_eq!(decrypt(&file, [7; 32]), None);
            assert_ne!(encrypt(&text, &recipient).unwrap(), file);
        }
    }

    #[test]
    fn recipients_are_read_and_identities_are_not_taken_for_them() {
        // Of the specification's own examples.
        let text = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
        let recipient = Recipient::parse(text).unwrap();
        assert_eq!(Recipient::parse(&text.to_uppercase()).unwrap(), recipient);
        for other in ["", "age1", &text[..61], &text.replace('z', "q"), "npub1qqqq"] {
            assert!(Recipient::parse(other).is_err(), "{other}");
        }
        let identity = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
        let why = Recipient::parse(identity).unwrap_err().to_string();
        assert!(why.contains("secret") && !why.contains("GFPYY"), "{why}");
        assert!(encrypt(b"x", &Recipient([0; 32])).is_err(), "a point of small order");
    }
}
