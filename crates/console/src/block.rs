//! Blocks of rows for the terminal, and the progress bar.

use std::fmt::Write as _;

use crate::styled::{Line, Span, Style};
use crate::{colour, human, terminal};

/// Gap between two items of a row.
pub const GAP: &str = "   ";

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

/// Rows ready to be drawn.
pub struct Block {
    rows: Vec<Line>,
}

impl Block {
    /// Creates a block of these rows.
    pub fn new(rows: Vec<Line>) -> Block {
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
        row.push_span(Span::styled(more.to_owned(), Style::Quiet));
        Block { rows: vec![row] }
    }

    /// Returns the rows with their escape sequences, without trailing blanks. The last column stays free: some terminals wrap as soon as
    /// it is filled.
    pub fn rows(self, columns: u16, looks: Looks) -> Vec<String> {
        let columns = usize::from(columns).saturating_sub(1).max(1);
        self.rows.iter().map(|row| row.shown(columns, looks.colours)).collect()
    }
}

/// Returns a bar of this width: `luck  ━━━━━━━━──────────  34.5 %`.
pub fn bar(label: &str, share: f64, width: usize, looks: Looks) -> Line {
    let percent = format!("{:>9}", human::percent(share));
    let room = width.saturating_sub(label.len() + 1 + percent.len());
    let filled = (share.clamp(0.0, 1.0) * room as f64).floor() as usize;
    let (full, empty) = if looks.unicode { ("━", "─") } else { ("#", "-") };
    Line::from(vec![
        Span::styled(format!("{label} "), Style::Quiet),
        Span::styled(full.repeat(filled), Style::Filled),
        Span::styled(empty.repeat(room - filled), Style::Quiet),
        Span::styled(percent, Style::Strong),
    ])
}

/// Arranges items in as many rows as they take.
pub fn wrapped_by(parts: Vec<Span>, gap: &'static str, width: usize) -> Vec<Line> {
    let mut rows: Vec<Line> = Vec::new();
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
