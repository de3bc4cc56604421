//! Formats and parsers of numbers, durations and text for people.
//!
//! Spaces are plain, separators are commas, and every formatted value fits a progress line.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;
use std::time::Duration;

/// Formats a count: `1,048,576`, and from 10^18 on `1.15e18`.
pub fn count(value: f64) -> String {
    if !(0.0..1e18).contains(&value) {
        return format!("{value:.2e}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats an order of magnitude: `850,000`, and beyond a million `7.4e14`.
pub fn rough(value: f64) -> String {
    if value < 1e6 { count(value) } else { format!("{value:.1e}") }
}

/// Formats a power of two: `2^20.0`.
pub fn power_of_two(value: f64) -> String {
    if value < 1.0 { "0".to_owned() } else { format!("2^{:.1}", value.log2()) }
}

/// Formats a rate: `312.4 M/s`.
pub fn rate(per_second: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(size, _)| per_second >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}/s", per_second / size),
        None => format!("{per_second:.0} /s"),
    }
}

/// Formats a share: `12.3 %`; never 100 % below 1.
pub fn percent(share: f64) -> String {
    match share {
        s if s <= 0.0 => "0 %".to_owned(),
        s if s < 0.0001 => "< 0.01 %".to_owned(),
        s if s < 0.1 => format!("{:.2} %", s * 100.0),
        s if s <= 0.999 => format!("{:.1} %", s * 100.0),
        s if s < 1.0 => "> 99.9 %".to_owned(),
        _ => "100 %".to_owned(),
    }
}

/// Formats a duration: `0.4 s`, `3 min 20 s`, `5 h 12 min`, `12 d 3 h`, `3.4 years`, `7.4e14 years`.
pub fn seconds(seconds: f64) -> String {
    const YEAR: f64 = 365.25 * 86_400.0;
    let two = |large: u64, small: u64, names: (&str, &str)| match small {
        0 => format!("{large} {}", names.0),
        _ => format!("{large} {} {small} {}", names.0, names.1),
    };
    if seconds.is_nan() || seconds < 0.0 {
        return "unknown".to_owned();
    }
    // Rounded before the unit is chosen, so that 59.7 s is 1 min and not 60 s.
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 0.001 => "under 1 ms".to_owned(),
        _ if seconds < 0.0995 => format!("{:.0} ms", seconds * 1000.0),
        _ if seconds < 9.95 => format!("{seconds:.1} s"),
        0..60 => format!("{whole} s"),
        60..3600 => two(whole / 60, whole % 60, ("min", "s")),
        3600..86_400 => two(whole / 3600, whole % 3600 / 60, ("h", "min")),
        86_400..31_557_600 => two(whole / 86_400, whole % 86_400 / 3600, ("d", "h")),
        _ if seconds < 100.0 * YEAR => format!("{:.1} years", seconds / YEAR),
        _ => format!("{} years", rough(seconds / YEAR)),
    }
}

/// Formats elapsed time in a stable width: `0:07`, `12:03`, `5:12:03`, `3 d 5:12:03`.
pub fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    let (days, hours, minutes, seconds) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60, whole % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days} d {hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Parses a duration: `90`, `90s`, `1.5m`, `2h`, `1d` or `500ms`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let refuse = |why: &str| {
        Err(format!(
            "{why}; give a number with ms, s, m, h or d, such as 90s, 1.5m or 2h (a bare number is seconds)"
        ))
    };
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let size = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return refuse(&format!("'{unit}' is no unit of time")),
    };
    let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let Some(number) = number.parse::<f64>().ok().filter(|_| plain) else {
        return refuse(&format!("'{number}' is not a number"));
    };
    /// A century: more is a typo, and clocks overflow somewhere beyond.
    const MAX_SECONDS: f64 = 36_525.0 * 86_400.0;
    match number * size {
        s if s < 0.001 => refuse("that is no time at all"),
        s if s > MAX_SECONDS => refuse("that is longer than a century"),
        s => Ok(Duration::from_secs_f64(s)),
    }
}

