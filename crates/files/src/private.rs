//! Opening a file that must be ours, and the rules for it.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::draft::Draft;
use crate::replace::{folder_of, sync_folder_of, with_suffix};
use crate::{Error, Result};

/// Who besides the owner may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Nobody: it holds secrets, or tells of them.
    Secret,
    /// Anybody; only the owner writes it.
    Readable,
}

/// A new, empty file with mode 0600; an error where something is there already. Its name is on disk when this returns.
pub fn create(path: &Path) -> Result<File> {
    check_folder(path)?;
    let file = options().create_new(true).open(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Error::Exists { path: path.to_owned() },
        _ => Error::io("create", path)(error),
    })?;
    sync_folder_of(path)?;
    Ok(file)
}

/// A file that has no name, in the folder of `beside`: nobody else can open it, and it is gone with the program, however that ends.
pub fn scratch(beside: &Path) -> Result<File> {
    let mut unnamed = OpenOptions::new();
    unnamed.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE | libc::O_EXCL);
    match unnamed.open(folder_of(beside)) {
        Ok(file) => Ok(file),
        // Not every file system has such files, and each says so in its own way. Whatever else was wrong is met again.
        Err(_) => scratch_by_name(beside),
    }
}

/// The same by a name that is there for a moment. A process killed in that moment leaves it; the next removes it.
fn scratch_by_name(beside: &Path) -> Result<File> {
    let name = with_suffix(beside, ".scratch");
    loop {
        match Draft::begin(&name, &name, 0o600) {
            Ok(draft) => return draft.into_nameless(),
            // Held by another process for its moment.
            Err(Error::InUse { .. }) => std::thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
}

/// An existing file, to read and write it.
pub fn open(path: &Path, sharing: Sharing) -> Result<File> {
    open_with(path, sharing, &mut options())
}

/// A file to append to, made if there is none; whether it was made.
pub fn append(path: &Path) -> Result<(File, bool)> {
    let mut options = options();
    options.append(true);
    check_folder(path)?;
    match options.clone().create_new(true).open(path) {
        Ok(file) => {
            sync_folder_of(path)?;
            Ok((file, true))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Ok((open_with(path, Sharing::Secret, &mut options)?, false))
        }
        Err(error) => Err(Error::io("create", path)(error)),
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    // Without O_NONBLOCK, opening a pipe would wait for its reader before it could be refused.
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

fn open_with(path: &Path, sharing: Sharing, options: &mut OpenOptions) -> Result<File> {
    check_folder(path)?;
    let file = options.open(path).map_err(|error| match path.symlink_metadata() {
        // Better words than the system's for what O_NOFOLLOW and writing refuse.
        Ok(there) if !there.is_file() => not_regular(path, &there),
        _ => Error::io("open", path)(error),
    })?;
    check(&file, path, sharing)?;
    Ok(file)
}

/// Whether an open file is ours, one file with one name, and closed to others. `path` is for the message.
pub fn check(file: &File, path: &Path, sharing: Sharing) -> Result<()> {
    let facts = file.metadata().map_err(Error::io("look at", path))?;
    if !facts.is_file() {
        return Err(not_regular(path, &facts));
    }
    if facts.uid() != effective_user() {
        return Err(not_ours(path, &facts));
    }
    check_one_name(path, &facts)?;
    check_mode(path, &facts, sharing)
}

pub(crate) fn check_one_name(path: &Path, facts: &Metadata) -> Result<()> {
    if facts.nlink() <= 1 {
        return Ok(());
    }
    let reason =
        format!("has {} names (hard links), so that it may be another file's content", facts.nlink());
    Err(Error::unsafe_to_use(path, reason, "give a file with one name"))
}

pub(crate) fn check_mode(path: &Path, facts: &Metadata, sharing: Sharing) -> Result<()> {
    let (open_to_others, may) = match sharing {
        Sharing::Secret => (0o077, "is open to other users"),
        Sharing::Readable => (0o022, "may be written by other users"),
    };
    if facts.mode() & open_to_others == 0 {
        return Ok(());
    }
    let reason = format!("{may} (mode {:03o})", facts.mode() & 0o777);
    let mode = match sharing {
        Sharing::Secret => "600",
        Sharing::Readable => "go-w",
    };
    let advice = format!("if it is the file you mean, run: chmod {mode} {}", path.display());
    Err(Error::unsafe_to_use(path, reason, advice))
}

pub(crate) fn not_regular(path: &Path, facts: &Metadata) -> Error {
    let kind = facts.file_type();
    let reason = if kind.is_symlink() {
        "is a symbolic link"
    } else if kind.is_dir() {
        "is a folder"
    } else if kind.is_fifo() || kind.is_socket() {
        "is a pipe or a socket"
    } else {
        "is a device"
    };
    Error::unsafe_to_use(path, reason, "give the name of a regular file")
}

fn not_ours(path: &Path, facts: &Metadata) -> Error {
    let reason = format!("belongs to another user (uid {}, this is uid {})", facts.uid(), effective_user());
    Error::unsafe_to_use(path, reason, "give a file of your own, in a folder of your own")
}

/// Whether nobody else can put another file in the place of `path`: see the crate's page. A folder that is not there is told
/// by what is done next.
pub fn check_folder(path: &Path) -> Result<()> {
    let folder = match folder_of(path).canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        other => other.map_err(Error::io("look at the folder", folder_of(path)))?,
    };
    // In a container without a mapping for root, the system's folders belong to an unnamed user.
    let system = Path::new("/").metadata().map_or(0, |root| root.uid());
    for folder in folder.ancestors() {
        let facts = folder.metadata().map_err(Error::io("look at the folder", folder))?;
        let owner = facts.uid();
        if owner != effective_user() && owner != 0 && owner != system {
            let reason =
                format!("is a folder of another user (uid {owner}), who could replace what is in it");
            return Err(Error::unsafe_to_use(folder, reason, "give a file in a folder of your own"));
        }
        // A user's own group has the user's number by convention, and nobody else in it.
        let own_group = facts.gid() == owner && owner == effective_user();
        let open_to_others = if own_group { 0o002 } else { 0o022 };
        if facts.mode() & open_to_others != 0 && facts.mode() & libc::S_ISVTX == 0 {
            let reason =
                format!("is a folder that other users may write to (mode {:03o})", facts.mode() & 0o777);
            let advice =
                format!("give a file in a folder of your own, or run: chmod go-w {}", folder.display());
            return Err(Error::unsafe_to_use(folder, reason, advice));
        }
    }
    Ok(())
}

/// The content of a file with a secret, at most `most` bytes of it. Links are followed, and a pipe is read, as a shell's
/// `<(command)` is one; a regular file must be ours or the system's, and closed to others.
pub fn read_secret(path: &Path, most: u64) -> Result<Zeroizing<Vec<u8>>> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    let facts = file.metadata().map_err(Error::io("look at", path))?;
    if facts.is_dir() {
        return Err(not_regular(path, &facts));
    }
    if facts.is_file() {
        if facts.uid() != effective_user() && facts.uid() != 0 {
            return Err(not_ours(path, &facts));
        }
        check_mode(path, &facts, Sharing::Secret)?;
        check_folder(&path.canonicalize().map_err(Error::io("look at", path))?)?;
    }
    read_all(file, most)
        .map_err(Error::io("read", path))?
        .ok_or(Error::TooLong { path: PathBuf::from(path), most })
}

/// Without a copy left behind by a buffer that grew: each one is erased. `None` if there is more than `most`.
fn read_all(mut file: File, most: u64) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let mut content = Zeroizing::new(Vec::with_capacity(4096));
    loop {
        if content.len() == content.capacity() {
            let mut larger = Zeroizing::new(Vec::with_capacity(2 * content.capacity()));
            larger.extend_from_slice(&content);
            content = larger;
        }
        let start = content.len();
        let end = content.capacity();
        content.resize(end, 0);
        let got = match file.read(&mut content[start..]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                content.truncate(start);
                continue;
            }
            other => other?,
        };
        content.truncate(start + got);
        if content.len() as u64 > most {
            return Ok(None);
        }
        if got == 0 {
            return Ok(Some(content));
        }
    }
}

