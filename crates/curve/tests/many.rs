//! Field, scalars, points and walks on many random numbers, in every kind of lane, against k256.
//!
//! Some thousands of each in every run; 10^7 with `WARPSMITH_LONG=1`.

use k256::elliptic_curve::BatchNormalize;
use k256::elliptic_curve::hazmat::FieldArithmetic;
use k256::elliptic_curve::ops::Reduce;
use k256::elliptic_curve::sec1::ToSec1Point;
use k256::{AffinePoint, FieldBytes, ProjectivePoint};
use warpsmith_curve::field::dispatch::{self, Job, test_all};
use warpsmith_curve::field::lanes::Lanes;
use warpsmith_curve::field::leading::Leading;
use warpsmith_curve::group::{self, Point};
use warpsmith_curve::multiply::{Eight, Multiples};
use warpsmith_curve::walk::{self, Block, Points, Table, Walk};
use warpsmith_curve::{Affine, Fe, Scalar};
use warpsmith_trials::{Random, count};

use crate::common::{available, point};

type Theirs = <k256::Secp256k1 as FieldArithmetic>::FieldElement;

/// Points whose inversions k256 does together.
const TOGETHER: usize = 64;

/// p - (2^256 - 2^64): the lowest limb of p.
const LOWEST: u64 = 0xffff_fffe_ffff_fc2f;

/// The residue of any 256-bit number: k256 takes canonical ones only.
fn theirs(bytes: &[u8; 32]) -> Theirs {
    let canonical = Option::from(Theirs::from_bytes(&(*bytes).into()));
    canonical.unwrap_or_else(|| {
        let low = u64::from_be_bytes(bytes[24..].try_into().expect("eight bytes"));
        Theirs::from_u64(low - LOWEST)
    })
}

/// Canonical words, most significant first.
fn words(bytes: &[u8]) -> [u64; 4] {
    std::array::from_fn(|i| u64::from_be_bytes(bytes[8 * i..8 * i + 8].try_into().expect("eight bytes")))
}

fn out(value: Theirs) -> [u64; 4] {
    words(&value.normalize().to_bytes())
}

/// Every operation of a lane on `rounds` times as many pairs as it has lanes.
///
/// # Safety
/// The machine has the instruction set of the lane.
#[inline(always)]
unsafe fn lanes_agree<L: Lanes>(random: &mut Random, rounds: u64) {
    // SAFETY: the caller's.
    unsafe {
        for _ in 0..rounds {
            let pairs: [([u8; 32], [u8; 32]); 8] =
                std::array::from_fn(|_| (random.number(), random.number()));
            let (mut first, mut second) = ([[0; 8]; 4], [[0; 8]; 4]);
            for (lane, (x, y)) in pairs.iter().take(L::N).enumerate() {
                for (at, (x, y)) in words(x).into_iter().zip(words(y)).enumerate() {
                    (first[at][lane], second[at][lane]) = (x, y);
                }
            }
            let (x, y) = (L::wide_load(&first, 0), L::wide_load(&second, 0));
            let minus = random.word() as u32;
            let product = x.mul(y);
            let difference = x.sub(y);
            let results = [
                product,
                x.square(),
                x.add(y),
                difference,
                difference.negate(),
                x.mul_add(y, product),
                x.add_or_sub(y, minus),
                difference.sub(product).tighten(),
                difference.mul_raw(y).mul(x.add_raw(y)),
                product.square_raw().mul_add_raw(x, y).mul(y),
            ]
            .map(|result| {
                let mut out = [[0; 8]; 4];
                L::wide_store(&result.wide(), &mut out, 0);
                out
            });
            for (lane, (a, b)) in pairs.iter().take(L::N).enumerate() {
                let (u, v) = (theirs(a), theirs(b));
                let (product, square) = ((u * v).normalize(), u.square().normalize());
                let (sum, difference) = ((u + v).normalize(), (u - v).normalize());
                let fourth = product.square().normalize();
                let expected = [
                    product,
                    square,
                    sum,
                    difference,
                    -difference,
                    product + product,
                    if minus >> lane & 1 == 1 { difference } else { sum },
                    difference - product,
                    difference * v * sum,
                    ((fourth * u).normalize() + v) * v,
                ];
                for (at, (got, expected)) in results.iter().zip(expected).enumerate() {
                    let got = got.map(|word| word[lane]);
                    assert_eq!(got, out(expected), "operation {at} of {a:02x?} and {b:02x?}, lane {lane}");
                }
            }
        }
    }
}

