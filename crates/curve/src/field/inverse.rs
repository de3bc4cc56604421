//! The inverse modulo p, by division steps (Bernstein and Yang, "Fast constant-time gcd computation and modular
//! inversion", 2019), in variable time.
//!
//! A step takes (delta, f, g), f odd, to (1 - delta, g, (g - f) / 2) if delta > 0 and g is odd, else to (1 + delta, f,
//! (g + f * (g mod 2)) / 2). From (1, p, x) with x in 0..p at most 741 steps lead to g = 0, and then f is the gcd, 1 or -1.
//! What 62 steps do depends only on the low 62 bits of f and g, and is a matrix of integers over 2^62: it is found in
//! registers, and then applied to f and g, and to d and e, which satisfy d x = f and e x = g modulo p throughout. At
//! the end x^-1 = d f.

use super::{FOLD, Fe};

/// Steps at a time.
const STEPS: u32 = 62;
const MASK: u64 = (1 << STEPS) - 1;

/// A signed number of 310 bits: five limbs of 62 bits, least significant first, of which only the last is negative.
type Number = [i64; 5];

/// p = 2^8 * 2^248 - FOLD as limbs with signs of their own; those between are zero.
const P_FIRST: i64 = -(FOLD as i64);
const P_LAST: i64 = 1 << 8;

/// p^-1 mod 2^62. Each round doubles the bits that are right: three of p itself, since odd squares are 1 modulo 8.
const P_INVERSE: u64 = {
    let p = P_FIRST as u64;
    let mut inverse = p;
    let mut round = 0;
    while round < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(p.wrapping_mul(inverse)));
        round += 1;
    }
    inverse & MASK
};

/// What some steps do: 2^62 (f, g) becomes (u f + v g, q f + r g). |u| + |v| and |q| + |r| are at most 2^62.
struct Matrix {
    u: i64,
    v: i64,
    q: i64,
    r: i64,
}

/// 62 steps of the low bits of f and g. `eta` is minus delta.
#[inline(always)]
fn steps(mut eta: i32, f: i64, g: i64) -> (i32, Matrix) {
    let (mut f, mut g) = (f as u64, g as u64);
    // What f and g are of those at the start, times 2^(steps so far): unsigned, since 2^62 + 2^62 is reached on the way.
    let (mut u, mut v, mut q, mut r) = (1u64, 0u64, 0u64, 1u64);
    let mut left = STEPS;
    loop {
        // As many steps as g has zeros: they only halve it. Instead of halving, f's row is doubled.
        let zeros = (g | u64::MAX << left).trailing_zeros();
        g >>= zeros;
        u <<= zeros;
        v <<= zeros;
        eta -= zeros as i32;
        left -= zeros;
        if left == 0 {
            break;
        }
        if eta < 0 {
            // Delta is positive: f and g change places, and minus the old f is added to the new g below.
            eta = -eta;
            (f, g) = (g, f.wrapping_neg());
            (u, q) = (q, u.wrapping_neg());
            (v, r) = (r, v.wrapping_neg());
        }
        // Until delta is positive, in eta + 1 steps, multiples of f are added. One multiple clears as many low bits as
        // there are such steps, six at most: f (2 - f^2) is 1/f modulo 2^6, since f is modulo 2^3.
        let bits = (eta as u32 + 1).min(left).min(6);
        let times = f.wrapping_mul(g).wrapping_mul(f.wrapping_mul(f).wrapping_sub(2)) & ((1 << bits) - 1);
        g = g.wrapping_add(f.wrapping_mul(times));
        q = q.wrapping_add(u.wrapping_mul(times));
        r = r.wrapping_add(v.wrapping_mul(times));
    }
    (eta, Matrix { u: u as i64, v: v as i64, q: q as i64, r: r as i64 })
}

/// a x + b y.
#[inline(always)]
fn both(a: i64, x: i64, b: i64, y: i64) -> i128 {
    i128::from(a) * i128::from(x) + i128::from(b) * i128::from(y)
}

/// (a f + b g) / 2^62, where that is a whole number.
#[inline(always)]
fn row(a: i64, b: i64, f: &Number, g: &Number) -> Number {
    let mut sum = both(a, f[0], b, g[0]);
    debug_assert_eq!(sum as u64 & MASK, 0);
    let mut out = [0; 5];
    for i in 1..5 {
        sum = (sum >> STEPS) + both(a, f[i], b, g[i]);
        out[i - 1] = (sum as u64 & MASK) as i64;
    }
    out[4] = (sum >> STEPS) as i64;
    out
}

