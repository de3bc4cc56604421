//! The baseline of targets that hash points: the search's own walk, one hash at a time with the usual crates.

use std::thread;
use std::time::{Duration, Instant};

use ripemd::Ripemd160;
use sha2::Sha256;
use sha3::{Digest as _, Keccak256};
use warpsmith_chain::{Digest, Form, Reads, Recipe};
use warpsmith_curve::walk::{Block, Points, Walk};
use warpsmith_pattern::Filter;

use crate::cpu::{Cpu, create};
use crate::error::Result;
use crate::origins::Maker;
use crate::simd::Simd;

/// What is hashed of a point.
#[derive(Clone)]
struct Hash {
    form: Form,
    /// What CREATE hashes, without the account: for [`Form::Contract`].
    message: Vec<u8>,
}

impl Hash {
    /// None for what is no hash of a point.
    fn new(recipe: &Recipe) -> Option<Hash> {
        let message = match recipe.form()? {
            Form::X | Form::Taproot => return None,
            Form::Contract { nonce } => create::message(nonce),
            _ => Vec::new(),
        };
        Some(Hash { form: recipe.form()?, message })
    }

    fn reads_y(&self) -> bool {
        self.form.reads() == Reads::Both
    }
}

/// Whether digests of this recipe are hashes of points, for which this is the baseline.
pub(super) fn has(recipe: &Recipe) -> bool {
    Hash::new(recipe).is_some()
}

/// Walks for so long; returns candidates and seconds.
pub(super) fn run(
    recipe: &Recipe,
    filter: &Filter,
    simd: Simd,
    threads: usize,
    time: Duration,
) -> Result<(u64, f64)> {
    let Some(hash) = Hash::new(recipe) else { return Ok((0, 0.0)) };
    let cpu = Cpu::new(simd, threads);
    let mut walks = Vec::new();
    for _ in 0..threads.max(1) {
        let (_, points) = Maker::new(None).ledger(cpu.numbering().lanes as usize)?;
        walks.push(cpu.walk(&points));
    }
    let started = Instant::now();
    let one = |mut walk: Walk<'_>| {
        let mut tried = 0;
        while started.elapsed() < time {
            tried += match hash.reads_y() {
                true => walk.points(&mut OneByOne::<true> { filter, hash: hash.clone(), found: 0 }),
                false => walk.points(&mut OneByOne::<false> { filter, hash: hash.clone(), found: 0 }),
            };
        }
        tried
    };
    let tried = thread::scope(|scope| {
        let handles: Vec<_> = walks.into_iter().map(|walk| scope.spawn(|| one(walk))).collect();
        handles.into_iter().map(|h| h.join().unwrap_or(0)).sum()
    });
    Ok((tried, started.elapsed().as_secs_f64()))
}

/// Hashes the points of a walk one key at a time.
struct OneByOne<'t, const Y: bool> {
    filter: &'t Filter,
    hash: Hash,
    found: u64,
}

impl<const Y: bool> Points for OneByOne<'_, Y> {
    const Y: bool = Y;

    fn points(&mut self, block: &Block) {
        for point in (0..8).filter(|i| block.live >> i & 1 == 1) {
            for sign in 0..2 {
                for x in &block.x {
                    let x = bytes(x, point);
                    let digest = match self.hash.form {
                        Form::Account => last20(Keccak256::digest(both(&x, block, sign, point)).as_ref()),
                        Form::Contract { .. } => {
                            let account = Keccak256::digest(both(&x, block, sign, point));
                            let message = &mut self.hash.message;
                            message[create::ACCOUNT..][..20].copy_from_slice(&account[12..]);
                            last20(Keccak256::digest(message).as_ref())
                        }
                        Form::Hash160Uncompressed => {
                            let mut key = [4; 65];
                            key[1..].copy_from_slice(&both(&x, block, sign, point));
                            hash160(&key)
                        }
                        Form::Hash160 => hash160(&compressed(&x, sign)),
                        Form::ScriptHash160 => {
                            let mut script = [0; 22];
                            script[1] = 20;
                            script[2..].copy_from_slice(&hash160(&compressed(&x, sign)));
                            hash160(&script)
                        }
                        Form::X | Form::Taproot => unreachable!("these are no hashes of a point"),
                    };
                    self.found += u64::from(self.filter.accepts(&Digest::new(&digest).words()));
                }
            }
        }
        std::hint::black_box(self.found);
    }
}

fn bytes(words: &[[u64; 8]; 4], point: usize) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word[point].to_be_bytes());
    }
    bytes
}

fn both(x: &[u8; 32], block: &Block, sign: usize, point: usize) -> [u8; 64] {
    let mut both = [0; 64];
    both[..32].copy_from_slice(x);
    both[32..].copy_from_slice(&bytes(&block.y[sign], point));
    both
}

fn compressed(x: &[u8; 32], parity: usize) -> [u8; 33] {
    let mut key = [2 + parity as u8; 33];
    key[1..].copy_from_slice(x);
    key
}

fn last20(hash: &[u8]) -> [u8; 20] {
    std::array::from_fn(|i| hash[12 + i])
}

fn hash160(message: &[u8]) -> [u8; 20] {
    Ripemd160::digest(Sha256::digest(message)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::distinct_samples;
    use crate::space::Subject;
    use warpsmith_chain::PublicPoint;
    use warpsmith_curve::group;
    use warpsmith_curve::{Affine, Scalar};

    /// The baseline hashes what the target hashes, or a comparison with it means nothing.
    #[test]
    fn digests_are_those_of_the_target() {
        for sample in distinct_samples() {
            let Subject::Key(target) = sample.subject else { continue };
            let recipe = Recipe::Key(target.form());
            if !has(&recipe) {
                continue;
            }
            // All candidates of the group around a known point, by the target's own code.
            let cpu = Cpu::new(Simd::Portable, 1);
            let origin = group::multiply(Scalar::from_u64(0x5eed), Some(Affine::G)).expect("a point");
            let mut point = origin.endomorphism(1).negate();
            point.x = point.x.canonical();
            let digest =
                target.digest(&PublicPoint { x: point.x.to_be_bytes(), y: point.y.to_be_bytes() }).words();
            let top = warpsmith_pattern::Interval { first: digest[0], last: digest[0] };
            let filter = Filter { top: vec![top], ..Filter::default() };
            let mut walk = cpu.walk(&[origin]);
            let hash = Hash::new(&recipe).expect("just asked");
            let found = if hash.reads_y() {
                let mut turn = OneByOne::<true> { filter: &filter, hash, found: 0 };
                walk.points(&mut turn);
                turn.found
            } else {
                let mut turn = OneByOne::<false> { filter: &filter, hash, found: 0 };
                walk.points(&mut turn);
                turn.found
            };
            assert_eq!(found, 1, "{}", sample.name);
        }
    }
}
