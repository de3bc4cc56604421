//! Folding: a file of the newest epoch in the place of the database's file, and a list of updates that begins later.
//!
//! The new file is written beside the old one, forced to disk and renamed; then the same is done with the list. Between the two
//! the list begins before the file, which is as good: whatever is killed at whatever moment leaves a whole database. Servers go
//! on with the file they have open until they see the other ([`Live::refresh`](super::Live::refresh)).
//!
//! Memory does not grow with the changes, nor much with the database: the changes are spread over files without a name, one for each
//! stretch of the entries, and then added to one stretch after the other. On disk this takes, beside the new file, the bytes
//! of the changes again.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, IntoInnerError, Read, Seek, Write};
use std::path::Path;

use warpsmith_files::{is_at, with_suffix};

use super::log::{Log, START};
use super::stream::{Seen, Stream};
use crate::database::{Builder, Database};
use crate::error::{Error, Result};
use crate::params::Params;
use crate::wire::u64_at;

/// The least bytes of entries that a stretch has, and the most stretches: each has a file.
const STRETCH_BYTES: u64 = 64 << 20;
const STRETCHES: u64 = 512;
/// Bytes of changes that wait to be written, for all stretches together.
const WAITING: usize = 32 << 20;
/// The share of the work that is reading changes.
const READING: f64 = 0.3;
/// Changes between two words about how far it is.
const BETWEEN: u64 = 1 << 14;
/// Changes that a client takes over at once, at least: about what new hints of a small database cost.
const FEWEST_CHANGES: u64 = 1 << 20;

/// The most changes that are worth having for a client that is behind. Beyond it new hints are cheaper: by bytes, where the changes
/// have more than the entries; and by work, since a change takes a word of the function for each hint, and a new hint one for each
/// block.
pub fn worth_keeping(params: &Params) -> u64 {
    let each = 8 + params.entry_size() as u64;
    let of_bytes = params.entries().saturating_mul(params.entry_size() as u64) / each;
    of_bytes.min(FEWEST_CHANGES.max(16 * u64::from(params.blocks()))).max(1)
}

/// What a fold keeps of the updates, for clients that are behind and for going back to an earlier epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// So many epochs before the newest, however long their updates are.
    pub epochs: u64,
    /// And more of them, as long as all together have no more changes than this; none for [`worth_keeping`].
    pub changes: Option<u64>,
}

impl Default for Keep {
    fn default() -> Keep {
        Keep { epochs: 256, changes: None }
    }
}

/// What a fold did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folded {
    /// The epoch of the file.
    pub epoch: u64,
    /// The epoch of the file before; the same where no update was there to be folded.
    pub before: u64,
    /// The changes that were folded in.
    pub changes: u64,
    /// The oldest epoch that clients can come from.
    pub oldest: u64,
}

/// Folds all updates there are into a new file. `watch` is told the share of the work that is done, and may end it with an error.
///
/// # Errors
///
/// When another fold is under way, a file is damaged or cannot be written, or `watch` fails. Then the database is as it was.
pub fn fold(path: &Path, keep: Keep, watch: &mut dyn FnMut(f64) -> Result<()>) -> Result<Folded> {
    // Held to the end: two would write the same file.
    let _alone = hold(path)?;
    let base = Database::open(path)?;
    let (params, before) = (base.description().params, base.description().epoch);
    let log = Log::new(path, base.description());
    let Some(survey) = log.survey()? else {
        return Ok(Folded { epoch: before, before, changes: 0, oldest: before });
    };
    let list = with_suffix(path, ".updates");
    let file = survey.file.try_clone().map_err(Error::io(&list))?;
    let mut stream = Stream::new(list, file, START as u64..survey.end, &params)?;
    let (mut stretches, mut seen, mut changes) = (Stretches::new(path, &params)?, Vec::<Seen>::new(), 0);
    let whole = (survey.end - START as u64).max(1) as f64;
    while stream.at() < survey.end {
        let at = stream.at();
        let done = READING * (at - START as u64) as f64 / whole;
        let expected = seen.last().map(|seen| seen.number + 1).or(survey.first.map(|first| first + 1));
        // Those that the file has already are only counted.
        let is_folded = expected.is_some_and(|number| number <= before);
        let next = if is_folded {
            stream.pass()
        } else {
            stream.next(&mut |index, delta| {
                if changes % BETWEEN == 0 {
                    watch(done)?;
                }
                changes += 1;
                stretches.add(index, delta)
            })
        };
        let next = next.map_err(|error| match error {
            Error::Format { .. } | Error::Index { .. } => {
                log.damaged(format!("from byte {at} on it is not what was written: {error}"))
            }
            other => other,
        })?;
        if expected.is_some_and(|expected| expected != next.number) || next.number == 0 {
            return Err(log.damaged(format!("update {} stands where another belongs", next.number)));
        }
        if next.number <= before && !is_folded {
            // The first of a list that does not say where it begins: what was just read is in the file already.
            (stretches, changes) = (Stretches::new(path, &params)?, 0);
        }
        seen.push(next);
    }
    let first = survey.first.or(seen.first().map(|seen| seen.number - 1)).unwrap_or(before);
    let epoch = seen.last().map_or(first, |seen| seen.number);
    if first > before || epoch < before {
        return Err(
            log.damaged(format!("it goes from epoch {first} to {epoch}, and the database is of {before}"))
        );
    }
    if epoch > before {
        write(path, &base, stretches, epoch, watch)?;
        // What is left is short, and whoever wants an end now has it soon.
        let _ = watch(1.0);
    }
    let oldest =
        oldest_kept(&seen, keep.epochs, keep.changes.unwrap_or_else(|| worth_keeping(&params)), first);
    if let Some(next) = seen.iter().find(|seen| seen.number == oldest + 1) {
        if oldest > first {
            log.trim(&survey.file, oldest, next.at, &params)?;
        }
    } else if oldest > first {
        // Nothing is kept: what was appended meanwhile is.
        log.trim(&survey.file, oldest, survey.end, &params)?;
    }
    Ok(Folded { epoch, before, changes, oldest })
}

