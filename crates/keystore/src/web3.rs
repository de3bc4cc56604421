//! Web3 Secret Storage, version 3: what geth, Foundry, MetaMask and most other Ethereum programs keep an account in.
//!
//! scrypt, AES-128-CTR, and Keccak-256 of the rest of the derived key and the ciphertext.
//! <https://ethereum.org/en/developers/docs/data-structures-and-encoding/web3-secret-storage/>. EIP-2335 is another format, for
//! validators' keys on another curve.

use aes::Aes128;
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use warpsmith_chain::ethereum::keccak256;
use warpsmith_text::json_mistake;
use zeroize::Zeroizing;

use crate::{Error, Password, Result, Scrypt, random};

const FORMAT: &str = "Web3 keystore";

/// The usual cost, geth's own: 256 MiB for a try.
pub const LOG_N: u8 = 18;

/// The most rounds of PBKDF2 that are done: sixteen times what anybody writes.
const MOST_ROUNDS: u32 = 1 << 24;

#[derive(Serialize, Deserialize)]
struct Document {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    // Some early programs wrote it with a capital.
    #[serde(alias = "Crypto")]
    crypto: Crypto,
    #[serde(default)]
    id: String,
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Crypto {
    cipher: String,
    cipherparams: CipherParams,
    ciphertext: String,
    #[serde(flatten)]
    kdf: Kdf,
    mac: String,
}

#[derive(Serialize, Deserialize)]
struct CipherParams {
    iv: String,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kdf", content = "kdfparams", rename_all = "lowercase")]
enum Kdf {
    Scrypt { dklen: u32, n: u64, p: u32, r: u32, salt: String },
    Pbkdf2 { c: u32, dklen: u32, prf: String, salt: String },
}

/// A key, and the account its file says it is of. Whether it is, the caller sees.
pub struct Decrypted {
    /// The key.
    pub secret: Zeroizing<[u8; 32]>,
    /// 40 hex digits as the file has them.
    pub address: Option<String>,
}

/// The key of the account `address` under this password, at the cost 2^`log_n`: a JSON document.
pub fn encrypt(secret: &[u8; 32], address: &[u8; 20], password: &Password, log_n: u8) -> Result<String> {
    let (salt, iv): ([u8; 32], [u8; 16]) = (random()?, random()?);
    let key: Zeroizing<[u8; 32]> =
        Scrypt::new([log_n.into(), 8, 1], FORMAT)?.key(password.as_bytes(), &salt)?;
    let mut sealed = *secret;
    apply(&key, &iv, &mut sealed);
    let document = Document {
        address: Some(const_hex::encode(address)),
        crypto: Crypto {
            cipher: "aes-128-ctr".to_owned(),
            cipherparams: CipherParams { iv: const_hex::encode(iv) },
            ciphertext: const_hex::encode(sealed),
            kdf: Kdf::Scrypt { dklen: 32, n: 1 << log_n, p: 1, r: 8, salt: const_hex::encode(salt) },
            mac: const_hex::encode(mac(&key, &sealed)),
        },
        id: uuid()?,
        version: 3,
    };
    Ok(serde_json::to_string(&document).expect("text keys and plain values"))
}

/// Whether a JSON document is of this kind.
pub fn is_keystore(document: &serde_json::Value) -> bool {
    document.get("version").is_some() && (document.get("crypto").or(document.get("Crypto"))).is_some()
}

/// How a key comes from a password.
enum Derivation {
    Scrypt(Scrypt),
    Pbkdf2 { rounds: u32 },
}

/// What a document holds, all of it checked but for the password.
pub struct Sealed {
    iv: [u8; 16],
    sealed: [u8; 32],
    mac: [u8; 32],
    salt: Vec<u8>,
    derivation: Derivation,
    address: Option<String>,
}

/// Reads a document.
pub fn read(document: &str) -> Result<Sealed> {
    let bad = |why: String| Error::malformed(FORMAT, why);
    let document: Document = serde_json::from_str(document).map_err(|error| bad(shown(&error)))?;
    let Document { address, crypto, version, .. } = document;
    if version != 3 {
        return Err(bad(format!("its version is {version}, and 3 is known")));
    }
    if crypto.cipher != "aes-128-ctr" {
        return Err(bad("its cipher is not aes-128-ctr".to_owned()));
    }
    let hex = |what: &str, text: &str| {
        const_hex::decode(text).map_err(|_| bad(format!("its {what} is not of hex digits")))
    };
    let fixed = |what: &str| bad(format!("its {what} has another length"));
    let iv: [u8; 16] = hex("iv", &crypto.cipherparams.iv)?.try_into().map_err(|_| fixed("iv"))?;
    let sealed: [u8; 32] =
        hex("ciphertext", &crypto.ciphertext)?.try_into().map_err(|_| fixed("ciphertext"))?;
    let mac: [u8; 32] = hex("mac", &crypto.mac)?.try_into().map_err(|_| fixed("mac"))?;
    let (Kdf::Scrypt { dklen, salt, .. } | Kdf::Pbkdf2 { dklen, salt, .. }) = &crypto.kdf;
    if *dklen != 32 {
        return Err(bad("its dklen is not 32".to_owned()));
    }
    let salt = hex("salt", salt)?;
    let derivation = match crypto.kdf {
        Kdf::Scrypt { n, .. } if !n.is_power_of_two() => {
            return Err(bad("its n is no power of two".to_owned()));
        }
        Kdf::Scrypt { n, p, r, .. } => Derivation::Scrypt(Scrypt::new([n.ilog2(), r, p], FORMAT)?),
        Kdf::Pbkdf2 { c, prf, .. } if prf == "hmac-sha256" && (1..=MOST_ROUNDS).contains(&c) => {
            Derivation::Pbkdf2 { rounds: c }
        }
        Kdf::Pbkdf2 { .. } => {
            return Err(bad("its PBKDF2 is not of hmac-sha256, or of no or too many rounds".to_owned()));
        }
    };
    Ok(Sealed { iv, sealed, mac, salt, derivation, address })
}

/// What is wrong with a document. SEC: the library's own words would repeat what stands there, which may be a key in clear.
fn shown(error: &serde_json::Error) -> String {
    let (text, line, column) = (error.to_string(), error.line(), error.column());
    match error.classify() {
        serde_json::error::Category::Data if text.starts_with("missing field") => json_mistake(&text),
        serde_json::error::Category::Data => {
            format!("a field is not what it should be (line {line}, column {column})")
        }
        _ => format!("it is not whole, or no JSON (line {line}, column {column})"),
    }
}

impl Sealed {
    /// The key, by its password.
    pub fn decrypt(&self, password: &Password) -> Result<Decrypted> {
        let key = match &self.derivation {
            Derivation::Scrypt(cost) => cost.key(password.as_bytes(), &self.salt)?,
            Derivation::Pbkdf2 { rounds } => {
                let mut key = Zeroizing::new([0; 32]);
                pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), &self.salt, *rounds, &mut *key);
                key
            }
        };
        if mac(&key, &self.sealed) != self.mac {
            return Err(Error::WrongPassword { format: FORMAT });
        }
        let mut secret = Zeroizing::new(self.sealed);
        apply(&key, &self.iv, &mut secret);
        Ok(Decrypted { secret, address: self.address.clone() })
    }

