//! The names of a state's records, which do not say whose they are: with them records can move, so
//! that a new key finds a place.
//!
//! ```text
//! FILE.names   "WPIRNAM1", lineage of the database [32], then for each key: tag of its record [8], name [14]
//! ```
//!
//! Names of keys that never came to be, or are gone, do no harm, so they are appended before the
//! keys are. A wrong one does none either: a record moves only if it stands where its name may
//! stand.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use warpsmith_files::with_suffix;
use warpsmith_rms24::keyword::{Name, name};
use warpsmith_rms24::{Error, Result};

use crate::record::{RECORD, tag};

const MAGIC: &[u8; 8] = b"WPIRNAM1";
const HEAD: usize = 40;
const EACH: usize = 22;

/// The names of a state's keys, beside its database.
pub struct Names {
    path: PathBuf,
    file: File,
    by_tag: HashMap<[u8; 8], Name>,
    /// Bytes of the file that are known: its head, and whole names.
    known: u64,
}

impl Names {
    /// Begins the list of a database.
    ///
    /// # Errors
    ///
    /// When it is there already, or cannot be written.
    pub fn create(database: &Path, lineage: &[u8; 32]) -> Result<Names> {
        let path = with_suffix(database, ".names");
        let options = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let mut file = options.map_err(Error::io(&path))?;
        file.write_all(&[&MAGIC[..], lineage].concat()).map_err(Error::io(&path))?;
        Ok(Names { path, file, by_tag: HashMap::new(), known: HEAD as u64 })
    }

