//! A pseudo-terminal. The program that draws the README's picture has this file too.
#![cfg(unix)]

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Both ends of a terminal of this size: ours, and the program's.
pub fn pair(columns: u16, rows: u16) -> (OwnedFd, OwnedFd) {
    let (mut master, mut slave) = (0, 0);
    // SAFETY: writes two descriptors to places of ours; the other arguments may be null.
    let made = unsafe {
        libc::openpty(
            &mut master,
            &mut slave,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    assert_eq!(made, 0, "a terminal");
    for end in [master, slave] {
        // SAFETY: sets a flag of an open descriptor. Programs that others start meanwhile do not hold it.
        unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    set_size(master, columns, rows);
    // SAFETY: both were just made and belong to nobody else.
    unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) }
}

/// Says how large a terminal is.
pub fn set_size(terminal: RawFd, columns: u16, rows: u16) {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: sets the size of a terminal that is open.
    assert_eq!(unsafe { libc::ioctl(terminal, libc::TIOCSWINSZ, &size) }, 0);
}

/// Has a command begin as the one that the terminal at its standard input listens to.
pub fn command_it(command: &mut Command) {
    // SAFETY: two system calls, which may be made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
}
