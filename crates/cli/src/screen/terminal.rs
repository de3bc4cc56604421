//! The terminal that stderr is: where the live block stands, and how the terminal gets back what was taken from it.
//!
//! The block is redrawn whole, and then the cursor goes back to where the block begins. So whatever a terminal makes of it in a resize,
//! all from the cursor on is the block's and is cleared; nobody has to ask where on the screen that is, which a terminal in the background
//! or one that is slow would not answer. What else is written takes the block's place ([`aside`]), and the block is drawn again below it.
//!
//! Keys are read one by one and not echoed, and that is all that is changed: Ctrl-C, Ctrl-Z and Ctrl-\ are still signals, and lines of
//! results still end as lines do. Whatever ends or stops the program, the terminal is first put back ([`restore`]).

use std::cell::Cell;
use std::fs::File;
use std::io::{IsTerminal, Write as _};
use std::os::fd::{AsRawFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crossterm::Command;
use crossterm::cursor::{Hide, MoveToColumn, MoveUp};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
};

use crate::signals;

/// Takes the block away: to the start of its first row, clear all from there, show the cursor.
const ERASE: &[u8] = b"\r\x1b[J\x1b[?25h";

/// Whether a block is on the terminal now.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// The block as it was drawn last. Held by whoever writes to the terminal.
static BLOCK: Mutex<Drawn> = Mutex::new(Drawn { rows: Vec::new(), at: None });

struct Drawn {
    rows: Vec<String>,
    at: Option<Instant>,
}

/// A block that made room is drawn again at once, but not more often than this.
const AGAIN: Duration = Duration::from_millis(10);

thread_local! {
    /// Whether this thread is the one that writes.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether stderr is a terminal on which a block can be drawn. A dumb one cannot clear a line.
pub(crate) fn can_draw() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    std::io::stderr().is_terminal() && !dumb
}

/// Columns and rows of it.
pub(crate) fn size() -> (u16, u16) {
    terminal_size::terminal_size_of(std::io::stderr()).map_or((80, 24), |(width, height)| (width.0, height.0))
}

/// Whether the terminal is said to know more than ASCII.
pub(crate) fn knows_unicode() -> bool {
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

/// Writes something else, whole lines, to stderr or to a stdout that is the same terminal: the block makes room, and nobody draws
/// meanwhile.
pub(crate) fn aside<T>(write: impl FnOnce() -> T) -> T {
    if INSIDE.get() {
        return write();
    }
    let mut drawn = lock();
    let _inside = Inside::enter();
    let was_shown = erase();
    let done = write();
    // Where lines come in floods the block would cost more than they do.
    if was_shown && drawn.at.is_none_or(|at| at.elapsed() >= AGAIN) {
        drawn.show();
    }
    done
}

/// Takes the block away for good.
pub(crate) fn clear() {
    let mut drawn = lock();
    drawn.rows.clear();
    erase();
}

/// Whether there was one.
fn erase() -> bool {
    let was_shown = SHOWN.swap(false, Ordering::AcqRel);
    if was_shown {
        let _ = std::io::stderr().write_all(ERASE);
    }
    was_shown
}

/// Draws a block, whose rows must fit; not now where somebody else is writing.
pub(crate) fn draw(rows: Vec<String>) {
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
        take();
        self.at = Some(Instant::now());
        let frame = frame(&self.rows).expect("writing to a string does not fail");
        // Before it is there: who ends the program in between erases a part of it.
        SHOWN.store(true, Ordering::Release);
        let _ = std::io::stderr().write_all(frame.as_bytes());
    }
}

/// What draws these rows in place of those that were there.
fn frame(rows: &[String]) -> Result<String, std::fmt::Error> {
    let mut frame = String::new();
    BeginSynchronizedUpdate.write_ansi(&mut frame)?;
    Hide.write_ansi(&mut frame)?;
    // A terminal that has just become narrower, and did not say so yet, would make more rows of these.
    DisableLineWrap.write_ansi(&mut frame)?;
    for (at, row) in rows.iter().enumerate() {
        frame.push_str(if at == 0 { "\r" } else { "\r\n" });
        frame.push_str(row);
        Clear(ClearType::UntilNewLine).write_ansi(&mut frame)?;
    }
    Clear(ClearType::FromCursorDown).write_ansi(&mut frame)?;
    if rows.len() > 1 {
        MoveUp(rows.len() as u16 - 1).write_ansi(&mut frame)?;
    }
    MoveToColumn(0).write_ansi(&mut frame)?;
    EnableLineWrap.write_ansi(&mut frame)?;
    EndSynchronizedUpdate.write_ansi(&mut frame)?;
    Ok(frame)
}

/// Sees to it that the terminal is put back however the program ends or stops.
fn take() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where a signal cannot be handled, the command itself says so.
        let _ = signals::hold();
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

/// Puts the terminal back as it was found. May be called in a handler, and any number of times.
pub(crate) fn restore() {
    if SHOWN.swap(false, Ordering::AcqRel) {
        // SAFETY: writes bytes that live for ever. What cannot be written is lost, and nothing else.
        unsafe { libc::write(libc::STDERR_FILENO, ERASE.as_ptr().cast(), ERASE.len()) };
    }
    give_back();
}

/// The keyboard's descriptor while keys are read one by one; else -1.
static KEYS: AtomicI32 = AtomicI32::new(-1);

/// How the terminal was found.
static BEFORE: OnceLock<libc::termios> = OnceLock::new();

/// Whether this program is the one that the terminal listens to. One in the background that touches its settings is stopped.
pub(crate) fn is_in_front(terminal: RawFd) -> bool {
    // SAFETY: both only ask.
    unsafe { libc::tcgetpgrp(terminal) == libc::getpgrp() }
}

/// The terminal that commands this program.
pub(crate) fn commanding() -> Option<File> {
    File::options().read(true).open("/dev/tty").ok()
}

/// Whether keys may be read: not where stdout is a pipe, since whoever reads it may want the keyboard, as pagers do.
pub(crate) fn may_take_keys() -> bool {
    // SAFETY: an all-zero `stat` is a valid value to be overwritten.
    let is_pipe = unsafe {
        let mut about: libc::stat = std::mem::zeroed();
        libc::fstat(libc::STDOUT_FILENO, &mut about) == 0 && about.st_mode & libc::S_IFMT == libc::S_IFIFO
    };
    !is_pipe
}

/// Has keys come one by one, without an echo, if they do not yet and the terminal listens to us; whether they do.
pub(crate) fn take_keys(terminal: &File) -> bool {
    let fd = terminal.as_raw_fd();
    if KEYS.load(Ordering::Acquire) == fd {
        return true;
    }
    if !is_in_front(fd) {
        return false;
    }
    take();
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

/// Has the terminal read lines again. May be called in a handler.
pub(crate) fn give_back() {
    let fd = KEYS.swap(-1, Ordering::AcqRel);
    if let Some(before) = BEFORE.get().filter(|_| fd >= 0 && is_in_front(fd)) {
        // SAFETY: puts back what was read from the same terminal.
        unsafe { libc::tcsetattr(fd, libc::TCSANOW, before) };
    }
}