/// Integer types that flags take.
pub trait Whole: Copy + Ord + fmt::Display + FromStr + Send + Sync + 'static {
    /// The smallest value.
    const MIN: Self;
    /// The largest value.
    const MAX: Self;
}

macro_rules! whole_types {
    ($($of:ty),*) => {$(
        impl Whole for $of {
            const MIN: Self = <$of>::MIN;
            const MAX: Self = <$of>::MAX;
        }
    )*};
}

whole_types!(u8, u16, u32, u64, usize);

/// Returns a parser of whole numbers within these bounds, both inclusive, that says which are allowed.
pub fn whole<T: Whole>(
    range: impl RangeBounds<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    let bound = |bound: Bound<&T>, none: T| match bound {
        Bound::Included(value) => *value,
        Bound::Unbounded => none,
        Bound::Excluded(_) => unreachable!("bounds of flags are inclusive"),
    };
    let (least, most) = (bound(range.start_bound(), T::MIN), bound(range.end_bound(), T::MAX));
    move |text| {
        let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok();
        let is_too_large = is_digits && number.is_none();
        let number = number.filter(|number| is_digits && (least..=most).contains(number));
        number.ok_or_else(|| match size_of::<T>() == 8 && most == T::MAX && !is_too_large {
            true => format!("expected a whole number, {least} or more"),
            false => format!("expected a whole number from {least} to {most}"),
        })
    }
}

/// Largest number of CPU threads.
pub const MAX_THREADS: usize = 4096;

/// Parses a number of threads.
pub fn parse_threads(text: &str) -> Result<usize, String> {
    whole(1..=MAX_THREADS)(text).map_err(|why| format!("{why}; without it every core is used"))
}

/// Columns of text for reading in a terminal.
const COLUMNS: usize = 80;

/// Wraps a text to 80 columns; the first line begins at `column`, and the others are indented to it.
pub fn wrapped(text: &str, column: usize) -> String {
    wrapped_to(text, column, COLUMNS)
}

/// Wraps a text to `columns`. A word that is longer than a line stays whole.
fn wrapped_to(text: &str, column: usize, columns: usize) -> String {
    let (mut lines, mut used) = (String::new(), column);
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > column && used + 1 + length > columns {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', column));
            used = column;
        } else if used > column {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += length;
    }
    lines
}

/// Wraps the lines of a text to `columns`, indented past the label they begin with.
pub fn fitted(text: &str, columns: usize) -> String {
    let fit = |line: &str| {
        if line.chars().count() <= columns {
            return line.to_owned();
        }
        // A label is a word and two blanks, or only blanks.
        let word = line.find(' ').unwrap_or(0);
        let blanks = line[word..].len() - line[word..].trim_start_matches(' ').len();
        let label = if blanks >= 2 && word + blanks <= columns / 2 { word + blanks } else { 0 };
        let column = line[..label].chars().count();
        format!("{}{}", &line[..label], wrapped_to(&line[label..], column, columns))
    };
    text.split('\n').map(fit).collect::<Vec<_>>().join("\n")
}

