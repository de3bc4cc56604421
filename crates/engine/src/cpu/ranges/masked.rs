//! Candidates of a mask of digits: groups of a walk whose table has what the lowest unknown digits add.
//!
//! The low t bits of a candidate each add a weight w_j to its key, or do not. Around the middle of these keys, c = lowest + sum w_j
//! / 2, they lie at the ways (+-w_0 +- w_1 .. + w_(t-1)) / 2 and the opposites of these: 2^(t-1) entries of a table, and the
//! formulas of a walk. A half is one modulo n, which is odd. The middle itself is no key. Each group's middle is multiplied out; what a walk
//! makes of it one step further is compared with where that must be.

use std::sync::Arc;

use warpsmith_curve::group::Point;
use warpsmith_curve::walk::{Places, Table, Walk};
use warpsmith_curve::{Affine, Scalar};
use warpsmith_store::{DigitMask, KeyMask, U256, key_order};

use super::CpuScanner;
use super::hashing::{Hashing, Window};
use crate::cpu::Cpu;
use crate::origins::{half_of, points_of};
use crate::worker::Fault;
use crate::worker::ends::compare;
#[cfg(test)]
use crate::worker::ends::flipped;
use crate::worker::scanner::Survivor;

/// With fewer bits a group is not worth a walk.
const FEWEST_BITS: u32 = 4;

/// What the groups of a mask are made of.
pub(crate) struct Inner {
    mask: Arc<KeyMask>,
    bits: u32,
    /// Half of all its weights together.
    middle: Scalar,
}

impl Inner {
    /// For tables of at most so many entries; none where the mask is of something else, or has too few bits.
    pub fn new(mask: &Arc<KeyMask>, most: u32) -> Option<Inner> {
        let weights = mask.digits()?.weights();
        let bits = (weights.len() as u32).min(most.ilog2() + 1);
        if bits < FEWEST_BITS {
            return None;
        }
        let all = weights[..bits as usize].iter().fold(Scalar::ZERO, |sum, weight| sum.add(scalar(*weight)));
        Some(Inner { mask: Arc::clone(mask), bits, middle: half_of(all) })
    }

    pub fn digits(&self) -> &DigitMask {
        self.mask.digits().expect("made of one")
    }

    /// Bits of a candidate within its group.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Candidates of a group.
    pub fn group(&self) -> u64 {
        1 << self.bits
    }

    /// The entries of the table: the i-th, from 1, for the candidates group / 2 - 1 + i and, as its opposite, group / 2 - i.
    pub fn entries(&self) -> Vec<Affine> {
        let weights = &self.digits().weights()[..self.bits as usize];
        let way = |candidate: u64| {
            let added = (0..self.bits).filter(|bit| candidate >> bit & 1 == 1);
            let sum = added.fold(Scalar::ZERO, |sum, bit| sum.add(scalar(weights[bit as usize])));
            sum.sub(self.middle).to_be_bytes()
        };
        let ways: Vec<[u8; 32]> = (self.group() / 2..self.group()).map(way).collect();
        points_of(&ways)
            .into_iter()
            .map(|point| point.expect("weights grow: no sum of theirs is 0"))
            .collect()
    }

    /// Which candidate of its group an entry stands for; none for the middle.
    pub fn within(&self, index: u64, minus: bool) -> Option<u64> {
        let half = self.group() / 2;
        match (index, minus) {
            (0, _) => None,
            (index, false) => Some(half + index - 1),
            (index, true) => Some(half - index),
        }
    }

    /// Where the middle of a group lies, modulo n.
    pub fn middle_of(&self, group: U256) -> Scalar {
        scalar(self.digits().number_at(group << self.bits)).add(self.middle)
    }

    /// Whether a candidate is a key.
    pub fn is_key(&self, candidate: U256) -> bool {
        self.mask.key_at(candidate).is_some()
    }
}

/// A number modulo n.
pub(crate) fn scalar(number: U256) -> Scalar {
    let number = if number < key_order() { number } else { number - key_order() };
    Scalar::from_be_bytes(&number.to_be_bytes()).expect("less than n")
}

