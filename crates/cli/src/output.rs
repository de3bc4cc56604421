//! The file of `--output`: the only place where a secret goes when it is given.
//!
//! SEC: created with mode 0600, never through a link, never into a file that others can read, and only ever
//! appended to. What was appended is on the disk before anybody is told about it. When that fails the command
//! ends; there is no second place to write a secret to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::ending::Failure;

pub(crate) struct Output {
    path: PathBuf,
    file: File,
    is_empty: bool,
    /// Whether the last line lacks its end, so that another one would be glued to it.
    is_unfinished: bool,
}

impl Output {
    /// Opens the file for appending and creates it if there is none.
    pub fn open(path: &Path) -> Result<Output, Failure> {
        let shown = path.display();
        if path == Path::new("-") {
            let text = "--output needs a file name, not '-'; leave --output out to have results on stdout";
            return Err(Failure::Usage(text.to_owned()));
        }
        let failed = |error: io::Error| {
            Failure::Other(format!(
                "--output {shown} cannot be opened for appending: {error}; give a file in a folder you can write to"
            ))
        };
        let refused = |why: &str| {
            Err(Failure::Other(format!(
                "--output {shown} {why}, and secrets are written to regular files only; give another name"
            )))
        };
        let mut options = OpenOptions::new();
        // Without O_NONBLOCK, opening a pipe would wait for its reader before it could be refused.
        options.read(true).append(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = match options.clone().create_new(true).open(path) {
            Ok(file) => {
                sync_folder(path);
                file
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // A better word than the system's; the open file is checked again below.
                match fs::symlink_metadata(path) {
                    Ok(there) if there.is_symlink() => return refused("is a symbolic link"),
                    Ok(there) if there.is_dir() => return refused("is a folder"),
                    Ok(there) if !there.is_file() => return refused("is a device or a pipe"),
                    _ => options.open(path).map_err(failed)?,
                }
            }
            Err(error) => return Err(failed(error)),
        };
        let facts = file.metadata().map_err(failed)?;
        if !facts.is_file() {
            return refused("is not a regular file");
        }
        if facts.mode() & 0o077 != 0 {
            return Err(Failure::Other(format!(
                "--output {shown} is open to other users (mode {:03o}), so no secret is written to it; run: chmod \
                 600 {shown}",
                facts.mode() & 0o777
            )));
        }
        let mut output =
            Output { path: path.to_owned(), file, is_empty: facts.len() == 0, is_unfinished: false };
        if !output.is_empty {
            output.is_unfinished = output.last_byte().map_err(failed)? != b'\n';
        }
        Ok(output)
    }

    fn last_byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.file.seek(SeekFrom::End(-1))?;
        self.file.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    /// The file's name for messages and results.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Appends whole lines in one write, a blank line before them if `apart`, and waits until the disk has them.
    pub fn append(&mut self, lines: &[u8], apart: bool) -> Result<(), Failure> {
        let mut block = Zeroizing::new(Vec::with_capacity(lines.len() + 2));
        if self.is_unfinished {
            block.push(b'\n');
        }
        if apart && !self.is_empty {
            block.push(b'\n');
        }
        block.extend_from_slice(lines);
        self.file.write_all(&block).and_then(|()| self.file.sync_data()).map_err(|error| {
            Failure::Other(format!(
                "--output {} could not be written: {error}; the key just found is lost, is shown nowhere else, and \
                 its entry in the file may be incomplete. Make room on the disk and start again",
                self.path.display()
            ))
        })?;
        (self.is_empty, self.is_unfinished) = (false, false);
        Ok(())
    }
}

/// Makes a new file's name durable as well. Some file systems cannot do this; then there is nothing to add to
/// what they promise for the file itself.
fn sync_folder(path: &Path) {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}
