//! A compiled set of patterns: what to test on text, what to test on a device, and how long it may take.
//!
//! Plain prefixes are kept apart and compactly, since there may be a million of them; everything else is an object
//! with its own test. Knows the order in which patterns were given, which decides between several that match.

use std::collections::HashSet;
use std::fmt;

use warpsmith_chain::Target;

use crate::filter::Filter;
use crate::habit;
use crate::kind::{self, Pattern};
use crate::lower::{Lowering, union};
use crate::prefixes::{Prefixes, Texts};
use crate::text::Text;
use crate::{Error, Options, Reason};

/// A compiled set of patterns for one target.
pub struct Patterns {
    text: Text,
    texts: Texts,
    prefixes: Prefixes,
    /// Patterns that are not plain prefixes, in the order given, without repetitions.
    others: Vec<(usize, Box<dyn Pattern>)>,
    odds: f64,
}

/// Reads patterns for a target. The first that cannot be searched for is the error; an empty set is none.
///
/// ```
/// use warpsmith_pattern::{Options, compile};
///
/// let npub = warpsmith_chain::find("npub").unwrap();
/// let patterns = compile(["cafe", "..0ace"], npub, &Options::default()).unwrap();
/// assert!((1.0 / patterns.odds() / 2f64.powi(19) - 1.0).abs() < 1e-5);
/// assert!(compile(["bob"], npub, &Options::default()).unwrap_err().to_string().contains("Try '808'"));
/// ```
pub fn compile(
    texts: impl IntoIterator<Item = impl AsRef<str>>,
    target: &dyn Target,
    options: &Options,
) -> Result<Patterns, Error> {
    compile_possible(texts, target, options, &mut Err)
}

/// The same, where whoever is told of one that cannot be searched for may leave it out and go on.
///
/// ```
/// use warpsmith_pattern::{Options, compile_possible};
///
/// let (npub, mut left_out) = (warpsmith_chain::find("npub").unwrap(), Vec::new());
/// let patterns = compile_possible(["cafe", "bob", "cafe"], npub, &Options::default(), &mut |error| {
///     left_out.push(error.index);
///     Ok(())
/// });
/// assert_eq!((patterns.unwrap().distinct().count(), left_out), (1, vec![1]));
/// ```
pub fn compile_possible(
    texts: impl IntoIterator<Item = impl AsRef<str>>,
    target: &dyn Target,
    options: &Options,
    refused: &mut dyn FnMut(Error) -> Result<(), Error>,
) -> Result<Patterns, Error> {
    let text = Text::new(target, options);
    let mut all = Texts::default();
    let mut plain: Vec<u32> = Vec::new();
    let mut others = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    for (given, written) in texts.into_iter().enumerate() {
        let written = written.as_ref();
        let body = text.strip_head(written);
        let refuse = |reason| refuse(given, written, reason, &text, target, options);
        let index = all.len();
        let Ok(short_index) = u32::try_from(index) else {
            return Err(refuse(Reason::TooMany { most: u32::MAX as usize }));
        };
        // The rest of an address decides the case of its letters; only with no rest can that contradict the pattern.
        if options.checksum && body.len() == text.len() && wrong_case(body, target) {
            refused(refuse(Reason::CaseChecksum { target: target.name() }))?;
            continue;
        }
        if Prefixes::is_plain(body, &text) {
            plain.push(short_index);
        } else if seen.insert(text.fold(body)) {
            match kind::read(body, &text) {
                Ok(pattern) => others.push((index, pattern)),
                Err(reason) => {
                    seen.remove(&text.fold(body));
                    refused(refuse(reason))?;
                    continue;
                }
            }
        }
        all.push(written);
    }
    all.shrink();
    let prefixes = Prefixes::new(&plain, &all, &text);
    // Prefixes are exact together; what else there is counts as independent of them and of each other.
    let odds = match others.is_empty() {
        true => prefixes.odds(&all, &text),
        false => union(others.iter().map(|(_, pattern)| pattern.odds()).chain([prefixes.odds(&all, &text)])),
    };
    Ok(Patterns { text, texts: all, prefixes, others, odds })
}

/// Whether this is a whole text whose letters are in another case than its checksum gives them.
fn wrong_case(body: &str, target: &dyn Target) -> bool {
    let text = format!("{}{body}", target.encoding().head());
    // All in one case is a text without checksum, so it decodes whatever its checksum would be.
    target.decode(&text).map_or_else(
        |error| matches!(error, warpsmith_chain::Error::CaseChecksum { .. }),
        |digest| target.encoding().checks_case() && target.encode(&digest) != text,
    )
}

