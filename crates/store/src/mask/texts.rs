//! Texts of keys with unknown and missing characters, one by one, sorted out by their checksum before anything else.
//!
//! A missing character may belong before any of those there are, or behind the last. One text can come of several such places:
//! "aab" of "ab" by an a before the first and by one behind it. Each is tried once, with every known character as early as it can be: what is
//! put before a character is never what that character may be.

use warpsmith_chain::coin::wif_heads;
use warpsmith_chain::{AddressKind, Chain, KeyType};

use super::schemes::{Hex, Nsec, Scheme, Wif};
use super::symbols::{Alphabet, Choices};
use super::{MaskError, product};

/// At most so many candidates.
const MOST_BITS: u32 = 120;

/// A text with unknown or missing characters.
#[derive(Clone)]
pub struct TextMask {
    alphabet: Alphabet,
    known: Vec<Choices>,
    patterns: Vec<Pattern>,
    count: u128,
}

/// Where the missing characters are: before which of those there are.
#[derive(Clone)]
struct Pattern {
    before: Vec<usize>,
    /// The first candidate of it.
    first: u128,
}

impl TextMask {
    pub(super) fn new(alphabet: Alphabet, known: Vec<Choices>, missing: usize) -> Result<Self, MaskError> {
        let mut mask = Self { alphabet, known, patterns: Vec::new(), count: 0 };
        let mut before = vec![0; missing];
        loop {
            let choices = mask.choices(&before);
            if choices.iter().all(|choices| !choices.is_empty()) {
                let count = product(&choices, 1 << MOST_BITS).ok_or(MaskError::Many(MOST_BITS))?;
                mask.patterns.push(Pattern { before: before.clone(), first: mask.count });
                mask.count += count;
            }
            // The next of the ascending rows of places.
            let Some(at) = before.iter().rposition(|place| *place < mask.known.len()) else { break };
            let next = before[at] + 1;
            before[at..].fill(next);
        }
        match mask.count {
            0 => Err(MaskError::Empty("its characters cannot be those of such a text")),
            count if count > 1 << MOST_BITS => Err(MaskError::Many(MOST_BITS)),
            _ => Ok(mask),
        }
    }

    /// How many candidates there are.
    pub fn count(&self) -> u128 {
        self.count
    }

    /// What kind of text it is, in words.
    pub fn kind(&self) -> &'static str {
        self.alphabet.name()
    }

    /// See [`super::KeyMask::address_type`].
    pub(super) fn address_type(&self) -> Option<(&'static KeyType, AddressKind)> {
        let name = match self.alphabet {
            Alphabet::Hex => return None,
            Alphabet::Nsec => return Some((KeyType::find("npub")?, AddressKind::NPUB)),
            Alphabet::Wif { compressed: true } => "p2pkh",
            Alphabet::Wif { compressed: false } => "p2pkh-uncompressed",
        };
        let compressed = self.alphabet == Alphabet::Wif { compressed: true };
        // A missing character may be the first.
        let is_possible = |head: char| {
            let of = |pattern: &Pattern| self.alphabet.has(&self.choices(&pattern.before)[0], head);
            self.patterns.iter().any(of)
        };
        let (_, coin, network) = wif_heads(compressed).find(|(head, ..)| is_possible(*head))?;
        let known = Chain::find(coin.name)?.types().find(|known| known.variant() == Some(name))?;
        let row = known.on.iter().find(|row| row.network == Some(network))?;
        Some((known, row.kind?))
    }

    /// Of so many candidates on average one has the checksum of its text.
    pub fn pruning(&self) -> f64 {
        match self.alphabet {
            Alphabet::Hex => 1.0,
            Alphabet::Wif { .. } => 2f64.powi(32),
            Alphabet::Nsec => 2f64.powi(30),
        }
    }

    /// What each character of a whole text may be, with missing ones at these places.
    fn choices(&self, before: &[usize]) -> Vec<Choices> {
        let all = || (0..self.alphabet.size()).collect::<Choices>();
        let mut choices = Vec::with_capacity(self.known.len() + before.len());
        for (place, known) in self.known.iter().enumerate() {
            for _ in before.iter().filter(|at| **at == place) {
                choices.push(all().into_iter().filter(|value| !known.contains(value)).collect());
            }
            choices.push(known.clone());
        }
        choices.extend(before.iter().filter(|at| **at == self.known.len()).map(|_| all()));
        if self.alphabet == Alphabet::Nsec {
            // 52 characters hold 260 bits: the last four of the key's are 0.
            choices[51].retain(|value| value & 0xf == 0);
        }
        choices
    }

    /// Hands over the keys among `count` candidates from `first` on, each with its number.
    pub fn visit(&self, first: u128, count: u64, take: &mut dyn FnMut(u128, &[u8; 32])) {
        let (mut first, end) = (first, first.saturating_add(u128::from(count)).min(self.count));
        let mut at = self.patterns.partition_point(|pattern| pattern.first <= first).saturating_sub(1);
        while first < end {
            let pattern = &self.patterns[at];
            let next = self.patterns.get(at + 1).map_or(self.count, |next| next.first);
            let choices = self.choices(&pattern.before);
            let (offset, count) = (first - pattern.first, next.min(end) - first);
            let mut take = |candidate: u128, key: &[u8; 32]| take(pattern.first + candidate, key);
            match self.alphabet {
                Alphabet::Hex => walk(&Hex, &choices, offset, count, &mut take),
                Alphabet::Wif { compressed } => {
                    walk(&Wif::new(compressed), &choices, offset, count, &mut take)
                }
                Alphabet::Nsec => walk(&Nsec::new(), &choices, offset, count, &mut take),
            }
            (first, at) = (next.min(end), at + 1);
        }
    }
}

