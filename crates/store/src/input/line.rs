//! One line of a list: an address, perhaps with an amount.

use crate::Record;

/// What a line turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// An address that a single key may have, with its amount where there is one.
    Record(Record),
    /// An address that no single key has.
    Script,
    /// Empty, a comment, or the head of a table.
    Nothing,
    /// Not an address, with the reason.
    Bad(String),
}

/// Separators of columns, besides spaces. No address has any of them in it.
const SEPARATORS: [char; 3] = ['\t', ',', ';'];

/// How Blockchair's dumps name outputs without an address: data, multisig and other scripts.
const SCRIPTS: [&str; 3] = ["d-", "m-", "s-"];

/// A line without what may stand around its columns: a mark that some editors put at the front, and spaces.
fn bare(line: &[u8]) -> Option<&str> {
    Some(std::str::from_utf8(line).ok()?.trim_start_matches('\u{feff}').trim())
}

/// Splits a line into its address and the column behind it, without the spaces around them. Columns are as wide as their separators
/// say: only where spaces alone stand behind the address do spaces end the second column too.
fn columns(text: &str) -> (&str, &str) {
    let is_end = |c: char| c == ' ' || SEPARATORS.contains(&c);
    let (address, rest) = text.split_at(text.find(is_end).unwrap_or(text.len()));
    let rest = rest.trim_start_matches(' ');
    let second = match rest.strip_prefix(SEPARATORS) {
        Some(rest) => rest.split(SEPARATORS).next(),
        None => rest.split(is_end).next(),
    };
    (address, second.unwrap_or_default().trim())
}

/// Returns the first column of a line, which has its address, as it is written.
pub fn address_column(line: &[u8]) -> &str {
    bare(line).map_or("", |text| columns(text).0)
}

/// Reads a line: an address and, in a second column, an amount. Further columns are ignored. Lines that begin with
/// `#`, and a first line whose first column is the word `address`, say nothing.
pub fn read_line(number: u64, line: &[u8]) -> Line {
    let Some(text) = bare(line) else { return Line::Bad("it is not text (UTF-8)".into()) };
    if text.is_empty() || text.starts_with('#') {
        return Line::Nothing;
    }
    let (address, amount) = columns(text);
    if number == 1 && address.eq_ignore_ascii_case("address") {
        return Line::Nothing;
    }
    if SCRIPTS.iter().any(|head| address.starts_with(head)) {
        return Line::Script;
    }
    let record = match Record::parse(address) {
        Ok(Some(record)) => record,
        Ok(None) => return Line::Script,
        Err(error) => return Line::Bad(error.to_string()),
    };
    let amount = match amount {
        "" => None,
        amount if amount.bytes().all(|byte| byte.is_ascii_digit()) => match amount.parse() {
            Ok(amount) => Some(amount),
            Err(_) => return Line::Bad("the amount is beyond 2^128".into()),
        },
        _ => {
            return Line::Bad("the amount is not a whole number in the smallest unit (satoshi, wei)".into());
        }
    };
    Line::Record(Record { amount, ..record })
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpsmith_chain::AddressKind;

    const ADDRESS: &str = "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2";

    fn amount(line: &str) -> Option<u128> {
        match read_line(7, line.as_bytes()) {
            Line::Record(record) => {
                assert_eq!((record.kind, record.text().as_str()), (AddressKind::P2PKH, ADDRESS));
                record.amount
            }
            _ => panic!("{line}"),
        }
    }

    #[test]
    fn an_address_may_have_an_amount_and_more() {
        for (rest, expected) in [
            ("", None),
            ("\t", None),
            ("\t5", Some(5)),
            (" 10", Some(10)),
            ("   10  mine, since 2014", Some(10)),
            (" ; 7 ; x", Some(7)),
            ("\t\t5", None),
            (",5,x,y", Some(5)),
            ("; 12 ;", Some(12)),
            ("\t0", Some(0)),
            ("\t340282366920938463463374607431768211455", Some(u128::MAX)),
        ] {
            assert_eq!(amount(&format!("{ADDRESS}{rest}")), expected, "{rest}");
            let framed = format!("\u{feff}  {ADDRESS}{rest} ");
            assert_eq!(amount(&framed), expected);
            assert_eq!(address_column(framed.as_bytes()), ADDRESS);
        }
    }

    #[test]
    fn lines_without_an_address_are_nothing() {
        for line in ["", "  ", "# a comment", "\t"] {
            assert!(matches!(read_line(7, line.as_bytes()), Line::Nothing | Line::Bad(_)));
        }
        assert!(matches!(read_line(1, b"address\tbalance"), Line::Nothing));
        assert!(matches!(read_line(1, b"Address"), Line::Nothing));
        // Only at the top.
        assert!(matches!(read_line(2, b"address\tbalance"), Line::Bad(_)));
    }

    #[test]
    fn scripts_are_told_from_errors() {
        for line in [
            "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3\t100",
            "d-87a2dde3d4f7ab8b1f4f1b3a3a45cd7d\t5",
            "m-0d8b6c6e0d6e1cb0d6e1cb0d6e1cb0d6\t5",
            "s-22ac6cbda3d33b21ab4e2b6c4ae6cd1c",
        ] {
            assert!(matches!(read_line(7, line.as_bytes()), Line::Script), "{line}");
        }
    }

    #[test]
    fn bad_lines_say_why_and_never_repeat_a_secret() {
        let reason = |line: &str| match read_line(7, line.as_bytes()) {
            Line::Bad(reason) => reason,
            _ => panic!("{line}"),
        };
        assert!(reason(&format!("{ADDRESS}\t0.5")).contains("whole number"));
        assert!(reason(&format!("{ADDRESS}\t-5")).contains("whole number"));
        assert!(reason(&format!("{ADDRESS} 0.5")).contains("whole number"));
        assert!(reason(&format!("{ADDRESS}\t10 BTC")).contains("whole number"));
        assert!(reason(&format!("{ADDRESS}\t{}0", u128::MAX)).contains("2^128"));
        assert!(reason("1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3").contains("checksum"));
        let wif = "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ";
        assert!(!reason(wif).contains(wif) && reason(wif).contains("SECRET"));
        assert!(matches!(read_line(7, b"\xff\xfe"), Line::Bad(_)));
    }
}
