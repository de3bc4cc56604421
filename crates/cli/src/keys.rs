//! A private key as people keep it: hex, nsec or WIF, or encrypted.
//!
//! SEC: it enters by file, standard input or prompt, is held in buffers that are erased, and is in no message.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use warpsmith::chain::coin::decode_wif;
use warpsmith::chain::ethereum::Account;
use warpsmith::chain::{KeyTarget, Target, nostr};
use warpsmith::curve::Scalar;
use warpsmith::keys::{Secret, public_point};
use warpsmith::keystore::{Error, Password, bip38, nip49, web3};
use warpsmith_console::exit::Failure;
use warpsmith_console::input::name;
use warpsmith_console::prompt;
use zeroize::Zeroizing;

use crate::encryption::p2pkh;

/// Bytes of a key file, at most: the longest form of a key has half of it.
const LONGEST_KEY: u64 = 1023;

/// The ways to write a key, for messages.
pub(crate) const FORMS: &str =
    "64 hex digits, an nsec, or a WIF key, or one of them encrypted (ncryptsec, BIP-38, a Web3 keystore)";

/// Asks for the password of an encrypted key.
pub(crate) type Ask<'a> = &'a mut dyn FnMut(&str) -> Result<Password, Failure>;

/// A key from a file, from standard input for `-`, or typed by a person.
pub(crate) fn read(file: Option<&str>, ask: Ask<'_>) -> Result<Secret, Failure> {
    let name = file.map_or("what was typed", name);
    let bad = |why: String| {
        Failure::Usage(format!(
            "the key in {name} cannot be used: {why}. It must be your own private key and nothing else: {FORMS}"
        ))
    };
    let content = match file {
        None => {
            let typed =
                prompt::ask("your own private key", "give it in a file, mode 0600: --secret-key-file FILE")?;
            Zeroizing::new(typed.as_bytes().to_vec())
        }
        Some(file) => content("--secret-key-file", file, &bad)?,
    };
    let text = std::str::from_utf8(&content).map_err(|_| bad("it is not text".to_owned()))?;
    parse(text, ask)?.map_err(bad)
}

/// What a file with a secret holds, or standard input for `-`. `bad` makes the message of what is wrong with the content.
pub(crate) fn content(
    flag: &str,
    file: &str,
    bad: &dyn Fn(String) -> Failure,
) -> Result<Zeroizing<Vec<u8>>, Failure> {
    if file == "-" {
        return standard_input().map_err(|error| bad(error.to_string()));
    }
    warpsmith_files::read_secret(Path::new(file), LONGEST_KEY).map_err(|error| match error {
        warpsmith_files::Error::Unsafe { .. } => {
            Failure::Other(format!("{flag}: {error}. A secret that others can read or replace is not used"))
        }
        warpsmith_files::Error::TooLong { .. } => bad("it is far longer than a key".to_owned()),
        error => bad(error.to_string()),
    })
}

/// A key from standard input, past the library's buffer, which would keep a copy.
fn standard_input() -> io::Result<Zeroizing<Vec<u8>>> {
    let source = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Large enough from the start: a buffer that grows leaves copies behind.
    let mut content = Zeroizing::new(Vec::with_capacity(LONGEST_KEY as usize + 32));
    source.take(LONGEST_KEY + 1).read_to_end(&mut content)?;
    match content.len() as u64 > LONGEST_KEY {
        true => Err(io::Error::other("it is far longer than a key")),
        false => Ok(content),
    }
}

/// A key in whatever form; asks for a password where it is encrypted. The outer error is that of asking.
pub(crate) fn parse(text: &str, ask: Ask<'_>) -> Result<Result<Secret, String>, Failure> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim();
    let begins = |head: &str| text.get(..head.len()).is_some_and(|found| found.eq_ignore_ascii_case(head));
    // What no password opens is told before one is asked for.
    let sealed = if begins("ncryptsec1") {
        nip49::read(text).map(Encrypted::Ncryptsec)
    } else if text.len() == BIP38 && text.starts_with("6P") {
        bip38::read(text).map(Encrypted::Bip38)
    } else if text.starts_with('{') {
        web3::read(text).map(Encrypted::Web3)
    } else {
        return Ok(plain(text).and_then(|bytes| secret(&bytes)));
    };
    let sealed = match sealed {
        Ok(sealed) => sealed,
        Err(error) => return why(error).map(Err),
    };
    match sealed.decrypt(&ask(sealed.question())?) {
        Ok(bytes) => Ok(secret(&bytes)),
        Err(error) => why(error).map(Err),
    }
}

