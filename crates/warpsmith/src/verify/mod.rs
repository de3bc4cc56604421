//! Verification: recomputes everything about results and keys, and says what holds.
//!
//! [`claims`] finds results and keys in a text: JSON documents, the labelled lines for people, or keys, one per line. A [`Verifier`]
//! recomputes each, by libsecp256k1 and the rules of contract factories, and returns a [`Report`]. SEC: a report has addresses and
//! public keys in it, never a private key.

mod claim;
mod key;
mod salt;

use std::error::Error as StdError;
use std::fmt;

use warpsmith_chain::ethereum::Factory;
use warpsmith_keystore::Password;
use warpsmith_text::Shown;

pub use claim::{Claim, claims, json_documents};

use crate::key_text::{EncryptedKey, KeyTextError};
use crate::keys::Secret;

/// Verifies all results and keys of a text, encrypted keys excepted.
///
/// ```
/// use warpsmith::verify::{Outcome, verify};
///
/// let result = |address: &str| format!(
///     r#"{{"target":"btc","type":"p2pkh","address":"{address}",
///          "export":"KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn"}}"#
/// );
/// let reports = verify(&result("1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH"))?;
/// assert_eq!(reports[0].outcome(), Outcome::Holds);
/// let reports = verify(&result("1CUNEBjYrCn2y1SdiUMohaKUi4wpP326Lb"))?;
/// assert_eq!(reports[0].outcome(), Outcome::DoesNotHold);
/// # Ok::<(), warpsmith::verify::Error>(())
/// ```
///
/// # Errors
///
/// As for [`Verifier::verify`].
pub fn verify(text: &str) -> Result<Vec<Report>, Error> {
    let mut verifier = Verifier::new();
    claims(text).map(|claim| verifier.verify(&claim)).collect()
}

/// The result of one comparison.
///
/// See [`Report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was recomputed and is the same.
    Holds,
    /// It was recomputed and differs, or it cannot be read.
    DoesNotHold,
    /// It is a fact with nothing to compare it to.
    Info,
    /// It cannot be recomputed.
    Unknown(UnknownReason),
}

/// The reason why something cannot be recomputed.
///
/// See [`Report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownReason {
    /// A salt is for a factory whose rule is not known.
    Factory,
    /// A key is encrypted, and there is no password.
    Password,
}

/// One comparison.
///
/// See [`Report`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The field.
    pub name: String,
    /// How it compares.
    pub verdict: Verdict,
    /// Why, or the fact itself.
    pub detail: String,
}

/// The outcome of all checks of a claim.
///
/// See [`Report::outcome`](Report).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything holds.
    Holds,
    /// Something does not hold.
    DoesNotHold,
    /// Something cannot be checked, and all else holds.
    Unknown(UnknownReason),
}

/// All checks of a result or a key.
///
/// ```
/// use warpsmith::verify::{Outcome, verify};
///
/// // A key by itself: its addresses on every chain.
/// let reports = verify("KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn")?;
/// assert_eq!((reports.len(), reports[0].outcome()), (1, Outcome::Holds));
/// let eth = reports[0].checks.iter().find(|check| check.name == "eth").unwrap();
/// assert_eq!(eth.detail, "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf");
/// # Ok::<(), warpsmith::verify::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    /// The address, or the kind of key.
    pub subject: String,
    /// The checks, in the order of computation.
    pub checks: Vec<Check>,
}

impl Report {
    fn new(subject: impl Into<String>) -> Report {
        Report { subject: subject.into(), checks: Vec::new() }
    }

    /// Returns the outcome of all checks together.
    pub fn outcome(&self) -> Outcome {
        let verdicts = || self.checks.iter().map(|check| check.verdict);
        let unknown = verdicts().find_map(|verdict| match verdict {
            Verdict::Unknown(reason) => Some(reason),
            _ => None,
        });
        match (verdicts().any(|verdict| verdict == Verdict::DoesNotHold), unknown) {
            (true, _) => Outcome::DoesNotHold,
            (false, Some(reason)) => Outcome::Unknown(reason),
            (false, None) => Outcome::Holds,
        }
    }

    fn add(&mut self, name: &str, verdict: Verdict, detail: impl Into<String>) {
        self.checks.push(Check { name: name.to_owned(), verdict, detail: detail.into() });
    }

    fn holds(&mut self, name: &str, detail: impl Into<String>) {
        self.add(name, Verdict::Holds, detail);
    }

    fn info(&mut self, name: &str, detail: impl Into<String>) {
        self.add(name, Verdict::Info, detail);
    }

    fn wrong(&mut self, name: &str, detail: impl Into<String>) {
        self.add(name, Verdict::DoesNotHold, detail);
    }

    /// Compares what follows from `from` with what is written.
    fn compare(&mut self, name: &str, computed: &str, written: &str, from: &str) {
        match computed == written {
            true => self.holds(name, format!("follows from {from}")),
            false => self.wrong(name, format!("{from} leads to {computed}, not to {}", Shown(written))),
        }
    }
}

