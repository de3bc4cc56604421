//! The secrets of a job: one master of 256 bits, from which each unit has a scalar of its own.
//!
//! HKDF-SHA256 with the master as key, the job's hash and the unit's number as context, 512 bits, reduced modulo n. Two scalars
//! are as unrelated as two random ones to whoever does not have the master, so that a result tells nothing of another. The same
//! master makes the key by which leases are recognised ([`crate::wire::Lease::token`]).
//!
//! SEC: the master is in a file of mode 0600 and in locked memory; it leaves neither.

use std::io::Write as _;
use std::path::Path;

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use warpsmith_engine::Secret;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::id::JobId;

/// Names this use of the key, apart from all others.
const UNIT: &[u8] = b"warpsmith fleet unit 1";
const TOKEN: &[u8] = b"warpsmith fleet lease token 1";
const PLAN: &[u8] = b"warpsmith fleet planted keys 1";
const SHIFT: &[u8] = b"warpsmith fleet hidden range 1";

/// The master secret of a job.
pub struct Master {
    job: JobId,
    // A key of the curve is 256 bits of locked memory that is erased; that it lies below n costs nothing.
    secret: Secret,
    token: Zeroizing<[u8; 32]>,
}

impl Master {
    /// A new one, in a file that was not there before.
    pub fn create(path: &Path, job: JobId) -> Result<Master> {
        Master::keep(path, Secret::random()?, job)
    }

    /// Writes a secret to a file that was not there before: its 32 bytes and their CRC-32.
    pub fn keep(path: &Path, secret: Secret, job: JobId) -> Result<Master> {
        let sum = crc32fast::hash(secret.as_bytes()).to_le_bytes();
        let mut file = warpsmith_files::create(path)?;
        let written = file.write_all(secret.as_bytes()).and_then(|()| file.write_all(&sum));
        written.and_then(|()| file.sync_all()).map_err(Error::io(path))?;
        warpsmith_files::sync_folder_of(path)?;
        Ok(Master::new(secret, job))
    }

    /// The one in this file.
    pub fn open(path: &Path, job: JobId) -> Result<Master> {
        let bytes = warpsmith_files::read_secret(path, 64)?;
        let damaged = || {
            Error::corrupt(
                path,
                "it holds no whole master secret: the file was damaged, and a copy of it may be whole",
            )
        };
        let (bytes, sum) = bytes.split_first_chunk::<32>().ok_or_else(damaged)?;
        if sum != crc32fast::hash(bytes).to_le_bytes() {
            return Err(damaged());
        }
        let secret = Secret::from_bytes(bytes).ok_or_else(damaged)?;
        Ok(Master::new(secret, job))
    }

    /// From a secret that is known: for tests and benches.
    pub fn new(secret: Secret, job: JobId) -> Master {
        let mut token = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(Some(TOKEN), secret.as_bytes())
            .expand(job.as_bytes(), &mut *token)
            .expect("32 bytes are not too many");
        Master { job, secret, token }
    }

    /// The scalar of a unit. It is never 0.
    pub fn unit(&self, unit: u64) -> Secret {
        let hkdf = Hkdf::<Sha256>::new(Some(UNIT), self.secret.as_bytes());
        // The counter goes up only where a half is no key, which nobody meets.
        (0u8..=255)
            .find_map(|again| {
                let mut wide = Zeroizing::new([0; 64]);
                hkdf.expand_multi_info(&[self.job.as_bytes(), &unit.to_be_bytes(), &[again]], &mut *wide)
                    .expect("64 bytes are not too many");
                Secret::from_wide(&wide)
            })
            .expect("256 times in a row one in 2^127")
    }

    /// Bytes that say what is planted in a unit of so many keys.
    pub fn plan(&self, unit: u64, keys: u64, bytes: &mut [u8]) {
        Hkdf::<Sha256>::new(Some(PLAN), self.secret.as_bytes())
            .expand_multi_info(&[self.job.as_bytes(), &unit.to_be_bytes(), &keys.to_be_bytes()], bytes)
            .expect("not too many bytes");
    }