/// As many pairs for every kind of lanes.
struct Agree(u64);

impl Job for Agree {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Leading>(self) {
        let mut random = Random::new(&format!("field, {} lanes", L::N));
        // SAFETY: the machine has the instruction set.
        unsafe { lanes_agree::<L>(&mut random, self.0 / L::N as u64) }
    }
}

#[test]
fn lanes_agree_with_k256() {
    test_all(|| Agree(count(100_000, 10_000_000)));
}

#[test]
fn one_element_at_a_time_agrees_with_k256() {
    let mut random = Random::new("field");
    let mut inverted = Vec::new();
    for at in 0..count(100_000, 10_000_000) {
        let bytes = random.number();
        let (x, u) = (Fe::from_be_bytes(&bytes), theirs(&bytes));
        assert_eq!(x.to_be_bytes(), <[u8; 32]>::from(u.normalize().to_bytes()));
        assert_eq!(
            (x.is_zero(), x.is_odd()),
            (bool::from(u.is_zero()), bool::from(u.is_odd())),
            "{bytes:02x?}"
        );
        // Slow ones; an inverse is known by its product.
        if at % 16 == 0 {
            let product = theirs(&x.invert().to_be_bytes()) * u;
            assert_eq!(out(product), [0, 0, 0, u64::from(!bool::from(u.is_zero()))], "1 / {bytes:02x?}");
            inverted.push(x);
        }
        if at % 256 == 0 {
            assert_eq!(x.sqrt().is_some(), bool::from(u.sqrt().is_some()), "root of {bytes:02x?}");
            assert!(x.sqrt().is_none_or(|root| out(theirs(&root.to_be_bytes()).square()) == out(u)));
            let mut together = inverted.clone();
            Fe::invert_all(&mut together);
            assert!(together.iter().zip(&inverted).all(|(both, alone)| *both == alone.invert()));
            inverted.clear();
        }
    }
}

#[test]
fn scalars_agree_with_k256() {
    use k256::elliptic_curve::ff::PrimeField;
    let mut random = Random::new("scalars");
    for _ in 0..count(100_000, 10_000_000) {
        let (a, b) = (random.number(), random.number());
        assert_eq!(
            Scalar::from_be_bytes(&a).is_some(),
            bool::from(k256::Scalar::from_repr(a.into()).is_some()),
            "{a:02x?}"
        );
        let reduce = |bytes: [u8; 32]| <k256::Scalar as Reduce<FieldBytes>>::reduce(&bytes.into());
        let (u, v) = (reduce(a), reduce(b));
        let ours = |scalar: k256::Scalar| Scalar::from_be_bytes(&scalar.to_bytes().into()).expect("reduced");
        let (x, y) = (ours(u), ours(v));
        let pairs =
            [(x.add(y), u + v), (x.sub(y), u - v), (x.mul(y), u * v), (x.mul(x), u * u), (x.negate(), -u)];
        for (at, (got, expected)) in pairs.into_iter().enumerate() {
            let expected: [u8; 32] = expected.to_bytes().into();
            assert_eq!(got.to_be_bytes(), expected, "operation {at} of {a:02x?} and {b:02x?}");
        }
    }
}

