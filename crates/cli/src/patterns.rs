//! Where patterns come from: arguments, and a file with one pattern per line.
//!
//! Remembers where each one stood, so that an error names the line. The pattern syntax is the library's.

use warpsmith::chain::Target;
use warpsmith::chain::coin::{AddressType, Coin, CoinAddress, Inference, Network, Refusal};
use warpsmith::pattern::{Error, Options, Patterns, Reason, compile, compile_possible};
use warpsmith_console::exit::Failure;
use warpsmith_console::human;
use warpsmith_console::input::{self, Limits, name};
use warpsmith_console::redact::secret_kind;
use warpsmith_console::stderr::warn;
use warpsmith_text::Shown;

use crate::advice;
use crate::hooks;

/// Far more than anybody writes: a regular expression may be a long one, and a list as long as memory and devices carry.
const LIMITS: Limits = Limits { line: 4096, total: 1 << 30 };

/// Patterns of a file, at most.
const MOST: usize = 10_000_000;

/// Lines that are left out and shown, at most.
const MOST_SHOWN: usize = 20;

/// Patterns as they were written: first the arguments, then the file's. Those that cannot be searched for are left out, and reported
/// once.
pub(crate) struct Written<'a> {
    arguments: Vec<&'a str>,
    file: Option<&'a str>,
    /// Whether a pattern that cannot be searched for is an error.
    strict: bool,
    /// The file's patterns, one per line.
    text: String,
    /// The number that each line had in the file.
    numbers: Vec<u32>,
    left_out: LeftOut,
}

/// Whether a line may be a private key. SEC: who has one in a list of words must know of it, so it is no word to be left out.
fn is_secret(line: &str) -> bool {
    secret_kind(line).is_some()
}

/// Patterns that cannot be searched for.
#[derive(Default)]
struct LeftOut {
    count: u64,
    /// The first of them, each with its place in the file and the reason.
    shown: Vec<String>,
}

impl LeftOut {
    fn add(&mut self, place: Option<String>, why: &str) {
        self.count += 1;
        if self.shown.len() < MOST_SHOWN {
            self.shown.push(place.map_or(why.to_owned(), |place| format!("{place}: {why}")));
        }
    }

    /// The reasons, a line each: a reason may have several, and one is enough in a list.
    fn listed(&self) -> String {
        let lines = self.shown.iter().map(|why| why.lines().next().unwrap_or_default());
        lines.collect::<Vec<_>>().join("\n  ")
    }
}

impl<'a> Written<'a> {
    pub fn read(
        arguments: &'a [String],
        file: Option<&'a str>,
        strict: bool,
    ) -> Result<Written<'a>, Failure> {
        let (text, numbers, left_out) = (String::new(), Vec::new(), LeftOut::default());
        let arguments = arguments.iter().map(String::as_str).collect();
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
        self.arguments.iter().copied().chain(self.text.lines())
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

    /// The addresses of a coin that the patterns are about. Patterns that are about others, or none, are left out.
    pub fn infer(
        &mut self,
        coin: &'static Coin,
        wanted: Option<AddressType>,
        network: Network,
    ) -> Result<CoinAddress, Refusal> {
        let mut inference = Inference::new(coin, wanted, network)?;
        let mut refused = Vec::new();
        for (at, pattern) in self.all().enumerate() {
            match inference.take(pattern) {
                Ok(()) => {}
                Err(refusal) if self.strict || is_secret(pattern) || refusal == Refusal::Secret => {
                    return Err(refusal);
                }
                Err(refusal) => refused.push((at, refusal)),
            }
        }
        // Nothing is left that says it: the first that could not be is why.
        if !refused.is_empty() && refused.len() == self.all().count() {
            return Err(refused.swap_remove(0).1);
        }
        let address = inference.finish()?;
        let refused = refused.iter().map(|(at, refusal)| (*at, advice::of_type(refusal)));
        self.leave_out(refused.collect());
        Ok(address)
    }

    /// The patterns for this target. Those that cannot be searched for are left out with a warning; it is an error where none is left,
    /// or `strict` was asked for.
    pub fn compile(&mut self, target: &dyn Target, options: &Options) -> Result<Patterns, Failure> {
        let is_bare = self.file.is_none() && self.arguments.is_empty();
        if let Some(low) = options.low_bits.filter(|_| is_bare && self.text.is_empty()) {
            // What is asked of the end of an address is a pattern too.
            self.text = hooks::pattern(&low) + "\n";
            self.numbers.push(1);
        }
        self.require(target.name(), "cafe")?;
        let mut refused = Vec::new();
        let patterns = compile_possible(self.all(), target, options, &mut |error| {
            if self.strict || error.reason == Reason::Secret || is_secret(&error.pattern) {
                return Err(error);
            }
            refused.push((error.index, error.to_string()));
            Ok(())
        });
        let patterns = patterns.map_err(|error| Failure::Usage(self.placed(&error)))?;
        self.leave_out(refused);
        self.tell_left_out(patterns.is_empty())?;
        warn_of_parts(&patterns, target, options);
        Ok(patterns)
    }

