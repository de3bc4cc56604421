//! `--qr`: a result's address, or its secret, as a code that telephones read off the terminal.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use qrcode::{Color, EcLevel, QrCode};
use warpsmith_console::exit::Failure;
use zeroize::Zeroizing;

use crate::running::RESULTS;

/// What is shown as a code.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Qr {
    /// The address.
    Address,
    /// The private key. Whoever sees the terminal has it.
    Secret,
}

/// For commands whose results people read.
#[derive(Args)]
pub(crate) struct QrFlags {
    /// Show the address as a QR code below each result; `--qr secret`: the private key instead, for all who see the terminal
    #[arg(long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "address", conflicts_with = "json", hide_possible_values = true, help_heading = RESULTS)]
    qr: Option<Qr>,
}

impl QrFlags {
    /// Returns the part of results to draw. A secret is drawn only where it is shown anyway, and not of results that have none, for the
    /// reason given.
    pub fn read(&self, is_kept: bool, no_key: Option<&str>) -> Result<Option<Qr>, Failure> {
        match (self.qr, no_key) {
            (Some(Qr::Secret), Some(why)) => Err(Failure::Usage(format!("--qr secret: {why}"))),
            (Some(Qr::Secret), None) if is_kept => Err(Failure::Usage(
                "--qr secret shows the private key on the terminal, which --output and --encrypt keep it from; leave one of them \
                 out, or use --qr for the address"
                    .to_owned(),
            )),
            (qr, _) => Ok(qr),
        }
    }
}

/// Modules around a code that must be light (ISO 18004).
const QUIET: usize = 4;

/// The code of a text, two rows of modules in a line: light ones are drawn, as on the dark ground that most terminals have.
pub(crate) fn draw(text: &str) -> Option<Zeroizing<String>> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let width = code.width();
    let is_light = |x: usize, y: usize| match (x.checked_sub(QUIET), y.checked_sub(QUIET)) {
        (Some(x), Some(y)) if x < width && y < width => code[(x, y)] == Color::Light,
        _ => true,
    };
    let all = width + 2 * QUIET;
    let mut drawn = Zeroizing::new(String::with_capacity((3 * all + 1) * all.div_ceil(2) + 1));
    drawn.push('\n');
    for y in (0..all).step_by(2) {
        for x in 0..all {
            // Below the last row there is nothing to draw.
            drawn.push(match (is_light(x, y), y + 1 < all && is_light(x, y + 1)) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            });
        }
        let _ = writeln!(drawn);
    }
    Some(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drawn and read back module by module; what the crate makes of a text is for scanners to say.
    #[test]
    fn every_module_is_drawn() {
        let text = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg";
        let code = QrCode::with_error_correction_level(text, EcLevel::L).unwrap();
        let drawn = draw(text).unwrap();
        let lines: Vec<Vec<char>> = drawn.lines().skip(1).map(|line| line.chars().collect()).collect();
        let all = code.width() + 2 * QUIET;
        assert_eq!((lines.len(), lines[0].len()), (all.div_ceil(2), all));
        for y in 0..code.width() {
            for x in 0..code.width() {
                let (row, column) = (y + QUIET, x + QUIET);
                let drawn = lines[row / 2][column];
                let is_light = if row % 2 == 0 { "█▀" } else { "█▄" }.contains(drawn);
                assert_eq!(is_light, code[(x, y)] == Color::Light, "{x}, {y}");
            }
        }
        assert!(lines[0].iter().chain(&lines[1]).all(|&c| c == '█'), "a quiet zone");
        assert!(draw(&"x".repeat(5000)).is_none());
    }
}
