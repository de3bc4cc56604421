//! How much memory a process may still take.

use std::path::Path;

/// Bytes that are free, as far as the system and the limits of its control groups say; 0 where they say nothing.
pub(super) fn free() -> u64 {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let free = available(&read(Path::new("/proc/meminfo"))).unwrap_or(0);
    let groups = read(Path::new("/proc/self/cgroup"));
    // The second version of control groups has one line, which begins with 0. A limit anywhere above counts too.
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("");
    let mounted = Path::new("/sys/fs/cgroup");
    let own = mounted.join(group);
    let limits = own.ancestors().take_while(|folder| folder.starts_with(mounted)).filter_map(|folder| {
        under_limit(&read(&folder.join("memory.max")), &read(&folder.join("memory.stat")))
    });
    limits.fold(free, u64::min)
}

/// What can be had without swapping, from the system's account.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// What is left of a group's limit. Files in the cache make way, so only what processes hold themselves counts.
fn under_limit(limit: &str, stat: &str) -> Option<u64> {
    let limit: u64 = limit.trim().parse().ok()?;
    let held = stat.lines().find_map(|line| line.strip_prefix("anon ")?.parse::<u64>().ok());
    Some(limit.saturating_sub(held.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read() {
        assert_eq!(available("MemTotal:  9 kB\nMemAvailable:   1234 kB\n"), Some(1234 << 10));
        assert_eq!(available("MemTotal:  9 kB\n"), None);
        assert_eq!(under_limit("1000\n", "anon 400\nfile 900\n"), Some(600));
        assert_eq!(under_limit("1000\n", "anon 4000\n"), Some(0));
        assert_eq!(under_limit("max\n", "anon 400\n"), None);
        #[cfg(target_os = "linux")]
        assert!(free() > 0);
    }
}
