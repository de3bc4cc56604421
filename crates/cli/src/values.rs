//! Parsers of flag values that only searches and scans have.

use std::time::{SystemTime, UNIX_EPOCH};

use warpsmith::chain::Birthday;
use warpsmith_console::times::parse_date;

/// Largest count that every reader of JSON keeps exactly: 2^53.
const MAX_EXACT: u64 = 1 << 53;

/// Parses a day as `2013-04-01`: its first second in UTC.
pub(crate) fn parse_birthday(text: &str) -> Result<Birthday, String> {
    let refuse = || format!("'{text}' is not a date of the past; expected YYYY-MM-DD, such as 2013-04-01");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    parse_date(text).filter(|day| *day <= now).map(Birthday::At).ok_or_else(refuse)
}

/// Parses a number of matches.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(count) if count <= MAX_EXACT => Ok(count),
        Ok(_) => {
            Err(format!("no search finds so many: give {MAX_EXACT} or less, or 0 to search until stopped"))
        }
        Err(_) => Err("give a whole number, 0 for a search that never stops by itself".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_in_utc() {
        assert_eq!(parse_birthday("2013-04-01"), Ok(Birthday::At(1_364_774_400)));
        assert_eq!(parse_birthday("1970-01-01"), Ok(Birthday::At(0)));
        for wrong in ["", "now", "20130401", "2013-04-31", "1969-12-31", "2999-01-01", "1364774400"] {
            let told = parse_birthday(wrong).expect_err(wrong);
            assert!(told.contains("YYYY-MM-DD"), "{told}");
        }
    }

    #[test]
    fn counts_stay_exact_in_json() {
        assert_eq!(parse_count("9007199254740992"), Ok(1 << 53));
        assert!(parse_count("9007199254740993").is_err_and(|told| told.contains("or less")));
    }
}
