//! Files that are whole or not there: written under another name, forced to disk, renamed. And locks that die with
//! their process.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Error;

/// Replaces `path` by a file that `write` fills. At any moment, also after a loss of power, `path` is the old file or
/// the whole new one. On failure the old one is untouched and nothing is left behind.
///
/// The caller holds a lock on `path`: two at once would write to the same temporary file.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> Result<(), Error> {
    // A link is followed: the file it names is replaced, not the link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let temporary = with_suffix(path, ".new");
    let fill = || {
        let file = File::create(&temporary)?;
        let mut writer = io::BufWriter::with_capacity(1 << 16, file);
        write(&mut writer)?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    fill().map_err(|source| {
        let _ = fs::remove_file(&temporary);
        Error::io("write", path)(source)
    })?;
    sync_folder_of(path)
}

/// [`replace`] with these bytes.
pub(crate) fn replace_with(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace(path, |writer| writer.write_all(bytes))
}

/// Forces the names in the folder of `path` to disk: a renamed file keeps its name only then.
pub(crate) fn sync_folder_of(path: &Path) -> Result<(), Error> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Only Unix opens folders as files.
    if cfg!(unix) {
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(Error::io("force to disk", folder))?;
    }
    Ok(())
}

/// `path` with something appended to its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The sole right to write `path`, among processes that ask. Held through a file beside it, which is removed at the end;
/// the system frees the lock of a process that was killed.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the lock of `path`, or says at once that another has it.
    pub fn take(path: &Path) -> Result<Self, Error> {
        let lock = with_suffix(path, ".lock");
        loop {
            let mut options = OpenOptions::new();
            let file = options.create(true).truncate(false).write(true).open(&lock);
            let file = file.map_err(Error::io("open the lock", &lock))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Error::InUse { path: path.to_owned() }),
                Err(TryLockError::Error(source)) => return Err(Error::io("lock", &lock)(source)),
            }
            // The one before may have removed the file between our opening and locking it: then a third could make and lock
            // another of this name. So only a lock on the file that has the name counts.
            if is_named(&file, &lock).map_err(Error::io("look at the lock", &lock))? {
                return Ok(Self { path: lock, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While still locked, see above. Elsewhere than on Unix an open file cannot be told by its name, so it stays.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn is_named(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_excludes_others_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        let lock = Lock::take(&path).unwrap();
        assert!(matches!(Lock::take(&path), Err(Error::InUse { path: named }) if named == path));
        drop(lock);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), if cfg!(unix) { 0 } else { 1 });
        drop(Lock::take(&path).unwrap());
        // What a killed process leaves is no obstacle.
        fs::write(with_suffix(&path, ".lock"), "").unwrap();
        drop(Lock::take(&path).unwrap());
    }

    /// Many threads take and free one lock: never two hold it.
    #[test]
    fn no_two_hold_a_lock() {
        use std::sync::atomic::{AtomicU32, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        let (holders, taken) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while taken.load(Ordering::SeqCst) < 500 {
                        let Ok(_lock) = Lock::take(&path) else { continue };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        taken.fetch_add(1, Ordering::SeqCst);
                        holders.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        replace_with(&path, b"old").unwrap();
        let full = |writer: &mut io::BufWriter<File>| {
            writer.write_all(&[0; 1 << 17])?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        let error = replace(&path, full).unwrap_err().to_string();
        assert!(error.contains("make room and run it again"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace_with(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }
}
