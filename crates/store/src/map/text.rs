//! The map as text: lines of words, so that a person can read it, with a digest at the end, so that nobody can change it
//! unseen.
//!
//! ```text
//! warpsmith map 2
//! range 8000:ffff
//! mask <64 hex digits>                    only where the range is that of a mask's candidates
//! types p2pkh,p2wpkh
//! targets addresses 3 <64 hex digits>
//! order sequential                        or: order random <seed, hex> <piece, hex>
//! stretch <began> <seconds> <keys>        at most 512, decimal
//! match <address> <found>                 at most 10,000, ascending; found at, in seconds since 1970
//! unlisted <matches>                      behind 10,000 of these, if there were more
//! covered 8000:8fff                       any number, ascending, apart
//! total <keys>                            decimal
//! sha256 <64 hex digits>                  of all lines before
//! ```

use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use super::matches::{self, Matches};
use super::{Job, Map, Source, Stretch, Targets, is_type};
use crate::Error;
use crate::interval::{Interval, IntervalSet, U256};
use crate::order::Order;

const WHAT: &str = "scan map";
const HEAD: &str = "warpsmith map ";
/// The format that is written and read.
const VERSION: u32 = 2;
const SUM: &str = "sha256 ";

pub(super) fn write(map: &Map) -> String {
    let mut text = format!("{HEAD}{VERSION}\n");
    let mut line = |words: std::fmt::Arguments| {
        text.write_fmt(words).expect("a string takes all");
        text.push('\n');
    };
    line(format_args!("range {}", map.job.range));
    if let Some(mask) = &map.job.mask {
        line(format_args!("mask {}", hex(mask)));
    }
    line(format_args!("types {}", map.job.types.join(",")));
    line(format_args!("targets {}", map.job.targets));
    match map.order {
        Order::Sequential => line(format_args!("order sequential")),
        Order::Random { seed, piece } => line(format_args!("order random {seed:x} {piece:x}")),
    }
    // A run that has covered nothing yet is none to tell of.
    for Stretch { began, seconds, keys } in map.history.iter().filter(|stretch| stretch.keys != U256::ZERO) {
        line(format_args!("stretch {began} {seconds} {keys}"));
    }
    for (address, found) in &map.matches.listed {
        line(format_args!("match {address} {found}"));
    }
    if map.matches.unlisted > 0 {
        line(format_args!("unlisted {}", map.matches.unlisted));
    }
    for interval in map.covered.iter() {
        line(format_args!("covered {interval}"));
    }
    line(format_args!("total {}", map.covered()));
    let sum = hex(&Sha256::digest(&text));
    text + SUM + &sum + "\n"
}

pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Map, Error> {
    let (path, what) = (path.to_owned(), WHAT);
    if bytes.is_empty() {
        return Err(Error::Truncated { path, what, reason: "it is empty".into() });
    }
    if !bytes.starts_with(HEAD.as_bytes()) && !HEAD.as_bytes().starts_with(bytes) {
        return Err(Error::Foreign { path, expected: what });
    }
    let corrupt = |reason: &str| Error::Corrupt { path: path.clone(), what, reason: reason.into() };
    let Ok(text) = std::str::from_utf8(bytes) else { return Err(corrupt("it is not text")) };
    let truncated = || Error::Truncated {
        path: path.clone(),
        what,
        reason: format!("the last line is not {SUM}and a newline"),
    };
    // A version that is not ours may end otherwise, so it comes first.
    let (head, _) = text.split_once('\n').ok_or_else(truncated)?;
    let version: u32 = head[HEAD.len()..].parse().map_err(|_| corrupt("line 1 has no format"))?;
    if version != VERSION {
        return Err(Error::Version { path, what, found: version, known: VERSION });
    }
    let body = text.strip_suffix('\n').ok_or_else(truncated)?;
    let at = body.rfind('\n').map_or(0, |at| at + 1);
    let sum = body[at..].strip_prefix(SUM).filter(|sum| sum.len() == 64).ok_or_else(truncated)?;
    if hex(&Sha256::digest(&text[..at])) != sum {
        return Err(corrupt("its SHA-256 is not the one in its last line"));
    }
    let mut lines = Lines { lines: text[..at].lines().enumerate().skip(1).peekable() };
    lines.map().map_err(|mistake| corrupt(&mistake.to_string()))
}

