//! Points of y^2 = x^3 + 7, with every case of addition handled: the reference for the walk, and what the walk
//! falls back to where its formulas do not hold.
//!
//! Each addition pays one inversion, but for those of one point to many. Speed is the walk's business.

use crate::{Fe, Scalar};

/// A point of the curve other than infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine {
    /// The x coordinate.
    pub x: Fe,
    /// The y coordinate.
    pub y: Fe,
}

/// A point, infinity included.
pub type Point = Option<Affine>;

impl Affine {
    /// The generator.
    pub const G: Affine = Affine {
        x: Fe([0x59f2_815b_16f8_1798, 0x029b_fcdb_2dce_28d9, 0x55a0_6295_ce87_0b07, 0x79be_667e_f9dc_bbac]),
        y: Fe([0x9c47_d08f_fb10_d4b8, 0xfd17_b448_a685_5419, 0x5da4_fbfc_0e11_08a8, 0x483a_da77_26a3_c465]),
    };

    /// The point with these coordinates; none unless it lies on the curve.
    pub fn new(x: Fe, y: Fe) -> Option<Affine> {
        (y.square() == x.square().mul(x).add(Fe::from_u64(7))).then_some(Affine { x, y })
    }

    /// The point with this x and a y of this parity; none if the curve has none.
    pub fn lift_x(x: Fe, odd: bool) -> Option<Affine> {
        let y = x.square().mul(x).add(Fe::from_u64(7)).sqrt()?;
        Some(Affine { x, y: if y.is_odd() == odd { y } else { y.negate() } })
    }

    /// The opposite point.
    pub fn negate(self) -> Affine {
        Affine { x: self.x, y: self.y.negate() }
    }

    /// lambda^power times the point: x times beta^power.
    pub fn endomorphism(self, power: u8) -> Affine {
        let x = match power % 3 {
            0 => self.x,
            1 => self.x.mul(Fe::BETA),
            _ => self.x.mul(Fe::BETA).mul(Fe::BETA),
        };
        Affine { x, y: self.y }
    }

    /// Twice the point. No point of the curve has order two, so y is not zero.
    pub fn double(self) -> Affine {
        let slope = self.x.square().mul(Fe::from_u64(3)).mul(self.y.add(self.y).invert());
        self.third(self.x, slope)
    }

    /// The sum, with the cases of equal points and of opposite points.
    pub fn plus(self, other: Affine) -> Point {
        if self.x == other.x {
            return (self.y == other.y).then(|| self.double());
        }
        let slope = other.y.sub(self.y).mul(other.x.sub(self.x).invert());
        Some(self.third(other.x, slope))
    }

    /// The sum's coordinates from the slope of the line through both points.
    fn third(self, other_x: Fe, slope: Fe) -> Affine {
        let x = slope.square().sub(self.x).sub(other_x);
        Affine { x, y: slope.mul(self.x.sub(x)).sub(self.y) }
    }
}

/// The sum of two points.
pub fn add(a: Point, b: Point) -> Point {
    match (a, b) {
        (None, p) | (p, None) => p,
        (Some(a), Some(b)) => a.plus(b),
    }
}

/// `point + other` for each of `others`, for one inversion in all; none if any of them has the same x as `point`.
pub fn add_all(point: Affine, others: &[Affine]) -> Option<Vec<Affine>> {
    let mut inverses: Vec<Fe> = others.iter().map(|o| o.x.sub(point.x)).collect();
    if inverses.iter().any(|d| d.is_zero()) {
        return None;
    }
    Fe::invert_all(&mut inverses);
    let sum = |(other, inverse): (&Affine, Fe)| point.third(other.x, other.y.sub(point.y).mul(inverse));
    Some(others.iter().zip(inverses).map(sum).collect())
}

/// `scalar * point`: double and add.
pub fn multiply(scalar: Scalar, point: Point) -> Point {
    scalar.bits().fold(None, |acc, bit| {
        let doubled = acc.map(Affine::double);
        if bit { add(doubled, point) } else { doubled }
    })
}
