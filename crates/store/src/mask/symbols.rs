//! The characters of a mask: which alphabet they are of, and what each may be.

use warpsmith_chain::coin::wif_heads;

use super::{MOST_MISSING, MaskError};

/// What a character may be: values of the alphabet, ascending, without repetition.
pub(super) type Choices = Vec<u8>;

/// What texts of a kind are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    Hex,
    /// Wallet import format: 52 characters where the public key is compressed, 51 where it is not.
    Wif {
        compressed: bool,
    },
    /// NIP-19, what follows `nsec1`.
    Nsec,
}

const HEX: &str = "0123456789abcdef";
const BASE58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BECH32: &str = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const NSEC: &str = "nsec1";

/// A character as it was written: some that it may be, or any.
type Written = Option<Vec<char>>;

impl Alphabet {
    pub fn name(self) -> &'static str {
        match self {
            Self::Hex => "hexadecimal key",
            Self::Wif { compressed: true } => "compressed WIF key",
            Self::Wif { compressed: false } => "uncompressed WIF key",
            Self::Nsec => "nsec",
        }
    }

    fn allowed(self) -> &'static str {
        match self {
            Self::Hex => "0 to 9 and a to f",
            Self::Wif { .. } => "letters and digits but 0, O, I and l",
            Self::Nsec => "lower-case letters and digits but 1, b, i and o",
        }
    }

    fn characters(self) -> &'static str {
        match self {
            Self::Hex => HEX,
            Self::Wif { .. } => BASE58,
            Self::Nsec => BECH32,
        }
    }

    /// How many values a character can have.
    pub fn size(self) -> u8 {
        self.characters().len() as u8
    }

    /// Which kind of text it is, and what each of its characters may be; of an nsec those behind the first five.
    pub fn read(text: &str, missing: usize) -> Result<(Self, Vec<Choices>), MaskError> {
        let (first, written) = match (text.get(..5), text.get(..2)) {
            (Some(head), _) if head.eq_ignore_ascii_case(NSEC) => (5, split(&text[5..], 5)?),
            (_, Some("0x" | "0X")) => (2, split(&text[2..], 2)?),
            _ => (0, split(text, 0)?),
        };
        let length = written.len() + missing;
        let alphabet = match (first, length) {
            (5, 58) => Self::Nsec,
            (0 | 2, 64) => Self::Hex,
            (0, 52) => Self::Wif { compressed: true },
            (0, 51) => Self::Wif { compressed: false },
            _ => {
                let (given, like) = match first {
                    5 => (length + 5, Some((Self::Nsec.name(), 63))),
                    _ => (length, Self::alike(&written, length)),
                };
                let like = like.filter(|(_, wanted)| wanted.abs_diff(given) + missing <= MOST_MISSING);
                return Err(MaskError::Length { given, missing, like });
            }
        };
        // How a WIF key begins tells its length, unless its first character may be missing.
        if let (Self::Wif { compressed }, 0, Some(Some(_))) = (alphabet, missing, written.first())
            && !begins_wif(&written, compressed)
        {
            let other = Self::Wif { compressed: !compressed };
            return Err(match begins_wif(&written, !compressed) {
                true => {
                    MaskError::Length { given: length, missing, like: Some((other.name(), 103 - length)) }
                }
                false => MaskError::Empty("no WIF key begins with its first character"),
            });
        }
        let choices = (first + 1..).zip(&written).map(|(at, written)| alphabet.choices(at, written));
        let choices = choices.collect::<Result<Vec<_>, _>>()?;
        Ok((alphabet, choices))
    }

    /// The kind of text that this begins like, with the length nearest to this one.
    fn alike(written: &[Written], length: usize) -> Option<(&'static str, usize)> {
        let is_hex =
            |written: &Written| written.as_ref().is_none_or(|some| some.iter().any(char::is_ascii_hexdigit));
        let wif = |compressed: bool| begins_wif(written, compressed);
        let kinds = [
            (Self::Hex, 64, written.iter().all(is_hex)),
            (Self::Wif { compressed: true }, 52, wif(true)),
            (Self::Wif { compressed: false }, 51, wif(false)),
        ];
        let kinds = kinds.into_iter().filter(|(.., is_alike)| *is_alike);
        kinds.map(|(kind, of, _)| (kind.name(), of)).min_by_key(|(_, of): &(_, usize)| of.abs_diff(length))
    }

    /// Whether these choices include this character.
    pub fn has(self, choices: &Choices, character: char) -> bool {
        self.characters().find(character).is_some_and(|value| choices.contains(&(value as u8)))
    }

    /// What a character may be.
    fn choices(self, at: usize, written: &Written) -> Result<Choices, MaskError> {
        let Some(written) = written else { return Ok((0..self.size()).collect()) };
        let value = |character: &char| {
            let character = if self == Self::Hex || self == Self::Nsec {
                character.to_ascii_lowercase()
            } else {
                *character
            };
            self.characters().find(character).map(|value| value as u8)
        };
        // Of several that look alike, some are no characters of these texts.
        let mut values: Choices = written.iter().filter_map(value).collect();
        values.sort_unstable();
        values.dedup();
        if values.is_empty() {
            return Err(MaskError::Character { at, kind: self.name(), allowed: self.allowed() });
        }
        Ok(values)
    }
}

/// Whether the first character may be that of a WIF key.
fn begins_wif(written: &[Written], compressed: bool) -> bool {
    match written.first() {
        Some(Some(first)) => wif_heads(compressed).any(|(head, ..)| first.contains(&head)),
        _ => false,
    }
}

/// The characters of a text, `before` having gone before.
fn split(text: &str, before: usize) -> Result<Vec<Written>, MaskError> {
    let (mut written, mut characters) = (Vec::new(), text.chars());
    while let Some(character) = characters.next() {
        let wrong = MaskError::Brackets(before + written.len() + 1);
        written.push(match character {
            '?' => None,
            '[' => Some(bracketed(&mut characters).ok_or(wrong)?),
            ']' => return Err(wrong),
            character => Some(vec![character]),
        });
    }
    Ok(written)
}

/// What stands between brackets, the first of which was read: characters, and ranges of them.
fn bracketed(characters: &mut std::str::Chars<'_>) -> Option<Vec<char>> {
    let (mut among, mut is_range) = (Vec::new(), false);
    for character in characters {
        match character {
            ']' => return (!among.is_empty() && !is_range).then_some(among),
            '-' if !among.is_empty() && !is_range => is_range = true,
            '[' | '?' | '-' => return None,
            last if is_range => {
                let first = among.pop()?;
                if first > last || !first.is_ascii_alphanumeric() || !last.is_ascii_alphanumeric() {
                    return None;
                }
                among.extend(first..=last);
                is_range = false;
            }
            character => among.push(character),
        }
    }
    None
}
