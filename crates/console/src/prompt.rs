//! Prompts for a secret on the terminal, without echo.
//!
//! The terminal is `/dev/tty`, so that standard input and output may be files. While a secret is typed the terminal neither echoes nor
//! acts on keys by itself: Ctrl-C is read like any other key, so that no signal ends the program before the terminal is restored.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;

use zeroize::Zeroizing;

use crate::exit::Failure;

/// Longest input in bytes.
pub const MAX_BYTES: usize = 1023;

/// The terminal with its echo off, until dropped.
struct Silent {
    terminal: File,
    before: libc::termios,
}

impl Silent {
    fn new(terminal: File) -> std::io::Result<Silent> {
        // SAFETY: plain numbers, overwritten by the call below.
        let mut before: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: asks about a descriptor that is open and writes to a place of ours.
        if unsafe { libc::tcgetattr(terminal.as_raw_fd(), &mut before) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let mut silent = before;
        silent.c_lflag &= !(libc::ECHO | libc::ECHONL | libc::ICANON | libc::ISIG | libc::IEXTEN);
        silent.c_cc[libc::VMIN] = 1;
        silent.c_cc[libc::VTIME] = 0;
        // SAFETY: sets what was just read, but for these flags, and drops what was typed before the question.
        if unsafe { libc::tcsetattr(terminal.as_raw_fd(), libc::TCSAFLUSH, &silent) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Silent { terminal, before })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = self.terminal.write_all(b"\n");
        // SAFETY: puts back what was read from the same descriptor.
        unsafe { libc::tcsetattr(self.terminal.as_raw_fd(), libc::TCSANOW, &self.before) };
    }
}

/// Reads the answer to `question`; `instead` says how to give it where there is no terminal.
pub fn ask(question: &str, instead: &str) -> Result<Zeroizing<String>, Failure> {
    let no_terminal =
        |error| Failure::Usage(format!("there is no terminal to ask for {question} ({error}); {instead}"));
    let terminal = File::options().read(true).write(true).open("/dev/tty").map_err(no_terminal)?;
    let mut silent = Silent::new(terminal).map_err(no_terminal)?;
    silent.terminal.write_all(format!("{question}: ").as_bytes()).map_err(no_terminal)?;
    let typed = read_line(&mut silent.terminal);
    drop(silent);
    typed
}

/// Reads a line, with the keys that edit one.
fn read_line(terminal: &mut impl Read) -> Result<Zeroizing<String>, Failure> {
    // SEC: large enough from the start, so that nothing moves.
    let mut typed = Zeroizing::new(Vec::with_capacity(MAX_BYTES + 1));
    let mut byte = [0];
    loop {
        let got = terminal.read(&mut byte).map_err(|error| {
            Failure::Other(format!("what is typed cannot be read from the terminal: {error}"))
        })?;
        match byte[0] {
            _ if got == 0 => return Err(Failure::Interrupted),
            b'\r' | b'\n' => break,
            // Ctrl-C, Ctrl-\, and Ctrl-D where nothing was typed.
            3 | 28 => return Err(Failure::Interrupted),
            4 if typed.is_empty() => return Err(Failure::Interrupted),
            4 => break,
            // A character back: all its bytes.
            8 | 127 => while typed.pop().is_some_and(|last| last & 0xc0 == 0x80) {},
            // Ctrl-U.
            21 => typed.clear(),
            other if typed.len() < MAX_BYTES => typed.push(other),
            _ => {
                return Err(Failure::Usage(format!(
                    "more than {MAX_BYTES} bytes were typed; the longest that is taken has so many"
                )));
            }
        }
        byte[0] = 0;
    }
    let text = std::str::from_utf8(&typed)
        .map_err(|_| Failure::Usage("what was typed is not text (UTF-8)".to_owned()))?;
    let mut line = Zeroizing::new(String::with_capacity(text.len()));
    line.push_str(text);
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_mended_as_on_any_terminal() {
        let typed = |keys: &[u8]| read_line(&mut &*keys).map(|line| line.to_string());
        assert_eq!(typed(b"secret\rmore").unwrap(), "secret");
        assert_eq!(typed(b"sx\x7fecret\x04").unwrap(), "secret");
        assert_eq!(typed("sé\u{8}€\u{7f}ecret\n".as_bytes()).unwrap(), "secret");
        assert_eq!(typed(b"wrong\x15right\n").unwrap(), "right");
        assert_eq!(typed(b"\x7f\x7fa\n").unwrap(), "a");
        assert_eq!(typed(b"\n").unwrap(), "");
        for end in [&b"half"[..], b"half\x03", b"\x04", b"\x1c\n"] {
            assert!(matches!(typed(end), Err(Failure::Interrupted)), "{end:?}");
        }
        assert!(matches!(typed(&[b'x'; 2000]), Err(Failure::Usage(_))));
        assert!(matches!(typed(b"\xff\n"), Err(Failure::Usage(_))));
    }
}
