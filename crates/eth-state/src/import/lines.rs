//! Text with one key and value a line. Empty lines are skipped, and where keys are no text of their
//! own, lines that begin with `#`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use warpsmith_rms24::keyword::{Name, chunk_key, chunks_of, name};
use warpsmith_rms24::table::Take;
use warpsmith_rms24::{Error, Result};
use warpsmith_text::Shown;

use crate::code::code_hash;
use crate::look_up::{KeyError, parse_hex};

/// What is wrong with a file of other bytes than text.
const NOT_TEXT: &str = "this is no text";

/// Returns whether a file was refused because it is no text.
pub fn is_not_text(error: &Error) -> bool {
    matches!(error, Error::Format { reason, .. } if reason == NOT_TEXT)
}

/// The longest line that is read.
const LONGEST: usize = 64 << 20;

/// A line that says something.
pub(super) struct Line<'a> {
    pub number: u64,
    /// All of it, without its end.
    pub text: &'a str,
}

impl<'a> Line<'a> {
    /// What blanks separate.
    pub fn words(&self) -> Vec<&'a str> {
        self.text.split_whitespace().collect()
    }
}

/// Calls `take` for every line that says something and is no remark; what it finds wrong is told
/// with file and line.
pub(super) fn each_line(
    path: &Path,
    from: &mut dyn BufRead,
    take: &mut dyn FnMut(Line<'_>) -> std::result::Result<(), Wrong>,
) -> Result<()> {
    each_whole_line(path, from, &mut |line| match line.text.trim_start().starts_with('#') {
        true => Ok(()),
        false => take(line),
    })
}

/// Calls `take` for every line that is not empty.
pub(super) fn each_whole_line(
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
            return Err(wrong("the line is longer than 64 MiB; is this a text of keys and values?"));
        }
        let text = std::str::from_utf8(&line).map_err(|_| wrong(NOT_TEXT))?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.trim().is_empty() {
            continue;
        }
        match take(Line { number, text }) {
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

impl From<KeyError> for Wrong {
    fn from(error: KeyError) -> Wrong {
        Wrong::Here(error.to_string())
    }
}

/// What a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A key and a value, both in hex.
    Hex,
    /// The code of a contract in hex, whose key is its hash.
    Code,
    /// A key, a tab, and the value, as they are.
    Text,
}

impl Form {
    fn read(self, line: &Line<'_>) -> std::result::Result<(Vec<u8>, Vec<u8>), KeyError> {
        if self == Form::Text {
            let (key, value) = split_text(line.text)?;
            let value = value.ok_or("there is no tab; a line is a key, a tab and the value")?;
            return Ok((key.as_bytes().to_vec(), value.as_bytes().to_vec()));
        }
        match (self, &line.words()[..]) {
            (Form::Code, [code]) => {
                let code = parse_hex(code)?;
                Ok((code_hash(&code).to_vec(), code))
            }
            (Form::Code, words) => Err(format!("{} words; a line is a code in hex", words.len()).into()),
            (_, [key, value]) => Ok((parse_hex(key)?, parse_hex(value)?)),
            (_, words) => {
                Err(format!("{} words; a line is a key and a value, both in hex", words.len()).into())
            }
        }
    }

    /// What must not be there twice.
    fn what(self) -> &'static str {
        match self {
            Form::Hex | Form::Text => "key",
            Form::Code => "code",
        }
    }
}

/// A key as it is and what follows the first tab, if there is one.
pub(super) fn split_text(line: &str) -> std::result::Result<(&str, Option<&str>), String> {
    let (key, value) = line.split_once('\t').map_or((line, None), |(key, value)| (key, Some(value)));
    match key.is_empty() {
        false => Ok((key, value)),
        true => Err("there is no key before the tab".to_owned()),
    }
}

/// A file of keys and values.
pub struct Pairs {
    path: PathBuf,
    form: Form,
    /// How many there are.
    pub keys: u64,
    /// Bytes of the longest value.
    pub longest: usize,
}

impl Pairs {
    /// Reads the whole file once: nothing is built from one with a wrong line. `watch` is called
    /// now and then, and may end it.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, a line is wrong, or `watch` fails.
    pub fn survey(path: &Path, form: Form, watch: &mut dyn FnMut() -> Result<()>) -> Result<Pairs> {
        let mut pairs = Pairs { path: path.to_owned(), form, keys: 0, longest: 0 };
        let (mut keys, mut longest) = (0, 0);
        pairs.each(&mut |_, value| {
            keys += 1;
            longest = longest.max(value.len());
            if keys % (1 << 14) == 0 { watch() } else { Ok(()) }
        })?;
        (pairs.keys, pairs.longest) = (keys, longest);
        Ok(pairs)
    }

    /// How many chunks all values have, in entries of this size: the file is read again.
    ///
    /// # Errors
    ///
    /// As for [`Pairs::survey`].
    pub fn chunks(&self, entry_size: u32, watch: &mut dyn FnMut() -> Result<()>) -> Result<u64> {
        let (mut keys, mut chunks) = (0u64, 0);
        self.each(&mut |_, value| {
            keys += 1;
            chunks += chunks_of(value.len(), entry_size as usize) as u64;
            if keys % (1 << 14) == 0 { watch() } else { Ok(()) }
        })?;
        Ok(chunks)
    }

    /// Hands over all keys and values.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, a line is wrong, or `take` fails.
    pub fn each(&self, take: &mut Take<'_>) -> Result<()> {
        self.each_pair(|_, key, value| take(key, value))
    }

    fn each_pair(&self, mut take: impl FnMut(u64, &[u8], &[u8]) -> Result<()>) -> Result<()> {
        let opened = File::open(&self.path).map_err(|source| Error::Io { path: self.path.clone(), source });
        // A key may begin with whatever it likes.
        let each = if self.form == Form::Text { each_whole_line } else { each_line };
        each(&self.path, &mut BufReader::with_capacity(1 << 20, opened?), &mut |line| {
            let (key, value) = self.form.read(&line)?;
            take(line.number, &key, &value).map_err(Wrong::Elsewhere)
        })
    }

    /// An error with the lines of a key that occurs twice, where that is what went wrong. The
    /// values may stand in chunks, in entries of this size.
    pub fn with_lines(&self, error: Error, chunked: Option<u32>) -> Error {
        let Error::SameKey(twice) = error else { return error };
        let what = self.form.what();
        match self.lines_of(&twice, chunked).as_deref() {
            Ok([first, second, ..]) => Error::Format {
                what: format!("{}:{second}", self.path.display()),
                reason: format!("this {what} is that of line {first}; give each {what} once"),
            },
            _ => error,
        }
    }

    /// The lines whose key has this name, or a chunk of whose value has it.
    fn lines_of(&self, wanted: &Name, chunked: Option<u32>) -> Result<Vec<u64>> {
        let mut lines = Vec::new();
        self.each_pair(|line, key, value| {
            let is_wanted = match chunked {
                None => name(key) == *wanted,
                Some(entry_size) => {
                    let chunks = chunks_of(value.len(), entry_size as usize);
                    (0..=u16::MAX).take(chunks).any(|number| name(&chunk_key(key, number)) == *wanted)
                }
            };
            if is_wanted {
                lines.push(line);
            }
            Ok(())
        })?;
        Ok(lines)
    }
}

/// A short word of a line for a message.
pub fn quoted(text: &str) -> String {
    format!("'{}'", Shown(text))
}
