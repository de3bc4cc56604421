//! Ctrl-C and the other signals that ask a command to end.
//!
//! Drivers run in this process, and some come with handlers of their own: the compiler in PoCL and in AMD's driver takes
//! SIGINT, SIGTERM, SIGHUP and SIGQUIT when it builds its first kernel. So ours are set before a driver is opened and then
//! held: a thread puts them back for as long as the program runs.
//!
//! A driver that compiles cannot be told to stop, and whoever waits for it hears nothing. So the same thread ends the program where a
//! signal came and nothing has begun that would have to be ended in order ([`Starting`]).

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::ending::Failure;
use crate::screen::terminal;
use crate::telling::tell;

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
        _ => {
            terminal::restore();
            // SAFETY: ends the process.
            unsafe { libc::_exit(130) }
        }
    }
}

/// Does what Ctrl-C does.
pub(crate) fn stop() {
    handle(libc::SIGINT);
}

/// Whether nothing has begun yet, and what is to be told where it ends there.
static STARTING: AtomicBool = AtomicBool::new(false);
static LAST_WORDS: Mutex<Option<&str>> = Mutex::new(None);

/// How often a thread that holds handlers looks before it gives up on an end in order.
const PATIENCE: u32 = 5;

/// For as long as it lives there is nothing to be ended in order, nothing found and nothing to be saved: a signal ends the program even
/// where a driver keeps it waiting.
pub(crate) struct Starting;

impl Starting {
    /// With what is to be told, unless quiet was asked for.
    pub fn new(quiet: bool, last_words: &'static str) -> Starting {
        *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = (!quiet).then_some(last_words);
        STARTING.store(true, Ordering::Release);
        Starting
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        STARTING.store(false, Ordering::Release);
    }
}

/// Whether a signal came while nothing had begun.
fn is_ended_early() -> bool {
    // SAFETY: null, or a flag that is never freed.
    let flag = unsafe { FLAG.load(Ordering::Acquire).as_ref() };
    STARTING.load(Ordering::Acquire) && flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
}

fn end_early() -> ! {
    terminal::restore();
    if let Some(last_words) = *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) {
        tell(last_words);
    }
    // SAFETY: ends the process.
    unsafe { libc::_exit(130) }
}

/// Puts our handlers in their place and holds them there. Until [`interrupt`] was called a signal ends the program at once.
pub(crate) fn hold() -> Result<(), Failure> {
    static HELD: OnceLock<()> = OnceLock::new();
    set()?;
    if HELD.set(()).is_ok() {
        let hold = || {
            let mut ended = 0;
            loop {
                std::thread::sleep(HOLD);
                let _ = set();
                ended = if is_ended_early() { ended + 1 } else { 0 };
                if ended > PATIENCE {
                    end_early();
                }
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
