//! The end-point check: whether the lanes of a walk are where they must be.
//!
//! Lane l of a scan must be at the key `first + l * apart` ([`Row`]). Lane l of a search must be at `O_l + age_l * S`, O_l being
//! the first point of its walk, age_l the steps since and S what a step moves a centre by ([`Stand`]). All lanes C_l are compared
//! with that at once, by one random combination: `sum r_l C_l = (sum r_l (first + l * apart)) G`, and `sum r_l (C_l - O_l) = (sum
//! r_l age_l) S`, the left side by additions that share inversions, the right side by libsecp256k1. Each r_l is +-1 to +-2^15 by
//! 16 fresh bits of the operating system.
//!
//! What is noticed: each C_l is also tested to lie on the curve, whose group has prime order. A lane that is off the curve
//! is noticed always. Lanes on the curve have an error E_l, a point of the group, and pass only if `sum r_l E_l` is
//! infinity: never where one lane alone is wrong, since r_l is not 0 modulo the order; and where several are, whatever
//! the others' r were, for at most one of the 2^16 values that the last one's may have.

use std::collections::HashMap;

use secp256k1::PublicKey;
use warpsmith_curve::group::{self, Point};
use warpsmith_curve::{Affine, Scalar};

use super::Fault;
use super::batch_add::{add_pairs, multiples};
use super::walks::Walks;
use crate::origin::{affine, point_of};
use crate::secret::tweak;

/// Where the lanes of a walk must be.
pub(crate) trait Must: Send {
    /// Where one lane must be, by libsecp256k1.
    fn lane(&self, lane: u64) -> Point;
    /// Where every one of so many lanes must be, by our own additions.
    fn lanes(&self, count: usize) -> Vec<Point>;
    /// Whether the combination of all lanes by these weights is what it must be.
    fn agrees(&self, centres: &[Affine], weights: &[i32]) -> bool;

    /// Compares each lane by itself, by libsecp256k1: for the few of a processor.
    fn check_each(&self, centres: &[Point]) -> Result<(), Fault> {
        let must: Vec<Point> = (0..centres.len() as u64).map(|lane| self.lane(lane)).collect();
        compare(centres, &must)
    }

    /// Compares all lanes by one random combination; on failure says how many are wrong.
    fn check(&self, centres: &[Affine]) -> Result<(), Fault> {
        check(self, centres)
    }
}

/// See [`Must::check`].
pub(crate) fn check(must: &(impl Must + ?Sized), centres: &[Affine]) -> Result<(), Fault> {
    let weights = weights(centres.len())?;
    if centres.iter().all(is_on_curve) && must.agrees(centres, &weights) {
        return Ok(());
    }
    let centres: Vec<Point> = centres.iter().copied().map(Some).collect();
    compare(&centres, &must.lanes(centres.len()))?;
    Err("the ends of its walk did not add up, though each lane is where it must be: it may be this machine's own \
         memory or processor that fails"
        .to_owned())
}

/// The lanes of a scan: lane l at `(first + l * apart) * G`, or so far from a point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// What is added to every lane, where keys are counted from a point whose logarithm is not known here.
    pub base: Point,
    /// The key of lane 0.
    pub first: Scalar,
    /// The way from a lane to the next.
    pub apart: Scalar,
}

impl Must for Row {
    fn lane(&self, lane: u64) -> Point {
        far_from(self.base, self.first.add(self.apart.mul(Scalar::from_u64(lane))))
    }

    fn lanes(&self, count: usize) -> Vec<Point> {
        let start = self.lane(0);
        let Some(apart) = group::multiply(self.apart, Some(Affine::G)) else { return vec![start; count] };
        let ways = multiples(apart, count.saturating_sub(1));
        let pairs: Vec<(Point, Point)> = ways.into_iter().map(|way| (start, Some(way))).collect();
        std::iter::once(start).chain(add_pairs(&pairs)).collect()
    }

    fn agrees(&self, centres: &[Affine], weights: &[i32]) -> bool {
        let (mut sum, mut of_lanes) = (0, 0);
        for (lane, &weight) in (0..).zip(weights) {
            sum += i128::from(weight);
            of_lanes += lane * i128::from(weight);
        }
        let way = self.first.mul(signed(sum)).add(self.apart.mul(signed(of_lanes)));
        combine(centres, weights) == far_from(group::multiply(signed(sum), self.base), way)
    }
}

/// So far from a point, by libsecp256k1; from infinity, the point of that key.
pub(crate) fn far_from(base: Point, way: Scalar) -> Point {
    match base {
        None => point_of(way),
        // Infinity is no public key.
        Some(base) => public_key(base).add_exp_tweak(&tweak(way)).ok().map(|sum| affine(&sum)),
    }
}

