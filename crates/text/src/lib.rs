//! Text in messages: untrusted input escaped and shortened, and errors of JSON and TOML parsers put into words.
//!
//! Knows nothing of what the messages are about.

use std::fmt::{self, Write as _};

/// Joins alternatives: `a`, `a or b`, `a, b or c`.
///
/// ```
/// assert_eq!(warpsmith_text::any_of(&["a", "b", "c"]), "a, b or c");
/// ```
pub fn any_of<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
    }
}

/// Untrusted text for a message: control characters and invisible ones escaped, and cut after 100 characters.
///
/// ```
/// assert_eq!(warpsmith_text::Shown("a\x1b[2J").to_string(), "a\\u{1b}[2J");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_CHARS: usize = 100;
        for character in self.0.chars().take(MAX_CHARS) {
            match character {
                '\n' | '\r' | '\t' | '\0' => write!(f, "{}", character.escape_debug())?,
                _ if is_unprintable(character) => write!(f, "{}", character.escape_unicode())?,
                _ => f.write_char(character)?,
            }
        }
        if self.0.chars().nth(MAX_CHARS).is_some() { f.write_str("...") } else { Ok(()) }
    }
}

/// Returns whether a character must be escaped where untrusted text is printed: control characters, which command a terminal,
/// bidirectional controls, which reorder what stands around them, and characters that leave no visible mark.
///
/// Combining marks stay: file names in decomposed form have them. Characters that this version of Unicode does not assign are
/// escaped.
pub fn is_unprintable(character: char) -> bool {
    // Invisible, though Unicode calls them letters, marks or symbols: grapheme joiner, fillers, inherent vowels, selectors, blank.
    let is_blank = matches!(character,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}');
    // The standard library escapes what is not printable, and a mark only where it stands first.
    let is_escaped = || {
        let (mut pair, mut bytes) = ([0; 8], [0; 4]);
        let encoded = character.encode_utf8(&mut bytes).as_bytes();
        pair[0] = b'a';
        pair[1..=encoded.len()].copy_from_slice(encoded);
        let pair = std::str::from_utf8(&pair[..=encoded.len()]).unwrap_or_default();
        pair.escape_debug().nth(2).is_some()
    };
    match character {
        ' '..='~' => false,
        _ => is_blank || is_escaped(),
    }
}

/// Rewrites a TOML parser's message as what is expected. The caller names the line.
pub fn toml_mistake(message: &str) -> String {
    data_mistake(message).unwrap_or_else(|| {
        "this is not TOML; expected NAME = VALUE, with text in quotes, as in name = 'value'".to_owned()
    })
}

/// Beginnings of serde_json's messages about syntax.
const SYNTAX: [&str; 12] = [
    "expected ",
    "invalid escape",
    "invalid number",
    "invalid unicode",
    "number out of range",
    "control character",
    "key must be",
    "float key",
    "lone leading",
    "trailing comma",
    "unexpected end",
    "recursion limit",
];

/// Rewrites a JSON parser's message, which ends with line and column, as what is expected.
pub fn json_mistake(message: &str) -> String {
    let (what, place) = match message.rsplit_once(" at line ") {
        Some((what, place)) => (what, format!(" (line {})", place.replacen(" column ", ", column ", 1))),
        None => (message, String::new()),
    };
    match data_mistake(what) {
        Some(why) => format!("{why}{place}"),
        None if what.starts_with("EOF") => {
            format!("the JSON ends too early{place}: a bracket or a quote is not closed")
        }
        None if what.starts_with("trailing characters") => format!("text follows the end of the JSON{place}"),
        // Of a type of ours, which explains itself.
        None if !SYNTAX.iter().any(|head| what.starts_with(head)) => format!("{what}{place}"),
        None => format!("this is not JSON{place}; expected an object as in {{\"name\": \"value\"}}"),
    }
}

/// Rewrites serde's message about data that parses but does not fit the type; none for another message. SEC: values are not
/// repeated.
fn data_mistake(message: &str) -> Option<String> {
    let message = message.lines().next().unwrap_or_default();
    let plain = |text: &str| text.replace('`', "");
    if let Some(name) = message.strip_prefix("missing field ") {
        return Some(format!("{} is missing", plain(name)));
    }
    for head in ["unknown field ", "unknown variant "] {
        if let Some((name, known)) = message.strip_prefix(head).and_then(|rest| rest.split_once(", ")) {
            return Some(format!("there is no {}; {}", Shown(&plain(name)), plain(known)));
        }
    }
    if let Some(name) = message.strip_prefix("duplicate ") {
        let name = plain(name.strip_prefix("field ").unwrap_or("the name"));
        return Some(format!("{} is given twice", Shown(&name)));
    }
    if message.starts_with("data did not match any variant") {
        return Some("the value is of a type that is not expected here".to_owned());
    }
    // Syntax errors of TOML begin with "invalid" too.
    let heads = ["type: ", "value: ", "length "];
    let rest =
        message.strip_prefix("invalid ").filter(|rest| heads.iter().any(|head| rest.starts_with(head)))?;
    let (given, expected) = rest.rsplit_once(", expected ")?;
    let expected = expected_type(expected);
    let given = given.strip_prefix("type: ").map(given_type);
    match given.filter(|given| !expected.starts_with(given)) {
        Some(given) => Some(format!("expected {expected}, not {given}")),
        None => Some(format!("expected {expected}")),
    }
}

