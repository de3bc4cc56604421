//! The user's own private key and other secrets, read from a file, standard input or a prompt.
//!
//! SEC: it enters by file, standard input or prompt, is held in buffers that are erased, and is in no message.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use warpsmith::keys::{KeyText, Secret, parse_secret};
use warpsmith::keystore::Password;
use warpsmith_console::exit::Failure;
use warpsmith_console::input::name;
use warpsmith_console::prompt;
use zeroize::Zeroizing;

use warpsmith::verify::PasswordRequest;

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
    let secret = match parse_secret(text) {
        Ok(KeyText::Plain(secret)) => Ok(secret),
        Ok(KeyText::Encrypted(key)) => key.decrypt(&ask(password_question(PasswordRequest::from(&key)))?),
        Err(error) => Err(error),
    };
    secret.map_err(|error| match error.is_out_of_memory() {
        true => Failure::Other(error.to_string()),
        false => bad(error.to_string()),
    })
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

/// The words in which a person is asked for a password.
pub(crate) fn password_question(request: PasswordRequest) -> &'static str {
    match request {
        PasswordRequest::Ncryptsec => "the password of the ncryptsec",
        PasswordRequest::Bip38 => "the password of the BIP-38 key",
        PasswordRequest::Keystore => "the password of the keystore",
        PasswordRequest::Result => "the password of the keys",
    }
}
