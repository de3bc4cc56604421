//! Draws a picture of a real run, for the README: runs the program on a terminal of its own and writes what was on the screen, while it
//! searched and when it was done, as SVG. `tools/picture.sh` is how it is started.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::num::NonZeroU16;
use std::process::{Command, Stdio};

use vt100::{Cell, Color, Parser, Screen};

#[path = "../tests/end_to_end/openpty.rs"]
mod openpty;

const COLUMNS: u16 = 88;
const ROWS: u16 = 24;

/// What a character and a row take, and what is around them.
const ADVANCE: f64 = 8.43;
const LEADING: f64 = 20.0;
const MARGIN: f64 = 16.0;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(picture), Some(binary)) = (args.next(), args.next()) else {
        return Err("usage: picture PICTURE.svg BINARY ARGUMENT...".into());
    };
    let args: Vec<String> = args.collect();
    let (during, after) = run(&fs::canonicalize(binary)?, &args)?;
    let command = format!("warpsmith {}", args.join(" "));
    fs::write(picture, draw(&command, &[("while it searches", &during), ("when it is done", &after)]))?;
    Ok(())
}

/// The screen as it was before the last match came, with one above it and the search going on, and as it was left.
fn run(binary: &std::path::Path, args: &[String]) -> Result<(Screen, Screen), Box<dyn Error>> {
    // What is found is of no use to anybody: it goes with the folder.
    let folder = tempfile::tempdir()?;
    let (master, slave) = openpty::pair(COLUMNS, ROWS);
    let mut command = Command::new(binary);
    let end = || slave.try_clone().map(Stdio::from);
    command.args(args).current_dir(&folder).stdin(end()?).stdout(end()?).stderr(end()?);
    command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").env_remove("NO_COLOR").env_remove("LC_ALL");
    openpty::command_it(&mut command);
    let mut child = command.spawn()?;
    drop((command, slave));
    let nonzero = |number| NonZeroU16::new(number).expect("it is not 0");
    let mut parser = Parser::new(nonzero(ROWS), nonzero(COLUMNS), 0);
    // The last screen with so many results.
    let mut screens: BTreeMap<usize, Screen> = BTreeMap::new();
    let (mut master, mut part) = (File::from(master), [0; 4096]);
    // Ends with an error where the other side is closed.
    while let Ok(count @ 1..) = master.read(&mut part) {
        // Frame by frame: each ends with a line feed or an escape sequence that begins with this byte.
        for piece in part[..count].split_inclusive(|byte| *byte == b'\n' || *byte == 0x1b) {
            parser.process(piece);
            let text = parser.screen().contents();
            if ["running ", "last  ", "q stop"].iter().all(|needed| text.contains(needed)) {
                screens.insert(text.matches("address  ").count(), parser.screen().clone());
            }
        }
    }
    child.wait()?;
    let after = parser.screen().clone();
    let results = after.contents().matches("address  ").count();
    let during = screens.range(1..results.max(1)).next_back();
    let (_, during) =
        during.ok_or("no match was there while the next was sought: give --count and a longer pattern")?;
    Ok((during.clone(), after))
}

/// Panels below each other, each with its title, the command and the rows of a screen.
fn draw(command: &str, panels: &[(&str, &Screen)]) -> String {
    let width = (f64::from(COLUMNS) * ADVANCE + 2.0 * MARGIN).ceil();
    let (mut body, mut top) = (String::new(), 0.0);
    for (title, screen) in panels {
        let rows: Vec<Vec<&Cell>> = (0..ROWS).map(|row| cells(screen, row)).collect();
        let end = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
        let height = LEADING * (end as f64 + 2.0) + MARGIN;
        let _ = writeln!(
            body,
            r##"<rect x="1" y="{}" width="{}" height="{height}" rx="8" fill="#14171c" stroke="#30363d"/>"##,
            top + 1.0,
            width - 2.0
        );
        let mut line = |at: usize, columns: usize, text: &str| {
            let (y, length) = (top + LEADING * (at as f64 + 1.0) + 2.0, columns as f64 * ADVANCE);
            let _ = writeln!(
                body,
                r#"<text x="{MARGIN}" y="{y}" textLength="{length:.1}" xml:space="preserve">{text}</text>"#
            );
        };
        line(0, title.chars().count(), &format!(r#"<tspan class="d">{title}</tspan>"#));
        let typed = format!(r#"<tspan class="c2">$</tspan> {}"#, escaped(command));
        line(1, command.chars().count() + 2, &typed);
        for (at, row) in rows[..end].iter().enumerate().filter(|(_, row)| !row.is_empty()) {
            line(at + 2, row.len(), &spans(row));
        }
        top += height + 12.0;
    }
    let height = top - 10.0;
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="{} in a terminal">
<style>text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e6edf3}}.d{{fill:#8b949e}}.b{{font-weight:bold}}.c2{{fill:#3fb950}}.c3{{fill:#d29922}}.c6{{fill:#39c5cf}}</style>
{body}</svg>
"##,
        escaped(command)
    )
}

/// The cells of a row up to the last that is not blank.
fn cells(screen: &Screen, row: u16) -> Vec<&Cell> {
    let all: Vec<&Cell> = (0..COLUMNS).filter_map(|column| screen.cell(row, column)).collect();
    let end = all.iter().rposition(|cell| !cell.contents().trim().is_empty()).map_or(0, |last| last + 1);
    all[..end].to_vec()
}

/// A row, with what looks alike together.
fn spans(row: &[&Cell]) -> String {
    let mut text = String::new();
    for alike in row.chunk_by(|a, b| class(a) == class(b)) {
        let piece: String =
            alike.iter().map(|cell| if cell.has_contents() { cell.contents() } else { " " }).collect();
        match class(alike[0]) {
            class if class.is_empty() => text += &escaped(&piece),
            class => text += &format!(r#"<tspan class="{class}">{}</tspan>"#, escaped(&piece)),
        }
    }
    text
}

fn class(cell: &Cell) -> String {
    let colour = match cell.fgcolor() {
        Color::Idx(colour) => Some(format!("c{}", colour % 8)),
        _ => cell.dim().then(|| "d".to_owned()),
    };
    let bold = cell.bold().then(|| "b".to_owned());
    colour.into_iter().chain(bold).collect::<Vec<_>>().join(" ")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
