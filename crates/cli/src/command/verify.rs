//! `warpsmith verify`: recomputes everything about results and keys, and says in words what holds.
//!
//! SEC: a private key is read, never told. What is read may hold keys, so it is erased.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde::Serialize;
use warpsmith::keys::wiping_stack;
use warpsmith::keystore::Password;
use warpsmith::verify::{
    self, Check, Outcome, PasswordRequest, Report, UnknownReason, Verdict, Verifier, claims,
};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::input::name;
use warpsmith_console::stderr::{report, warn};
use warpsmith_console::stdout::Stdout;
use zeroize::Zeroizing;

use crate::encryption::{ask_password, read_password};
use crate::factory::read_rule;
use crate::keys::{FORMS, password_question};

const EXAMPLES: &str = "\
Examples:
  warpsmith verify keys.txt                         results as --output wrote them, with or without --json
  warpsmith npub cafe --json | warpsmith verify -   a result as it comes
  warpsmith verify own.key                          a key: hex, nsec, WIF, ncryptsec, BIP-38 or a Web3 keystore
  age -d -i own.age result.age | warpsmith verify -

Exit codes: 0 everything holds, 1 something does not, 2 there is nothing to verify, or something that cannot be.";

/// Recompute results or keys, and say what holds
///
/// Of a result: the public key, address, exported form and all between them, by libsecp256k1; of a salt: the address its factory
/// creates. Of a key: its address on every chain. Encrypted keys are opened with a password.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    /// The file with results or keys (- for standard input)
    #[arg(value_name = "FILE")]
    file: String,

    /// The file with the password of encrypted keys, mode 0600 [default: asks on the terminal]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// The rule of the factory that salts are for, where it is one of yours (docs/rules.md)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    rule: Option<PathBuf>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct VerifiedLine<'a> {
    event: &'static str,
    subject: &'a str,
    /// `None` where it cannot be checked.
    holds: Option<bool>,
    checks: Vec<CheckLine<'a>>,
}

#[derive(Serialize)]
struct CheckLine<'a> {
    what: &'a str,
    /// `None` of a fact with nothing to compare it to, and where it cannot be checked.
    holds: Option<bool>,
    said: Cow<'a, str>,
}

impl<'a> From<&'a Check> for CheckLine<'a> {
    fn from(check: &'a Check) -> CheckLine<'a> {
        let holds = match check.verdict {
            Verdict::Holds => Some(true),
            Verdict::DoesNotHold => Some(false),
            Verdict::Info | Verdict::Unknown(_) => None,
        };
        CheckLine { what: &check.name, holds, said: said(check) }
    }
}

/// The text of a check, with what to do about it.
fn said(check: &Check) -> Cow<'_, str> {
    match check.verdict {
        Verdict::Unknown(UnknownReason::Factory) => {
            format!("{}: give the rule it was mined with, --rule FILE", check.detail).into()
        }
        _ => check.detail.as_str().into(),
    }
}

/// How many there were, how many of them do not hold, and how many cannot be checked.
#[derive(Default, Serialize)]
struct Checked {
    checked: u64,
    wrong: u64,
    unknown: u64,
}

/// Bytes that are read, at most.
const LONGEST: u64 = 1 << 26;

