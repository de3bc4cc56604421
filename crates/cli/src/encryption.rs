//! `--encrypt` and `--encrypt-to`: what results are encrypted with, and what they look like then.
//!
//! SEC: with either flag a private key is in no text of a result, nor are details that hold it. A password comes by prompt or file
//! and is checked before anything is searched; one that is empty is refused.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use warpsmith::chain::ethereum::Account;
use warpsmith::chain::{CHAINS, EncryptedForm, KeyTarget};
use warpsmith::keys::{Secret, bip38_address, public_point};
use warpsmith::keystore::age::{self, Recipient};
use warpsmith::keystore::{Error, KeySecurity, Password, bip38, nip49, web3};
use warpsmith_console::exit::Failure;
use warpsmith_console::prompt;
use zeroize::Zeroizing;

use crate::encrypted::Encrypted;
use crate::record::{Deliverable, Telling};
use crate::running::RESULTS;

/// For every command whose results hold private keys.
#[derive(Args)]
pub(crate) struct RecipientFlags {
    /// Write results only encrypted for this age recipient, who reads them with `age -d`: no password is on this machine
    #[arg(long, value_name = "age1...", help_heading = RESULTS)]
    encrypt_to: Option<String>,
}

impl RecipientFlags {
    /// Reads the recipient.
    pub fn open(&self) -> Result<Option<Encryption>, Failure> {
        let read = |text: &String| {
            let recipient = Recipient::parse(text).map_err(|error| {
                Failure::Usage(format!(
                    "--encrypt-to: {error}. `age-keygen -o own.age` makes an identity, and prints its recipient"
                ))
            })?;
            Ok(Encryption { way: Way::Recipient(recipient), folder: None })
        };
        self.encrypt_to.as_ref().map(read).transpose()
    }
}

/// For commands whose results are keys of one chain.
#[derive(Args)]
pub(crate) struct EncryptFlags {
    /// Write keys only encrypted under a password: ncryptsec (NIP-49) for npub, a Web3 keystore for eth, BIP-38 for btc
    #[arg(long, conflicts_with = "encrypt_to", help_heading = RESULTS)]
    encrypt: bool,

    /// With --encrypt: the file with the password, mode 0600, instead of a prompt
    #[arg(long, value_name = "FILE", requires = "encrypt", help_heading = RESULTS)]
    password_file: Option<PathBuf>,

    /// With --encrypt, for eth: write each account to a file of its own in this folder, named as geth names them
    #[arg(long, value_name = "DIR", requires = "encrypt", help_heading = RESULTS)]
    keystore: Option<PathBuf>,

    #[command(flatten)]
    recipient: RecipientFlags,
}

impl EncryptFlags {
    /// Whether anything shall be encrypted.
    pub fn is_given(&self) -> bool {
        self.encrypt || self.recipient.encrypt_to.is_some()
    }

    /// Whether results of this target can be encrypted as asked for.
    pub fn check(&self, target: &dyn KeyTarget) -> Result<(), Failure> {
        if !self.encrypt {
            return Ok(());
        }
        let form = target.encrypted_form().ok_or_else(|| no_form(target))?;
        if self.keystore.is_some() && form != EncryptedForm::Web3 {
            return Err(Failure::Usage(format!(
                "--keystore is for Ethereum accounts, and this is {}; leave it out: the encrypted key is part of the result",
                target.name()
            )));
        }
        Ok(())
    }

    /// Asks for what is needed: a password, or nothing.
    pub fn open(&self) -> Result<Option<Encryption>, Failure> {
        if !self.encrypt {
            return self.recipient.open();
        }
        if let Some(folder) = &self.keystore {
            open_folder(folder)?;
        }
        let password = match &self.password_file {
            Some(file) => read_password("--password-file", file)?,
            None => ask_twice()?,
        };
        Ok(Some(Encryption { way: Way::Password(password), folder: self.keystore.clone() }))
    }

    /// Warnings about the password and the form it protects the key in.
    pub fn caution(&self, target: &dyn KeyTarget, encryption: &Encryption) -> Option<String> {
        let Way::Password(password) = &encryption.way else { return None };
        let form = target.encrypted_form()?;
        let cost = match form {
            EncryptedForm::Ncryptsec => {
                "ncryptsec costs an attacker 64 MiB and 0.3 s of a core for each guess"
            }
            EncryptedForm::Web3 => {
                "a Web3 keystore costs an attacker 256 MiB and 1.2 s of a core for each guess"
            }
            EncryptedForm::Bip38 { .. } => {
                "BIP-38 costs an attacker 16 MiB and 0.5 s of a core for each guess, fixed in 2012"
            }
        };
        let strength = match (password.is_weak(), form) {
            (true, _) => Some(format!(
                "the password is weak: {cost}. Use six random words or more, or --encrypt-to, which needs no password"
            )),
            (false, EncryptedForm::Bip38 { .. }) => {
                Some(format!("{cost}: use six random words or more, or --encrypt-to"))
            }
            (false, _) => None,
        };
        let more = match form {
            EncryptedForm::Bip38 { .. } => Some(
                "It says nothing of the type of address: keep that, or the descriptor, beside it".to_owned(),
            ),
            EncryptedForm::Web3 if !password.is_the_same_everywhere() => Some(
                "this password has characters that can be written in more than one way: geth and cast take it as it was typed, \
                 ethers changes it first (NFKC). Letters and digits without accents are the same everywhere"
                    .to_owned(),
            ),
            _ => None,
        };
        let all: Vec<String> = [strength, more].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(". "))
    }
}

