//! Builds tables that are looked up by key ([`keyword`](crate::keyword)), of any size in bounded
//! memory: keys and entries go to a file for each partition, and then the partitions are arranged
//! one after the other.
//!
//! On disk this takes as much again as the database, in files without a name beside it, which are
//! gone at the end.

use std::fs::File;
use std::io::{BufWriter, IntoInnerError, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::database::{Builder, Description};
use crate::error::{Error, Result};
use crate::keyword::{Layout, Name, TAG_BYTES, TableShape, chunk_key, name, split, tagged_entry};
use crate::params::Choice;

/// Seeds that are tried. One in a thousand fails for tables of a few keys, and none was seen to
/// fail for large ones.
const SEEDS: u32 = 20;
/// Steps after which a key is taken to have no place. At these loads a walk takes a few steps, and
/// rarely hundreds.
const PATIENCE: u32 = 20_000;
/// Bytes that wait to be written, for all partitions together.
const WAITING: usize = 32 << 20;
/// The share of the work that is reading.
const READING: f64 = 0.6;
/// Keys between two words about how far it is.
const BETWEEN: u64 = 1 << 14;

/// What is to be built.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// What entries look like.
    pub layout: Layout,
    /// Places of each key: three, as a rule.
    pub places: u8,
    /// Keys that will come; where values stand in chunks, their chunks.
    pub keys: u64,
    /// Keys that may be added later: there is room for so many more.
    pub room: u64,
    /// Bytes an entry.
    pub entry_size: u32,
    /// Entries a block; without it the usual choice.
    pub block_size: Option<u32>,
    /// The epoch.
    pub epoch: u64,
}

impl Plan {
    /// A table of so many keys: three places each, no room for more, the usual blocks, epoch 0. Set
    /// the fields that differ: `Plan { room: 100, ..Plan::new(layout, keys, entry_size) }`.
    pub fn new(layout: Layout, keys: u64, entry_size: u32) -> Plan {
        Plan { layout, places: 3, keys, room: 0, entry_size, block_size: None, epoch: 0 }
    }

    /// A table of values of up to so many bytes, each under a key. Entries are whole words, since
    /// sums of other sizes take longer.
    ///
    /// ```
    /// use warpsmith_rms24::table::{Plan, Take, build};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let squares = &mut |take: &mut Take<'_>| {
    ///     (0..100u32).try_for_each(|number| take(&number.to_be_bytes(), &(number * number).to_be_bytes()))
    /// };
    /// build(&folder.path().join("squares.pir"), &Plan::tagged(100, 4), squares, &mut |_| Ok(()))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tagged(keys: u64, value_size: u32) -> Plan {
        Plan::new(Layout::Tagged, keys, (TAG_BYTES as u32).saturating_add(value_size).next_multiple_of(8))
    }
}

/// Takes a key and its value; in [`Layout::Records`] the value is the whole record.
pub type Take<'a> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'a;

