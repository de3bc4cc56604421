//! `fleet init`, `invite` and `cancel`: the folder of a fleet.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use warpsmith::fleet::net::home::Home;
use warpsmith::fleet::net::own::find;
use warpsmith::fleet::net::submit::{cancel, reload};
use warpsmith_console::exit::{ExitStatus, Failure, is_missing};
use warpsmith_console::redact::{redacted, secret_kind};
use warpsmith_console::stderr::report;
use warpsmith_console::stdout::{NoSummary, Stdout};
use zeroize::Zeroizing;

use crate::failures::OrFail as _;

/// Make a fleet: keys, TLS certificate and the server's configuration, in a new folder
#[derive(Args)]
pub(crate) struct Init {
    /// The folder; it will hold secrets, and is closed to others
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Address and port for the server to listen on; beyond loopback, other machines can connect
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4222")]
    listen: String,

    /// Address that workers connect to, where it differs from --listen (NAT, or --listen 0.0.0.0)
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
}

impl Init {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        // SEC: the folder's path is this command's result.
        let path = self.folder.display().to_string();
        if redacted(&path) != path {
            return Err(Failure::Usage(
                "the name of the folder looks like a private key; give the fleet another name, such as 'trial'".to_owned(),
            ));
        }
        let home = Home::init_at(&self.folder, &self.listen, self.address.as_deref()).or_fail()?;
        let reach = if home.is_exposed() {
            "other machines can connect there, over TLS and with an invitation only"
        } else {
            "only this machine can connect there; for workers elsewhere make the fleet with --listen ADDRESS:PORT"
        };
        report(&format!(
            "made a fleet in {}; its server listens on {}: {reach}\nstart the server on the machine that is {}, with this folder there:\n  \
             nats-server -c {}\n\
             or let `warpsmith fleet submit {} --local ...` start one for a trial. Next: warpsmith fleet invite {} NAME",
            self.folder.display(),
            home.listen(),
            home.server(),
            home.config().display(),
            self.folder.display(),
            self.folder.display()
        ));
        stdout.show(format!("{}\n", home.config().display()).as_bytes())?;
        Ok(ExitStatus::Done)
    }
}

/// Invite a worker: prints or writes one line of text, which is all it needs
///
/// The line holds the worker's own key: give it to that worker alone. With it one can work as that worker, and nothing else:
/// it opens no job's secret and no other worker's messages.
#[derive(Args)]
pub(crate) struct Invite {
    /// The fleet's folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// What to call the worker
    #[arg(value_name = "NAME")]
    name: String,

    /// What an hour of it costs: `fleet status` says what it cost, and how much it does for that
    #[arg(long, value_name = "PRICE", value_parser = parse_price)]
    price: Option<f64>,

    /// Write the invitation to FILE (created with mode 0600), which must not exist, instead of to stdout
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
}

pub(super) fn parse_price(text: &str) -> Result<f64, String> {
    let price = text.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
    price.ok_or_else(|| "give a number, as 0.35".to_owned())
}

impl Invite {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let mut home = Home::open(&self.folder).or_fail()?;
        // First, so that a file that cannot be made invites no worker.
        let mut file = self.output.as_deref().map(create).transpose()?;
        let invited = home.invite(&self.name).or_fail().and_then(|invitation| {
            if let Some(price) = self.price {
                home.set_price(&self.name, price).or_fail()?;
            }
            let line = Zeroizing::new(format!("{}\n", invitation.text().as_str()));
            if let Some((file, path)) = &mut file {
                let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_all());
                written.map_err(|error| Failure::Other(format!("--output {}: {error}", path.display())))?;
            }
            Ok(line)
        });
        let line = invited.inspect_err(|_| {
            if let Some((_, path)) = &file {
                let _ = std::fs::remove_file(path);
            }
        })?;
        if !reload(&home) {
            report(
                "if the server runs elsewhere, copy its configuration there and have it read it: nats-server --signal reload",
            );
        }
        match &self.output {
            Some(path) => stdout.show(format!("{}\n", path.display()).as_bytes())?,
            None => stdout.deliver(line.as_bytes())?,
        }
        Ok(ExitStatus::Done)
    }
}

/// Creates the file for an invitation. SEC: only its owner can read it, and nothing is overwritten.
fn create(path: &Path) -> Result<(File, &Path), Failure> {
    let name = path.display().to_string();
    // SEC: the name is printed.
    if let Some(what) = secret_kind(&name) {
        return Err(Failure::Usage(format!("--output: the name given has {what}; give another name")));
    }
    let file = warpsmith_files::create(path);
    let file = file.map_err(|error| match &error {
        warpsmith_files::Error::Exists { .. } => Failure::Usage(format!(
            "--output {name}: the file exists, and may be another worker's invitation; no worker was invited. Give another name"
        )),
        _ if is_missing(&error) => Failure::Usage(format!(
            "--output {name}: {error}; no worker was invited. Give a folder that exists"
        )),
        _ => Failure::Other(format!("--output {name}: {error}; no worker was invited")),
    })?;
    Ok((file, path))
}

/// Put a worker out
///
/// Its key opens nothing any more, its connection is ended, and what it was doing is given to others at once. What it did counts.
/// A worker of the same name can be invited again.
#[derive(Args)]
pub(crate) struct Remove {
    /// The fleet's folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// What the worker is called
    #[arg(value_name = "NAME")]
    name: String,
}

impl Remove {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let mut home = Home::open(&self.folder).or_fail()?;
        let id = home.remove(&self.name).or_fail()?;
        if !reload(&home) {
            report(
                "the coordinator refuses it from now on; if the server runs elsewhere, copy its configuration there and have it read \
                 it, so that it is not even let in: nats-server --signal reload",
            );
        }
        stdout.show(format!("worker {id} {} is put out; what it did counts\n", self.name).as_bytes())?;
        Ok(ExitStatus::Done)
    }
}

/// End a job
#[derive(Args)]
pub(crate) struct Cancel {
    /// The fleet's folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// The job, by the first digits of its name
    #[arg(value_name = "JOB")]
    job: String,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct Cancelled {
    event: &'static str,
    job: String,
}

impl Cancel {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let home = Home::open(&self.folder).or_fail()?;
        let (id, _) = find(&home, &self.job).or_fail()?;
        cancel(&home, id).or_fail()?;
        if self.json {
            stdout.show_json(&Cancelled { event: "cancelled", job: id.to_string() })?;
        } else {
            stdout.show(
                format!("{} is cancelled; what was found stays: warpsmith fleet result\n", id.short())
                    .as_bytes(),
            )?;
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }
}