/// Formats seconds since 1970: `2026-11-15 09:30 UTC`.
pub fn date(seconds: u64) -> String {
    let (days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    // Years of 365.2425 days that begin in March, so that the leap day is the last of its year (Hinnant,
    // "chrono-compatible low-level date algorithms").
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * era + year + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_terminal_and_words_stay_whole() {
        let long = "hopeless  half of the range takes 3 years at 9 M/s; continuing anyway\nshort";
        assert_eq!(
            fitted(long, 40),
            "hopeless  half of the range takes 3\n          years at 9 M/s; continuing\n          anyway\nshort"
        );
        assert_eq!(fitted(long, 80), long);
        assert_eq!(fitted("one two three", 7), "one two\nthree");
        assert_eq!(fitted("averylongwordindeed and more", 8), "averylongwordindeed\nand more");
        assert_eq!(
            fitted("          under a label, further down", 24),
            "          under a label,\n          further down"
        );
    }

    #[test]
    fn numbers_are_grouped_and_huge_ones_shortened() {
        let shown = [0.0, 7.0, 999.0, 1000.0, 1_048_576.0, 1.5e20].map(count);
        assert_eq!(shown, ["0", "7", "999", "1,000", "1,048,576", "1.50e20"]);
        assert_eq!([0.0, 1.0, 1_048_576.0].map(power_of_two), ["0", "2^0.0", "2^20.0"]);
        assert_eq!([12.0, 1500.0, 3.124e8, 2e9].map(rate), ["12 /s", "1.5 k/s", "312.4 M/s", "2.0 G/s"]);
        assert_eq!(
            [0.0, 1e-9, 0.05, 0.5, 0.9999, 1.0].map(percent),
            ["0 %", "< 0.01 %", "5.00 %", "50.0 %", "> 99.9 %", "100 %"]
        );
    }

    #[test]
    fn times_use_the_two_units_that_matter() {
        let cases = [
            (0.0, "under 1 ms"),
            (0.05, "50 ms"),
            (0.43, "0.4 s"),
            (9.99, "10 s"),
            (59.7, "1 min"),
            (200.0, "3 min 20 s"),
            (18_720.0, "5 h 12 min"),
            (1_047_600.0, "12 d 3 h"),
            (1.073e8, "3.4 years"),
            (3.15576e10, "1,000 years"),
            (2.335e22, "7.4e14 years"),
            (f64::INFINITY, "inf years"),
            (f64::NAN, "unknown"),
        ];
        for (given, shown) in cases {
            assert_eq!(seconds(given), shown, "{given}");
        }
        let shown = [0.0, 7.9, 723.0, 18_723.0, 277_923.0].map(clock);
        assert_eq!(shown, ["0:00", "0:07", "12:03", "5:12:03", "3 d 5:12:03"]);
    }

    #[test]
    fn whole_numbers_are_within_their_bounds() {
        assert_eq!(whole::<u8>(1..=4)("4"), Ok(4));
        assert_eq!(whole::<u64>(..)("18446744073709551615"), Ok(u64::MAX));
        for text in ["5", "0", "-1", "+1", "", "x", "1.5", "99999999999999999999"] {
            assert_eq!(
                whole::<u8>(1..=4)(text),
                Err("expected a whole number from 1 to 4".to_owned()),
                "{text}"
            );
        }
        for text in ["-1", "0", "x"] {
            assert_eq!(
                whole::<u64>(1..)(text),
                Err("expected a whole number, 1 or more".to_owned()),
                "{text}"
            );
        }
        assert_eq!(
            whole::<u64>(1..)("99999999999999999999"),
            Err("expected a whole number from 1 to 18446744073709551615".to_owned())
        );
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        let cases =
            [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2h", 7200.0), ("1d", 86_400.0), ("500ms", 0.5)];
        for (text, value) in cases {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs_f64(value)), "{text}");
        }
        for text in ["", "s", "0", "0s", "-1", "1e3", "inf", "nan", "1 s", "1x", "1.2.3", "99999999d", "5sec"]
        {
            let why = parse_duration(text).expect_err(text);
            assert!(why.contains("such as 90s"), "{text}: {why}");
        }
    }

    #[test]
    fn lines_are_broken_between_words_and_set_under_each_other() {
        assert_eq!(wrapped("short", 10), "short");
        let long = wrapped(&"word ".repeat(30), 12);
        assert!(
            long.lines().skip(1).all(|line| line.starts_with("            word") && line.len() <= 80),
            "{long}"
        );
        assert!(long.lines().next().unwrap().len() <= 68 && long.lines().count() == 3, "{long}");
        let whole = "x".repeat(200);
        assert_eq!(wrapped(&format!("a {whole} b"), 2), format!("a\n  {whole}\n  b"));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_340), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_709_251_199), "2024-02-29 23:59 UTC");
        assert_eq!(date(1_709_251_200), "2024-03-01 00:00 UTC");
        assert_eq!(date(4_107_542_399), "2100-02-28 23:59 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00 UTC");
        assert_eq!(date(u64::MAX), "584554051223-11-09 07:00 UTC");
    }
}