impl Verify {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let content = self.read()?;
        let bad = |why: &str| Failure::Usage(format!("{}: {why}", name(&self.file)));
        let text = std::str::from_utf8(&content).map_err(|_| bad("it is not text (UTF-8)"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.contains("-----BEGIN AGE") && !text.contains("\"event\"") {
            return Err(bad(
                "it is encrypted with age; give what `age -d` makes of it: age -d -i IDENTITY FILE | warpsmith verify -",
            ));
        }
        // One password for all of a file, asked for once.
        let mut known: Option<Password> = None;
        let mut password = |request: PasswordRequest| -> Result<Password, Failure> {
            let password = match (&known, &self.password_file) {
                (Some(known), _) => known.clone(),
                (None, Some(file)) => read_password("--password-file", file)?,
                (None, None) => ask_password(password_question(request))?,
            };
            known = Some(password.clone());
            Ok(password)
        };
        let own = self.rule.as_deref().map(read_rule).transpose()?;
        let mut count = Checked::default();
        let mut verifier = Verifier::new().passwords(|request| Ok(password(request)?));
        if let Some(own) = &own {
            verifier = verifier.factory(own);
        }
        wiping_stack(|| {
            claims(text).try_for_each(|claim| {
                let report = verifier.verify(&claim).map_err(failure)?;
                count.checked += 1;
                match report.outcome() {
                    Outcome::Holds => {}
                    Outcome::DoesNotHold => count.wrong += 1,
                    Outcome::Unknown(_) => count.unknown += 1,
                }
                self.print(&report, count.checked, stdout)
            })
        })?;
        let Checked { checked, wrong, unknown } = count;
        match (checked, wrong, unknown) {
            (0, ..) => {
                return Err(bad(&format!(
                    "it holds no result and no key: expected results as --output writes them, or keys, one per line, each {FORMS}"
                )));
            }
            (_, 0, 1..) => {
                return Err(bad(&format!(
                    "{unknown} of {checked} cannot be checked: give the rule of the factory with --rule FILE"
                )));
            }
            (2.., 1.., _) => report(&format!("{wrong} of {checked} do not hold")),
            _ => {}
        }
        stdout.done(self.json, &count)?;
        Ok(if wrong == 0 { ExitStatus::Done } else { ExitStatus::NoMatch })
    }

    fn read(&self) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let failed = |error: io::Error| Failure::Usage(format!("{}: {error}", name(&self.file)));
        let source = match self.file.as_str() {
            "-" => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            path => File::open(path),
        };
        let source = source.map_err(failed)?;
        let facts = source.metadata().map_err(failed)?;
        if facts.is_file() && facts.permissions().mode() & 0o077 != 0 {
            warn(&format!(
                "other users may read {}; if it holds a private key, run: chmod 600 {}",
                name(&self.file),
                self.file
            ));
        }
        // SEC: as large as the file from the start, so that nothing moves; a pipe's buffers grow.
        let mut content = Zeroizing::new(Vec::with_capacity(facts.len().min(LONGEST) as usize + 4096));
        source.take(LONGEST + 1).read_to_end(&mut content).map_err(failed)?;
        match content.len() as u64 > LONGEST {
            true => Err(Failure::Usage(format!(
                "{}: it is longer than {LONGEST} bytes, the most that is verified at once",
                name(&self.file)
            ))),
            false => Ok(content),
        }
    }

    fn print(&self, report: &Report, number: u64, stdout: &mut Stdout) -> Result<(), Failure> {
        let (holds, verdict) = match report.outcome() {
            Outcome::Holds => (Some(true), "holds"),
            Outcome::DoesNotHold => (Some(false), "DOES NOT HOLD"),
            Outcome::Unknown(_) => (None, "cannot be checked"),
        };
        let subject = report.subject.as_str();
        if self.json {
            let checks = report.checks.iter().map(CheckLine::from).collect();
            return stdout.show_json(&VerifiedLine { event: "verified", subject, holds, checks });
        }
        let gap = if number > 1 { "\n" } else { "" };
        let mut text = format!("{gap}{subject}: {verdict}\n");
        let width = report.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
        for check in &report.checks {
            let mark = match check.verdict {
                Verdict::Holds => "  ok   ",
                Verdict::DoesNotHold => "  WRONG",
                Verdict::Info => "       ",
                Verdict::Unknown(_) => "  ?    ",
            };
            text += &format!("{mark}  {:<width$}  {}\n", check.name, said(check));
        }
        stdout.show_text(&text)
    }
}

/// The reason why nothing could be verified: what asks for passwords fails with a [`Failure`].
fn failure(error: verify::Error) -> Failure {
    match error {
        verify::Error::Password(inner) => match inner.downcast::<Failure>() {
            Ok(failure) => *failure,
            Err(inner) => Failure::Other(inner.to_string()),
        },
        other => Failure::Other(other.to_string()),
    }
}
