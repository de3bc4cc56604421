//! From a pattern's filter to the numbers the walk tests.

use warpsmith_curve::walk::{Bits, Equation, Range, Sieve, Term};
use warpsmith_pattern::{Filter, Interval};

use super::FEW_RANGES;

/// A first table of as many bits a range as [`ROOMY`] lets next to nothing pass, which is fastest as long as the table is no
/// larger than a quarter of a mebibyte. A larger one keeps the walk's own numbers out of a second-level cache that others
/// use too, and a smaller one that lets some percent pass is then faster (docs/measurements/npub-cpu.md).
const ROOMY_LOG2: u32 = 21;
const ROOMY: usize = 128;

/// Bits a range a table has at least: with fewer too many keys pass for what the walk does with them.
const LEAST: usize = 7;

/// The sieve that accepts what the filter accepts.
pub(crate) fn sieve(filter: &Filter) -> Sieve {
    let ranges: Vec<Range> = filter.top.iter().map(range).collect();
    let terms = filter
        .terms
        .iter()
        .map(|t| Term {
            mask: t.mask,
            value: t.value,
            equations: t.parities.iter().map(|p| Equation { mask: p.mask, odd: p.odd }).collect(),
        })
        .collect();
    if ranges.len() <= FEW_RANGES {
        return Sieve { ranges, bits: None, terms };
    }
    let log2 = table_log2(ranges.len());
    Sieve { ranges: Vec::new(), bits: Some(Bits::new(&ranges, log2)), terms }
}

/// How many bits the first table has for so many ranges, as a power of two: up to 1024 a range as long as there is room.
fn table_log2(ranges: usize) -> u32 {
    let roomy = (ranges.ilog2() + 10).clamp(15, ROOMY_LOG2);
    if ranges * ROOMY <= 1 << roomy { roomy } else { (ranges * LEAST).next_power_of_two().ilog2().min(27) }
}

fn range(interval: &Interval) -> Range {
    Range { first: interval.first, last: interval.last }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_roomy_or_small() {
        for (ranges, log2) in
            [(5, 15), (32, 15), (1000, 19), (4096, 21), (16_384, 21), (16_385, 17), (65_536, 19)]
        {
            assert_eq!(table_log2(ranges), log2, "{ranges} ranges");
        }
        for (ranges, log2) in
            [(500_000, 22), (1_000_000, 23), (1 << 20, 23), (2_000_000, 24), (100_000_000, 27)]
        {
            assert_eq!(table_log2(ranges), log2, "{ranges} ranges");
        }
    }
}
