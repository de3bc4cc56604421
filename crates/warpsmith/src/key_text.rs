//! Private keys as people keep them: hex, nsec or WIF, or one of them encrypted with a password.
//!
//! SEC: no error repeats anything of a text, and what is decoded is held in buffers that are erased.

use warpsmith_chain::coin::{AddressType, BITCOIN, decode_wif};
use warpsmith_chain::ethereum::Account;
use warpsmith_chain::{KeyTarget, Target, nostr};
use warpsmith_curve::Scalar;
use warpsmith_engine::{Secret, public_point};
use warpsmith_keystore::{Password, bip38, nip49, web3};
use zeroize::Zeroizing;

/// Characters of a key in wallet import format: uncompressed, compressed.
const WIF_LENGTHS: [usize; 2] = [51, 52];

/// Characters of a BIP-38 key.
const BIP38_LENGTH: usize = 58;

/// A private key as it is written.
///
/// See [`parse_secret`].
pub enum KeyText {
    /// A key in the clear.
    Plain(Secret),
    /// A key encrypted with a password, its text known to be whole.
    Encrypted(EncryptedKey),
}

/// A private key encrypted with a password.
///
/// See [`parse_secret`].
#[non_exhaustive]
pub enum EncryptedKey {
    /// NIP-49: `ncryptsec1...`.
    Ncryptsec(nip49::Sealed),
    /// BIP-38: `6P...`.
    Bip38(bip38::Sealed),
    /// A Web3 keystore.
    Web3(web3::Sealed),
}

/// The reason why a text is no private key.
///
/// See [`parse_secret`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyTextError {
    /// There is no text.
    #[error("it is empty")]
    Empty,
    /// Other characters than keys have.
    #[error("it holds something that is neither an nsec, nor a WIF key, nor hex digits")]
    Characters,
    /// Too few hex digits, or too many.
    #[error("it has {0} hex digits")]
    Length(usize),
    /// 0, or not below the order of the group.
    #[error("the number is 0 or not below the order of secp256k1, so no public key has it")]
    OutOfRange,
    /// An nsec or a WIF key that is damaged.
    #[error(transparent)]
    Encoding(#[from] warpsmith_chain::Error),
    /// An encrypted key that is damaged, or does not open.
    #[error(transparent)]
    Encrypted(#[from] warpsmith_keystore::Error),
}

impl KeyTextError {
    /// Whether the system lacks the memory to decrypt the key, which is no fault of the key.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, KeyTextError::Encrypted(warpsmith_keystore::Error::NoMemory { .. }))
    }
}

/// Reads a private key in any form: 64 hex digits, an nsec, a WIF key, an ncryptsec, a BIP-38 key or a Web3 keystore.
///
/// ```
/// use warpsmith::keys::{KeyText, parse_secret};
///
/// let text = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn";
/// let KeyText::Plain(secret) = parse_secret(text)? else { panic!("it is not encrypted") };
/// assert_eq!(secret.as_bytes()[31], 1);
/// assert_eq!(parse_secret("f00d").err().unwrap().to_string(), "it has 4 hex digits");
/// # Ok::<(), warpsmith::keys::KeyTextError>(())
/// ```
///
/// # Errors
///
/// When the text is no private key.
pub fn parse_secret(text: &str) -> Result<KeyText, KeyTextError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim();
    let begins = |head: &str| text.get(..head.len()).is_some_and(|found| found.eq_ignore_ascii_case(head));
    let encrypted = if begins("ncryptsec1") {
        EncryptedKey::Ncryptsec(nip49::read(text)?)
    } else if text.len() == BIP38_LENGTH && text.starts_with("6P") {
        EncryptedKey::Bip38(bip38::read(text)?)
    } else if text.starts_with('{') {
        EncryptedKey::Web3(web3::read(text)?)
    } else {
        return secret_from(&*decode_secret(text)?).map(KeyText::Plain);
    };
    Ok(KeyText::Encrypted(encrypted))
}

