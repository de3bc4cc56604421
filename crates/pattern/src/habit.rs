//! Patterns written as other programs have them: with commas between, with stars, with anchors, or as a regular expression
//! without its slashes.
//!
//! Knows what was meant and how that is written here. Whether it is possible is for the caller to say, so that nothing is
//! proposed that would be refused.

use std::fmt;

use crate::Reason;

/// A way of writing that means something elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Habit {
    /// `cafe,face`.
    Commas,
    /// `^cafe`, `cafe$`.
    Anchors,
    /// `cafe*`.
    Stars,
    /// `ca[fe]`.
    Regex,
}

impl fmt::Display for Habit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Habit::Commas => "no text has a comma in it; separate patterns by spaces",
            Habit::Anchors => {
                "'^' and '$' are the ends of a text in regular expressions only, which are written between slashes"
            }
            Habit::Stars => "'*' means nothing here; any number of characters is written '..'",
            Habit::Regex => "it looks like a regular expression, and those are written between slashes",
        })
    }
}

/// What is meant by a pattern that no text can have as it stands, if it is written in such a way.
pub(crate) fn recognise(written: &str, is_possible: &dyn Fn(&str) -> bool) -> Option<Reason> {
    let (habit, meant) = if written.contains(['[', ']', '(', ')', '{', '}', '|', '+', '\\']) {
        (Habit::Regex, as_regex(written))
    } else if written.contains([',', ';']) {
        let parts: Vec<&str> =
            written.split([',', ';']).map(str::trim).filter(|part| !part.is_empty()).collect();
        let possible = parts.iter().all(|part| is_possible(part));
        let instead = possible.then(|| (parts.join(" "), "any of them")).into_iter().collect();
        return Some(Reason::Habit { habit: Habit::Commas, instead });
    } else if written.starts_with('^') || written.ends_with('$') {
        (Habit::Anchors, unanchored(written))
    } else if written.contains('*') {
        (Habit::Stars, vec![(dots(written), "")])
    } else {
        return None;
    };
    // Of what is meant exactly there is one way; the rest is what comes near.
    let instead = match meant.split_first() {
        Some((exact, _)) if is_possible(&exact.0) => vec![exact.clone()],
        _ => meant.into_iter().skip(1).filter(|(text, _)| is_possible(text)).collect(),
    };
    Some(Reason::Habit { habit, instead })
}

/// Ways to write, each with what it means; the first is exactly what was meant.
type Meant = Vec<(String, &'static str)>;

fn as_regex(written: &str) -> Meant {
    let is_open = written.contains('|') && !written.starts_with('^');
    let text = match written.strip_prefix('^') {
        Some(rest) => format!("/^{rest}/"),
        None if is_open => format!("/^({written})/"),
        None => format!("/^{written}/"),
    };
    vec![(text, "begins so")]
}

fn unanchored(written: &str) -> Meant {
    let (start, end) = (written.starts_with('^'), written.ends_with('$'));
    let bare = written.strip_prefix('^').unwrap_or(written);
    let bare = bare.strip_suffix('$').unwrap_or(bare);
    let plain = dots(bare);
    let (begins, ends) = ((plain.clone(), "begins with"), (format!("..{plain}"), "ends with"));
    match (start, end) {
        (true, true) => vec![(format!("/^{bare}$/"), "is all of it"), begins, ends],
        (true, false) => vec![begins],
        (false, _) => vec![ends],
    }
}

/// Stars as dots, which an open end does not need.
fn dots(written: &str) -> String {
    let text = written.replace(".*", "*").replace('*', "..");
    match text.strip_suffix("..") {
        Some(start) if !start.starts_with("..") => start.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn meant(written: &str, possible: bool) -> (Habit, Vec<String>) {
        match recognise(written, &|_| possible) {
            Some(Reason::Habit { habit, instead }) => {
                (habit, instead.into_iter().map(|(text, _)| text).collect())
            }
            other => panic!("{written}: {other:?}"),
        }
    }

    #[test]
    fn what_is_meant_is_written_our_way() {
        let cases: &[(&str, Habit, &str)] = &[
            ("cafe,face", Habit::Commas, "cafe face"),
            ("cafe, face;", Habit::Commas, "cafe face"),
            ("^cafe", Habit::Anchors, "cafe"),
            ("cafe$", Habit::Anchors, "..cafe"),
            ("^cafe$", Habit::Anchors, "/^cafe$/"),
            ("^ca.*fe$", Habit::Anchors, "/^ca.*fe$/"),
            ("cafe*", Habit::Stars, "cafe"),
            ("*cafe", Habit::Stars, "..cafe"),
            ("*cafe*", Habit::Stars, "..cafe.."),
            ("ca*fe", Habit::Stars, "ca..fe"),
            ("ca.*fe", Habit::Stars, "ca..fe"),
            ("ca[fe]", Habit::Regex, "/^ca[fe]/"),
            ("cafe|face", Habit::Regex, "/^(cafe|face)/"),
            ("^ca(f|c)e$", Habit::Regex, "/^ca(f|c)e$/"),
            ("q{2,3}", Habit::Regex, "/^q{2,3}/"),
        ];
        for (written, habit, instead) in cases {
            assert_eq!(meant(written, true), (*habit, vec![(*instead).to_owned()]), "{written}");
            assert_eq!(meant(written, false), (*habit, Vec::new()), "{written}");
        }
        assert_eq!(recognise("b-o b", &|_| true), None);
    }

    #[test]
    fn where_a_whole_text_cannot_be_so_its_ends_can() {
        let possible = |text: &str| !text.starts_with('/');
        let Some(Reason::Habit { instead, .. }) = recognise("^cafe$", &possible) else { panic!("a habit") };
        assert_eq!(instead, [("cafe".to_owned(), "begins with"), ("..cafe".to_owned(), "ends with")]);
    }
}