/// The epoch after which updates are kept.
fn oldest_kept(seen: &[Seen], epochs: u64, most: u64, first: u64) -> u64 {
    let (mut kept, mut changes) = (0, 0u64);
    for update in seen.iter().rev() {
        changes = changes.saturating_add(update.changes);
        if kept >= epochs && changes > most {
            return update.number;
        }
        kept += 1;
    }
    first
}

/// The file of the database, for whom it is folded by.
pub(super) fn hold(path: &Path) -> Result<File> {
    let is_link = path.symlink_metadata().map_err(Error::io(path))?.file_type().is_symlink();
    if is_link {
        let reason = "it is a link, in whose place the new file would be put; give the file itself";
        return Err(Error::format(path.display().to_string(), reason));
    }
    loop {
        let file = File::open(path).map_err(Error::io(path))?;
        match file.try_lock() {
            Ok(()) if is_at(&file, path) => return Ok(file),
            // Somebody has just folded it.
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                let reason = "it is being folded by another process; wait for that one";
                return Err(Error::format(path.display().to_string(), reason));
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(Error::io(path)(error)),
        }
    }
}

/// Writes the entries with their changes as a file of a later epoch, in the place of the old one.
fn write(
    path: &Path,
    base: &Database,
    mut stretches: Stretches,
    epoch: u64,
    watch: &mut dyn FnMut(f64) -> Result<()>,
) -> Result<()> {
    let description = base.description();
    let (params, size) = (description.params, description.params.entry_size());
    let mut builder = Builder::new(path, params.choice(), epoch, description.keyword.clone())?
        .folded_from(description.lineage());
    builder = builder.in_place_of(description.predecessors.clone());
    let whole = params.entries() * size as u64;
    let stretch_bytes = (stretches.entries * size as u64).min(whole) as usize;
    let (mut stretch, mut number, mut read, mut keys) = (Vec::with_capacity(stretch_bytes), 0, 0, 0);
    let mut end_stretch = |stretch: &mut Vec<u8>, builder: &mut Builder| {
        stretches.apply(number, stretch, size)?;
        number += 1;
        keys += stretch.chunks_exact(size).filter(|entry| entry.iter().any(|byte| *byte != 0)).count() as u64;
        builder.push(stretch)?;
        stretch.clear();
        Ok::<(), Error>(())
    };
    base.stream(&mut |segment| {
        // Without the entries that only fill the last blocks.
        let mut part = &segment[..(segment.len() as u64).min(whole - read) as usize];
        read += part.len() as u64;
        while !part.is_empty() {
            let (now, later) = part.split_at(part.len().min(stretch_bytes - stretch.len()));
            stretch.extend_from_slice(now);
            if stretch.len() == stretch_bytes {
                end_stretch(&mut stretch, &mut builder)?;
            }
            part = later;
        }
        watch(READING + (1.0 - READING) * read as f64 / whole as f64)
    })?;
    if !stretch.is_empty() {
        end_stretch(&mut stretch, &mut builder)?;
    }
    builder.set_keys(keys);
    builder.finish().map(drop)
}