fn no_form(target: &dyn KeyTarget) -> Failure {
    let on = if CHAINS.iter().any(|chain| {
        let named = chain.name == target.name();
        named && chain.usual().encrypted_form().is_some()
    }) {
        " on the test network"
    } else {
        ""
    };
    Failure::Usage(format!(
        "--encrypt: there is no form under a password that wallets import for {}{on}. There is ncryptsec for npub, the Web3 \
         keystore for eth, and BIP-38 for btc on the main network; for every target there is --encrypt-to age1..., which \
         `age -d` reads",
        target.name()
    ))
}

fn open_folder(folder: &Path) -> Result<(), Failure> {
    let about = format!("--keystore {}", folder.display());
    if !folder.exists() {
        DirBuilder::new().mode(0o700).create(folder).map_err(|error| Failure::of(&about, &error))?;
    }
    let inside = folder.join("UTC");
    warpsmith_files::check_folder(&inside).map_err(|error| Failure::of(&about, &error))?;
    warpsmith_files::scratch(&inside).map(drop).map_err(|error| Failure::of(&about, &error))
}

/// A password from a file: its text without the end of its last line.
pub(crate) fn read_password(flag: &str, file: &Path) -> Result<Password, Failure> {
    let bad = |why: String| Failure::Usage(format!("{flag} {}: {why}", file.display()));
    let content =
        warpsmith_files::read_secret(file, prompt::MAX_BYTES as u64).map_err(|error| match error {
            warpsmith_files::Error::Unsafe { .. } => Failure::Other(format!(
                "{flag}: {error}. A password that others can read or replace is not used"
            )),
            error => bad(error.to_string()),
        })?;
    let text = std::str::from_utf8(&content).map_err(|_| bad("it is not text (UTF-8)".to_owned()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
    if text.contains(['\n', '\r']) {
        return Err(bad("it has several lines; a password is one".to_owned()));
    }
    Password::new(Zeroizing::new(text.to_owned())).map_err(|error| bad(error.to_string()))
}

const INSTEAD: &str = "give the password in a file, mode 0600: --password-file FILE";

fn ask_twice() -> Result<Password, Failure> {
    let password = ask_password("a password for the keys")?;
    match prompt::ask("the same password again", INSTEAD)?.as_bytes() == password.as_bytes() {
        true => Ok(password),
        false => Err(Failure::Usage("the two passwords differ; nothing was searched. Try again".to_owned())),
    }
}

/// Asks for a password once.
pub(crate) fn ask_password(question: &str) -> Result<Password, Failure> {
    Password::new(prompt::ask(question, INSTEAD)?).map_err(|error| Failure::Usage(error.to_string()))
}

/// What results are encrypted with.
pub(crate) struct Encryption {
    way: Way,
    /// Where keystores go.
    folder: Option<PathBuf>,
}

enum Way {
    Password(Password),
    Recipient(Recipient),
}

impl Encryption {
    /// Encrypts a result's key. Takes up to 256 MiB and a second or so.
    pub fn seal(&self, found: &Deliverable) -> Result<Encrypted, Failure> {
        let failed = |error: Error| {
            Failure::Other(format!("the key of {} could not be encrypted: {error}", found.address()))
        };
        let password = match &self.way {
            Way::Recipient(recipient) => {
                // All of the result, as `warpsmith verify` reads it.
                let text =
                    age::encrypt(&found.text(true, Telling::Plain, true), recipient).map_err(failed)?;
                return Ok(Encrypted::text("age", text));
            }
            Way::Password(password) => password,
        };
        let (Some(secret), Some(form)) = (found.secret(), found.encrypted_form()) else {
            return Err(Failure::Other(format!("{} has no encrypted form", found.address())));
        };
        match form {
            EncryptedForm::Ncryptsec => {
                // SEC: nobody has seen it, and nobody sees it now.
                nip49::encrypt(secret.as_bytes(), password, nip49::LOG_N, KeySecurity::NeverShown)
                    .map(|text| Encrypted::text("ncryptsec", text))
            }
            EncryptedForm::Web3 => self.web3(secret, password),
            EncryptedForm::Bip38 { is_compressed } => {
                let address = bip38_address(secret, is_compressed);
                bip38::encrypt(secret.as_bytes(), is_compressed, &address, password)
                    .map(|text| Encrypted::text("bip38", text))
            }
        }
        .map_err(failed)
    }

    fn web3(&self, secret: &Secret, password: &Password) -> Result<Encrypted, Error> {
        let digest = Account.digest(&public_point(&secret.public_key()));
        let mut account = [0; 20];
        account.copy_from_slice(digest.as_bytes());
        let document = web3::encrypt(secret.as_bytes(), &account, password, web3::LOG_N)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = web3::file_name(now.as_secs(), now.subsec_nanos(), &account);
        let document = serde_json::from_str(&document).expect("our own document");
        Ok(Encrypted::keystore(document, self.folder.as_ref().map(|folder| folder.join(name))))
    }
}
