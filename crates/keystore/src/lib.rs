//! Private keys that may be left lying about: under a password, or for a recipient.
//!
//! Each file is one format, written as its standard says and made of others' ciphers: [`nip49`] (`ncryptsec`), [`web3`]
//! (keystore version 3), [`bip38`] (`6P...`) and [`age`]. Knows no files, no prompts and no curve of the chains: where a format
//! commits to an address, the caller computes it.
//!
//! SEC: a password is worth what it takes to try it. NIP-49 and Web3 take 64 and 256 MiB of memory and some tenths of a second for a
//! try; BIP-38 is fixed at 16 MiB and is weak by now. Decrypting bounds what a file may ask for before anything is allocated.
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

/// A key from a password by scrypt (RFC 7914), of memory that [`bounded`] allows.
fn scrypt<const N: usize>(
    password: &[u8],
    salt: &[u8],
    [log_n, r, p]: [u32; 3],
    format: &'static str,
) -> Result<Zeroizing<[u8; N]>> {
    let bad = || Error::Malformed { format, why: format!("scrypt cannot have log n {log_n}, r {r}, p {p}") };
    bounded(format, log_n, r, p)?;
    let params = scrypt::Params::new(u8::try_from(log_n).map_err(|_| bad())?, r, p).map_err(|_| bad())?;
    let mut key = Zeroizing::new([0; N]);
    scrypt::scrypt(password, salt, &params, &mut *key).map_err(|_| bad())?;
    Ok(key)
}

/// The most memory that decrypting takes: what NIP-49 lists as its highest (LOG_N 22).
const MOST_MEMORY: u64 = 1 << 32;

/// The most work, in blocks of 128 bytes: four times that of the highest of NIP-49.
const MOST_WORK: u64 = 1 << 27;

/// Whether what a file asks for is what a person can have meant.
fn bounded(format: &'static str, log_n: u32, r: u32, p: u32) -> Result<()> {
    let blocks = (1u64 << log_n.min(40)).saturating_mul(u64::from(r));
    let (memory, work) = (blocks.saturating_mul(128), blocks.saturating_mul(u64::from(p)));
    match memory <= MOST_MEMORY && work <= MOST_WORK {
        true => Ok(()),
        false => Err(Error::TooCostly { format, memory }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_asks_for_is_bounded() {
        assert!(bounded("test", 22, 8, 1).is_ok());
        assert!(bounded("test", 18, 8, 1).is_ok());
        assert!(bounded("test", 14, 8, 8).is_ok());
        for [log_n, r, p] in [[23, 8, 1], [63, 8, 1], [1, u32::MAX, 1], [22, 8, 8], [18, 8, u32::MAX]] {
            assert!(matches!(bounded("test", log_n, r, p), Err(Error::TooCostly { .. })), "{log_n} {r} {p}");
        }
    }
}