/// What is wrong with the lines of a map whose digest fits.
#[derive(Debug, thiserror::Error)]
enum Mistake {
    #[error("there is no line '{name}' where it belongs")]
    Missing { name: &'static str },
    #[error("line {line} cannot be read")]
    Unreadable { line: usize },
    #[error("it has more than {most} lines '{name}'")]
    Many { name: &'static str, most: usize },
    #[error("its lines 'match' are not in order")]
    Order,
    #[error("line {line} follows the total")]
    Behind { line: usize },
    #[error("the covered intervals do not add up to the total")]
    Sum,
}

/// The lines after the first, with their numbers from 0. The digest fits, so what is wrong here was written wrongly.
struct Lines<'a, I: Iterator<Item = (usize, &'a str)>> {
    lines: std::iter::Peekable<I>,
}

impl<'a, I: Iterator<Item = (usize, &'a str)>> Lines<'a, I> {
    fn map(&mut self) -> Result<Map, Mistake> {
        let range = self.only("range", interval)?;
        let mask = self.next("mask", |words| match words {
            [digest] => digest_of(digest),
            _ => None,
        })?;
        let types = self.only("types", |words| match words {
            [names] => {
                let names: Vec<&str> = names.split(',').collect();
                names.iter().all(|name| is_type(name)).then_some(names)
            }
            _ => None,
        })?;
        let targets = self.only("targets", targets)?;
        let job = Job { mask, ..Job::new(range, &types, targets) };
        let order = self.only("order", |words| order(words).filter(|order| order.fits(&range)))?;
        let mut history = Vec::new();
        while let Some(stretch) = self.next("stretch", stretch)? {
            history.push(stretch);
            if history.len() > Stretch::MOST {
                return Err(Mistake::Many { name: "stretch", most: Stretch::MOST });
            }
        }
        // As in `write`: a stretch without keys says nothing.
        history.retain(|stretch| stretch.keys != U256::ZERO);
        let matches = self.matches()?;
        let mut covered = IntervalSet::new();
        let mut listed = 0;
        let within = |words: &[&str]| interval(words).filter(|interval| range.covers(interval));
        while let Some(interval) = self.next("covered", within)? {
            covered.insert(interval);
            listed += 1;
        }
        let total: U256 = self.only("total", number)?;
        if let Some((number, _)) = self.lines.next() {
            return Err(Mistake::Behind { line: number + 1 });
        }
        // Intervals that overlap or touch would have become fewer.
        if covered.len() != listed || covered.total() != total {
            return Err(Mistake::Sum);
        }
        Ok(Map { job, order, covered, history, matches, counted_to: None })
    }

    fn matches(&mut self) -> Result<Matches, Mistake> {
        let mut all = Matches::default();
        while let Some((address, found)) = self.next("match", found)? {
            if all.listed.last_key_value().is_some_and(|(last, _)| last.as_str() >= address) {
                return Err(Mistake::Order);
            }
            all.listed.insert(address.to_owned(), found);
            if all.listed.len() > matches::MOST {
                return Err(Mistake::Many { name: "match", most: matches::MOST });
            }
        }
        let is_full = all.listed.len() == matches::MOST;
        let unlisted = |words: &[&str]| number(words).filter(|unlisted| is_full && *unlisted > 0);
        all.unlisted = self.next("unlisted", unlisted)?.unwrap_or(0);
        Ok(all)
    }

    /// The words after `name` in the next line, which must be one of that name.
    fn only<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&[&'a str]) -> Option<T>,
    ) -> Result<T, Mistake> {
        self.next(name, read)?.ok_or(Mistake::Missing { name })
    }

    /// The same where the line may be another: then `None`.
    fn next<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&[&'a str]) -> Option<T>,
    ) -> Result<Option<T>, Mistake> {
        let is_named = |line: &str| line.split(' ').next() == Some(name);
        let Some((number, line)) = self.lines.next_if(|(_, line)| is_named(line)) else { return Ok(None) };
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        read(&words).map(Some).ok_or(Mistake::Unreadable { line: number + 1 })
    }
}

fn interval(words: &[&str]) -> Option<Interval> {
    let [ends] = words else { return None };
    let (first, last) = ends.split_once(':')?;
    Interval::new(hex_number(first)?, hex_number(last)?)
}

fn targets(words: &[&str]) -> Option<Targets> {
    let &[source, count, digest] = words else { return None };
    let source = [Source::Addresses, Source::Database].into_iter().find(|known| known.name() == source)?;
    Some(Targets { source, count: decimal(count)?, digest: digest_of(digest)? })
}

fn digest_of(digits: &str) -> Option<[u8; 32]> {
    hex_number(digits).filter(|_| digits.len() == 64).map(U256::to_be_bytes)
}

fn order(words: &[&str]) -> Option<Order> {
    match *words {
        ["sequential"] => Some(Order::Sequential),
        ["random", seed, piece] => {
            let seed = u64::try_from(hex_number(seed)?).ok()?;
            Some(Order::Random { seed, piece: hex_number(piece)? })
        }
        _ => None,
    }
}

fn stretch(words: &[&str]) -> Option<Stretch> {
    let &[began, seconds, keys] = words else { return None };
    Some(Stretch { began: decimal(began)?, seconds: decimal(seconds)?, keys: decimal(keys)? })
}

fn found<'a>(words: &[&'a str]) -> Option<(&'a str, u64)> {
    let &[address, found] = words else { return None };
    matches::is_address(address).then_some((address, decimal(found)?))
}

fn number<T: FromStr>(words: &[&str]) -> Option<T> {
    let &[digits] = words else { return None };
    decimal(digits)
}

fn decimal<T: FromStr>(digits: &str) -> Option<T> {
    let fits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| fits)
}

fn hex_number(digits: &str) -> Option<U256> {
    let fits = (1..=64).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    U256::from_str_radix(digits, 16).ok().filter(|_| fits)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}
