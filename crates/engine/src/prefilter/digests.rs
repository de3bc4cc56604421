//! From a pattern's filter to what the processor tests of digests, eight at a time.

use warpsmith_pattern::{Filter, Interval};

use super::FEW_RANGES;

/// The largest bitmap, four mebibytes: more would leave the second-level cache.
const MAX_LOG2: u32 = 25;

/// What a search looks for, made ready once for all its workers.
pub(crate) struct Sought {
    filter: Filter,
    /// Ranges of the top word by its leading bits, where they are many.
    bits: Option<Bits>,
}

impl Sought {
    pub fn new(filter: &Filter) -> Sought {
        let many = filter.top.len() > FEW_RANGES;
        Sought { filter: filter.clone(), bits: many.then(|| Bits::new(&filter.top)) }
    }

    /// What digests must be, exactly.
    #[inline]
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Where ranges reach, if they are too many to be compared one by one.
    #[inline]
    pub fn bits(&self) -> Option<&Bits> {
        self.bits.as_ref()
    }

    /// The ranges that are compared one by one: all or none.
    pub fn few(&self) -> &[Interval] {
        if self.bits.is_some() { &[] } else { &self.filter.top }
    }
}

/// One bit for each value of the leading bits: set where a range reaches.
pub(crate) struct Bits {
    words: Vec<u64>,
    shift: u32,
}

impl Bits {
    fn new(ranges: &[Interval]) -> Bits {
        // About one bit in 64 set where memory allows: most blocks then need no second look.
        let log2 = (ranges.len().ilog2() + 7).clamp(15, MAX_LOG2);
        let mut bits = Bits { words: vec![0; 1 << (log2 - 6)], shift: 64 - log2 };
        for range in ranges {
            for at in range.first >> bits.shift..=range.last >> bits.shift {
                bits.words[(at >> 6) as usize] |= 1 << (at & 63);
            }
        }
        bits
    }

    /// Whether a range may hold this top word.
    #[inline(always)]
    pub fn holds(&self, top: u64) -> bool {
        let at = top >> self.shift;
        self.words[(at >> 6) as usize] >> (at & 63) & 1 == 1
    }
}
