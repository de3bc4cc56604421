//! Random bytes of the operating system: all that is asked for, or an error.
//!
//! SEC: every key of ours begins here. On Linux this is the system call `getrandom` itself, without a library between. It
//! waits until the kernel's generator has been seeded and reads no file, so nobody can put another in the place of a
//! device node. Where the call is refused there is no second source: whoever asks must stop. There is no generator of our
//! own, no seed and no state.

use std::fmt;
use std::io;

/// The operating system gave no random bytes.
#[derive(Debug)]
pub struct Error(io::Error);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the operating system gives no random numbers (getrandom: {}); there is no other source",
            self.0
        )
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        io::Error::new(error.0.kind(), error)
    }
}

/// Fills all of `bytes`. After an error nothing is known about them and they must not be used.
pub fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    system::fill(bytes).map_err(Error)
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    pub fn fill(mut bytes: &mut [u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            // SAFETY: the call writes at most `len` bytes to the start of a slice that is ours alone.
            let got = unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) };
            match usize::try_from(got) {
                // A signal may end a long request early.
                Ok(got @ 1..) if got <= bytes.len() => bytes = &mut bytes[got..],
                Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(_) => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(io::Error::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than the kernel fills without looking for signals, so that the rest is asked for as well.
    #[test]
    fn every_part_of_a_long_buffer_is_filled_and_no_two_are_alike() {
        let mut bytes = vec![0; 1 << 20];
        fill(&mut bytes).unwrap();
        let mut pieces: Vec<&[u8]> = bytes.chunks(16).collect();
        pieces.sort_unstable();
        assert!(pieces.windows(2).all(|pair| pair[0] != pair[1]));
        assert_ne!(pieces[0], [0; 16]);
        fill(&mut []).unwrap();
    }

    /// The call itself, seen from outside, is tested with the real program: `crates/cli/tests/randomness.rs`.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_refused_call_is_an_error_that_says_so() {
        // SAFETY: a null buffer makes the kernel refuse without writing anything.
        let refused = unsafe { libc::syscall(libc::SYS_getrandom, std::ptr::null_mut::<u8>(), 8, 0) };
        assert_eq!(refused, -1);
        let error = Error(io::Error::last_os_error()).to_string();
        assert!(error.contains("no random numbers") && error.contains("no other source"), "{error}");
    }
}
