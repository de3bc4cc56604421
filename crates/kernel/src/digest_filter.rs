//! The buffer of the filter of whole digests (`c/filter/digest.h`), and which parts of it the text needs.
//!
//! A digest is up to 256 bits, most significant first. Unlike the orbit walk's filters nothing is widened: the
//! device knows digests exactly.

/// Which parts the filter has; its values travel in the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DigestTest {
    /// Intervals compared one by one, at most four.
    pub ranges: u32,
    /// Whether there is a set of intervals.
    pub set: bool,
    /// Whether there are terms.
    pub terms: bool,
    /// How it is scored.
    pub score: Option<ScoreTest>,
}

/// How a digest is scored, as far as the text has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScoreTest {
    /// Which of the ways of counting.
    pub way: Way,
    /// Whether each digest that is good enough is told, or only what beats all before it.
    pub each: bool,
}

/// The ways of counting that have a text of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// How many bytes are zero.
    Zeros = 1,
    /// How many at the start.
    LeadingZeros = 2,
    /// How often a digit stands at the start.
    Leading = 3,
    /// A sum of parts.
    Parts = 4,
}

impl DigestTest {
    /// # Panics
    ///
    /// With more than four ranges, or without any part.
    pub(crate) fn defines(self) -> Vec<(&'static str, u32)> {
        assert!(self.ranges <= 4, "no filter of {} intervals", self.ranges);
        assert!(self != Self::default(), "a filter without parts");
        // The digit of a score and its parts are data: searches for different ones share a text.
        let (score, each) = self.score.map_or((0, false), |score| (score.way as u32, score.each));
        let (set, terms, each) = (self.set.into(), self.terms.into(), each.into());
        vec![("RANGES", self.ranges), ("SET", set), ("TERMS", terms), ("SCORE", score), ("EACH", each)]
    }
}

/// How good a digest is: so many times each of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// What is added up, each with its weight.
    pub parts: Vec<(u32, Count)>,
    /// Whether each digest that is good enough is told, or only what beats all before it.
    pub each: bool,
}

/// A number that a digest of five words has. Digits are hexadecimal, the first is the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// How many of its bytes are zero.
    Zeros,
    /// How many bytes at its start are zero.
    LeadingZeros,
    /// How often this digit, below 16, stands at its start.
    Leading(u8),
    /// How many digits are those of a value, under a mask of four bits each.
    Like {
        /// The digits.
        value: [u32; 5],
        /// Which of them count.
        mask: [u32; 5],
    },
    /// How many digits are letters.
    Letters,
    /// How many are none.
    Digits,
    /// How many bytes at its start have two equal digits.
    Pairs,
    /// The longest run of one digit.
    Run,
    /// How many digits mirror each other, from the middle on.
    Mirrored,
    /// The points of Uniswap's challenge.
    Uniswap,
}

impl Score {
    /// One count alone, of which the best is wanted.
    pub fn best(count: Count) -> Score {
        Score { parts: vec![(1, count)], each: false }
    }

    fn test(&self) -> ScoreTest {
        let way = match self.parts[..] {
            [(1, Count::Zeros)] => Way::Zeros,
            [(1, Count::LeadingZeros)] => Way::LeadingZeros,
            [(1, Count::Leading(_))] => Way::Leading,
            _ => Way::Parts,
        };
        ScoreTest { way, each: self.each }
    }
}

impl Count {
    /// The words of a part, but for the weight: see `c/filter/score.h`.
    fn words(self) -> (u32, [u32; 5], [u32; 5]) {
        let none = [0; 5];
        match self {
            Count::Zeros => (0, none, none),
            Count::LeadingZeros => (1, none, none),
            Count::Leading(digit) => (2, [digit_word(digit); 5], none),
            Count::Like { value, mask } => (3, value, mask),
            Count::Letters => (4, none, none),
            Count::Digits => (5, none, none),
            Count::Pairs => (6, none, none),
            Count::Run => (7, none, none),
            Count::Mirrored => (8, none, none),
            Count::Uniswap => (9, none, none),
        }
    }
}

/// A digit eight times.
fn digit_word(digit: u8) -> u32 {
    assert!(digit < 16, "{digit} is no hexadecimal digit");
    u32::from(digit) * 0x1111_1111
}

/// A conjunction: `digest & mask == value`, and every parity holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// The bits that are fixed, most significant word first.
    pub mask: [u32; 8],
    /// What they must be; zero outside `mask`.
    pub value: [u32; 8],
    /// Bits of which an odd number must be set (true), or an even one.
    pub parities: Vec<([u32; 8], bool)>,
}

/// What is wanted: what any part accepts, and with a score what reaches that besides.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Inclusive intervals of the top 64 bits. Order and overlaps do not matter.
    pub intervals: Vec<(u64, u64)>,
    /// Conjunctions.
    pub terms: Vec<Term>,
    /// What is scored: accepted is what beats everything before it in the launch, from a score on that the hit buffer's header gives
    /// ([`crate::abi::HITS_BEST`]), or each that reaches that score.
    pub score: Option<Score>,
}

/// Intervals compared one by one; more go through the set.
pub const FEW_RANGES: usize = 4;
const HEADER: usize = 16;
const TERM: usize = 18;

