//! Scores against a naive count on hex digits, their odds against counting and exact fractions, their filters against
//! the scores themselves.

use num_bigint::BigUint;
use proptest::prelude::*;
use warpsmith_chain::{Digest, find};
use warpsmith_pattern::{Feature, Filter, Options, Part, Ranking, SCORES, Score, ScoreError, compile};

/// Every kind of score, those that take a digit with several.
fn features() -> Vec<Feature> {
    let digits = [0, 4, 7, 15].into_iter().flat_map(|digit| [Feature::Leading(digit), Feature::Count(digit)]);
    SCORES.iter().map(|kind| kind.feature).chain(digits).collect()
}

/// The feature counted on the text.
fn naive(feature: Feature, text: &str) -> u32 {
    let pairs = || (0..20).map(|i| &text[2 * i..2 * i + 2]);
    let digit = |digit: u8| char::from_digit(digit.into(), 16).unwrap();
    let reversed: String = text.chars().rev().collect();
    let count = match feature {
        Feature::LeadingZeros => pairs().take_while(|pair| *pair == "00").count(),
        Feature::Zeros => pairs().filter(|pair| *pair == "00").count(),
        Feature::Leading(wanted) => text.chars().take_while(|c| *c == digit(wanted)).count(),
        Feature::Count(wanted) => text.chars().filter(|c| *c == digit(wanted)).count(),
        Feature::Letters => text.chars().filter(char::is_ascii_alphabetic).count(),
        Feature::Digits => text.chars().filter(char::is_ascii_digit).count(),
        Feature::Pairs => pairs().take_while(|pair| pair[..1] == pair[1..]).count(),
        Feature::Run => {
            let is_there =
                |n: &usize| "0123456789abcdef".chars().any(|c| text.contains(&String::from(c).repeat(*n)));
            (1..=40).take_while(is_there).count()
        }
        // A palindrome in the middle, of so many digits on either side.
        Feature::Mirrored => {
            let is_palindrome = |n: &usize| text[20 - n..20 + n] == reversed[20 - n..20 + n];
            (1..=20).take_while(is_palindrome).count()
        }
        Feature::Like(_) => {
            let wanted = feature.name();
            let wanted = wanted.strip_prefix("like:").unwrap();
            wanted.chars().zip(text.chars()).filter(|(wanted, c)| wanted == c).count()
        }
        Feature::Uniswap => {
            let rest = text.trim_start_matches('0');
            let zeros = 40 - rest.len();
            let fours = rest.len() - rest.trim_start_matches('4').len();
            let mut points = 10 * zeros + text.matches('4').count();
            if fours >= 4 {
                points += 40;
            }
            if fours == 4 {
                points += 20;
            }
            if text.ends_with("4444") {
                points += 20;
            }
            if fours == 0 { 0 } else { points }
        }
    };
    count as u32
}

