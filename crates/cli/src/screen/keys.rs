//! Keys of the live screen.

use std::fs::File;
use std::io::{PipeReader, Read};
use std::os::fd::AsRawFd;
use std::time::Duration;

use warpsmith_console::terminal;

/// What a person may want while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// More or fewer details.
    Details,
    /// Rest, or go on.
    Pause,
    /// Stop.
    Stop,
}

/// What a thread that waits for keys is woken by.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    Keys(Vec<Key>),
    /// It has waited long enough.
    Time,
    /// Nobody wants the screen any more.
    End,
}

/// The keys in what a terminal sent. Arrows and the like begin with an escape, and letters behind it are none that somebody typed.
pub(crate) fn parse(sent: &[u8]) -> Vec<Key> {
    let typed = sent.split(|byte| *byte == 0x1b).next().unwrap_or_default();
    let key = |byte: &u8| match byte.to_ascii_lowercase() {
        b's' => Some(Key::Details),
        b'p' => Some(Key::Pause),
        b'q' => Some(Key::Stop),
        _ => None,
    };
    typed.iter().filter_map(key).collect()
}

/// Waits for keys, so long at most, or until the other end of `end` is closed. Where keys cannot be had now it waits for the rest.
pub(crate) fn wait(keyboard: Option<&File>, end: &PipeReader, time: Duration) -> Woken {
    let keyboard = keyboard.filter(|keyboard| terminal::enable_keys(keyboard));
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // A negative descriptor is passed over.
    let mut entries = [entry(end.as_raw_fd()), entry(keyboard.map_or(-1, AsRawFd::as_raw_fd))];
    let time = time.as_millis().min(1000) as libc::c_int;
    // SAFETY: the list lives, and has so many entries.
    let ready = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, time) };
    if ready <= 0 {
        return Woken::Time;
    }
    if entries[0].revents != 0 {
        return Woken::End;
    }
    let mut sent = [0; 64];
    match keyboard.map(|mut keyboard| keyboard.read(&mut sent)) {
        Some(Ok(count)) if count > 0 => Woken::Keys(parse(&sent[..count])),
        // A terminal that is gone is ready for ever.
        _ => {
            std::thread::sleep(Duration::from_millis(time as u64));
            Woken::Time
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_keys_and_what_arrows_send_is_not() {
        assert_eq!(parse(b"s"), [Key::Details]);
        assert_eq!(parse(b"xPq\r"), [Key::Pause, Key::Stop]);
        // The keypad's 1 and the arrow up.
        assert_eq!(parse(b"\x1bOq"), []);
        assert_eq!(parse(b"p\x1b[As"), [Key::Pause]);
        assert_eq!(parse(b""), []);
    }

    #[test]
    fn who_waits_is_told_of_time_and_of_the_end() {
        let (end, keep) = std::io::pipe().expect("a pipe");
        assert_eq!(wait(None, &end, Duration::from_millis(1)), Woken::Time);
        drop(keep);
        assert_eq!(wait(None, &end, Duration::from_secs(1)), Woken::End);
    }
}