/// The filter's parts and its buffer, for digests of `digest_words` words.
///
/// # Panics
///
/// When an interval ends before it begins, or a digit is none.
pub fn build(wanted: &Wanted, digest_words: usize) -> (DigestTest, Vec<u32>) {
    let intervals = merged(&wanted.intervals);
    let shape = shape_of(intervals.len(), wanted);
    let mut words = vec![0; HEADER];
    if !shape.set {
        for (first, last) in intervals {
            words.extend(halves(first));
            words.extend(halves(last - first));
        }
    } else {
        words[0] = words.len() as u32;
        words.extend(set(&intervals));
    }
    match &wanted.score {
        Some(score) if score.test().way == Way::Parts => {
            (words[12], words[13]) = (words.len() as u32, score.parts.len() as u32);
            for (weight, count) in &score.parts {
                let (kind, value, mask) = count.words();
                words.extend([kind, *weight]);
                words.extend(value.iter().chain(&mask));
            }
        }
        Some(score) => {
            if let [(_, Count::Leading(digit))] = score.parts[..] {
                words[3] = digit_word(digit);
            }
        }
        None => {}
    }
    push_terms(&mut words, &wanted.terms, digest_words);
    (shape, words)
}

/// The filter's parts alone: what [`build`] would have the text compiled with.
///
/// # Panics
///
/// When an interval ends before it begins.
pub fn shape(wanted: &Wanted) -> DigestTest {
    shape_of(merged(&wanted.intervals).len(), wanted)
}

/// The parts of a filter of so many intervals that do not touch.
fn shape_of(intervals: usize, wanted: &Wanted) -> DigestTest {
    let few = intervals <= FEW_RANGES;
    let (terms, nothing_else) = (!wanted.terms.is_empty(), wanted.terms.is_empty() && wanted.score.is_none());
    DigestTest {
        ranges: if few { intervals as u32 } else { 0 },
        // What wants nothing at all is an empty set.
        set: !few || (intervals == 0 && nothing_else),
        terms,
        score: wanted.score.as_ref().map(Score::test),
    }
}

/// The shape and buffer of a filter of intervals alone, few or many of them, that go through the set.
pub fn build_set(intervals: &[(u64, u64)]) -> (DigestTest, Vec<u32>) {
    let mut words = vec![0; HEADER];
    words[0] = HEADER as u32;
    words.extend(set(&merged(intervals)));
    (DigestTest { set: true, ..DigestTest::default() }, words)
}

fn halves(value: u64) -> [u32; 2] {
    [(value >> 32) as u32, value as u32]
}

/// Sorted, disjoint, not adjacent.
fn merged(intervals: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut sorted = intervals.to_vec();
    sorted.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::with_capacity(sorted.len());
    for (first, last) in sorted {
        assert!(first <= last, "an interval from {first} to {last}");
        match out.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => out.push((first, last)),
        }
    }
    out
}

/// The set's section: a bitmap of which about one bit in 64 is set, up to 32 MiB, then buckets and intervals.
fn set(intervals: &[(u64, u64)]) -> Vec<u32> {
    let count_bits = intervals.len().next_power_of_two().trailing_zeros();
    let (bitmap_bits, bucket_bits) = ((count_bits + 6).clamp(10, 28), (count_bits + 1).min(24));
    let (shift, bucket_shift) = (32 - bitmap_bits, 32 - bucket_bits);
    let mut bitmap = vec![0u32; 1 << (bitmap_bits - 5)];
    for &(first, last) in intervals {
        for bit in (first >> 32 >> shift) as usize..=(last >> 32 >> shift) as usize {
            bitmap[bit >> 5] |= 1 << (bit & 31);
        }
    }
    let buckets =
        (0..1u64 << bucket_bits).map(|b| intervals.partition_point(|i| i.1 < b << bucket_shift << 32) as u32);
    let buckets_at = 6 + bitmap.len();
    let intervals_at = buckets_at + (1 << bucket_bits);
    let offset = |words: usize| u32::try_from(words).expect("a filter buffer of less than 16 GiB");
    let mut words = vec![shift, bucket_shift, 6, offset(buckets_at), offset(intervals_at)];
    words.push(offset(intervals.len()));
    words.extend(bitmap);
    words.extend(buckets);
    words.extend(intervals.iter().flat_map(|&(first, last)| [halves(first), halves(last)].concat()));
    words
}

/// Appends the sections of the terms: quick records, whole records, parities.
fn push_terms(words: &mut Vec<u32>, terms: &[Term], digest_words: usize) {
    // The pair of neighbouring words that decides most.
    let window = |term: &Term| {
        let ones = |w: usize| term.mask[w].count_ones() + term.mask[w + 1].count_ones();
        (0..digest_words - 1).rev().max_by_key(|&w| ones(w)).expect("a digest of two words or more")
    };
    let mut order: Vec<(usize, &Term)> = terms.iter().map(|term| (window(term), term)).collect();
    order.sort_by_key(|&(w, _)| w);
    for w in 0..8 {
        words[4 + w] = order.partition_point(|&(window, _)| window < w) as u32;
    }
    // Quick records are read as quads.
    words.resize(words.len().next_multiple_of(4), 0);
    words[1] = words.len() as u32;
    for &(w, term) in &order {
        words.extend([term.mask[w], term.mask[w + 1], term.value[w], term.value[w + 1]]);
    }
    words[2] = words.len() as u32;
    let mut parities = words.len() + TERM * terms.len();
    for &(_, term) in &order {
        words.extend(term.mask);
        words.extend(term.value);
        words.extend([parities as u32, term.parities.len() as u32]);
        parities += 9 * term.parities.len();
    }
    for (mask, odd) in order.iter().flat_map(|(_, term)| &term.parities) {
        words.extend(mask);
        words.push((*odd).into());
    }
}
