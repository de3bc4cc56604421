//! The limit of open files (`RLIMIT_NOFILE`), which bounds connections too.

/// Raises the limit of open files to `wanted`, or as far as the system allows, and returns how many of `wanted` there are.
pub fn raise(wanted: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer leads to a `rlimit` of this function, which is written and nothing else.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 || limit.rlim_cur >= wanted {
        return wanted;
    }
    let raised = libc::rlimit { rlim_cur: wanted.min(limit.rlim_max), ..limit };
    // SAFETY: the pointer leads to a `rlimit` of this function, which is read.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } == 0 {
        raised.rlim_cur
    } else {
        limit.rlim_cur
    }
}
