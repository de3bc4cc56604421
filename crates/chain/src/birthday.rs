//! The time from which on a wallet looks for payments to a key that it imports.

use std::fmt;
use std::str::FromStr;

/// When a key can first have been paid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Birthday {
    /// Not known, as of a key that was recovered: a wallet must scan the whole chain, or old payments stay invisible.
    #[default]
    Unknown,
    /// The key was made just now: there is nothing to scan for.
    New,
    /// Not before this time, in seconds since 1970.
    At(u64),
}

/// Writes the `timestamp` of Bitcoin Core's `importdescriptors`, as JSON.
impl fmt::Display for Birthday {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Birthday::Unknown => f.write_str("0"),
            Birthday::New => f.write_str("\"now\""),
            Birthday::At(seconds) => seconds.fmt(f),
        }
    }
}

/// Reads what [`Display`](fmt::Display) writes.
impl FromStr for Birthday {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "\"now\"" => Ok(Birthday::New),
            "0" => Ok(Birthday::Unknown),
            other => other.parse().map(Birthday::At),
        }
    }
}
