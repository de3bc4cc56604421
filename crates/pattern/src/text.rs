//! The text of a target as patterns see it: a head, then positions that each hold one character.
//!
//! Knows which characters each position can hold, how likely each is, and which symbol of the encoding it writes: one
//! character a symbol, or two where upper and lower case are told apart (EIP-55). Knows no syntax.

use std::borrow::Cow;

use warpsmith_chain::{Base58, BitSum, Encoding, Linear, Target};

use crate::base58;
use crate::length::{Length, Set};
use crate::system::System;
use crate::{LowBits, Options};

/// The fixed facts about a target's text.
pub(crate) struct Text {
    pub target: &'static str,
    pub code: Code,
    /// What every text begins with and patterns leave out.
    pub head: &'static str,
    /// What every text begins with after that; patterns include it.
    pub start: &'static str,
    /// The characters after the start.
    pub alphabet: &'static str,
    checked_case: bool,
    pub ignore_case: bool,
    /// What a position can hold.
    characters: Vec<Character>,
    /// Those of them that share their symbol with another, so that each is half as likely.
    halved: Set,
    /// The character of each byte; [`Text::NONE`] where there is none.
    exact: [u8; 256],
    /// The same for bytes as a person writes them: where case is ignored, both cases stand for the one there is.
    written: [u8; 256],
    /// For each position the characters it can hold; of the longest text, where there are several lengths.
    pub allowed: Vec<Set>,
    /// The same without what was asked of the low bits: by these chances are counted.
    possible: Vec<Set>,
    /// Every length a text can have, the longest first.
    pub lengths: Vec<Length>,
    /// All characters.
    pub any: Set,
    /// Those after the start.
    pub inner: Set,
    /// Bits of a symbol, where symbols are bits.
    pub width: usize,
    /// Bits of the first symbol after the start that come before the digest's and are zero in every text.
    pub shift: usize,
    /// How many leading positions are the start and then the digest's leading bits, in order and unchanged; where symbols
    /// are not bits, all that can be fixed.
    pub leading: usize,
}

