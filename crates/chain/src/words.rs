//! Words of messages.

use std::fmt::{self, Write as _};

/// `a`, `a or b`, `a, b or c`.
pub(crate) fn any_of<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
    }
}

/// A text that somebody gave, for a message: nothing a terminal obeys or that is not seen, and not too much of it.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 100;
        for character in self.0.chars().take(MOST) {
            match character {
                '\'' | '"' | '\\' => f.write_char(character)?,
                _ => write!(f, "{}", character.escape_debug())?,
            }
        }
        if self.0.chars().nth(MOST).is_some() { f.write_str("...") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Shown, any_of};

    #[test]
    fn what_was_given_is_shown_without_harm() {
        assert_eq!(Shown("it's \"a\" \\ b").to_string(), "it's \"a\" \\ b");
        assert_eq!(Shown("\x1b[2J\0\n\u{202e}").to_string(), "\\u{1b}[2J\\0\\n\\u{202e}");
        assert_eq!(Shown(&"x".repeat(101)).to_string(), "x".repeat(100) + "...");
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(any_of::<&str>(&[]), "");
        assert_eq!(any_of(&["a"]), "a");
        assert_eq!(any_of(&["a", "b"]), "a or b");
        assert_eq!(any_of(&["a", "b", "c"]), "a, b or c");
    }
}
