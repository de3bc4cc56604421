//! Private keys: where they are held, and how they are worked on without a trace.
//!
//! SEC: a [`Secret`] is a pointer into locked memory, so that moving it copies nothing, and its bytes are erased when it is
//! dropped. Arithmetic is libsecp256k1's, which takes keys by value: such copies, and what encoders keep, lie on the stack
//! below [`wiping_stack`] and are overwritten before it returns.

use std::fmt;
use std::hint::black_box;

use secp256k1::{PublicKey, Scalar as SecpScalar, SecretKey};
use warpsmith_curve::Scalar;
use zeroize::Zeroize;

use crate::arena::Locked;
use crate::error::{Error, Result};

/// A scalar as libsecp256k1 takes it.
pub(crate) fn tweak(s: Scalar) -> SecpScalar {
    SecpScalar::from_be_bytes(s.to_be_bytes()).expect("both sides keep scalars below n")
}

/// Keys that are drawn with one request to the system.
const TOGETHER: usize = 64;

/// A private key. Erased when dropped; `Debug` shows nothing of it.
///
/// ```
/// use warpsmith_engine::Secret;
///
/// let secret = Secret::random()?;
/// assert_eq!(Secret::from_bytes(secret.as_bytes()).unwrap().public_key(), secret.public_key());
/// assert!(Secret::from_bytes(&[0; 32]).is_none(), "zero is no key");
/// # Ok::<(), warpsmith_engine::Error>(())
/// ```
pub struct Secret(Locked);

impl Secret {
    /// A key from big-endian bytes; none for 0 and for n and above.
    pub fn from_bytes(bytes: &[u8; 32]) -> Option<Secret> {
        let mut held = Locked::new();
        held.copy_from_slice(bytes);
        Secret(held).checked()
    }

    /// 256 bits from the operating system, again until they lie in 1..n-1 (the first try but for a chance
    /// below 2^-127).
    pub fn random() -> Result<Secret> {
        loop {
            let mut held = Locked::new();
            warpsmith_entropy::fill(&mut *held).map_err(Error::Randomness)?;
            if let Some(secret) = Secret(held).checked() {
                return Ok(secret);
            }
        }
    }

    /// A key from 64 bytes that nobody can tell from random ones: the number they are, big-endian, modulo n. None where one half
    /// of them is no key, which nobody meets.
    ///
    /// ```
    /// use warpsmith_engine::Secret;
    ///
    /// let mut bytes = [0; 64];
    /// (bytes[31], bytes[63]) = (1, 1);
    /// let key = Secret::from_wide(&bytes).unwrap();
    /// // 2^256 + 1 = n + 0x1_4551231950b75fc4_402da1732fc9bec0 + 1
    /// assert_eq!(key.as_bytes()[15..], [&[1][..], &0x4551231950b75fc4402da1732fc9bec0_u128.to_be_bytes()].concat());
    /// ```
    pub fn from_wide(bytes: &[u8; 64]) -> Option<Secret> {
        // 2^256 modulo n.
        let wrap = Scalar::from_u128(1 << 127).add(Scalar::from_u128(1 << 127));
        let wrap = wrap.add(Scalar::from_u128(0x4551_2319_50b7_5fc4_402d_a173_2fc9_bebf));
        let (halves, _) = bytes.as_chunks::<32>();
        let (high, low) = (Secret::from_bytes(&halves[0])?, Secret::from_bytes(&halves[1])?);
        high.with(|key| {
            let high = key.mul_tweak(&tweak(wrap)).ok()?;
            // SEC: libsecp256k1 adds a number in constant time; the copy of it lies on this stack.
            let sum = high.add_tweak(&SecpScalar::from_be_bytes(*low.as_bytes()).ok()?).ok()?;
            Some(Secret::take(sum))
        })
    }

