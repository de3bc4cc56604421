//! Where patterns come from: arguments, and a file with one pattern per line.
//!
//! Remembers where each one stood, so that an error names the line. The pattern syntax is the library's.

use warpsmith::chain::Target;
use warpsmith::pattern::{Options, Patterns, compile};

use crate::ending::Failure;
use crate::input::{self, Limits, name};

/// Far more than anybody writes: a regular expression may be a long one, and a list as long as memory and devices carry.
const LIMITS: Limits = Limits { line: 4096, total: 1 << 30 };

/// Patterns of a file, at most.
const MOST: usize = 10_000_000;

/// Patterns as they were written: first the arguments, then the file's.
pub(crate) struct Written<'a> {
    arguments: &'a [String],
    file: Option<&'a str>,
    /// The file's patterns, one per line.
    text: String,
    /// The number that each line had in the file.
    numbers: Vec<u32>,
}

impl<'a> Written<'a> {
    pub fn read(arguments: &'a [String], file: Option<&'a str>) -> Result<Written<'a>, Failure> {
        let mut written = Written { arguments, file, text: String::new(), numbers: Vec::new() };
        let Some(file) = file else { return Ok(written) };
        let read = input::lines(file, &LIMITS, &mut |number, line| written.take(number, line, MOST));
        read.map_err(|(line, why)| {
            let form = "--patterns takes a file with one pattern a line, or - for standard input";
            Failure::Usage(match line {
                0 => format!("the patterns in {} cannot be read: {why}; {form}", name(file)),
                _ => format!("{}, line {line}: {why}; {form}", name(file)),
            })
        })?;
        Ok(written)
    }

    /// Keeps a line of the file, unless it is blank or a comment.
    fn take(&mut self, number: usize, line: &str, most: usize) -> Result<(), String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if self.numbers.len() == most {
            return Err(format!(
                "there are more than {most} patterns, the most that are searched for at once"
            ));
        }
        self.numbers.push(u32::try_from(number).unwrap_or(u32::MAX));
        self.text.push_str(line);
        self.text.push('\n');
        Ok(())
    }

    /// Every pattern.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().map(String::as_str).chain(self.text.lines())
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
                    let line = self.numbers.get(at).copied().unwrap_or(0);
                    format!("{}, line {line}: {error}", name(self.file.unwrap_or_default()))
                }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_comments_are_skipped_and_lines_keep_their_numbers() {
        let mut written = Written { arguments: &[], file: None, text: String::new(), numbers: Vec::new() };
        for (at, line) in ["cafe\r", "\r", "# a comment", "  ..0ace  ", "\t", "q?q"].into_iter().enumerate() {
            written.take(at + 1, line, 3).unwrap();
        }
        assert_eq!(written.all().collect::<Vec<_>>(), ["cafe", "..0ace", "q?q"]);
        assert_eq!(written.numbers, [1, 4, 6]);
        written.take(7, "# no pattern", 3).unwrap();
        assert!(written.take(8, "one", 3).unwrap_err().contains("more than 3 patterns"));
    }
}
