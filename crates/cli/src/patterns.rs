//! Where patterns come from: arguments, and a file with one a line.
//!
//! Remembers where each one stood, so that an error names the line. The pattern syntax is the library's.

use std::fs::File;
use std::io::Read;

use warpsmith::target::Target;
use warpsmith::{Options, Patterns, compile};

use crate::ending::Failure;

/// Patterns as they were written: first the arguments, then the file's.
pub(crate) struct Written<'a> {
    arguments: &'a [String],
    file: Option<&'a str>,
    text: String,
}

impl<'a> Written<'a> {
    pub fn read(arguments: &'a [String], file: Option<&'a str>) -> Result<Written<'a>, Failure> {
        let text = file.map(read).transpose()?.unwrap_or_default();
        Ok(Written { arguments, file, text })
    }

    /// Every pattern.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().map(String::as_str).chain(lines(&self.text).map(|(_, pattern)| pattern))
    }

    /// A mistake if there is no pattern at all; the example is one of the command's.
    pub fn require(&self, command: &str, example: &str) -> Result<(), Failure> {
        match (self.all().next(), self.file) {
            (Some(_), _) => Ok(()),
            (None, Some(file)) => Err(Failure::Usage(format!(
                "{} holds no pattern: every line is blank or begins with '#'; write one pattern a line",
                name(file)
            ))),
            (None, None) => Err(Failure::Usage(format!(
                "no pattern was given; say what the text shall look like, for example: warpsmith {command} {example}\n\
                 more about patterns: warpsmith {command} --help"
            ))),
        }
    }

    /// The patterns for this target. Any mistake in any of them ends it.
    pub fn compile(&self, target: &dyn Target, options: &Options) -> Result<Patterns, Failure> {
        self.require(target.name(), "cafe")?;
        compile(self.all(), target, options).map_err(|error| {
            Failure::Usage(match error.index.checked_sub(self.arguments.len()) {
                None => error.to_string(),
                Some(at) => {
                    let line = lines(&self.text).nth(at).map_or(0, |(line, _)| line);
                    format!("{}, line {line}: {error}", name(self.file.unwrap_or_default()))
                }
            })
        })
    }
}

/// The patterns of a text with the numbers of their lines.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // Some editors put a byte order mark at the start of a file.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// What a person calls the file.
fn name(file: &str) -> &str {
    if file == "-" { "standard input" } else { file }
}

fn read(file: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let result = match file {
        "-" => std::io::stdin().lock().read_to_end(&mut bytes),
        _ => File::open(file).and_then(|mut open| open.read_to_end(&mut bytes)),
    };
    result.map_err(|error| {
        Failure::Usage(format!(
            "the patterns in {} cannot be read: {error}; --patterns takes a file with one pattern a line, or - for \
             standard input",
            name(file)
        ))
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        Failure::Usage(format!(
            "{}, line {line}: this is not text (UTF-8); write one pattern a line",
            name(file)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_comments_are_skipped_and_lines_keep_their_numbers() {
        let text = "\u{feff}cafe\r\n\r\n# a comment\n  ..0ace  \n\t\nq?q";
        assert_eq!(lines(text).collect::<Vec<_>>(), [(1, "cafe"), (4, "..0ace"), (6, "q?q")]);
        assert_eq!(lines("").count(), 0);
    }
}
