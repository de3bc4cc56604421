//! Files that are whole or not there: written under another name, forced to disk, renamed.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Replaces `path` by a file that `write` fills, with this mode. At any moment, also after a loss of power, `path` is the
/// old file or the whole new one. On failure the old one is untouched and nothing is left behind.
///
/// The caller holds what keeps others from replacing it at once ([`crate::Locked`] for one): two would write to the same
/// temporary file.
pub fn replace(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> Result<File> {
    write_beside(path, &with_suffix(path, ".new"), mode, write, |temporary| fs::rename(temporary, path))
}

/// Writes a file under a temporary name, forces it to disk and lets `place` give it its own.
pub(crate) fn write_beside(
    path: &Path,
    temporary: &Path,
    mode: u32,
    write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
    place: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<File> {
    let fill = || {
        // What an interrupted write left, or a link that somebody put there: removed, never written through.
        match fs::remove_file(temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(mode).custom_flags(libc::O_NOFOLLOW);
        let mut writer = io::BufWriter::with_capacity(1 << 16, options.open(temporary)?);
        write(&mut writer)?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        place(temporary)?;
        Ok(file)
    };
    let file = fill().map_err(|source| {
        let _ = fs::remove_file(temporary);
        Error::io("write", path)(source)
    })?;
    sync_folder_of(path)?;
    Ok(file)
}

/// Forces the names in the folder of `path` to disk: a new or renamed file keeps its name only then.
pub fn sync_folder_of(path: &Path) -> Result<()> {
    let folder = folder_of(path);
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems cannot; then there is nothing to add to what they promise for the file itself.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        other => other.map_err(Error::io("force to disk", folder)),
    }
}

/// Renames a file to a name that must be free; an error of kind `AlreadyExists` where it is not. Nobody ever sees the file
/// under both names, so that a kill cannot leave it with two.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let name = |path: &Path| std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from);
        let (old, new) = (name(from)?, name(to)?);
        // SAFETY: a system call on two texts that end with a zero and live as long as it takes.
        let done = unsafe {
            libc::syscall(
                libc::SYS_renameat2,
                libc::AT_FDCWD,
                old.as_ptr(),
                libc::AT_FDCWD,
                new.as_ptr(),
                libc::RENAME_NOREPLACE,
            )
        };
        if done == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        // Not every file system can; then in two steps.
        if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::EPERM)) {
            return Err(error);
        }
    }
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// `path` with something appended to its name.
pub fn with_suffix(path: &Path, suffix: impl AsRef<OsStr>) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Whether this is the file that stands at the path now, and the path is no link to it.
pub fn is_at(file: &File, path: &Path) -> bool {
    let id = |facts: fs::Metadata| (facts.dev(), facts.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(there)) => id(open) == id(there),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        replace(&path, 0o600, |writer| writer.write_all(b"old")).unwrap();
        let full = |writer: &mut io::BufWriter<File>| {
            writer.write_all(&[0; 1 << 17])?;
            Err(io::Error::from(ErrorKind::StorageFull))
        };
        let error = replace(&path, 0o600, full).unwrap_err().to_string();
        assert!(error.contains("make room and run it again"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_at_the_temporary_name_is_removed_and_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("map"), folder.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, with_suffix(&path, ".new")).unwrap();
        replace(&path, 0o600, |writer| writer.write_all(b"map")).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(fs::read(&path).unwrap(), b"map");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