    /// Bytes that say how far before its range a hidden scan begins.
    pub fn shift(&self) -> Zeroizing<[u8; 32]> {
        let mut bytes = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(Some(SHIFT), self.secret.as_bytes())
            .expand(self.job.as_bytes(), &mut *bytes)
            .expect("32 bytes are not too many");
        bytes
    }

    /// What proves that this text came from here.
    pub fn sign(&self, text: &[u8]) -> [u8; 16] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.token).expect("any length");
        mac.update(text);
        let whole = mac.finalize().into_bytes();
        std::array::from_fn(|at| whole[at])
    }

    /// Whether that came from here, in a time that tells nothing.
    pub fn is_signed(&self, text: &[u8], token: &[u8; 16]) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.token).expect("any length");
        mac.update(text);
        mac.verify_truncated_left(token).is_ok()
    }
}

/// SEC: shows nothing.
impl std::fmt::Debug for Master {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Master([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// The same by the primitives alone: RFC 5869 written out.
    #[test]
    fn scalars_are_those_of_the_standard() {
        let master = Master::new(Secret::from_bytes(&[7; 32]).expect("a key"), JobId([9; 32]));
        let hmac = |key: &[u8], parts: &[&[u8]]| -> [u8; 32] {
            let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
            parts.iter().for_each(|part| mac.update(part));
            mac.finalize().into_bytes().into()
        };
        let prk = hmac(UNIT, &[&[7; 32]]);
        let info = [&[9; 32][..], &5u64.to_be_bytes(), &[0]].concat();
        let first = hmac(&prk, &[&info, &[1]]);
        let second = hmac(&prk, &[&first, &info, &[2]]);
        let wide: [u8; 64] = [first, second].concat().try_into().expect("64 bytes");
        let expected = Secret::from_wide(&wide).expect("a key");
        assert_eq!(master.unit(5).as_bytes(), expected.as_bytes());
    }

    #[test]
    fn units_and_jobs_have_scalars_of_their_own() {
        let secret = Secret::random().expect("random");
        let mut seen = HashSet::new();
        for job in 0..4u8 {
            let master = Master::new(secret.clone(), JobId([job; 32]));
            for unit in (0..50).chain([u64::MAX]) {
                assert!(seen.insert(*master.unit(unit).as_bytes()));
                assert_eq!(master.unit(unit).as_bytes(), master.unit(unit).as_bytes());
            }
        }
        assert_eq!(seen.len(), 4 * 51);
    }

    #[test]
    fn a_master_is_kept_in_a_private_file_and_shown_nowhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("master");
        let made = Master::create(&path, JobId([1; 32])).expect("made");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = Master::open(&path, JobId([1; 32])).expect("read");
        assert_eq!(made.unit(3).as_bytes(), again.unit(3).as_bytes());
        assert!(Master::create(&path, JobId([1; 32])).is_err(), "never replaced");
        assert_eq!(format!("{made:?}"), "Master([redacted])");
        // One bit that is another, or a byte that is missing: found out before anything is searched with it.
        let whole = std::fs::read(&path).expect("there");
        let damaged = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("written");
            let told = Master::open(&path, JobId([1; 32])).expect_err("damaged").to_string();
            assert!(told.contains("was damaged"), "{told}");
        };
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            damaged(&bytes);
        }
        damaged(&whole[..35]);
        damaged(&[0; 31]);
    }

    #[test]
    fn tokens_are_recognised() {
        let master = Master::new(Secret::random().expect("random"), JobId([1; 32]));
        let token = master.sign(b"a lease");
        assert!(master.is_signed(b"a lease", &token));
        assert!(!master.is_signed(b"a leash", &token));
        let mut other = token;
        other[15] ^= 1;
        assert!(!master.is_signed(b"a lease", &other));
    }
}
