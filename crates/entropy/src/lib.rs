//! Random bytes of the operating system: all that is asked for, or an error.
//!
//! SEC: every key of ours begins here. On Linux this is the system call `getrandom`, made with libc's `syscall`, which adds no
//! generator, buffer or cache of its own. The call waits until the kernel's generator has been seeded and reads no file, so nothing
//! can take the place of a device node. Where the call is refused there is no second source: the caller must stop. There is no
//! generator of our own, no seed and no state.
//!
//! A generator that repeats itself is broken: an emulator, a sandbox or a tracer that answers every call alike would otherwise give
//! everybody the same keys, or none in an endless loop. Every draw is therefore checked against itself and against two more.

use std::fmt;
use std::io;

/// No random bytes that can be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refuses to give any.
    Refused(io::Error),
    /// The operating system gives the same bytes again.
    Repeated,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(error) => write!(
                f,
                "the operating system gives no random numbers (getrandom: {error}); there is no other source"
            ),
            Error::Repeated => f.write_str(
                "the random number generator of the operating system is broken: getrandom gave the same bytes twice. No key is \
                 made with it; use another machine, or repair the sandbox, emulator or kernel that answers the call",
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Refused(error) => Some(error),
            Error::Repeated => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match &error {
            Error::Refused(error) => error.kind(),
            Error::Repeated => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

/// Bytes that are compared. A working generator repeats so many with a chance of 2^-128.
const BLOCK: usize = 16;

/// Fills all of `bytes`. After an error nothing is known about them and they must not be used.
pub fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    fill_from(&mut system::fill, bytes)
}

/// Fills `bytes` from a source, and draws two blocks more, which nothing else uses: no two of them may be alike, nor like a block of
/// `bytes`, nor two neighbours in `bytes`.
fn fill_from(source: &mut dyn FnMut(&mut [u8]) -> io::Result<()>, bytes: &mut [u8]) -> Result<(), Error> {
    let mut probes = [[0; BLOCK]; 2];
    source(bytes).map_err(Error::Refused)?;
    for probe in &mut probes {
        source(probe).map_err(Error::Refused)?;
    }
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let is_repeated = probes[0] == probes[1]
        || blocks.iter().any(|block| probes.contains(block))
        || blocks.windows(2).any(|pair| pair[0] == pair[1]);
    if is_repeated { Err(Error::Repeated) } else { Ok(()) }
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
        let error = Error::Refused(io::Error::last_os_error()).to_string();
        assert!(error.contains("no random numbers") && error.contains("no other source"), "{error}");
    }

    #[test]
    fn a_generator_that_repeats_itself_is_refused() {
        let drawn = |source: &mut dyn FnMut(&mut [u8]), length: usize| {
            let mut bytes = vec![0; length];
            fill_from(
                &mut |bytes| {
                    source(bytes);
                    Ok(())
                },
                &mut bytes,
            )
        };
        for length in [0, 1, 8, 16, 32, 100] {
            // The same byte for ever, the same bytes in each call, two answers in turn.
            for constant in [0, 0x42, 0xff] {
                assert!(matches!(drawn(&mut |bytes| bytes.fill(constant), length), Err(Error::Repeated)));
            }
            let mut count =
                |bytes: &mut [u8]| bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
            assert!(matches!(drawn(&mut count, length), Err(Error::Repeated)), "{length}");
            assert!(drawn(&mut |bytes| system::fill(bytes).unwrap(), length).is_ok());
        }
        let mut calls = 0;
        let mut in_turn = |bytes: &mut [u8]| {
            calls += 1;
            bytes.fill(calls % 2);
        };
        assert!(matches!(drawn(&mut in_turn, 16), Err(Error::Repeated)));
        assert!(Error::Repeated.to_string().contains("same bytes twice"));
    }
}
