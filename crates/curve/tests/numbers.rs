//! Field, scalars and points against big integers, k256 and libsecp256k1, edges first.

use num_bigint::BigUint;
use proptest::prelude::*;
use warpsmith_curve::group::{self, Point};
use warpsmith_curve::{Affine, Fe, Scalar};

fn p() -> BigUint {
    (BigUint::from(1u8) << 256) - (BigUint::from(1u8) << 32) - 977u32
}

fn n() -> BigUint {
    BigUint::parse_bytes(b"fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16)
        .expect("hex")
}

fn big(bytes: &[u8; 32]) -> BigUint {
    BigUint::from_bytes_be(bytes)
}

fn bytes(value: &BigUint) -> [u8; 32] {
    let raw = value.to_bytes_be();
    let mut out = [0; 32];
    out[32 - raw.len()..].copy_from_slice(&raw);
    out
}

/// 0, 1, p-1, p, p+1, n-1, n, n+1, 2^256-1, and every 64-bit, 52-bit and 32-bit limb saturated or alone.
fn edges() -> Vec<[u8; 32]> {
    let one = BigUint::from(1u8);
    let mut out: Vec<BigUint> = vec![BigUint::ZERO, one.clone(), BigUint::from(2u8)];
    for m in [p(), n(), &one << 256] {
        for d in 1..4u8 {
            out.push(&m - d);
        }
    }
    for m in [p(), n()] {
        for d in 0..3u8 {
            out.push(&m + d);
        }
    }
    for width in [64, 52, 32] {
        for at in (0..256).step_by(width) {
            let top = (at + width).min(256);
            let limb = (&one << top) - (&one << at);
            out.push((&one << 256) - 1u8 - &limb);
            out.push(limb);
            out.push(&one << at);
        }
    }
    // FOLD and its neighbours, where a carry after reduction appears.
    for d in 0..3u8 {
        out.push((&one << 32) + 976u32 + d);
    }
    out.iter().map(bytes).collect()
}

fn check_field(a: [u8; 32], b: [u8; 32]) {
    let (x, y) = (Fe::from_be_bytes(&a), Fe::from_be_bytes(&b));
    let (u, v) = (big(&a), big(&b));
    assert_eq!(big(&x.to_be_bytes()), &u % p());
    assert_eq!(big(&x.add(y).to_be_bytes()), (&u + &v) % p(), "{u:x} + {v:x}");
    assert_eq!(big(&x.sub(y).to_be_bytes()), (&u + p() + p() - &v) % p(), "{u:x} - {v:x}");
    assert_eq!(big(&x.mul(y).to_be_bytes()), (&u * &v) % p(), "{u:x} * {v:x}");
    assert_eq!(big(&x.square().to_be_bytes()), (&u * &u) % p(), "{u:x} squared");
    assert_eq!(big(&x.negate().to_be_bytes()), (p() + p() - &u) % p(), "-{u:x}");
    assert_eq!(x.is_zero(), (&u % p()) == BigUint::ZERO);
    assert_eq!(x.is_odd(), (&u % p()).bit(0));
    assert_eq!(x == y, &u % p() == &v % p());
}

#[test]
fn field_edges_agree_with_big_integers() {
    let edges = edges();
    for &a in &edges {
        for &b in &edges {
            check_field(a, b);
        }
        let x = Fe::from_be_bytes(&a);
        let inverse = big(&a).modpow(&(p() - 2u8), &p());
        assert_eq!(big(&x.invert().to_be_bytes()), inverse);
        match x.sqrt() {
            Some(root) => assert_eq!(root.square(), x),
            None => assert_ne!(big(&a).modpow(&((p() - 1u8) >> 1), &p()), BigUint::from(1u8)),
        }
    }
}

#[test]
fn batch_inversion_leaves_zeros_and_inverts_the_rest() {
    let mut values: Vec<Fe> = edges().iter().map(Fe::from_be_bytes).collect();
    let before = values.clone();
    Fe::invert_all(&mut values);
    for (v, b) in values.iter().zip(before) {
        assert_eq!(*v, b.invert());
    }
}

fn scalar(bytes: &[u8; 32]) -> Scalar {
    Scalar::from_be_bytes(&self::bytes(&(big(bytes) % n()))).expect("reduced")
}

fn check_scalar(a: [u8; 32], b: [u8; 32]) {
    assert_eq!(Scalar::from_be_bytes(&a).is_some(), big(&a) < n());
    let (x, y) = (scalar(&a), scalar(&b));
    let (u, v) = (big(&a) % n(), big(&b) % n());
    assert_eq!(big(&x.to_be_bytes()), u);
    assert_eq!(big(&x.add(y).to_be_bytes()), (&u + &v) % n());
    assert_eq!(big(&x.sub(y).to_be_bytes()), (&u + n() - &v) % n());
    assert_eq!(big(&x.mul(y).to_be_bytes()), (&u * &v) % n());
    assert_eq!(big(&x.negate().to_be_bytes()), (n() - &u) % n());
}

#[test]
fn scalar_edges_agree_with_big_integers() {
    let edges = edges();
    for &a in &edges {
        for &b in &edges {
            check_scalar(a, b);
        }
    }
}

#[test]
fn lambda_and_beta_are_cube_roots_that_belong_together() {
    let (lambda, beta) = (Scalar::LAMBDA, Fe::BETA);
    assert_eq!(lambda.mul(lambda).mul(lambda), Scalar::ONE);
    assert_eq!(beta.mul(beta).mul(beta), Fe::ONE);
    assert_ne!(beta, Fe::ONE);
    for power in 0..3 {
        assert_eq!(point(Scalar::lambda_power(power)), Some(Affine::G.endomorphism(power)));
    }
    assert_eq!(Scalar::lambda_power(2), lambda.mul(lambda));
}

/// k*G of libsecp256k1.
fn point(k: Scalar) -> Point {
    let secret = secp256k1::SecretKey::from_secret_bytes(k.to_be_bytes()).ok()?;
    let bytes = secp256k1::PublicKey::from_secret_key(&secret).serialize_uncompressed();
    let coordinate = |i: usize| Fe::from_be_bytes(bytes[i..i + 32].try_into().expect("32 bytes"));
    Affine::new(coordinate(1), coordinate(33))
}

#[test]
fn multiples_of_g_agree_with_libsecp256k1() {
    for edge in edges() {
        let k = scalar(&edge);
        assert_eq!(group::multiply(k, Some(Affine::G)), point(k), "{k:?}");
    }
}

#[test]
fn addition_handles_infinity_equal_and_opposite_points() {
    let g = Some(Affine::G);
    let minus = Some(Affine::G.negate());
    assert_eq!(group::add(None, g), g);
    assert_eq!(group::add(g, None), g);
    assert_eq!(group::add(None, None), None);
    assert_eq!(group::add(g, minus), None);
    assert_eq!(group::add(g, g), point(Scalar::from_u64(2)));
    assert_eq!(group::multiply(Scalar::ZERO, g), None);
    assert_eq!(Affine::lift_x(Affine::G.x, Affine::G.y.is_odd()), g);
    assert_eq!(Affine::lift_x(Affine::G.x, !Affine::G.y.is_odd()), minus);
    assert_eq!(Affine::lift_x(Fe::from_u64(5), false), None);
    assert_eq!(Affine::new(Fe::ONE, Fe::ONE), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_field_elements_agree_with_big_integers(a: [u8; 32], b: [u8; 32]) {
        check_field(a, b);
    }

    #[test]
    fn random_scalars_agree_with_big_integers(a: [u8; 32], b: [u8; 32]) {
        check_scalar(a, b);
    }

    #[test]
    fn field_agrees_with_k256(a: [u8; 32], b: [u8; 32]) {
        use k256::elliptic_curve::hazmat::FieldArithmetic;
        type Theirs = <k256::Secp256k1 as FieldArithmetic>::FieldElement;
        let theirs = |x: &[u8; 32]| Option::<Theirs>::from(Theirs::from_bytes(&(*x).into()));
        let (Some(u), Some(v)) = (theirs(&a), theirs(&b)) else { return Ok(()) };
        let (x, y) = (Fe::from_be_bytes(&a), Fe::from_be_bytes(&b));
        let out = |t: Theirs| <[u8; 32]>::from(t.normalize().to_bytes());
        prop_assert_eq!(x.mul(y).to_be_bytes(), out(u * v));
        prop_assert_eq!(x.square().to_be_bytes(), out(u.square()));
        prop_assert_eq!(x.add(y).to_be_bytes(), out(u + v));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn random_sums_of_points_agree_with_libsecp256k1(a: [u8; 32], b: [u8; 32]) {
        let (a, b) = (scalar(&a), scalar(&b));
        prop_assert_eq!(group::add(point(a), point(b)), point(a.add(b)));
        prop_assert_eq!(group::add(point(a), point(a)), point(a.add(a)));
    }
}