/// Why a key does not open; memory that the system does not give is no fault of the key.
pub(crate) fn why(error: Error) -> Result<String, Failure> {
    match error {
        Error::NoMemory { .. } => Err(Failure::Other(error.to_string())),
        error => Ok(error.to_string()),
    }
}

/// A key under a password, its text known to be whole.
pub(crate) enum Encrypted {
    Ncryptsec(nip49::Sealed),
    Bip38(bip38::Sealed),
    Web3(web3::Sealed),
}

impl Encrypted {
    /// What to ask a person for.
    fn question(&self) -> &'static str {
        match self {
            Encrypted::Ncryptsec(_) => "the password of the ncryptsec",
            Encrypted::Bip38(_) => "the password of the BIP-38 key",
            Encrypted::Web3(_) => "the password of the keystore",
        }
    }

    /// The key.
    pub(crate) fn decrypt(&self, password: &Password) -> Result<Zeroizing<[u8; 32]>, Error> {
        let address = |bytes: &[u8; 32], is_compressed| {
            Secret::from_bytes(bytes).map(|secret| p2pkh(&secret, is_compressed))
        };
        match self {
            Encrypted::Ncryptsec(sealed) => sealed.decrypt(password).map(|read| read.secret),
            Encrypted::Bip38(sealed) => sealed.decrypt(password, address).map(|read| read.secret),
            Encrypted::Web3(sealed) => {
                let read = sealed.decrypt(password)?;
                // The format's checksum leaves out a part of what the key is made from: the address tells.
                match read.address {
                    Some(address) if !is_account(&read.secret, &address) => {
                        Err(Error::WrongPassword { format: "Web3 keystore" })
                    }
                    _ => Ok(read.secret),
                }
            }
        }
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

/// The key with these bytes.
pub(crate) fn secret(bytes: &[u8; 32]) -> Result<Secret, String> {
    Secret::from_bytes(bytes).ok_or_else(|| {
        "the number is 0 or not below the order of secp256k1, so no public key has it".to_owned()
    })
}

/// The bytes of a key that is not encrypted.
pub(crate) fn plain(text: &str) -> Result<Zeroizing<[u8; 32]>, String> {
    match text.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("nsec")) {
        true => nostr::decode_secret(text).map_err(|error| error.to_string()),
        // Hex has 64 digits, with 0x 66: a WIF key is shorter, and rarely of hex digits alone.
        false if WIF_LENGTHS.contains(&text.len()) && !is_hex(text) => {
            decode_wif(text).map(|wif| wif.secret).map_err(|error| error.to_string())
        }
        false => hex_key(text),
    }
}

/// Whether a number is a private key: from 1 to n - 1.
pub(crate) fn is_key(bytes: &[u8; 32]) -> bool {
    Scalar::from_be_bytes(bytes).is_some_and(|key| !key.is_zero())
}

/// A key in wallet import format has so many characters: uncompressed, compressed; a BIP-38 key this many.
const WIF_LENGTHS: [usize; 2] = [51, 52];
const BIP38: usize = 58;

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A key of 64 hex digits. SEC: what is wrong is said without repeating any of it.
fn hex_key(text: &str) -> Result<Zeroizing<[u8; 32]>, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.is_empty() {
        return Err("it is empty".to_owned());
    }
    if !is_hex(digits) {
        return Err("it holds something that is neither an nsec, nor a WIF key, nor hex digits".to_owned());
    }
    let mut bytes = Zeroizing::new([0; 32]);
    const_hex::decode_to_slice(digits, bytes.as_mut_slice())
        .map_err(|_| format!("it has {} hex digits", digits.len()))?;
    Ok(bytes)
}
