//! The folder of a job: what it is, what was asked for besides, what was found, and its master secret ([`crate::secrets`]).

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use warpsmith_text::json_mistake;

use crate::error::{Error, Result};
use crate::id::JobId;
use crate::job::Descriptor;
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

impl Wishes {
    /// The wishes in a job's folder.
    pub fn read(folder: &Path) -> Result<Wishes> {
        let path = folder.join("wishes.json");
        let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
        serde_json::from_str(&text).map_err(|error| Error::corrupt(&path, json_mistake(&error.to_string())))
    }
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

/// File of a job's matches: a JSON document a line, its last member the CRC-32 of what stands before it.
pub const FOUND: &str = "found.jsonl";
/// File of the identities of matches that were delivered, one a line.
pub const DELIVERED: &str = "delivered";

/// What stands between a record and its checksum.
const SUM: &str = ",\"crc\":\"";

/// Why a line of a file of matches is none.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum LineError {
    #[error("it is cut short")]
    Short,
    #[error("it has no checksum")]
    NoChecksum,
    #[error("its checksum does not hold")]
    Checksum,
    #[error("it is no match of this version")]
    Unknown,
}

impl FoundAt {
    /// Returns the name of this match by where it lies, which no damage makes another's: 128 bits of a hash.
    pub fn identity(&self) -> String {
        let place = format!("warpsmith fleet match\n{} {} {}", self.lease.job, self.lease.unit, self.spot);
        const_hex::encode(&Sha256::digest(place)[..16])
    }

    fn line(&self) -> String {
        with_sum(serde_json::to_string(self).expect("plain values"))
    }

    fn read(line: &[u8]) -> std::result::Result<FoundAt, LineError> {
        serde_json::from_slice(&without_sum(line)?).map_err(|_| LineError::Unknown)
    }

    /// Appends it to a file of matches, on disk when this returns.
    pub fn append(&self, path: &Path) -> Result<()> {
        append_line(path, &self.line())
    }
}

/// A JSON object with its checksum as the last member.
fn with_sum(mut text: String) -> String {
    text.pop();
    let sum = crc32fast::hash(text.as_bytes());
    format!("{text}{SUM}{sum:08x}\"}}")
}

/// The JSON object of a line whose checksum holds, without it.
fn without_sum(line: &[u8]) -> std::result::Result<Vec<u8>, LineError> {
    // A separator that was damaged costs nothing.
    let inside = |byte: u8| line.iter().position(|at| *at == byte);
    let end = line.iter().rposition(|at| *at == b'}').ok_or(LineError::Short)?;
    let line = inside(b'{').filter(|start| *start < end).map(|start| &line[start..=end]);
    let line = line.ok_or(LineError::Short)?;
    let (text, sum) = line.len().checked_sub(SUM.len() + 10).map_or((line, &[][..]), |at| line.split_at(at));
    let sum = sum.strip_prefix(SUM.as_bytes()).and_then(|sum| sum.strip_suffix(b"\"}"));
    let sum = sum.ok_or(LineError::NoChecksum)?;
    if sum != format!("{:08x}", crc32fast::hash(text)).as_bytes() {
        return Err(LineError::Checksum);
    }
    Ok([text, b"}"].concat())
}

/// Appends a line, on disk when this returns. An empty line before it ends what a full disk may have cut short.
fn append_line(path: &Path, line: &str) -> Result<()> {
    let (mut file, _) = warpsmith_files::append(path)?;
    file.write_all(format!("\n{line}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(Error::io(path))
}

/// A file of matches: those that are whole, with the numbers of their lines, and what is wrong with the other lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundFile {
    /// Lines that are whole.
    pub records: Vec<(usize, FoundAt)>,
    /// Lines that are damaged: the number, and how.
    pub damage: Vec<(usize, String)>,
}

/// Time after which a last line without an end is read again: it may be under way.
const WRITTEN_WITHIN: Duration = Duration::from_millis(50);

/// Reads a file of matches; one that is not there has none.
pub fn read_found(path: &Path) -> Result<FoundFile> {
    let read = || match std::fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io(path)(error)),
    };
    let mut bytes = read()?;
    if bytes.last().is_some_and(|last| *last != b'\n') {
        std::thread::sleep(WRITTEN_WITHIN);
        bytes = read()?;
    }
    let mut file = FoundFile::default();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.is_empty()) {
        match FoundAt::read(line) {
            Ok(found) => file.records.push((number, found)),
            Err(error) => file.damage.push((number, error.to_string())),
        }
    }
    Ok(file)
}

/// Reads which matches were delivered. A damaged line names none, so that its match is delivered again rather than not at all.
pub fn read_delivered(folder: &Path) -> Result<HashSet<String>> {
    let path = folder.join(DELIVERED);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(HashSet::new()),
        Err(error) => Err(Error::io(&path)(error)),
    }
}

/// Notes that these were delivered.
pub fn add_delivered(folder: &Path, identities: &[String]) -> Result<()> {
    append_line(&folder.join(DELIVERED), &identities.join("\n"))
}

/// Makes the folder of a job, if it is not there. The master is made with it, and never again.
/// `own` are files beside them that workers are told nothing of.
pub fn create(
    jobs: &Path,
    descriptor: &Descriptor,
    own: impl IntoIterator<Item = (&'static str, String)>,
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
    let write = |name: &str, text: &str| -> Result<()> {
        let path = folder.join(name);
        warpsmith_files::replace(&path, 0o600, |file| file.write_all(text.as_bytes()))?;
        Ok(())
    };
    for (name, text) in own {
        write(name, &text)?;
    }
    write("wishes.json", &serde_json::to_string(wishes).expect("plain values"))?;
    // Last, so that a folder with it is whole.
    write("job.json", &descriptor.text())?;
    Ok(id)
}

/// What a hidden scan looks for, in the folder of its job.
pub const ORDER: &str = "scan.json";

/// Writes what a hidden scan looks for, with a checksum: another range or target would be scanned without a word.
pub fn order_text(order: &Order) -> String {
    with_sum(serde_json::to_string(order).expect("plain values"))
}

/// Reads what a hidden scan looks for. SEC: of it no message repeats anything.
pub fn read_order(path: &Path) -> Result<Order> {
    let bytes = warpsmith_files::read_secret(path, 1 << 20)?;
    let text =
        without_sum(&bytes).map_err(|why| Error::corrupt(path, format!("{why}: the file was damaged")))?;
    serde_json::from_slice(&text).map_err(|_| Error::corrupt(path, "it does not say what is looked for"))
}

/// Public keys as they were asked for, by the addresses they are found as, in the folder of a hidden scan.
pub const ASKED: &str = "asked.json";

/// Reads what was asked for in place of addresses; nothing where addresses were.
pub fn read_asked(folder: &Path) -> Result<HashMap<String, String>> {
    let path = folder.join(ASKED);
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|_| Error::corrupt(&path, "it does not say which public keys were asked for")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(HashMap::new()),
        Err(error) => Err(Error::io(&path)(error)),
    }
}

#[cfg(test)]
mod tests;
