//! Many affine additions for one inversion: the start points of many lanes, and the keys of many hits.

pub(crate) use warpsmith_curve::group::add_all;
use warpsmith_curve::group::{self, Point};
use warpsmith_curve::{Affine, Fe};

/// Sums pair by pair, with every case of addition, for one inversion in all.
pub(crate) fn add_pairs(pairs: &[(Point, Point)]) -> Vec<Point> {
    let apart = |pair: &(Point, Point)| match pair {
        (Some(a), Some(b)) => b.x.sub(a.x),
        _ => Fe::ZERO,
    };
    let mut inverses: Vec<Fe> = pairs.iter().map(apart).collect();
    Fe::invert_all(&mut inverses);
    let sums = pairs.iter().zip(inverses).map(|(&(a, b), inverse)| match (a, b) {
        (Some(a), Some(b)) if !inverse.is_zero() => Some(chord(a, b, inverse)),
        // Infinity, or points of one x.
        _ => group::add(a, b),
    });
    sums.collect()
}

/// a + b, given the inverse of the difference of their x.
fn chord(a: Affine, b: Affine, inverse: Fe) -> Affine {
    let slope = b.y.sub(a.y).mul(inverse);
    let x = slope.square().sub(a.x).sub(b.x);
    Affine { x, y: slope.mul(a.x.sub(x)).sub(a.y) }
}

/// `point, 2 point, .., count point`, for a point and a count whose multiples stay clear of infinity.
pub(crate) fn multiples(point: Affine, count: usize) -> Vec<Affine> {
    let mut out = Vec::with_capacity(count);
    if count > 0 {
        out.push(point);
    }
    while out.len() < count {
        // The last is n * point; n * point + i * point continues the list, and doubling it is the one case the
        // formula cannot do.
        let last = out[out.len() - 1];
        let more = (count - out.len()).min(out.len());
        let doubled = (more == out.len()).then(|| last.double());
        let sums = add_all(last, &out[..more - usize::from(doubled.is_some())])
            .expect("different small multiples of a point have different x");
        out.extend(sums);
        out.extend(doubled);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpsmith_curve::Scalar;

    #[test]
    fn pairs_add_up_in_every_case() {
        let (g, h) = (Some(Affine::G), Some(Affine::G.double()));
        let opposite = Some(Affine::G.negate());
        let cases =
            [(g, h), (h, g), (g, g), (g, opposite), (None, g), (g, None), (None, None), (h, opposite)];
        let expected: Vec<Point> = cases.iter().map(|&(a, b)| group::add(a, b)).collect();
        assert_eq!(add_pairs(&cases), expected);
        assert_eq!(add_pairs(&[]), []);
    }

    #[test]
    fn multiples_are_multiples() {
        for count in [0, 1, 2, 3, 7, 8, 9, 100] {
            let points = multiples(Affine::G, count);
            assert_eq!(points.len(), count);
            for (i, point) in points.iter().enumerate() {
                let scalar = Scalar::from_u64(i as u64 + 1);
                assert_eq!(group::multiply(scalar, Some(Affine::G)), Some(*point));
            }
        }
    }

    #[test]
    fn points_that_meet_are_refused() {
        assert!(add_all(Affine::G, &[Affine::G.double(), Affine::G.negate()]).is_none());
    }
}