/// Sets disk space aside for `bytes` more at the end of a file, whose length stays. `false` where the file system
/// cannot; an error when there is not that much room.
pub fn reserve(file: &File, path: &Path, bytes: u64) -> Result<bool> {
    let length = file.metadata().map_err(Error::io("look at", path))?.len();
    #[cfg(target_os = "linux")]
    {
        // SAFETY: a system call on a file that is open; it touches no memory of ours.
        let done = unsafe {
            libc::fallocate(
                file.as_raw_fd(),
                libc::FALLOC_FL_KEEP_SIZE,
                libc::off_t::try_from(length).unwrap_or(libc::off_t::MAX),
                libc::off_t::try_from(bytes).unwrap_or(libc::off_t::MAX),
            )
        };
        if done == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => Ok(false),
            _ => Err(Error::io("reserve room for", path)(error)),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (length, bytes, file.as_raw_fd());
        Ok(false)
    }
}

pub(crate) fn effective_user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use std::io::{Seek, Write};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn files_are_private_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let file = create(&path).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        assert!(matches!(create(&path), Err(Error::Exists { .. })));
        open(&path, Sharing::Secret).unwrap();
        assert!(!append(&path).unwrap().1);

        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        for refused in [open(&link, Sharing::Secret).map(drop), append(&link).map(drop)] {
            assert!(refused.unwrap_err().to_string().contains("symbolic link"));
        }
        let dangling = folder.path().join("dangling");
        symlink(folder.path().join("elsewhere"), &dangling).unwrap();
        assert!(append(&dangling).is_err());
        assert!(!folder.path().join("elsewhere").exists());

        fs::hard_link(&path, folder.path().join("second")).unwrap();
        assert!(open(&path, Sharing::Secret).unwrap_err().to_string().contains("2 names"));
    }

    #[test]
    fn what_others_may_touch_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        create(&path).unwrap();
        mode(&path, 0o640);
        assert!(open(&path, Sharing::Secret).unwrap_err().to_string().contains("chmod 600"));
        open(&path, Sharing::Readable).unwrap();
        mode(&path, 0o620);
        assert!(open(&path, Sharing::Readable).unwrap_err().to_string().contains("chmod go-w"));
        mode(&path, 0o600);
        mode(folder.path(), 0o777);
        assert!(open(&path, Sharing::Secret).unwrap_err().to_string().contains("other users may write"));
        assert!(read_secret(&path, 10).is_err());
        mode(folder.path(), 0o1777);
        open(&path, Sharing::Secret).unwrap();
        read_secret(&path, 10).unwrap();
    }

    /// Only root can make a file that belongs to somebody else.
    #[test]
    fn what_belongs_to_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let path = inner.join("key");
        create(&path).unwrap();
        if chown(&path, Some(12_345), None).is_err() {
            eprintln!("SKIPPED: files of another user can be made by root only");
            return;
        }
        for refused in
            [open(&path, Sharing::Secret).map(drop), append(&path).map(drop), read_secret(&path, 9).map(drop)]
        {
            assert!(refused.unwrap_err().to_string().contains("another user (uid 12345"));
        }
        chown(&path, Some(0), None).unwrap();
        chown(&inner, Some(12_345), None).unwrap();
        for refused in [open(&path, Sharing::Secret).map(drop), create(&inner.join("new")).map(drop)] {
            assert!(refused.unwrap_err().to_string().contains("folder of another user (uid 12345)"));
        }
    }

    #[test]
    fn secrets_are_read_from_files_and_pipes_up_to_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let content: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        fs::write(&path, &content).unwrap();
        mode(&path, 0o600);
        assert_eq!(*read_secret(&path, 100_000).unwrap(), content);
        assert!(matches!(read_secret(&path, 99_999), Err(Error::TooLong { most: 99_999, .. })));
        assert!(matches!(read_secret(Path::new("/dev/zero"), 99_999), Err(Error::TooLong { .. })));
        let (reader, mut writer) = io::pipe().unwrap();
        io::Write::write_all(&mut writer, b"secret").unwrap();
        drop(writer);
        let name = PathBuf::from(format!("/dev/fd/{}", reader.as_raw_fd()));
        assert_eq!(**read_secret(&name, 100).unwrap(), *b"secret");
    }

    #[test]
    fn room_is_set_aside_without_a_change_of_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let file = create(&path).unwrap();
        if reserve(&file, &path, 1 << 16).unwrap() {
            assert_eq!(file.metadata().unwrap().len(), 0);
            assert!(file.metadata().unwrap().blocks() * 512 >= 1 << 16);
            assert!(reserve(&file, &path, 1 << 60).is_err());
        }
    }

    #[test]
    fn a_scratch_file_leaves_no_name_and_is_nobody_elses() {
        for make in [scratch, scratch_by_name] {
            let folder = tempfile::tempdir().unwrap();
            let beside = folder.path().join("table");
            std::fs::write(&beside, "the table").unwrap();
            // Left by a process that was killed in the moment between making and removing it.
            std::fs::write(with_suffix(&beside, ".scratch"), "").unwrap();
            let mut files =
                [make(&beside).unwrap(), make(&beside).unwrap(), scratch_by_name(&beside).unwrap()];
            for (number, file) in files.iter_mut().enumerate() {
                assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
                write!(file, "part {number}").unwrap();
            }
            for (number, file) in files.iter_mut().enumerate() {
                file.rewind().unwrap();
                assert_eq!(io::read_to_string(file).unwrap(), format!("part {number}"));
            }
            let names: Vec<_> =
                std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert_eq!(names, [beside.as_path()]);
            assert_eq!(std::fs::read(&beside).unwrap(), b"the table");
        }
        assert!(scratch(Path::new("/nowhere/table")).is_err());
    }

    /// Several at once, each with its moment of a name: all get one.
    #[test]
    fn scratch_files_by_name_do_not_get_in_each_others_way() {
        let folder = tempfile::tempdir().unwrap();
        let beside = folder.path().join("table");
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let beside = &beside;
                scope.spawn(move || {
                    for round in 0..200u8 {
                        let mut file = scratch_by_name(beside).unwrap();
                        file.write_all(&[thread, round]).unwrap();
                        file.rewind().unwrap();
                        let mut found = Vec::new();
                        file.read_to_end(&mut found).unwrap();
                        assert_eq!(found, [thread, round]);
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
