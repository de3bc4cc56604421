//! What a scan asks of anything that can cover stretches of keys.

use std::sync::Arc;

use warpsmith_chain::{Digest, Form};
use warpsmith_curve::{Affine, Scalar};
use warpsmith_store::KeyMask;

use super::Fault;
use crate::origin::{Secret, public_point};

/// A key of which one form passed the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survivor {
    pub(crate) key: Scalar,
    pub(crate) form: Form,
    pub(crate) digest: Digest,
}

/// The digest of a key by libsecp256k1 and the reference code; none for 0.
pub(crate) fn digest_of(key: Scalar, form: Form) -> Option<Digest> {
    let public = Secret::from_bytes(&key.to_be_bytes())?.public_key();
    Some(form.reference(&public_point(&public)))
}

/// A comparison of where a walk ended with where it must; any thread may do it.
pub(crate) type Proof = Box<dyn FnOnce() -> Result<(), Fault> + Send>;

/// Something that scans stretches of keys.
pub(crate) trait Scanner: Send {
    /// How many keys are best asked for at a time: some tenths of a second, or seconds on a card.
    fn most(&self) -> u64;

    /// Distances from the first key of a stretch at which something begins anew in the way it works, the nearest first: for
    /// self-tests.
    fn seams(&self) -> Vec<u64>;

    /// From now on keys are counted from this point, whose logarithm need not be known: the key k stands for `base + k * G`, and
    /// may be 0.
    fn count_from(&mut self, _base: Affine) -> Result<(), Fault> {
        Err("it cannot scan from a point on".to_owned())
    }

    /// From now on numbers are those of a mask's candidates, from 0 on: what is found is told by them.
    fn follow(&mut self, _mask: &Arc<KeyMask>) -> Result<(), Fault> {
        Err("it cannot scan by a mask".to_owned())
    }

    /// Begins with so many keys from `first` on. None of them is 0 or beyond n - 1.
    fn begin(&mut self, first: Scalar, count: u64) -> Result<(), Fault>;

    /// Covers the next keys: how many, at least one until all are covered, and those of them that passed the filter.
    fn go_on(&mut self) -> Result<(u64, Vec<Survivor>), Fault>;

    /// Covers what is under way already and begins nothing: how many of the keys asked for that were, none of them twice, and
    /// those that passed the filter. Called when a scan ends.
    fn finish(&mut self) -> Result<(u64, Vec<Survivor>), Fault> {
        Ok((0, Vec::new()))
    }

    /// What must be found right before the keys covered since the last call count: that its lanes went where they must.
    /// None where that is known already.
    fn proof(&mut self) -> Result<Option<Proof>, Fault> {
        Ok(None)
    }

    /// Turns over one bit of the centre of a lane: at once, or in the middle of what is covered next.
    #[cfg(test)]
    fn flip(&mut self, lane: u32, bit: u32);
}

/// The number, if it has 64 bits.
pub(crate) fn small(scalar: Scalar) -> Option<u64> {
    let bytes = scalar.to_be_bytes();
    let (high, low) = bytes.split_at(24);
    let low = low.try_into().expect("eight bytes");
    high.iter().all(|&byte| byte == 0).then(|| u64::from_be_bytes(low))
}
