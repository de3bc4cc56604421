//! Styled text in rows, and the escape sequences that show it.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Weight or colour of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As everything else on the terminal.
    #[default]
    Plain,
    /// Bold: text that matters most.
    Strong,
    /// Dim: text that matters least.
    Quiet,
    /// Green: what was found or goes well.
    Good,
    /// Yellow: what needs attention.
    Careful,
    /// Cyan: the filled part of a bar.
    Filled,
}

impl Style {
    /// The escape sequence that selects it after a reset.
    fn sequence(self) -> &'static str {
        match self {
            Style::Plain => "",
            Style::Strong => "\x1b[1m",
            Style::Quiet => "\x1b[2m",
            Style::Good => "\x1b[38;5;2m",
            Style::Careful => "\x1b[38;5;3m",
            Style::Filled => "\x1b[38;5;6m",
        }
    }
}

/// Escape sequence that ends every style.
const RESET: &str = "\x1b[0m";

/// A piece of text in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    text: String,
    style: Style,
}

impl Span {
    /// Creates a piece without a style.
    pub fn raw(text: impl Into<String>) -> Span {
        Span::styled(text, Style::Plain)
    }

    /// Creates a piece in a style.
    pub fn styled(text: impl Into<String>, style: Style) -> Span {
        Span { text: text.into(), style }
    }

    /// Returns the columns that it takes.
    pub fn width(&self) -> usize {
        self.text.width()
    }
}

/// A row of pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<Span>,
}

impl Line {
    /// Creates a row of one piece.
    pub fn styled(text: impl Into<String>, style: Style) -> Line {
        Line { spans: vec![Span::styled(text, style)] }
    }

    /// Appends a piece.
    pub fn push_span(&mut self, span: Span) {
        self.spans.push(span);
    }

    /// Returns the columns that it takes.
    pub fn width(&self) -> usize {
        self.spans.iter().map(Span::width).sum()
    }

    /// Returns what fits into so many columns, without trailing blanks, with escape sequences where there are colours.
    pub fn shown(&self, columns: usize, colours: bool) -> String {
        let mut cells: Vec<(char, Style)> = Vec::new();
        let mut taken = 0;
        let characters =
            self.spans.iter().flat_map(|span| span.text.chars().map(|character| (character, span.style)));
        for (character, style) in characters {
            // Control characters would command the terminal, and take no column.
            let Some(width) = character.width() else { continue };
            if taken + width > columns {
                break;
            }
            taken += width;
            cells.push((character, style));
        }
        let end = cells.iter().rposition(|(character, _)| *character != ' ').map_or(0, |last| last + 1);
        let (mut text, mut current) = (String::new(), Style::Plain);
        let mut change = |text: &mut String, style: Style| {
            if colours && style != current {
                text.push_str(RESET);
                text.push_str(style.sequence());
                current = style;
            }
        };
        for (character, style) in &cells[..end] {
            change(&mut text, *style);
            text.push(*character);
        }
        change(&mut text, Style::Plain);
        text
    }
}

impl From<Span> for Line {
    fn from(span: Span) -> Line {
        Line { spans: vec![span] }
    }
}

impl From<Vec<Span>> for Line {
    fn from(spans: Vec<Span>) -> Line {
        Line { spans }
    }
}

impl From<String> for Line {
    fn from(text: String) -> Line {
        Line::from(Span::raw(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_cut_to_its_columns_and_ends_its_style() {
        let line =
            Line::from(vec![Span::styled("bold", Style::Strong), Span::raw(" plain "), Span::raw("  ")]);
        assert_eq!(line.width(), 13);
        assert_eq!(line.shown(80, false), "bold plain");
        assert_eq!(line.shown(80, true), "\x1b[0m\x1b[1mbold\x1b[0m plain");
        assert_eq!(line.shown(3, true), "\x1b[0m\x1b[1mbol\x1b[0m");
        assert_eq!(line.shown(0, true), "");
    }

    #[test]
    fn wide_and_control_characters_do_not_break_the_row() {
        let line = Line::from("日本\x1b[2Jx".to_owned());
        assert_eq!(line.shown(5, false), "日本[");
        // A character of two columns does not fit into one.
        assert_eq!(line.shown(3, false), "日");
    }
}
