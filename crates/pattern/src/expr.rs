//! Regular expressions over the symbols of a text: what is left of a regex once everything the text cannot hold
//! is gone.
//!
//! Knows how to read a `regex-syntax` tree for one alphabet. In such a text there are no line ends and only word
//! characters, so every assertion is about being at the start or at the end.

use regex_syntax::hir::{Class, Hir, HirKind, Look as HirLook};

use crate::length::Set;
use crate::text::Text;

/// An expression over symbols.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    /// One symbol out of the set; with the empty set it never matches.
    One(Set),
    /// No symbol, but a condition on the place.
    Look(Look),
    /// From `min` to `max` times, or without end.
    Repeat { sub: Box<Expr>, min: usize, max: Option<usize> },
    /// One after the other; with none, the empty text.
    Concat(Vec<Expr>),
    /// Any one of them.
    Either(Vec<Expr>),
}

/// A condition on a place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Before the first symbol.
    Start,
    /// After the last symbol.
    End,
    /// At either of them.
    Edge,
    /// At neither.
    Inner,
}

impl Look {
    /// Whether it holds at a place of a text that is not empty.
    pub fn holds(self, at_start: bool, at_end: bool) -> bool {
        match self {
            Look::Start => at_start,
            Look::End => at_end,
            Look::Edge => at_start || at_end,
            Look::Inner => !at_start && !at_end,
        }
    }
}

impl Expr {
    /// What the regex means for this text.
    pub fn new(hir: &Hir, text: &Text) -> Self {
        debug_assert!(text.bytes().all(|(byte, _)| byte.is_ascii_alphanumeric()));
        match hir.kind() {
            HirKind::Empty => Self::Concat(Vec::new()),
            HirKind::Literal(literal) => {
                let one = |&byte| Self::One(text.value(byte).map_or(0, |value| 1 << value));
                Self::Concat(literal.0.iter().map(one).collect())
            }
            HirKind::Class(class) => Self::One(members(class, text)),
            HirKind::Look(look) => Self::Look(match look {
                HirLook::Start | HirLook::StartLF | HirLook::StartCRLF => Look::Start,
                HirLook::End | HirLook::EndLF | HirLook::EndCRLF => Look::End,
                HirLook::WordAscii | HirLook::WordUnicode => Look::Edge,
                HirLook::WordAsciiNegate | HirLook::WordUnicodeNegate => Look::Inner,
                HirLook::WordStartAscii
                | HirLook::WordStartUnicode
                | HirLook::WordStartHalfAscii
                | HirLook::WordStartHalfUnicode => Look::Start,
                HirLook::WordEndAscii
                | HirLook::WordEndUnicode
                | HirLook::WordEndHalfAscii
                | HirLook::WordEndHalfUnicode => Look::End,
            }),
            HirKind::Repetition(repetition) => Self::Repeat {
                sub: Box::new(Self::new(&repetition.sub, text)),
                min: repetition.min as usize,
                max: repetition.max.map(|max| max as usize),
            },
            HirKind::Capture(capture) => Self::new(&capture.sub, text),
            HirKind::Concat(parts) => Self::Concat(parts.iter().map(|part| Self::new(part, text)).collect()),
            HirKind::Alternation(parts) => {
                Self::Either(parts.iter().map(|part| Self::new(part, text)).collect())
            }
        }
    }

    /// Whether no text can match, whatever its length: every way through has a symbol that there is not.
    pub fn is_never(&self) -> bool {
        match self {
            Self::One(set) => *set == 0,
            Self::Look(_) => false,
            Self::Repeat { sub, min, .. } => *min > 0 && sub.is_never(),
            Self::Concat(parts) => parts.iter().any(Self::is_never),
            Self::Either(parts) => parts.iter().all(Self::is_never),
        }
    }

    /// How often a repetition must be unrolled for a text of `length` symbols: at most that many rounds take a
    /// symbol, and of the rounds that take none, one stands for all (they can be repeated or left out where they
    /// are). So bounds above `length + 1` mean the same as `length + 1`.
    pub fn rounds(min: usize, max: Option<usize>, length: usize) -> (usize, Option<usize>) {
        (min.min(length + 1), max.map(|max| max.min(length + 1)))
    }
}

/// The symbols a class contains.
fn members(class: &Class, text: &Text) -> Set {
    let contains = |byte: u8| match class {
        Class::Unicode(class) => class.iter().any(|r| (r.start()..=r.end()).contains(&char::from(byte))),
        Class::Bytes(class) => class.iter().any(|r| (r.start()..=r.end()).contains(&byte)),
    };
    text.bytes().filter(|(byte, _)| contains(*byte)).fold(0, |set, (_, one)| set | one)
}
