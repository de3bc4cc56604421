//! The digest: the bytes a filter tests and an encoding writes out.
//!
//! Knows bytes and their reading as big-endian words. Does not know which hash or coordinate made them.

use std::fmt;

/// Up to 32 bytes that stand for a public key: an x coordinate, a hash.
///
/// A digest is public; it may be printed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest {
    /// Zero from `len` on, so that the derived equality is equality of the digests.
    bytes: [u8; Self::MAX],
    len: u8,
}

impl Digest {
    /// The most bytes a digest has.
    pub const MAX: usize = 32;

    /// A digest of these bytes.
    ///
    /// # Panics
    ///
    /// When there are more than [`Digest::MAX`].
    pub fn new(bytes: &[u8]) -> Self {
        assert!(bytes.len() <= Self::MAX, "a digest has at most {} bytes, not {}", Self::MAX, bytes.len());
        let mut padded = [0; Self::MAX];
        padded[..bytes.len()].copy_from_slice(bytes);
        Self { bytes: padded, len: bytes.len() as u8 }
    }

    /// The bytes, without padding.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The bytes as four words, most significant first, zero padded at the end: what a filter reads.
    pub fn words(&self) -> [u64; 4] {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(self.bytes.chunks_exact(8)) {
            *word = bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        }
        words
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(")?;
        for byte in self.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_big_endian_and_padded_at_the_end() {
        let bytes: Vec<u8> = (1..=20).collect();
        let digest = Digest::new(&bytes);
        assert_eq!(digest.as_bytes(), bytes);
        assert_eq!(digest.words(), [0x0102_0304_0506_0708, 0x090a_0b0c_0d0e_0f10, 0x1112_1314 << 32, 0]);
        assert_eq!(Digest::new(&[]).words(), [0; 4]);
        assert_eq!(Digest::new(&[0xff; 32]).words(), [u64::MAX; 4]);
    }

    #[test]
    fn length_is_part_of_equality() {
        assert_ne!(Digest::new(&[1, 0]), Digest::new(&[1]));
        assert_eq!(format!("{:?}", Digest::new(&[1, 0xab])), "Digest(01ab)");
    }

    #[test]
    #[should_panic(expected = "at most 32 bytes, not 33")]
    fn thirty_three_bytes_are_refused() {
        Digest::new(&[0; 33]);
    }
}
