//! Numbers in JSON documents. Readers that keep numbers as doubles lose digits above 2^53, so there is one rule (docs/json.md,
//! "Numbers"): an unbounded count is always decimal text, a time beyond 2^53 seconds is `null`, and all else is a number below that.

use std::fmt::Display;

use serde::Serializer;

/// Largest number up to which every integer is a double.
const MAX_EXACT: f64 = (1u64 << 53) as f64;

/// Serializes a number as decimal text.
pub fn text<T: Display, S: Serializer>(number: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(number)
}

/// Serializes a number that may be absent as decimal text.
pub fn text_if_any<T: Display, S: Serializer>(number: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => text(number, to),
        None => to.serialize_none(),
    }
}

/// Serializes a whole number, as `null` above 2^53: what is so large was made up.
pub fn whole<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
    match *number <= 1 << 53 {
        true => to.serialize_u64(*number),
        false => to.serialize_none(),
    }
}

/// Serializes seconds, as `null` where there are more than 2^53 (285 million years).
pub fn seconds<S: Serializer>(seconds: &f64, to: S) -> Result<S::Ok, S::Error> {
    match *seconds <= MAX_EXACT {
        true => to.serialize_f64(*seconds),
        false => to.serialize_none(),
    }
}

/// Serializes a rate that may be absent, as `null` above 2^53 a second: no device is so fast.
pub fn rate_if_any<S: Serializer>(rate: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    seconds_if_any(rate, to)
}

/// Serializes seconds that may be absent.
pub fn seconds_if_any<S: Serializer>(all: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    match all {
        Some(all) => seconds(all, to),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    #[derive(Serialize)]
    struct Line {
        #[serde(serialize_with = "super::text")]
        tried: u64,
        #[serde(serialize_with = "super::text")]
        difficulty: f64,
        #[serde(serialize_with = "super::text_if_any")]
        nonce: Option<u64>,
        #[serde(serialize_with = "super::seconds")]
        expected_s: f64,
        #[serde(serialize_with = "super::seconds_if_any")]
        left_s: Option<f64>,
    }

    #[test]
    fn no_number_exceeds_what_doubles_keep() {
        let line = |tried, difficulty, nonce, expected_s, left_s| {
            serde_json::to_string(&Line { tried, difficulty, nonce, expected_s, left_s }).unwrap()
        };
        assert_eq!(
            line(7, 1.5, None, 0.25, Some(1e3)),
            r#"{"tried":"7","difficulty":"1.5","nonce":null,"expected_s":0.25,"left_s":1000.0}"#
        );
        assert_eq!(
            line(u64::MAX, 2f64.powi(60), Some(u64::MAX - 1), 1e17, Some(f64::INFINITY)),
            r#"{"tried":"18446744073709551615","difficulty":"1152921504606847000","nonce":"18446744073709551614","expected_s":null,"left_s":null}"#
        );
    }
}