/// Goes through candidates, the last character turning fastest. What characters contribute to a text is worked out once; for all
/// turns of the last one the others are added up once.
fn walk<S: Scheme>(
    scheme: &S,
    choices: &[Choices],
    first: u128,
    count: u128,
    take: &mut dyn FnMut(u128, &[u8; 32]),
) {
    let length = choices.len();
    let part = |at: usize, value: u8| scheme.part(length, at, value);
    let mut known = scheme.nothing();
    let mut turning: Vec<(usize, Vec<S::Sum>)> = Vec::new();
    for (at, choices) in choices.iter().enumerate() {
        match choices.as_slice() {
            [value] => known = S::add(known, part(at, *value)),
            choices => turning.push((at, choices.iter().map(|value| part(at, *value)).collect())),
        }
    }
    // Which of its choices each turning character has.
    let mut chosen = vec![0; turning.len()];
    let mut rest = first;
    for ((_, parts), chosen) in turning.iter().zip(&mut chosen).rev() {
        *chosen = (rest % parts.len() as u128) as usize;
        rest /= parts.len() as u128;
    }
    let mut state = S::State::default();
    let mut look = |candidate: u128, sum: S::Sum, chosen: &[usize]| {
        let symbols = || {
            let mut symbols: Vec<u8> = choices.iter().map(|choices| choices[0]).collect();
            for ((at, _), chosen) in turning.iter().zip(chosen) {
                symbols[*at] = choices[*at][*chosen];
            }
            symbols
        };
        if let Some(key) = scheme.key(&mut state, sum, symbols) {
            take(candidate, &key);
        }
    };
    let Some((last, before)) = turning.split_last() else {
        look(first, known, &chosen);
        return;
    };
    let (mut candidate, end, fastest) = (first, first + count, before.len());
    loop {
        let others = before.iter().zip(&chosen);
        let base = others.fold(known, |sum, ((_, parts), chosen)| S::add(sum, parts[*chosen]));
        while chosen[fastest] < last.1.len() {
            look(candidate, S::add(base, last.1[chosen[fastest]]), &chosen);
            candidate += 1;
            if candidate == end {
                return;
            }
            chosen[fastest] += 1;
        }
        chosen[fastest] = 0;
        for at in (0..fastest).rev() {
            chosen[at] += 1;
            if chosen[at] < turning[at].1.len() {
                break;
            }
            chosen[at] = 0;
        }
    }
}
