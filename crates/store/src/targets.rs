//! A list of addresses to scan for: one to a few thousand from files, held in memory.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::input::{BadLine, Line, Report, read_blocks, read_line};
use crate::map::{Source, Targets};
use crate::record::Entry;
use crate::{Error, Record};

/// Addresses to scan for, in the order of a database and without duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetList {
    /// The addresses.
    pub records: Vec<Record>,
    /// What became of the lines.
    pub report: Report,
}

impl TargetList {
    /// Reads files of addresses, one address per line, as [`crate::Database::build`] does. With `strict` a line that is none is an
    /// error; otherwise it is counted. Files without any address are an error.
    pub fn read(paths: &[PathBuf], strict: bool) -> Result<Self, Error> {
        let mut report = Report::default();
        let mut records = Vec::new();
        for path in paths {
            let mut stopped = None;
            read_blocks(
                path,
                |_| (),
                |block| {
                    for (number, line) in block.lines() {
                        match read_line(number, line) {
                            Line::Record(record) => records.push(record),
                            Line::Script => report.scripts += 1,
                            Line::Nothing => {}
                            Line::Bad(reason) => {
                                let bad = BadLine { path: path.clone(), line: number, reason };
                                if strict {
                                    stopped = Some(bad);
                                    return false;
                                }
                                report.add_bad(bad);
                            }
                        }
                    }
                    true
                },
            )?;
            if let Some(bad) = stopped {
                return Err(Error::BadLine(bad));
            }
        }
        if records.is_empty() {
            let path = paths.first().map_or_else(|| Path::new("the list").to_owned(), Clone::clone);
            return Err(Error::NoAddress { path });
        }
        Ok(Self::sorted(records, report))
    }

    /// Addresses that a program has at hand. One that cannot be scanned for is an error, and so are none at all.
    pub fn of(addresses: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, Error> {
        let mut records = Vec::new();
        for (index, address) in addresses.into_iter().enumerate() {
            let bad = |reason: String| {
                let path = Path::new("the list of addresses").to_owned();
                Error::BadLine(BadLine { path, line: index as u64 + 1, reason })
            };
            let record = Record::parse(address.as_ref()).map_err(|error| bad(error.to_string()))?;
            records.push(
                record.ok_or_else(|| {
                    bad("it is the address of a script, which no single key has".to_owned())
                })?,
            );
        }
        if records.is_empty() {
            return Err(Error::NoAddress { path: Path::new("the list of addresses").to_owned() });
        }
        Ok(Self::sorted(records, Report::default()))
    }

    /// In the order of a database, without duplicates.
    fn sorted(mut records: Vec<Record>, mut report: Report) -> Self {
        report.addresses = records.len() as u64;
        // Of equal addresses the largest amount stays, as in a database.
        records.sort_by_key(Entry::new);
        records.reverse();
        records.dedup_by_key(|record| (record.kind, record.digest));
        records.reverse();
        report.duplicates = report.addresses - records.len() as u64;
        Self { records, report }
    }

    /// What a map names them by. Amounts do not matter.
    pub fn targets(&self) -> Targets {
        let mut hash = Sha256::new();
        for record in &self.records {
            hash.update(Entry::new(record).key());
        }
        Targets {
            source: Source::Addresses,
            count: self.records.len() as u64,
            digest: hash.finalize().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str], strict: bool) -> Result<TargetList, Error> {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> =
            (0..texts.len()).map(|index| folder.path().join(index.to_string())).collect();
        for (path, text) in paths.iter().zip(texts) {
            std::fs::write(path, text).unwrap();
        }
        TargetList::read(&paths, strict)
    }

    const ONE: &str = "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2";
    const TWO: &str = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";

    #[test]
    fn lists_are_the_same_in_any_order() {
        let list = read(&[&format!("{ONE}\n{TWO}\n"), &format!("# again\n{ONE}\t7\n")], false).unwrap();
        assert_eq!(list.records.iter().map(Record::text).collect::<Vec<_>>(), [ONE, TWO]);
        assert_eq!(list.records[0].amount, Some(7));
        assert_eq!((list.report.addresses, list.report.duplicates), (3, 1));
        let other = read(&[&format!("{TWO}\n{ONE}")], true).unwrap();
        assert_eq!(list.targets(), other.targets());
        assert_ne!(list.targets(), read(&[ONE], true).unwrap().targets());
    }

    #[test]
    fn bad_lines_are_counted_or_stop() {
        let text = format!("{ONE}\nnonsense\n{TWO}\n\nmore nonsense");
        let list = read(&[&text], false).unwrap();
        assert_eq!((list.records.len(), list.report.bad), (2, 2));
        assert_eq!(list.report.bad_lines.iter().map(|bad| bad.line).collect::<Vec<_>>(), [2, 5]);
        let error = read(&[&text], true).unwrap_err();
        assert!(matches!(&error, Error::BadLine(bad) if bad.line == 2), "{error}");
        assert!(matches!(read(&["\n"], false), Err(Error::NoAddress { .. })));
        assert!(matches!(TargetList::read(&["/nowhere".into()], false), Err(Error::Io { .. })));
    }
}
