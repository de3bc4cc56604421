//! Salts: 32 bytes of which some are fixed and the others counted through.
//!
//! Which candidate has which salt is defined here, once for the host and all devices: the free bytes come from a
//! random base, and the last eight of them (all, where there are fewer) count.

use std::fmt;
use std::ops::Range;

/// Which bytes of a salt are fixed, and to what.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SaltMask {
    /// Zero where the byte is free.
    fixed: [u8; 32],
    free: [bool; 32],
}

/// A salt mask that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MaskError {
    /// Too few or too many digits.
    #[error("a salt mask has 64 digits (32 bytes), not {given}; write free bytes as ??")]
    Length {
        /// How many there are.
        given: usize,
    },
    /// Neither a digit nor free.
    #[error("digit {position} of the salt mask is {character:?}; it can be 0-9, a-f, or ? for free")]
    Character {
        /// The character.
        character: char,
        /// Its position after 0x, counted from 1.
        position: usize,
    },
    /// Half a byte free.
    #[error("byte {byte} of the salt mask is half free; bytes are free as a whole: write {}", if *.fixed_first { "?? or two digits" } else { "two digits or ??" })]
    HalfFree {
        /// Which byte, counted from 1.
        byte: usize,
        /// Whether its first half is the fixed one.
        fixed_first: bool,
    },
    /// Nothing to search.
    #[error("the salt mask has no free byte, so there is only one candidate; write some bytes as ??")]
    NothingFree,
}

impl SaltMask {
    /// Every byte free.
    pub const FREE: Self = Self { fixed: [0; 32], free: [true; 32] };

    /// Bytes that count at most.
    const COUNTED: usize = 8;

    /// Fixes the leading bytes of a mask that is free from there on.
    ///
    /// # Panics
    ///
    /// When no byte would be left free.
    pub fn beginning(with: &[u8]) -> Self {
        assert!(with.len() < 32, "a salt mask has at least one free byte");
        let mut mask = Self::FREE;
        mask.fixed[..with.len()].copy_from_slice(with);
        mask.free[..with.len()].fill(false);
        mask
    }

    /// This salt and no other: nothing is free, so there is nothing to search.
    pub fn only(salt: [u8; 32]) -> Self {
        Self { fixed: salt, free: [false; 32] }
    }

    /// Only these bytes free, and the others as they are in `around`.
    pub fn within(around: &[u8; 32], free: Range<usize>) -> Self {
        let mut mask = Self::only(*around);
        mask.fixed[free.clone()].fill(0);
        mask.free[free].fill(true);
        mask
    }

    /// Reads 64 hex digits, with or without `0x`, where `??` is a free byte.
    pub fn parse(text: &str) -> Result<Self, MaskError> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let mut mask = Self { fixed: [0; 32], free: [false; 32] };
        let given = digits.chars().count();
        for (index, character) in digits.chars().enumerate() {
            if character != '?' && !character.is_ascii_hexdigit() {
                return Err(MaskError::Character { character, position: index + 1 });
            }
        }
        if given != 64 {
            return Err(MaskError::Length { given });
        }
        // From here on every character is one byte.
        for (byte, pair) in digits.as_bytes().chunks_exact(2).enumerate() {
            let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
            match (value(pair[0]), value(pair[1])) {
                (Some(high), Some(low)) => mask.fixed[byte] = high << 4 | low,
                (None, None) => mask.free[byte] = true,
                (high, _) => {
                    return Err(MaskError::HalfFree { byte: byte + 1, fixed_first: high.is_some() });
                }
            }
        }
        if mask.free == [false; 32] { Err(MaskError::NothingFree) } else { Ok(mask) }
    }

    /// The fixed bytes; zero where a byte is free.
    pub fn fixed(&self) -> &[u8; 32] {
        &self.fixed
    }

    /// Which bytes are free.
    pub fn free(&self) -> &[bool; 32] {
        &self.free
    }

    /// The positions of the bytes that count, first the one with the counter's least significant byte: the last free
    /// ones, from the last on.
    pub fn counted(&self) -> impl Iterator<Item = usize> {
        (0..32).rev().filter(|&byte| self.free[byte]).take(Self::COUNTED)
    }

    /// The salt of a candidate: fixed bytes, free bytes out of `base`, and the counter in the last free bytes, its
    /// least significant byte last.
    pub fn fill(&self, base: &[u8; 32], counter: u64) -> [u8; 32] {
        let mut salt = self.fixed;
        for byte in 0..32 {
            if self.free[byte] {
                salt[byte] = base[byte];
            }
        }
        for (byte, value) in self.counted().zip(counter.to_le_bytes()) {
            salt[byte] = value;
        }
        salt
    }

    /// How many counters give different salts, where that is fewer than 2^64.
    pub fn count(&self) -> Option<u64> {
        1u64.checked_shl(8 * self.counted().count() as u32)
    }

    /// The value of a byte, where it is fixed.
    pub fn byte(&self, byte: usize) -> Option<u8> {
        (!self.free[byte]).then_some(self.fixed[byte])
    }

    /// Whether all of these bytes are fixed.
    pub fn is_fixed(&self, bytes: Range<usize>) -> bool {
        self.free[bytes].iter().all(|&free| !free)
    }

    /// Whether some filling of the free bytes begins with these bytes.
    pub fn can_begin(&self, with: &[u8]) -> bool {
        with.iter().enumerate().all(|(byte, &value)| self.free[byte] || self.fixed[byte] == value)
    }

    /// Whether every filling of the free bytes begins with these bytes.
    pub fn must_begin(&self, with: &[u8]) -> bool {
        self.can_begin(with) && self.is_fixed(0..with.len())
    }
}

