//! The binary on a terminal it believes in, and what would be seen there.
#![cfg(unix)]

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use vt100::Parser;

use crate::harness::{BINARY, PATIENCE};
use crate::openpty::{command_it, pair, set_size};

/// The binary on a terminal.
pub struct Pty {
    child: Child,
    master: File,
    /// Kept open, so that settings can be looked at after the end.
    slave: OwnedFd,
    seen: Arc<Mutex<Seen>>,
    reader: JoinHandle<()>,
}

/// What came to the terminal.
struct Seen {
    parser: Parser,
    bytes: Vec<u8>,
}

/// What is left at the end.
pub struct Left {
    pub code: Option<i32>,
    /// The screen, without blank rows at its end.
    pub rows: Vec<String>,
    /// Everything that came.
    pub text: String,
}

fn nonzero(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a terminal has columns and rows")
}

impl Pty {
    /// Starts the binary on a terminal of this size, with these variables. Its stdout is the terminal too, unless it is `piped`.
    pub fn start(args: &[&str], (columns, rows): (u16, u16), variables: &[(&str, &str)], piped: bool) -> Pty {
        let (master, slave) = pair(columns, rows);
        let end = || Stdio::from(slave.try_clone().expect("a descriptor"));
        let mut command = Command::new(BINARY);
        command.args(args).stdin(end()).stderr(end()).stdout(if piped { Stdio::piped() } else { end() });
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").env("TZ", "UTC");
        for name in ["NO_COLOR", "LC_ALL", "LC_CTYPE"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        command_it(&mut command);
        let child = command.spawn().expect("the binary starts");
        drop(command);
        let parser = Parser::new(nonzero(rows), nonzero(columns), 1000);
        let seen = Arc::new(Mutex::new(Seen { parser, bytes: Vec::new() }));
        let master = File::from(master);
        let (mut from, to) = (master.try_clone().expect("a descriptor"), Arc::clone(&seen));
        let reader = std::thread::spawn(move || {
            let mut part = [0; 4096];
            // Ends with an error where the other side is closed.
            while let Ok(count) = from.read(&mut part) {
                let mut seen = to.lock().expect("nothing panics with it");
                seen.parser.process(&part[..count]);
                seen.bytes.extend_from_slice(&part[..count]);
            }
        });
        Pty { child, master, slave, seen, reader }
    }

    /// The screen now, without blank rows at its end.
    pub fn rows(&self) -> Vec<String> {
        let seen = self.seen.lock().expect("nothing panics with it");
        rows_of(&seen.parser)
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let started = Instant::now();
        loop {
            let rows = self.rows();
            if is_so(&rows) {
                return rows;
            }
            let ended = self.child.try_wait().expect("a child");
            let is_over = ended.is_some() || started.elapsed() > PATIENCE;
            assert!(!is_over, "{what} did not come, {ended:?}:\n{}", rows.join("\n"));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a row has this.
    #[track_caller]
    pub fn wait_for_text(&mut self, text: &str) -> Vec<String> {
        self.wait_for(text, |rows| has(rows, text))
    }

    /// Types something.
    pub fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("it listens");
    }

    /// What the program is told of the size.
    pub fn tell_size(&self, columns: u16, rows: u16) {
        set_size(self.master.as_raw_fd(), columns, rows);
    }

    /// The size that is seen.
    pub fn show_size(&self, columns: u16, rows: u16) {
        let mut seen = self.seen.lock().expect("nothing panics with it");
        seen.parser.set_size(nonzero(rows), nonzero(columns));
    }

    /// Whether the terminal edits lines and echoes, as shells have it.
    pub fn is_as_shells_have_it(&self) -> bool {
        // SAFETY: plain numbers, overwritten by the call, which asks about a descriptor that is open.
        let settings = unsafe {
            let mut settings: libc::termios = std::mem::zeroed();
            libc::tcgetattr(self.slave.as_raw_fd(), &mut settings);
            settings
        };
        let wanted = libc::ICANON | libc::ECHO | libc::ISIG;
        settings.c_lflag & wanted == wanted && settings.c_oflag & libc::OPOST != 0
    }

    pub fn hides_cursor(&self) -> bool {
        self.seen.lock().expect("nothing panics with it").parser.screen().hide_cursor()
    }

    /// Waits until the program is stopped, as by Ctrl-Z.
    pub fn wait_until_stopped(&self) {
        let mut status = 0;
        // SAFETY: waits for a child of ours, and leaves its end to be asked for by others.
        let waited = unsafe { libc::waitpid(self.child.id() as libc::pid_t, &mut status, libc::WUNTRACED) };
        assert_eq!(waited, self.child.id() as libc::pid_t);
        assert!(libc::WIFSTOPPED(status), "it ended instead: {status}");
    }

    /// Has it go on.
    pub fn go_on(&self) {
        // SAFETY: sends a signal to a child of ours.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGCONT) }, 0);
    }

    /// Waits for the end. The terminal must be as it was.
    #[track_caller]
    pub fn finish(mut self) -> Left {
        let started = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => break status,
                None if started.elapsed() > PATIENCE => {
                    panic!("it does not end:\n{}", self.rows().join("\n"))
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        assert!(self.is_as_shells_have_it(), "the terminal was left in another mode");
        drop((self.slave, self.master));
        self.reader.join().expect("it reads to the end");
        let seen = self.seen.lock().expect("nothing panics with it");
        assert!(!seen.parser.screen().hide_cursor(), "the cursor was left hidden");
        assert_eq!(status.signal(), None);
        Left {
            code: status.code(),
            rows: rows_of(&seen.parser),
            text: String::from_utf8(seen.bytes.clone()).expect("UTF-8"),
        }
    }
}

fn rows_of(parser: &Parser) -> Vec<String> {
    let (_, columns) = parser.screen().size();
    let rows: Vec<String> =
        parser.screen().rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect();
    let end = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    rows[..end].to_vec()
}

/// Whether a row has this.
pub fn has(rows: &[String], text: &str) -> bool {
    rows.iter().any(|row| row.contains(text))
}
