//! Files of settings, which are looked for where other users may write: the working folder may be `/tmp`.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::private::{Sharing, check_mode, check_one_name, effective_user, not_regular};
use crate::{Error, Result};

/// A file of settings.
#[derive(Debug, PartialEq, Eq)]
pub enum Settings {
    /// Its content.
    Read(Vec<u8>),
    /// There is none.
    Missing,
    /// It belongs to another user, by this number, and was not read.
    Foreign(u32),
}

/// Reads a file of settings of at most `most` bytes: a regular file of this user or of root, which nobody else may write.
/// Never waits, whatever is there.
///
/// A file or a link of another user is not read, and no error: in a folder that all may write to, one user must not be
/// able to stop the commands of the others.
///
/// # Errors
///
/// When it is no regular file, is too long, or others may write it.
pub fn read_settings(path: &Path, most: u64) -> Result<Settings> {
    let is_trusted = |owner: u32| owner == effective_user() || owner == 0;
    // Also where a part of the way to it is no folder, or one that may not be entered.
    let is_missing = |error: &std::io::Error| {
        matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
    };
    let named = match fs::symlink_metadata(path) {
        Err(error) if is_missing(&error) => return Ok(Settings::Missing),
        other => other.map_err(Error::io("look at", path))?,
    };
    if !is_trusted(named.uid()) {
        return Ok(Settings::Foreign(named.uid()));
    }
    // Opening a device can do something, so its kind is known before.
    let there = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Settings::Missing),
        other => other.map_err(Error::io("look at", path))?,
    };
    if !is_trusted(there.uid()) {
        return Ok(Settings::Foreign(there.uid()));
    }
    if !there.is_file() {
        return Err(not_regular(path, &there));
    }
    // And again of the file itself: another may have been put in its place, and a pipe would keep us waiting.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path).map_err(Error::io("read", path))?;
    let facts = file.metadata().map_err(Error::io("look at", path))?;
    if !is_trusted(facts.uid()) {
        return Ok(Settings::Foreign(facts.uid()));
    }
    if !facts.is_file() {
        return Err(not_regular(path, &facts));
    }
    // Root's files may have several names, as in stores of packages; who gives one of ours another means harm.
    if facts.uid() == effective_user() && effective_user() != 0 {
        check_one_name(path, &facts)?;
    }
    check_mode(path, &facts, Sharing::Readable)?;
    let mut content = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut content).map_err(Error::io("read", path))?;
    match content.len() as u64 > most {
        true => Err(Error::TooLong { path: path.to_owned(), most }),
        false => Ok(Settings::Read(content)),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs::Permissions;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn make_fifo(path: &Path) {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name is a string of this function that ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    }

    /// None of these is waited for or read without an end.
    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "device = 'cpu'").unwrap();
        fs::set_permissions(path("file"), Permissions::from_mode(0o644)).unwrap();
        let content = || Settings::Read(b"device = 'cpu'".to_vec());
        assert_eq!(read_settings(&path("file"), 14).unwrap(), content());
        assert!(matches!(read_settings(&path("file"), 13), Err(Error::TooLong { most: 13, .. })));
        symlink(path("file"), path("link")).unwrap();
        assert_eq!(read_settings(&path("link"), 14).unwrap(), content());
        assert_eq!(read_settings(&path("none"), 14).unwrap(), Settings::Missing);
        assert_eq!(read_settings(&path("file").join("none"), 14).unwrap(), Settings::Missing);
        make_fifo(&path("fifo"));
        symlink(path("fifo"), path("link to a fifo")).unwrap();
        symlink("/dev/zero", path("endless")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        for (name, says) in [
            ("fifo", "is a pipe or a socket"),
            ("link to a fifo", "is a pipe or a socket"),
            ("socket", "is a pipe or a socket"),
            ("endless", "is a device"),
            ("folder", "is a folder"),
        ] {
            let error = read_settings(&path(name), 1000).unwrap_err().to_string();
            assert!(error.contains(says), "{name}: {error}");
        }
        fs::set_permissions(path("file"), Permissions::from_mode(0o666)).unwrap();
        assert!(read_settings(&path("file"), 14).unwrap_err().to_string().contains("chmod go-w"));
    }

    /// Only root can make a file that belongs to somebody else.
    #[test]
    fn what_another_user_put_there_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "device = 'cpu'").unwrap();
        fs::write(path("ours"), "device = 'cpu'").unwrap();
        fs::set_permissions(path("ours"), Permissions::from_mode(0o644)).unwrap();
        make_fifo(&path("fifo"));
        symlink(path("ours"), path("link")).unwrap();
        symlink(path("file"), path("our link")).unwrap();
        if chown(path("file"), Some(12_345), None).is_err() {
            eprintln!("SKIPPED: files of another user can be made by root only");
            return;
        }
        chown(path("fifo"), Some(12_345), None).unwrap();
        lchown(path("link"), Some(12_345), None).unwrap();
        for name in ["file", "fifo", "link", "our link"] {
            assert_eq!(read_settings(&path(name), 1000).unwrap(), Settings::Foreign(12_345), "{name}");
        }
        assert!(matches!(read_settings(&path("ours"), 1000).unwrap(), Settings::Read(_)));
    }
}
