//! What can go wrong with what is kept on disk, in words a person can act on.

use std::io;
use std::path::{Path, PathBuf};

use crate::input::{BadLine, Report};

/// A file or database that could not be read, written or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    #[error("could not {doing} {path}: {source}{}", advice(source))]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Not a file of ours.
    #[error("{path} is not a {expected}: it begins otherwise. It was left as it is; name another file")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it should be.
        expected: &'static str,
    },
    /// Written in another version of the format.
    #[error(
        "{path} is a {what} of format {found}, and this program reads format {known}: {} It was left as it is",
        if found > known { "it was made by a newer version, so use that." }
        else { "it was made by an older version, which can still read it." }
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// Its format.
        found: u32,
        /// The format known here.
        known: u32,
    },
    /// The end is missing.
    #[error("{path} is a {what} whose end is missing ({reason}). It was left as it is; {}", remedy(what))]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// What is missing.
        reason: String,
    },
    /// The content was changed since it was written.
    #[error("{path} is a damaged {what}: {reason}. It was left as it is; {}", remedy(what))]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// What does not fit.
        reason: String,
    },
    /// A map of another job.
    #[error(
        "{path} is the map of another job, and was left as it is:\n  {}\nGive the same job to resume it, or another map",
        differences.join("\n  ")
    )]
    OtherJob {
        /// The map.
        path: PathBuf,
        /// Each difference in words.
        differences: Vec<String>,
    },
    /// A map that takes its keys in another order.
    #[error(
        "{path} is the map of a scan in {has} order, and asked for is {asked} order. It was left as it is; ask for {has} order \
         to resume it, or give another map"
    )]
    OtherOrder {
        /// The map.
        path: PathBuf,
        /// The order it has.
        has: &'static str,
        /// The order asked for.
        asked: &'static str,
    },
    /// Another process works with it.
    #[error("{path} is in use by another process; wait for it, or give another name")]
    InUse {
        /// The file or database.
        path: PathBuf,
    },
    /// Something is there already.
    #[error("{path} is there already and was left as it is; give another name, or remove it first")]
    Exists {
        /// What is there.
        path: PathBuf,
    },
    /// A file that must not be used: of another user, open to others, a link.
    #[error(transparent)]
    File(warpsmith_files::Error),
    /// Not a database.
    #[error("{path} is not an address database: {reason}")]
    NotADatabase {
        /// What is there.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A filter made from other addresses.
    #[error(
        "{path} is a filter of another database (identity {found}, this one has {expected}), and was left as it is; \
         remove it, and it is made anew"
    )]
    OtherDatabase {
        /// The filter.
        path: PathBuf,
        /// The identity it names.
        found: String,
        /// The database's.
        expected: String,
    },
    /// A line that is not an address, where none may be.
    #[error("{0}")]
    BadLine(BadLine),
    /// Not lines of text.
    #[error("{path} is not a list of addresses: line {line} is longer than a megabyte")]
    NotLines {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
    },
    /// No address at all.
    #[error("{path} has no address of a single key in it{}", reasons(report))]
    NoAddress {
        /// The file, or the first of several.
        path: PathBuf,
        /// The lines that were read instead.
        report: Box<Report>,
    },
    /// Neither an address nor the name of a file.
    #[error("{} is not an address, and there is no file of that name: {reason}", quoted(given))]
    NotATarget {
        /// The text as given. SEC: empty where it may be a key.
        given: String,
        /// Why it is no address.
        reason: String,
    },
    /// A UTXO set that cannot be read.
    #[error("{path} cannot be read as a UTXO set of Bitcoin Core: {reason}")]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// Why not, and where.
        reason: String,
    },
    /// Maps that cannot be joined in memory.
    #[error(
        "a map in random order with {pieces} pieces cannot be rewritten in another order (more than {most}); join maps of \
         the same order instead"
    )]
    TooManyPieces {
        /// How many pieces would have to be listed.
        pieces: String,
        /// The most that are.
        most: u64,
    },
    /// No filter could be made.
    #[error("could not make a filter of {keys} addresses: {reason}")]
    Filter {
        /// How many distinct keys.
        keys: u64,
        /// Why not.
        reason: String,
    },
    /// Stopped from outside.
    #[error("stopped; nothing was left behind")]
    Stopped,
}

impl Error {
    /// For `map_err`: what was tried with which file.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }
}

impl From<warpsmith_files::Error> for Error {
    fn from(error: warpsmith_files::Error) -> Self {
        match error {
            warpsmith_files::Error::Io { doing, path, source } => Self::Io { doing, path, source },
            warpsmith_files::Error::InUse { path } => Self::InUse { path },
            warpsmith_files::Error::Exists { path } => Self::Exists { path },
            other => Self::File(other),
        }
    }
}

fn quoted(given: &str) -> String {
    if given.is_empty() { "what was given".to_owned() } else { format!("'{given}'") }
}

/// The reasons why no line was an address: how many there were, and the first of them.
fn reasons(report: &Report) -> String {
    let Report { bad, bad_lines, scripts, .. } = report;
    let mut text = String::new();
    if *scripts > 0 {
        text += &format!("; addresses of scripts, which no single key has: {scripts}");
    }
    if *bad > 0 {
        let first = bad_lines.len();
        let which = if *bad > first as u64 {
            format!("{bad} lines are not addresses, the first {first}")
        } else {
            "lines that are not addresses".to_owned()
        };
        text += &format!("; {which}:");
        bad_lines.iter().for_each(|line| text += &format!("\n  {line}"));
    }
    text
}

/// How a damaged file is got again.
fn remedy(what: &str) -> &'static str {
    match what {
        crate::filter::WHAT => "remove it, and it is made anew",
        crate::database::WHAT => "restore it from a copy, or build it again from its sources",
        _ => "restore it from a copy",
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            " (what was there before is unchanged; make room and run it again)"
        }
        _ => "",
    }
}
