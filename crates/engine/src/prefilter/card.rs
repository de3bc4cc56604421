//! From a pattern's filter to what a card tests: what its program is compiled with, and the words it is given.

use warpsmith_kernel::digest_filter::{self, Count, DigestTest, Term, Wanted};
use warpsmith_kernel::set::{self, Set};
use warpsmith_kernel::{XTest, abi};
use warpsmith_pattern::{Feature, Filter, Likeness};

use super::FEW_RANGES;

/// Intervals up to which the bitmap in shared memory lets little enough survive: at a thousand 0.8 % of all keys, and
/// writing them down costs less than reading a larger bitmap (docs/measurements/npub-gpu.md).
const NEAR_COUNT: usize = 1024;

/// The largest bitmap has this many bits, 16 MiB: an H200 makes 160 G random reads a second from that, 140 G from 32 MiB.
const MAX_BITS: u32 = 27;

/// The test of x that the orbit walk is compiled with.
pub(crate) fn x_test(filter: &Filter) -> XTest {
    match filter.top.len() {
        count @ 1..=FEW_RANGES => XTest::Range { count: count as u32 },
        count => XTest::Set { near: count <= NEAR_COUNT },
    }
}

/// Every test of x that the orbit walk may be compiled with.
pub(crate) fn x_tests() -> impl Iterator<Item = XTest> {
    let few = (1..=FEW_RANGES as u32).map(|count| XTest::Range { count });
    few.chain([true, false].map(|near| XTest::Set { near }))
}

/// What that test is given.
pub(crate) enum XWords {
    /// A few ranges, compared one by one.
    Ranges(Vec<u32>),
    /// Many, of which a second kernel settles what survives a bitmap.
    Set(Set),
}

impl XWords {
    /// For this filter.
    pub fn new(filter: &Filter) -> XWords {
        let intervals: Vec<(u64, u64)> = intervals(filter);
        match x_test(filter) {
            XTest::Range { .. } => XWords::Ranges(abi::range_words(&intervals)),
            XTest::Set { near } => {
                // About a key in two thousand survives, up to the largest bitmap: a million let 1.3 % survive.
                let bits = (intervals.len().max(1).ilog2() + 11).clamp(20, MAX_BITS);
                XWords::Set(set::build(&intervals, (!near).then_some(bits)))
            }
        }
    }

    /// The words themselves.
    pub fn words(&self) -> &[u32] {
        match self {
            XWords::Ranges(words) => words,
            XWords::Set(set) => &set.words,
        }
    }
}

/// The test of digests that a program which hashes is compiled with.
pub(crate) fn digest_test(filter: &Filter) -> DigestTest {
    digest_filter::shape(&wanted(filter))
}

/// What that test is given, for digests of so many words.
pub(crate) fn digest_words(filter: &Filter, digest_words: usize) -> Vec<u32> {
    digest_filter::build(&wanted(filter), digest_words).1
}

/// What a card is given for a search in which scores of at least this are wanted: the score to reach where each of them is told, or else
/// the one to beat.
pub(crate) fn bar(each: bool, at_least: u32) -> u32 {
    if each { at_least } else { at_least.saturating_sub(1) }
}

/// The same at the start of a search; 0 where none is scored.
pub(crate) fn first_bar(filter: &Filter) -> u32 {
    filter.score.as_ref().map_or(0, |wanted| bar(wanted.each, wanted.at_least))
}

fn intervals(filter: &Filter) -> Vec<(u64, u64)> {
    filter.top.iter().map(|i| (i.first, i.last)).collect()
}

/// The filter in the kernels' words.
fn wanted(filter: &Filter) -> Wanted {
    let words = |words: &[u64; 4]| std::array::from_fn(|i| (words[i / 2] >> (32 * (1 - i % 2))) as u32);
    let terms = filter.terms.iter().map(|term| Term {
        mask: words(&term.mask),
        value: words(&term.value),
        parities: term.parities.iter().map(|p| (words(&p.mask), p.odd)).collect(),
    });
    let score = filter.score.as_ref().map(|wanted| digest_filter::Score {
        parts: wanted.score.parts().iter().map(|part| (part.weight, count(part.feature))).collect(),
        each: wanted.each,
    });
    Wanted { intervals: intervals(filter), terms: terms.collect(), score }
}

/// A feature in the kernels' words.
fn count(feature: Feature) -> Count {
    let halves = |words: [u64; 3]| std::array::from_fn(|i| (words[i / 2] >> (32 * (1 - i % 2))) as u32);
    match feature {
        Feature::LeadingZeros => Count::LeadingZeros,
        Feature::Zeros => Count::Zeros,
        Feature::Leading(digit) => Count::Leading(digit),
        Feature::Count(digit) => {
            Count::Like { value: [0x1111_1111 * u32::from(digit); 5], mask: [u32::MAX; 5] }
        }
        Feature::Like(Likeness { mask, value }) => Count::Like { value: halves(value), mask: halves(mask) },
        Feature::Letters => Count::Letters,
        Feature::Digits => Count::Digits,
        Feature::Pairs => Count::Pairs,
        Feature::Run => Count::Run,
        Feature::Mirrored => Count::Mirrored,
        Feature::Uniswap => Count::Uniswap,
    }
}
