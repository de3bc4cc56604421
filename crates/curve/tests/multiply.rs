//! P + t*G against libsecp256k1, for any numbers and for those that make points meet.

use warpsmith_curve::multiply::{Eight, Multiples};
use warpsmith_curve::{Affine, Scalar};

use crate::common::{available, point, some_scalar};

/// The words of a number below 2^256.
fn words(bytes: [u8; 32]) -> [u64; 4] {
    let (words, _) = bytes.as_chunks();
    std::array::from_fn(|i| u64::from_be_bytes(words[i]))
}

/// Sums of keys p (the points p*G) and numbers t, in eights; the places that are left over are not live.
fn eights(pairs: &[(Scalar, [u64; 4])]) -> Vec<Eight> {
    let eight = |pairs: &[(Scalar, [u64; 4])]| {
        let mut eight = Eight { x: [[0; 8]; 4], y: [[0; 8]; 4], t: [[0; 8]; 4], live: 0 };
        for (lane, (p, t)) in pairs.iter().enumerate() {
            let Affine { x, y } = point(*p).expect("not infinity");
            for i in 0..4 {
                (eight.x[i][lane], eight.y[i][lane]) = (x.to_words()[i], y.to_words()[i]);
                eight.t[i][lane] = t[i];
            }
            eight.live |= 1 << lane;
        }
        eight
    };
    pairs.chunks(8).map(eight).collect()
}

/// Every sum is the one by libsecp256k1, on every instruction set, by either table, with y or without.
fn check(pairs: &[(Scalar, Scalar)]) {
    let given: Vec<_> = pairs.iter().map(|(p, t)| (*p, words(t.to_be_bytes()))).collect();
    let makers: &[fn(warpsmith_simd::Simd) -> Multiples] = &[Multiples::new, Multiples::large];
    for (simd, table) in available().flat_map(|simd| makers.iter().map(move |make| (simd, make(simd)))) {
        let mut sums = eights(&given);
        let mut points = sums.clone();
        table.add_to(&mut sums);
        table.add_points(&mut points);
        for (i, (p, t)) in pairs.iter().enumerate() {
            let (eight, lane) = (&sums[i / 8], i % 8);
            let expected = point(p.add(*t));
            assert_eq!(eight.live >> lane & 1 == 1, expected.is_some(), "{simd}: {p:?} + {t:?}");
            if let Some(expected) = expected {
                let x = eight.x.map(|word| word[lane]);
                assert_eq!(x, expected.x.to_words(), "{simd}: {p:?} + {t:?}");
                let (x, y) = (points[i / 8].x.map(|word| word[lane]), points[i / 8].y.map(|word| word[lane]));
                let both = (expected.x.to_words(), expected.y.to_words());
                assert_eq!((x, y), both, "{simd}: {p:?} + {t:?}");
            }
            assert_eq!(points[i / 8].live, eight.live);
        }
        // Places without a sum stay without one.
        let used = pairs.len() % 8;
        if used > 0 {
            assert_eq!(sums.last().expect("some").live >> used, 0);
        }
    }
}

#[test]
fn any_numbers_in_any_count() {
    for count in [1, 7, 8, 9, 100, 8 * 256, 8 * 256 + 3] {
        let pairs: Vec<_> =
            (0..count).map(|i| (some_scalar(2 * i + count), some_scalar(2 * i + 1 + count))).collect();
        check(&pairs);
    }
}

#[test]
fn numbers_at_the_edges_of_every_window() {
    let mut numbers = vec![Scalar::ZERO, Scalar::ONE, Scalar::ONE.negate(), Scalar::from_u64(2).negate()];
    let mut power = Scalar::ONE;
    for bit in 0..256 {
        // 2^bit and its neighbours, modulo n.
        numbers.extend([power, power.sub(Scalar::ONE), power.add(Scalar::ONE), power.negate()]);
        power = power.add(power);
        assert!(bit < 255 || !power.is_zero());
    }
    check(&numbers.iter().enumerate().map(|(i, t)| (some_scalar(i as u64), *t)).collect::<Vec<_>>());
}

/// Numbers of n and above count modulo n.
#[test]
fn numbers_beyond_the_order_count_modulo_it() {
    let n = {
        let mut bytes = Scalar::ONE.negate().to_be_bytes();
        bytes[31] += 1;
        words(bytes)
    };
    let cases =
        [(n, Scalar::ZERO), ([u64::MAX; 4], Scalar::from_u128(0x4551_2319_50b7_5fc4_402d_a173_2fc9_bebe))];
    for simd in available() {
        for (t, less) in cases {
            // 2^256 - 1 - n is 2^128 more than what fits the number above.
            let less = if less.is_zero() { less } else { less.add(two_to_128()) };
            let p = some_scalar(5);
            let mut sums = eights(&[(p, t)]);
            Multiples::large(simd).add_to(&mut sums);
            let expected = point(p.add(less)).expect("a point").x.to_words();
            assert_eq!(sums[0].x.map(|word| word[0]), expected, "{simd}");
        }
    }
}

fn two_to_128() -> Scalar {
    Scalar::from_u128(1 << 127).add(Scalar::from_u128(1 << 127))
}

/// Where sum and entry are the same point, or opposites, or everything is infinity, at any window: that lane, its
/// neighbours and the rest of the batch are right.
#[test]
fn points_that_meet_are_added_exactly() {
    let mut pairs: Vec<_> = (0..20).map(|i| (some_scalar(i), some_scalar(i + 100))).collect();
    let t = some_scalar(77);
    // The sum itself is infinity; and P and T are one point.
    pairs[3] = (t.negate(), t);
    pairs[12] = (t, t);
    check(&pairs);
    // The first window of t = 0 adds -(M/2) G: with P = M/2 G, or its opposite, they meet at once. The windows are of
    // some number of bits between 4 and 16; each number is tried.
    let half = {
        let mut half = Scalar::ONE.negate().to_be_bytes();
        let mut carry = 0;
        for byte in &mut half {
            (*byte, carry) = (*byte >> 1 | carry << 7, *byte & 1);
        }
        Scalar::from_be_bytes(&half).expect("below n").add(Scalar::ONE)
    };
    assert_eq!(half.add(half), Scalar::ONE);
    for bits in 4..=16 {
        let first = Scalar::from_u64((1 << bits) - 1).mul(half);
        check(&[(some_scalar(1), t), (first, Scalar::ZERO), (first.negate(), Scalar::ZERO)]);
        // The same at the second window, after the first was added.
        let second = first.add(first.mul(Scalar::from_u64(1 << bits)));
        let plain = first.mul(Scalar::from_u64(1 << bits)).sub(first).negate();
        check(&[(second, Scalar::ZERO), (second.negate(), Scalar::ZERO), (plain, Scalar::ZERO)]);
    }
}
