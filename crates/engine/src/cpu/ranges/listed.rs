//! Keys one by one: a multiplication each, many at a time, and the digests of all of them.

use std::sync::Arc;

use warpsmith_chain::{Digest, Form};
use warpsmith_curve::Scalar;
use warpsmith_curve::multiply::Multiples;
use warpsmith_store::{KeyMask, U256};
use zeroize::Zeroizing;

use super::hashing::{Hashing, Window};
use super::{CpuScanner, MayHold};
use crate::cpu::Cpu;
use crate::origins::sums_of_keys;
use crate::worker::Fault;
use crate::worker::scanner::Survivor;

/// Candidates of a stretch where a checksum leaves next to none of them, and where each is a key.
const CHECKED: u64 = 1 << 20;
const UNCHECKED: u64 = 1 << 15;

/// Candidates of a mask, one by one.
pub(super) struct Listed {
    mask: Arc<KeyMask>,
}

impl Listed {
    pub fn new(mask: &Arc<KeyMask>) -> Listed {
        Listed { mask: Arc::clone(mask) }
    }

    /// Candidates that are looked at in some hundredths of a second.
    pub fn stretch(&self) -> u64 {
        match self.mask.texts() {
            Some(texts) if texts.pruning() > 1.0 => CHECKED,
            _ => UNCHECKED,
        }
    }

    /// The keys among candidates, each with how far from the first it is.
    fn keys(&self, first: U256, count: u64) -> (Vec<u64>, Zeroizing<Vec<[u8; 32]>>) {
        let (mut offsets, mut keys) = (Vec::new(), Zeroizing::new(Vec::new()));
        match self.mask.texts() {
            Some(texts) => {
                let first = first.as_u128();
                texts.visit(first, count, &mut |candidate, key| {
                    offsets.push((candidate - first) as u64);
                    keys.push(*key);
                });
            }
            None => {
                for offset in 0..count {
                    if let Some(key) = self.mask.key_at(first + U256::from(offset)) {
                        offsets.push(offset);
                        keys.push(key);
                    }
                }
            }
        }
        (offsets, keys)
    }
}

/// Keys by their places in a list, eight at a time.
struct InOrder;

impl Window for InOrder {
    type At = u64;

    fn offset(&self, at: &u64, point: usize) -> Option<u64> {
        Some(at + point as u64)
    }
}

/// Which of some keys have a form that the filter lets pass, by their places. All are keys: 1 to n - 1.
pub(crate) fn survivors_of(
    (cpu, multiples): (&Cpu, &Multiples),
    forms: &[Form],
    filter: &dyn MayHold,
    keys: &[[u8; 32]],
) -> Vec<(u64, Form, Digest)> {
    let mut hashing = Hashing::new(cpu, forms, filter, &InOrder);
    for (at, sum) in sums_of_keys(multiples, keys).iter().enumerate() {
        hashing.eight(&sum.x, &sum.y, sum.live, 8 * at as u64);
    }
    hashing.flush();
    hashing.survivors
}

impl CpuScanner<'_> {
    /// The candidates first, first + 1, .. that are keys of which the filter lets a form pass.
    pub(super) fn cover_listed(
        &self,
        listed: &Listed,
        first: Scalar,
        count: u64,
    ) -> Result<Vec<Survivor>, Fault> {
        let (offsets, keys) = listed.keys(U256::from_be_bytes(first.to_be_bytes()), count);
        let found = survivors_of((self.cpu, self.cpu.multiples()), self.forms, self.filter, &keys);
        let survivor = |(at, form, digest): (u64, Form, Digest)| Survivor {
            key: first.add(Scalar::from_u64(offsets[at as usize])),
            form,
            digest,
        };
        Ok(found.into_iter().map(survivor).collect())
    }
}