/// How texts follow from digests.
#[derive(Clone, Copy)]
pub(crate) enum Code {
    /// Symbols are bits.
    Linear(&'static Linear),
    /// Texts are numbers.
    Base58(&'static Base58),
}

/// A character that a text can hold.
#[derive(Clone, Copy)]
struct Character {
    byte: u8,
    /// The symbol of the encoding it writes.
    symbol: u8,
    /// All characters for that symbol.
    same_symbol: Set,
}

impl Text {
    const NONE: u8 = u8::MAX;

    pub fn new(target: &dyn Target, options: &Options) -> Self {
        let encoding = target.encoding();
        let (code, start) = match encoding {
            Encoding::Linear(linear) => (Code::Linear(linear), linear.start),
            Encoding::Base58(base58) => (Code::Base58(base58), ""),
            other => unreachable!("target {} has a encoding patterns do not know: {other:?}", target.name()),
        };
        let (alphabet, checked_case) = (encoding.alphabet(), encoding.checks_case());
        let characters = characters(alphabet, start, checked_case && options.checksum);
        assert!(characters.len() <= 64, "a text has at most 64 characters");
        let shared = characters.iter().filter(|character| character.same_symbol.count_ones() == 2);
        let halved = shared.fold(0, |all, character| all | character.same_symbol);
        let ignore_case = if checked_case { !options.checksum } else { options.ignore_case };
        let mut exact = [Self::NONE; 256];
        for (index, character) in characters.iter().enumerate() {
            exact[usize::from(character.byte)] = index as u8;
        }
        let mut written = exact;
        for byte in (0..=u8::MAX).filter(|byte| ignore_case && exact[usize::from(*byte)] == Self::NONE) {
            let lower = exact[usize::from(byte.to_ascii_lowercase())];
            let upper = exact[usize::from(byte.to_ascii_uppercase())];
            written[usize::from(byte)] = if lower != Self::NONE { lower } else { upper };
        }
        let any = u64::MAX >> (64 - characters.len());
        let is_inner = |character: &&Character| {
            alphabet.contains([character.byte, character.byte.to_ascii_lowercase()].map(char::from))
        };
        // Those of the start alone come last.
        let inner = u64::MAX >> (64 - characters.iter().filter(is_inner).count());
        let (lengths, width, shift, leading) = match code {
            Code::Linear(linear) => {
                let width = alphabet.len().trailing_zeros() as usize;
                assert!(alphabet.len() == 1 << width, "a linear alphabet has a power of two of symbols");
                let fixed = start.bytes().map(|byte| 1 << exact[usize::from(byte)]);
                let symbols = linear.symbols.iter().map(|bits| possible(bits, &characters) & inner);
                let allowed = fixed.chain(symbols).collect();
                let is_zero = |bit: &&BitSum| **bit == BitSum { mask: [0; 4], constant: false };
                let shift = linear.symbols.first().map_or(0, |bits| bits.iter().take_while(is_zero).count());
                let in_place = |(position, bits): &(usize, &Vec<BitSum>)| {
                    let place = |i: usize| (position * width + i).checked_sub(shift);
                    bits.iter().enumerate().all(|(i, bit)| match place(i) {
                        Some(at) => digest_bit(at) == Some(*bit),
                        None => is_zero(&bit),
                    })
                };
                let leading = linear.symbols.iter().enumerate().take_while(in_place).count();
                (
                    vec![Length { share: 1.0, allowed, chances: Vec::new() }],
                    width,
                    shift,
                    start.len() + leading,
                )
            }
            Code::Base58(base58) => {
                let lengths = base58::lengths(base58, any);
                let longest = lengths[0].allowed.len();
                (lengths, 0, 0, longest)
            }
        };
        let possible = lengths[0].allowed.clone();
        let mut lengths = lengths;
        if let Some(low) = &options.low_bits {
            restrict(&mut lengths[0].allowed, &characters, width, low);
        }
        Self {
            target: target.name(),
            code,
            head: encoding.head(),
            start,
            alphabet,
            checked_case,
            ignore_case,
            characters,
            halved,
            exact,
            written,
            allowed: lengths[0].allowed.clone(),
            possible,
            lengths,
            any,
            inner,
            width,
            shift,
            leading,
        }
    }

    /// The bits that the character at this position holds; none in the start. Only where symbols are bits.
    pub fn bits(&self, position: usize) -> &'static [BitSum] {
        match self.code {
            Code::Linear(linear) => {
                position.checked_sub(self.start.len()).map_or(&[], |i| &linear.symbols[i])
            }
            Code::Base58(_) => unreachable!("the characters of base58 hold no bits"),
        }
    }

    /// What every text begins with, for messages.
    pub fn shown_head(&self) -> &'static str {
        if self.start.is_empty() { self.head } else { self.start }
    }

    /// How many characters follow the head, at most.
    pub fn len(&self) -> usize {
        self.allowed.len()
    }

    /// How many characters there are.
    pub fn character_count(&self) -> usize {
        self.characters.len()
    }

    /// The character of a text's byte.
    pub fn value(&self, byte: u8) -> Option<u8> {
        Some(self.exact[usize::from(byte)]).filter(|&value| value != Self::NONE)
    }

    /// The character that a byte of a pattern stands for, where there is only one; also for bytes of a text.
    pub fn written(&self, byte: u8) -> Option<u8> {
        Some(self.written[usize::from(byte)]).filter(|&value| value != Self::NONE)
    }

    /// The characters a written one stands for; empty when the text cannot hold it.
    pub fn symbols(&self, character: char) -> Set {
        let Ok(byte) = u8::try_from(character) else { return 0 };
        let one = |byte| self.value(byte).map_or(0, |value| 1 << value);
        match self.ignore_case {
            false => one(byte),
            true => one(byte.to_ascii_lowercase()) | one(byte.to_ascii_uppercase()),
        }
    }

    /// The symbol that a character writes.
    pub fn symbol(&self, character: u8) -> u8 {
        self.characters[usize::from(character)].symbol
    }

    /// The symbols that the characters of a set write, in ascending order.
    pub fn symbols_of(&self, set: Set) -> Vec<u64> {
        let mut symbols: Vec<u64> = self.members(set).map(|character| u64::from(character.symbol)).collect();
        symbols.sort_unstable();
        symbols.dedup();
        symbols
    }

    /// The bits that all symbols of a set have, and those that any has; `None` for the empty set.
    pub fn common_bits(&self, set: Set) -> Option<(u64, u64)> {
        let bits = self.members(set).map(|character| u64::from(character.symbol));
        bits.fold(None, |common: Option<(u64, u64)>, bits| {
            Some(common.map_or((bits, bits), |(all, any)| (all & bits, any | bits)))
        })
    }

