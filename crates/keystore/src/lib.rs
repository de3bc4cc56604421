//! Private keys that may be left lying about: under a password, or for a recipient.
//!
//! Each file is one format, written as its standard says and made of others' ciphers: [`nip49`] (`ncryptsec`), [`web3`]
//! (keystore version 3), [`bip38`] (`6P...`) and [`age`]. Knows no files, no prompts and no curve of the chains: where a format
//! commits to an address, the caller computes it.
//!
//! SEC: a password is worth what it takes to try it. NIP-49 and Web3 take 64 and 256 MiB of memory and some tenths of a second for a
//! try; BIP-38 is fixed at 16 MiB and is weak by now. Decrypting bounds what a file may ask for before anything is allocated, and
//! refuses a file whose memory the system does not give.
//!
//! ```
//! use warpsmith_keystore::{KeySecurity, Password, nip49};
//!
//! let (key, password) = ([7; 32], Password::new("a long one, please".to_owned().into())?);
//! // 4: for an example that is quick. `nip49::LOG_N` is for keys.
//! let text = nip49::encrypt(&key, &password, 4, KeySecurity::NeverShown)?;
//! assert!(text.starts_with("ncryptsec1"));
//! assert_eq!(*nip49::decrypt(&text, &password)?.secret, key);
//! # Ok::<(), warpsmith_keystore::Error>(())
//! ```

pub mod age;
pub mod bip38;
mod error;
pub mod nip49;
mod password;
pub mod web3;

pub use error::{Error, Result};
pub use nip49::KeySecurity;
pub use password::Password;

use zeroize::Zeroizing;

/// So many random bytes of the operating system.
fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    warpsmith_entropy::fill(&mut bytes).map_err(Error::Randomness)?;
    Ok(bytes)
}

/// What scrypt (RFC 7914) is asked for, known to be possible and within bounds before a password is asked for.
struct Scrypt {
    format: &'static str,
    params: scrypt::Params,
    memory: u64,
    blocks: u64,
}

/// The most memory that decrypting takes: what NIP-49 lists as its highest (LOG_N 22).
const MOST_MEMORY: u64 = 1 << 32;

/// The most work, in blocks of 128 bytes: four times that of the highest of NIP-49.
const MOST_WORK: u64 = 1 << 27;

impl Scrypt {
    /// If that is what a person can have meant.
    fn new([log_n, r, p]: [u32; 3], format: &'static str) -> Result<Scrypt> {
        let blocks = (1u64 << log_n.min(40)).saturating_mul(u64::from(r));
        let (memory, work) = (blocks.saturating_mul(128), blocks.saturating_mul(u64::from(p)));
        if memory > MOST_MEMORY || work > MOST_WORK {
            return Err(Error::TooCostly { format, memory });
        }
        let bad = || Error::malformed(format, format!("scrypt cannot have log n {log_n}, r {r}, p {p}"));
        // RFC 7914: N is larger than 1.
        let log_n = u8::try_from(log_n).ok().filter(|log_n| *log_n > 0).ok_or_else(bad)?;
        let params = scrypt::Params::new(log_n, r, p).map_err(|_| bad())?;
        // The table, what is mixed with it, and the block in between.
        let memory = memory + 128 * u64::from(r) * (u64::from(p) + 1);
        reserve(format, memory)?;
        Ok(Scrypt { format, params, memory, blocks: work })
    }

    /// The key from a password.
    fn key<const N: usize>(&self, password: &[u8], salt: &[u8]) -> Result<Zeroizing<[u8; N]>> {
        let mut key = Zeroizing::new([0; N]);
        reserve(self.format, self.memory)?;
        scrypt::scrypt(password, salt, &self.params, &mut *key)
            .expect("32 or 64 bytes are a length of scrypt's");
        Ok(key)
    }
}

/// Asks the system for so much memory, and gives it back at once. An allocation that fails would end the program, and scrypt
/// does not let its memory be given to it.
fn reserve(format: &'static str, memory: u64) -> Result<()> {
    // Beside it there are small buffers, and pages that tell which are taken.
    let bytes = usize::try_from(memory).ok().and_then(|bytes| bytes.checked_add(bytes / 64 + (1 << 20)));
    let mut space = Vec::<u8>::new();
    let is_given = bytes.is_some_and(|bytes| space.try_reserve_exact(bytes).is_ok());
    // Or the compiler leaves out memory that nobody uses.
    std::hint::black_box(&space);
    if is_given { Ok(()) } else { Err(Error::NoMemory { format, memory }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_asks_for_is_bounded() {
        for cost in [[22, 8, 1], [18, 8, 1], [14, 8, 8]] {
            // A small machine does not give 4 GiB.
            let made = Scrypt::new(cost, "test");
            assert!(matches!(made, Ok(_) | Err(Error::NoMemory { .. })), "{cost:?}");
        }
        for cost in [[23, 8, 1], [63, 8, 1], [1, u32::MAX, 1], [22, 8, 8], [18, 8, u32::MAX]] {
            assert!(matches!(Scrypt::new(cost, "test"), Err(Error::TooCostly { .. })), "{cost:?}");
        }
        for cost in [[0, 8, 1], [14, 0, 1], [14, 8, 0]] {
            assert!(matches!(Scrypt::new(cost, "test"), Err(Error::Malformed { .. })), "{cost:?}");
        }
    }

    #[test]
    fn memory_that_the_system_does_not_give_is_an_error() {
        assert!(reserve("test", 16 << 20).is_ok());
        for memory in [1 << 62, u64::MAX] {
            assert!(matches!(reserve("test", memory), Err(Error::NoMemory { .. })), "{memory}");
        }
        let mut cost = Scrypt::new([4, 8, 1], "test").unwrap();
        assert!(cost.key::<32>(b"password", b"salt").is_ok());
        cost.memory = 1 << 62;
        assert!(matches!(cost.key::<32>(b"password", b"salt"), Err(Error::NoMemory { .. })));
    }
}
