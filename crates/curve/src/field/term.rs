//! Conditions on all bits of an element: what a search that forms all of x tests.

/// The parity of the bits of x under a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equation {
    /// The bits that take part; words of x, most significant first.
    pub mask: [u64; 4],
    /// Whether an odd number of them must be set.
    pub odd: bool,
}

/// A conjunction: `x & mask == value` and every equation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The bits that are fixed; words of x, most significant first.
    pub mask: [u64; 4],
    /// Their values; zero outside `mask`.
    pub value: [u64; 4],
    /// The equations.
    pub equations: Vec<Equation>,
}

impl Term {
    pub(crate) fn accepts(&self, x: &[u64; 4]) -> bool {
        (0..4).all(|i| (x[i] ^ self.value[i]) & self.mask[i] == 0)
            && self.equations.iter().all(|e| {
                let bits = (0..4).fold(0, |acc, i| acc ^ x[i] & e.mask[i]);
                (bits.count_ones() % 2 == 1) == e.odd
            })
    }
}