/// The reason why a claim cannot be verified at all.
///
/// See [`Verifier`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source of passwords failed.
    #[error("{0}")]
    Password(Box<dyn StdError + Send + Sync>),
    /// The system lacks the memory to decrypt a key.
    #[error(transparent)]
    Memory(KeyTextError),
}

/// The key that a password is asked for.
///
/// See [`Verifier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordRequest {
    /// An ncryptsec by itself.
    Ncryptsec,
    /// A BIP-38 key by itself.
    Bip38,
    /// A Web3 keystore by itself.
    Keystore,
    /// The key of a result.
    Result,
}

impl From<&EncryptedKey> for PasswordRequest {
    fn from(key: &EncryptedKey) -> PasswordRequest {
        match key {
            EncryptedKey::Ncryptsec(_) => PasswordRequest::Ncryptsec,
            EncryptedKey::Bip38(_) => PasswordRequest::Bip38,
            EncryptedKey::Web3(_) => PasswordRequest::Keystore,
        }
    }
}

type PasswordSource<'a> =
    dyn FnMut(PasswordRequest) -> Result<Password, Box<dyn StdError + Send + Sync>> + 'a;

/// Recomputes claims.
///
/// ```
/// use warpsmith::keystore::{KeySecurity, Password, nip49};
/// use warpsmith::verify::{Outcome, UnknownReason, Verifier, claims};
///
/// let password = Password::new("correct horse".to_owned().into())?;
/// let text = nip49::encrypt(&[7; 32], &password, 10, KeySecurity::NeverShown)?;
/// let claim = claims(&text).next().expect("a key");
/// let report = Verifier::new().verify(&claim)?;
/// assert_eq!(report.outcome(), Outcome::Unknown(UnknownReason::Password));
/// let report = Verifier::new().passwords(|_| Ok(password.clone())).verify(&claim)?;
/// assert_eq!(report.outcome(), Outcome::Holds);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Verifier<'a> {
    factory: Option<&'a Factory>,
    passwords: Option<Box<PasswordSource<'a>>>,
}

impl<'a> Verifier<'a> {
    /// A verifier that knows the built-in factories and no password.
    pub fn new() -> Verifier<'a> {
        Verifier::default()
    }

    /// Adds a factory by its rule. It goes before a built-in one of its name.
    pub fn factory(self, factory: &'a Factory) -> Verifier<'a> {
        Verifier { factory: Some(factory), ..self }
    }

    /// Asks this function for passwords of encrypted keys.
    pub fn passwords(
        self,
        source: impl FnMut(PasswordRequest) -> Result<Password, Box<dyn StdError + Send + Sync>> + 'a,
    ) -> Verifier<'a> {
        Verifier { passwords: Some(Box::new(source)), ..self }
    }

    /// Recomputes a result or a key. What is wrong with it is part of the report.
    ///
    /// # Errors
    ///
    /// When the source of passwords fails, or the system lacks the memory to decrypt a key.
    pub fn verify(&mut self, claim: &Claim) -> Result<Report, Error> {
        match claim {
            Claim::Result(document) if document.0.get("salt").is_some() => {
                Ok(salt::check(&document.0, self.factory))
            }
            Claim::Result(document) => key::check_result(&document.0, self),
            Claim::Keystore(document) => key::check_keystore(&document.0, self),
            Claim::Key(text) => key::check_key(text, self),
        }
    }

    /// Decrypts a key with the password for it. The reason is inside where the key is not to be had.
    fn open(&mut self, key: &EncryptedKey, request: PasswordRequest) -> Result<Result<Secret, NoKey>, Error> {
        let Some(password) = self.password(request)? else { return Ok(Err(NoKey::Password)) };
        match key.decrypt(&password) {
            Ok(secret) => Ok(Ok(secret)),
            Err(error) => NoKey::new(error).map(Err),
        }
    }

    fn password(&mut self, request: PasswordRequest) -> Result<Option<Password>, Error> {
        self.passwords.as_mut().map(|passwords| passwords(request)).transpose().map_err(Error::Password)
    }
}

/// The reason why there is no private key.
enum NoKey {
    /// It is encrypted, and there is no password.
    Password,
    /// It cannot be read.
    Wrong(KeyTextError),
}

impl NoKey {
    /// Sorts an error: a lack of memory is no fault of the key.
    fn new(error: KeyTextError) -> Result<NoKey, Error> {
        if error.is_out_of_memory() { Err(Error::Memory(error)) } else { Ok(NoKey::Wrong(error)) }
    }

    /// Notes it in a report; `more` goes behind what is wrong with the text.
    fn note(self, report: &mut Report, name: &str, more: &str) {
        match self {
            NoKey::Password => report.add(
                name,
                Verdict::Unknown(UnknownReason::Password),
                "it is encrypted, and no password was given",
            ),
            NoKey::Wrong(error) => report.wrong(name, format!("{error}{more}")),
        }
    }
}

impl fmt::Debug for Verifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
