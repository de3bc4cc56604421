//! What became of the lines of a list.

use std::fmt;
use std::path::PathBuf;

/// A line that is not an address. It is told by its place and the reason; its text is not repeated, since it may be a
/// secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BadLine {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}", self.path.display(), self.line, self.reason)
    }
}

/// What became of the lines, or of the records of a database that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Lines and records that held an address of a single key.
    pub addresses: u64,
    /// Addresses that were there before, among those.
    pub duplicates: u64,
    /// Addresses that no single key has: P2WSH, bare scripts.
    pub scripts: u64,
    /// Lines that are no addresses.
    pub bad: u64,
    /// The first of them by file and line.
    pub bad_lines: Vec<BadLine>,
}

impl Report {
    /// So many bad lines are kept.
    pub const SHOWN: usize = 20;

    /// Counts a bad line, and keeps it if it is among the first.
    pub fn add_bad(&mut self, line: BadLine) {
        self.bad += 1;
        self.keep(line);
    }

    /// Adds what another part of the work counted. Parts come in any order; the first lines are kept.
    pub(crate) fn add(&mut self, other: Self) {
        self.addresses += other.addresses;
        self.duplicates += other.duplicates;
        self.scripts += other.scripts;
        self.bad += other.bad;
        for line in other.bad_lines {
            self.keep(line);
        }
    }

    fn keep(&mut self, line: BadLine) {
        let at = self.bad_lines.partition_point(|known| *known <= line);
        if at < Self::SHOWN {
            self.bad_lines.insert(at, line);
            self.bad_lines.truncate(Self::SHOWN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_lines_are_kept_whatever_the_order() {
        let bad = |line| BadLine { path: "list".into(), line, reason: String::new() };
        let mut report = Report::default();
        for line in (0..100).map(|line| line * 37 % 100) {
            let mut part = Report::default();
            part.add_bad(bad(line));
            report.add(part);
        }
        assert_eq!(report.bad, 100);
        let lines: Vec<u64> = report.bad_lines.iter().map(|bad| bad.line).collect();
        assert_eq!(lines, (0..20).collect::<Vec<u64>>());
    }
}