    /// The set with every other way to write its symbols: what can be told from the digest's bits alone.
    pub fn widen(&self, set: Set) -> Set {
        self.members(set).fold(0, |all, character| all | character.same_symbol)
    }

    /// What follows the head in a whole text, as patterns look at it.
    pub fn body<'t>(&self, text: &'t str) -> Option<Cow<'t, str>> {
        let body = text.strip_prefix(self.head)?;
        // Where the case is a checksum that is not asked for, the text is looked at in the alphabet's case.
        let is_folded = self.checked_case && self.ignore_case;
        Some(if is_folded { body.to_ascii_lowercase().into() } else { body.into() })
    }

    /// What follows the head in a pattern, where it was written with one.
    pub fn strip_head<'t>(&self, written: &'t str) -> &'t str {
        let head = self.head;
        match written.get(..head.len()) {
            Some(start) if start == head || (self.ignore_case && start.eq_ignore_ascii_case(head)) => {
                &written[head.len()..]
            }
            _ => written,
        }
    }

    /// A pattern as all others that mean the same are written, as far as case goes. In a regular expression case has
    /// a meaning of its own.
    pub fn fold(&self, written: &str) -> String {
        match self.ignore_case && !written.starts_with('/') {
            true => written.to_ascii_lowercase(),
            false => written.to_owned(),
        }
    }

    /// All characters as bytes, each with its bit.
    pub fn bytes(&self) -> impl Iterator<Item = (u8, Set)> {
        self.characters.iter().enumerate().map(|(index, character)| (character.byte, 1 << index))
    }

    /// The characters of a set, in order.
    pub fn characters(&self, set: Set) -> String {
        self.members(set).map(|character| char::from(character.byte)).collect()
    }

    fn members(&self, set: Set) -> impl Iterator<Item = &Character> {
        self.characters.iter().enumerate().filter(move |(i, _)| set >> i & 1 == 1).map(|(_, member)| member)
    }

    /// How likely the set is, in units of half a symbol.
    fn weight(&self, set: Set) -> f64 {
        f64::from(2 * set.count_ones() - (set & self.halved).count_ones())
    }

    /// The share of digests whose character at `position` is in `set`.
    pub fn share(&self, position: usize, set: Set) -> f64 {
        self.weight(set & self.allowed[position]) / self.weight(self.possible[position])
    }

    /// Whether a set leaves out something that texts hold at this position.
    pub fn constrains(&self, position: usize, set: Set) -> bool {
        set & self.allowed[position] != self.possible[position]
    }

    /// Whether something was asked of the low bits.
    pub fn is_restricted(&self) -> bool {
        self.allowed != self.possible
    }

    /// Whether what follows the head has the low bits that were asked for.
    pub fn fits(&self, body: &str) -> bool {
        let is_allowed =
            |(byte, allowed): (u8, &Set)| self.value(byte).is_some_and(|value| allowed >> value & 1 == 1);
        !self.is_restricted() || (body.len() == self.len() && body.bytes().zip(&self.allowed).all(is_allowed))
    }

    /// The chance of each character at a position of a text of this length.
    pub fn chances(&self, length: &Length, position: usize) -> Vec<f64> {
        if let Some(chances) = length.chances.get(position) {
            return chances.clone();
        }
        let allowed = length.allowed[position];
        // Texts that are numbers have chances of their own, above; others have one length.
        let possible = self.possible[position];
        let chance = |index: usize| self.weight(allowed & 1 << index) / self.weight(possible);
        (0..self.characters.len()).map(chance).collect()
    }

    /// The share of digests whose text has a character of each set at its position, taking positions as independent.
    pub fn shares(&self, sets: &[Set]) -> f64 {
        sets.iter().enumerate().map(|(position, &set)| self.share(position, set)).product()
    }

    /// Of the digests with the symbol of this character, the share whose text writes it so.
    pub fn case_share(&self, character: u8) -> f64 {
        self.weight(1 << character) / self.weight(self.characters[usize::from(character)].same_symbol)
    }
}

