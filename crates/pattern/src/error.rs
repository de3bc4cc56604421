//! Why a pattern is refused, in words a person can act on.
//!
//! Knows how to say it. That something is wrong is found elsewhere.

use std::fmt;

use warpsmith_text::Shown;

use crate::habit::Habit;

/// A pattern that cannot be searched for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pattern '{}': {reason}", Shown(pattern))]
pub struct Error {
    /// Which of the given patterns, counted from 0.
    pub index: usize,
    /// The pattern as given; empty where it must not be repeated.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Nothing is asked for.
    #[error("it matches every key, so there is nothing to search for; write at least one character")]
    EveryKey,
    /// `..` where it has no meaning.
    #[error(
        "it has '..' where that means nothing; write cafe (begins with), ..cafe (ends with), cafe..babe (begins and \
         ends with), ..cafe.. (contains), or /regex/ for more"
    )]
    Dots,
    /// Characters the text never has.
    #[error("{}; {}", Never { head, bad }, Advice { alphabet, bad, suggestion })]
    Characters {
        /// What every text begins with.
        head: &'static str,
        /// The characters that can follow.
        alphabet: &'static str,
        /// The characters that cannot, each with its position in the pattern, counted from 1.
        bad: Vec<(char, usize)>,
        /// A pattern that looks alike and can be searched for, where there is one.
        suggestion: Option<String>,
    },
    /// Written as other programs have it.
    #[error("{habit}{}", Instead(instead))]
    Habit {
        /// In which way.
        habit: Habit,
        /// How it is written here, with what that means; nothing that would be refused.
        instead: Vec<(String, &'static str)>,
    },
    /// More symbols than the text has.
    #[error("it fixes {given} characters, but {target} text has only {most}{}; shorten it", After(head))]
    TooLong {
        /// The target's name.
        target: &'static str,
        /// What every text begins with.
        head: &'static str,
        /// How many characters the pattern has.
        given: usize,
        /// How many the text has.
        most: usize,
    },
    /// A position that can hold only a few symbols.
    #[error(
        "the {} character{} is always {} and never {:?}, so no key matches; change or leave out that character",
        Ordinal(*position), After(head), OneOf(allowed), given
    )]
    Position {
        /// What every text begins with.
        head: &'static str,
        /// The position after the head, counted from 1.
        position: usize,
        /// The characters it can hold.
        allowed: String,
        /// The character the pattern asks for.
        given: char,
    },
    /// A start that no text in base58 has.
    #[error(
        "no {target} text begins so: {} {allowed} and never {given:?}; change that character",
        match start.as_str() {
            "" => "the first character is".to_owned(),
            start => format!("after '{start}' comes one of"),
        }
    )]
    Start {
        /// The target's name.
        target: &'static str,
        /// As far as texts begin so.
        start: String,
        /// The characters that can follow.
        allowed: String,
        /// The character the pattern asks for.
        given: char,
    },
    /// The fixed characters contradict the checksum.
    #[error(
        "the last characters of {target} text are a checksum of the others, and with the others fixed like this it \
         can never be the one asked for; leave some characters open with '?'"
    )]
    Checksum {
        /// The target's name.
        target: &'static str,
    },
    /// A whole text in the wrong case.
    #[error(
        "it fixes every character of {target} text, and EIP-55 writes the letters of this one in another case, so \
         nothing matches; correct the case, or search without the checksum"
    )]
    CaseChecksum {
        /// The target's name.
        target: &'static str,
    },
    /// A run of characters that fits nowhere.
    #[error(
        "it fits nowhere in {target} text, because of the checksum and the fixed bits before it; shorten it"
    )]
    Nowhere {
        /// The target's name.
        target: &'static str,
    },
    /// A regular expression without its closing slash.
    #[error("a regular expression is written between slashes, like /^cafe|babe$/; add the closing '/'")]
    Unclosed,
    /// A regular expression that cannot be read.
    #[error("the regular expression cannot be read: {0}")]
    Regex(String),
    /// A regular expression that no text matches.
    #[error(
        "no {target} text matches this regular expression: it is searched in the {length} characters{}, which are out of \
         {alphabet}",
        After(head)
    )]
    RegexNever {
        /// The target's name.
        target: &'static str,
        /// What every text begins with.
        head: &'static str,
        /// The characters that can follow.
        alphabet: &'static str,
        /// How many follow.
        length: usize,
    },
    /// A secret key pasted as a pattern.
    #[error(
        "it is a SECRET key, which is not repeated here; a pattern is what the public text shall look like"
    )]
    Secret,
    /// More text than can be indexed.
    #[error("there are more than {most} patterns; split them into several searches")]
    TooMany {
        /// How many there can be.
        most: usize,
    },
}

