//! Formats of local times.

use jiff::{SignedDuration, Zoned};

use crate::human;

const DAY: f64 = 86_400.0;

/// Formats the time in so many seconds: `by 16:42`, `by Thu 19 Nov 16:42`, `by March 2029`; beyond a lifetime the duration.
pub fn by(now: &Zoned, seconds: f64) -> String {
    let later = || {
        let span = SignedDuration::try_from_secs_f64(seconds).ok()?;
        now.checked_add(span).ok().filter(|_| seconds < 80.0 * 365.25 * DAY)
    };
    let Some(later) = later() else { return format!("in {}", human::seconds(seconds)) };
    if later.date() == now.date() {
        format!("by {}", later.strftime("%H:%M"))
    } else if seconds < 300.0 * DAY {
        format!("by {}", later.strftime("%a %-d %b %H:%M"))
    } else {
        format!("by {}", later.strftime("%B %Y"))
    }
}

/// Formats a timestamp: `2026-11-17 14:32:10`.
pub fn timestamp(now: &Zoned) -> String {
    now.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_as_exact_as_it_is_near() {
        let now: Zoned = "2026-11-17T14:32:10[UTC]".parse().expect("a time");
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
}
