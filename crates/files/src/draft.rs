//! A file that is long in the making, and has its name only when it is whole.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::replace::{is_at, rename_new, sync_folder_of};
use crate::{Error, Result};

/// A file under a temporary name, held by one process until it gets its own. Dropped before that, it is removed; what a
/// killed process left is cleared away by the next.
///
/// The rule that keeps two apart: a temporary name is removed, or renamed, only by who has the lock of the file at it.
#[derive(Debug)]
pub struct Draft {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
}

impl Draft {
    /// Begins a file for `path`, under the name `temporary` in the same folder and with this mode. Says at once when another
    /// process is making it. Whatever else is at the temporary name is removed, never written through.
    pub fn begin(path: &Path, temporary: &Path, mode: u32) -> Result<Self> {
        let failed = || Error::io("write", temporary);
        let in_use = || Error::InUse { path: path.to_owned() };
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(mode).custom_flags(libc::O_NOFOLLOW);
            match options.open(temporary) {
                Ok(file) => {
                    match file.try_lock() {
                        Ok(()) => {}
                        // Another took it for one that was left behind, and is about to remove it.
                        Err(TryLockError::WouldBlock) => continue,
                        Err(TryLockError::Error(source)) => return Err(failed()(source)),
                    }
                    if is_at(&file, temporary) {
                        return Ok(Self { file, temporary: temporary.to_owned(), path: path.to_owned() });
                    }
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if !clear(temporary)? {
                        return Err(in_use());
                    }
                }
                Err(error) => return Err(failed()(error)),
            }
        }
    }

    /// The file, empty at first.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Forces the file to disk and gives it its name, where nothing may be.
    pub fn place_new(self) -> Result<()> {
        self.place_by(|temporary, path| {
            rename_new(temporary, path).map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => Error::Exists { path: path.to_owned() },
                _ => Error::io("write", path)(error),
            })
        })
    }

    /// Forces the file to disk and gives it its name, in place of what may be there.
    pub fn place(self) -> Result<()> {
        self.place_by(|temporary, path| fs::rename(temporary, path).map_err(Error::io("write", path)))
    }

    /// The file without any name: it is gone with who holds it.
    pub(crate) fn into_nameless(self) -> Result<File> {
        // Dropping the draft removes the name.
        self.file.try_clone().map_err(Error::io("open", &self.temporary))
    }

    fn place_by(self, rename: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<()> {
        self.file.sync_all().map_err(Error::io("write", &self.path))?;
        rename(&self.temporary, &self.path)?;
        sync_folder_of(&self.path)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Once it has its own name, the temporary one is free for others.
        if is_at(&self.file, &self.temporary) {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Removes what is at a temporary name, unless a process holds it: then `false`.
fn clear(temporary: &Path) -> Result<bool> {
    let failed = || Error::io("remove", temporary);
    let gone = |error: &std::io::Error| error.kind() == ErrorKind::NotFound;
    let there = match fs::symlink_metadata(temporary) {
        Err(error) if gone(&error) => return Ok(true),
        other => other.map_err(failed())?,
    };
    // Held while the name is removed, see the rule.
    let mut _held = None;
    if there.is_file() {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        match options.open(temporary) {
            Ok(file) => {
                match file.try_lock() {
                    Ok(()) => {}
                    Err(TryLockError::WouldBlock) => return Ok(false),
                    Err(TryLockError::Error(source)) => return Err(failed()(source)),
                }
                if !is_at(&file, temporary) {
                    return Ok(true);
                }
                _held = Some(file);
            }
            Err(error) if gone(&error) => return Ok(true),
            // One of another user's that cannot be read is nobody's draft of ours.
            Err(_) => {}
        }
    }
    match fs::remove_file(temporary) {
        Err(error) if !gone(&error) => Err(failed()(error)),
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_draft_has_its_name_when_it_is_whole_and_leaves_nothing_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let (path, temporary) = (folder.path().join("db"), folder.path().join("db.part"));
        let begin = || Draft::begin(&path, &temporary, 0o640);
        let draft = begin().unwrap();
        draft.file().write_all(b"whole").unwrap();
        assert!(matches!(begin(), Err(Error::InUse { .. })));
        assert!(!path.exists());
        draft.place_new().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);

        let second = begin().unwrap();
        second.file().write_all(b"another").unwrap();
        assert!(matches!(second.place_new(), Err(Error::Exists { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        drop(begin().unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

        let third = begin().unwrap();
        third.file().write_all(b"another").unwrap();
        third.place().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"another");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_at_the_temporary_name_is_removed_and_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (path, temporary) = (folder.path().join("db"), folder.path().join("db.part"));
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let plants: [&dyn Fn(); 4] = [
            &|| symlink(&victim, &temporary).unwrap(),
            &|| symlink("/nowhere", &temporary).unwrap(),
            &|| fs::hard_link(&victim, &temporary).unwrap(),
            &|| fs::write(&temporary, "left by a killed process").unwrap(),
        ];
        for plant in plants {
            plant();
            let draft = Draft::begin(&path, &temporary, 0o600).unwrap();
            draft.file().write_all(b"ours").unwrap();
            draft.place().unwrap();
            assert_eq!(fs::read(&victim).unwrap(), b"precious");
            assert_eq!(fs::read(&path).unwrap(), b"ours");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        }
        fs::create_dir(&temporary).unwrap();
        assert!(Draft::begin(&path, &temporary, 0o600).is_err());
    }

    /// Many threads begin, drop and place one file: never two hold it, and what is placed is whole.
    #[test]
    fn no_two_write_one_draft() {
        let folder = tempfile::tempdir().unwrap();
        let (path, temporary) = (folder.path().join("db"), folder.path().join("db.part"));
        let (holders, taken) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while taken.load(Ordering::SeqCst) < 300 {
                        let Ok(draft) = Draft::begin(&path, &temporary, 0o600) else { continue };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        draft.file().write_all(b"whole").unwrap();
                        assert_eq!(fs::read(&temporary).unwrap(), b"whole");
                        let number = taken.fetch_add(1, Ordering::SeqCst);
                        holders.fetch_sub(1, Ordering::SeqCst);
                        if number % 3 == 0 {
                            draft.place().unwrap();
                        }
                    }
                });
            }
        });
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
