//! The filter on digests of 20 or 32 bytes, eight at a time: a quick look that lets nothing wanted go by, then the
//! exact filter for what is left.

use std::sync::Arc;

use warpsmith_chain::Digest;
use warpsmith_hash::keccak::Word8;
use warpsmith_pattern::{Filter, Interval, Score, ScoreFilter, Words};

use crate::prefilter::Sought;
use crate::simd::Simd;
use crate::worker::{Hit, Spot};
use warpsmith_simd::compile_for;

/// Eight digests: words most significant first. Those of 20 bytes have three, the last in its upper half; those of 32
/// have four.
pub(super) type Digests<const WORDS: usize = 3> = [Word8; WORDS];

/// How a worker looks for it, eight digests at a time.
pub(super) struct DigestFilter {
    /// What the quick look is compiled for; the machine has it.
    simd: Simd,
    sought: Arc<Sought>,
    /// Ranges of the top word compared one by one: the filter's, where they are few, and that of a score.
    ranges: Vec<Interval>,
    /// The score to be reached by now, where digests are scored.
    score: Option<ScoreFilter>,
    /// The least number of zero bytes, where those are counted.
    zeros: Option<u32>,
}

impl DigestFilter {
    /// For an instruction set this machine must have.
    pub fn new(sought: Arc<Sought>, simd: Simd) -> DigestFilter {
        assert!(simd.is_available(), "this machine has no {simd}");
        let (ranges, score) = (sought.few().to_vec(), sought.filter().score);
        let mut digest_filter = DigestFilter { simd, sought, ranges, score, zeros: None };
        if let Some(ScoreFilter { at_least, .. }) = score {
            digest_filter.raise(at_least);
        }
        digest_filter
    }

    /// From now on only scores of at least this pass; where nothing is scored, nothing changes.
    pub fn raise(&mut self, at_least: u32) {
        let Some(wanted) = &mut self.score else { return };
        wanted.at_least = at_least;
        match wanted.score {
            Score::Zeros => self.zeros = Some(at_least),
            // A run of digits is a range of the top word; it comes after the filter's own.
            run => {
                self.ranges.truncate(self.sought.few().len());
                self.ranges.extend(Filter::of_score(run, at_least).top);
            }
        }
    }

    /// Adds the digests that pass to `hits`; of those that are scored only the best, if it beats all before it.
    /// Bit i of `live` is set where there is an i-th digest, which then belongs to `spot(i)`.
    #[inline]
    pub fn look<const WORDS: usize>(
        &self,
        digests: &Digests<WORDS>,
        live: u8,
        spot: impl Fn(usize) -> Spot,
        hits: &mut Vec<Hit>,
    ) {
        let passed = self.may_pass(digests);
        if u64::from_le_bytes(passed) != 0 {
            self.look_again(digests, live, passed, spot, hits);
        }
    }

    /// 1 for each digest that may pass, 0 for those that cannot. The loops over eight become vectors where the compiler
    /// may use them; without, they took a twentieth of a search.
    #[inline]
    fn may_pass<const WORDS: usize>(&self, digests: &Digests<WORDS>) -> [u8; 8] {
        compile_for! { avx512
            unsafe fn avx512<const WORDS: usize>(filter: &DigestFilter, digests: &Digests<WORDS>) -> [u8; 8] {
                filter.may_pass_here(digests)
            }
        }
        compile_for! { avx2
            unsafe fn avx2<const WORDS: usize>(filter: &DigestFilter, digests: &Digests<WORDS>) -> [u8; 8] {
                filter.may_pass_here(digests)
            }
        }
        // SAFETY: the machine has the instruction set.
        unsafe {
            match self.simd {
                #[cfg(target_arch = "x86_64")]
                Simd::Avx512Ifma | Simd::Avx512 => avx512(self, digests),
                #[cfg(target_arch = "x86_64")]
                Simd::Avx2 | Simd::AvxIfma => avx2(self, digests),
                _ => self.may_pass_here(digests),
            }
        }
    }

    #[inline(always)]
    fn may_pass_here<const WORDS: usize>(&self, digests: &Digests<WORDS>) -> [u8; 8] {
        let mut passed = [0; 8];
        for range in &self.ranges {
            let width = range.last - range.first;
            for lane in 0..8 {
                passed[lane] |= u8::from(digests[0][lane].wrapping_sub(range.first) <= width);
            }
        }
        if let Some(bits) = self.sought.bits() {
            for lane in 0..8 {
                passed[lane] |= u8::from(bits.holds(digests[0][lane]));
            }
        }
        for term in &self.sought.filter().terms {
            for lane in 0..8 {
                let wrong =
                    (0..WORDS).fold(0, |wrong, i| wrong | (digests[i][lane] & term.mask[i]) ^ term.value[i]);
                passed[lane] |= u8::from(wrong == 0);
            }
        }
        if let Some(zeros) = self.zeros {
            for lane in 0..8 {
                // The lower half of the last word is no part of the digest.
                let padded = digests[2][lane] | u64::from(u32::MAX);
                let flags = zero_bytes(digests[0][lane]) + zero_bytes(digests[1][lane]) + zero_bytes(padded);
                // Eight counts of at most three each; the product adds them up in its top byte.
                let count = flags.wrapping_mul(0x0101_0101_0101_0101) >> 56;
                passed[lane] |= u8::from(count >= u64::from(zeros));
            }
        }
        passed
    }

