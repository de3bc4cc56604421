//! A file that one process holds, and replaces whole while it holds it.

use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::private::{Sharing, check_folder, open};
use crate::replace::{is_at, rename_new, replace, sync_folder_of, with_suffix, write_beside};
use crate::{Error, Result};

/// A file and the sole right to it among processes that ask. The lock lies on the file itself and dies with the process; a
/// replacement is locked before it takes the name, so that the file at the path is locked at every moment.
#[derive(Debug)]
pub struct Locked {
    file: File,
    path: PathBuf,
    mode: u32,
}

impl Locked {
    /// Takes an existing file, or says at once that another process has it.
    pub fn open(path: &Path, sharing: Sharing) -> Result<Self> {
        loop {
            let file = open(path, sharing)?;
            lock(&file, path)?;
            // The one before may have replaced it between our opening and locking it: only the file that has the name counts.
            if is_at(&file, path) {
                return Ok(Self { file, path: path.to_owned(), mode: mode(sharing) });
            }
        }
    }

    /// Makes the file, filled by `write`; an error where something is there already. Nobody ever sees a part of it.
    pub fn create(
        path: &Path,
        sharing: Sharing,
        write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
    ) -> Result<Self> {
        check_folder(path)?;
        // A name of its own, since two processes may be at it.
        let random = std::hash::RandomState::new().build_hasher().finish();
        let temporary = with_suffix(path, format!(".{random:016x}.new"));
        let (mut is_there, mut locked) = (false, None);
        let made = write_beside(path, &temporary, mode(sharing), write, |temporary| {
            // To read and write it, as an opened one is.
            let file = File::options().read(true).write(true).open(temporary)?;
            file.try_lock()?;
            rename_new(temporary, path)
                .inspect_err(|error| is_there = error.kind() == ErrorKind::AlreadyExists)?;
            locked = Some(file);
            Ok(())
        });
        match (made, locked) {
            (Ok(_), Some(file)) => Ok(Self { file, path: path.to_owned(), mode: mode(sharing) }),
            (Err(_), _) if is_there => Err(Error::Exists { path: path.to_owned() }),
            (Err(error), _) => Err(error),
            (Ok(_), None) => unreachable!("a file that was placed was locked"),
        }
    }

    /// The file as it is now.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the content, as [`replace()`] does. An error, and nothing changed, if the file is no longer at its name.
    pub fn replace(&mut self, write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>) -> Result<()> {
        if !is_at(&self.file, &self.path) {
            let reason = "is no longer the file that was opened: somebody moved or replaced it";
            return Err(Error::unsafe_to_use(&self.path, reason, "start again with the file that is meant"));
        }
        let locked_first = |writer: &mut io::BufWriter<File>| {
            writer.get_ref().try_lock()?;
            write(writer)
        };
        // The lock of the old file ends only when the new one, locked already, has the name.
        self.file = replace(&self.path, self.mode, locked_first)?;
        Ok(())
    }

    /// Removes the file.
    pub fn remove(self) -> Result<()> {
        fs::remove_file(&self.path).map_err(Error::io("remove", &self.path))?;
        sync_folder_of(&self.path)
    }
}

/// The lock ends here and now. It belongs to the opened file, of which a process that was started a moment ago may have a copy until
/// it runs its own program; closing alone would leave the lock to that copy.
impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

fn mode(sharing: Sharing) -> u32 {
    match sharing {
        Sharing::Secret => 0o600,
        Sharing::Readable => 0o644,
    }
}

fn lock(file: &File, path: &Path) -> Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => Error::InUse { path: path.to_owned() },
        TryLockError::Error(source) => Error::io("lock", path)(source),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn content(bytes: &'static [u8]) -> impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()> {
        move |writer| writer.write_all(bytes)
    }

    #[test]
    fn one_holds_a_file_through_replacements() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        let mut held = Locked::create(&path, Sharing::Secret, content(b"first")).unwrap();
        assert!(matches!(Locked::create(&path, Sharing::Secret, content(b"x")), Err(Error::Exists { .. })));
        held.file().write_all_at(b"F", 0).unwrap();
        for round in 0..3 {
            assert!(matches!(Locked::open(&path, Sharing::Secret), Err(Error::InUse { .. })), "{round}");
            held.replace(content(b"next")).unwrap();
        }
        drop(held);
        assert_eq!(fs::read(Locked::open(&path, Sharing::Secret).unwrap().path()).unwrap(), b"next");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// As a child process has it between its start and its program's.
    #[test]
    fn a_copy_of_the_opened_file_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        let held = Locked::create(&path, Sharing::Secret, content(b"ours")).unwrap();
        let _copy = held.file().try_clone().unwrap();
        assert!(matches!(Locked::open(&path, Sharing::Secret), Err(Error::InUse { .. })));
        drop(held);
        Locked::open(&path, Sharing::Secret).unwrap();
    }

    #[test]
    fn a_file_that_was_moved_away_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        let mut held = Locked::create(&path, Sharing::Secret, content(b"ours")).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another's").unwrap();
        assert!(held.replace(content(b"next")).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"another's");
    }

    /// Many threads create, take, replace and free one file: never two hold it, and nobody sees a part.
    #[test]
    fn no_two_hold_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        let (holders, taken) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while taken.load(Ordering::SeqCst) < 300 {
                        let held = Locked::open(&path, Sharing::Secret)
                            .or_else(|_| Locked::create(&path, Sharing::Secret, content(b"whole")));
                        let Ok(mut held) = held else { continue };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        assert_eq!(fs::read(&path).unwrap(), b"whole");
                        if taken.fetch_add(1, Ordering::SeqCst) % 7 == 0 {
                            holders.fetch_sub(1, Ordering::SeqCst);
                            held.remove().unwrap();
                            continue;
                        }
                        held.replace(content(b"whole")).unwrap();
                        holders.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
