//! Snapshots of accounts as CSV: the first line names the columns, each other line is an account.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use warpsmith_rms24::keyword::{Name, name};
use warpsmith_rms24::table::Take;
use warpsmith_rms24::{Error, Result};

use super::lines::{Wrong, each_line, quoted};
use crate::code::{code_hash, code_hash_record, code_number};
use crate::look_up::parse_hex;
use crate::record::{Account, Address, account_record};

/// A key and its record.
pub(super) type KeyRecord = (Vec<u8>, Vec<u8>);

/// What is read of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Address,
    Balance,
    Nonce,
    CodeHash,
    /// Something else, which a state has no place for.
    Other,
}

impl Column {
    fn of(title: &str) -> Column {
        match title.trim().to_lowercase().as_str() {
            "address" => Column::Address,
            // BigQuery's public tables say it so.
            "balance" | "eth_balance" => Column::Balance,
            "nonce" => Column::Nonce,
            "code_hash" | "codehash" => Column::CodeHash,
            _ => Column::Other,
        }
    }
}

/// A file of accounts.
pub struct Accounts {
    path: PathBuf,
    /// Records: an account has one, and a contract whose code is known by its hash another.
    pub keys: u64,
    /// Titles of columns that are not read.
    pub left_out: Vec<String>,
}

impl Accounts {
    /// Reads the whole file once: nothing is built from one with a wrong line. `watch` is called now and then, and may end it.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, a line is wrong, or `watch` fails.
    pub fn survey(path: &Path, watch: &mut dyn FnMut() -> Result<()>) -> Result<Accounts> {
        let mut accounts = Accounts { path: path.to_owned(), keys: 0, left_out: Vec::new() };
        let mut keys = 0;
        let left_out = accounts.each_account(&mut |_, records| {
            keys += records.len() as u64;
            if keys % (1 << 14) < 2 { watch() } else { Ok(()) }
        })?;
        (accounts.keys, accounts.left_out) = (keys, left_out);
        Ok(accounts)
    }

    /// Hands over all records with their keys.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, a line is wrong, or `take` fails.
    pub fn each(&self, take: &mut Take<'_>) -> Result<()> {
        self.each_account(&mut |_, records| records.iter().try_for_each(|(key, record)| take(key, record)))?;
        Ok(())
    }

    /// Hands over every line with its records; says which columns are left out.
    fn each_account(&self, take: &mut dyn FnMut(u64, &[KeyRecord]) -> Result<()>) -> Result<Vec<String>> {
        let opened = File::open(&self.path).map_err(|source| Error::Io { path: self.path.clone(), source });
        let (mut columns, mut left_out) = (Vec::new(), Vec::new());
        each_line(&self.path, &mut BufReader::with_capacity(1 << 20, opened?), &mut |line| {
            // What editors put before a text.
            let fields = fields(line.text.trim_start_matches('\u{feff}')).map_err(Wrong::Here)?;
            if columns.is_empty() {
                columns = titles(&fields).map_err(Wrong::Here)?;
                let others = columns.iter().zip(&fields).filter(|(column, _)| **column == Column::Other);
                left_out = others.map(|(_, title)| title.clone()).collect();
                return Ok(());
            }
            let records = read(&columns, &fields).map_err(Wrong::Here)?;
            take(line.number, &records).map_err(Wrong::Elsewhere)
        })?;
        Ok(left_out)
    }

    /// An error with the lines of an address that occurs twice, where that is what went wrong.
    pub fn with_lines(&self, error: Error) -> Error {
        let Error::SameKey(twice) = error else { return error };
        match self.lines_of(&twice).as_deref() {
            Ok([first, second, ..]) => Error::Format {
                what: format!("{}:{second}", self.path.display()),
                reason: format!("this address is that of line {first}; give each account once"),
            },
            _ => error,
        }
    }

    fn lines_of(&self, wanted: &Name) -> Result<Vec<u64>> {
        let mut lines = Vec::new();
        self.each_account(&mut |line, records| {
            // Its record may be the same, or that of its code.
            lines.extend(records.iter().any(|(key, _)| name(key) == *wanted).then_some(line));
            Ok(())
        })?;
        Ok(lines)
    }
}

/// What the columns are.
fn titles(fields: &[String]) -> std::result::Result<Vec<Column>, String> {
    let columns: Vec<Column> = fields.iter().map(|title| Column::of(title)).collect();
    let times = |wanted| columns.iter().filter(|column| **column == wanted).count();
    if times(Column::Address) == 0 {
        let given = quoted(fields.first().map_or("", String::as_str));
        return Err(format!(
            "the first line names the columns, and none of them is address (the first is {given}); such as \
             address,balance,nonce,code_hash"
        ));
    }
    match [Column::Address, Column::Balance, Column::Nonce, Column::CodeHash]
        .into_iter()
        .find(|one| times(*one) > 1)
    {
        Some(twice) => Err(format!("there are two columns of {twice:?}")),
        None => Ok(columns),
    }
}

