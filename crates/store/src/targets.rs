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
        let mut list = Self { records: Vec::new(), report: Report::default() };
        paths.iter().try_for_each(|path| list.read_file(path, strict))?;
        list.finished(paths.first().map_or(Path::new("the list"), PathBuf::as_path))
    }

    /// Reads what a person gives: each is a file, as for [`Self::read`], or where there is no file of that name an address itself.
    ///
    /// ```
    /// use warpsmith_store::TargetList;
    ///
    /// let list = TargetList::read_given(&["1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2".into()], false)?;
    /// assert_eq!(list.records.len(), 1);
    /// # Ok::<(), warpsmith_store::Error>(())
    /// ```
    pub fn read_given(given: &[PathBuf], strict: bool) -> Result<Self, Error> {
        let mut list = Self { records: Vec::new(), report: Report::default() };
        for path in given {
            let text = path.to_str().filter(|text| *text != "-" && std::fs::symlink_metadata(path).is_err());
            match text {
                None => list.read_file(path, strict)?,
                Some(text) => list.records.push(address(text)?),
            }
        }
        list.finished(given.first().map_or(Path::new("the list"), PathBuf::as_path))
    }

    /// Adds the addresses of a file.
    fn read_file(&mut self, path: &Path, strict: bool) -> Result<(), Error> {
        let Self { records, report } = self;
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
                            let bad = BadLine { path: path.to_owned(), line: number, reason };
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
        stopped.map_or(Ok(()), |bad| Err(Error::BadLine(bad)))
    }

    /// The list, unless it is empty; `path` is its first source.
    fn finished(self, path: &Path) -> Result<Self, Error> {
        match self.records.is_empty() {
            true => Err(Error::NoAddress { path: path.to_owned(), report: Box::new(self.report) }),
            false => Ok(Self::sorted(self.records, self.report)),
        }
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
            records.push(record.ok_or_else(|| bad(SCRIPT.to_owned()))?);
        }
        Self { records, report: Report::default() }.finished(Path::new("the list of addresses"))
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

/// Why an address of a script is refused.
const SCRIPT: &str = "it is the address of a script, which no single key has";

/// The record of an address that was given where a file could be.
fn address(text: &str) -> Result<Record, Error> {
    let bad = |reason: String| Error::NotATarget { given: text.to_owned(), reason };
    let record = Record::parse(text.trim()).map_err(|error| match error {
        // SEC: what may be a key is not repeated.
        warpsmith_chain::Error::Secret { .. } => {
            Error::NotATarget { given: String::new(), reason: error.to_string() }
        }
        error => bad(error.to_string()),
    })?;
    record.ok_or_else(|| bad(SCRIPT.to_owned()))
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
    fn an_address_stands_for_itself_and_a_file_for_its_lines() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list");
        std::fs::write(&file, format!("{ONE} 10\n")).unwrap();
        let given = |texts: &[&Path]| {
            let paths: Vec<PathBuf> = texts.iter().map(|text| text.to_path_buf()).collect();
            TargetList::read_given(&paths, false)
        };
        let list = given(&[TWO.as_ref(), &file]).unwrap();
        assert_eq!(list.records.iter().map(Record::text).collect::<Vec<_>>(), [ONE, TWO]);
        assert_eq!(list.records[0].amount, Some(10));
        let error = given(&[Path::new("lits.txt")]).unwrap_err().to_string();
        assert!(error.contains("'lits.txt' is not an address") && error.contains("no file"), "{error}");
        let wif = "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ";
        let error = given(&[wif.as_ref()]).unwrap_err();
        assert!(error.to_string().contains("SECRET") && !format!("{error:?}").contains(wif), "{error}");
    }

    #[test]
    fn a_file_without_an_address_says_why() {
        let error = read(
            &[&format!("{ONE}x\nbc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3\n")],
            false,
        );
        let error = error.unwrap_err().to_string();
        assert!(error.contains("line 1: ") && error.contains("no single key has: 1"), "{error}");
        let error = read(&[&"nonsense\n".repeat(30)], false).unwrap_err().to_string();
        assert!(
            error.contains("30 lines") && error.contains("line 20: ") && !error.contains("line 21: "),
            "{error}"
        );
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
