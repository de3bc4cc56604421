//! Handlers of Ctrl-C and the other signals that ask a command to end.
//!
//! Drivers run in this process, and some come with handlers of their own: the compiler in PoCL and in AMD's driver takes
//! SIGINT, SIGTERM, SIGHUP and SIGQUIT when it builds its first kernel. So ours are installed before a driver is opened, and a
//! thread reinstalls them for as long as the program runs.
//!
//! A driver that compiles cannot be interrupted, and the thread that waits for it sees no flag. So the same thread ends the program if
//! a signal came before there was anything to save ([`StartupGuard`]).

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::exit::Failure;
use crate::stderr::report;
use crate::terminal;

/// The flag set by a signal; null until a command has something to save.
static FLAG: AtomicPtr<AtomicBool> = AtomicPtr::new(ptr::null_mut());

/// Interval at which the handlers are reinstalled.
const HOLD_INTERVAL: Duration = Duration::from_millis(100);

/// Signal dispositions that the program was started with.
struct Initial {
    /// Whether SIGHUP was ignored, as `nohup` does.
    hangup_ignored: bool,
    quit: libc::sigaction,
}

static INITIAL: OnceLock<Initial> = OnceLock::new();

/// Records the signal dispositions that the program was started with. To be called first in `main`.
pub fn record_initial() {
    INITIAL.get_or_init(|| Initial {
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

/// The handler: sets the flag, or ends the process.
extern "C" fn handle(_: libc::c_int) {
    // SAFETY: null, or a flag that is never freed.
    match unsafe { FLAG.load(Ordering::Acquire).as_ref() } {
        Some(flag) if !flag.swap(true, Ordering::Relaxed) => {}
        // Nothing to save yet, or the second request.
        _ => {
            terminal::restore();
            // SAFETY: ends the process.
            unsafe { libc::_exit(130) }
        }
    }
}

/// Acts as if Ctrl-C was pressed.
pub fn request_stop() {
    handle(libc::SIGINT);
}

/// Whether a [`StartupGuard`] lives, and its message.
static STARTING: AtomicBool = AtomicBool::new(false);
static EARLY_EXIT_MESSAGE: Mutex<Option<&str>> = Mutex::new(None);

/// Intervals to wait for an orderly end before the process is ended early.
const EARLY_EXIT_INTERVALS: u32 = 5;

/// States, while it lives, that nothing was found and nothing must be saved: a signal ends the program even while a driver blocks
/// it.
pub struct StartupGuard(());

impl StartupGuard {
    /// Creates a guard; the message is printed at an early end, unless `quiet`.
    pub fn new(quiet: bool, message: &'static str) -> StartupGuard {
        *EARLY_EXIT_MESSAGE.lock().unwrap_or_else(PoisonError::into_inner) = (!quiet).then_some(message);
        STARTING.store(true, Ordering::Release);
        StartupGuard(())
    }
}

impl Drop for StartupGuard {
    fn drop(&mut self) {
        STARTING.store(false, Ordering::Release);
    }
}

/// Returns whether a signal came while a [`StartupGuard`] lives.
fn is_stopped_early() -> bool {
    // SAFETY: null, or a flag that is never freed.
    let flag = unsafe { FLAG.load(Ordering::Acquire).as_ref() };
    STARTING.load(Ordering::Acquire) && flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
}

fn end_early() -> ! {
    terminal::restore();
    if let Some(message) = *EARLY_EXIT_MESSAGE.lock().unwrap_or_else(PoisonError::into_inner) {
        report(message);
    }
    // SAFETY: ends the process.
    unsafe { libc::_exit(130) }
}

/// Installs the handlers and keeps them installed. Until [`interrupt`] was called a signal ends the program at once.
pub fn hold() -> Result<(), Failure> {
    static HELD: OnceLock<()> = OnceLock::new();
    install()?;
    if HELD.set(()).is_ok() {
        let hold = || {
            let mut ended = 0;
            loop {
                std::thread::sleep(HOLD_INTERVAL);
                let _ = install();
                ended = if is_stopped_early() { ended + 1 } else { 0 };
                if ended > EARLY_EXIT_INTERVALS {
                    end_early();
                }
            }
        };
        let held = std::thread::Builder::new().name("signals".to_owned()).spawn(hold);
        held.map_err(|error| Failure::Other(format!("Ctrl-C cannot be handled: {error}")))?;
    }
    Ok(())
}

fn install() -> Result<(), Failure> {
    record_initial();
    let Some(initial) = INITIAL.get() else { return Ok(()) };
    // SAFETY: an all-zero `sigaction` has an empty mask and no flags.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = handle as *const () as libc::sighandler_t;
    ours.sa_flags = libc::SA_RESTART;
    // SAFETY: ignoring is a fixed disposition; the rest is as above.
    let mut ignored: libc::sigaction = unsafe { std::mem::zeroed() };
    ignored.sa_sigaction = libc::SIG_IGN;
    let hangup = if initial.hangup_ignored { &ignored } else { &ours };
    for (signal, wanted) in [
        (libc::SIGINT, &ours),
        (libc::SIGTERM, &ours),
        (libc::SIGHUP, hangup),
        (libc::SIGQUIT, &initial.quit),
    ] {
        // SAFETY: the action is whole; its handler, where it is ours, does only what a handler may.
        if unsafe { libc::sigaction(signal, wanted, ptr::null_mut()) } != 0 {
            let error = std::io::Error::last_os_error();
            return Err(Failure::Other(format!("Ctrl-C cannot be handled: {error}")));
        }
    }
    Ok(())
}

/// Returns a flag that is set by Ctrl-C or a request to terminate. The second one ends the program at once.
pub fn interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    // Never freed: a handler may be reading it. A command asks once.
    FLAG.store(Arc::into_raw(Arc::clone(&flag)).cast_mut(), Ordering::Release);
    hold()?;
    Ok(flag)
}
