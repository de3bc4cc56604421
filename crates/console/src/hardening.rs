//! Process hardening, applied before anything else, so that no secret leaks through core dumps or a debugger.

/// Forbids core dumps, and other processes of the same user to look into this one or to attach to it. Where the system
/// refuses or lacks this, the command continues: docs/security.md says what holds where.
pub fn apply() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a limit is read from a place of ours; lowering one is always allowed.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
    // A file that may not grow is told by the write, which then says what happened to the result; the signal would end
    // the program in between.
    // SAFETY: one of the two fixed dispositions; no handler is involved.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    // Besides, where dumps go to a program by a pipe, the limit above does not count, and this does.
    // SAFETY: the call takes two numbers and touches no memory.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0)
    };
}