/// The walk of one mask.
pub(super) struct Masked {
    inner: Inner,
    table: Table,
}

/// The way of a step: any that is no way between keys.
const STEP: Scalar = Scalar::LAMBDA;

impl Masked {
    pub fn new(cpu: &Cpu, mask: &Arc<KeyMask>) -> Option<Masked> {
        let inner = Inner::new(mask, cpu.numbering().half)?;
        let step = points_of(&[STEP.to_be_bytes()])[0]?;
        let table = Table::of_points(cpu.simd(), inner.entries(), step);
        Some(Masked { inner, table })
    }

    pub fn group(&self) -> u64 {
        self.inner.group()
    }
}

/// How the places of a walk become candidates.
struct Candidates<'m> {
    inner: &'m Inner,
    lanes: u64,
    /// Candidates of the first group before those asked for.
    before: u64,
    count: u64,
}

impl Window for Candidates<'_> {
    type At = Places;

    fn offset(&self, places: &Places, point: usize) -> Option<u64> {
        let place = places.place(point, 0, false);
        let group = place.step * self.lanes + u64::from(place.lane);
        let within = self.inner.within(u64::from(place.index), place.minus)?;
        (group * self.inner.group() + within).checked_sub(self.before).filter(|&offset| offset < self.count)
    }
}

impl CpuScanner<'_> {
    /// The candidates first, first + 1, .. of which the filter lets a form pass.
    pub(super) fn cover_masked(
        &self,
        masked: &Masked,
        first: Scalar,
        count: u64,
    ) -> Result<Vec<Survivor>, Fault> {
        let (inner, lanes) = (&masked.inner, self.lanes());
        let first_candidate = U256::from_be_bytes(first.to_be_bytes());
        let first_group = first_candidate >> inner.bits;
        let before = (first_candidate - (first_group << inner.bits)).as_u64();
        let groups = (before + count).div_ceil(inner.group());
        let rounds = groups.div_ceil(lanes);
        let middles: Vec<Scalar> =
            (0..rounds * lanes).map(|group| inner.middle_of(first_group + U256::from(group))).collect();
        let bytes =
            |numbers: &[Scalar]| numbers.iter().map(|number| number.to_be_bytes()).collect::<Vec<_>>();
        let starts: Vec<Point> = points_of(&bytes(&middles));
        let moved: Vec<Scalar> = middles.iter().map(|middle| middle.add(STEP)).collect();
        let ends: Vec<Point> = points_of(&bytes(&moved));
        let candidates = Candidates { inner, lanes, before, count };
        let mut hashing = Hashing::new(self.cpu, self.forms, self.filter, &candidates);
        let lanes = lanes as usize;
        let mut walk = Walk::new(&masked.table, &starts[..lanes]);
        let mut walked = 0;
        for (starts, ends) in starts.chunks(lanes).zip(ends.chunks(lanes)) {
            for (lane, start) in starts.iter().enumerate() {
                walk.put(lane, *start);
            }
            #[cfg(test)]
            if let Some((lane, bit)) = self.flip.take() {
                walk.put(lane as usize, starts[lane as usize].map(|centre| flipped(centre, bit)));
            }
            walked += walk.points(&mut hashing);
            compare(&walk.centres(), ends)?;
        }
        hashing.flush();
        // One point a candidate and one a middle, but for those at infinity.
        let expected = middles.len() as u64 * (inner.group() + 1);
        if walked != expected {
            let candidates = (0..middles.len() as u64 * inner.group())
                .map(|at| scalar(inner.digits().number_at((first_group << inner.bits) + U256::from(at))));
            let none = middles.iter().copied().chain(candidates).filter(|number| number.is_zero()).count();
            if walked + none as u64 != expected {
                return Err(format!("{walked} points were walked instead of {expected}"));
            }
        }
        let survivors = hashing.survivors.into_iter().map(|(offset, form, digest)| {
            (
                first_candidate + U256::from(offset),
                Survivor { key: first.add(Scalar::from_u64(offset)), form, digest },
            )
        });
        Ok(survivors
            .filter(|(candidate, _)| inner.is_key(*candidate))
            .map(|(_, survivor)| survivor)
            .collect())
    }
}
