//! The file of `--output`: the only place where a secret goes when it is given.
//!
//! SEC: the rules of `warpsmith_files`: created with mode 0600, ours, never through a link, never into a file that others
//! can read. It is only ever appended to, and what was appended is on the disk, in a file of the name told, before anybody
//! is told about it. Room for results is set aside before any is searched for. If a result cannot be written nevertheless,
//! or the file is no longer where it was, a new one is made beside it; when that fails as well, the command ends.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use warpsmith_console::exit::Failure;
use warpsmith_console::redact::secret_kind;
use warpsmith_console::stderr::warn;
use warpsmith_files::{append, create, is_at, reserve, with_suffix};
use zeroize::Zeroizing;

/// What is set aside on the disk for results to come: the longest takes a fifth of it.
const ROOM: u64 = 1 << 16;

/// Results that come together are no more than twice as many as before, so that this many times their length is enough.
const AHEAD: u64 = 4;

/// Files beside the first one, at most.
const BESIDE: u32 = 999;

pub(crate) struct Output {
    /// The name that was asked for.
    asked: PathBuf,
    /// The name that is written to: the same, as long as the file stays there.
    path: PathBuf,
    file: File,
    is_empty: bool,
    /// What is set aside for the next results.
    room: u64,
    /// Whether the last line lacks its end, so that another one would be glued to it.
    is_unfinished: bool,
}

impl Output {
    /// Opens the file for appending and creates it if there is none.
    pub fn open(path: &Path) -> Result<Output, Failure> {
        if path == Path::new("-") {
            let text = "--output needs a file name, not '-'; leave --output out to have results on stdout";
            return Err(Failure::Usage(text.to_owned()));
        }
        // SEC: results name the file.
        if let Some(what) = secret_kind(&path.to_string_lossy()) {
            return Err(Failure::Usage(format!(
                "--output: the name given has {what}; it is not used, since every result would repeat it. Give \
                 another name"
            )));
        }
        let (file, made) = append(path).map_err(|error| {
            Failure::of(&format!("--output {} cannot be opened for appending", path.display()), &error)
        })?;
        let (asked, path) = (path.to_owned(), path.to_owned());
        let mut output = Output { asked, path, file, is_empty: true, room: ROOM, is_unfinished: false };
        let prepared = output.look().map_err(|error| error.to_string()).and_then(|()| output.make_room());
        prepared.map_err(|why| {
            if made {
                let _ = fs::remove_file(&output.path);
            }
            Failure::Other(format!(
                "--output {}: {why}; nothing was searched. Make room, or give a file elsewhere",
                output.path.display()
            ))
        })?;
        Ok(output)
    }

    /// How the file ends.
    fn look(&mut self) -> io::Result<()> {
        self.is_empty = self.file.metadata()?.len() == 0;
        if !self.is_empty {
            let mut byte = [0];
            self.file.seek(SeekFrom::End(-1))?;
            self.file.read_exact(&mut byte)?;
            self.is_unfinished = byte[0] != b'\n';
        }
        Ok(())
    }

    /// The file's name for messages and results.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Makes sure that the next result can be written; says why not.
    pub fn make_room(&self) -> Result<(), String> {
        let length = self.file.metadata().map_err(|error| error.to_string())?.len();
        let most = longest_file();
        if length.saturating_add(self.room) > most {
            return Err(format!(
                "files may not grow beyond {most} bytes here (ulimit -f), too few for more results"
            ));
        }
        // Some file systems cannot set anything aside; there a full disk is met when it is written to.
        reserve(&self.file, &self.path, self.room).map(drop).map_err(|error| error.to_string())
    }

    /// Appends whole lines in one write, a blank line before them if `apart`, and waits until the disk has them. The file
    /// may be another one afterwards: [`Output::name`] says which.
    pub fn append(&mut self, lines: &[u8], apart: bool) -> Result<(), Failure> {
        loop {
            let why = match self.try_append(lines, apart) {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            let (beside, file) = self.beside().map_err(|error| {
                Failure::Other(format!(
                    "--output {} {why}, and {error}; the key just found is lost and is shown nowhere else. Make room, \
                     and start again with a file that stays where it is",
                    self.path.display()
                ))
            })?;
            let (was, now) = (self.path.display(), beside.display());
            warn(&format!("--output {was} {why}; the key just found and those to come go to {now}"));
            (self.path, self.file, self.is_empty, self.is_unfinished) = (beside, file, true, false);
        }
    }

    /// Appends if the file is where it was, before and after; says why not.
    fn try_append(&mut self, lines: &[u8], apart: bool) -> Result<(), String> {
        let gone = || "is no longer the file it was: it has been moved, replaced or deleted".to_owned();
        if !is_at(&self.file, &self.path) {
            return Err(gone());
        }
        let mut block = Zeroizing::new(Vec::with_capacity(lines.len() + 2));
        if self.is_unfinished {
            block.push(b'\n');
        }
        if apart && !self.is_empty {
            block.push(b'\n');
        }
        block.extend_from_slice(lines);
        self.room = ROOM.max(AHEAD * block.len() as u64);
        let before = self.file.metadata().map(|facts| facts.len());
        if let Err(error) = self.file.write_all(&block).and_then(|()| self.file.sync_data()) {
            // A part of an entry is worth nothing and would be glued to the next.
            if let (Ok(before), Ok(now)) = (before, self.file.metadata())
                && (before..=before + block.len() as u64).contains(&now.len())
            {
                let _ = self.file.set_len(before);
            }
            return Err(format!("could not be written ({error})"));
        }
        (self.is_empty, self.is_unfinished) = (false, false);
        if is_at(&self.file, &self.path) { Ok(()) } else { Err(gone()) }
    }

    /// A new file beside the one asked for.
    fn beside(&self) -> Result<(PathBuf, File), String> {
        for number in 1..=BESIDE {
            let path = with_suffix(&self.asked, format!(".{number}"));
            match create(&path) {
                Ok(file) => return Ok((path, file)),
                Err(warpsmith_files::Error::Exists { .. }) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(format!("{BESIDE} files with its name and a number are there already"))
    }
}

/// How long a file of this process may become.
fn longest_file() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the limit is written to a place of ours, which holds a valid one if that fails.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    limit.rlim_cur
}