/// The characters of an alphabet, in its order; with both cases, letters occur in each, one time in two. After them those
/// that only the start has, which are no symbol.
fn characters(alphabet: &str, start: &str, both_cases: bool) -> Vec<Character> {
    let mut characters = Vec::new();
    for (symbol, byte) in alphabet.bytes().enumerate() {
        let upper = byte.to_ascii_uppercase();
        let bytes = if both_cases && upper != byte { vec![byte, upper] } else { vec![byte] };
        let same_symbol = ((1 << bytes.len()) - 1) << characters.len();
        let character = |byte| Character { byte, symbol: symbol as u8, same_symbol };
        characters.extend(bytes.into_iter().map(character));
    }
    let mut others: Vec<u8> = start.bytes().filter(|&byte| !alphabet.contains(char::from(byte))).collect();
    others.sort_unstable();
    others.dedup();
    for byte in others {
        characters.push(Character { byte, symbol: 0, same_symbol: 1 << characters.len() });
    }
    characters
}

/// Leaves the characters at the end that have these low bits.
fn restrict(allowed: &mut [Set], characters: &[Character], width: usize, low: &LowBits) {
    let mut left = low.count as usize;
    for (at, allowed) in allowed.iter_mut().rev().enumerate() {
        let here = left.min(width);
        if here == 0 {
            return;
        }
        left -= here;
        let mask = (1u64 << here) - 1;
        let wanted = low.value >> (at * width) & mask;
        let fits = |(_, character): &(usize, &Character)| u64::from(character.symbol) & mask == wanted;
        *allowed &= characters.iter().enumerate().filter(fits).fold(0, |set, (index, _)| set | 1 << index);
    }
}

/// The digest bit `index` itself, as an affine function; `None` past the last.
fn digest_bit(index: usize) -> Option<BitSum> {
    let mut mask = [0; 4];
    *mask.get_mut(index / 64)? = 1 << (63 - index % 64);
    Some(BitSum { mask, constant: false })
}

/// The characters for the symbols these bits can form. The image of an affine map is an affine space and each point
/// of it has equally many originals, so all of these symbols are equally likely.
fn possible(bits: &[BitSum], characters: &[Character]) -> Set {
    let reachable = |(_, character): &(usize, &Character)| {
        let mut system = System::default();
        let value = character.symbol;
        (bits.iter().rev().enumerate()).all(|(i, bit)| system.require(bit, value >> i & 1 == 1).is_ok())
    };
    characters.iter().enumerate().filter(reachable).fold(0, |set, (index, _)| set | 1 << index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(target: &str, options: &Options) -> Text {
        Text::new(warpsmith_chain::find(target).unwrap(), options)
    }

    #[test]
    fn the_52nd_symbol_of_an_npub_is_q_or_s_and_all_others_are_free() {
        let text = text("npub", &Options::default());
        assert_eq!((text.len(), text.width, text.leading), (58, 5, 51));
        for (position, &allowed) in text.allowed.iter().enumerate() {
            let expected = if position == 51 { 1 | 1 << 16 } else { text.any };
            assert_eq!(allowed, expected, "position {position}");
        }
        assert_eq!(text.characters(text.allowed[51]), "qs");
    }

    #[test]
    fn an_address_has_16_characters_or_22_under_its_checksum() {
        let plain = text("eth", &Options::default());
        assert_eq!((plain.len(), plain.width, plain.leading, plain.any), (40, 4, 40, 0xffff));
        assert_eq!(plain.symbols('A'), 1 << 10);
        assert_eq!((plain.value(b'A'), plain.written(b'A')), (None, Some(10)));
        assert_eq!(plain.share(0, plain.symbols('A')), 1.0 / 16.0);
        assert_eq!(plain.body("0xAb1").as_deref(), Some("ab1"));

        let checked = text("eth", &Options { checksum: true, ..Options::default() });
        assert_eq!((checked.len(), checked.leading, checked.any), (40, 40, (1 << 22) - 1));
        let (upper, lower, digit) = (checked.symbols('A'), checked.symbols('a'), checked.symbols('7'));
        assert_eq!(
            [upper, lower, digit].map(|set| checked.share(3, set)),
            [1.0 / 32.0, 1.0 / 32.0, 1.0 / 16.0]
        );
        assert_eq!(checked.widen(upper), upper | lower);
        assert_eq!(checked.widen(digit), digit);
        assert_eq!(checked.symbols_of(upper | lower | digit), [7, 10]);
        assert_eq!(checked.body("0xAb1").as_deref(), Some("Ab1"));
        assert_eq!(checked.share(0, checked.any), 1.0);
    }
}