/// Decodes a key that is not encrypted. The number may be out of range.
///
/// ```
/// use warpsmith::keys::{KeyTextError, decode_secret};
///
/// let zero = decode_secret(&"0".repeat(64))?;
/// assert_eq!(*zero, [0; 32]);
/// assert!(matches!(decode_secret("hello"), Err(KeyTextError::Characters)));
/// # Ok::<(), KeyTextError>(())
/// ```
///
/// # Errors
///
/// When the text is neither hex, nor an nsec, nor a WIF key.
pub fn decode_secret(text: &str) -> Result<Zeroizing<[u8; 32]>, KeyTextError> {
    match text.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("nsec")) {
        true => Ok(nostr::decode_secret(text)?),
        // Hex has 64 digits, with 0x 66: a WIF key is shorter, and rarely of hex digits alone.
        false if WIF_LENGTHS.contains(&text.len()) && !is_hex(text) => Ok(decode_wif(text)?.secret),
        false => decode_hex(text),
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn decode_hex(text: &str) -> Result<Zeroizing<[u8; 32]>, KeyTextError> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.is_empty() {
        return Err(KeyTextError::Empty);
    }
    if !is_hex(digits) {
        return Err(KeyTextError::Characters);
    }
    let mut bytes = Zeroizing::new([0; 32]);
    const_hex::decode_to_slice(digits, bytes.as_mut_slice())
        .map_err(|_| KeyTextError::Length(digits.len()))?;
    Ok(bytes)
}

/// Whether a number is a private key: from 1 to n - 1.
pub(crate) fn is_key(bytes: &[u8; 32]) -> bool {
    Scalar::from_be_bytes(bytes).is_some_and(|key| !key.is_zero())
}

pub(crate) fn secret_from(bytes: &[u8; 32]) -> Result<Secret, KeyTextError> {
    Secret::from_bytes(bytes).ok_or(KeyTextError::OutOfRange)
}

impl EncryptedKey {
    /// Decrypts the key, which takes memory and time on purpose: up to 256 MiB and some seconds in common forms.
    ///
    /// # Errors
    ///
    /// When the password is wrong, the text was altered, or the system lacks the memory.
    pub fn decrypt(&self, password: &Password) -> Result<Secret, KeyTextError> {
        let address = |bytes: &[u8; 32], is_compressed| {
            Secret::from_bytes(bytes).map(|secret| bip38_address(&secret, is_compressed))
        };
        let bytes = match self {
            EncryptedKey::Ncryptsec(sealed) => sealed.decrypt(password)?.secret,
            EncryptedKey::Bip38(sealed) => sealed.decrypt(password, address)?.secret,
            EncryptedKey::Web3(sealed) => {
                let read = sealed.decrypt(password)?;
                // The format's checksum leaves out a part of what the key is made from: the address tells.
                match read.address {
                    Some(address) if !is_account(&read.secret, &address) => {
                        return Err(
                            warpsmith_keystore::Error::WrongPassword { format: "Web3 keystore" }.into()
                        );
                    }
                    _ => read.secret,
                }
            }
        };
        secret_from(&bytes)
    }
}

/// Whether a key has this Ethereum address, which keystores write without its head and in small letters, or otherwise.
fn is_account(bytes: &[u8; 32], address: &str) -> bool {
    let written = address.trim_start_matches("0x").to_lowercase();
    Secret::from_bytes(bytes).is_some_and(|secret| {
        let digest = Account.digest(&public_point(&secret.public_key()));
        Account.encode(&digest)[2..].to_lowercase() == written
    })
}

