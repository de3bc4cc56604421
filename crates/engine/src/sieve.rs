//! From a pattern's filter to the numbers the walk tests.

use warpsmith_curve::walk::{Bits, Equation, Range, Sieve, Term};
use warpsmith_pattern::{Filter, Interval};

/// More ranges than this go through the bitmap: each costs some thirty vector instructions an entry, the bitmap
/// about a hundred and fifty for any number.
const FEW_RANGES: usize = 4;

/// The largest bitmap, four mebibytes. A million prefixes ran at 51, 72, 83, 66 M keys/s with 2^23 to 2^26 bits
/// (Sapphire Rapids, 2026-11): a smaller one lets too much pass, a larger one leaves the second-level cache.
const MAX_LOG2: u32 = 25;

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
    // About one bit in 64 set where memory allows: most entries then pass no key on.
    let log2 = (ranges.len().ilog2() + 7).clamp(15, MAX_LOG2);
    Sieve { ranges: Vec::new(), bits: Some(Bits::new(&ranges, log2)), terms }
}

fn range(interval: &Interval) -> Range {
    Range { first: interval.first, last: interval.last }
}