/// Whether this one could be searched for.
fn is_possible(written: &str, text: &Text, target: &dyn Target, options: &Options) -> bool {
    let body = text.strip_head(written);
    let contradicts = options.checksum && body.len() == text.len() && wrong_case(body, target);
    !contradicts && kind::read(body, text).is_ok()
}

/// The error for a pattern as it was written, which proposes nothing that would be refused in its turn.
fn refuse(
    index: usize,
    written: &str,
    mut reason: Reason,
    text: &Text,
    target: &dyn Target,
    options: &Options,
) -> Error {
    // SEC: a secret key pasted as a pattern must not come back in a message.
    if matches!(target.decode(written.trim()), Err(warpsmith_chain::Error::Secret { .. })) {
        return Error { index, pattern: String::new(), reason: Reason::Secret };
    }
    if let Reason::Characters { bad, suggestion, .. } = &mut reason {
        let is_possible = |written: &str| is_possible(written, text, target, options);
        let head = written.len() - text.strip_head(written).len();
        bad.iter_mut().for_each(|(_, position)| *position += head);
        *suggestion = suggestion.take().filter(|suggestion| is_possible(suggestion));
        if let Some(habit) = habit::recognise(written, &is_possible) {
            reason = habit;
        }
    }
    Error { index, pattern: written.to_owned(), reason }
}

impl Patterns {
    /// How many patterns were given.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether none was given. Such a set matches nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pattern as it was written.
    ///
    /// # Panics
    ///
    /// When there is no pattern `index`.
    pub fn text(&self, index: usize) -> &str {
        self.texts.get(index)
    }

    /// The patterns without repetitions, each with its chance by itself that a random key matches it, in the order given.
    pub fn distinct(&self) -> impl Iterator<Item = (usize, f64)> {
        let mut plain: Vec<usize> = self.prefixes.indices().collect();
        plain.sort_unstable();
        let plain =
            plain.into_iter().map(|index| (index, self.prefixes.odds_of(index, &self.texts, &self.text)));
        let others = self.others.iter().map(|(index, pattern)| (*index, pattern.odds()));
        merge_by_index(plain, others)
    }

    /// How many there are without repetitions.
    pub fn distinct_len(&self) -> usize {
        self.prefixes.indices().len() + self.others.len()
    }

    /// Alternatives within patterns that no text can match, as they are written, each with the pattern that has it: the rest of that
    /// pattern is searched for.
    pub fn impossible_parts(&self) -> impl Iterator<Item = (usize, &str)> {
        self.others
            .iter()
            .flat_map(|(index, pattern)| pattern.impossible().iter().map(move |part| (*index, part.as_str())))
    }

    /// The name of the target these patterns are for.
    pub fn target(&self) -> &'static str {
        self.text.target
    }

    /// The exact test: the first pattern, in the order given, that matches this whole text, head included.
    pub fn find(&self, text: &str) -> Option<usize> {
        let body = self.text.body(text)?;
        let body = body.as_ref();
        if !self.text.fits(body) {
            return None;
        }
        let plain = self.prefixes.find(body, &self.texts, &self.text);
        let earlier = self.others.iter().take_while(|(index, _)| plain.is_none_or(|plain| *index < plain));
        let other =
            earlier.filter(|(_, pattern)| pattern.matches(body, &self.text)).map(|(index, _)| *index).next();
        other.or(plain)
    }

    /// The chance that a random key matches at least one pattern. Exact for plain prefixes together and for a single
    /// prefix, suffix or both; elsewhere symbols, and different patterns, count as independent.
    pub fn odds(&self) -> f64 {
        self.odds
    }

    /// What a device tests: accepts every digest whose text matches. Where there is a choice between ranges of the
    /// top bits, which are cheap, and sharper but dearer terms, `max_false` decides: the share of all keys that may be
    /// accepted without matching. It is not a promise: a long prefix is tested on its top bits only, and what a regex
    /// implies may be weak.
    pub fn filter(&self, max_false: f64) -> Filter {
        let prefixes = self.prefixes.intervals(&self.texts, &self.text);
        let mut lowering = Lowering::new(&self.text, prefixes, self.others.len(), max_false);
        for (_, pattern) in &self.others {
            lowering.add(pattern.shapes(&self.text));
        }
        lowering.finish()
    }
}

/// Two lists in ascending order as one.
fn merge_by_index(
    a: impl Iterator<Item = (usize, f64)>,
    b: impl Iterator<Item = (usize, f64)>,
) -> impl Iterator<Item = (usize, f64)> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(one), Some(other)) if one.0 < other.0 => a.next(),
        (Some(_), None) => a.next(),
        _ => b.next(),
    })
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patterns")
            .field("target", &self.text.target)
            .field("len", &self.len())
            .field("odds", &self.odds)
            .finish_non_exhaustive()
    }
}
