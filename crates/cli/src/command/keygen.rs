//! `warpsmith keygen`: a key pair for split keys.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use warpsmith::keys::{Secret, wiping_stack};
use warpsmith_console::exit::{ExitStatus, Failure, is_missing};
use warpsmith_console::redact::secret_kind;
use warpsmith_console::stdout::{NoSummary, Stdout};
use zeroize::Zeroizing;

const EXAMPLES: &str = "\
Examples:
  warpsmith keygen                          the private key to own.key, the public key on stdout
  warpsmith npub cafe --split-key $(warpsmith keygen --output cafe.key) --json > result.json
  warpsmith join --secret-key-file cafe.key result.json

Use a key pair for one purpose: whoever has a split result and one of the two private keys can compute the other.";

/// Make a key pair to mine with on machines you do not trust
///
/// Writes 256 random bits of the operating system to a new file with mode 0600, and prints the public key for --split-key.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Keygen {
    /// The new file for the private key; it must not be there yet
    #[arg(short, long, value_name = "FILE", default_value = "own.key")]
    output: PathBuf,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct KeygenLine<'a> {
    event: &'static str,
    public_key: &'a str,
    output: &'a str,
}

impl Keygen {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let name = self.output.display().to_string();
        // SEC: it is told.
        if let Some(what) = secret_kind(&name) {
            return Err(Failure::Usage(format!("--output: the name given has {what}; give another name")));
        }
        let failed =
            |why: &dyn std::fmt::Display| Failure::Other(format!("--output {name}: {why}; no key was made"));
        let mut file = warpsmith_files::create(&self.output).map_err(|error| match is_missing(&error) {
            true => Failure::Usage(format!(
                "--output {name}: {error}; no key was made. Give a folder that is there"
            )),
            false => failed(&error),
        })?;
        let made = wiping_stack(|| {
            let secret = Secret::random().map_err(|error| error.to_string())?;
            let mut text = Zeroizing::new(String::with_capacity(65));
            text.push_str(&Zeroizing::new(const_hex::encode(secret.as_bytes())));
            text.push('\n');
            let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
            written.map_err(|error| error.to_string())?;
            Ok::<_, String>(secret.public_key())
        });
        let public = made.map_err(|why| {
            // A part of a key is worth nothing.
            let _ = fs::remove_file(&self.output);
            failed(&why)
        })?;
        let public_key = const_hex::encode(public.serialize());
        match self.json {
            true => {
                stdout.show_json(&KeygenLine { event: "keygen", public_key: &public_key, output: &name })?
            }
            false => stdout.show(format!("{public_key}\n").as_bytes())?,
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }
}