    /// An error with where the pattern stood.
    fn placed(&self, error: &Error) -> String {
        match error.index.checked_sub(self.arguments.len()) {
            None => error.to_string(),
            Some(at) => format!("{}: {error}", self.place(self.numbers.get(at).copied().unwrap_or(0))),
        }
    }

    /// A line of the file, by its number.
    fn place(&self, number: u32) -> String {
        format!("{}, line {number}", name(self.file.unwrap_or_default()))
    }

    /// Takes patterns out, by their place among those that are left, in ascending order.
    fn leave_out(&mut self, refused: Vec<(usize, String)>) {
        if refused.is_empty() {
            return;
        }
        let (mut left_out, count) = (std::mem::take(&mut self.left_out), self.arguments.len());
        let is_line = |(at, _): &(usize, String)| *at >= count;
        let (refused, of_arguments): (Vec<_>, Vec<_>) = refused.into_iter().partition(is_line);
        for (at, _) in of_arguments.iter().rev() {
            self.arguments.remove(*at);
        }
        of_arguments.iter().for_each(|(_, why)| left_out.add(None, why));
        let mut text = String::with_capacity(self.text.len());
        let mut numbers = Vec::with_capacity(self.numbers.len() - refused.len());
        let mut refused = refused.into_iter().peekable();
        for (at, (line, &number)) in self.text.lines().zip(&self.numbers).enumerate() {
            match refused.next_if(|(out, _)| *out == count + at) {
                Some((_, why)) => left_out.add(Some(self.place(number)), &why),
                None => {
                    text.push_str(line);
                    text.push('\n');
                    numbers.push(number);
                }
            }
        }
        (self.text, self.numbers, self.left_out) = (text, numbers, left_out);
    }

    /// Reports the patterns that were left out; an error if nothing else is there.
    fn tell_left_out(&self, is_all: bool) -> Result<(), Failure> {
        let LeftOut { count, shown } = &self.left_out;
        let first =
            if *count > shown.len() as u64 { format!("; the first {}", shown.len()) } else { String::new() };
        let listed = self.left_out.listed();
        match (count, is_all) {
            (0, _) => {}
            (1, true) => return Err(Failure::Usage(shown[0].clone())),
            (_, true) => {
                return Err(Failure::Usage(format!(
                    "there is no pattern that can be searched for{first}:\n  {listed}"
                )));
            }
            (1, false) => {
                warn(&format!("1 pattern cannot be searched for and was left out:\n  {listed}"));
            }
            (count, false) => warn(&format!(
                "{} patterns cannot be searched for and were left out{first}:\n  {listed}",
                human::count(*count as f64)
            )),
        }
        Ok(())
    }
}

/// Reports alternatives within regular expressions that no text can have, with the reason where each is a pattern by itself.
fn warn_of_parts(patterns: &Patterns, target: &dyn Target, options: &Options) {
    for (index, part) in patterns.impossible_parts().take(MOST_SHOWN) {
        let is_plain = part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let why = is_plain.then(|| compile([part], target, options).err()).flatten();
        let why = why.map_or(String::new(), |error| format!(": {}", error.reason));
        let (pattern, part) = (Shown(patterns.text(index)), Shown(part));
        warn(&format!("pattern '{pattern}': its part '{part}' can never match and is ignored{why}"));
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
            written.left_out.shown[0].contains(", line 2: pattern 'bob': "),
            "{:?}",
            written.left_out.shown
        );
        assert!(written.left_out.shown[1].contains(", line 6: "));
        let strict = read(&["cafe", "bob"], true).compile(npub, &Options::default()).unwrap_err();
        assert!(strict.to_string().contains("line 2: pattern 'bob'"), "{strict}");
        // An argument is treated alike, unless it is all there is.
        let arguments = ["bob", "cafe", "io"].map(str::to_owned);
        let given = |range: std::ops::Range<usize>, strict| {
            let mut written = Written::read(&arguments[range], None, strict).unwrap();
            let compiled = written.compile(npub, &Options::default());
            compiled.map(|patterns| (patterns.len(), written.arguments, written.left_out.shown))
        };
        let (count, left, shown) = given(0..3, false).unwrap();
        assert_eq!((count, left, shown.len()), (1, vec!["cafe"], 2));
        assert!(shown[0].starts_with("pattern 'bob': "), "{shown:?}");
        assert!(given(0..1, false).unwrap_err().to_string().starts_with("pattern 'bob': "));
        assert!(given(0..3, true).unwrap_err().to_string().starts_with("pattern 'bob': "));
        let mut many = read(&["b"; 30], false);
        many.compile(npub, &Options::default()).unwrap();
        assert_eq!((many.left_out.count, many.left_out.shown.len()), (30, 20));
    }
}