/// Changes, spread over files by where they belong.
struct Stretches {
    database: std::path::PathBuf,
    /// Entries of a stretch.
    entries: u64,
    each: usize,
    files: Vec<Option<BufWriter<File>>>,
}

impl Stretches {
    fn new(database: &Path, params: &Params) -> Result<Stretches> {
        let size = params.entry_size() as u64;
        let entries = params.entries().div_ceil(STRETCHES).max(STRETCH_BYTES / size);
        Stretches::of(database, params, entries)
    }

    /// Files are made as they are needed.
    fn of(database: &Path, params: &Params, entries: u64) -> Result<Stretches> {
        let files = (0..params.entries().div_ceil(entries)).map(|_| None).collect();
        Ok(Stretches { database: database.to_owned(), entries, each: 8 + params.entry_size(), files })
    }

    fn add(&mut self, index: u64, delta: &[u8]) -> Result<()> {
        let waiting = (WAITING / self.files.len()).min(1 << 20);
        let file = match &mut self.files[(index / self.entries) as usize] {
            Some(file) => file,
            none => none.insert(BufWriter::with_capacity(waiting, warpsmith_files::scratch(&self.database)?)),
        };
        let written =
            file.write_all(&(index % self.entries).to_le_bytes()).and_then(|()| file.write_all(delta));
        written.map_err(Error::io(&self.database))
    }

    /// Adds what changed to the entries of a stretch.
    fn apply(&mut self, number: usize, stretch: &mut [u8], size: usize) -> Result<()> {
        let Some(file) = self.files[number].take() else { return Ok(()) };
        let add = || {
            let mut file = file.into_inner().map_err(IntoInnerError::into_error)?;
            file.rewind()?;
            let (mut file, mut change) = (BufReader::with_capacity(1 << 20, file), vec![0; self.each]);
            loop {
                match file.read_exact(&mut change) {
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
                    other => other?,
                }
                let entry = &mut stretch[u64_at(&change, 0) as usize * size..][..size];
                entry.iter_mut().zip(&change[8..]).for_each(|(byte, delta)| *byte ^= delta);
            }
        };
        add().map_err(Error::io(&self.database))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Choice;

    fn seen(changes: &[u64]) -> Vec<Seen> {
        let numbers = 8..;
        numbers.zip(changes).map(|(number, changes)| Seen { number, changes: *changes, at: 0 }).collect()
    }

    #[test]
    fn as_many_epochs_are_kept_as_are_worth_it() {
        let list = seen(&[5, 5, 5, 100, 5, 5]);
        for (epochs, most, oldest) in [
            (0, 0, 13),
            (0, 10, 11),
            (0, 9, 12),
            (2, 0, 11),
            (3, 0, 10),
            (3, 115, 9),
            (0, 125, 7),
            (6, 0, 7),
            (99, 0, 7),
        ] {
            assert_eq!(oldest_kept(&list, epochs, most, 7), oldest, "{epochs} epochs, {most} changes");
        }
        assert_eq!(oldest_kept(&[], 5, 5, 7), 7);
        let small = Params::new(Choice::new(1000, 40)).unwrap();
        assert_eq!(worth_keeping(&small), 1000 * 40 / 48);
        let large = Params::new(Choice::new(1_834_095_877, 40)).unwrap();
        assert_eq!(worth_keeping(&large), 1 << 20);
    }

    /// Changes of the first, the last and other entries of stretches, some of them several times.
    #[test]
    fn changes_reach_their_entries_whatever_the_stretches_are() {
        let folder = tempfile::tempdir().unwrap();
        let params = Params::new(Choice::new(100, 9)).unwrap();
        let changes: Vec<(u64, u8)> =
            (0..300).map(|i| (i * i % 100, i as u8)).chain([(0, 1), (99, 2)]).collect();
        let mut expected = vec![0; 900];
        for (index, byte) in &changes {
            expected[*index as usize * 9..][..9].iter_mut().for_each(|sum| *sum ^= byte);
        }
        for entries in [1, 7, 50, 99, 100, 1000] {
            let mut stretches = Stretches::of(&folder.path().join("data"), &params, entries).unwrap();
            changes.iter().for_each(|(index, byte)| stretches.add(*index, &[*byte; 9]).unwrap());
            let mut all = vec![0; 900];
            for (number, stretch) in all.chunks_mut(entries as usize * 9).enumerate() {
                stretches.apply(number, stretch, 9).unwrap();
            }
            assert_eq!(all, expected, "{entries} entries");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
