//! What a server says, made fit to be shown: the only way from a server's words to a person.

/// The most characters of it that are shown.
const MOST: usize = 300;

/// Words on one line, without anything a terminal would act on, and not too many of them.
pub(super) fn shown(said: &str) -> String {
    let mut text: String =
        said.trim().chars().take(MOST).map(|c| if is_harmless(c) { c } else { '\u{fffd}' }).collect();
    if said.trim().chars().nth(MOST).is_some() {
        text.push_str("...");
    }
    text
}

/// Neither a control character (escape sequences begin with one) nor one that is not seen or turns the writing round.
fn is_harmless(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_a_terminal_raw() {
        let hostile =
            "\u{1b}]0;owned\u{7}\u{1b}[2Jerror:\r\nok\u{9b}31m\u{202e}live\u{200b}\u{7f}\0 \u{e0041}";
        let text = shown(hostile);
        assert!(text.chars().all(is_harmless), "{text:?}");
        assert!(text.contains("]0;owned") && text.contains("error:"), "{text:?}");
        assert_eq!(shown(" plain, Zürich 東京 \n"), "plain, Zürich 東京");
        assert_eq!(shown(&"x".repeat(301)), "x".repeat(300) + "...");
        assert_eq!(shown(&"x".repeat(300)), "x".repeat(300));
    }
}