fn text_of(bytes: &[u8; 20]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Addresses with long runs, many zeros and fours, mirrors and pairs, which random ones hardly have.
fn address() -> impl Strategy<Value = [u8; 20]> {
    let byte = prop_oneof![
        4 => Just(0u8), 1 => Just(0x77), 1 => Just(0xff), 1 => Just(0x70), 1 => Just(0x0f), 2 => Just(0x44), 2 => any::<u8>()
    ];
    let mixed = proptest::array::uniform20(byte);
    let run = (any::<[u8; 20]>(), prop_oneof![Just(0u8), Just(0x77), Just(0xff), Just(0x44)], 0usize..41)
        .prop_map(|(mut bytes, fill, digits)| {
            bytes[..digits / 2].fill(fill);
            if digits % 2 == 1 {
                bytes[digits / 2] = fill & 0xf0 | bytes[digits / 2] & 0x0f;
            }
            bytes
        });
    let mirror = (any::<[u8; 20]>(), 0usize..11).prop_map(|(mut bytes, half)| {
        for i in 0..half {
            bytes[10 + i] = bytes[9 - i].rotate_left(4);
        }
        bytes
    });
    // Zeros, then fours, then what comes.
    let challenge =
        (any::<[u8; 20]>(), 0usize..40, 0usize..8, any::<bool>()).prop_map(|(bytes, zeros, fours, ends)| {
            let mut text = text_of(&bytes);
            text.replace_range(..zeros, &"0".repeat(zeros));
            let to = (zeros + fours).min(40);
            text.replace_range(zeros..to, &"4".repeat(to - zeros));
            if ends {
                text.replace_range(36.., "4444");
            }
            std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
        });
    prop_oneof![mixed, run, mirror, challenge]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn scores_agree_with_a_naive_count_and_filters_with_scores(bytes in address()) {
        let (digest, text) = (Digest::new(&bytes), text_of(&bytes));
        for feature in features() {
            let (score, expected) = (Score::from(feature), naive(feature, &text));
            prop_assert_eq!(score.of(&digest), expected, "{:?} {}", feature, text);
            prop_assert!(expected <= score.max());
            for at_least in [0, 1, expected, expected + 1, score.max(), score.max() + 1] {
                let scored = Filter::scored(score.clone(), at_least);
                prop_assert_eq!(scored.accepts(&digest.words()), expected >= at_least);
                let Some(range) = Filter::of_run(feature, at_least) else { continue };
                // Runs are tested on the top 64 bits: eight bytes, sixteen digits.
                let seen = at_least.min(if feature == Feature::LeadingZeros { 8 } else { 16 });
                let accepted = at_least <= score.max() && expected >= seen;
                prop_assert_eq!(range.accepts(&digest.words()), accepted, "{:?} {}", feature, at_least);
            }
        }
        let sum = Score::parse("10*leading-zeros+3*count:4+uniswap").unwrap();
        let parts = [(10, Feature::LeadingZeros), (3, Feature::Count(4)), (1, Feature::Uniswap)];
        prop_assert_eq!(sum.of(&digest), parts.iter().map(|(n, feature)| n * naive(*feature, &text)).sum::<u32>());
    }
}

/// What Uniswap's contract gives (`VanityAddressLib`, counted by hand from its rules), and what stands next to a rule's edge.
#[test]
fn the_challenge_is_scored_by_its_rules() {
    let score = Score::from(Feature::Uniswap);
    for (text, points) in [
        ("4444111111111111111111111111111111111111", 60 + 4),
        ("4444411111111111111111111111111111111111", 40 + 5),
        ("4441111111111111111111111111111111111111", 3),
        ("0444411111111111111111111111111111114444", 10 + 60 + 20 + 8),
        ("0000000000000000044444444444444444444444", 170 + 40 + 23 + 20),
        ("0000000000000000000000000000000000004444", 360 + 60 + 4 + 20),
        ("0000000000000000000000000000000000000004", 390 + 1),
        ("0000000000000000000000000000000000000000", 0),
        ("0014444111111111111111111111111111114444", 0),
        ("00000000004444c25e5b66a8a8c5a3b5e7b8d4aa", 100 + 60 + 5),
    ] {
        let bytes: [u8; 20] =
            std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap());
        assert_eq!(score.of(&Digest::new(&bytes)), points, "{text}");
    }
}

