//! Keys that are given one by one, compared with targets: no range, no walk, a full multiplication each.
//!
//! Points come from the table of multiples of G, many at a time; what is wanted is made again by libsecp256k1 before anybody hears
//! of it.

use warpsmith_chain::{Digest, Form};
use warpsmith_curve::Scalar;
use warpsmith_curve::multiply::Multiples;
use zeroize::Zeroizing;

use super::{Finding, ScanTargets};
use crate::cpu::{Cpu, survivors_of};
use crate::error::{Error, Result};
use crate::origin::{Secret, public_point};
use crate::prefilter::TopList;
use crate::simd;

/// Random keys whose digests are compared with those of libsecp256k1's points before any other is tested.
const COMPARED: usize = 512;

/// The name findings have for who found them.
const PROCESSOR: &str = "cpu";

/// Tests given keys on the processor.
///
/// ```
/// use warpsmith_engine::{GivenKeys, ScanTargets};
/// use warpsmith_store::TargetList;
///
/// let targets = ScanTargets::list(&TargetList::of(&["1M92tSqNmQLYw33fuBvjmeadirh1ysMBxK".to_owned()])?, &[])?;
/// let mut key = [0; 32];
/// key[31] = 0xe0;
/// let found = GivenKeys::new(&targets)?.test(&[[7; 32], key])?;
/// assert_eq!(found.len(), 1);
/// let (at, finding) = &found[0];
/// assert_eq!((*at, finding.secret().as_bytes()), (1, &key));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct GivenKeys<'t> {
    targets: &'t ScanTargets,
    cpu: Cpu,
    multiples: Multiples,
}

impl<'t> GivenKeys<'t> {
    /// For these targets. An error where this machine computes wrongly.
    pub fn new(targets: &'t ScanTargets) -> Result<GivenKeys<'t>> {
        let (cpu, forms) = (Cpu::new(simd::detect(), 1), targets.forms());
        let multiples = Multiples::large(cpu.simd());
        let secrets = Secret::random_many(COMPARED)?;
        let keys: Vec<[u8; 32]> = secrets.iter().map(|secret| *secret.as_bytes()).collect();
        let points = secrets.iter().map(|secret| public_point(&secret.public_key()));
        let mut expected: Vec<(u64, Form, Digest)> = (0..)
            .zip(points)
            .flat_map(|(at, point)| forms.iter().map(move |form| (at, *form, form.reference(&point))))
            .collect();
        let tops = TopList::new(expected.iter().map(|(_, _, digest)| digest.words()[0]));
        let mut found = survivors_of((&cpu, &multiples), &forms, &tops, &keys);
        expected.sort_unstable_by_key(|(at, form, _)| (*at, *form));
        found.sort_unstable_by_key(|(at, form, _)| (*at, *form));
        if found != expected {
            let what = "the digests of given keys are not those of libsecp256k1's points".to_owned();
            return Err(Error::SelfTest { device: PROCESSOR.to_owned(), what });
        }
        Ok(GivenKeys { targets, cpu, multiples })
    }

    /// Returns what these keys are among the targets, in their order, each with its place among them. A number that is no key is none of
    /// them.
    pub fn test(&self, keys: &[[u8; 32]]) -> Result<Vec<(usize, Finding)>> {
        let is_key = |key: &[u8; 32]| Scalar::from_be_bytes(key).is_some_and(|key| !key.is_zero());
        if !keys.iter().all(is_key) {
            let places: Vec<usize> = (0..keys.len()).filter(|at| is_key(&keys[*at])).collect();
            let keys = Zeroizing::new(places.iter().map(|at| keys[*at]).collect::<Vec<_>>());
            let found = self.test(&keys)?;
            return Ok(found.into_iter().map(|(at, finding)| (places[at], finding)).collect());
        }
        let mut wanted = Vec::new();
        let finder = self.targets.finder();
        let means = (&self.cpu, &self.multiples);
        for (at, form, digest) in survivors_of(means, &self.targets.forms(), self.targets.filter(), keys) {
            if !finder.find(form, &digest)?.is_empty() {
                wanted.push(at);
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        let mut found = Vec::new();
        for at in wanted {
            let secret = Secret::from_bytes(&keys[at as usize]);
            let all = secret.map(|secret| self.targets.findings(&secret, PROCESSOR)).transpose()?;
            let all = all.filter(|all| !all.is_empty()).ok_or_else(|| Error::SelfTest {
                device: PROCESSOR.to_owned(),
                what: "a key it found does not have the digest it computed".to_owned(),
            })?;
            found.extend(all.into_iter().map(|finding| (at as usize, finding)));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use warpsmith_chain::KeyType;
    use warpsmith_store::TargetList;

    use super::*;
    use crate::origin::public_point;

    /// Every type of address of keys anywhere in a block is found, once; the first and last key there are, and numbers that are none.
    #[test]
    fn given_keys_are_found_in_every_form() {
        let keys: Vec<[u8; 32]> =
            Secret::random_many(700).expect("random").iter().map(|secret| *secret.as_bytes()).collect();
        let mut last = warpsmith_curve::Scalar::ZERO.sub(warpsmith_curve::Scalar::ONE).to_be_bytes();
        let mut one = [0; 32];
        one[31] = 1;
        let wanted = [keys[0], keys[255], keys[256], keys[699], one, last];
        let types: Vec<&KeyType> = ["p2pkh", "p2pkh-uncompressed", "p2sh", "p2wpkh", "p2tr", "eth"]
            .map(|name| KeyType::find(name).expect("known"))
            .to_vec();
        let address = |key: &[u8; 32], known: &&'static KeyType| {
            let target = known.on[0].target.as_ref();
            let secret = Secret::from_bytes(key).expect("a key");
            target.encode(&target.digest(&public_point(&secret.public_key())))
        };
        let all: Vec<String> =
            wanted.iter().flat_map(|key| types.iter().map(move |known| address(key, known))).collect();
        let targets = ScanTargets::list(&TargetList::of(&all).expect("addresses"), &[]).expect("possible");
        let tester = GivenKeys::new(&targets).expect("right");
        let mut given = keys.clone();
        // No keys: 0, n and what lies beyond.
        given.extend([one, last, [0; 32], [0xff; 32]]);
        last[31] += 1;
        given.push(last);
        for length in [given.len(), 3] {
            let block = &given[given.len() - length..];
            let found = tester.test(block).expect("tested");
            assert!(found.iter().all(|(at, finding)| block[*at] == *finding.secret().as_bytes()));
            let mut found: Vec<String> = found.into_iter().map(|(_, finding)| finding.address).collect();
            let mut expected: Vec<String> = wanted
                .iter()
                .filter(|key| block.contains(key))
                .flat_map(|key| types.iter().map(move |known| address(key, known)))
                .collect();
            found.sort();
            found.dedup();
            expected.sort();
            // The first key and the last have one x, and so one taproot output.
            expected.dedup();
            assert_eq!(found, expected, "{length}");
        }
    }
}