    /// What a password costs to try: blocks of scrypt, or rounds.
    pub fn blocks(&self) -> u64 {
        match &self.derivation {
            Derivation::Scrypt(cost) => cost.blocks,
            Derivation::Pbkdf2 { rounds } => u64::from(*rounds),
        }
    }
}

/// The key of a document, by its password.
pub fn decrypt(document: &str, password: &Password) -> Result<Decrypted> {
    read(document)?.decrypt(password)
}

/// AES-128-CTR, either way.
fn apply(key: &[u8; 32], iv: &[u8; 16], data: &mut [u8; 32]) {
    let mut half = Zeroizing::new([0; 16]);
    half.copy_from_slice(&key[..16]);
    Ctr128BE::<Aes128>::new((&*half).into(), iv.into()).apply_keystream(data);
}

fn mac(key: &[u8; 32], sealed: &[u8; 32]) -> [u8; 32] {
    let mut message = Zeroizing::new([0; 48]);
    message[..16].copy_from_slice(&key[16..]);
    message[16..].copy_from_slice(sealed);
    keccak256(&*message)
}

/// A random one (RFC 9562, version 4).
fn uuid() -> Result<String> {
    let mut bytes: [u8; 16] = random()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = const_hex::encode(bytes);
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

/// The name that geth gives the file of an account, for seconds since 1970 (UTC) and nanoseconds.
pub fn file_name(seconds: u64, nanoseconds: u32, address: &[u8; 20]) -> String {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!(
        "UTC--{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}.{nanoseconds:09}Z--{}",
        const_hex::encode(address)
    )
}

/// The date of a day since 1970, in the Gregorian calendar: years that begin in March put the odd day at their end.
fn date(days: u64) -> (u64, u64, u64) {
    // Days since 0000-03-01.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let (month, day) = ((from_march + 2) % 12 + 1, day - (153 * from_march + 2) / 5 + 1);
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(text: &str) -> Password {
        Password::new(text.to_owned().into()).unwrap()
    }

    /// The two of the specification.
    const SCRYPT: &str = r#"{"crypto":{"cipher":"aes-128-ctr","cipherparams":{"iv":"83dbcc02d8ccb40e466191a123791e0e"},"ciphertext":"d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c","kdf":"scrypt","kdfparams":{"dklen":32,"n":262144,"p":8,"r":1,"salt":"ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19"},"mac":"2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097"},"id":"3198bc9c-6672-5ab3-d995-4942343ae5b6","version":3}"#;
    const PBKDF2: &str = r#"{"crypto":{"cipher":"aes-128-ctr","cipherparams":{"iv":"6087dab2f9fdbbfaddc31a909735c1e6"},"ciphertext":"5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46","kdf":"pbkdf2","kdfparams":{"c":262144,"dklen":32,"prf":"hmac-sha256","salt":"ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"},"mac":"517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"},"id":"3198bc9c-6672-5ab3-d995-4942343ae5b6","version":3}"#;

    #[test]
    fn the_vectors_of_the_specification_are_read() {
        for vector in [SCRYPT, PBKDF2] {
            let read = decrypt(vector, &password("testpassword")).unwrap();
            let expected = "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d";
            assert_eq!(const_hex::encode(*read.secret), expected);
            assert_eq!(read.address, None);
        }
        assert!(matches!(decrypt(PBKDF2, &password("other")), Err(Error::WrongPassword { .. })));
    }

    #[test]
    fn keys_go_there_and_back() {
        let (key, address) = ([0x5a; 32], [0xca; 20]);
        let text = encrypt(&key, &address, &password("p"), 4).unwrap();
        let read = decrypt(&text, &password("p")).unwrap();
        assert_eq!((*read.secret, read.address), (key, Some("ca".repeat(20))));
        assert!(matches!(decrypt(&text, &password("q")), Err(Error::WrongPassword { .. })));
        let other = decrypt(&text.replace("crypto", "Crypto"), &password("p"));
        assert_eq!(*other.unwrap().secret, key);
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(is_keystore(&document));
        let id = document["id"].as_str().unwrap();
        assert_eq!((id.len(), &id[14..15]), (36, "4"));
    }

    #[test]
    fn what_is_altered_or_asks_for_too_much_is_refused() {
        let text = encrypt(&[1; 32], &[2; 20], &password("p"), 4).unwrap();
        for (from, to) in [
            ("\"n\":16", "\"n\":17"),
            ("\"n\":16", "\"n\":9223372036854775808"),
            ("\"n\":16", "\"n\":1"),
            ("\"p\":1", "\"p\":4294967295"),
            ("\"p\":1", "\"p\":0"),
            ("\"r\":8", "\"r\":4294967295"),
            ("\"dklen\":32", "\"dklen\":16"),
            ("aes-128-ctr", "aes-128-cbc"),
            ("\"version\":3", "\"version\":4"),
            ("\"iv\":\"", "\"iv\":\"00"),
            ("\"mac\":\"", "\"mac\":\"zz"),
            ("\"ciphertext\":\"", "\"ciphertext\":\"00"),
            ("scrypt", "argon2"),
        ] {
            assert!(text.contains(from));
            assert!(decrypt(&text.replace(from, to), &password("p")).is_err(), "{from} as {to}");
        }
        assert!(decrypt(&PBKDF2.replace("262144", "0"), &password("p")).is_err());
        assert!(decrypt(&PBKDF2.replace("262144", "4294967295"), &password("p")).is_err());
    }

    #[test]
    fn files_are_named_as_geth_names_them() {
        let address = [0xab; 20];
        let name = |seconds| file_name(seconds, 123_456_789, &address);
        assert_eq!(name(0), format!("UTC--1970-01-01T00-00-00.123456789Z--{}", "ab".repeat(20)));
        assert!(name(951_782_400).starts_with("UTC--2000-02-29T00-00-00."));
        assert!(name(1_794_882_913).starts_with("UTC--2026-11-17T02-35-13."));
        assert!(name(4_107_542_399).starts_with("UTC--2100-02-28T23-59-59."));
        assert!(name(4_107_542_400).starts_with("UTC--2100-03-01T00-00-00."));
    }
}