#[test]
fn scores_are_written_as_they_are_read() {
    for feature in features() {
        let score = Score::from(feature);
        assert_eq!(Score::parse(&score.name()), Ok(score.clone()), "{score}");
        assert_eq!(score.feature(), Some(feature));
    }
    let sum = Score::parse(" 10 * leading-zeros + like:0xdead..BEEF+100*run ").unwrap();
    assert_eq!(sum.name(), "10*leading-zeros+like:dead????????????????????????????????beef+100*run");
    assert_eq!((sum.max(), sum.feature()), (200 + 8 + 4000, None));
    for (text, says) in [
        ("", "there is no score ''"),
        ("zeroes", "there is no score 'zeroes'"),
        ("zeros:0", "given nothing"),
        ("leading", "one hex digit"),
        ("leading:g", "one hex digit"),
        ("count:12", "one hex digit"),
        ("like:dead", "40 hex digits"),
        ("like:..", "40 hex digits"),
        ("like:dead..beef..", "40 hex digits"),
        ("x*zeros", "'x' is no weight"),
        ("0*zeros", "from 1 to 100, not 0"),
        ("-3*zeros", "from 1 to 100, not -3"),
        ("101*zeros", "from 1 to 100"),
        ("99999999999*zeros", "from 1 to 100"),
        ("zeros+", "there is no score ''"),
        ("100*uniswap", "could be 44400"),
        ("zeros+zeros+zeros+zeros+zeros+zeros+zeros+zeros+zeros", "8 parts at most, not 9"),
    ] {
        let error = Score::parse(text).expect_err(text).to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    assert_eq!(Score::sum(Vec::new()), Err(ScoreError::Empty));
    assert!(Score::sum(vec![Part { weight: 1, feature: Feature::Run }]).is_ok());
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

fn near(odds: f64, exact: f64) -> bool {
    odds == exact || (odds / exact - 1.0).abs() < 1e-11
}

#[test]
fn odds_are_exact() {
    let [zeros, leading, sevens] =
        [Feature::Zeros, Feature::LeadingZeros, Feature::Leading(7)].map(Ranking::new);
    for at_least in 0..=20 {
        assert!(near(zeros.odds(at_least), zeros_at_least(at_least)), "{at_least}");
        assert!(near(leading.odds(at_least), 2f64.powi(-8 * at_least as i32)));
        assert!(near(sevens.odds(2 * at_least), 2f64.powi(-8 * at_least as i32)));
    }
    for feature in features() {
        let ranking = Ranking::new(feature);
        assert!(near(ranking.odds(0), 1.0), "{feature:?}");
        assert_eq!(ranking.odds(feature.max() + 1), 0.0);
        assert_eq!(ranking.max(), feature.max(), "{feature:?}");
    }
}

/// Among addresses of which all but four digits are given, every odds is what counting all 65,536 of them says.
#[test]
fn odds_among_patterns_are_what_counting_says() {
    let eth = find("eth").expect("a target");
    let scores: Vec<Score> = features()
        .into_iter()
        .map(Score::from)
        // Parts that depend on each other.
        .chain(
            ["10*leading-zeros+3*zeros+count:0", "uniswap+2*count:4+pairs"]
                .map(|text| Score::parse(text).unwrap()),
        )
        .collect();
    for pattern in [
        "00??c0ffee00000000000000000000000000??00",
        "????000000000000000044440000000000004444",
        "04??4??c0ffee0000000000dead7777777000444",
        "000000000000000000??44??0000000000000000",
    ] {
        let fixed = pattern.to_owned();
        let open: Vec<usize> = fixed.match_indices('?').map(|(at, _)| at).collect();
        assert_eq!((fixed.len(), open.len()), (40, 4), "{pattern}");
        let mut counted = vec![vec![0u32; 500]; scores.len()];
        for number in 0..=0xffffu32 {
            let mut text = fixed.clone();
            for (i, at) in open.iter().enumerate() {
                let digit = char::from_digit(number >> (4 * i) & 15, 16).unwrap();
                text.replace_range(at..&(at + 1), &digit.to_string());
            }
            let bytes: [u8; 20] =
                std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap());
            for (score, counted) in scores.iter().zip(&mut counted) {
                counted[score.of(&Digest::new(&bytes)) as usize] += 1;
            }
        }
        for (score, counted) in scores.iter().zip(&counted) {
            let patterns = || compile([pattern], eth, &Options::default()).expect("possible");
            let ranking = Ranking::among(score.clone(), patterns());
            for at_least in 0..score.max() + 2 {
                let reached: u32 = counted.iter().skip(at_least as usize).sum();
                let exact = f64::from(reached) / 65536.0 * patterns().odds();
                let odds = ranking.odds(at_least);
                assert!(near(odds, exact), "{pattern} {score} {at_least}: {odds} instead of {exact}");
            }
        }
    }
}

/// Prefixes that are neighbours are one range, which may be as wide as a digit's and not begin where one does.
#[test]
fn odds_among_neighbours_are_numbers() {
    let eth = find("eth").expect("a target");
    let half = |text: &[&str]| compile(text.iter().copied(), eth, &Options::default()).expect("possible");
    for patterns in [&["1", "2"][..], &["/^[1-4]/"], &["7", "8"], &["cafe", "caff"], &["1", "2", "f"]] {
        for feature in [Feature::Zeros, Feature::Run, Feature::Leading(1), Feature::LeadingZeros] {
            let (ranking, each) = (Ranking::among(feature, half(patterns)), half(patterns).odds());
            assert!(
                (ranking.odds(0) / each - 1.0).abs() < 1e-6,
                "{patterns:?} {feature:?}: {}",
                ranking.odds(0)
            );
            let odds: Vec<f64> = (0..5).map(|score| ranking.odds(score)).collect();
            assert!(odds.windows(2).all(|pair| pair[0] >= pair[1] && pair[1] >= 0.0), "{odds:?}");
        }
    }
}

/// Of many patterns, or of what is not told by single digits, the score counts by itself.
#[test]
fn odds_among_any_patterns_are_those_of_both() {
    let eth = find("eth").expect("a target");
    for pattern in ["..cafe..", "/(cafe|f00d)/"] {
        let patterns = || compile([pattern], eth, &Options::default()).expect("possible");
        let among = Ranking::among(Feature::Zeros, patterns());
        let each = patterns().odds() * Ranking::new(Feature::Zeros).odds(2);
        assert!((among.odds(2) / each).ln().abs() < 0.5, "{pattern}: {} {each}", among.odds(2));
        assert!(among.patterns().is_some());
        let filter = among.filter(1e-3, 2, true);
        assert!(filter.is_parted() && filter.score.is_some_and(|score| score.each && score.at_least == 2));
    }
}
