//! Leader election: one coordinator of a folder at a time, by a lock on a file in that folder.
//!
//! The lock is the kernel's. It ends with the process that holds it, however that ends, and no message over the network can take
//! it away: not one of a worker, and not one of the server. Ledgers are locked in the same way, so that a coordinator which leads
//! can open them.

use std::io::{Read as _, Write as _};
use std::path::Path;

use warpsmith_files::{Locked, Sharing};

use crate::error::{Error, Result};

/// Name of the locked file. It holds the epoch of the last coordinator that led.
const FILE: &str = "leader";

/// The right to lead a fleet, until it is dropped.
#[derive(Debug)]
pub struct Leadership {
    held: Locked,
    epoch: u64,
}

impl Leadership {
    /// Takes the lead; none while another process has it.
    pub fn take(folder: &Path) -> Result<Option<Leadership>> {
        let path = folder.join(FILE);
        let held = match Locked::open(&path, Sharing::Secret) {
            Err(error) if error.is_not_found() => {
                Locked::create(&path, Sharing::Secret, |file| file.write_all(b"0\n"))
            }
            opened => opened,
        };
        let mut held = match held {
            Ok(held) => held,
            Err(warpsmith_files::Error::InUse { .. } | warpsmith_files::Error::Exists { .. }) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let mut bytes = Vec::new();
        held.file().take(32).read_to_end(&mut bytes).map_err(Error::io(&path))?;
        let before = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse::<u64>().ok());
        // A damaged number costs nothing: each ledger asks for an epoch above its own.
        let epoch = before.unwrap_or(0).saturating_add(1);
        held.replace(|file| writeln!(file, "{epoch}"))?;
        Ok(Some(Leadership { held, epoch }))
    }

    /// Number of this lead, which rises from one coordinator to the next.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Fails if the locked file was removed or replaced: then another coordinator can take the lead.
    pub fn check(&self) -> Result<()> {
        let path = self.held.path();
        if warpsmith_files::is_at(self.held.file(), path) {
            return Ok(());
        }
        Err(Error::Corrupt {
            path: path.to_owned(),
            why: "this file decides which coordinator leads, and it was removed or replaced; this coordinator stops leading, and \
                  leads again unless another one does by then"
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_leads_at_a_time_and_epochs_rise() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Leadership::take(folder.path()).expect("possible").expect("free");
        assert_eq!(first.epoch(), 1);
        assert!(Leadership::take(folder.path()).expect("possible").is_none());
        first.check().expect("whole");
        drop(first);
        let second = Leadership::take(folder.path()).expect("possible").expect("free");
        assert_eq!(second.epoch(), 2);
        // Removed while it is held: the holder notices.
        std::fs::remove_file(folder.path().join(FILE)).expect("removed");
        let third = Leadership::take(folder.path()).expect("possible").expect("free");
        assert!(second.check().unwrap_err().to_string().contains("removed or replaced"));
        drop(second);
        third.check().expect("whole");
        drop(third);
        std::fs::write(folder.path().join(FILE), b"\xff no number").expect("written");
        let fourth = Leadership::take(folder.path()).expect("possible").expect("free");
        assert_eq!(fourth.epoch(), 1);
    }
}
