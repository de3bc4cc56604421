//! Plain prefixes, a million of them if need be: each is an index into the texts as given, in the order of symbols.
//!
//! In that order the prefixes of one text, equal ones and those covered by a shorter one are next to each other, so
//! the exact test is a binary search and union and intervals are one pass. Knows no other kind of pattern.

use std::cmp::Ordering;

use crate::base58;
use crate::interval::{Interval, merge};
use crate::text::{Code, Text};

/// The patterns as given, in one string.
#[derive(Default)]
pub(crate) struct Texts {
    all: String,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Texts {
    pub fn push(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.all.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn get(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.all[start..self.ends[index]]
    }

    pub fn shrink(&mut self) {
        self.all.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

/// Plain prefixes in the order of their symbols; of equal ones the first that was given.
pub(crate) struct Prefixes {
    order: Vec<u32>,
    /// Bit `n` is set when some prefix has `n` symbols.
    lengths: u64,
}

impl Prefixes {
    /// Whether a pattern without its head is a plain prefix: fixed symbols within the digest's leading bits, or in base58
    /// characters that some texts begin with. Such a pattern is always possible.
    pub fn is_plain(body: &str, text: &Text) -> bool {
        let single =
            |byte: u8| text.written(byte).is_some() && text.symbols(char::from(byte)).count_ones() == 1;
        // Ranges of the top bits say nothing of the low ones.
        if text.is_restricted() {
            return false;
        }
        // Lengths are bits of one word.
        let length = body.len();
        if length <= text.start.len() || length > text.leading.min(63) || !body.bytes().all(single) {
            return false;
        }
        let values = || body.bytes().filter_map(|byte| text.written(byte));
        match text.code {
            Code::Linear(_) => values().zip(&text.allowed).all(|(value, allowed)| allowed >> value & 1 == 1),
            Code::Base58(code) => {
                let values: Vec<u8> = values().collect();
                code.is_possible(&values) && code.share(&values) < 1.0
            }
        }
    }

    /// The prefixes at these indices.
    pub fn new(indices: &[u32], texts: &Texts, text: &Text) -> Self {
        let body = |index: u32| text.strip_head(texts.get(index as usize)).as_bytes();
        let lengths = indices.iter().fold(0, |lengths, &index| lengths | 1 << body(index).len());
        let mut keyed: Vec<(u64, u32)> =
            indices.iter().map(|&index| (key(body(index), text), index)).collect();
        keyed.sort_unstable_by(|a, b| {
            let (full_a, full_b) = (a.1, b.1);
            a.0.cmp(&b.0).then_with(|| compare(body(full_a), body(full_b), text)).then(a.1.cmp(&b.1))
        });
        keyed.dedup_by(|b, a| a.0 == b.0 && compare(body(a.1), body(b.1), text) == Ordering::Equal);
        Self { order: keyed.into_iter().map(|(_, index)| index).collect(), lengths }
    }

    /// Where they stand among the texts, in the order of their symbols.
    pub fn indices(&self) -> impl ExactSizeIterator<Item = usize> {
        self.order.iter().map(|&index| index as usize)
    }

    /// The lowest index of a prefix of `body`.
    pub fn find(&self, body: &str, texts: &Texts, text: &Text) -> Option<usize> {
        let body = body.as_bytes();
        let has_length = |length: &usize| self.lengths >> length & 1 == 1;
        let with_length = |length: usize| {
            let wanted = &body[..length];
            let prefix = |index: u32| text.strip_head(texts.get(index as usize)).as_bytes();
            let at =
                self.order.partition_point(|&index| compare(prefix(index), wanted, text) == Ordering::Less);
            let &found = self.order.get(at)?;
            (compare(prefix(found), wanted, text) == Ordering::Equal).then_some(found as usize)
        };
        (1..=body.len().min(63)).filter(has_length).filter_map(with_length).min()
    }

    /// The prefixes that no shorter or earlier one covers.
    fn uncovered<'a>(&'a self, texts: &'a Texts, text: &'a Text) -> impl Iterator<Item = &'a [u8]> {
        let mut last: Option<&[u8]> = None;
        self.order.iter().filter_map(move |&index| {
            let prefix = text.strip_head(texts.get(index as usize)).as_bytes();
            let begins_with = |last: &[u8]| {
                let start = prefix.get(..last.len());
                start.is_some_and(|start| compare(start, last, text) == Ordering::Equal)
            };
            if last.is_some_and(begins_with) {
                return None;
            }
            last = Some(prefix);
            last
        })
    }

    /// The chance that a random text begins with one of them; exact.
    pub fn odds(&self, texts: &Texts, text: &Text) -> f64 {
        self.uncovered(texts, text).map(|prefix| share(prefix, text)).sum()
    }

    /// The chance that a random text begins with this one; exact.
    pub fn odds_of(&self, index: usize, texts: &Texts, text: &Text) -> f64 {
        share(text.strip_head(texts.get(index)).as_bytes(), text)
    }

    /// The top bits of their digests: sorted, disjoint and not adjacent.
    pub fn intervals(&self, texts: &Texts, text: &Text) -> Vec<Interval> {
        let mut intervals: Vec<Interval> = Vec::with_capacity(self.order.len());
        for prefix in self.uncovered(texts, text) {
            match text.code {
                Code::Linear(_) => {
                    let symbols = &prefix[text.start.len()..];
                    let first = pack(symbols, text) << text.shift;
                    // What does not fit whole symbols of the word is left open.
                    let packed = symbols.len().min(64 / text.width) * text.width - text.shift;
                    let last = first | u64::MAX.checked_shr(packed as u32).unwrap_or(0);
                    intervals.push(Interval { first, last });
                }
                Code::Base58(code) => intervals.extend(base58::ranges(code, &values(prefix, text))),
            }
        }
        // Where two characters write one symbol, the order of characters is not that of digests.
        merge(intervals)
    }
}

/// The share of texts that begin so.
fn share(prefix: &[u8], text: &Text) -> f64 {
    match text.code {
        Code::Linear(_) => {
            let cases =
                prefix.iter().filter_map(|&byte| text.written(byte)).map(|value| text.case_share(value));
            let bits = (prefix.len() - text.start.len()) * text.width - text.shift;
            (-(bits as f64)).exp2() * cases.product::<f64>()
        }
        Code::Base58(code) => code.share(&values(prefix, text)),
    }
}

/// The characters of a prefix.
fn values(prefix: &[u8], text: &Text) -> Vec<u8> {
    prefix.iter().filter_map(|&byte| text.written(byte)).collect()
}

/// As many leading symbols as fit into a word, from its top bit on: the top bits of the digest, after those that
/// come before it.
fn pack(body: &[u8], text: &Text) -> u64 {
    let symbol = |byte| text.written(byte).map_or(0, |value| text.symbol(value));
    fill(body.iter().map(|&byte| symbol(byte)), text.width)
}

/// As many leading characters as fit into a word, from its top bit on: texts that differ in them are in its order.
fn key(body: &[u8], text: &Text) -> u64 {
    let width = text.character_count().next_power_of_two().trailing_zeros() as usize;
    fill(body.iter().map(|&byte| text.written(byte).unwrap_or(0)), width)
}

fn fill(values: impl Iterator<Item = u8>, width: usize) -> u64 {
    let values = values.take(64 / width).enumerate();
    values.fold(0, |word, (i, value)| word | u64::from(value) << (64 - width * (i + 1)))
}

/// The order of characters; a text comes after its prefixes. Bytes that are no characters come first.
fn compare(a: &[u8], b: &[u8], text: &Text) -> Ordering {
    a.iter().map(|&byte| text.written(byte)).cmp(b.iter().map(|&byte| text.written(byte)))
}
