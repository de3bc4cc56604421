//! What a database says of itself: how many records of which kinds, and digests over all of them.

use std::fmt::Write as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::WHAT;
use crate::record::Entry;
use crate::{Error, Kind};

const HEAD: &str = "warpsmith database ";
const VERSION: u32 = 1;

/// What a database says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Random: no two builds have the same.
    pub identity: [u8; 16],
    /// When it was built, in seconds since 1970.
    pub created: u64,
    /// How many records it has.
    pub records: u64,
    /// SHA-256 over kind and digest of each record in order: the same for the same addresses.
    pub addresses: [u8; 32],
    /// SHA-256 over the amounts in order.
    pub amounts: [u8; 32],
    /// How many records of each kind there are, for those there are any of.
    pub kinds: Vec<(Kind, u64)>,
}

impl About {
    /// How many records of a kind there are.
    pub fn count(&self, kind: Kind) -> u64 {
        self.kinds.iter().find(|(known, _)| *known == kind).map_or(0, |(_, count)| *count)
    }

    /// The identity as text.
    pub fn identity_text(&self) -> String {
        hex(&self.identity)
    }

    pub(super) fn write(&self) -> String {
        let mut text = format!(
            "{HEAD}{VERSION}\nidentity {}\ncreated {}\nrecords {}\naddresses {}\namounts {}\n",
            hex(&self.identity),
            self.created,
            self.records,
            hex(&self.addresses),
            hex(&self.amounts)
        );
        for (kind, count) in &self.kinds {
            writeln!(text, "kind {} {count}", kind.name()).expect("a string takes all");
        }
        text
    }

    pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let corrupt =
            |reason: &str| Error::Corrupt { path: path.to_owned(), what: WHAT, reason: reason.into() };
        let wrong = || corrupt("what it says of itself cannot be read");
        let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
        let mut lines = text.lines();
        let version = lines.next().and_then(|line| line.strip_prefix(HEAD)).ok_or_else(wrong)?;
        let version = version.parse().map_err(|_| wrong())?;
        if version != VERSION {
            return Err(Error::Version { path: path.to_owned(), what: WHAT, found: version, known: VERSION });
        }
        let mut value = |name: &str| {
            lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' ')).ok_or_else(wrong)
        };
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let identity = unhex(value("identity")?).ok_or_else(wrong)?;
        let created = number(value("created")?)?;
        let records = number(value("records")?)?;
        let addresses = unhex(value("addresses")?).ok_or_else(wrong)?;
        let amounts = unhex(value("amounts")?).ok_or_else(wrong)?;
        let mut kinds = Vec::new();
        for line in lines {
            let words =
                line.strip_prefix("kind ").and_then(|words| words.split_once(' ')).ok_or_else(wrong)?;
            kinds.push((Kind::find(words.0).ok_or_else(wrong)?, number(words.1)?));
        }
        if kinds.iter().map(|(_, count)| count).sum::<u64>() != records {
            return Err(corrupt("its kinds do not add up to its records"));
        }
        Ok(Self { identity, created, records, addresses, amounts, kinds })
    }

    /// In what the records found differ from what is said of them.
    pub(super) fn difference(&self, found: &Self) -> Option<String> {
        let Self { identity: _, created: _, records, addresses, amounts, kinds } = self;
        if *records != found.records {
            return Some(format!("it has {} records where {records} should be", found.records));
        }
        if *addresses != found.addresses || *kinds != found.kinds {
            return Some("its addresses are not those that were put in (another SHA-256)".into());
        }
        (*amounts != found.amounts)
            .then(|| "its amounts are not those that were put in (another SHA-256)".into())
    }
}

/// Adds records up, in order.
#[derive(Default)]
pub(super) struct Summary {
    addresses: Sha256,
    amounts: Sha256,
    kinds: [u64; Kind::ALL.len()],
    count: u64,
}

impl Summary {
    pub fn add(&mut self, entry: &Entry) {
        let (key, value) = (entry.key(), entry.value());
        self.addresses.update(key);
        self.amounts.update([value.len() as u8]);
        self.amounts.update(value);
        let kind = Kind::ALL.iter().position(|kind| *kind as u8 == key[0]).expect("an entry has a kind");
        self.kinds[kind] += 1;
        self.count += 1;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn finish(self, identity: [u8; 16], created: u64) -> About {
        let kinds = Kind::ALL.into_iter().zip(self.kinds).filter(|(_, count)| *count > 0).collect();
        About {
            identity,
            created,
            records: self.count,
            addresses: self.addresses.finalize().into(),
            amounts: self.amounts.finalize().into(),
            kinds,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_again_and_damage_is_not() {
        let mut summary = Summary::default();
        for (kind, fill) in [(Kind::P2pkh, 1), (Kind::P2pkh, 2), (Kind::P2tr, 0)] {
            summary.add(&Entry::from_parts(kind, &vec![fill; kind.digest_bytes()], Some(5)));
        }
        let about = summary.finish([7; 16], 1_763_200_000);
        assert_eq!((about.records, about.count(Kind::P2pkh), about.count(Kind::P2sh)), (3, 2, 0));
        let text = about.write();
        let path = Path::new("db");
        assert_eq!(About::read(path, text.as_bytes()).unwrap(), about);
        for (from, to) in [
            ("records 3", "records 4"),
            ("records 3", "records x"),
            ("kind p2tr", "kind p2wsh"),
            ("identity 07", "identity 7"),
            ("amounts", "amount"),
            ("warpsmith", "w"),
        ] {
            let wrong = text.replace(from, to);
            assert!(
                matches!(About::read(path, wrong.as_bytes()), Err(Error::Corrupt { .. })),
                "{from} -> {to}"
            );
        }
        let newer = text.replace("database 1", "database 2");
        assert!(matches!(About::read(path, newer.as_bytes()), Err(Error::Version { found: 2, .. })));
    }
}