/// Coordinates of points of theirs.
fn coordinates(points: &[ProjectivePoint; TOGETHER]) -> Vec<Point> {
    let affine: [AffinePoint; TOGETHER] = ProjectivePoint::batch_normalize_vartime(points);
    let ours = |point: &AffinePoint| {
        let encoded = point.to_sec1_point(false);
        Some(Affine { x: Fe::from_words(&words(encoded.x()?)), y: Fe::from_words(&words(encoded.y()?)) })
    };
    affine.iter().map(ours).collect()
}

/// A point without pattern, by both.
fn some_point(random: &mut Random) -> (ProjectivePoint, Affine) {
    let k = <k256::Scalar as Reduce<FieldBytes>>::reduce(&random.uniform().into());
    let ours = point(Scalar::from_be_bytes(&k.to_bytes().into()).expect("reduced"));
    (ProjectivePoint::mul_by_generator(&k), ours.expect("not zero"))
}

#[test]
fn sums_of_points_agree_with_k256() {
    let mut random = Random::new("points");
    let mut pool: Vec<(ProjectivePoint, Affine)> = (0..TOGETHER).map(|_| some_point(&mut random)).collect();
    for _ in 0..count(20_000, 10_000_000) / TOGETHER as u64 {
        let mut pairs = Vec::with_capacity(TOGETHER);
        for (theirs, ours) in &pool {
            let ours = Some(*ours);
            let (other, other_ours) = pool[random.below(TOGETHER as u64) as usize];
            // A sixteenth each: equal points, opposite ones, infinity on either side.
            pairs.push(match random.word() & 15 {
                0 => ((*theirs, *theirs), (ours, ours)),
                1 => ((*theirs, -*theirs), (ours, ours.map(Affine::negate))),
                2 => ((*theirs, ProjectivePoint::IDENTITY), (ours, None)),
                3 => ((ProjectivePoint::IDENTITY, *theirs), (None, ours)),
                _ => ((*theirs, other), (ours, Some(other_ours))),
            });
        }
        let sums: [ProjectivePoint; TOGETHER] = std::array::from_fn(|i| pairs[i].0.0 + pairs[i].0.1);
        for (i, (expected, (_, (a, b)))) in coordinates(&sums).into_iter().zip(&pairs).enumerate() {
            let got = group::add(*a, *b);
            assert_eq!(got, expected, "{a:?} + {b:?}");
            pool[i] = got.map_or_else(|| some_point(&mut random), |ours| (sums[i], ours));
        }
        // The other way to add: one point to many.
        let (one, one_ours) = pool[0];
        let others: Vec<Affine> = pool[1..].iter().map(|(_, ours)| *ours).collect();
        let sums: [ProjectivePoint; TOGETHER] = std::array::from_fn(|i| one + pool[i].0);
        if let Some(got) = group::add_all(one_ours, &others) {
            assert!(got.iter().map(|sum| Some(*sum)).eq(coordinates(&sums)[1..].iter().copied()));
        }
    }
}

#[test]
fn multiples_of_g_added_to_points_agree_with_k256() {
    // A product with G each: a tenth of the others' number.
    let rounds = count(4_000, 1_000_000) / TOGETHER as u64;
    for simd in available() {
        let mut random = Random::new(&format!("multiples, {simd}"));
        let multiples = Multiples::new(simd);
        for _ in 0..rounds {
            let mut sums =
                vec![Eight { x: [[0; 8]; 4], y: [[0; 8]; 4], t: [[0; 8]; 4], live: 0xff }; TOGETHER / 8];
            let mut expected = [ProjectivePoint::IDENTITY; TOGETHER];
            let (mut theirs, mut ours) = some_point(&mut random);
            for (i, expected) in expected.iter_mut().enumerate() {
                let t = random.number();
                let scalar = <k256::Scalar as Reduce<FieldBytes>>::reduce(&t.into());
                *expected = theirs + ProjectivePoint::mul_by_generator(&scalar);
                for (at, ((x, y), t)) in
                    ours.x.to_words().into_iter().zip(ours.y.to_words()).zip(words(&t)).enumerate()
                {
                    let eight = &mut sums[i / 8];
                    (eight.x[at][i % 8], eight.y[at][i % 8], eight.t[at][i % 8]) = (x, y, t);
                }
                (theirs, ours) =
                    (theirs + ProjectivePoint::GENERATOR, ours.plus(Affine::G).expect("far from -G"));
            }
            multiples.add_to(&mut sums);
            for (i, expected) in coordinates(&expected).into_iter().enumerate() {
                let got =
                    (sums[i / 8].live >> (i % 8) & 1 == 1).then(|| sums[i / 8].x.map(|word| word[i % 8]));
                assert_eq!(got, expected.map(|point| point.x.to_words()), "{simd}");
            }
        }
    }
}

