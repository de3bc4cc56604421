//! Where patterns come from: arguments, and a file with one pattern per line.
//!
//! Remembers where each one stood, so that an error names the line. The pattern syntax is the library's.

use warpsmith::chain::Target;
use warpsmith::chain::coin::{AddressType, Coin, CoinAddress, Inference, Network, Refusal};
use warpsmith::pattern::{Error, Options, Patterns, Reason, compile_possible};

use crate::ending::Failure;
use crate::hooks;
use crate::human;
use crate::input::{self, Limits, name};
use crate::telling::{may_be_secret, tell};

/// Far more than anybody writes: a regular expression may be a long one, and a list as long as memory and devices carry.
const LIMITS: Limits = Limits { line: 4096, total: 1 << 30 };

/// Patterns of a file, at most.
const MOST: usize = 10_000_000;

/// Lines that are left out and shown, at most.
const MOST_SHOWN: usize = 20;

/// Patterns as they were written: first the arguments, then the file's.
pub(crate) struct Written<'a> {
    arguments: &'a [String],
    file: Option<&'a str>,
    /// Whether a line of the file that cannot be searched for ends it.
    strict: bool,
    /// The file's patterns, one per line.
    text: String,
    /// The number that each line had in the file.
    numbers: Vec<u32>,
    left_out: LeftOut,
}

/// Whether a line may be a private key. SEC: who has one in a list of words must know of it, so it is no word to be left out.
fn is_secret(line: &str) -> bool {
    may_be_secret(line).is_some()
}

/// Lines of a file that cannot be searched for.
#[derive(Default)]
struct LeftOut {
    count: u64,
    /// The first of them, each with its number and the reason.
    shown: Vec<String>,
}

impl LeftOut {
    fn add(&mut self, line: u32, why: &str) {
        self.count += 1;
        if self.shown.len() < MOST_SHOWN {
            // The reason may have several lines; one is enough in a list.
            let why = why.lines().next().unwrap_or_default();
            self.shown.push(format!("line {line}: {why}"));
        }
    }
}

impl<'a> Written<'a> {
    pub fn read(
        arguments: &'a [String],
        file: Option<&'a str>,
        strict: bool,
    ) -> Result<Written<'a>, Failure> {
        let (text, numbers, left_out) = (String::new(), Vec::new(), LeftOut::default());
        let mut written = Written { arguments, file, strict, text, numbers, left_out };
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

