//! The file of a database's updates: a head that names the database, then one update after the other.
//!
//! Appending needs the file's lock, so there may be several writers. An end that was cut short, by a crash in the middle of
//! an append, was never confirmed to anyone: readers do not count it, and the next writer cuts it off.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::database::Description;
use crate::error::{Error, Result};
use crate::params::Params;
use crate::wire::Update;

const MAGIC: &[u8; 8] = b"WPIRUPDS";

/// The file, as far as it was read.
pub(super) struct Log {
    path: PathBuf,
    /// What the file begins with.
    head: Vec<u8>,
    /// Bytes read: whole updates end here. 0 before the head was seen.
    read: u64,
}

/// The file while this process alone may write it.
pub(super) struct Writer<'a> {
    log: &'a mut Log,
    file: File,
}

impl Log {
    pub(super) fn new(database: &Path, description: &Description) -> Log {
        let mut path = database.as_os_str().to_owned();
        path.push(".updates");
        Log { path: path.into(), head: [&MAGIC[..], &description.identity].concat(), read: 0 }
    }

    /// The updates that were not read before; the first has number `next`.
    pub(super) fn news(&mut self, params: &Params, next: u64) -> Result<Vec<Update>> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound && self.read == 0 => return Ok(Vec::new()),
            other => other.map_err(Error::io(&self.path))?,
        };
        if file.metadata().map_err(Error::io(&self.path))?.len() == self.read {
            return Ok(Vec::new());
        }
        // Whoever writes has it for himself; after that, all is durable.
        file.lock_shared().map_err(Error::io(&self.path))?;
        self.read_on(&mut file, params, next)
    }

    /// Waits until no other process writes.
    pub(super) fn writer(&mut self) -> Result<Writer<'_>> {
        let options = OpenOptions::new().read(true).append(true).create(true).open(&self.path);
        let file = options.and_then(|file| file.lock().map(|()| file)).map_err(Error::io(&self.path))?;
        Ok(Writer { log: self, file })
    }

    /// Reads whole updates from where the last reading ended.
    fn read_on(&mut self, file: &mut File, params: &Params, next: u64) -> Result<Vec<Update>> {
        let wrong = |reason: &str| Error::format(self.path.display().to_string(), reason);
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(self.read)).and_then(|_| file.read_to_end(&mut bytes));
        read.map_err(Error::io(&self.path))?;
        if bytes.is_empty() && file.metadata().map_err(Error::io(&self.path))?.len() < self.read {
            return Err(wrong("it is shorter than it was: updates that were given out are gone"));
        }
        let mut at = 0;
        if self.read == 0 {
            if bytes.len() < self.head.len() && self.head.starts_with(&bytes) {
                return Ok(Vec::new());
            }
            if !bytes.starts_with(&self.head) {
                return Err(wrong("these updates belong to another database"));
            }
            at = self.head.len();
        }
        let mut updates = Vec::new();
        while let Ok((update, length)) = Update::read(params, &bytes[at..]) {
            let expected = next + updates.len() as u64;
            if update.number != expected {
                return Err(wrong(&format!("update {} stands where {expected} should", update.number)));
            }
            updates.push(update);
            at += length;
        }
        // Cut short in the middle of writing; a whole one behind it would mean damage instead.
        let expected = next + updates.len() as u64;
        let is_later =
            |at: usize| Update::read(params, &bytes[at..]).is_ok_and(|(update, _)| update.number > expected);
        if (at + 1..bytes.len()).any(is_later) {
            return Err(wrong(&format!("update {expected} is damaged")));
        }
        // A writer that was killed may have left whole updates that are not durable yet. Nobody is told of them before.
        if !updates.is_empty() {
            file.sync_data().map_err(Error::io(&self.path))?;
        }
        self.read += at as u64;
        Ok(updates)
    }
}

impl Writer<'_> {
    /// As [`Log::news`].
    pub(super) fn news(&mut self, params: &Params, next: u64) -> Result<Vec<Update>> {
        self.log.read_on(&mut self.file, params, next)
    }

    /// Appends durably, after all updates there are: the caller has read them.
    pub(super) fn append(&mut self, update: &[u8]) -> Result<()> {
        let Log { path, head, read } = &mut *self.log;
        let bytes = if *read == 0 { [head.as_slice(), update].concat() } else { update.to_vec() };
        // What is behind was cut short. Appending writes at the end, wherever reading was.
        let write = self.file.set_len(*read).and_then(|()| self.file.write_all(&bytes));
        write.and_then(|()| self.file.sync_all()).map_err(Error::io(path))?;
        *read += bytes.len() as u64;
        Ok(())
    }
}
