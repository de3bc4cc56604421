//! The filter on digests of 20 or 32 bytes, eight at a time: a quick look that lets nothing wanted go by, then the
//! exact filter for what is left.

use std::sync::Arc;

use warpsmith_chain::Digest;
use warpsmith_hash::keccak::Word8;
use warpsmith_pattern::{Feature, Filter, Interval, ScoreFilter, Words};

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
    /// The score to be reached by now, where digests are scored.
    score: Option<ScoreFilter>,
    /// The same as a range of the top word, where a run of digits at the start is scored.
    run: Option<Interval>,
}

impl DigestFilter {
    /// For an instruction set this machine must have.
    pub fn new(sought: Arc<Sought>, simd: Simd) -> DigestFilter {
        assert!(simd.is_available(), "this machine has no {simd}");
        let score = sought.filter().score.clone();
        let at_least = score.as_ref().map_or(0, |score| score.at_least);
        let mut digest_filter = DigestFilter { simd, sought, score, run: None };
        digest_filter.raise(at_least);
        digest_filter
    }

    /// From now on only scores of at least this pass; where nothing is scored, nothing changes.
    pub fn raise(&mut self, at_least: u32) {
        let Some(wanted) = &mut self.score else { return };
        wanted.at_least = at_least;
        let run = wanted.score.feature().and_then(|feature| Filter::of_run(feature, at_least));
        self.run = run.and_then(|filter| filter.top.first().copied());
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
        let filter = self.sought.filter();
        // Without ranges and terms all digests are scored.
        let mut passed = [u8::from(!filter.is_parted() && self.score.is_some()); 8];
        for range in self.sought.few() {
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
        for term in &filter.terms {
            for lane in 0..8 {
                let wrong =
                    (0..WORDS).fold(0, |wrong, i| wrong | (digests[i][lane] & term.mask[i]) ^ term.value[i]);
                passed[lane] |= u8::from(wrong == 0);
            }
        }
        if let Some(range) = self.run {
            let width = range.last - range.first;
            for lane in 0..8 {
                passed[lane] &= u8::from(digests[0][lane].wrapping_sub(range.first) <= width);
            }
        } else if let Some(wanted) = &self.score
            && u64::from_le_bytes(passed) != 0
        {
            let mut scores = [0; 8];
            for part in wanted.score.parts() {
                let counts = counts(part.feature, digests);
                for lane in 0..8 {
                    scores[lane] += part.weight * counts[lane];
                }
            }
            for lane in 0..8 {
                passed[lane] &= u8::from(scores[lane] >= wanted.at_least);
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
            let filter = self.sought.filter();
            let is_scored_alone = self.score.is_some() && !filter.is_parted();
            if !is_scored_alone && !filter.accepts_unscored(&words) {
                continue;
            }
            let score = self.score.as_ref().map_or(0, |wanted| wanted.score.of_words(&words));
            if let Some(wanted) = &self.score {
                if score < wanted.at_least {
                    continue;
                }
                if !wanted.each {
                    if hits.first().is_some_and(|best| best.score >= score) {
                        continue;
                    }
                    hits.clear();
                }
            }
            hits.push(Hit { spot: spot(lane), digest: Some(digest::<WORDS>(&words)), score });
        }
    }
}

/// A feature of eight digests. What it is is settled outside the loop, which so becomes vectors where it can.
#[inline(always)]
fn counts<const WORDS: usize>(feature: Feature, digests: &Digests<WORDS>) -> [u32; 8] {
    #[inline(always)]
    fn each<const WORDS: usize>(digests: &Digests<WORDS>, count: impl Fn(&Words) -> u32) -> [u32; 8] {
        std::array::from_fn(|lane| count(&words(digests, lane)))
    }
    match feature {
        Feature::LeadingZeros => each(digests, |words| Feature::LeadingZeros.of_words(words)),
        Feature::Zeros => each(digests, |words| Feature::Zeros.of_words(words)),
        Feature::Leading(digit) => each(digests, |words| Feature::Leading(digit).of_words(words)),
        Feature::Count(digit) => each(digests, |words| Feature::Count(digit).of_words(words)),
        Feature::Like(like) => each(digests, |words| Feature::Like(like).of_words(words)),
        Feature::Letters => each(digests, |words| Feature::Letters.of_words(words)),
        Feature::Digits => each(digests, |words| Feature::Digits.of_words(words)),
        Feature::Pairs => each(digests, |words| Feature::Pairs.of_words(words)),
        Feature::Run => each(digests, |words| Feature::Run.of_words(words)),
        Feature::Mirrored => each(digests, |words| Feature::Mirrored.of_words(words)),
        Feature::Uniswap => each(digests, |words| Feature::Uniswap.of_words(words)),
    }
}

/// One of the digests as a filter reads it.
#[inline(always)]
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
    use warpsmith_pattern::{Parity, SCORES, Score, Term};

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

    /// Every kind of score, and a sum.
    fn scores() -> Vec<Score> {
        let sum = Score::parse("3*zeros+2*letters+run").expect("a score");
        let runs = [Feature::Leading(0), Feature::Leading(15)].map(Score::from);
        SCORES.iter().map(|kind| Score::from(kind.feature)).chain(runs).chain([sum]).collect()
    }

    #[test]
    fn of_scores_the_best_is_kept_and_what_was_raised_is_not_reached_by_less() {
        let mut state = 2;
        let edges = [0, 0x7777_7777_7777_7777, 0x7777_7700_0000_0000, 1 << 40, u64::MAX];
        for (score, simd) in
            scores().iter().flat_map(|score| simd::available().map(move |simd| (score, simd)))
        {
            for at_least in [1, 2, 5, 9, 17, score.max()] {
                // Raised, not made: both must be the same.
                let mut digest_filter = DigestFilter::new(sought(&Filter::scored(score.clone(), 1)), simd);
                digest_filter.raise(at_least);
                let (mut hits, mut best) = (Vec::new(), 0);
                for round in 0..100 {
                    let mut digests = digests(&mut state, &edges);
                    if round == 70 {
                        // The highest score there is, in the last lane.
                        let all =
                            if score.feature() == Some(Feature::Leading(7)) { u64::MAX / 15 * 7 } else { 0 };
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
                    let told = hits.first().map_or(0, |hit| hit.score);
                    assert_eq!(told, best, "{score} {at_least} {digests:x?}");
                    assert!(hits.len() <= 1);
                }
            }
        }
    }

    /// Where each is wanted, all that fit and score are told, and nothing else.
    #[test]
    fn each_that_fits_and_scores_is_told() {
        let mut state = 5;
        let low = Term { mask: [1, 0, 0, 0], value: [1, 0, 0, 0], parities: Vec::new() };
        let range = Interval { first: 1 << 62, last: 3 << 62 };
        let many = (0..9).map(|i| Interval { first: i << 60, last: (i << 60) + (1 << 59) }).collect();
        let beside = [
            Filter::default(),
            Filter { top: vec![range], ..Filter::default() },
            Filter { top: many, ..Filter::default() },
            Filter { top: vec![range], terms: vec![low], ..Filter::default() },
        ];
        let edges = [0, 0x7777_7777_7777_7777, 1 << 62, u64::MAX];
        for (score, simd) in
            scores().iter().flat_map(|score| simd::available().map(move |simd| (score, simd)))
        {
            for (beside, at_least) in
                beside.iter().flat_map(|beside| [0, 1, 4, 18].map(|least| (beside, least)))
            {
                let wanted = ScoreFilter { score: score.clone(), at_least, each: true };
                let filter = Filter { score: Some(wanted), ..beside.clone() };
                let digest_filter = DigestFilter::new(sought(&filter), simd);
                for _ in 0..60 {
                    let digests = digests(&mut state, &edges);
                    let live = random(&mut state) as u8;
                    let words = |lane: usize| [digests[0][lane], digests[1][lane], digests[2][lane], 0];
                    let expected: Vec<usize> =
                        (0..8).filter(|&i| live >> i & 1 == 1 && filter.accepts(&words(i))).collect();
                    assert_eq!(passing(&digest_filter, &digests, live), expected, "{filter:?} {digests:x?}");
                }
            }
        }
    }
}
