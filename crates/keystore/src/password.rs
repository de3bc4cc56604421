//! Passwords, in the forms that standards hash.

use std::fmt;

use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

use crate::{Error, Result};

/// A password: not empty, erased when dropped, never printed.
#[derive(Clone)]
pub struct Password(Zeroizing<String>);

/// Bytes that one byte of text can become in a normal form: U+FDFA has three and becomes 33.
const GROWTH: usize = 11;

/// Bits from which on a password withstands guessing at the cost of a guess in the formats here: five random words of a list of 7776.
const STRONG_BITS: f64 = 64.0;

/// Bits of a word out of 7776.
const WORD_BITS: f64 = 12.92;

/// What lists of leaked passwords are full of.
const COMMON: [&str; 18] = [
    "password",
    "passwort",
    "passw0rd",
    "p@ssw0rd",
    "qwertyuiop",
    "qwerty",
    "asdfgh",
    "letmein",
    "welcome",
    "iloveyou",
    "dragon",
    "monkey",
    "secret",
    "admin",
    "bitcoin",
    "ethereum",
    "nostr",
    "correcthorsebatterystaple",
];

impl Password {
    /// A password as it was typed.
    pub fn new(text: Zeroizing<String>) -> Result<Self> {
        if text.is_empty() { Err(Error::EmptyPassword) } else { Ok(Self(text)) }
    }

    /// As it was typed: what geth and most tools hash.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// In normal form C (BIP-38).
    pub fn nfc(&self) -> Zeroizing<String> {
        self.collect(self.0.nfc())
    }

    /// In normal form KC (NIP-49).
    pub fn nfkc(&self) -> Zeroizing<String> {
        self.collect(self.0.nfkc())
    }

    /// Whether programs that normalise it, as ethers does, and those that do not hash the same bytes.
    pub fn is_the_same_everywhere(&self) -> bool {
        *self.nfkc() == *self.0 && *self.nfc() == *self.0
    }

    /// Returns whether it is easier to guess than five random words, as far as its characters tell.
    ///
    /// An estimate from above: a sentence out of a book passes. Characters count by the kinds that occur, runs such as `aaaa` and
    /// `1234` and the words that everybody uses hardly at all, and words between separators as drawn from a list of 7776.
    pub fn is_weak(&self) -> bool {
        self.bits() < STRONG_BITS
    }

    fn bits(&self) -> f64 {
        // SEC: with room from the start, so that the text never moves. Lower case has at most one more byte a character.
        let mut text = Zeroizing::new(String::with_capacity(3 * self.0.len()));
        text.extend(self.0.chars().flat_map(char::to_lowercase));
        let common: f64 = COMMON.iter().map(|word| text.matches(word).count() as f64).sum();
        let in_common: usize =
            COMMON.iter().map(|word| text.matches(word).count() * word.chars().count()).sum();
        let has = |kind: fn(&char) -> bool| self.0.chars().any(|c| kind(&c));
        let kinds = [
            (has(char::is_ascii_lowercase), 26.0),
            (has(char::is_ascii_uppercase), 26.0),
            (has(char::is_ascii_digit), 10.0),
            (has(|c| c.is_ascii() && !c.is_ascii_alphanumeric()), 33.0),
            (has(|c| !c.is_ascii()), 100.0),
        ];
        let kinds: f64 = kinds.iter().filter(|(is_there, _)| *is_there).map(|(_, size)| size).sum();
        // Of a run, as 1234, cba or aaa, the first two count.
        let mut before: [Option<i64>; 2] = [None; 2];
        let new = text.chars().filter(|c| {
            let code = i64::from(u32::from(*c));
            let step = before[1].map(|last| code - last);
            let is_run = step.is_some_and(|step| {
                step.abs() <= 1 && before[0].zip(before[1]).is_some_and(|(a, b)| b - a == step)
            });
            before = [before[1], Some(code)];
            !is_run
        });
        let characters =
            new.count().saturating_sub(in_common) as f64 * kinds.max(2.0).log2() + common * WORD_BITS / 2.0;
        let words: Vec<&str> =
            text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).collect();
        let others = text.chars().filter(|c| !c.is_alphabetic()).count() as f64;
        match words.len() > 1 && words.iter().all(|word| (3..=10).contains(&word.chars().count())) {
            // A separator that is the same each time adds nothing.
            true => characters
                .min(words.len() as f64 * WORD_BITS + (others - words.len() as f64 + 1.0).max(0.0) * 3.0),
            false => characters,
        }
    }

    /// SEC: with room from the start, so that the text never moves.
    fn collect(&self, characters: impl Iterator<Item = char>) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(GROWTH * self.0.len() + 4));
        text.extend(characters);
        text
    }
}

impl PartialEq for Password {
    fn eq(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(text: &str) -> Password {
        Password::new(text.to_owned().into()).unwrap()
    }

    /// The example of NIP-49, and the text that grows most.
    #[test]
    fn normal_forms_are_those_of_the_standards() {
        assert_eq!(*password("\u{212b}\u{2126}\u{1e9b}\u{323}").nfkc(), "\u{c5}\u{3a9}\u{1e69}");
        assert_eq!(*password("\u{3d2}\u{301}").nfc(), "\u{3d3}");
        let long = password(&"\u{fdfa}".repeat(50));
        let (text, room) = (long.nfkc(), GROWTH * 150 + 4);
        assert!(text.len() > 1500 && text.capacity() == room, "{} of {}", text.len(), text.capacity());
        assert!(password("plain").is_the_same_everywhere() && !long.is_the_same_everywhere());
        assert!(Password::new(Zeroizing::default()).is_err());
        assert_eq!(format!("{:?}", password("plain")), "Password([redacted])");
    }

    #[test]
    fn weak_passwords_are_known() {
        for weak in [
            "p",
            "Password123!",
            "PasswordPassword1",
            "12345678901234567890",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "abcdefghijklmnopqrstuvwxyz",
            "qwertyuiop2024!",
            "x7#kQ2!m",
            "kitchen garden",
            "correct horse battery staple",
        ] {
            assert!(password(weak).is_weak(), "{weak}: {}", password(weak).bits());
        }
        for strong in [
            "reptile-unfazed-glamour-pushing-cosmetic-sprain",
            "reptile unfazed glamour pushing cosmetic",
            "x7#kQ2!mV9@zL4",
            "kqvmzrtwpbnxhdjc",
            "d41d8cd98f00b204e9",
            "žluťoučký kůň příšerně úpěl ďábelské ódy",
        ] {
            assert!(!password(strong).is_weak(), "{strong}: {}", password(strong).bits());
        }
    }
}
