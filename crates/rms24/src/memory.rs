//! How much memory this machine gives a process: what its limits, those of its control groups and its hardware leave.

use std::fs;
use std::path::Path;

/// The bytes of memory this process may use at most. Where nothing can be learnt, as much as there are addresses.
pub fn of_machine() -> u64 {
    [hardware(), address_space(), control_groups()].into_iter().flatten().min().unwrap_or(u64::MAX)
}

fn hardware() -> Option<u64> {
    // SAFETY: `sysconf` only reads its argument.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).ok()?.checked_mul(u64::try_from(size).ok()?).filter(|bytes| *bytes > 0)
}

fn address_space() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer leads to a `rlimit`, which is written and nothing else.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// The least limit of the groups this process is in, and of those above them.
fn control_groups() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().filter_map(|line| limit_of(Path::new("/sys/fs/cgroup"), line)).min()
}

/// The least limit on the way to one group: a line is `0::/PATH` (version 2) or `N:CONTROLLERS:/PATH` (version 1).
fn limit_of(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
    let (root, file) = if controllers.is_empty() {
        (root.to_owned(), "memory.max")
    } else if controllers.split(',').any(|controller| controller == "memory") {
        (root.join("memory"), "memory.limit_in_bytes")
    } else {
        return None;
    };
    let folder = root.join(path);
    let folders = folder.ancestors().take_while(|folder| folder.starts_with(&root));
    folders.filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_group_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a/memory.max", "5000\n");
        write("a/b/memory.max", "max\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/x/memory.limit_in_bytes", "700\n");
        assert_eq!(limit_of(root.path(), "0::/a/b"), Some(5000));
        assert_eq!(limit_of(root.path(), "0::/"), None);
        assert_eq!(limit_of(root.path(), "7:cpu,memory:/x"), Some(700));
        assert_eq!(limit_of(root.path(), "7:memory:/y"), Some(9_223_372_036_854_771_712));
        assert_eq!(limit_of(root.path(), "3:cpu:/x"), None);
        assert_eq!(limit_of(root.path(), "nonsense"), None);
    }

    #[test]
    fn this_machine_has_some() {
        assert!(of_machine() > 1 << 20);
    }
}
