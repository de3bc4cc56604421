//! The text of a target as patterns see it: a head, then positions that each hold one symbol of an alphabet.
//!
//! Knows which symbols each position can hold and which positions are plain digest bits. Knows no syntax.

use warpsmith_target::{Affine, Layout, Linear, Target};

use crate::system::System;

/// A set of symbol values, one bit each. Alphabets have at most 64 symbols.
pub(crate) type Set = u64;

/// The fixed facts about a target's text.
pub(crate) struct Text {
    pub target: &'static dyn Target,
    pub layout: &'static Linear,
    pub ignore_case: bool,
    /// The symbol of each byte; [`Text::NONE`] where there is none.
    values: [u8; 256],
    /// For each position the symbols it can hold; each is equally likely for a random digest.
    pub allowed: Vec<Set>,
    /// All symbols.
    pub any: Set,
    /// Bits of a symbol.
    pub width: usize,
    /// How many leading positions are the digest's leading bits, in order and unchanged.
    pub leading: usize,
}

impl Text {
    const NONE: u8 = u8::MAX;

    pub fn new(target: &'static dyn Target, ignore_case: bool) -> Self {
        let layout = match target.layout() {
            Layout::Linear(linear) => linear,
            other => unreachable!("target {} has a layout patterns do not know: {other:?}", target.name()),
        };
        let width = layout.alphabet.len().trailing_zeros() as usize;
        assert!(
            layout.alphabet.len() == 1 << width && layout.alphabet.len() <= 64,
            "a linear alphabet has a power of two of symbols, at most 64"
        );
        let mut values = [Self::NONE; 256];
        for (value, &byte) in layout.alphabet.iter().enumerate() {
            values[usize::from(byte)] = value as u8;
        }
        let any = u64::MAX >> (64 - layout.alphabet.len());
        let allowed = layout.symbols.iter().map(|bits| possible(bits, any)).collect();
        let in_place = |(position, bits): &(usize, &Vec<Affine>)| {
            bits.iter().enumerate().all(|(i, bit)| digest_bit(position * width + i) == Some(*bit))
        };
        let leading = layout.symbols.iter().enumerate().take_while(in_place).count();
        Self { target, layout, ignore_case, values, allowed, any, width, leading }
    }

    /// How many symbols follow the head.
    pub fn len(&self) -> usize {
        self.allowed.len()
    }

    /// The symbol value of a byte.
    pub fn value(&self, byte: u8) -> Option<u8> {
        Some(self.values[usize::from(byte)]).filter(|&value| value != Self::NONE)
    }

    /// The symbols a written character stands for; empty when the text cannot hold it.
    pub fn symbols(&self, character: char) -> Set {
        let Ok(byte) = u8::try_from(character) else { return 0 };
        let one = |byte| self.value(byte).map_or(0, |value| 1 << value);
        match self.ignore_case {
            false => one(byte),
            true => one(byte.to_ascii_lowercase()) | one(byte.to_ascii_uppercase()),
        }
    }

    /// What follows the head in a whole text.
    pub fn body<'t>(&self, text: &'t str) -> Option<&'t str> {
        text.strip_prefix(self.layout.head)
    }

    /// What follows the head in a pattern, where it was written with one.
    pub fn strip_head<'t>(&self, written: &'t str) -> &'t str {
        let head = self.layout.head;
        match written.get(..head.len()) {
            Some(start) if start == head || (self.ignore_case && start.eq_ignore_ascii_case(head)) => {
                &written[head.len()..]
            }
            _ => written,
        }
    }

    /// The characters of a set, in the order of the alphabet.
    pub fn characters(&self, set: Set) -> String {
        let alphabet = self.layout.alphabet.iter().enumerate();
        alphabet.filter(|(value, _)| set >> value & 1 == 1).map(|(_, &byte)| char::from(byte)).collect()
    }

    /// The share of digests whose symbol at `position` is in `set`.
    pub fn share(&self, position: usize, set: Set) -> f64 {
        let allowed = self.allowed[position];
        f64::from((set & allowed).count_ones()) / f64::from(allowed.count_ones())
    }

    /// The share of digests whose text has a symbol of each set at its position, taking positions as independent.
    pub fn shares(&self, sets: &[Set]) -> f64 {
        sets.iter().enumerate().map(|(position, &set)| self.share(position, set)).product()
    }
}

/// The digest bit `index` itself, as an affine function; `None` past the last.
fn digest_bit(index: usize) -> Option<Affine> {
    let mut mask = [0; 4];
    *mask.get_mut(index / 64)? = 1 << (63 - index % 64);
    Some(Affine { mask, constant: false })
}

/// The symbols these bits can form. The image of an affine map is an affine space and each point of it has equally
/// many originals, so all of them are equally likely.
fn possible(bits: &[Affine], any: Set) -> Set {
    let reachable = |value: &u64| {
        let mut system = System::default();
        (bits.iter().rev().enumerate()).all(|(i, bit)| system.require(bit, value >> i & 1 == 1).is_ok())
    };
    (0..u64::from(any.count_ones())).filter(reachable).fold(0, |set, value| set | 1 << value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_52nd_symbol_of_an_npub_is_q_or_s_and_all_others_are_free() {
        let text = Text::new(warpsmith_target::find("npub").unwrap(), false);
        assert_eq!((text.len(), text.width, text.leading), (58, 5, 51));
        for (position, &allowed) in text.allowed.iter().enumerate() {
            let expected = if position == 51 { 1 | 1 << 16 } else { text.any };
            assert_eq!(allowed, expected, "position {position}");
        }
        assert_eq!(text.characters(text.allowed[51]), "qs");
    }
}
