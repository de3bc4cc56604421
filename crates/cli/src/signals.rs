//! Ctrl-C and the other signals that ask a command to end.
//!
//! Drivers run in this process, and some come with handlers of their own: the compiler in PoCL and in AMD's driver takes
//! SIGINT, SIGTERM, SIGHUP and SIGQUIT when it builds its first kernel. So ours are set before a driver is opened and then
//! held: a thread puts them back for as long as the program runs.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::ending::Failure;

/// The flag that a signal raises; null until a command has something to save.
static FLAG: AtomicPtr<AtomicBool> = AtomicPtr::new(ptr::null_mut());

/// How often the handlers are put back.
const HOLD: Duration = Duration::from_millis(100);

/// What the program was started with.
struct Start {
    /// Whether SIGHUP was ignored, as `nohup` does.
    hangup_ignored: bool,
    quit: libc::sigaction,
}

static START: OnceLock<Start> = OnceLock::new();

/// Looks at what the program was started with. To be called first in `main`.
pub(crate) fn remember() {
    START.get_or_init(|| Start {
        hangup_ignored: action(libc::SIGHUP).sa_sigaction == libc::SIG_IGN,
        quit: action(libc::SIGQUIT),
    });
}

fn action(signal: libc::c_int) -> libc::sigaction {
    // SAFETY: an all-zero `sigaction` is a valid value to be overwritten, and a null new action changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, ptr::null(), &mut action);
        action
    }
}

/// Only what may be done in a handler: a flag, or the end.
extern "C" fn handle(_: libc::c_int) {
    // SAFETY: null, or a flag that is never freed.
    match unsafe { FLAG.load(Ordering::Acquire).as_ref() } {
        Some(flag) if !flag.swap(true, Ordering::Relaxed) => {}
        // Nothing to save yet, or somebody who asks twice.
        // SAFETY: ends the process.
        _ => unsafe { libc::_exit(130) },
    }
}

/// Puts our handlers in their place and holds them there. Until [`interrupt`] was called a signal ends the program at once.
pub(crate) fn hold() -> Result<(), Failure> {
    static HELD: OnceLock<()> = OnceLock::new();
    set()?;
    if HELD.set(()).is_ok() {
        let hold = || {
            loop {
                std::thread::sleep(HOLD);
                let _ = set();
            }
        };
        let held = std::thread::Builder::new().name("signals".to_owned()).spawn(hold);
        held.map_err(|error| Failure::Other(format!("Ctrl-C cannot be handled: {error}")))?;
    }
    Ok(())
}

fn set() -> Result<(), Failure> {
    remember();
    let Some(start) = START.get() else { return Ok(()) };
    // SAFETY: an all-zero `sigaction` has an empty mask and no flags.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = handle as *const () as libc::sighandler_t;
    ours.sa_flags = libc::SA_RESTART;
    // SAFETY: ignoring is a fixed disposition; the rest is as above.
    let mut ignored: libc::sigaction = unsafe { std::mem::zeroed() };
    ignored.sa_sigaction = libc::SIG_IGN;
    let hangup = if start.hangup_ignored { &ignored } else { &ours };
    for (signal, wanted) in
        [(libc::SIGINT, &ours), (libc::SIGTERM, &ours), (libc::SIGHUP, hangup), (libc::SIGQUIT, &start.quit)]
    {
        // SAFETY: the action is whole; its handler, where it is ours, does only what a handler may.
        if unsafe { libc::sigaction(signal, wanted, ptr::null_mut()) } != 0 {
            let error = std::io::Error::last_os_error();
            return Err(Failure::Other(format!("Ctrl-C cannot be handled: {error}")));
        }
    }
    Ok(())
}

/// A flag that is raised by Ctrl-C or a request to terminate. The second one ends the program at once.
pub(crate) fn interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    // Never given back: a handler may be looking at it. A command asks once.
    FLAG.store(Arc::into_raw(Arc::clone(&flag)).cast_mut(), Ordering::Release);
    hold()?;
    Ok(flag)
}
