//! Blocks of rows for the terminal, and the progress bar.

use std::fmt::Write as _;

use crossterm::Command;
use crossterm::style::{Attribute, Color as Ink, SetAttribute, SetForegroundColor};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use ratatui_core::widgets::Widget;

use crate::{colour, human, terminal};

/// Gap between two items of a row.
pub const GAP: &str = "   ";

/// Text that matters most.
pub const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
/// Text that matters least.
pub const QUIET: Style = Style::new().add_modifier(Modifier::DIM);
const FILLED: Style = Style::new().fg(Color::Cyan);

/// What the terminal can show.
#[derive(Clone, Copy, Debug)]
pub struct Looks {
    /// Whether there are colours.
    pub colours: bool,
    /// Whether there are characters beyond ASCII.
    pub unicode: bool,
}

impl Looks {
    /// Returns what the terminal on stderr can show.
    pub fn of_stderr() -> Looks {
        Looks { colours: colour::on_stderr(), unicode: terminal::supports_unicode() }
    }
}

/// Rows ready to be drawn, as a widget.
pub struct Block {
    rows: Vec<Line<'static>>,
}

impl Block {
    /// Creates a block of these rows.
    pub fn new(rows: Vec<Line<'static>>) -> Block {
        Block { rows }
    }

    /// Creates a progress bar; without a share, a line of text. The last column stays free: some terminals wrap as soon as it is
    /// filled.
    pub fn bar(label: &str, share: Option<f64>, more: &str, columns: u16, looks: Looks) -> Block {
        let width = usize::from(columns).saturating_sub(1);
        let Some(share) = share else {
            let text = [label, more].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
            return Block { rows: vec![Line::from(clipped(&text.join(", "), width, looks))] };
        };
        let room =
            if more.is_empty() { width } else { width.saturating_sub(GAP.len() + more.chars().count()) };
        let mut row = if room >= label.len() + 20 {
            let mut row = bar(label, share, room.min(60), looks);
            row.push_span(Span::raw(GAP));
            row
        } else {
            Line::from(format!("{} {label}, ", human::percent(share)))
        };
        row.push_span(Span::styled(more.to_owned(), QUIET));
        Block { rows: vec![row] }
    }

    /// Returns the rows with their escape sequences, without trailing blanks.
    pub fn rows(self, columns: u16, looks: Looks) -> Vec<String> {
        let area = Rect::new(0, 0, columns.saturating_sub(1).max(1), self.rows.len() as u16);
        let mut buffer = Buffer::empty(area);
        self.render(area, &mut buffer);
        (0..area.height).map(|row| written(&buffer, row, looks)).collect()
    }
}

impl Widget for Block {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        for (at, row) in self.rows.iter().enumerate().take(usize::from(area.height)) {
            buffer.set_line(area.x, area.y + at as u16, row, area.width);
        }
    }
}

/// Returns a row with its escape sequences.
fn written(buffer: &Buffer, row: u16, looks: Looks) -> String {
    let cells: Vec<_> = (0..buffer.area.width).map(|column| &buffer[(column, row)]).collect();
    let end = cells.iter().rposition(|cell| cell.symbol() != " ").map_or(0, |last| last + 1);
    let (mut text, mut style) = (String::new(), (Color::Reset, Modifier::empty()));
    let mut change = |text: &mut String, to: (Color, Modifier)| {
        if looks.colours && to != style {
            let put = |command: &dyn Fn(&mut String) -> std::fmt::Result, text: &mut String| {
                command(text).expect("writing to a string does not fail");
            };
            put(&|out| SetAttribute(Attribute::Reset).write_ansi(out), text);
            let ink = match to.0 {
                Color::Green => Some(Ink::DarkGreen),
                Color::Yellow => Some(Ink::DarkYellow),
                Color::Cyan => Some(Ink::DarkCyan),
                _ => None,
            };
            if let Some(ink) = ink {
                put(&|out| SetForegroundColor(ink).write_ansi(out), text);
            }
            for (modifier, attribute) in [(Modifier::BOLD, Attribute::Bold), (Modifier::DIM, Attribute::Dim)]
            {
                if to.1.contains(modifier) {
                    put(&|out| SetAttribute(attribute).write_ansi(out), text);
                }
            }
            style = to;
        }
    };
    for cell in &cells[..end] {
        change(&mut text, (cell.fg, cell.modifier));
        text.push_str(cell.symbol());
    }
    change(&mut text, (Color::Reset, Modifier::empty()));
    text
}

/// Returns a bar of this width: `luck  ━━━━━━━━──────────  34.5 %`.
pub fn bar(label: &str, share: f64, width: usize, looks: Looks) -> Line<'static> {
    let percent = format!("{:>9}", human::percent(share));
    let room = width.saturating_sub(label.len() + 1 + percent.len());
    let filled = (share.clamp(0.0, 1.0) * room as f64).floor() as usize;
    let (full, empty) = if looks.unicode { ("━", "─") } else { ("#", "-") };
    Line::from(vec![
        Span::styled(format!("{label} "), QUIET),
        Span::styled(full.repeat(filled), FILLED),
        Span::styled(empty.repeat(room - filled), QUIET),
        Span::styled(percent, STRONG),
    ])
}

/// Arranges items in as many rows as they take.
pub fn wrapped_by(parts: Vec<Span<'static>>, gap: &'static str, width: usize) -> Vec<Line<'static>> {
    let mut rows: Vec<Line<'static>> = Vec::new();
    for part in parts {
        match rows.last_mut() {
            Some(row) if row.width() + gap.len() + part.width() <= width => {
                row.push_span(Span::raw(gap));
                row.push_span(part);
            }
            _ => rows.push(Line::from(part)),
        }
    }
    rows
}

/// Cuts a text to this width, with an ellipsis at its end.
pub fn clipped(text: &str, width: usize, looks: Looks) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let sign = if looks.unicode { "…" } else { "..." };
    let mut short: String = text.chars().take(width.saturating_sub(sign.chars().count())).collect();
    let _ = write!(short, "{sign}");
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOKS: Looks = Looks { colours: true, unicode: true };

    /// Returns a row without its escape sequences.
    fn bare(row: &str) -> String {
        let mut pieces = row.split('\u{1b}');
        let first = pieces.next().unwrap_or_default().to_owned();
        pieces.fold(first, |text, piece| text + piece.split_once('m').map_or("", |(_, rest)| rest))
    }

    #[test]
    fn a_bar_says_what_is_left_at_every_width() {
        let shown =
            |share, columns| Block::bar("written", share, "3 min left", columns, LOOKS).rows(columns, LOOKS);
        let bare = |rows: Vec<String>| rows.iter().map(|row| bare(row)).collect::<Vec<_>>();
        assert_eq!(
            bare(shown(Some(0.5), 60)),
            ["written ━━━━━━━━━━━━━━───────────────   50.0 %   3 min left"]
        );
        assert_eq!(bare(shown(Some(0.5), 40)), ["50.0 % written, 3 min left"]);
        assert_eq!(bare(shown(None, 40)), ["written, 3 min left"]);
    }
}
