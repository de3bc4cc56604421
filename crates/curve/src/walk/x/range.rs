//! Ranges of leading bits, and what errors of computed bits leave of them.

use crate::field::leading::{WORD_ABOVE, WORD_BELOW};

/// An inclusive range of the top 64 bits of x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first accepted value.
    pub first: u64,
    /// The last accepted value, not below `first`.
    pub last: u64,
}

impl Range {
    /// Base and width of the computed words that may belong to a key in the range: accepted is
    /// `word - base <= width` modulo 2^32.
    pub(super) fn widened(self) -> (u32, u32) {
        let (first, last) = ((self.first >> 32) as u32, (self.last >> 32) as u32);
        (first.wrapping_sub(WORD_ABOVE), (last - first).saturating_add(WORD_ABOVE + WORD_BELOW))
    }

    /// Whether an x whose top 64 bits are within `slack` of `top` can lie in the range.
    pub(super) fn holds(self, top: u64, slack: u64) -> bool {
        top.wrapping_sub(self.first.wrapping_sub(slack)) <= (self.last - self.first).saturating_add(2 * slack)
    }

    /// Whether every x whose top 64 bits are within `slack` of `top` lies in the range.
    pub(super) fn surely_holds(self, top: u64, slack: u64) -> bool {
        let inside =
            |value: Option<u64>| value.is_some_and(|value| (self.first..=self.last).contains(&value));
        inside(top.checked_sub(slack)) && inside(top.checked_add(slack))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is sure lies in the range with every error, and nothing that might not is called sure.
    #[test]
    fn a_range_surely_holds_what_no_error_moves_out() {
        let end = u64::MAX;
        for (first, last) in
            [(0, end), (0, 0), (end, end), (0, 20), (end - 20, end), (1000, 1020), (5, end - 5)]
        {
            let range = Range { first, last };
            for slack in [0, 1, 7, 10, 11] {
                let edges = [0, first, last, end, first.wrapping_add(last) / 2];
                for top in edges
                    .into_iter()
                    .flat_map(|e| (0..=30).map(move |d: u64| e.wrapping_add(d).wrapping_sub(15)))
                {
                    let all = (0..=2 * slack).all(|d| {
                        let x = i128::from(top) - i128::from(slack) + i128::from(d);
                        (i128::from(first)..=i128::from(last)).contains(&x)
                    });
                    assert_eq!(
                        range.surely_holds(top, slack),
                        all,
                        "{top} in {first}..={last}, slack {slack}"
                    );
                    assert!(!all || range.holds(top, slack));
                }
            }
        }
    }
}
