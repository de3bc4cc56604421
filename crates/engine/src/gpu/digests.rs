//! What the workers that hash share: filters of whole digests in the device's words, and scores.

use warpsmith_kernel::digest_filter::{self, Shape, Term, Wanted};
use warpsmith_pattern::{Filter, Score};

/// The filter as the device's text and buffer have it, for digests of so many words.
pub(super) fn filter(filter: &Filter, digest_words: usize) -> (Shape, Vec<u32>) {
    let words = |words: &[u64; 4]| std::array::from_fn(|i| (words[i / 2] >> (32 * (1 - i % 2))) as u32);
    let terms = filter.terms.iter().map(|term| Term {
        mask: words(&term.mask),
        value: words(&term.value),
        parities: term.parities.iter().map(|p| (words(&p.mask), p.odd)).collect(),
    });
    let score = filter.score.map(|wanted| match wanted.score {
        Score::LeadingZeros => digest_filter::Score::LeadingZeros,
        Score::Zeros => digest_filter::Score::Zeros,
        Score::Leading(digit) => digest_filter::Score::Leading(digit),
    });
    let intervals = filter.top.iter().map(|i| (i.first, i.last)).collect();
    digest_filter::build(&Wanted { intervals, terms: terms.collect(), score }, digest_words)
}

/// The score to beat at the start of a search; 0 where none is scored.
pub(super) fn beat(filter: &Filter) -> u32 {
    filter.score.map_or(0, |wanted| wanted.at_least.saturating_sub(1))
}