/// Describes a type that serde expects.
fn expected_type(text: &str) -> String {
    match text {
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a string" => "text in quotes".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a map" => "a name and a value for each".to_owned(),
        _ if text.starts_with("struct ") => "names with values".to_owned(),
        other => other.replace('`', ""),
    }
}

/// Describes the type that serde was given, without the value.
fn given_type(text: &str) -> &'static str {
    match text.split([' ', '`']).next() {
        Some("integer") => "a whole number",
        Some("floating") => "a number with a fraction",
        Some("string" | "character") => "text in quotes",
        Some("boolean") => "true or false",
        Some("sequence") => "a list",
        Some("map") => "names with values",
        Some("null" | "unit" | "Option") => "nothing",
        _ => "this",
    }
}

#[cfg(test)]
mod tests {
    use super::{Shown, any_of, is_unprintable, json_mistake, toml_mistake};

    #[test]
    fn what_was_given_is_shown_without_harm() {
        assert_eq!(Shown("it's \"a\" \\ b").to_string(), "it's \"a\" \\ b");
        assert_eq!(Shown("\x1b[2J\0\n\u{202e}").to_string(), "\\u{1b}[2J\\0\\n\\u{202e}");
        assert_eq!(Shown(&"x".repeat(101)).to_string(), "x".repeat(100) + "...");
    }

    #[test]
    fn characters_that_are_not_seen_are_known() {
        for hidden in "\u{0}\u{1b}\u{7f}\u{9b}\u{ad}\u{34f}\u{61c}\u{115f}\u{180e}\u{200b}\u{200d}\u{200f}\u{2028}\u{202a}\
                       \u{202e}\u{2060}\u{2066}\u{2069}\u{206f}\u{2800}\u{3164}\u{fe0f}\u{feff}\u{ffa0}\u{fff9}\u{1d173}\
                       \u{e0001}\u{e0041}\u{e0100}"
            .chars()
        {
            assert!(is_unprintable(hidden), "{hidden:?}");
        }
        for seen in "a '\"\\~\u{301}äß東京Ωж‰→…✓🙂".chars() {
            assert!(!is_unprintable(seen), "{seen:?}");
        }
        assert_eq!(Shown("a\u{3164}\u{fe0f}").to_string(), "a\\u{3164}\\u{fe0f}");
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(any_of::<&str>(&[]), "");
        assert_eq!(any_of(&["a"]), "a");
        assert_eq!(any_of(&["a", "b"]), "a or b");
        assert_eq!(any_of(&["a", "b", "c"]), "a, b or c");
    }

    #[test]
    fn mistakes_in_data_say_what_is_allowed() {
        #[derive(serde::Deserialize, Debug)]
        #[serde(deny_unknown_fields)]
        #[allow(dead_code)]
        struct Data {
            name: String,
            #[serde(default)]
            count: u32,
            #[serde(default)]
            list: Vec<f64>,
        }
        for (text, says) in [
            ("{}", "name is missing (line 1, column 2)"),
            ("{\"name\":5}", "expected text in quotes, not a whole number (line 1, column"),
            ("{\"name\":\"\",\"count\":-1}", "expected a whole number from 0 to 4294967295 (line"),
            ("{\"name\":\"\",\"count\":\"secret\"}", "from 0 to 4294967295, not text in quotes (line"),
            ("{\"name\":\"\",\"list\":{}}", "expected a list, not names with values (line"),
            ("{\"name\":\"\",\"list\":[null]}", "expected a number, not nothing (line"),
            ("{\"nam\":5}", "there is no nam; expected one of name, count, list (line"),
            ("{\"name\":\"\",\"name\":\"\"}", "name is given twice (line"),
            ("{nam", "this is not JSON (line 1, column 2); expected an object"),
            ("nope", "expected an object as in"),
            ("{\"name\":\"", "the JSON ends too early (line 1, column"),
            ("{\"name\":\"\"}x", "text follows the end of the JSON (line 1, column 12)"),
            ("5", "expected names with values, not a whole number"),
        ] {
            let error = serde_json::from_str::<Data>(text).unwrap_err().to_string();
            let said = json_mistake(&error);
            assert!(said.contains(says) && !said.contains("secret"), "{text}: {said} ({error})");
        }
        assert_eq!(
            json_mistake("'0xg' is no code at line 1 column 7"),
            "'0xg' is no code (line 1, column 7)"
        );
        for (text, says) in [
            ("", "name is missing"),
            ("name = 5", "expected text in quotes, not a whole number"),
            ("nam = 5", "there is no nam; expected one of name, count, list"),
            ("name = ''\nname = ''", "the name is given twice"),
            ("name = x", "this is not TOML; expected NAME = VALUE"),
            ("name = [", "this is not TOML"),
            ("= 5", "this is not TOML"),
        ] {
            let error = toml::from_str::<Data>(text).unwrap_err();
            let said = toml_mistake(error.message());
            assert!(said.contains(says), "{text}: {said} ({})", error.message());
        }
    }
}
