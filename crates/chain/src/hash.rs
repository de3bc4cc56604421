//! The hashes of Bitcoin, by the usual crates: the host judges with code that shares nothing with what searches.

use ripemd::Ripemd160;
use sha2::{Digest, Sha256};

/// SHA-256.
pub(crate) fn sha256(message: &[u8]) -> [u8; 32] {
    Sha256::digest(message).into()
}

/// RIPEMD-160 of SHA-256.
pub(crate) fn hash160(message: &[u8]) -> [u8; 20] {
    Ripemd160::digest(sha256(message)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_agree_with_those_that_search() {
        let message: Vec<u8> = (0..200).collect();
        for length in 0..message.len() {
            let message = &message[..length];
            assert_eq!(sha256(message), warpsmith_hash::sha256::sha256(message));
            assert_eq!(hash160(message), warpsmith_hash::hash160::hash160(message));
        }
    }
}