/// Compares each point of a group, its images and its opposites.
struct Compare {
    /// Of each lane, from the lowest key of its group on: x and y.
    expected: Vec<Vec<Affine>>,
    half: usize,
    keys: u64,
}

impl Points for Compare {
    const Y: bool = true;

    fn points(&mut self, block: &Block) {
        for point in (0..8).filter(|i| block.live >> i & 1 == 1) {
            let place = block.place(point, 0, false);
            let index = place.index as usize;
            let at = if place.minus { self.half - index } else { self.half + index };
            let expected = self.expected[place.lane as usize][at];
            let own = |words: &[[u64; 8]; 4]| words.map(|word| word[point]);
            let theirs = |value: Fe| theirs(&value.to_be_bytes());
            let (x, y, beta) = (theirs(expected.x), theirs(expected.y), theirs(Fe::BETA));
            let images = [x, x * beta, x * beta * beta];
            for (image, expected) in images.into_iter().enumerate() {
                assert_eq!(own(&block.x[image]), out(expected), "x, image {image} of {place:?}");
            }
            for (sign, expected) in [y, -y].into_iter().enumerate() {
                assert_eq!(own(&block.y[sign]), out(expected), "y, sign {sign} of {place:?}");
            }
            self.keys += walk::KEYS_PER_POINT;
        }
    }
}

#[test]
fn every_key_of_long_walks_agrees_with_k256() {
    let wanted = count(100_000, 10_000_000);
    for simd in available() {
        let mut random = Random::new(&format!("walk, {simd}"));
        let half = 255;
        let group = 2 * half + 1;
        let table = Table::new(simd, half as u32);
        let lanes = dispatch::lane_count(simd);
        // Each lane begins somewhere else. `next` is the lowest key of the group to come.
        let starts: Vec<(ProjectivePoint, Affine)> = (0..lanes).map(|_| some_point(&mut random)).collect();
        let down = ProjectivePoint::GENERATOR * k256::Scalar::from(half as u64);
        let mut next: Vec<ProjectivePoint> = starts.iter().map(|(theirs, _)| *theirs - down).collect();
        let starts: Vec<Point> = starts.iter().map(|(_, ours)| Some(*ours)).collect();
        let mut walk = Walk::new(&table, &starts);
        let mut compare = Compare { expected: vec![Vec::new(); lanes], half, keys: 0 };
        while compare.keys < wanted {
            for (lane, next) in next.iter_mut().enumerate() {
                let expected = &mut compare.expected[lane];
                expected.clear();
                while expected.len() < group {
                    let some: [ProjectivePoint; TOGETHER] = std::array::from_fn(|_| {
                        let point = *next;
                        *next += ProjectivePoint::GENERATOR;
                        point
                    });
                    expected.extend(
                        coordinates(&some).into_iter().map(|point| point.expect("far from infinity")),
                    );
                }
                *next -= ProjectivePoint::GENERATOR * k256::Scalar::from((expected.len() - group) as u64);
                expected.truncate(group);
            }
            let before = compare.keys;
            assert_eq!(
                walk.points(&mut compare),
                compare.keys - before,
                "{simd}: keys counted are keys compared"
            );
            assert_eq!(compare.keys - before, walk::KEYS_PER_POINT * (group * lanes) as u64, "{simd}");
        }
    }
}
