//! From a pattern's filter to the numbers the walk tests.

use warpsmith_curve::walk::{Bits, Equation, Range, Sieve, Term};
use warpsmith_pattern::{Filter, Interval};

/// More ranges than this go through the tables: each costs some twenty vector instructions an entry, the tables about
/// a hundred for any number.
const FEW_RANGES: usize = 4;

/// The first table, one mebibyte, has to stay in a second-level cache of two beside the walk's own. A million prefixes
/// ran at 0.69, 0.79 and 0.67 of the speed of one with 2^22, 2^23 and 2^24 bits (a core of a Xeon whose other half had
/// work, 2026-11-15).
const MAX_LOG2: u32 = 23;

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
    // 512 to 1024 bits a range where the cache allows, which next to nothing passes; never less than eight.
    let many = ranges.len().ilog2();
    let log2 = (many + 10).clamp(15, MAX_LOG2).max(many + 3).min(27);
    Sieve { ranges: Vec::new(), bits: Some(Bits::new(&ranges, log2)), terms }
}

fn range(interval: &Interval) -> Range {
    Range { first: interval.first, last: interval.last }
}