/// (a d + b e) / 2^62 modulo p. All numbers lie above -2p and below p: with p added to those below zero, they lie between
/// -p and p, the sum between -2^62 p and 2^62 p, and what is taken off to make it divisible is less than 2^62 p.
#[inline(always)]
fn row_modulo(a: i64, b: i64, d: &Number, e: &Number) -> Number {
    let mut times_p = (a & d[4] >> 63) + (b & e[4] >> 63);
    let mut sum = both(a, d[0], b, e[0]);
    times_p -= (P_INVERSE.wrapping_mul(sum as u64).wrapping_add(times_p as u64) & MASK) as i64;
    sum += i128::from(P_FIRST) * i128::from(times_p);
    debug_assert_eq!(sum as u64 & MASK, 0);
    let mut out = [0; 5];
    for i in 1..5 {
        sum = (sum >> STEPS) + both(a, d[i], b, e[i]);
        if i == 4 {
            sum += i128::from(P_LAST) * i128::from(times_p);
        }
        out[i - 1] = (sum as u64 & MASK) as i64;
    }
    out[4] = (sum >> STEPS) as i64;
    out
}

/// The element a number above -2p and below p stands for.
fn element(n: &Number) -> Fe {
    // Modulo 2^320, so that a negative number is 2^320 less; of that the last limb tells.
    let l = n.map(|limb| limb as u64);
    let low = Fe([l[0] | l[1] << 62, l[1] >> 2 | l[2] << 60, l[2] >> 4 | l[3] << 58, l[3] >> 6 | l[4] << 56]);
    // What lies above 2^256: -2, -1 or 0.
    match n[4] >> 8 {
        0 => low,
        -1 => low.sub(Fe::from_u64(FOLD)),
        above => {
            debug_assert_eq!(above, -2);
            low.sub(Fe::from_u64(2 * FOLD))
        }
    }
}

/// The inverse of an element; zero for zero.
pub(super) fn inverse(x: Fe) -> Fe {
    let x = x.canonical().0;
    let limb = |low: u64| (low & MASK) as i64;
    let mut g: Number = [
        limb(x[0]),
        limb(x[0] >> 62 | x[1] << 2),
        limb(x[1] >> 60 | x[2] << 4),
        limb(x[2] >> 58 | x[3] << 6),
        (x[3] >> 56) as i64,
    ];
    let mut f: Number = [P_FIRST & MASK as i64, MASK as i64, MASK as i64, MASK as i64, P_LAST - 1];
    let (mut d, mut e): (Number, Number) = ([0; 5], [1, 0, 0, 0, 0]);
    let mut eta = -1;
    while g != [0; 5] {
        // Of the low limbs 62 bits are all there is.
        let (after, Matrix { u, v, q, r }) = steps(eta, f[0], g[0]);
        eta = after;
        (d, e) = (row_modulo(u, v, &d, &e), row_modulo(q, r, &d, &e));
        (f, g) = (row(u, v, &f, &g), row(q, r, &f, &g));
    }
    let inverse = element(&d);
    if f[4] < 0 { inverse.negate() } else { inverse }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::P;
    use crate::random::random;

    /// x to the power p - 2, as Fermat has it.
    fn power(x: Fe) -> Fe {
        let (mut power, mut exponent) = (Fe::ONE, P);
        exponent[0] -= 2;
        for limb in exponent.into_iter().rev() {
            for bit in (0..64).rev() {
                power = power.square();
                if limb >> bit & 1 == 1 {
                    power = power.mul(x);
                }
            }
        }
        power
    }

    #[test]
    fn the_inverse_is_that_of_fermat() {
        let top = u64::MAX;
        let mut values = vec![Fe::ZERO, Fe(P), Fe([top; 4]), Fe::BETA];
        // Around zero, p, and each power of two, where limbs of either kind end.
        for n in 0..200 {
            values.extend([Fe::from_u64(n), Fe::ZERO.sub(Fe::from_u64(n))]);
        }
        for bit in 0..256 {
            let mut limbs = [0; 4];
            limbs[bit / 64] = 1 << (bit % 64);
            let power = Fe(limbs);
            values.extend([power, power.sub(Fe::ONE), power.add(Fe::ONE), power.negate()]);
        }
        let mut state = 11;
        for _ in 0..2000 {
            let any = Fe([(); 4].map(|()| random(&mut state)));
            // Of every length too.
            let short =
                Fe([(); 4].map(|()| random(&mut state) & random(&mut state) >> (random(&mut state) % 64)));
            values.extend([any, short]);
        }
        for x in values {
            assert_eq!(inverse(x), power(x), "{x:x?}");
            assert_eq!(inverse(inverse(x)), x, "{x:x?}");
        }
    }

    #[test]
    fn the_constants_are_those_of_p() {
        assert_eq!(P_INVERSE.wrapping_mul(P[0]) & MASK, 1);
        assert_eq!(
            element(&[P_FIRST & MASK as i64, MASK as i64, MASK as i64, MASK as i64, P_LAST - 1]),
            Fe::ZERO
        );
        assert_eq!(element(&[MASK as i64, MASK as i64, MASK as i64, MASK as i64, -1]), Fe::ONE.negate());
    }
}
