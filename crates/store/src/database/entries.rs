//! All records in order, read many chunks at a time, each of them checked.

use super::Database;
use super::layout::Section;
use crate::Error;
use crate::record::Entry;

/// Bytes read at a time.
const BATCH: u64 = 1 << 19;

/// Goes through the records of some kinds. Ends with the first error.
pub(crate) struct Entries<'a> {
    database: &'a Database,
    /// Those not yet finished, the first of them being read.
    sections: &'a [Section],
    /// The chunk of the first section to be read next.
    chunk: u64,
    /// Whole chunks, checked.
    bytes: Vec<u8>,
    /// Which record of the chunks in memory comes next, and how many there are.
    next: u64,
    count: u64,
}

impl<'a> Entries<'a> {
    pub(super) fn new(database: &'a Database, sections: &'a [Section]) -> Self {
        Self { database, sections, chunk: 0, bytes: Vec::new(), next: 0, count: 0 }
    }

    /// Reads the next chunks of the first section. `false` when all are read.
    fn fill(&mut self) -> Result<bool, Error> {
        let Some(mut section) = self.sections.first() else { return Ok(false) };
        if self.chunk == section.chunks {
            self.sections = &self.sections[1..];
            self.chunk = 0;
            let Some(next) = self.sections.first() else { return Ok(false) };
            section = next;
        }
        let size = u64::from(self.database.layout.chunk);
        let chunks = (BATCH / size).max(1).min(section.chunks - self.chunk);
        self.bytes.resize((chunks * size) as usize, 0);
        self.database.read_chunks(section, self.chunk, &mut self.bytes)?;
        self.next = 0;
        self.count = (section.records - self.chunk * section.per_chunk).min(chunks * section.per_chunk);
        self.chunk += chunks;
        Ok(true)
    }

    fn take(&mut self) -> Result<Option<Entry>, Error> {
        if self.next == self.count && !self.fill()? {
            return Ok(None);
        }
        let section = &self.sections[0];
        let (chunk, within) = (self.next / section.per_chunk, self.next % section.per_chunk);
        self.next += 1;
        let width = section.width();
        let at = chunk as usize * self.database.layout.chunk as usize + within as usize * width;
        self.database.entry(section, &self.bytes[at..at + width]).map(Some)
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let taken = self.take().transpose();
        if matches!(taken, None | Some(Err(_))) {
            (self.sections, self.next, self.count) = (&[], 0, 0);
        }
        taken
    }
}
