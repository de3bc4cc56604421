//! Results of one run have nothing to do with each other: neither for one who knows the private keys, nor for one who has only
//! the public keys and looks for a small difference. Keys that do share an origin are linked by the very same checks.

use std::collections::HashMap;

use num_bigint::BigUint;
use secp256k1::{PublicKey, SecretKey};
use warpsmith::curve::group::{self, Point};
use warpsmith::curve::walk::Place;
use warpsmith::curve::{Affine, Fe, Scalar};
use warpsmith_trials::{Random, count};

use crate::harness::{Run, verified_secret, warpsmith};

/// What a walk multiplies a key with: minus or not, and a power of lambda.
const TWISTS: [(bool, u8); 6] = [(false, 0), (false, 1), (false, 2), (true, 0), (true, 1), (true, 2)];

fn number(hex: &str) -> BigUint {
    BigUint::parse_bytes(hex.as_bytes(), 16).expect("hex digits")
}

/// Knows the ring of numbers u + v lambda modulo n.
///
/// A walk visits keys t (b + u + v lambda) with one origin b, a twist t and small u, v: v is not 0 where a table entry was taken
/// times a power of lambda. Twists are units of the ring, so two keys have a common origin if the one is a twist of the other but
/// for a short u + v lambda. Short ones are near the lattice of those that are 0 modulo n. With its basis a1 + b1 lambda, a2 + b2
/// lambda (Guide to Elliptic Curve Cryptography, example 3.73 for this curve) a number k has the coordinates k b2 / n and -k b1 /
/// n, and it is short where both are near whole numbers. Coordinates are additive: that of a difference is the difference.
struct Ring {
    order: BigUint,
    lambda: BigUint,
    /// b2 and -b1.
    rows: [BigUint; 2],
}

impl Ring {
    fn new() -> Ring {
        let ring = Ring {
            order: number("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"),
            lambda: number("5363ad4cc05c30e0a5261c028812645a122e22ea20816678df02967c1b23bd72"),
            rows: [number("3086d221a7d46bcde86c90e49284eb15"), number("e4437ed6010e88286f547fa90abfe4c3")],
        };
        // a1 = b2 here, and a1 + b1 lambda = 0 modulo n.
        assert_eq!(&ring.rows[0] % &ring.order, &ring.rows[1] * &ring.lambda % &ring.order);
        ring
    }

    /// Both coordinates of a key's twist, without what is before the point: 128 bits behind it.
    fn coordinates(&self, key: &BigUint, (negate, power): (bool, u8)) -> [u128; 2] {
        let twisted = key * self.lambda.modpow(&power.into(), &self.order) % &self.order;
        let twisted = if negate { &self.order - twisted } else { twisted };
        let fraction = |row| ((&twisted * row % &self.order) << 128u32) / &self.order;
        self.rows.each_ref().map(|row| fraction(row).try_into().expect("below 1"))
    }

    /// Two of the keys with a common origin: numbers u + v lambda between them, u and v below about 2^90, which no walk leaves
    /// behind. By chance that comes once in 2^50 for a thousand keys.
    fn find_linked(&self, keys: &[SecretKey]) -> Option<(usize, usize)> {
        let near = |difference: u128| difference.min(difference.wrapping_neg()) < 1 << (128 - 38);
        let mut all = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            let key = BigUint::from_bytes_be(&key.to_secret_bytes());
            all.extend(TWISTS.map(|twist| (self.coordinates(&key, twist), at)));
        }
        all.sort_unstable();
        // Those with near first coordinates lie next to each other; the last are near the first.
        (0..all.len()).find_map(|i| {
            let ([first, second], one) = all[i];
            let after = (1..all.len()).map(|step| all[(i + step) % all.len()]);
            after.take_while(|([x, _], _)| near(x.wrapping_sub(first))).find_map(|([_, y], other)| {
                (other != one && near(y.wrapping_sub(second))).then_some((one, other))
            })
        })
    }
}

/// Looks for small differences of keys of which only the points are known, with steps of two sizes.
struct Steps {
    /// By x, i of i*G for 1..=babies.
    baby: HashMap<u64, u64>,
    /// j * (2 babies + 1) * G, from 1 on.
    giant: Vec<Affine>,
    babies: u64,
}