/// " after npub1"; nothing where texts have no common head.
struct After<'a>(&'a str);

impl fmt::Display for After<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " after {}", self.0) }
    }
}

/// "after npub1 there is never 'b' (characters 1 and 3) or 'o' (character 2)".
struct Never<'a> {
    head: &'static str,
    bad: &'a [(char, usize)],
}

impl fmt::Display for Never<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Characters and positions named before the rest is left out.
        const MOST: usize = 8;
        let mut named: Vec<(char, Vec<String>)> = Vec::new();
        for &(character, position) in self.bad.iter().take(MOST) {
            match named.iter_mut().find(|(known, _)| *known == character) {
                Some((_, positions)) => positions.push(position.to_string()),
                None => named.push((character, vec![position.to_string()])),
            }
        }
        let named: Vec<String> = named
            .iter()
            .map(|(character, positions)| {
                let plural = if positions.len() > 1 { "s" } else { "" };
                format!("{character:?} (character{plural} {})", list(positions, "and"))
            })
            .collect();
        match self.head {
            "" => write!(f, "there is never {}", list(&named, "or"))?,
            head => write!(f, "after {head} there is never {}", list(&named, "or"))?,
        }
        if self.bad.len() > MOST { f.write_str(" and more") } else { Ok(()) }
    }
}

/// What can be written instead.
struct Advice<'a> {
    alphabet: &'static str,
    bad: &'a [(char, usize)],
    suggestion: &'a Option<String>,
}

impl fmt::Display for Advice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alphabet, bad, suggestion } = self;
        let is_upper = |character: char| {
            character.is_ascii_uppercase() && alphabet.contains(character.to_ascii_lowercase())
        };
        let has_upper = alphabet.bytes().any(|byte| byte.is_ascii_uppercase());
        if !has_upper && bad.iter().all(|(character, _)| is_upper(*character)) {
            write!(f, "there are only lower case and digits: {alphabet}")?;
        } else {
            write!(f, "the only characters are {alphabet}")?;
        }
        if bad.iter().any(|(character, _)| *character == '.') {
            f.write_str(" (for any one character write '?', for any number of them '..')")?;
        }
        match suggestion {
            Some(suggestion) => write!(f, ". Try '{}'", Shown(suggestion)),
            None => Ok(()),
        }
    }
}

/// ". Try 'cafe' (begins with) or '..cafe' (ends with)".
struct Instead<'a>(&'a [(String, &'static str)]);

impl fmt::Display for Instead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter().map(|(text, means)| match *means {
            "" => format!("'{}'", Shown(text)),
            means => format!("'{}' ({means})", Shown(text)),
        });
        let each: Vec<String> = each.collect();
        if each.is_empty() { Ok(()) } else { write!(f, ". Try {}", list(&each, "or")) }
    }
}

/// "q or s".
struct OneOf<'a>(&'a str);

impl fmt::Display for OneOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let characters: Vec<String> = self.0.chars().map(String::from).collect();
        f.write_str(&list(&characters, "or"))
    }
}

/// "52nd".
struct Ordinal(usize);

impl fmt::Display for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match (self.0 % 10, self.0 % 100) {
            (_, 11..=13) => "th",
            (1, _) => "st",
            (2, _) => "nd",
            (3, _) => "rd",
            _ => "th",
        };
        write!(f, "{}{suffix}", self.0)
    }
}

/// "a", "a and b", "a, b and c".
fn list(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [before @ .., word] => format!("{} {last} {word}", before.join(", ")),
    }
}