    /// Whether nothing was said of patterns.
    pub fn is_empty(&self) -> bool {
        self.file.is_none() && self.all().next().is_none()
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

    /// The addresses of a coin that the patterns are about. Lines of the file that are about others, or none, are left out.
    pub fn infer(
        &mut self,
        coin: &'static Coin,
        wanted: Option<AddressType>,
        network: Network,
    ) -> Result<CoinAddress, Refusal> {
        let mut inference = Inference::new(coin, wanted, network)?;
        for argument in self.arguments {
            inference.take(argument)?;
        }
        let mut refused = Vec::new();
        for (at, line) in self.text.lines().enumerate() {
            match inference.take(line) {
                Ok(()) => {}
                Err(refusal) if self.strict || is_secret(line) || refusal == Refusal::Secret => {
                    return Err(refusal);
                }
                Err(refusal) => refused.push((at, refusal)),
            }
        }
        match inference.finish() {
            // Nothing is left that says it: the first that could not be is why.
            Err(Refusal::Open { pattern, .. }) if pattern.is_empty() && !refused.is_empty() => {
                Err(refused.swap_remove(0).1)
            }
            Err(refusal) => Err(refusal),
            Ok(address) => {
                let refused = refused.iter().map(|(at, refusal)| (*at, refusal.to_string()));
                self.leave_out(refused.collect());
                Ok(address)
            }
        }
    }

    /// The patterns for this target. One among the arguments that cannot be searched for ends it; such lines of a file are left
    /// out and told of, unless none is left.
    pub fn compile(&mut self, target: &dyn Target, options: &Options) -> Result<Patterns, Failure> {
        let is_bare = self.file.is_none() && self.arguments.is_empty();
        if let Some(low) = options.low_bits.filter(|_| is_bare && self.text.is_empty()) {
            // What is asked of the end of an address is a pattern too.
            self.text = hooks::pattern(&low) + "\n";
            self.numbers.push(1);
        }
        self.require(target.name(), "cafe")?;
        let mut refused = Vec::new();
        let patterns = compile_possible(self.all(), target, options, &mut |error| match error
            .index
            .checked_sub(self.arguments.len())
        {
            Some(at) if !self.strict && error.reason != Reason::Secret && !is_secret(&error.pattern) => {
                refused.push((at, error.to_string()));
                Ok(())
            }
            _ => Err(error),
        });
        let patterns = patterns.map_err(|error| Failure::Usage(self.placed(&error)))?;
        self.leave_out(refused);
        self.tell_left_out(patterns.is_empty())?;
        Ok(patterns)
    }

    /// An error with where the pattern stood.
    fn placed(&self, error: &Error) -> String {
        match error.index.checked_sub(self.arguments.len()) {
            None => error.to_string(),
            Some(at) => {
                let line = self.numbers.get(at).copied().unwrap_or(0);
                format!("{}, line {line}: {error}", name(self.file.unwrap_or_default()))
            }
        }
    }

    /// Takes lines out, by their place among those that are left, in ascending order.
    fn leave_out(&mut self, refused: Vec<(usize, String)>) {
        if refused.is_empty() {
            return;
        }
        let mut text = String::with_capacity(self.text.len());
        let mut numbers = Vec::with_capacity(self.numbers.len() - refused.len());
        let mut refused = refused.into_iter().peekable();
        for (at, (line, &number)) in self.text.lines().zip(&self.numbers).enumerate() {
            match refused.next_if(|(out, _)| *out == at) {
                Some((_, why)) => self.left_out.add(number, &why),
                None => {
                    text.push_str(line);
                    text.push('\n');
                    numbers.push(number);
                }
            }
        }
        (self.text, self.numbers) = (text, numbers);
    }

    /// Says which lines were left out; a mistake if nothing else is there.
    fn tell_left_out(&self, is_all: bool) -> Result<(), Failure> {
        let LeftOut { count, shown } = &self.left_out;
        if *count == 0 {
            return Ok(());
        }
        let (file, lines) = (name(self.file.unwrap_or_default()), shown.join("\n  "));
        let first =
            if *count > shown.len() as u64 { format!("; the first {}", shown.len()) } else { String::new() };
        if is_all {
            return Err(Failure::Usage(format!(
                "{file} has no pattern that can be searched for{first}:\n  {lines}"
            )));
        }
        let (what, were) = match count {
            1 => ("1 line".to_owned(), "was"),
            count => (format!("{} lines", human::count(*count as f64)), "were"),
        };
        tell(&format!(
            "warning: {what} of {file} cannot be searched for and {were} left out{first}:\n  {lines}"
        ));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_comments_are_skipped_and_lines_keep_their_numbers() {
        let mut written = Written::read(&[], None, false).unwrap();
        for (at, line) in ["cafe\r", "\r", "# a comment", "  ..0ace  ", "\t", "q?q"].into_iter().enumerate() {
            written.take(at + 1, line, 3).unwrap();
        }
        assert_eq!(written.all().collect::<Vec<_>>(), ["cafe", "..0ace", "q?q"]);
        assert_eq!(written.numbers, [1, 4, 6]);
        written.take(7, "# no pattern", 3).unwrap();
        assert!(written.take(8, "one", 3).unwrap_err().contains("more than 3 patterns"));
    }

    #[test]
    fn lines_that_cannot_be_are_left_out_and_counted() {
        let npub = warpsmith::chain::find("npub").unwrap();
        let arguments = ["qq".to_owned()];
        let read = |lines: &[&str], strict| {
            let mut written = Written::read(&arguments, None, strict).unwrap();
            for (at, line) in lines.iter().enumerate() {
                written.take(at + 1, line, 100).unwrap();
            }
            written
        };
        let mut written = read(&["cafe", "bob", "cafe", "", "..0ace", "io"], false);
        let patterns = written.compile(npub, &Options::default()).unwrap();
        assert_eq!((patterns.len(), patterns.distinct_len(), written.left_out.count), (4, 3, 2));
        assert_eq!(written.all().collect::<Vec<_>>(), ["qq", "cafe", "cafe", "..0ace"]);
        assert_eq!(written.numbers, [1, 3, 5]);
        assert!(
            written.left_out.shown[0].starts_with("line 2: pattern 'bob': "),
            "{:?}",
            written.left_out.shown
        );
        assert!(written.left_out.shown[1].starts_with("line 6: "));
        let strict = read(&["cafe", "bob"], true).compile(npub, &Options::default()).unwrap_err();
        assert!(strict.to_string().contains("line 2: pattern 'bob'"), "{strict}");
        let mut many = read(&["b"; 30], false);
        many.compile(npub, &Options::default()).unwrap();
        assert_eq!((many.left_out.count, many.left_out.shown.len()), (30, 20));
    }
}