/// The records that follow from a line.
fn read(columns: &[Column], fields: &[String]) -> std::result::Result<Vec<KeyRecord>, String> {
    if fields.len() != columns.len() {
        return Err(format!("{} fields, and the first line names {} columns", fields.len(), columns.len()));
    }
    let (mut address, mut balance, mut nonce, mut hash) = (None, 0, 0, None);
    for (column, field) in columns.iter().zip(fields.iter().map(|field| field.trim())) {
        match column {
            Column::Address => {
                let bytes = parse_hex(field).ok().and_then(|bytes| Address::try_from(bytes).ok());
                address =
                    Some(bytes.ok_or_else(|| {
                        format!("{} is no address; give 0x and 40 hex digits", quoted(field))
                    })?);
            }
            Column::Balance => {
                balance = number(field)
                    .ok_or_else(|| format!("{} is no balance; give a whole number of wei", quoted(field)))?;
            }
            Column::Nonce => {
                nonce = number(field)
                    .and_then(|nonce| u32::try_from(nonce).ok())
                    .ok_or_else(|| format!("{} is no nonce; give a number below 2^32", quoted(field)))?;
            }
            Column::CodeHash if field.is_empty() => {}
            Column::CodeHash => {
                let bytes = parse_hex(field).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
                let bytes =
                    bytes.ok_or_else(|| format!("{} is no hash; give 64 hex digits", quoted(field)))?;
                hash = Some(bytes).filter(|hash| *hash != [0; 32] && *hash != code_hash(&[]));
            }
            Column::Other => {}
        }
    }
    let address = address.ok_or("there is no address")?;
    Ok(account_records(&address, balance, nonce, hash))
}

/// The record of an account, and where it has a code the one that tells its hash.
pub(super) fn account_records(
    address: &Address,
    balance: u128,
    nonce: u32,
    hash: Option<[u8; 32]>,
) -> Vec<KeyRecord> {
    let account = Account { balance, nonce, code: hash.as_ref().map_or(0, code_number) };
    let mut records = vec![(address.to_vec(), account_record(address, &account).to_vec())];
    records.extend(hash.map(|hash| {
        let (key, record) = code_hash_record(address, &hash);
        (key, record.to_vec())
    }));
    records
}

/// A number in digits, or in hex after 0x; nothing is none of either.
pub(super) fn number(text: &str) -> Option<u128> {
    match text.strip_prefix("0x") {
        _ if text.is_empty() => Some(0),
        Some(digits) if !digits.starts_with('+') => u128::from_str_radix(digits, 16).ok(),
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

/// The fields of a line: between commas, or between quotation marks, of which two mean one (RFC 4180). None goes on in the next line.
fn fields(line: &str) -> std::result::Result<Vec<String>, String> {
    let (mut all, mut rest) = (Vec::new(), line);
    loop {
        let mut field = String::new();
        if let Some(mut quoted) = rest.strip_prefix('"') {
            loop {
                let (part, after) =
                    quoted.split_once('"').ok_or("a quotation mark is not closed in its line")?;
                field.push_str(part);
                match after.strip_prefix('"') {
                    Some(more) => {
                        field.push('"');
                        quoted = more;
                    }
                    None => {
                        rest = after;
                        break;
                    }
                }
            }
            if !rest.is_empty() && !rest.starts_with(',') {
                return Err("there is something between a quotation mark and the next comma".to_owned());
            }
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            field.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        all.push(field);
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Ok(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_what_others_say_they_are() {
        // As Python's csv reads them.
        for (line, expected) in [
            ("a,b,c", vec!["a", "b", "c"]),
            ("", vec![""]),
            (",", vec!["", ""]),
            ("a,\"b,c\",d", vec!["a", "b,c", "d"]),
            ("\"say \"\"hi\"\"\",x", vec!["say \"hi\"", "x"]),
            ("\"\",\"\"", vec!["", ""]),
            ("a\"b,c", vec!["a\"b", "c"]),
        ] {
            assert_eq!(fields(line).unwrap(), expected, "{line}");
        }
        assert!(fields("a,\"b").is_err() && fields("\"a\"b,c").is_err());
    }

    #[test]
    fn numbers_are_digits_or_hex() {
        for (text, value) in [("", 0), ("0", 0), ("12", 12), ("0xff", 255), ("007", 7)] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for wrong in ["-1", "+1", "1.5", "1e18", "0x", "0x+1", "ff", "1 2", &"9".repeat(40)] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }
}
