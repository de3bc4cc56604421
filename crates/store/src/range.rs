//! The range of private keys a scan is asked for, as a person writes it.

use warpsmith_text::Shown;

use crate::interval::{Interval, U256};

/// The order of secp256k1's group: keys are 1 to one less.
pub fn key_order() -> U256 {
    U256::from_words(0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe, 0xbaae_dce6_af48_a03b_bfd2_5e8c_d036_4141)
}

/// A text that is no range of keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// Not two bounds.
    #[error(
        "'{}' is not a range: write the first and the last key with a colon between, as in 8000:ffff or 2^65:2^66-1, or the first \
         and how many, as in 8000:+2^20",
        Shown(.0)
    )]
    Shape(String),
    /// A bound that is no number.
    #[error(
        "'{}' is not a bound of a range: write hexadecimal digits, with or without 0x, or a power of two such as 2^65, \
         2^66-1 or 2^65+3",
        Shown(.0)
    )]
    Bound(String),
    /// A bound beyond 256 bits.
    #[error("'{}' is not below 2^256; the last key is n - 1 = {last:x}", Shown(.0), last = key_order() - U256::ONE)]
    Large(String),
    /// Outside of what keys there are.
    #[error("'{}' is no private key: keys are 1 to n - 1 = {last:x}", Shown(.0), last = key_order() - U256::ONE)]
    NoKey(String),
    /// None at all.
    #[error("the range {} has no keys: write how many behind the plus, as in 8000:+2^20", Shown(.0))]
    Empty(String),
    /// More keys than there are.
    #[error("the range {} goes beyond the last key, n - 1 = {last:x}", Shown(.0), last = key_order() - U256::ONE)]
    Beyond(String),
    /// From high to low.
    #[error("the range {} ends before it begins: exchange the bounds", Shown(.0))]
    Reversed(String),
}

/// Reads a range of keys: two inclusive bounds with a colon between, each in hexadecimal digits or as a power of two with
/// a small number (in decimal digits) added or taken away; or the first key and, behind a plus, how many there are.
pub fn parse_range(text: &str) -> Result<Interval, RangeError> {
    let (first, last) = text.split_once(':').ok_or_else(|| RangeError::Shape(text.to_owned()))?;
    let bound = |text: &str| {
        let number = parse_bound(text.trim())?;
        let is_key = number != U256::ZERO && number < key_order();
        if is_key { Ok(number) } else { Err(RangeError::NoKey(text.trim().to_owned())) }
    };
    let first = bound(first)?;
    let last = match last.trim().strip_prefix('+') {
        None => bound(last)?,
        Some(count) => {
            let count = parse_bound(count.trim())?.checked_sub(U256::ONE);
            let count = count.ok_or_else(|| RangeError::Empty(text.to_owned()))?;
            let last = first.checked_add(count).filter(|last| *last < key_order());
            last.ok_or_else(|| RangeError::Beyond(text.to_owned()))?
        }
    };
    Interval::new(first, last).ok_or_else(|| RangeError::Reversed(text.to_owned()))
}

fn parse_bound(text: &str) -> Result<U256, RangeError> {
    let wrong = || RangeError::Bound(text.to_owned());
    let large = || RangeError::Large(text.to_owned());
    if let Some(power) = text.strip_prefix("2^") {
        let sign_at = power.find(['+', '-']).unwrap_or(power.len());
        let (exponent, rest) = power.split_at(sign_at);
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(exponent) || !(rest.is_empty() || digits(&rest[1..])) {
            return Err(wrong());
        }
        let exponent: usize = exponent.parse().map_err(|_| large())?;
        let small: U256 =
            if rest.is_empty() { U256::ZERO } else { rest[1..].parse().map_err(|_| large())? };
        // 2^256-1 is a number of 256 bits although 2^256 is none.
        return match (exponent, rest.starts_with('-')) {
            (..256, true) => (U256::ONE << exponent).checked_sub(small).ok_or_else(wrong),
            (..256, false) => (U256::ONE << exponent).checked_add(small).ok_or_else(large),
            (256, true) if small > U256::ZERO => Ok(U256::MAX - (small - U256::ONE)),
            _ => Err(large()),
        };
    }
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let digits = digits.trim_start_matches('0');
    if digits.len() > 64 {
        return Err(large());
    }
    Ok(digits.bytes().fold(U256::ZERO, |number, digit| {
        number << 4 | U256::from(char::from(digit).to_digit(16).unwrap_or(0))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_are_written() {
        let read = |text: &str| parse_range(text).map(|range| range.to_string());
        for (text, range) in [
            ("1:1", "1:1"),
            ("0x8000:0xFfFf", "8000:ffff"),
            ("2^65:2^66-1", "20000000000000000:3ffffffffffffffff"),
            ("2^0:2^3+10", "1:12"),
            ("0001:00ff", "1:ff"),
            ("8000:+1", "8000:8000"),
            ("8000:+100", "8000:80ff"),
            ("2^65:+2^65", "20000000000000000:3ffffffffffffffff"),
            ("1: +2^4-1", "1:f"),
            (
                "2^255:2^256-432420386565659656852420866394968145600",
                "8000000000000000000000000000000000000000000000000000000000000000:\
              fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140",
            ),
        ] {
            assert_eq!(read(text).as_deref(), Ok(range), "{text}");
        }
        let order = key_order();
        assert_eq!(read(&format!("1:{:x}", order - U256::ONE)), Ok(format!("1:{:x}", order - U256::ONE)));
    }

    #[test]
    fn what_is_no_range_is_refused_with_the_reason() {
        let refusal = |text: &str| parse_range(text).unwrap_err();
        assert_eq!(refusal("8000"), RangeError::Shape("8000".into()));
        for text in
            [":", "1:", "g:ff", "0x:1", "2^:5", "2^x:5", "2^5-:5", "2^5+a:5", "2^2-9:5", "-1:5", "1:2:3"]
        {
            assert!(matches!(refusal(text), RangeError::Bound(_)), "{text}");
        }
        for text in ["1:2^256", "1:2^300", "1:2^99999999999999999999", &format!("1:1{}", "0".repeat(64))] {
            assert!(matches!(refusal(text), RangeError::Large(_)), "{text}");
        }
        for text in ["0:5", "2^0-1:5", "1:2^256-1", &format!("1:{:x}", key_order())] {
            assert!(matches!(refusal(text), RangeError::NoKey(_)), "{text}");
        }
        assert_eq!(refusal("5:4"), RangeError::Reversed("5:4".into()));
        assert_eq!(refusal("5:+0"), RangeError::Empty("5:+0".into()));
        assert!(matches!(refusal("5:+"), RangeError::Bound(_)));
        assert!(matches!(refusal("+5:6"), RangeError::Bound(_)));
        assert!(matches!(refusal("2:+2^256-1"), RangeError::Beyond(_)), "past 2^256");
        let whole = format!("1:+{:x}", key_order() - U256::ONE);
        assert_eq!(parse_range(&whole).unwrap().last(), key_order() - U256::ONE);
        assert!(matches!(refusal(&format!("1:+{:x}", key_order())), RangeError::Beyond(_)));
    }
}