/// The lanes of a search at some step.
pub(crate) struct Stand {
    walks: Walks,
    step: u64,
}

impl Stand {
    pub fn new(walks: Walks, step: u64) -> Stand {
        Stand { walks, step }
    }

    /// Steps of a lane's walk. One that has not begun is at its first point.
    fn age(&self, lane: usize) -> u64 {
        self.walks.age(lane as u32, self.step).unwrap_or(0)
    }
}

impl Must for Stand {
    fn lane(&self, lane: u64) -> Point {
        far_from(Some(self.walks.first()[lane as usize]), self.walks.way(self.age(lane as usize)))
    }

    fn lanes(&self, count: usize) -> Vec<Point> {
        let mut ways = HashMap::new();
        let pair = |lane: usize| {
            let age = self.age(lane);
            let way = *ways.entry(age).or_insert_with(|| point_of(self.walks.way(age)));
            (Some(self.walks.first()[lane]), way)
        };
        add_pairs(&(0..count).map(pair).collect::<Vec<_>>())
    }

    fn agrees(&self, centres: &[Affine], weights: &[i32]) -> bool {
        let ages = weights.iter().enumerate().map(|(lane, &r)| i128::from(self.age(lane)) * i128::from(r));
        let way = self.walks.way(1).mul(signed(ages.sum()));
        let points: Vec<Affine> = centres.iter().chain(self.walks.first()).copied().collect();
        let less = weights.iter().map(|weight| -weight);
        let weights: Vec<i32> = weights.iter().copied().chain(less).collect();
        combine(&points, &weights) == point_of(way)
    }
}

/// Whether each lane is where it must be; if not, how many are elsewhere.
pub(crate) fn compare(centres: &[Point], must: &[Point]) -> Result<(), Fault> {
    let (wrong, lanes) = (centres.iter().zip(must).filter(|(is, must)| is != must).count(), centres.len());
    if wrong == 0 {
        return Ok(());
    }
    let (plural, are) = (if lanes == 1 { "" } else { "s" }, if wrong == 1 { "is" } else { "are" });
    Err(format!(
        "its walk did not end where it must: {wrong} of {lanes} lane{plural} {are} elsewhere, so its memory or its \
         arithmetic fails now and then; what it did since it was last found right does not count"
    ))
}

fn is_on_curve(point: &Affine) -> bool {
    Affine::new(point.x, point.y).is_some()
}

/// A point as libsecp256k1 takes it.
fn public_key(point: Affine) -> PublicKey {
    let bytes = [&[4], point.x.to_be_bytes().as_slice(), point.y.to_be_bytes().as_slice()].concat();
    PublicKey::from_slice(&bytes).expect("a point of the curve")
}

pub(crate) fn signed(value: i128) -> Scalar {
    let size = Scalar::from_u128(value.unsigned_abs());
    if value < 0 { size.negate() } else { size }
}

/// Fewer points than this are not worth a sum for each weight.
const FEW: usize = 1 << 11;

/// Bits of a weight's size, +-1 to +-2^15.
const BITS: u32 = 16;

/// So many fresh weights, which nobody can foresee.
fn weights(count: usize) -> Result<Vec<i32>, Fault> {
    let mut bytes = vec![0; 2 * count];
    warpsmith_entropy::fill(&mut bytes).map_err(|e| e.to_string())?;
    let weight = |pair: &[u8]| {
        let bits = i32::from(u16::from_le_bytes([pair[0], pair[1]]));
        let size = (bits & 0x7fff) + 1;
        if bits & 0x8000 == 0 { size } else { -size }
    };
    Ok(bytes.chunks_exact(2).map(weight).collect())
}

