//! Which filter a device gets: the finest that fits, and what that means for the host.

use super::Width;
use super::parts::{MOST_TOGETHER, parts_of};

/// What a choice depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Different addresses.
    pub keys: u64,
    /// Bytes of the device's memory that a filter may take.
    pub memory: u64,
    /// Digests a device tests in a second.
    pub tests_per_second: f64,
    /// Survivors the host can confirm in a second.
    pub survivors_per_second: f64,
}

/// The filter to use, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The filter, `None` when the device has no room for any.
    pub width: Option<Width>,
    /// Bytes it takes on the device.
    pub bytes: u64,
    /// Keys that pass it although they match nothing, in a second.
    pub survivors_per_second: f64,
    /// The choice in words, to be shown.
    pub reason: String,
}

/// The finest filter that fits the device's memory: a finer one never slows a device by more than it saves the host. Where
/// the host cannot keep up with even that, the words say at what speed it holds the device.
pub fn choose(load: &Load) -> Choice {
    let (mib, least) = ((1u64 << 20) as f64, bytes_for(load.keys, Width::Fuse8));
    for width in Width::ALL {
        let bytes = bytes_for(load.keys, width);
        if bytes > load.memory {
            continue;
        }
        let survivors = load.tests_per_second * width.false_share();
        let mut reason = format!(
            "{} for {} addresses takes {:.1} MiB of {:.1} MiB, and lets about {survivors:.0} keys a second pass to the host",
            width.name(),
            load.keys,
            bytes as f64 / mib,
            load.memory as f64 / mib,
        );
        if width == Width::Fuse8 {
            let finer = bytes_for(load.keys, Width::Fuse16) as f64 / mib;
            reason += &format!("; fuse16 would take {finer:.1} MiB");
        }
        if survivors > load.survivors_per_second {
            let held = load.survivors_per_second / width.false_share();
            reason += &format!(
                "; the host confirms about {:.0} a second, which holds the device at {held:.2e} tests a second",
                load.survivors_per_second
            );
        }
        return Choice { width: Some(width), bytes, survivors_per_second: survivors, reason };
    }
    let reason = format!(
        "no filter: even fuse8 for {} addresses takes {:.1} MiB and {:.1} MiB are free, so the host tests every key",
        load.keys,
        least as f64 / mib,
        load.memory as f64 / mib,
    );
    Choice { width: None, bytes: 0, survivors_per_second: load.tests_per_second, reason }
}

/// The most bytes a filter of so many keys takes.
pub(super) fn bytes_for(keys: u64, width: Width) -> u64 {
    fingerprints_for(keys, MOST_TOGETHER) * u64::from(width.bits() / 8)
}

/// The most keys that one of the parts of a filter has: the mean, and six deviations where there are several.
pub(super) fn keys_of_part(keys: u64, most: u64) -> u64 {
    match u64::from(parts_of(keys, most)) {
        1 => keys,
        parts => keys / parts + 6 * (keys / parts).isqrt() + 6,
    }
}

/// The most fingerprints of a filter of so many keys, in parts of so many: as the crate `xorf` sizes them, 1.125 a key and more
/// for few, rounded up to whole segments of at most 2^18.
pub(super) fn fingerprints_for(keys: u64, most: u64) -> u64 {
    let parts = u64::from(parts_of(keys, most));
    let size = keys_of_part(keys, most).max(2) as f64;
    let factor = (0.875 + 0.25 * 1e6f64.ln() / size.ln()).max(1.125);
    let segment = ((size.ln() / 3.33f64.ln() + 2.25).floor().exp2()).min(262_144.0);
    let of_part = (size * factor / segment).ceil().max(3.0) * segment;
    if parts == 1 { of_part as u64 } else { parts * (of_part as u64).next_multiple_of(64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn load(keys: u64, memory: u64) -> Load {
        Load { keys, memory, tests_per_second: 5.5e9, survivors_per_second: 1e6 }
    }

    #[test]
    fn the_finest_filter_that_fits_is_taken() {
        let large = choose(&load(100_000_000, 10 * GIB));
        assert_eq!(large.width, Some(Width::Fuse16));
        assert!((220_000_000..232_000_000).contains(&large.bytes), "{}", large.bytes);
        assert!((large.survivors_per_second - 83_923.0).abs() < 1.0);
        assert!(large.reason.contains("fuse16") && !large.reason.contains("holds"), "{}", large.reason);
        let small = choose(&load(100_000_000, 150 << 20));
        assert_eq!(small.width, Some(Width::Fuse8));
        // 21 million a second are more than a million.
        assert!(small.reason.contains("holds the device at 2.56e8"), "{}", small.reason);
        assert!(small.reason.contains("fuse16 would take"), "{}", small.reason);
        let none = choose(&load(100_000_000, 100 << 20));
        assert_eq!((none.width, none.bytes), (None, 0));
        assert!(none.reason.contains("the host tests every key"), "{}", none.reason);
        let slow = Load { tests_per_second: 1e8, ..load(100_000_000, 150 << 20) };
        assert!(!choose(&slow).reason.contains("holds"));
    }

    #[test]
    fn the_boundary_of_memory_is_exact() {
        for width in Width::ALL {
            let bytes = bytes_for(1_000_000, width);
            assert_eq!(choose(&load(1_000_000, bytes)).width, Some(width));
            assert_ne!(choose(&load(1_000_000, bytes - 1)).width, Some(width));
        }
    }
}
