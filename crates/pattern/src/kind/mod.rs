//! The kinds of pattern: one file each, one line each in [`KINDS`].
//!
//! A kind reads a written pattern into something that tests texts exactly, knows its odds, and says as shapes what
//! it fixes. Knows no filter and no digest bits.

mod alternatives;
mod anchored;
mod contains;
mod regex;

use crate::Reason;
use crate::length::Set;
use crate::shape::Shape;
use crate::text::Text;

/// A kind of pattern, for help texts and for reading.
#[derive(Debug)]
pub struct Kind {
    /// A word for it.
    pub name: &'static str,
    /// Ways to write it, and what they mean: `{start}` and `{end}` stand for how a text begins and ends.
    written: &'static [(&'static str, &'static str)],
    /// Whether a pattern (without the head) is meant to be of this kind, right or wrong.
    pub(crate) claims: fn(&str) -> bool,
    /// Reads a pattern of this kind.
    pub(crate) read: Read,
}

impl Kind {
    /// Ways to write such a pattern, and what they mean, for texts that begin and end so.
    pub fn examples(&self, start: &str, end: &str) -> Vec<(String, &'static str)> {
        let fill = |written: &str| written.replace("{start}", start).replace("{end}", end);
        self.written.iter().map(|(written, means)| (fill(written), *means)).collect()
    }
}

type Read = fn(&str, &Text) -> Result<Box<dyn Pattern>, Reason>;

/// Every kind there is. The first that claims a pattern reads it.
pub static KINDS: &[Kind] = &[regex::KIND, contains::KIND, anchored::KIND];

/// A pattern that has been read and is possible.
pub(crate) trait Pattern: Send + Sync {
    /// Whether what follows the head matches.
    fn matches(&self, body: &str, text: &Text) -> bool;

    /// The chance that a random key matches.
    fn odds(&self) -> f64;

    /// What the pattern fixes. Every text that matches has one of these shapes.
    fn shapes(&self, text: &Text) -> Vec<Shape>;

    /// Alternatives within the pattern that no text can match, as they are written.
    fn impossible(&self) -> &[String] {
        &[]
    }
}

/// Reads one pattern that has already lost its head.
pub(crate) fn read(body: &str, text: &Text) -> Result<Box<dyn Pattern>, Reason> {
    let kind = KINDS.iter().find(|kind| (kind.claims)(body)).expect("the last kind claims everything");
    (kind.read)(body, text)
}

/// The symbol sets of written characters, where `?` is any. The parts of a pattern are read together, so that an
/// error can speak of the whole.
fn symbols(body: &str, parts: &[&str], text: &Text) -> Result<Vec<Vec<u64>>, Reason> {
    let set = |character| if character == '?' { text.any } else { text.symbols(character) };
    let parts: Vec<Vec<u64>> = parts.iter().map(|part| part.chars().map(set).collect()).collect();
    if parts.iter().flatten().any(|&set| set == 0) {
        return Err(wrong_characters(body, text));
    }
    if parts.iter().flatten().all(|&set| set == text.any) {
        return Err(Reason::EveryKey);
    }
    let given = parts.iter().map(Vec::len).sum();
    if given > text.len() {
        let (target, head) = (text.target, text.head);
        return Err(Reason::TooLong { target, head, given, most: text.len() });
    }
    Ok(parts)
}

/// Names the characters the text cannot hold, after its start, and a pattern that looks alike. Whether that one is possible
/// nobody has looked at yet.
fn wrong_characters(body: &str, text: &Text) -> Reason {
    let start = if body.starts_with("..") { 0 } else { text.start.len() };
    let possible = |index: usize| if index < start { text.any } else { text.inner };
    let mut bad = Vec::new();
    let mut suggestion = String::new();
    let mut characters = body.chars().enumerate().peekable();
    while let Some((index, character)) = characters.next() {
        if character == '.' && characters.next_if(|(_, next)| *next == '.').is_some() {
            suggestion.push_str("..");
        } else if character == '?' || text.symbols(character) & possible(index) != 0 {
            suggestion.push(character);
        } else {
            bad.push((character, index + 1));
            suggestion.push(look_alike(character, possible(index), text));
        }
    }
    Reason::Characters { head: text.shown_head(), alphabet: text.alphabet, bad, suggestion: Some(suggestion) }
}

/// A character out of the possible ones that looks like this one; else `?`.
fn look_alike(character: char, possible: Set, text: &Text) -> char {
    let similar: &[char] = match character.to_ascii_lowercase() {
        'b' => &['8', '6', 'h'],
        'g' => &['9', '6'],
        'i' => &['l', 'j', '1'],
        'o' => &['0', 'q'],
        's' => &['5'],
        't' => &['7'],
        'z' => &['2'],
        '1' => &['l', 'i', 'I'],
        'l' => &['1', 'i'],
        '0' => &['o', 'O'],
        _ => &[],
    };
    let cases = [character.to_ascii_lowercase(), character.to_ascii_uppercase()];
    cases.iter().chain(similar).copied().find(|&other| text.symbols(other) & possible != 0).unwrap_or('?')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, compile};

    /// What help texts show of a kind is read by that kind, and can be found on every chain.
    #[test]
    fn examples_are_of_their_kind_and_possible() {
        for chain in warpsmith_chain::CHAINS.iter() {
            for kind in KINDS {
                let examples = kind.examples(chain.example, "ace");
                assert!(!examples.is_empty(), "{}", kind.name);
                for (written, means) in examples {
                    let claimed = KINDS.iter().find(|other| (other.claims)(&written)).unwrap();
                    assert_eq!(claimed.name, kind.name, "{written}");
                    assert!(!means.is_empty());
                    let compiled = compile([&written], chain.usual(), &Options::default());
                    assert!(compiled.is_ok(), "{} {written}: {:?}", chain.name, compiled.err());
                }
            }
        }
    }
}