impl fmt::Display for SaltMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        for byte in 0..32 {
            match self.free[byte] {
                true => f.write_str("??")?,
                false => write!(f, "{:02x}", self.fixed[byte])?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for SaltMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SaltMask({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counting_fills_the_last_free_bytes_least_significant_last() {
        let base: [u8; 32] = std::array::from_fn(|i| 0xa0 + i as u8);
        let salt = SaltMask::FREE.fill(&base, 0x0102_0304_0506_0708);
        assert_eq!(salt[..24], base[..24]);
        assert_eq!(salt[24..], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(SaltMask::FREE.count(), None);

        let scattered = format!("0x??11??{}??22", "00".repeat(27));
        let mask = SaltMask::parse(&scattered).unwrap();
        assert_eq!(mask.to_string(), scattered);
        assert_eq!(mask.count(), Some(1 << 24));
        let salt = mask.fill(&base, 0x0102_0304);
        assert_eq!((salt[0], salt[1], salt[2], salt[30], salt[31]), (2, 0x11, 3, 4, 0x22));
        assert_eq!(salt[3..30], [0; 27]);
    }

    #[test]
    fn eight_free_bytes_count_without_end_and_seven_do_not() {
        assert_eq!(SaltMask::beginning(&[7; 24]).count(), None);
        assert_eq!(SaltMask::beginning(&[7; 25]).count(), Some(1 << 56));
        assert_eq!(SaltMask::beginning(&[7; 31]).count(), Some(256));
    }

    #[test]
    fn masks_that_cannot_be_used_say_why() {
        let parse = |text: &str| SaltMask::parse(text).unwrap_err().to_string();
        assert!(parse(&"0".repeat(64)).contains("no free byte"));
        assert!(parse(&"?".repeat(63)).contains("not 63"));
        assert!(parse("").contains("not 0"));
        assert!(parse(&format!("0x{}", "?".repeat(66))).contains("not 66"));
        assert!(parse(&format!("{}?0{}", "0".repeat(4), "0".repeat(58))).contains("byte 3"));
        assert!(parse(&format!("{}0?", "?".repeat(62))).contains("byte 32"));
        assert!(parse(&format!("{}g?", "?".repeat(62))).contains("digit 63 of the salt mask is 'g'"));
        assert!(parse(&format!("é{}", "?".repeat(63))).contains("'é'"));
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_back_and_fills_as_defined(
            fixed: [u8; 32], free: [bool; 32], base: [u8; 32], counter: u64
        ) {
            prop_assume!(free.contains(&true));
            let byte = |(value, free): (&u8, &bool)| if *free { "??".to_owned() } else { format!("{value:02X}") };
            let text: String = fixed.iter().zip(&free).map(byte).collect();
            let mask = SaltMask::parse(&text).unwrap();
            prop_assert_eq!(SaltMask::parse(&mask.to_string()), Ok(mask));
            prop_assert_eq!(mask.free(), &free);
            // Naively, from the end: counter bytes as long as there are any, then the base.
            let mut left = counter.to_le_bytes().to_vec();
            left.reverse();
            let mut expected = [0; 32];
            for i in (0..32).rev() {
                expected[i] = if !free[i] { fixed[i] } else { left.pop().unwrap_or(base[i]) };
            }
            prop_assert_eq!(mask.fill(&base, counter), expected);
        }
    }
}
