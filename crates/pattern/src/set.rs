//! A compiled set of patterns: what to test on text, what to test on a device, and how long it may take.
//!
//! Plain prefixes are kept apart and compactly, since there may be a million of them; everything else is an object
//! with its own test. Knows the order in which patterns were given, which decides between several that match.

use std::collections::HashSet;
use std::fmt;

use warpsmith_chain::Target;

use crate::filter::Filter;
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
    let text = Text::new(target, options);
    let mut all = Texts::default();
    let mut plain: Vec<u32> = Vec::new();
    let mut others = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    for (index, written) in texts.into_iter().enumerate() {
        let written = written.as_ref();
        let body = text.strip_head(written);
        let Ok(short_index) = u32::try_from(index) else {
            return Err(refuse(index, written, Reason::TooMany { most: u32::MAX as usize }, &text, target));
        };
        all.push(written);
        // The rest of an address decides the case of its letters; only with no rest can that contradict the pattern.
        if options.checksum && body.len() == text.len() && wrong_case(body, target) {
            let reason = Reason::CaseChecksum { target: target.name() };
            return Err(refuse(index, written, reason, &text, target));
        }
        if Prefixes::is_plain(body, &text) {
            plain.push(short_index);
        } else if seen.insert(text.fold(body)) {
            let pattern =
                kind::read(body, &text).map_err(|reason| refuse(index, written, reason, &text, target))?;
            others.push((index, pattern));
        }
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

/// The error for a pattern as it was written.
fn refuse(index: usize, written: &str, mut reason: Reason, text: &Text, target: &dyn Target) -> Error {
    // SEC: a secret key pasted as a pattern must not come back in a message.
    if matches!(target.decode(written.trim()), Err(warpsmith_chain::Error::Secret { .. })) {
        return Error { index, pattern: String::new(), reason: Reason::Secret };
    }
    if let Reason::Characters { bad, .. } = &mut reason {
        let head = written.len() - text.strip_head(written).len();
        bad.iter_mut().for_each(|(_, position)| *position += head);
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

    /// The name of the target these patterns are for.
    pub fn target(&self) -> &'static str {
        self.text.target
    }

    /// The exact test: the first pattern, in the order given, that matches this whole text, head included.
    pub fn find(&self, text: &str) -> Option<usize> {
        let body = self.text.body(text)?;
        let body = body.as_ref();
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

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patterns")
            .field("target", &self.text.target)
            .field("len", &self.len())
            .field("odds", &self.odds)
            .finish_non_exhaustive()
    }
}
