//! Writes a database's file from entries in order: chunk after chunk, then the index, and the head last of all, so that a
//! file that was not finished is none.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

use warpsmith_chain::AddressKind;

use super::About;
use super::layout::{HEAD, Head, Layout, SUM, Seed, write_amount};
use crate::record::{ByKind, Entry};

/// A database being written.
pub(super) struct Writer<'a> {
    file: &'a File,
    out: BufWriter<&'a File>,
    /// Bytes of a chunk.
    size: u32,
    seed: Seed,
    /// Bytes of an amount for each kind, by its byte.
    widths: ByKind<usize>,
    /// The records of the chunk that is filled, and their kind.
    chunk: Vec<u8>,
    kind: Option<AddressKind>,
    chunks: u64,
    index: Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Begins a database in an empty file.
    pub fn new(file: &'a File, size: u32, identity: [u8; 16], widths: ByKind<usize>) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 18, file);
        out.write_all(&[0; HEAD])?;
        Ok(Self {
            file,
            out,
            size,
            seed: Seed::new(&identity),
            widths,
            chunk: Vec::with_capacity(size as usize),
            kind: None,
            chunks: 0,
            index: Vec::new(),
        })
    }

    /// Adds an entry above all before.
    pub fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let (number, kind) = (entry.kind_number(), entry.kind());
        let (digest, amount) = (entry.digest(), self.widths[number]);
        let is_full = self.chunk.len() + digest.len() + amount > self.size as usize - SUM;
        if is_full || self.kind != Some(kind) {
            self.end_chunk()?;
            self.kind = Some(kind);
        }
        if self.chunk.is_empty() {
            self.index.extend_from_slice(digest);
        }
        self.chunk.extend_from_slice(digest);
        let at = self.chunk.len();
        self.chunk.resize(at + amount, 0);
        write_amount(entry.amount(), &mut self.chunk[at..]);
        Ok(())
    }

    fn end_chunk(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        self.chunk.resize(self.size as usize - SUM, 0);
        let sum = self.seed.chunk(self.chunks, &self.chunk);
        self.out.write_all(&self.chunk)?;
        self.out.write_all(&sum)?;
        self.chunks += 1;
        self.chunk.clear();
        Ok(())
    }

    /// Ends the file. What is said of the records must be what was added.
    pub fn finish(mut self, about: &About) -> io::Result<()> {
        self.end_chunk()?;
        self.out.write_all(&self.index)?;
        self.out.flush()?;
        let width = |kind: AddressKind| self.widths[usize::from(kind.byte())];
        let kinds: Vec<_> =
            about.kinds.iter().map(|(kind, records)| (*kind, *records, width(*kind))).collect();
        let layout = Layout::new(self.size, &kinds)
            .filter(|layout| (layout.chunks, layout.index_bytes) == (self.chunks, self.index.len()))
            .ok_or_else(|| io::Error::other("the records written are not those counted"))?;
        let head = Head { about: about.clone(), layout, index: self.seed.index(&self.index) };
        self.file.write_all_at(&head.write(), 0)
    }
}