    /// So many keys, each made as by [`Secret::random`] and from bytes of its own.
    pub(crate) fn random_many(count: usize) -> Result<Vec<Secret>> {
        loop {
            let mut held = Locked::many(count);
            // SEC: by way of the stack, which is overwritten: asking the system for each key alone would take longer than all the
            // rest.
            wiping_stack(|| -> Result<()> {
                let mut drawn = [[0; 32]; TOGETHER];
                for slots in held.chunks_mut(TOGETHER) {
                    let drawn = &mut drawn[..slots.len()];
                    warpsmith_entropy::fill(drawn.as_flattened_mut()).map_err(Error::Randomness)?;
                    for (slot, bytes) in slots.iter_mut().zip(drawn) {
                        slot.copy_from_slice(bytes);
                        bytes.zeroize();
                    }
                }
                Ok(())
            })?;
            let secrets: Vec<Secret> = held.into_iter().map(Secret).collect();
            if wiping_stack(|| secrets.iter().all(Secret::is_key)) {
                return Ok(secrets);
            }
        }
    }

    /// Whether the bytes lie in 1..n-1. Leaves copies on the stack.
    fn is_key(&self) -> bool {
        SecretKey::from_secret_bytes(*self.0).map(|mut key| key.non_secure_erase()).is_ok()
    }

    fn checked(self) -> Option<Secret> {
        wiping_stack(|| self.is_key()).then_some(self)
    }

    /// The bytes, big-endian. Show them only to the key's owner.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Lends the key to a calculation in libsecp256k1 and erases the copies.
    pub(crate) fn with<T>(&self, f: impl FnOnce(SecretKey) -> T) -> T {
        wiping_stack(|| {
            let mut key = SecretKey::from_secret_bytes(*self.0).expect("checked when made");
            let out = f(key);
            key.non_secure_erase();
            out
        })
    }

    fn take(mut key: SecretKey) -> Secret {
        let mut held = Locked::new();
        held.copy_from_slice(key.as_secret_bytes());
        key.non_secure_erase();
        Secret(held)
    }

    /// The public key.
    pub fn public_key(&self) -> PublicKey {
        self.with(|k| PublicKey::from_secret_key(&k))
    }

    /// lambda^image * (self + offset), or minus that; none in the case, never met, that the sum is zero.
    pub(crate) fn moved(&self, offset: Scalar, image: u8, negate: bool) -> Option<Secret> {
        self.with(|k| {
            let moved =
                k.add_tweak(&tweak(offset)).ok()?.mul_tweak(&tweak(Scalar::lambda_power(image))).ok()?;
            Some(Secret::take(if negate { moved.negate() } else { moved }))
        })
    }

    /// The other key with the same x coordinate.
    pub(crate) fn negated(&self) -> Secret {
        self.with(|k| Secret::take(k.negate()))
    }
}

impl Clone for Secret {
    fn clone(&self) -> Secret {
        let mut held = Locked::new();
        held.copy_from_slice(self.as_bytes());
        Secret(held)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

/// How far down the stack is overwritten: several times what an operation on a key, its encoding and its delivery take.
const DEPTH: usize = 1 << 16;

/// Does something with secrets and overwrites the part of the stack it used. What it returns by value must be no secret; a
/// [`Secret`] is a pointer and may be.
///
/// ```
/// use warpsmith_engine::{Secret, wiping_stack};
///
/// let public = wiping_stack(|| Secret::random().map(|secret| secret.public_key()))?;
/// # Ok::<(), warpsmith_engine::Error>(())
/// ```
pub fn wiping_stack<T>(work: impl FnOnce() -> T) -> T {
    // A frame of its own, which lies where the next call's will.
    #[inline(never)]
    fn below<T>(work: impl FnOnce() -> T) -> T {
        work()
    }
    #[inline(never)]
    fn overwrite() {
        black_box(&mut [0u8; DEPTH]);
    }
    let out = below(work);
    overwrite();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let secret = Secret::random().expect("random");
        assert_eq!(format!("{secret:?}"), "Secret([redacted])");
    }

    #[test]
    fn only_numbers_below_the_order_are_keys() {
        let order = Scalar::from_u64(1).negate().to_be_bytes();
        assert!(Secret::from_bytes(&order).is_some(), "n - 1");
        let mut above = order;
        above[31] += 1;
        assert!(Secret::from_bytes(&above).is_none(), "n");
        assert!(Secret::from_bytes(&[0xff; 32]).is_none());
        assert!(Secret::from_bytes(&[0; 32]).is_none());
        let one = Secret::from_bytes(&Scalar::from_u64(1).to_be_bytes()).expect("one");
        assert_eq!(*one.negated().as_bytes(), order);
        assert_eq!(one.clone().as_bytes(), one.as_bytes());
    }
}
