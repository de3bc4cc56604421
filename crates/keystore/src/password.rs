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
}
