//! Groups so small that all of their elements are tried. Affine addition does not read the curve's b, so that subgroups of
//! curves y^2 = x^3 + b over the same field go through the code of secp256k1 as it is; and beta x is the endomorphism of
//! each of them. There points meet, double and cancel all the time.
//!
//! The group is a table of the multiples of its generator, by plain arithmetic of another library. The tests of several
//! crates share this file.
#![allow(dead_code, reason = "each test takes what it needs")]

use num_bigint::BigUint;

/// x and y.
pub type Coordinates = (BigUint, BigUint);

/// A group of prime order.
pub struct Small {
    /// How many elements it has.
    pub order: i64,
    /// The endomorphism multiplies by this.
    lambda: i64,
    /// G, 2 G, .., (order - 1) G.
    multiples: Vec<Coordinates>,
}

fn number(hex: &str) -> BigUint {
    BigUint::parse_bytes(hex.as_bytes(), 16).expect("hexadecimal")
}

fn p() -> BigUint {
    (BigUint::from(1u32) << 256) - (BigUint::from(1u32) << 32) - 977u32
}

impl Small {
    /// Of order 13 on y^2 = x^3 + 2 and of order 199 on y^2 = x^3 + 4. The orders of the six curves y^2 = x^3 + b follow
    /// from p and the trace of secp256k1; a generator is any point times the cofactor.
    pub fn both() -> [Small; 2] {
        [
            Small::new(
                13,
                2,
                "3ad3e1ec92dc070a346a975330b12e1d929c645be56584aa88e489aa3d68746b",
                "ab34e4942373ed8cf787bb15bc0b9fc1f15065bc091001aa6c607f91c8520383",
            ),
            Small::new(
                199,
                4,
                "fa7cc9a70737f2dba749dd392b4fb0693b017a7da808c2f1fb12940c9ea66c18",
                "78ac123a5ed8aef38732bc911f3a286848df246c808dae72cfe525727f0501ed",
            ),
        ]
    }

    fn new(order: i64, b: u32, x: &str, y: &str) -> Small {
        let p = p();
        let generator = (number(x), number(y));
        let mut multiples = vec![generator.clone()];
        while let Some(next) = sum(&multiples[multiples.len() - 1], &generator) {
            assert_eq!(&next.1 * &next.1 % &p, (&next.0 * &next.0 * &next.0 + b) % &p, "on the curve");
            multiples.push(next);
        }
        assert_eq!(multiples.len() as i64, order - 1, "and of this order");
        let beta = number("7ae96a2b657c07106e64479eac3434e99cf0497512f58995c1396c28719501ee");
        let image = (&generator.0 * beta % &p, generator.1.clone());
        let lambda =
            multiples.iter().position(|point| *point == image).expect("a group of its own") as i64 + 1;
        assert_eq!((lambda * lambda + lambda + 1) % order, 0);
        Small { order, lambda, multiples }
    }

    /// k G; none for infinity.
    pub fn point(&self, k: i64) -> Option<&Coordinates> {
        let at = k.rem_euclid(self.order).checked_sub(1).filter(|at| *at >= 0)?;
        Some(&self.multiples[at as usize])
    }

    /// lambda^power k.
    pub fn image(&self, k: i64, power: u32) -> i64 {
        (0..power).fold(k, |k, _| k * self.lambda % self.order)
    }

    /// Whether k is `+-i` for some i of `1..=half`, or with `images` that times a power of lambda: a centre that meets its
    /// table.
    pub fn meets(&self, k: i64, half: u32, images: bool) -> bool {
        let powers = if images { 3 } else { 1 };
        let is = |i: i64| (0..powers).any(|power| (k - self.image(i, power)).rem_euclid(self.order) == 0);
        (1..=i64::from(half)).any(|i| is(i) || is(-i))
    }

    /// How a lane fares whose centres are `2 half + 1` apart: the centres of its steps, until it meets its table or the
    /// step's point, and in which step that is.
    pub fn fare(&self, start: i64, half: u32, steps: u32, images: bool) -> (Vec<i64>, Option<u32>) {
        let step = 2 * i64::from(half) + 1;
        let mut walked = Vec::new();
        for n in 0..steps {
            let centre = start + i64::from(n) * step;
            let meets_step = [step, -step].iter().any(|k| (centre - k).rem_euclid(self.order) == 0);
            if meets_step || self.meets(centre, half, images) {
                return (walked, Some(n));
            }
            walked.push(centre);
        }
        (walked, None)
    }
}

/// The sum of two points, doubling and infinity included.
fn sum(a: &Coordinates, b: &Coordinates) -> Option<Coordinates> {
    let p = p();
    let minus = |a: &BigUint, b: &BigUint| (a + &p - b) % &p;
    let (above, below) = if a.0 != b.0 {
        (minus(&b.1, &a.1), minus(&b.0, &a.0))
    } else if a.1 == b.1 {
        (&a.0 * &a.0 * 3u32 % &p, &a.1 * 2u32 % &p)
    } else {
        return None;
    };
    let slope = above * below.modpow(&(&p - 2u32), &p) % &p;
    let x = minus(&minus(&(&slope * &slope % &p), &a.0), &b.0);
    let y = minus(&(slope * minus(&a.0, &x) % &p), &a.1);
    Some((x, y))
}