/// The sum of all points times their weights. Points of one weight are added first, wherever they stand in the row: the
/// sums so far are few enough for a cache, the points are not.
pub(crate) fn combine(points: &[Affine], weights: &[i32]) -> Point {
    let signed = |(point, weight): (&Affine, &i32)| {
        (weight.unsigned_abs(), if *weight < 0 { point.negate() } else { *point })
    };
    let mut lanes = points.iter().zip(weights).map(signed);
    if points.len() < FEW {
        return weigh(lanes.map(|(weight, point)| (weight, Some(point))).collect(), BITS);
    }
    let mut sums: Vec<Point> = vec![None; (1 << (BITS - 1)) + 1];
    // In which batch of additions each of them last took part: they do so once in each, and what is left over waits.
    let (mut used, mut batch) = (vec![0u32; sums.len()], 1);
    let (mut pairs, mut places, mut waiting) = (Vec::with_capacity(TOGETHER), Vec::new(), Vec::new());
    loop {
        let mut deferred = std::mem::take(&mut waiting).into_iter();
        while pairs.len() < TOGETHER {
            let Some((weight, point)) = deferred.next().or_else(|| lanes.next()) else { break };
            let at = weight as usize;
            if used[at] == batch {
                waiting.push((weight, point));
            } else if sums[at].is_none() {
                sums[at] = Some(point);
            } else {
                used[at] = batch;
                pairs.push((sums[at], Some(point)));
                places.push(at);
            }
        }
        waiting.extend(deferred);
        if pairs.is_empty() {
            break;
        }
        for (sum, at) in add_pairs(&pairs).into_iter().zip(places.drain(..)) {
            sums[at] = sum;
        }
        pairs.clear();
        batch += 1;
    }
    weigh((0..).zip(sums).filter(|(_, sum)| sum.is_some()).collect(), BITS)
}

/// The sum of points times weights of so many bits. Once points of one weight were added up, both halves of the bits are
/// weights of their own: each halving adds every point twice, and after the first there are few.
fn weigh(points: Vec<(u32, Point)>, bits: u32) -> Point {
    let sums = add_up(points, 1 << bits);
    if bits <= 4 {
        // Times its weight is a point that is in as many partial sums from above.
        let (mut partial, mut sum) = (None, None);
        let mut sums = sums.into_iter().rev().peekable();
        for weight in (1..1 << bits).rev() {
            if let Some((_, point)) = sums.next_if(|(of, _)| *of == weight) {
                partial = group::add(partial, point);
            }
            sum = group::add(sum, partial);
        }
        return sum;
    }
    let low = bits / 2;
    let part = |of: fn(u32, u32) -> u32| sums.iter().map(move |&(weight, p)| (of(weight, low), p)).collect();
    let lows = weigh(part(|weight, low| weight & ((1 << low) - 1)), low);
    let highs = weigh(part(|weight, low| weight >> low), bits - low);
    let highs = (0..low).fold(highs, |point, _| group::add(point, point));
    group::add(lows, highs)
}

/// Pairs that share an inversion: enough that it costs little, and few enough for a cache.
const TOGETHER: usize = 1024;

/// Adds up points of one weight: what is left has each weight once, lowest first, and none is 0 or as large as `limit`.
fn add_up(points: Vec<(u32, Point)>, limit: u32) -> Vec<(u32, Point)> {
    // Sorted by counting: where points of each weight begin.
    let mut starts = vec![0usize; limit as usize + 1];
    for (weight, _) in &points {
        starts[*weight as usize + 1] += 1;
    }
    for weight in 1..starts.len() {
        starts[weight] += starts[weight - 1];
    }
    let mut sorted = vec![(0, None); points.len()];
    let zeros = starts[1];
    for (weight, point) in points {
        let place = &mut starts[weight as usize];
        sorted[*place] = (weight, point);
        *place += 1;
    }
    let mut left = sorted.split_off(zeros);
    // Neighbours of one weight, until there are none.
    loop {
        let (mut next, mut pairs, mut sums) = (Vec::with_capacity(left.len()), Vec::new(), Vec::new());
        let mut rest = left.as_slice();
        while let [(weight, point), behind @ ..] = rest {
            rest = match behind {
                [(of, other), behind @ ..] if of == weight => {
                    sums.push(next.len());
                    pairs.push((*point, *other));
                    behind
                }
                _ => behind,
            };
            next.push((*weight, *point));
        }
        if pairs.is_empty() {
            return left;
        }
        for (pairs, at) in pairs.chunks(TOGETHER).zip(sums.chunks(TOGETHER)) {
            for (sum, &at) in add_pairs(pairs).into_iter().zip(at) {
                next[at].1 = sum;
            }
        }
        left = next;
    }
}

/// A centre with one of its 512 bits turned over: what a fault of memory does.
#[cfg(test)]
pub(crate) fn flipped(point: Affine, bit: u32) -> Affine {
    use warpsmith_curve::Fe;
    let flip = |x: Fe, bit: u32| {
        let mut words = x.to_words();
        words[3 - bit as usize / 64] ^= 1 << (bit % 64);
        Fe::from_words(&words)
    };
    match bit {
        0..256 => Affine { x: flip(point.x, bit), ..point },
        _ => Affine { y: flip(point.y, bit - 256), ..point },
    }
}

#[cfg(test)]
mod tests;