    /// Reads the list of a database; none where there is no list. That of a table from which the
    /// keys came to this one is taken over: names are the same in every table.
    ///
    /// # Errors
    ///
    /// When it is of another database, or cannot be read.
    pub fn open(database: &Path, lineage: &[u8; 32], predecessors: &[[u8; 32]]) -> Result<Option<Names>> {
        let path = with_suffix(database, ".names");
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&path)(error)),
        };
        let length = file.metadata().map_err(Error::io(&path))?.len();
        let mut head = [0; HEAD];
        let is_of = |head: &[u8; HEAD], lineage: &[u8; 32]| head[8..] == *lineage;
        let is_one = length >= HEAD as u64 && file.read_exact_at(&mut head, 0).is_ok() && head[..8] == *MAGIC;
        if !is_one || !is_of(&head, lineage) && !predecessors.iter().any(|earlier| is_of(&head, earlier)) {
            return Err(Error::damaged(&path, "it is not the list of this database's names; remove it"));
        }
        if !is_of(&head, lineage) {
            file.write_all_at(lineage, 8).and_then(|()| file.sync_data()).map_err(Error::io(&path))?;
        }
        let mut names = Names { path, file, by_tag: HashMap::new(), known: HEAD as u64 };
        names.read_on()?;
        Ok(Some(names))
    }

    /// Reads the names that came since, as far as they are whole.
    fn read_on(&mut self) -> Result<()> {
        let length = self.file.metadata().map_err(Error::io(&self.path))?.len();
        let whole = length.saturating_sub(self.known) / EACH as u64 * EACH as u64;
        if whole == 0 {
            return Ok(());
        }
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.known)).map_err(Error::io(&self.path))?;
        let (mut file, mut line) = (BufReader::with_capacity(1 << 20, file.take(whole)), [0; EACH]);
        for _ in 0..whole / EACH as u64 {
            file.read_exact(&mut line).map_err(Error::io(&self.path))?;
            let (tag, name) = line.split_at(8);
            self.by_tag
                .insert(tag.try_into().expect("eight bytes"), name.try_into().expect("fourteen bytes"));
        }
        self.known += whole;
        Ok(())
    }

    /// Makes it the list of the table that the keys have moved to.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn move_to(&mut self, lineage: &[u8; 32]) -> Result<()> {
        let written = self.file.write_all_at(lineage, 8).and_then(|()| self.file.sync_data());
        written.map_err(Error::io(&self.path))
    }

    /// Adds keys, durably, and takes over what others added meanwhile.
    ///
    /// # Errors
    ///
    /// When they cannot be written.
    pub fn add<'a>(&mut self, keys: impl IntoIterator<Item = &'a [u8]>) -> Result<()> {
        // Another process may add to it too, such as an update while somebody follows: each after
        // the other, and neither over what the other wrote. What a crash left of a name is written
        // over.
        self.file.lock().map_err(Error::io(&self.path))?;
        let added = self.read_on().and_then(|()| {
            let mut bytes = Vec::new();
            for key in keys {
                let (tag, name) = (tag(key), name(key));
                if self.by_tag.insert(tag, name) != Some(name) {
                    bytes.extend_from_slice(&tag);
                    bytes.extend_from_slice(&name);
                }
            }
            if bytes.is_empty() {
                return Ok(());
            }
            let written = self.file.write_all_at(&bytes, self.known).and_then(|()| self.file.sync_data());
            written.map_err(Error::io(&self.path))?;
            self.known += bytes.len() as u64;
            Ok(())
        });
        let unlocked = self.file.unlock().map_err(Error::io(&self.path));
        added.and(unlocked)
    }

    /// The name of the key that a record is of, if it is known.
    pub fn of(&self, record: &[u8]) -> Option<Name> {
        let record: &[u8; RECORD] = record.try_into().ok()?;
        let of_slot: [u8; 8] = *record.last_chunk()?;
        // The last bytes of an account's are zeros.
        let tag = if of_slot == [0; 8] { *record[24..].first_chunk()? } else { of_slot };
        self.by_tag.get(&tag).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Account, account_record, slot_key, slot_record};

    #[test]
    fn records_are_known_again_after_a_crash_too() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("data");
        let (address, slot) = ([7; 20], slot_key(&[7; 20], &[3; 32]));
        let account = account_record(&address, &Account { balance: 5, nonce: 1, code: 0 });
        let mut names = Names::create(&database, &[1; 32]).unwrap();
        names.add([&address[..], &slot]).unwrap();
        drop(names);
        let path = folder.path().join("data.names");
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.len(), HEAD + 2 * EACH);
        for cut in [whole.len(), whole.len() - 1, whole.len() - EACH + 1] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut names = Names::open(&database, &[1; 32], &[]).unwrap().unwrap();
            assert_eq!(names.of(&account), Some(name(&address)));
            names.add([&slot[..]]).unwrap();
            assert_eq!(names.of(&slot_record(&slot, &[9; 32])), Some(name(&slot)));
            assert_eq!(std::fs::read(&path).unwrap(), whole);
        }
        assert!(Names::open(&database, &[2; 32], &[[3; 32]]).is_err());
        // Taken over from the table before, once and for all.
        assert!(
            Names::open(&database, &[2; 32], &[[3; 32], [1; 32]]).unwrap().unwrap().of(&account).is_some()
        );
        assert!(Names::open(&database, &[1; 32], &[]).is_err());
        assert!(Names::open(&database, &[2; 32], &[]).unwrap().is_some());
        assert!(Names::open(&folder.path().join("other"), &[1; 32], &[]).unwrap().is_none());
    }

    #[test]
    fn two_who_add_do_not_write_over_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("data");
        let key = |number: u64| [&number.to_be_bytes()[..], &[9; 12]].concat();
        let record = |number: u64| {
            let address = key(number)[..].try_into().unwrap();
            account_record(&address, &Account { balance: 1, nonce: 0, code: 0 })
        };
        let mut one = Names::create(&database, &[1; 32]).unwrap();
        let mut other = Names::open(&database, &[1; 32], &[]).unwrap().unwrap();
        for number in 0..20 {
            one.add([&key(2 * number)[..]]).unwrap();
            other.add([&key(2 * number + 1)[..], &key(2 * number)]).unwrap();
            // What the other added is known too, without a key of one's own.
            one.add([]).unwrap();
            assert_eq!(one.of(&record(2 * number + 1)), Some(name(&key(2 * number + 1))));
        }
        let length = std::fs::metadata(folder.path().join("data.names")).unwrap().len();
        assert_eq!(length as usize, HEAD + 40 * EACH);
        let read = Names::open(&database, &[1; 32], &[]).unwrap().unwrap();
        assert!((0..40).all(|number| read.of(&record(number)) == Some(name(&key(number)))));
    }
}
