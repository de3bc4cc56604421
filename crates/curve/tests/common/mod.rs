//! What the tests of the walks share: points by libsecp256k1, lanes a fixed way apart, the key of a place.
#![allow(dead_code, reason = "each test file takes what it needs")]

use warpsmith_curve::group::Point;
use warpsmith_curve::walk::Place;
use warpsmith_curve::{Affine, Fe, Scalar};
use warpsmith_simd::Simd;

/// Distance of neighbouring lanes in these tests, in steps.
pub const STRIDE: u64 = 1 << 20;

/// k*G by the independent library; none for infinity.
pub fn point(k: Scalar) -> Point {
    let secret = secp256k1::SecretKey::from_secret_bytes(k.to_be_bytes()).ok()?;
    let bytes = secp256k1::PublicKey::from_secret_key(&secret).serialize_uncompressed();
    let coordinate = |i: usize| Fe::from_be_bytes(bytes[i..i + 32].try_into().expect("32 bytes"));
    Some(Affine { x: coordinate(1), y: coordinate(33) })
}

/// The way from the first lane's start to that of a lane.
fn way(lane: u64, half: u32) -> Scalar {
    Scalar::from_u64(lane * STRIDE * (2 * half as u64 + 1))
}

/// The centres of all lanes whose first is at `origin`.
pub fn starts(origin: Scalar, half: u32, lanes: usize) -> Vec<Point> {
    (0..lanes as u64).map(|lane| point(origin.add(way(lane, half)))).collect()
}

/// What is added to the origin before the image.
pub fn offset(place: &Place, half: u32) -> Scalar {
    way(place.lane.into(), half).add(place.offset(half))
}

/// The key of a place.
pub fn key(origin: Scalar, place: &Place, half: u32) -> Scalar {
    let key = Scalar::lambda_power(place.image).mul(origin.add(offset(place, half)));
    if place.negate { key.negate() } else { key }
}

/// A scalar without pattern, the same in every run.
pub fn some_scalar(seed: u64) -> Scalar {
    let mut s = Scalar::from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..6 {
        s = s.mul(s).add(Scalar::LAMBDA);
    }
    s
}

/// The instruction sets of this machine; the others are skipped aloud.
pub fn available() -> impl Iterator<Item = Simd> {
    warpsmith_curve::SETS.into_iter().filter(|s| {
        if !s.is_available() {
            eprintln!("SKIPPED: this machine has no {s}");
        }
        s.is_available()
    })
}