    #[cold]
    #[inline(never)]
    fn look_again<const WORDS: usize>(
        &self,
        digests: &Digests<WORDS>,
        live: u8,
        passed: [u8; 8],
        spot: impl Fn(usize) -> Spot,
        hits: &mut Vec<Hit>,
    ) {
        for lane in (0..8).filter(|&i| passed[i] == 1 && live >> i & 1 == 1) {
            let words = words(digests, lane);
            if !self.sought.filter().accepts_unscored(&words)
                && !self.score.is_some_and(|s| s.accepts(&words))
            {
                continue;
            }
            let score = self.score.map_or(0, |wanted| wanted.score.of_words(&words));
            if self.score.is_some() {
                if hits.first().is_some_and(|best| best.score >= score) {
                    continue;
                }
                hits.clear();
            }
            hits.push(Hit { spot: spot(lane), digest: Some(digest::<WORDS>(&words)), score });
        }
    }
}

/// 1 in each byte of the result where the word has a zero byte, else 0.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // The sum reaches the top bit of a byte unless its low seven bits are zero; no byte carries into the next.
    !(((word & LOW) + LOW) | word | LOW) >> 7
}

/// One of the digests as a filter reads it.
#[inline]
fn words<const WORDS: usize>(digests: &Digests<WORDS>, lane: usize) -> Words {
    std::array::from_fn(|i| if i < WORDS { digests[i][lane] } else { 0 })
}