/// Returns the address that the BIP-38 form of a key commits to.
///
/// ```
/// use warpsmith::keys::{Secret, bip38_address};
///
/// let mut one = [0; 32];
/// one[31] = 1;
/// let one = Secret::from_bytes(&one).unwrap();
/// assert_eq!(bip38_address(&one, true), "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH");
/// ```
pub fn bip38_address(secret: &Secret, is_compressed: bool) -> String {
    let kind = if is_compressed { AddressType::P2pkh } else { AddressType::P2pkhUncompressed };
    let target = BITCOIN.main(kind);
    target.encode(&target.digest(&public_point(&secret.public_key())))
}

#[cfg(test)]
mod tests {
    use warpsmith_keystore::KeySecurity;

    use super::*;

    fn one() -> Secret {
        let mut bytes = [0; 32];
        bytes[31] = 1;
        Secret::from_bytes(&bytes).expect("a key")
    }

    fn plain(text: &str) -> Result<[u8; 32], KeyTextError> {
        match parse_secret(text)? {
            KeyText::Plain(secret) => Ok(*secret.as_bytes()),
            KeyText::Encrypted(_) => panic!("it is not encrypted"),
        }
    }

    #[test]
    fn every_plain_form_is_read() {
        let hex = const_hex::encode(one().as_bytes());
        let nsec = "nsec1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqsmhltgl";
        let forms = [
            hex.clone(),
            format!("0x{hex}"),
            format!("\u{feff}{hex}\n"),
            "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn".to_owned(),
            "5HpHagT65TZzG1PH3CSu63k8DbpvD8s5ip4nEB3kEsreAnchuDf".to_owned(),
            nsec.to_owned(),
            nsec.to_uppercase(),
        ];
        for form in forms {
            assert_eq!(plain(&form).expect("a key"), *one().as_bytes(), "{form}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused_without_repeating_it() {
        let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
        assert!(matches!(plain(""), Err(KeyTextError::Empty)));
        assert!(matches!(plain("0x"), Err(KeyTextError::Empty)));
        assert!(matches!(plain("f00df00d"), Err(KeyTextError::Length(8))));
        assert!(matches!(plain("no key at all"), Err(KeyTextError::Characters)));
        for out in [order, &"0".repeat(64)] {
            assert!(matches!(plain(out), Err(KeyTextError::OutOfRange)));
        }
        for damaged in [
            "nsec1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqsmhltgq",
            "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWm",
            "ncryptsec1qqqq",
            "{\"crypto\":\"f00df00d\"}",
        ] {
            let error = plain(damaged).expect_err("it is damaged");
            assert!(matches!(error, KeyTextError::Encoding(_) | KeyTextError::Encrypted(_)), "{error:?}");
            let said = error.to_string();
            assert!(!said.contains("qqqq") && !said.contains("HnoW") && !said.contains("f00d"), "{said}");
        }
    }

    #[test]
    fn encrypted_forms_open_with_their_password_alone() {
        let password = |text: &str| Password::new(Zeroizing::new(text.to_owned())).expect("a password");
        let (secret, right, wrong) = (one(), password("p"), password("q"));
        let bytes = secret.as_bytes();
        let account = Account.digest(&public_point(&secret.public_key()));
        let mut address = [0; 20];
        address.copy_from_slice(account.as_bytes());
        let keystore = |address: &[u8; 20]| web3::encrypt(bytes, address, &right, 4).expect("a keystore");
        let forms = [
            nip49::encrypt(bytes, &right, 4, KeySecurity::NeverShown).expect("an ncryptsec"),
            keystore(&address),
        ];
        for form in forms {
            let Ok(KeyText::Encrypted(key)) = parse_secret(&form) else { panic!("{form}") };
            assert_eq!(key.decrypt(&right).expect("the key").as_bytes(), bytes);
            assert!(matches!(key.decrypt(&wrong), Err(KeyTextError::Encrypted(_))));
        }
        // A keystore whose key has another address was altered.
        let Ok(KeyText::Encrypted(key)) = parse_secret(&keystore(&[7; 20])) else { panic!("a keystore") };
        assert!(matches!(key.decrypt(&right), Err(KeyTextError::Encrypted(_))));
    }
}