/// Builds a database that is looked up by key. `source` hands over all keys and values, in any
/// order; where the first seed does not do, it is called again. `watch` is told the share of the
/// work that is done, and may end it with an error.
///
/// # Errors
///
/// When a key occurs twice, a value does not fit, the source fails or has not as many keys as the
/// plan says, or the database cannot be written. Then nothing is left behind.
pub fn build(
    path: &Path,
    plan: &Plan,
    source: &mut dyn FnMut(&mut Take<'_>) -> Result<()>,
    watch: &mut dyn FnMut(f64) -> Result<()>,
) -> Result<Description> {
    build_entries(path, plan, &[], &mut entries_of(plan, source), watch)
}

/// Takes the name of a key and its entry.
pub(crate) type TakeEntry<'a> = dyn FnMut(&Name, &[u8]) -> Result<()> + 'a;

/// What hands over names and entries, of what hands over keys and values.
fn entries_of<'a>(
    plan: &'a Plan,
    source: &'a mut dyn FnMut(&mut Take<'_>) -> Result<()>,
) -> impl FnMut(&mut TakeEntry<'_>) -> Result<()> + 'a {
    let entry_size = plan.entry_size as usize;
    move |take| {
        let mut put = |key: &[u8], entry: Option<&[u8]>, value: &[u8]| {
            let entry = entry.filter(|entry| entry.len() == entry_size);
            take(&name(key), entry.ok_or_else(|| too_long(value, entry_size))?)
        };
        source(&mut |key, value| match plan.layout {
            Layout::Records => put(key, Some(value), value),
            Layout::Tagged | Layout::Defined(_) => {
                put(key, tagged_entry(key, value, entry_size).as_deref(), value)
            }
            Layout::Chunked(most) | Layout::Text(most) => {
                split(value, entry_size).zip(0u64..).try_for_each(|(chunk, number)| {
                    let number = u16::try_from(number).ok().filter(|number| *number < most);
                    let key = number.map(|number| chunk_key(key, number));
                    let entry = key.as_ref().and_then(|key| tagged_entry(key, chunk, entry_size));
                    put(&key.unwrap_or_default(), entry.as_deref(), value)
                })
            }
        })
    }
}

/// As [`build`], of names and entries; and in place of other lineages, where some are given.
pub(crate) fn build_entries(
    path: &Path,
    plan: &Plan,
    predecessors: &[[u8; 32]],
    source: &mut dyn FnMut(&mut TakeEntry<'_>) -> Result<()>,
    watch: &mut dyn FnMut(f64) -> Result<()>,
) -> Result<Description> {
    for _ in 0..SEEDS {
        let shape = TableShape::new(plan.keys.saturating_add(plan.room), plan.places, plan.layout)?;
        let shape = TableShape { keys: plan.keys, ..shape };
        if let Some(description) = build_with(path, plan, predecessors, shape, source, watch)? {
            return Ok(description);
        }
    }
    Err(Error::format("keyword table", format!("none of {SEEDS} seeds gives every key a place")))
}

/// As [`build_entries`], with one seed; none when it does not do.
fn build_with(
    path: &Path,
    plan: &Plan,
    predecessors: &[[u8; 32]],
    shape: TableShape,
    source: &mut dyn FnMut(&mut TakeEntry<'_>) -> Result<()>,
    watch: &mut dyn FnMut(f64) -> Result<()>,
) -> Result<Option<Description>> {
    let entry_size = plan.entry_size as usize;
    let choice = Choice { block_size: plan.block_size, ..Choice::new(shape.entries, plan.entry_size) };
    let mut builder = Builder::new(path, choice, plan.epoch, Some(shape.clone()))?;
    builder = builder.in_place_of(predecessors.to_vec());
    let mut parts = Parts::new(path, shape.partitions)?;
    let mut count = 0;
    source(&mut |name, entry| {
        if count % BETWEEN == 0 {
            watch(READING * count as f64 / plan.keys as f64)?;
        }
        count += 1;
        parts.write(shape.spot(name).partition, name, entry)
    })?;
    if count != plan.keys {
        let reason = format!("{count} keys where {} were counted before: it changed meanwhile", plan.keys);
        return Err(Error::format("input", reason));
    }
    let empty = vec![0; entry_size];
    for partition in 0..shape.partitions {
        watch(READING + (1.0 - READING) * f64::from(partition) / f64::from(shape.partitions))?;
        let records = Records { bytes: parts.take(partition)?, each: size_of::<Name>() + entry_size };
        let Some(table) = arrange(&shape, &records)? else { return Ok(None) };
        for place in table {
            builder.push(if place == EMPTY { &empty } else { records.entry(place) })?;
        }
    }
    builder.finish().map(Some)
}

fn too_long(value: &[u8], entry_size: usize) -> Error {
    Error::format("value", format!("{} bytes do not fit entries of {entry_size}", value.len()))
}

/// The files of the partitions.
struct Parts {
    database: PathBuf,
    files: Vec<Option<BufWriter<File>>>,
}

impl Parts {
    fn new(database: &Path, partitions: u32) -> Result<Parts> {
        let waiting = (WAITING / partitions as usize).min(1 << 20);
        let part = |_| Ok(Some(BufWriter::with_capacity(waiting, warpsmith_files::scratch(database)?)));
        Ok(Parts { database: database.to_owned(), files: (0..partitions).map(part).collect::<Result<_>>()? })
    }

    fn write(&mut self, partition: u32, name: &Name, entry: &[u8]) -> Result<()> {
        let file = self.files[partition as usize].as_mut().expect("no part is taken before all is written");
        file.write_all(name).and_then(|()| file.write_all(entry)).map_err(Error::io(&self.database))
    }

    /// All that was written for a partition, which is then gone from the disk.
    fn take(&mut self, partition: u32) -> Result<Vec<u8>> {
        let file = self.files[partition as usize].take().expect("each part is taken once");
        let read = |file: BufWriter<File>| {
            let mut file = file.into_inner().map_err(IntoInnerError::into_error)?;
            let mut bytes = Vec::with_capacity(file.stream_position()? as usize);
            file.rewind()?;
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read(file).map_err(Error::io(&self.database))
    }
}

/// Names and entries of a partition.
struct Records {
    bytes: Vec<u8>,
    each: usize,
}

impl Records {
    fn len(&self) -> usize {
        self.bytes.len() / self.each
    }

    fn name(&self, record: u32) -> &Name {
        self.bytes[record as usize * self.each..].first_chunk().expect("whole records")
    }

    fn entry(&self, record: u32) -> &[u8] {
        &self.bytes[record as usize * self.each..][size_of::<Name>()..self.each]
    }
}

/// Marks an empty place.
const EMPTY: u32 = u32::MAX;

/// Finds a place for every record of a partition: the number of the record at each place, or
/// [`EMPTY`]. None when they do not fit.
fn arrange(shape: &TableShape, records: &Records) -> Result<Option<Vec<u32>>> {
    let (size, count) = (shape.partition_size() as usize, records.len());
    if count > size {
        return Ok(None);
    }
    // By name, so that equal ones stand side by side. The first half of a name decides nearly
    // always.
    let first_half = |record| u64::from_be_bytes(*records.name(record).first_chunk().expect("14 bytes"));
    let mut by_name: Vec<(u64, u32)> = (0..count as u32).map(|record| (first_half(record), record)).collect();
    by_name.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| records.name(a.1).cmp(records.name(b.1))));
    if let Some(twice) = by_name
        .windows(2)
        .find(|pair| pair[0].0 == pair[1].0 && records.name(pair[0].1) == records.name(pair[1].1))
    {
        return Err(Error::SameKey(*records.name(twice[0].1)));
    }
    let places: Vec<[u32; 4]> =
        (0..count as u32).map(|record| shape.spot(records.name(record)).places).collect();
    let mut table = vec![EMPTY; size];
    // Which of its places a record is put in next: a walk that goes round them needs no randomness.
    let mut turns = vec![0u8; count];
    for (_, new) in by_name {
        let (mut homeless, mut steps) = (new, 0);
        loop {
            let places = &places[homeless as usize][..usize::from(shape.places)];
            if let Some(free) = places.iter().find(|place| table[**place as usize] == EMPTY) {
                table[*free as usize] = homeless;
                break;
            }
            steps += 1;
            if steps > PATIENCE {
                return Ok(None);
            }
            let turn = &mut turns[homeless as usize];
            let place = places[usize::from(*turn)];
            *turn = (*turn + 1) % shape.places;
            homeless = std::mem::replace(&mut table[place as usize], homeless);
        }
    }
    Ok(Some(table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use crate::keyword::{PLACES, chunked_value, chunks_of, tagged_value};

    fn key(number: u64) -> [u8; 8] {
        (number * number + 7).to_le_bytes()
    }

    fn plan(keys: u64, places: u8) -> Plan {
        Plan { places, ..Plan::tagged(keys, 8) }
    }

    fn all_of(keys: u64) -> impl FnMut(&mut Take<'_>) -> Result<()> {
        move |take| (0..keys).try_for_each(|number| take(&key(number), &number.to_le_bytes()))
    }

    /// Every key stands in one of its places, in tables of one partition and of several, and
    /// nothing else is in there.
    #[test]
    fn every_key_stands_in_one_of_its_places() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        for places in PLACES {
            for (count, partitions) in
                [(1, 1), (2, 1), (3, 1), (10, 1), (100, 1), (1000, 1), (20_000, 1), (20_000, 6)]
            {
                // A small table may need a second seed.
                let description = (0..20)
                    .find_map(|_| {
                        let shape =
                            TableShape::in_partitions(count, places, Layout::Tagged, partitions).unwrap();
                        {
                            let (plan, mut all) = (plan(count, places), all_of(count));
                            build_with(
                                &path,
                                &plan,
                                &[],
                                shape,
                                &mut entries_of(&plan, &mut all),
                                &mut |_| Ok(()),
                            )
                            .unwrap()
                        }
                    })
                    .expect("one of twenty seeds does");
                let shape = description.keyword.unwrap();
                assert_eq!(
                    (shape.partitions, shape.keys, shape.entries),
                    (partitions, count, description.params.entries())
                );
                let database = Database::open(&path).unwrap();
                let blocks = database.read_all().unwrap();
                let entry = |place: u64| blocks[place as usize * 24..][..24].to_vec();
                for number in 0..count {
                    let entries: Vec<Vec<u8>> =
                        shape.places_of(&key(number)).into_iter().map(entry).collect();
                    let value = tagged_value(&key(number), &entries);
                    assert_eq!(
                        value.as_deref(),
                        Some(&number.to_le_bytes()[..]),
                        "{places} places, {count} keys"
                    );
                }
                let filled = blocks.chunks_exact(24).filter(|entry| **entry != [0; 24]).count();
                assert_eq!(filled as u64, count);
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing but the database");
    }

    #[test]
    fn values_of_any_length_stand_in_chunks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let value = |number: u64| vec![number as u8; (number * 7 % 60) as usize];
        let keys = (0..500).map(|number| chunks_of(value(number).len(), 24) as u64).sum();
        let plan = Plan { layout: Layout::Chunked(8), ..plan(keys, 3) };
        let mut source =
            |take: &mut Take<'_>| (0..500).try_for_each(|number| take(&key(number), &value(number)));
        let built = build(&path, &plan, &mut source, &mut |_| Ok(())).unwrap();
        let shape = built.keyword.unwrap();
        assert_eq!((shape.keys, shape.layout), (keys, Layout::Chunked(8)));
        let blocks = Database::open(&path).unwrap().read_all().unwrap();
        let entries = |key: &[u8]| -> Vec<Vec<u8>> {
            let places = shape.look_up(key).into_iter();
            places.map(|place| blocks[place as usize * 24..][..24].to_vec()).collect()
        };
        for number in 0..500 {
            let found = chunked_value(&shape, &key(number), &entries(&key(number))).unwrap();
            assert_eq!(found, Some(value(number)), "{number}");
        }
        assert_eq!(chunked_value(&shape, &key(500), &entries(&key(500))).unwrap(), None);
        // Longer than the table has chunks for.
        let short = Plan { layout: Layout::Chunked(7), ..plan };
        std::fs::remove_file(&path).unwrap();
        let error = build(&path, &short, &mut source, &mut |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("do not fit"), "{error}");
    }

    #[test]
    fn what_cannot_be_is_refused_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let refused = |plan: &Plan, pairs: &[(&[u8], &[u8])]| {
            let mut source = |take: &mut Take<'_>| pairs.iter().try_for_each(|(key, value)| take(key, value));
            let error = build(&path, plan, &mut source, &mut |_| Ok(())).unwrap_err();
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{error}");
            error
        };
        let same = refused(&plan(3, 3), &[(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]);
        assert!(matches!(same, Error::SameKey(which) if which == name(b"a")), "{same}");
        assert!(refused(&plan(2, 3), &[(b"a", b"1")]).to_string().contains("changed meanwhile"));
        assert!(refused(&plan(1, 3), &[(b"a", b"nine bytes")]).to_string().contains("do not fit"));
        let state = Plan { layout: Layout::Records, ..plan(1, 3) };
        assert!(refused(&state, &[(b"a", b"1")]).to_string().contains("do not fit"));
        // Stopped by the one who watches.
        let stopped = build(&path, &plan(5, 3), &mut all_of(5), &mut |_| Err(Error::Stopped));
        assert!(matches!(stopped, Err(Error::Stopped)));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
