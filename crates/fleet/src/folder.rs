//! The folder of a job: what it is, what was asked for besides, what was found, and its master secret ([`crate::secrets`]).

use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::job::{Descriptor, JobId};
use crate::scan::Order;
use crate::secrets::Master;
use crate::wire::Lease;

/// What a person asked for besides what workers are told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wishes {
    /// Matches after which the job is done; none: never.
    pub count: Option<u64>,
    /// The score at which it is done.
    pub enough: Option<u32>,
    /// Its share of the fleet relative to others.
    pub priority: f64,
}

/// Where a match lies: with the master, that is the key. Not a secret by itself, but for an open scan, whose workers know it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundAt {
    /// The lease it was found under.
    pub lease: Lease,
    /// Where in the unit.
    pub spot: u64,
    /// Candidates tried until then.
    pub tried: u128,
    /// Seconds since the job began.
    pub seconds: f64,
    /// Its score, where scores count.
    pub score: Option<u32>,
    /// What it is the key or salt of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// What was found, as far as whole lines go.
pub fn read_found(path: &Path) -> Result<Vec<FoundAt>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(path)(error)),
    };
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Makes the folder of a job, if it is not there. The master is made with it, and never again.
/// `own` is a file beside them that workers are told nothing of.
pub fn create(
    jobs: &Path,
    descriptor: &Descriptor,
    own: Option<(&str, String)>,
    wishes: &Wishes,
) -> Result<JobId> {
    let id = descriptor.id();
    descriptor.open()?;
    let folder = jobs.join(id.to_string());
    let mut make = std::fs::DirBuilder::new();
    make.recursive(true).mode(0o700).create(&folder).map_err(Error::io(&folder))?;
    let master = folder.join("master");
    if !master.exists() {
        Master::create(&master, id)?;
    }
    let write = |name: &str, text: String| -> Result<()> {
        let path = folder.join(name);
        warpsmith_files::replace(&path, 0o600, |file| file.write_all(text.as_bytes()))?;
        Ok(())
    };
    if let Some((name, text)) = own {
        write(name, text)?;
    }
    write("wishes.json", serde_json::to_string(wishes).expect("plain values"))?;
    // Last, so that a folder with it is whole.
    write("job.json", descriptor.text())?;
    Ok(id)
}

/// What a hidden scan looks for, in the folder of its job.
pub const ORDER: &str = "scan.json";

/// Reads what a hidden scan looks for. SEC: of it no message repeats anything.
pub fn read_order(path: &Path) -> Result<Order> {
    let bytes = warpsmith_files::read_secret(path, 1 << 20)?;
    serde_json::from_slice(&bytes).map_err(|_| Error::corrupt(path, "it does not say what is looked for"))
}