/// The digest in these words.
fn digest<const WORDS: usize>(words: &Words) -> Digest {
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    Digest::new(&bytes[..if WORDS == 3 { 20 } else { 32 }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd;
    use warpsmith_pattern::{Parity, Term};

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *state ^ *state >> 29
    }

    fn sought(filter: &Filter) -> Arc<Sought> {
        Arc::new(Sought::new(filter))
    }

    /// Digests that are near to everything the filters below test: random words, many zero bytes, edges.
    fn digests(state: &mut u64, edges: &[u64]) -> Digests {
        let mut digests = [[0; 8]; 3];
        for word in 0..3 {
            for lane in 0..8 {
                let mut value = random(state);
                for byte in 0..8 {
                    if random(state).is_multiple_of(3) {
                        value &= !(0xff << (8 * byte));
                    }
                }
                if word == 0 && random(state).is_multiple_of(2) {
                    value = edges[random(state) as usize % edges.len()];
                }
                digests[word][lane] = if word == 2 { value & !u64::from(u32::MAX) } else { value };
            }
        }
        digests
    }

    /// All that passes, in a search without scores.
    fn passing(digest_filter: &DigestFilter, digests: &Digests, live: u8) -> Vec<usize> {
        let mut hits = Vec::new();
        digest_filter.look(digests, live, |lane| Spot::Salt(lane as u64), &mut hits);
        let lane = |hit: &Hit| match hit.spot {
            Spot::Salt(lane) => lane as usize,
            Spot::Key(_) => unreachable!("salts were searched"),
        };
        for hit in &hits {
            let told = hit.digest.expect("a digest").words();
            assert_eq!(told, [digests[0][lane(hit)], digests[1][lane(hit)], digests[2][lane(hit)], 0]);
        }
        hits.iter().map(lane).collect()
    }

    #[test]
    fn what_passes_is_what_the_filter_accepts() {
        let ranges = |n: u64| -> Vec<Interval> {
            let width = u64::MAX / (4 * n);
            (0..n)
                .map(|i| (4 * i * width, (4 * i + 1) * width))
                .map(|(first, last)| Interval { first, last })
                .collect()
        };
        let term = |mask: [u64; 3], value: [u64; 3], parities| {
            let (mut m, mut v) = ([0; 4], [0; 4]);
            m[..3].copy_from_slice(&mask);
            v[..3].copy_from_slice(&value);
            Term { mask: m, value: v, parities }
        };
        let suffix = term([0, 0, 0xf << 32], [0, 0, 5 << 32], vec![]);
        let middle = term([0xff, 0xff << 56, 0], [0, 0, 0], vec![]);
        let odd = term([1, 0, 0], [1, 0, 0], vec![Parity { mask: [0, 3, 0, 0], odd: true }]);
        let filters = [
            Filter::default(),
            Filter { top: ranges(1), ..Filter::default() },
            Filter { top: vec![Interval { first: 0, last: u64::MAX }], ..Filter::default() },
            Filter { top: vec![Interval { first: u64::MAX, last: u64::MAX }], ..Filter::default() },
            Filter { top: ranges(4), ..Filter::default() },
            Filter { top: ranges(5), ..Filter::default() },
            Filter { top: ranges(3000), ..Filter::default() },
            Filter { terms: vec![suffix.clone()], ..Filter::default() },
            Filter { top: ranges(9), terms: vec![suffix, middle, odd], score: None },
        ];
        let mut state = 1;
        let simds = || simd::available();
        for (filter, simd) in
            filters.into_iter().flat_map(|filter| simds().map(move |simd| (filter.clone(), simd)))
        {
            let digest_filter = DigestFilter::new(sought(&filter), simd);
            let mut edges = vec![0, 1, u64::MAX, u64::MAX - 1];
            for range in &filter.top {
                let Interval { first, last } = *range;
                edges.extend([first, last, first.wrapping_sub(1), last.wrapping_add(1)]);
            }
            for _ in 0..400 {
                let digests = digests(&mut state, &edges);
                let live = random(&mut state) as u8;
                let words = |lane: usize| [digests[0][lane], digests[1][lane], digests[2][lane], 0];
                let expected: Vec<usize> =
                    (0..8).filter(|&i| live >> i & 1 == 1 && filter.accepts(&words(i))).collect();
                assert_eq!(passing(&digest_filter, &digests, live), expected, "{filter:?} {digests:x?}");
            }
        }
    }

    #[test]
    fn all_four_words_of_long_digests_count() {
        let mut state = 3;
        let term = Term {
            mask: [0, 0, 0, 0xff],
            value: [0, 0, 0, 0x12],
            parities: vec![Parity { mask: [1, 1, 1, 1 << 63], odd: true }],
        };
        let filter = Filter { terms: vec![term], ..Filter::default() };
        for simd in simd::available() {
            let (digest_filter, mut met) = (DigestFilter::new(sought(&filter), simd), 0);
            for _ in 0..400 {
                let mut digests: Digests<4> = [[0; 8]; 4];
                digests.iter_mut().flatten().for_each(|word| *word = random(&mut state));
                for lane in 0..4 {
                    digests[3][lane] = digests[3][lane] & !0xff | 0x12;
                }
                let live = random(&mut state) as u8;
                let mut hits = Vec::new();
                digest_filter.look(&digests, live, |lane| Spot::Salt(lane as u64), &mut hits);
                let words = |lane: usize| digests.map(|word| word[lane]);
                let expected: Vec<_> = (0..8)
                    .filter(|&lane| live >> lane & 1 == 1 && filter.accepts(&words(lane)))
                    .map(|lane| (Spot::Salt(lane as u64), words(lane)))
                    .collect();
                let told = |hit: &Hit| {
                    let digest = hit.digest.expect("a digest");
                    assert_eq!(digest.as_bytes().len(), 32);
                    (hit.spot, digest.words())
                };
                assert_eq!(hits.iter().map(told).collect::<Vec<_>>(), expected, "{simd}");
                met += hits.len();
            }
            assert!(met > 100, "{met}");
        }
    }

    #[test]
    fn of_scores_the_best_is_kept_and_what_was_raised_is_not_reached_by_less() {
        let mut state = 2;
        let edges = [0, 0x7777_7777_7777_7777, 0x7777_7700_0000_0000, 1 << 40, u64::MAX];
        for score in [Score::LeadingZeros, Score::Zeros, Score::Leading(7), Score::Leading(0)] {
            for at_least in [1, 2, 5, 9, 17, score.max()] {
                // Raised, not made: both must be the same.
                let scored = Filter { score: Some(ScoreFilter { score, at_least: 1 }), ..Filter::default() };
                let mut digest_filter = DigestFilter::new(sought(&scored), simd::detect());
                digest_filter.raise(at_least);
                let (mut hits, mut best) = (Vec::new(), 0);
                for round in 0..300 {
                    let mut digests = digests(&mut state, &edges);
                    if round == 200 {
                        // The highest score there is, in the last lane.
                        let all = if score == Score::Leading(7) { 0x7777_7777_7777_7777 } else { 0 };
                        for word in &mut digests {
                            word[7] = all;
                        }
                        digests[2][7] &= !u64::from(u32::MAX);
                    }
                    for lane in 0..8 {
                        let of = score.of_words(&[digests[0][lane], digests[1][lane], digests[2][lane], 0]);
                        best = best.max(if of >= at_least { of } else { 0 });
                    }
                    digest_filter.look(
                        &digests,
                        u8::MAX,
                        |lane| Spot::Salt(8 * round + lane as u64),
                        &mut hits,
                    );
                    assert_eq!(
                        hits.first().map_or(0, |hit| hit.score),
                        best,
                        "{score} {at_least} {digests:x?}"
                    );
                    assert!(hits.len() <= 1);
                }
                assert_eq!(best, score.max());
            }
        }
    }

    #[test]
    fn zero_bytes_are_told_from_all_others() {
        for byte in 0..=255u64 {
            for at in 0..8 {
                for rest in [0x0101_0101_0101_0101, u64::MAX, 0x8080_8080_8080_8080] {
                    let word = rest & !(0xff << (8 * at)) | byte << (8 * at);
                    assert_eq!(zero_bytes(word), u64::from(byte == 0) << (8 * at), "{word:x}");
                }
            }
        }
        assert_eq!(zero_bytes(0), 0x0101_0101_0101_0101);
    }
}
