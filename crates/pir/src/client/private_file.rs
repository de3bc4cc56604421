//! Files that hold secrets: mode 0600 from the moment they exist, durable when it matters.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::error::{Error, Result};

/// A new, empty file in place of one that may be left from an earlier, interrupted write.
pub(super) fn create(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// An existing file, for reading and writing. One that others may read is refused.
pub(super) fn open(path: &Path) -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(Error::io(path))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata().map_err(Error::io(path))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let reason = format!("others may read it (mode {mode:o}), and it holds secrets; set it to 600");
            return Err(Error::format(path.display().to_string(), reason));
        }
    }
    Ok(file)
}

/// Whether this is the file that stands at the path now.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let ids = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        file.metadata().map(ids).ok() == std::fs::metadata(path).map(ids).ok()
    }
    #[cfg(not(unix))]
    {
        // There a file that is open cannot be replaced.
        let _ = (file, path);
        true
    }
}

/// Makes a rename in the folder of `path` durable.
pub(super) fn sync_folder(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io(folder))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
