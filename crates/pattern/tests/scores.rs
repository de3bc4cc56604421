//! Scores against a naive count on hex digits, their odds against counting and exact fractions, their filters against
//! the scores themselves.

use num_bigint::BigUint;
use proptest::prelude::*;
use warpsmith_chain::Digest;
use warpsmith_pattern::{Filter, Score};

const SCORES: [Score; 5] =
    [Score::LeadingZeros, Score::Zeros, Score::Leading(0), Score::Leading(7), Score::Leading(15)];

/// The score counted on the text.
fn naive(score: Score, bytes: &[u8; 20]) -> u32 {
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let pairs = || (0..20).map(|i| &text[2 * i..2 * i + 2]);
    let count = match score {
        Score::LeadingZeros => pairs().take_while(|pair| *pair == "00").count(),
        Score::Zeros => pairs().filter(|pair| *pair == "00").count(),
        Score::Leading(digit) => {
            text.chars().take_while(|c| *c == char::from_digit(digit.into(), 16).unwrap()).count()
        }
    };
    count as u32
}

/// Addresses with long runs and many zeros, which random ones hardly have.
fn address() -> impl Strategy<Value = [u8; 20]> {
    let byte = prop_oneof![4 => Just(0u8), 1 => Just(0x77), 1 => Just(0xff), 1 => Just(0x70), 1 => Just(0x0f), 2 => any::<u8>()];
    let mixed = proptest::array::uniform20(byte);
    let run = (any::<[u8; 20]>(), prop_oneof![Just(0u8), Just(0x77), Just(0xff)], 0usize..41).prop_map(
        |(mut bytes, fill, digits)| {
            bytes[..digits / 2].fill(fill);
            if digits % 2 == 1 {
                bytes[digits / 2] = fill & 0xf0 | bytes[digits / 2] & 0x0f;
            }
            bytes
        },
    );
    prop_oneof![mixed, run]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn scores_agree_with_a_naive_count_and_filters_with_scores(bytes in address()) {
        let digest = Digest::new(&bytes);
        for score in SCORES {
            let expected = naive(score, &bytes);
            prop_assert_eq!(score.of(&digest), expected, "{:?}", score);
            prop_assert!(expected <= score.max());
            for at_least in 0..=score.max() + 1 {
                let accepted = Filter::of_score(score, at_least).accepts(&digest.words());
                // Runs are tested on the top 64 bits: eight bytes, sixteen digits.
                let seen = match score {
                    Score::LeadingZeros => at_least.min(8),
                    Score::Leading(_) => at_least.min(16),
                    Score::Zeros => at_least,
                };
                prop_assert_eq!(accepted, at_least <= score.max() && expected >= seen, "{:?} {}", score, at_least);
            }
        }
    }
}

#[test]
fn the_extremes_have_the_extreme_scores() {
    let zero = Digest::new(&[0; 20]);
    let ones = Digest::new(&[0xff; 20]);
    assert_eq!(SCORES.map(|score| score.of(&zero)), [20, 20, 40, 0, 0]);
    assert_eq!(SCORES.map(|score| score.of(&ones)), [0, 0, 0, 0, 40]);
    assert_eq!(SCORES.map(Score::max), [20, 20, 40, 40, 40]);
    assert_eq!(Filter::of_score(SCORES[1], 21), Filter::default());
    assert!(!Filter::of_score(SCORES[0], 21).accepts(&[0; 4]));
    for (digit, value) in
        [('0', Some(0)), ('7', Some(7)), ('f', Some(15)), ('F', Some(15)), ('g', None), ('é', None)]
    {
        assert_eq!(Score::leading(digit), value.map(Score::Leading));
    }
}

/// The number of 20-byte strings with at least `k` zero bytes, over 256^20, as exact integers.
fn zeros_at_least(k: u32) -> f64 {
    let choose = |k: u32| (1..=k).fold(BigUint::from(1u8), |ways, i| ways * (20 - k + i) / i);
    let sum: BigUint = (k..=20).map(|i| choose(i) * BigUint::from(255u8).pow(20 - i)).sum();
    // 64 bits of the quotient are more than an f64 holds.
    let shift = 160 + 64 - sum.bits();
    let top: u64 = (sum << shift >> 160u32).try_into().unwrap();
    top as f64 * (-(shift as f64)).exp2()
}

#[test]
fn odds_are_exact() {
    for at_least in 0..=20 {
        let (odds, exact) = (Score::Zeros.odds(at_least), zeros_at_least(at_least));
        assert!((odds / exact - 1.0).abs() < 1e-13, "{at_least}: {odds} {exact}");
        assert_eq!(Score::LeadingZeros.odds(at_least), 2f64.powi(-8 * at_least as i32));
        assert_eq!(Score::Leading(3).odds(2 * at_least), 2f64.powi(-8 * at_least as i32));
    }
    assert_eq!(SCORES.map(|score| score.odds(0)), [1.0; 5]);
    assert_eq!(SCORES.map(|score| score.odds(score.max() + 1)), [0.0; 5]);
    // Counted: every pair of values for the first two bytes.
    let both: Vec<Digest> = (0..=u16::MAX)
        .map(|start| {
            let mut bytes = [1; 20];
            bytes[..2].copy_from_slice(&start.to_be_bytes());
            Digest::new(&bytes)
        })
        .collect();
    for (score, at_least) in [(Score::LeadingZeros, 1), (Score::Leading(7), 3), (Score::Leading(0), 2)] {
        let counted = both.iter().filter(|digest| score.of(digest) >= at_least).count();
        assert_eq!(counted as f64 / 65536.0, score.odds(at_least), "{score:?}");
    }
}