/// What stands for an x coordinate in the table: a chance meeting is looked at again, and is one in 2^20 runs.
fn name(x: Fe) -> u64 {
    x.to_words()[3]
}

/// `many` multiples of a point, from the first on.
fn multiples(point: Affine, many: usize) -> Vec<Affine> {
    let mut all = vec![point, point.double()];
    while all.len() < many {
        let last = *all.last().expect("two at least");
        // The last one doubled comes out of the list itself, which addition cannot do.
        let more = group::add_all(last, &all[..all.len() - 1]).expect("smaller multiples are other points");
        all.extend(more);
        all.push(last.double());
    }
    all.truncate(many);
    all
}

impl Steps {
    /// For differences below 2^bits.
    fn new(bits: u32) -> Steps {
        let babies = 1 << (bits / 2).min(22);
        let baby = multiples(Affine::G, babies as usize);
        let step =
            group::multiply(Scalar::from_u64(2 * babies + 1), Some(Affine::G)).expect("no multiple of n");
        let giant = multiples(step, (1usize << bits).div_ceil(2 * babies as usize));
        Steps { baby: baby.iter().zip(1..).map(|(point, i)| (name(point.x), i)).collect(), giant, babies }
    }

    /// d of d*G = point, if it is small.
    fn small_logarithm(&self, point: Point) -> Option<Scalar> {
        let Some(point) = point else { return Some(Scalar::ZERO) };
        let is_it = |d: &Scalar| group::multiply(*d, Some(Affine::G)) == Some(point);
        let both = |d: Scalar| [d, d.negate()].into_iter().find(is_it);
        if let Some(found) = self.baby.get(&name(point.x)).and_then(|i| both(Scalar::from_u64(*i))) {
            return Some(found);
        }
        // point + giant = baby, and -point + giant = baby, each baby with either sign.
        for point in [point, point.negate()] {
            let Some(sums) = group::add_all(point, &self.giant) else {
                let is_giant = |giant: &Affine| giant.x == point.x;
                let at = self.giant.iter().position(is_giant).expect("one of them has the same x");
                return both(Scalar::from_u64((at as u64 + 1) * (2 * self.babies + 1)));
            };
            for (sum, j) in sums.iter().zip(1u64..) {
                let Some(i) = self.baby.get(&name(sum.x)) else { continue };
                let giant = Scalar::from_u64(j * (2 * self.babies + 1));
                let tried = [giant.add(Scalar::from_u64(*i)), giant.sub(Scalar::from_u64(*i))];
                if let Some(found) = tried.into_iter().find_map(both) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// Whether l^a P - l^c Q or l^a P + l^c Q is a small multiple of G, in any of the 18 cases.
    fn link(&self, one: &PublicKey, other: &PublicKey) -> bool {
        let (one, other) = (affine(one), affine(other));
        let cases = (0..3).flat_map(|a| TWISTS.map(|twist| (a, twist)));
        cases.into_iter().any(|(a, (negate, c))| {
            let other = other.endomorphism(c);
            let other = if negate { other.negate() } else { other };
            self.small_logarithm(one.endomorphism(a).plus(other)).is_some()
        })
    }
}

fn affine(key: &PublicKey) -> Affine {
    let bytes = key.serialize_uncompressed();
    let coordinate = |from: usize| Fe::from_be_bytes(bytes[from..from + 32].try_into().expect("32 bytes"));
    Affine::new(coordinate(1), coordinate(33)).expect("on the curve")
}

/// The bound of a search by points alone: 2^40 takes minutes.
fn bits() -> u32 {
    count(30, 40) as u32
}

#[track_caller]
fn assert_unlinkable(run: &Run, many: usize) {
    let keys: Vec<SecretKey> = run.json().iter().map(verified_secret).collect();
    assert_eq!(keys.len(), many);
    assert_eq!(Ring::new().find_linked(&keys), None, "two results have a common origin");
    let steps = Steps::new(bits());
    let mut random = Random::new("pairs");
    for _ in 0..10 {
        let one = random.below(many as u64) as usize;
        let other = (one + 1 + random.below(many as u64 - 1) as usize) % many;
        let [one, other] = [one, other].map(|at| PublicKey::from_secret_key(&keys[at]));
        assert!(!steps.link(&one, &other), "linked: {one} and {other}");
    }
}

#[test]
fn a_thousand_results_of_the_processor_cannot_be_linked() {
    let run = warpsmith(&[
        "npub",
        "q",
        "--count",
        "1000",
        "--json",
        "--quiet",
        "--device",
        "cpu",
        "--threads",
        "2",
    ]);
    assert_unlinkable(&run.code(0), 1000);
}

#[test]
fn a_thousand_results_of_pocl_cannot_be_linked() {
    let devices = warpsmith(&["devices", "--json"]).code(0);
    let listed = devices.json();
    let is_pocl = |line: &&serde_json::Value| line.to_string().contains("PoCL");
    let Some(id) = listed.iter().find(is_pocl).and_then(|line| line["id"].as_str()) else {
        println!("SKIPPED: no PoCL here (apt install pocl-opencl-icd)");
        return;
    };
    // An easy pattern, of which every lane finds one in every launch, and one of which few lanes do: most of them walk on
    // while others begin anew.
    for pattern in ["q", "qqq"] {
        let run = warpsmith(&["npub", pattern, "--count", "1000", "--json", "--quiet", "--device", id]);
        assert_unlinkable(&run.code(0), 1000);
    }
}

/// The key of a place of walks that share an origin, neighbouring lanes so many steps apart.
fn key_at(origin: &Scalar, place: &Place, half: u32, stride: u64) -> SecretKey {
    let lane = Scalar::from_u128(u128::from(place.lane) * u128::from(stride) * (2 * u128::from(half) + 1));
    let key = Scalar::lambda_power(place.image).mul(origin.add(lane).add(place.offset(half)));
    let key = if place.negate { key.negate() } else { key };
    SecretKey::from_secret_bytes(key.to_be_bytes()).expect("not zero")
}

fn some_origin(random: &mut Random) -> Scalar {
    Scalar::from_be_bytes(&random.uniform()).expect("2^-127 of all numbers are none")
}

/// The control of both checks: were an origin kept after a match, or shared by lanes, they would see it.
#[test]
fn results_of_one_origin_are_linked() {
    let mut random = Random::new("control");
    let (ring, steps) = (Ring::new(), Steps::new(24));
    let origin = some_origin(&mut random);
    let others: Vec<SecretKey> =
        (0..50).map(|_| SecretKey::from_secret_bytes(random.uniform()).expect("a key")).collect();
    assert_eq!(ring.find_linked(&others), None);
    let (half, stride) = (1 << 9, 1 << 40);
    for ((negate, image), (other_negate, other_image)) in
        TWISTS.into_iter().flat_map(|one| TWISTS.map(|other| (one, other)))
    {
        let mut place = |step: u64, orbit: bool| Place {
            lane: random.below(if orbit { 1 << 16 } else { 1 }) as u32,
            step: random.below(step),
            index: random.below(u64::from(half) + 1) as u32,
            minus: random.below(2) == 1,
            orbit: if orbit { random.below(3) as u8 } else { 0 },
            image: 0,
            negate: false,
        };
        // For the points alone: two groups of one lane, not far from each other.
        let near = Place { image, negate, ..place(1 << 12, false) };
        let other = Place { image: other_image, negate: other_negate, ..place(1 << 12, false) };
        let pair = [near, other].map(|place| key_at(&origin, &place, half, stride));
        let [one, two] = pair.each_ref().map(PublicKey::from_secret_key);
        assert!(steps.link(&one, &two), "{near:?} and {other:?} are not linked");
        // With the keys: anywhere, in any lane, among others.
        let far = Place { image, negate, ..place(1 << 40, true) };
        let other = Place { image: other_image, negate: other_negate, ..place(1 << 40, true) };
        let mut keys = others.clone();
        keys.insert(7, key_at(&origin, &far, half, stride));
        keys.push(key_at(&origin, &other, half, stride));
        let (one, two) =
            ring.find_linked(&keys).unwrap_or_else(|| panic!("{far:?} and {other:?} are not linked"));
        assert_eq!((one.min(two), one.max(two)), (7, keys.len() - 1));
    }
}
