//! The terminal on stderr: a block of rows that is redrawn in place, keys without echo, and the terminal's state restored at exit.
//!
//! The block is redrawn whole, and then the cursor returns to where the block begins. So whatever a resize makes of it, everything from
//! the cursor on belongs to the block and is cleared; nobody has to query the cursor's position, which a terminal in the background or a
//! slow one would not answer. Other output replaces the block ([`aside`]), and the block is drawn again below it.
//!
//! Keys are read one by one and not echoed, and that is all that is changed: Ctrl-C, Ctrl-Z and Ctrl-\ are still signals, and lines of
//! results still end as lines do. Whatever ends or stops the program, the terminal is restored first ([`restore`]): in a panic and before
//! a stop by this module, in handlers of signals by [`signals`](crate::signals), which a caller that draws or reads keys must have
//! installed ([`signals::hold`](crate::signals::hold)).

use std::cell::Cell;
use std::fs::File;
use std::io::{IsTerminal, Write as _};
use std::os::fd::{AsRawFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Erases the block: to the start of its first row, clear all from there, show the cursor.
const ERASE: &[u8] = b"\r\x1b[J\x1b[?25h";

/// Whether a block is on the terminal now.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// The block as it was drawn last. Held by whoever writes to the terminal.
static BLOCK: Mutex<Drawn> = Mutex::new(Drawn { rows: Vec::new(), at: None });

struct Drawn {
    rows: Vec<String>,
    at: Option<Instant>,
}

/// Least time between redraws of a block after other output.
const REDRAW_INTERVAL: Duration = Duration::from_millis(10);

thread_local! {
    /// Whether this thread is the one that writes.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether stderr is a terminal on which a block can be drawn. A dumb one cannot clear a line.
pub fn can_draw() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    std::io::stderr().is_terminal() && !dumb
}

/// Returns columns and rows of the terminal.
pub fn size() -> (u16, u16) {
    terminal_size::terminal_size_of(std::io::stderr()).map_or((80, 24), |(width, height)| (width.0, height.0))
}

/// Returns whether the locale is UTF-8.
pub fn supports_unicode() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    set.is_some_and(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

fn lock() -> MutexGuard<'static, Drawn> {
    BLOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Marks this thread as the one that writes.
struct Inside;

impl Inside {
    fn enter() -> Inside {
        INSIDE.set(true);
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Writes other output, whole lines, to stderr or to a stdout on the same terminal: the block is erased before and drawn again after,
/// and nothing else is drawn meanwhile.
pub fn aside<T>(write: impl FnOnce() -> T) -> T {
    if INSIDE.get() {
        return write();
    }
    let mut drawn = lock();
    let _inside = Inside::enter();
    let was_shown = erase();
    let done = write();
    // Where lines come in floods the block would cost more than they do.
    if was_shown && drawn.at.is_none_or(|at| at.elapsed() >= REDRAW_INTERVAL) {
        drawn.show();
    }
    done
}

/// Erases the block for good.
pub fn clear() {
    let mut drawn = lock();
    drawn.rows.clear();
    erase();
}

/// Erases the block and returns whether there was one.
fn erase() -> bool {
    let was_shown = SHOWN.swap(false, Ordering::AcqRel);
    if was_shown {
        let _ = std::io::stderr().write_all(ERASE);
    }
    was_shown
}

/// Draws a block, whose rows must fit; skipped while other output is being written.
pub fn draw(rows: Vec<String>) {
    let mut drawn = match BLOCK.try_lock() {
        Ok(drawn) => drawn,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    drawn.rows = rows;
    drawn.show();
}

impl Drawn {
    fn show(&mut self) {
        if self.rows.is_empty() {
            erase();
            return;
        }
        install_hooks();
        self.at = Some(Instant::now());
        let frame = frame(&self.rows);
        // Before it is there: who ends the program in between erases a part of it.
        SHOWN.store(true, Ordering::Release);
        let _ = std::io::stderr().write_all(frame.as_bytes());
    }
}

/// Returns the sequence that draws these rows in place of the previous block.
fn frame(rows: &[String]) -> String {
    // Begin a synchronized update, hide the cursor, do not wrap: a terminal that has just become narrower, and did not say so yet, would
    // make more rows of these.
    let mut frame = "\x1b[?2026h\x1b[?25l\x1b[?7l".to_owned();
    for (at, row) in rows.iter().enumerate() {
        frame.push_str(if at == 0 { "\r" } else { "\r\n" });
        frame.push_str(row);
        frame.push_str("\x1b[K");
    }
    frame.push_str("\x1b[J");
    if rows.len() > 1 {
        frame.push_str(&format!("\x1b[{}A", rows.len() - 1));
    }
    frame.push_str("\x1b[1G\x1b[?7h\x1b[?2026l");
    frame
}

/// Has the terminal restored in a panic and before a stop.
fn install_hooks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        // SAFETY: all-zero actions are valid ones to be overwritten; the handler does only what a handler may.
        unsafe {
            let mut was: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGTSTP, ptr::null(), &mut was);
            if was.sa_sigaction == libc::SIG_DFL {
                let mut ours: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = suspend as *const () as libc::sighandler_t;
                ours.sa_flags = libc::SA_RESTART;
                libc::sigaction(libc::SIGTSTP, &ours, ptr::null_mut());
            }
        }
    });
}

/// Ctrl-Z: the terminal is given back, and the program stops. Once it goes on, the thread that draws takes what it needs.
extern "C" fn suspend(_: libc::c_int) {
    // What was interrupted may be about to read it.
    #[cfg(target_os = "linux")]
    // SAFETY: the place is this thread's own.
    let errno = unsafe { *libc::__errno_location() };
    restore();
    // SAFETY: stops the process, which a handler may do.
    unsafe { libc::raise(libc::SIGSTOP) };
    #[cfg(target_os = "linux")]
    // SAFETY: as above.
    unsafe {
        *libc::__errno_location() = errno;
    }
}

/// Restores the terminal. May be called in a signal handler, and any number of times.
pub fn restore() {
    if SHOWN.swap(false, Ordering::AcqRel) {
        // SAFETY: writes bytes that live for ever. What cannot be written is lost, and nothing else.
        unsafe { libc::write(libc::STDERR_FILENO, ERASE.as_ptr().cast(), ERASE.len()) };
    }
    disable_keys();
}

/// The keyboard's descriptor while keys are read one by one; else -1.
static KEYS: AtomicI32 = AtomicI32::new(-1);

/// Settings of the terminal before they were changed.
static BEFORE: OnceLock<libc::termios> = OnceLock::new();

/// Returns whether this process is in the terminal's foreground. A background process that changes the settings is stopped.
pub fn is_foreground(terminal: RawFd) -> bool {
    // SAFETY: both only ask.
    unsafe { libc::tcgetpgrp(terminal) == libc::getpgrp() }
}

/// Opens the controlling terminal.
pub fn controlling() -> Option<File> {
    File::options().read(true).open("/dev/tty").ok()
}

/// Returns whether keys may be read: not where stdout is a pipe, whose reader may want the keyboard, as pagers do.
pub fn may_take_keys() -> bool {
    // SAFETY: an all-zero `stat` is a valid value to be overwritten.
    let is_pipe = unsafe {
        let mut about: libc::stat = std::mem::zeroed();
        libc::fstat(libc::STDOUT_FILENO, &mut about) == 0 && about.st_mode & libc::S_IFMT == libc::S_IFIFO
    };
    !is_pipe
}

/// Turns line editing and echo off, if this process is in the foreground; returns whether keys can be read one by one.
pub fn enable_keys(terminal: &File) -> bool {
    let fd = terminal.as_raw_fd();
    if KEYS.load(Ordering::Acquire) == fd {
        return true;
    }
    if !is_foreground(fd) {
        return false;
    }
    install_hooks();
    // SAFETY: plain numbers, overwritten by the call.
    let mut found: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: asks about a descriptor that is open.
    if unsafe { libc::tcgetattr(fd, &mut found) } != 0 {
        return false;
    }
    let mut ours = *BEFORE.get_or_init(|| found);
    ours.c_lflag &= !(libc::ICANON | libc::ECHO | libc::ECHONL);
    ours.c_cc[libc::VMIN] = 0;
    ours.c_cc[libc::VTIME] = 0;
    // First, so that whoever interrupts this puts it back.
    KEYS.store(fd, Ordering::Release);
    // SAFETY: sets what was read, but for these flags.
    unsafe { libc::tcsetattr(fd, libc::TCSANOW, &ours) == 0 }
}

/// Turns line editing and echo on again. May be called in a signal handler.
pub fn disable_keys() {
    let fd = KEYS.swap(-1, Ordering::AcqRel);
    if let Some(before) = BEFORE.get().filter(|_| fd >= 0 && is_foreground(fd)) {
        // SAFETY: puts back what was read from the same terminal.
        unsafe { libc::tcsetattr(fd, libc::TCSANOW, before) };
    }
}
