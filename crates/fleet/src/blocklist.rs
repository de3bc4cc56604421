//! Workers that were caught cheating, kept in the fleet's folder for every later job and coordinator.
//!
//! One line each: a checksum, and JSON. Lines are only ever added. Numbers of workers are never used again, so an entry holds for
//! good; a worker that is removed and invited again has another number.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A worker of which nothing counts any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// The worker's number.
    pub worker: u32,
    /// Reason for it.
    pub why: String,
}

/// Appends entries. They are on disk when this returns.
pub fn append(path: &Path, entries: &[Blocked]) -> Result<()> {
    // A write that failed may have left half a line: that one ends here. Empty lines are skipped.
    let mut lines = String::from("\n");
    for entry in entries {
        let json = serde_json::to_string(entry).expect("plain values");
        let _ = writeln!(lines, "{:08x} {json}", crc32fast::hash(json.as_bytes()));
    }
    let (mut file, _) = warpsmith_files::append(path)?;
    file.write_all(lines.as_bytes()).and_then(|()| file.sync_all()).map_err(Error::io(path))
}

/// Reads all entries, and the numbers of lines that are damaged.
pub fn read(path: &Path) -> Result<(Vec<Blocked>, Vec<usize>)> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Default::default()),
        Err(error) => return Err(Error::io(path)(error)),
    };
    let (mut entries, mut damaged) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        match parse(line) {
            _ if line.is_empty() => {}
            Some(entry) => entries.push(entry),
            None => damaged.push(number),
        }
    }
    Ok((entries, damaged))
}

fn parse(line: &[u8]) -> Option<Blocked> {
    let (sum, json) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    let is_whole = format!("{:08x}", crc32fast::hash(json.as_bytes())) == sum;
    serde_json::from_str(json).ok().filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever bit of a line is flipped, that entry is reported as damaged and no other is lost or changed.
    #[test]
    fn damage_costs_one_entry_and_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("blocklist");
        assert_eq!(read(&path).expect("read"), (Vec::new(), Vec::new()));
        let entry = |worker| Blocked { worker, why: format!("share {worker} is false") };
        append(&path, &[entry(1)]).expect("written");
        append(&path, &[entry(2), entry(3)]).expect("written");
        let all = vec![entry(1), entry(2), entry(3)];
        assert_eq!(read(&path).expect("read"), (all.clone(), Vec::new()));
        let bytes = std::fs::read(&path).expect("read");
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &flipped).expect("written");
            let (left, damaged) = read(&path).expect("read");
            assert!(left.iter().all(|entry| all.contains(entry)), "bit {bit}");
            assert!(left.len() == 3 || !damaged.is_empty(), "bit {bit}: {left:?} {damaged:?}");
            assert!(!left.is_empty(), "bit {bit}");
        }
        std::fs::write(&path, &bytes[..bytes.len() - 3]).expect("written");
        append(&path, &[entry(4)]).expect("written");
        assert_eq!(read(&path).expect("read"), (vec![entry(1), entry(2), entry(4)], vec![5]));
    }
}
