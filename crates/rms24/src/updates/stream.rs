//! Updates of a file, read a change at a time: an epoch may have more of them than fit in memory.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::params::Params;
use crate::wire::u64_at;

/// Bytes of an update before its changes, and of the sum behind them.
const HEAD: u64 = 16;
const SUM: u64 = 8;

/// Updates one after the other.
pub(super) struct Stream {
    path: PathBuf,
    file: BufReader<File>,
    at: u64,
    end: u64,
    /// Bytes of a change.
    each: usize,
    entries: u64,
}

/// An update that went by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The epoch it leads to.
    pub(super) number: u64,
    /// Changes it has.
    pub(super) changes: u64,
    /// Where it begins.
    pub(super) at: u64,
}

impl Stream {
    /// The updates in these bytes of a file.
    pub(super) fn new(path: PathBuf, mut file: File, bytes: Range<u64>, params: &Params) -> Result<Stream> {
        file.seek(SeekFrom::Start(bytes.start)).map_err(Error::io(&path))?;
        let file = BufReader::with_capacity(1 << 20, file);
        let (each, entries) = (8 + params.entry_size(), params.entries());
        Ok(Stream { path, file, at: bytes.start, end: bytes.end, each, entries })
    }

    /// Where the next one begins.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    fn wrong(reason: impl Into<String>) -> Error {
        Error::format("update", reason)
    }

    fn read(&mut self, into: &mut [u8]) -> Result<()> {
        self.file.read_exact(into).map_err(Error::io(&self.path))
    }

    /// The head of the next update, whose length is not believed before it is known to be there.
    fn head(&mut self) -> Result<([u8; HEAD as usize], Seen)> {
        let mut head = [0; HEAD as usize];
        if self.end - self.at < HEAD + SUM {
            return Err(Stream::wrong("cut short"));
        }
        self.read(&mut head)?;
        let seen = Seen { number: u64_at(&head, 0), changes: u64_at(&head, 8), at: self.at };
        let bytes =
            seen.changes.checked_mul(self.each as u64).and_then(|bytes| bytes.checked_add(HEAD + SUM));
        let after = bytes.and_then(|bytes| self.at.checked_add(bytes)).filter(|after| *after <= self.end);
        self.at = after.ok_or_else(|| Stream::wrong("cut short"))?;
        Ok((head, seen))
    }

    /// Goes past the next update, without a look at its changes.
    pub(super) fn pass(&mut self) -> Result<Seen> {
        let (_, seen) = self.head()?;
        let rest = (self.at - seen.at - HEAD) as i64;
        self.file.seek_relative(rest).map_err(Error::io(&self.path))?;
        Ok(seen)
    }

    /// Goes past the next update, and finds out whether it is whole.
    pub(super) fn pass_over(&mut self) -> Result<Seen> {
        self.next(&mut |_, _| Ok(()))
    }

    /// Hands over the changes of the next update. They count only if this ends without an error: the sum comes last.
    pub(super) fn next(&mut self, take: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<Seen> {
        let (head, seen) = self.head()?;
        let mut hash = Sha256::new();
        hash.update(head);
        let mut change = vec![0; self.each];
        for _ in 0..seen.changes {
            self.read(&mut change)?;
            hash.update(&change);
            let index = u64_at(&change, 0);
            if index >= self.entries {
                return Err(Error::Index { index, entries: self.entries });
            }
            take(index, &change[8..])?;
        }
        let mut sum = [0; SUM as usize];
        self.read(&mut sum)?;
        if hash.finalize()[..SUM as usize] != sum {
            return Err(Stream::wrong("the checksum does not fit"));
        }
        Ok(seen)
    }
}
