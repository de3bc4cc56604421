//! Times of day in the local time zone, and dates.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::human;

const DAY: f64 = 86_400.0;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// A moment, shown in the local time zone or in UTC.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Seconds since 1970 in UTC.
    seconds: i64,
    is_utc: bool,
}

impl Time {
    /// Returns the time now, shown in the local time zone.
    pub fn now() -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Time { seconds: since as i64, is_utc: false }
    }

    /// Returns the moment so many seconds after 1970, shown in UTC.
    pub fn utc(seconds: i64) -> Time {
        Time { seconds, is_utc: true }
    }

    /// Returns the moment so many seconds later.
    fn after(self, seconds: f64) -> Time {
        Time { seconds: self.seconds.saturating_add(seconds as i64), ..self }
    }

    /// Returns year, month, day, hour and so on, as the system's tables have them.
    fn parts(self) -> libc::tm {
        let seconds = self.seconds as libc::time_t;
        // SAFETY: a structure of plain numbers, and a pointer that may be null.
        let mut parts: libc::tm = unsafe { std::mem::zeroed() };
        // SAFETY: both read a number of ours and write the structure; what they cannot represent leaves it as it is.
        unsafe {
            match self.is_utc {
                true => libc::gmtime_r(&seconds, &mut parts),
                false => libc::localtime_r(&seconds, &mut parts),
            }
        };
        parts
    }
}

/// Formats the time in so many seconds: `by 16:42`, `by Thu 19 Nov 16:42`, `by March 2029`; beyond a lifetime the duration.
pub fn by(now: &Time, seconds: f64) -> String {
    if !(0.0..80.0 * 365.25 * DAY).contains(&seconds) {
        return format!("in {}", human::seconds(seconds));
    }
    let (today, later) = (now.parts(), now.after(seconds).parts());
    let month = MONTHS[later.tm_mon as usize % 12];
    let clock = format!("{:02}:{:02}", later.tm_hour, later.tm_min);
    if (later.tm_year, later.tm_yday) == (today.tm_year, today.tm_yday) {
        format!("by {clock}")
    } else if seconds < 300.0 * DAY {
        format!("by {} {} {} {clock}", WEEKDAYS[later.tm_wday as usize % 7], later.tm_mday, &month[..3])
    } else {
        format!("by {month} {}", later.tm_year + 1900)
    }
}

/// Formats a timestamp: `2026-11-17 14:32:10`.
pub fn timestamp(now: &Time) -> String {
    let now = now.parts();
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        now.tm_year + 1900,
        now.tm_mon + 1,
        now.tm_mday,
        now.tm_hour,
        now.tm_min,
        now.tm_sec
    )
}

/// Parses a date as `2013-04-01`, and returns its first second in UTC, since 1970.
pub fn parse_date(text: &str) -> Option<u64> {
    let is_dash = |at: usize| at == 4 || at == 7;
    let is_date = text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if is_dash(at) { byte == b'-' } else { byte.is_ascii_digit() });
    if !is_date {
        return None;
    }
    let (year, month, day): (i64, i64, i64) =
        (text[..4].parse().ok()?, text[5..7].parse().ok()?, text[8..].parse().ok()?);
    // Days since 1970, of years that begin in March, so that a leap day is the last.
    let (years, months) = (year - i64::from(month <= 2), (month + 9) % 12);
    let (era, of_era) = (years.div_euclid(400), years.rem_euclid(400));
    let days =
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * months + 2) / 5 + day - 1 - 719_468;
    let time = Time::utc(days * 86_400);
    // A day that no month has is another one.
    (timestamp(&time).starts_with(text)).then_some(time.seconds).and_then(|seconds| seconds.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_as_exact_as_it_is_near() {
        let now = Time::utc(1_794_925_930);
        assert_eq!(timestamp(&now), "2026-11-17 14:32:10");
        let cases = [
            (60.0, "by 14:33"),
            (9.0 * 3600.0, "by 23:32"),
            (10.0 * 3600.0, "by Wed 18 Nov 00:32"),
            (40.0 * DAY, "by Sun 27 Dec 14:32"),
            (900.0 * DAY, "by May 2029"),
            (1e12, "in 31,688 years"),
            (f64::INFINITY, "in inf years"),
        ];
        for (seconds, text) in cases {
            assert_eq!(by(&now, seconds), text, "{seconds}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2000-02-29", 951_782_400),
            ("2013-04-01", 1_364_774_400),
            ("2100-03-01", 4_107_542_400),
            ("9999-12-31", 253_402_214_400),
        ] {
            assert_eq!(parse_date(text), Some(seconds), "{text}");
        }
        for wrong in [
            "",
            "2013-4-1",
            "2013-04-31",
            "2100-02-29",
            "2013-00-10",
            "2013-13-01",
            "2013-04-00",
            "1969-12-31",
            "2013/04/01",
        ] {
            assert_eq!(parse_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn local_time_is_that_of_the_system() {
        let date = std::process::Command::new("date").arg("+%Y-%m-%d %H:%M").output();
        let Ok(date) = date else { return eprintln!("SKIPPED: there is no `date` here") };
        let told = String::from_utf8(date.stdout).expect("text");
        // A minute may end between the two.
        let near = [0.0, -60.0].map(|seconds| timestamp(&Time::now().after(seconds)));
        assert!(near.iter().any(|time| time.starts_with(told.trim_end())), "{told} {near:?}");
    }
}
