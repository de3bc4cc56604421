//! Text with one key and value a line, separated by blanks. Empty lines and lines that begin with `#` are skipped.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use warpsmith::chain::Shown;
use warpsmith::look_up::parse_hex;
use warpsmith::pir::keyword::{Name, Take, name};
use warpsmith::pir::{Error, Result};

/// The longest line that is read.
const LONGEST: usize = 1 << 20;

/// A line that says something.
pub(super) struct Line<'a> {
    pub number: u64,
    pub words: Vec<&'a str>,
}

/// Calls `take` for every line that says something; what it finds wrong is told with file and line.
pub(super) fn each_line(
    path: &Path,
    from: &mut dyn BufRead,
    take: &mut dyn FnMut(Line<'_>) -> std::result::Result<(), Wrong>,
) -> Result<()> {
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = std::io::Read::take(&mut *from, LONGEST as u64).read_until(b'\n', &mut line);
        if read.map_err(|source| Error::Io { path: path.to_owned(), source })? == 0 {
            return Ok(());
        }
        number += 1;
        let at = || format!("{}:{number}", path.display());
        let wrong = |reason: &str| Error::Format { what: at(), reason: reason.to_owned() };
        if line.len() == LONGEST {
            return Err(wrong("the line is longer than a mebibyte; is this a text of keys and values?"));
        }
        let text = std::str::from_utf8(&line)
            .map_err(|_| wrong("this is no text; a flat file needs --entry-size"))?;
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match take(Line { number, words: text.split_whitespace().collect() }) {
            Ok(()) => {}
            Err(Wrong::Here(reason)) => return Err(wrong(&reason)),
            Err(Wrong::Elsewhere(error)) => return Err(error),
        }
    }
}

/// Why a line is not taken.
pub(super) enum Wrong {
    /// It is wrong itself.
    Here(String),
    /// Something else failed.
    Elsewhere(Error),
}

/// A file of keys and values in hex.
pub(super) struct Pairs {
    path: PathBuf,
    pub keys: u64,
    /// The longest value.
    pub longest: usize,
}

impl Pairs {
    /// Reads the whole file once: nothing is built from one with a wrong line.
    pub(super) fn survey(path: &Path, watch: &mut dyn FnMut() -> Result<()>) -> Result<Pairs> {
        let mut pairs = Pairs { path: path.to_owned(), keys: 0, longest: 0 };
        let (mut keys, mut longest) = (0, 0);
        pairs.each(&mut |_, value| {
            keys += 1;
            longest = longest.max(value.len());
            if keys % (1 << 14) == 0 { watch() } else { Ok(()) }
        })?;
        (pairs.keys, pairs.longest) = (keys, longest);
        Ok(pairs)
    }

    /// Hands over all keys and values.
    pub(super) fn each(&self, take: &mut Take<'_>) -> Result<()> {
        self.each_pair(|_, key, value| take(key, value))
    }

    fn each_pair(&self, mut take: impl FnMut(u64, &[u8], &[u8]) -> Result<()>) -> Result<()> {
        let opened = File::open(&self.path).map_err(|source| Error::Io { path: self.path.clone(), source });
        each_line(&self.path, &mut BufReader::with_capacity(1 << 20, opened?), &mut |line| {
            let [key, value] = line.words[..] else {
                let words = line.words.len();
                return Err(Wrong::Here(format!("{words} words; a line is a key and a value, both in hex")));
            };
            let bytes = |text: &str| parse_hex(text).map_err(Wrong::Here);
            take(line.number, &bytes(key)?, &bytes(value)?).map_err(Wrong::Elsewhere)
        })
    }

    /// An error with the lines of a key that occurs twice, where that is what went wrong.
    pub(super) fn with_lines(&self, error: Error) -> Error {
        let Error::SameKey(twice) = error else { return error };
        match self.lines_of(&twice).as_deref() {
            Ok([first, second, ..]) => Error::Format {
                what: format!("{}:{second}", self.path.display()),
                reason: format!("this key is that of line {first}; give each key once"),
            },
            _ => error,
        }
    }

    fn lines_of(&self, wanted: &Name) -> Result<Vec<u64>> {
        let mut lines = Vec::new();
        self.each_pair(|line, key, _| {
            if name(key) == *wanted {
                lines.push(line);
            }
            Ok(())
        })?;
        Ok(lines)
    }
}

/// A short word of a line for a message.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", Shown(text))
}
