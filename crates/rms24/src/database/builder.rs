//! Writing a database, from entries that come one after the other.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use warpsmith_files::{sync_folder_of, with_suffix};

use super::{Description, HEAD_BYTES, PREDECESSORS, SEGMENT_BYTES};
use crate::error::{Error, Result};
use crate::keyword::TableShape;
use crate::params::{Choice, Params};

/// Writes a database.
pub struct Builder {
    description: Description,
    path: PathBuf,
    unfinished: PathBuf,
    file: BufWriter<File>,
    segment: Vec<u8>,
    digests: Vec<u8>,
    written: u64,
    finished: bool,
}

impl Builder {
    /// Begins a database of this shape; lambda and backups of the choice are of no consequence.
    ///
    /// # Errors
    ///
    /// When the shape is impossible or the file cannot be written.
    pub fn new(path: &Path, choice: Choice, epoch: u64, keyword: Option<TableShape>) -> Result<Builder> {
        let params = Params::new(Choice { lambda: 80, backups: None, ..choice })?;
        let description =
            Description { params, epoch, keyword, identity: [0; 32], origin: None, predecessors: Vec::new() };
        let unfinished = with_suffix(path, ".new");
        let create = || {
            // What an interrupted build left, or a link that somebody put there: removed, never written through.
            match std::fs::remove_file(&unfinished) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = File::create_new(&unfinished)?;
            file.seek(SeekFrom::Start(HEAD_BYTES as u64))?;
            Ok(BufWriter::with_capacity(1 << 20, file))
        };
        let file = create().map_err(Error::io(&unfinished))?;
        let segment = Vec::with_capacity(SEGMENT_BYTES);
        Ok(Builder {
            description,
            path: path.to_owned(),
            unfinished,
            file,
            segment,
            digests: Vec::new(),
            written: 0,
            finished: false,
        })
    }

    /// Makes it a later file of a lineage: entries that were reached from those of another file by updates.
    #[must_use]
    pub fn folded_from(mut self, lineage: [u8; 32]) -> Builder {
        self.description.origin = Some(lineage);
        self
    }

    /// Makes it what lineages went over to, the newest first: the same keys and values in another table.
    #[must_use]
    pub fn in_place_of(mut self, mut lineages: Vec<[u8; 32]>) -> Builder {
        lineages.truncate(PREDECESSORS);
        self.description.predecessors = lineages;
        self
    }

    /// Says how many keys the table has by now.
    pub(crate) fn set_keys(&mut self, keys: u64) {
        if let Some(shape) = &mut self.description.keyword {
            shape.keys = keys;
        }
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.description.params
    }

    /// Takes the next bytes of the entries.
    ///
    /// # Errors
    ///
    /// When there are more than the entries have, or the file cannot be written.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let whole = self.params().entries() * self.params().entry_size() as u64;
        if self.written + bytes.len() as u64 > whole {
            return Err(Error::format("entries", format!("there are more than {whole} bytes")));
        }
        self.put(bytes)
    }

    fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(SEGMENT_BYTES - self.segment.len()));
            self.segment.extend_from_slice(now);
            self.written += now.len() as u64;
            if self.segment.len() == SEGMENT_BYTES {
                self.end_segment()?;
            }
            bytes = later;
        }
        Ok(())
    }

    fn end_segment(&mut self) -> Result<()> {
        self.digests.extend_from_slice(&<[u8; 32]>::from(Sha256::digest(&self.segment)));
        self.file.write_all(&self.segment).map_err(Error::io(&self.unfinished))?;
        self.segment.clear();
        Ok(())
    }

    /// Completes the file and puts it in its place.
    ///
    /// # Errors
    ///
    /// When entries are missing or the file cannot be written.
    pub fn finish(mut self) -> Result<Description> {
        let whole = self.params().entries() * self.params().entry_size() as u64;
        if self.written != whole {
            return Err(Error::format("entries", format!("{} bytes instead of {whole}", self.written)));
        }
        let zeros = vec![0; 1 << 16];
        while self.written < self.description.data_bytes() {
            let left = (self.description.data_bytes() - self.written).min(zeros.len() as u64);
            self.put(&zeros[..left as usize])?;
        }
        if !self.segment.is_empty() {
            self.end_segment()?;
        }
        self.description.identity = self.description.identity_of(&self.digests);
        let mut end = || {
            self.file.write_all(&self.digests)?;
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&self.description.to_bytes())?;
            self.file.flush()?;
            self.file.get_ref().sync_all()
        };
        end().map_err(Error::io(&self.unfinished))?;
        std::fs::rename(&self.unfinished, &self.path).map_err(Error::io(&self.path))?;
        self.finished = true;
        sync_folder_of(&self.path)?;
        Ok(self.description.clone())
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        if !self.finished {
            let _ = std::fs::remove_file(&self.unfinished);
        }
    }
}
