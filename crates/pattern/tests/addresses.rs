//! Patterns on Ethereum addresses, with the case of letters ignored and as EIP-55 writes them: the filter contract,
//! the exact test against a naive one, odds against counting, and refusals.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use warpsmith_chain::{Digest, KeyTarget, Target, find};
use warpsmith_pattern::{Error, LowBits, Options, Patterns, Reason, compile};

const SHARPNESS: [f64; 5] = [1.0, 0.01, 1.9e-6, 1e-9, 0.0];

const BOTH: [Options; 2] = [
    Options { ignore_case: false, checksum: false, low_bits: None },
    Options { ignore_case: false, checksum: true, low_bits: None },
];

fn eth() -> &'static dyn KeyTarget {
    find("eth").unwrap()
}

fn read(patterns: &[impl AsRef<str>], options: &Options) -> Result<Patterns, Error> {
    compile(patterns, eth(), options)
}

fn compiled(patterns: &[impl AsRef<str>], options: &Options) -> Patterns {
    read(patterns, options).unwrap_or_else(|error| panic!("{error}"))
}

/// A digest and its text after the head.
fn key() -> impl Strategy<Value = (Digest, String)> {
    any::<[u8; 20]>().prop_map(|bytes| {
        let digest = Digest::new(&bytes);
        (digest, eth().encode(&digest)[2..].to_string())
    })
}

/// A pattern of any kind that the text matches, by how its parts are cut out of it.
fn pattern_of(body: &str, kind: u8, a: usize, b: usize, wild: u64) -> String {
    let n = body.len();
    let cut = |from: usize, to: usize| -> String {
        let masked = |i: usize| i != from && wild >> (i % 64) & 1 == 1;
        (from..to).map(|i| if masked(i) { '?' } else { char::from(body.as_bytes()[i]) }).collect()
    };
    let (a, b) = (a.clamp(1, n - 1), b.clamp(1, n));
    match kind {
        0 => body[..a].to_owned(),
        1 => cut(0, a),
        2 => format!("..{}", cut(n - a, n)),
        3 => format!("{}..{}", cut(0, a), cut(n - b.min(n - a), n)),
        4 => format!("..{}..", cut(a, (a + b).min(n))),
        5 => format!("/^{}/", cut(0, a).replace('?', ".")),
        6 => format!("/{}$/", cut(n - a, n).replace('?', "[0-9A-Fa-f]")),
        _ => {
            let (a, b) = (a % (n / 2), n / 2 + b % (n / 2));
            format!("/{}.*({}|0000)/", &body[a..(a + 3).min(n / 2)], &body[b..(b + 3).min(n)])
        }
    }
}

fn config(cases: u32) -> ProptestConfig {
    let persistence = FileFailurePersistence::WithSource("regressions");
    ProptestConfig { cases, failure_persistence: Some(Box::new(persistence)), ..Default::default() }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn what_matches_is_accepted(
        (digest, body) in key(), kind in 0u8..8, a in 0usize..41, b in 0usize..41, wild: u64, sparse: u64, upper: u64
    ) {
        let text = format!("0x{body}");
        let written = pattern_of(&body, kind, a, b, wild & sparse);
        // Where case is ignored, a pattern may be written in any.
        let mixed: String = written.chars().enumerate().map(|(i, c)| {
            if kind < 5 && upper >> (i % 64) & 1 == 1 { c.to_ascii_uppercase() } else { c }
        }).collect();
        for (options, pattern) in [(&BOTH[0], &mixed), (&BOTH[1], &written)] {
            let patterns = compiled(&[pattern], options);
            prop_assert_eq!(patterns.find(&text), Some(0), "{}", pattern);
            prop_assert!(patterns.odds() > 0.0 && patterns.odds() <= 1.0, "{} {}", pattern, patterns.odds());
            for max_false in SHARPNESS {
                let filter = patterns.filter(max_false);
                prop_assert!(filter.accepts(&digest.words()), "{} {:?}", pattern, filter);
                prop_assert!(filter.top.windows(2).all(|pair| pair[0].last + 1 < pair[1].first));
                prop_assert!(filter.terms.iter().all(|term| term.parities.is_empty()));
            }
        }
    }

}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn sets_accept_what_any_member_matches(
        keys in proptest::collection::vec((key(), 0u8..8, 0usize..7, 0usize..7), 1..8), checksum: bool
    ) {
        let options = &BOTH[usize::from(checksum)];
        let texts: Vec<String> =
            keys.iter().map(|((_, body), kind, a, b)| pattern_of(body, *kind, *a, *b, 0)).collect();
        let patterns = compiled(&texts, options);
        for ((digest, body), ..) in &keys {
            let text = format!("0x{body}");
            let first = texts.iter().position(|one| compiled(&[one], options).find(&text).is_some());
            prop_assert!(first.is_some());
            prop_assert_eq!(patterns.find(&text), first);
            prop_assert!(SHARPNESS.iter().all(|max_false| patterns.filter(*max_false).accepts(&digest.words())));
        }
    }

}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn find_agrees_with_a_naive_matcher(
        (_, body) in key(), kind in 0u8..4, cut in "[0-9a-fA-F?]{1,2}", other in "[aAbB?]{1,2}", checksum: bool
    ) {
        let cut = cut.replace("??", "a?");
        let same = |p: char, t: char| p == '?' || p == t || (!checksum && p.eq_ignore_ascii_case(&t));
        let fits = |pattern: &str, text: &str| pattern.chars().zip(text.chars()).all(|(p, t)| same(p, t));
        let (n, c) = (body.len(), cut.len());
        let ends = |part: &str| fits(part, &body[n - part.len()..]);
        let (pattern, expected) = match kind {
            0 => (cut.clone(), fits(&cut, &body)),
            1 => (format!("..{cut}"), ends(&cut)),
            2 => (format!("{cut}..{other}"), fits(&cut, &body) && ends(&other)),
            _ => (format!("..{cut}.."), (0..=n - c).any(|i| fits(&cut, &body[i..]))),
        };
        match read(&[&pattern], &BOTH[usize::from(checksum)]) {
            Ok(patterns) => prop_assert_eq!(patterns.find(&format!("0x{body}")).is_some(), expected, "{}", pattern),
            Err(error) => prop_assert_eq!(error.reason, Reason::EveryKey, "{}", pattern),
        }
    }
}

/// SplitMix64: the same digests in every run.
fn sample(count: usize) -> Vec<(Digest, String)> {
    let mut state = 3u64;
    let mut word = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut one = || {
        let bytes: Vec<u8> = (0..3).flat_map(|_| word().to_be_bytes()).take(20).collect();
        let digest = Digest::new(&bytes);
        (digest, eth().encode(&digest))
    };
    (0..count).map(|_| one()).collect()
}

fn assert_close(what: &str, counted: usize, of: usize, odds: f64) {
    let expected = odds * of as f64;
    // Five standard deviations, and the digests are always the same.
    let allowed = 5.0 * (expected * (1.0 - odds)).sqrt() + 3.0;
    assert!((counted as f64 - expected).abs() <= allowed, "{what}: {counted} of {of}, expected {expected}");
}

#[test]
fn odds_and_filters_agree_with_counts_over_random_digests() {
    let sample = sample(200_000);
    let sets: &[&[&str]] = &[
        &["caf"],
        &["CaF"],
        &["1a"],
        &["12"],
        &["..aB"],
        &["a..B"],
        &["..aB.."],
        &["..aa.."],
        &["..11.."],
        &["a?B"],
        &["?A", "a"],
        &["A", "a", "b"],
        &["Ab", "aB", "ab", "AB"],
        &["aB", "..c", "/^1[2-4]/"],
        &["/^[aA]b/"],
        &["/(Ab|1)$/"],
        &["/A.*B.*C.*D/"],
        &["/[A-F]{4}/"],
        &["/^[[:lower:]]/"],
    ];
    for (options, set) in BOTH.iter().flat_map(|options| sets.iter().map(move |set| (options, set))) {
        let what = format!("{set:?} {options:?}");
        // Lower case is all there is where case is ignored.
        let patterns = compiled(set, options);
        let matched = sample.iter().filter(|(_, text)| patterns.find(text).is_some()).count();
        assert_close(&what, matched, sample.len(), patterns.odds());
        // The filter sees symbols only: it passes what the patterns in lower case match.
        if !set.iter().any(|pattern| pattern.starts_with('/')) {
            let symbols = compiled(set, &BOTH[0]).odds();
            let filter = patterns.filter(0.0);
            let accepted = sample.iter().filter(|(digest, _)| filter.accepts(&digest.words())).count();
            assert_close(&format!("{what} accepts"), accepted, sample.len(), symbols);
        }
    }
}

#[test]
fn odds_of_fixed_ends_are_powers_of_two_and_letters_count_once_more_under_the_checksum() {
    let whole = "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    let letters = whole.chars().filter(char::is_ascii_alphabetic).count() as i32;
    for (pattern, bits, more) in [
        ("0xcafe", 16, 4),
        ("CAFE", 16, 4),
        ("c0de", 16, 3),
        ("1234", 16, 0),
        ("..cafe", 16, 4),
        ("ca?e", 12, 3),
        ("cafe..1a", 24, 5),
        (whole, 160, letters),
        (&whole[..39], 156, letters - 1),
    ] {
        assert_eq!(compiled(&[pattern], &BOTH[0]).odds(), 2f64.powi(-bits), "{pattern}");
        assert_eq!(compiled(&[pattern], &BOTH[1]).odds(), 2f64.powi(-bits - more), "{pattern}");
    }
    // Ways to write one prefix exclude each other; without the checksum they are the same.
    let ways = ["ab", "aB", "Ab", "AB", "a"];
    assert_eq!(compiled(&ways[..4], &BOTH[1]).odds(), 2f64.powi(-8));
    assert_eq!(compiled(&ways, &BOTH[1]).odds(), 2f64.powi(-5) + 2f64.powi(-9));
    assert_eq!(compiled(&ways[..4], &BOTH[0]).odds(), 2f64.powi(-8));
    for options in &BOTH {
        let filter = compiled(&ways, options).filter(0.0);
        assert_eq!((filter.top.len(), filter.terms.len()), (1, 0));
        assert_eq!(filter.top[0].first, 0xa << 60);
    }
    assert_eq!(compiled(&["..aB", "..ab"], &BOTH[0]).odds(), 2f64.powi(-8));
}

#[test]
fn filters_of_prefixes_are_exact_up_to_the_top_bits() {
    for options in &BOTH {
        let filter = compiled(&["Cafe", "00", "ffffffffffffffffff"], options).filter(0.0);
        let ranges: Vec<(u64, u64)> = filter.top.iter().map(|i| (i.first, i.last)).collect();
        let cafe = 0xcafe << 48;
        assert_eq!(ranges, [(0, u64::MAX >> 8), (cafe, cafe | u64::MAX >> 16), (u64::MAX, u64::MAX)]);
    }
    let shape = |pattern: &str, max_false: f64| {
        let filter = compiled(&[pattern], &BOTH[1]).filter(max_false);
        (filter.top.len(), filter.terms.len())
    };
    assert_eq!(shape("Ca?e", 0.0), (16, 0));
    assert_eq!(shape("Cafe..Babe", 2f64.powi(-15)), (1, 0));
    assert_eq!(shape("Cafe..Babe", 0.0), (0, 1));
    assert_eq!(shape("..Cafe..", 0.0), (0, 37));
    assert_eq!(shape("/^[Aa]/", 0.0), (1, 0));
    // False accepts are reckoned by symbols, since a device sees no case: one run of four letters in 37 places passes
    // 5.6e-4 of all addresses, which is more than allowed here, though only 3.5e-5 have the letters as written.
    let ignored = compiled(&["/Ca.*FEfe/"], &BOTH[0]).filter(1e-4).terms.len();
    assert!(ignored > 300);
    assert_eq!(shape("/Ca.*FEfe/", 1e-4), (0, ignored));
}

#[test]
fn a_million_prefixes_in_mixed_case_compile_in_time_and_are_found() {
    const DIGITS: &[u8] = b"0123456789abcdefABCDEF";
    let mut state = 1u64;
    let mut digit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(DIGITS[(state >> 33) as usize % DIGITS.len()])
    };
    // Eight to fifteen digits each.
    let texts: Vec<String> = (0..1_000_000).map(|i| (0..8 + i % 8).map(|_| digit()).collect()).collect();
    for options in &BOTH {
        let began = std::time::Instant::now();
        let patterns = compiled(&texts, options);
        let filter = patterns.filter(1e-9);
        eprintln!("{options:?}: {:?}", began.elapsed());
        assert!(began.elapsed() < std::time::Duration::from_secs(120));
        assert!(filter.terms.is_empty() && filter.top.len() > 900_000 && filter.top.len() <= texts.len());
        for (index, text) in texts.iter().enumerate().step_by(9973) {
            let found = patterns.find(&format!("0x{text:0<40}")).unwrap();
            let given = |text: &str| if options.checksum { text.to_owned() } else { text.to_lowercase() };
            assert!(found <= index && given(text).starts_with(&given(&texts[found])));
            let padded = u64::from_str_radix(&format!("{text:0<16}"), 16).unwrap();
            assert!(filter.accepts(&[padded, 0, 0, 0]));
        }
    }
}

#[test]
fn bad_patterns_say_why() {
    let long = "a".repeat(41);
    let cases: &[(&str, &[&str])] = &[
        ("", &["matches every key"]),
        ("0x", &["'0x'", "matches every key"]),
        ("????", &["matches every key"]),
        (&long, &["fixes 41 characters", "eth text has only 40 after 0x", "shorten it"]),
        ("cafg", &["after 0x there is never 'g' (character 4)", "0123456789abcdef", "Try 'caf9'"]),
        ("0xcool", &["'o' (characters 4 and 5)", "'l' (character 6)", "Try 'c001'"]),
        ("Oops", &["'O' (character 1)", "the only characters are 0123456789abcdef", "Try '00?5'"]),
        ("..tiger..", &["Try '..719e?..'"]),
        ("/^g/", &["no eth text matches"]),
        ("/^0xcafe/", &["no eth text matches", "the 40 characters after 0x"]),
        ("/.{41}/", &["no eth text matches"]),
        ("/[0-9a-f]/", &["matches every key"]),
        ("caf\u{e9}", &["Try 'caf?'"]),
    ];
    for (pattern, fragments) in cases {
        for options in &BOTH {
            // Upper and lower case are different letters under the checksum, so this one can fail there.
            if options.checksum && *pattern == "/[0-9a-f]/" {
                continue;
            }
            let message = read(&[pattern], options).unwrap_err().to_string();
            for fragment in *fragments {
                assert!(message.contains(fragment), "'{pattern}' should say \"{fragment}\": {message}");
            }
        }
    }
}

#[test]
fn any_case_is_possible_under_the_checksum_unless_nothing_is_left_open() {
    for pattern in ["CAFE", "cafe", "CaFe", "..CaFe", "0xDEADBEEFdeadbeef", "/[A-F]{8}/"] {
        compiled(&[pattern], &BOTH[1]);
    }
    let right = "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    for (pattern, fits) in [
        (right.to_owned(), true),
        (format!("0x{right}"), true),
        (right.to_lowercase(), false),
        (right.to_uppercase(), false),
        (right.replace("Ae", "aE"), false),
        (right.to_lowercase()[..39].to_owned(), true),
        ("0".repeat(40), true),
    ] {
        let result = read(&[&pattern], &BOTH[1]).map(|_| ()).map_err(|error| error.reason);
        let wrong = Err(Reason::CaseChecksum { target: "eth" });
        assert_eq!(result, if fits { Ok(()) } else { wrong }, "{pattern}");
        compiled(&[&pattern], &BOTH[0]);
    }
    // The letters decide, and the text is found as it is written only.
    let text = format!("0x{right}");
    assert_eq!(compiled(&["5aAeb6", "5aaeb6"], &BOTH[1]).find(&text), Some(0));
    assert_eq!(compiled(&["5aaeb6", "5aAeb6"], &BOTH[1]).find(&text), Some(1));
    assert_eq!(compiled(&["5AAEB6"], &BOTH[1]).find(&text), None);
    assert_eq!(compiled(&["5AAEB6"], &BOTH[0]).find(&text), Some(0));
    // Where case is ignored, there is only lower case, whatever a regex insists on.
    assert!(matches!(
        read(&["/(?-i)^5AAEB6|A09F/"], &BOTH[0]).unwrap_err().reason,
        Reason::RegexNever { .. }
    ));
    assert_eq!(compiled(&["/^5AAEB6/"], &BOTH[0]).find(&text), Some(0));
    assert_eq!(compiled(&["/^5aAeb6.*BeAed$/"], &BOTH[1]).find(&text), Some(0));
}

#[test]
fn a_secret_key_given_as_a_pattern_is_not_repeated() {
    let secret = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
    for given in [secret.to_owned(), format!("0x{secret}"), secret.to_uppercase(), format!(" {secret}\n")] {
        for options in &BOTH {
            let error = read(&[&given], options).unwrap_err();
            assert_eq!(error.reason, Reason::Secret);
            assert!(!format!("{error} {error:?}").to_lowercase().contains("ac0974"));
        }
    }
}

#[test]
fn targets_of_one_text_share_patterns() {
    let contract = warpsmith_chain::ethereum::Contract::new(7).unwrap();
    let patterns = compile(["cafe"], &contract as &dyn Target, &Options::default()).unwrap();
    assert_eq!((patterns.target(), patterns.len()), ("eth", 1));
}

/// The low bits of a digest as a number.
fn low(digest: &Digest, count: u32) -> LowBits {
    let last = u64::from_be_bytes(digest.as_bytes()[12..].try_into().expect("eight bytes"));
    LowBits { count, value: if count == 64 { last } else { last & ((1 << count) - 1) } }
}

proptest! {
    #![proptest_config(config(2000))]

    /// With the low bits its digest has, a text matches as before and passes every filter; with others it matches nothing, and a
    /// filter that is sharp lets it pass no more often than chance.
    #[test]
    fn low_bits_go_with_every_pattern(
        (digest, body) in key(), kind in 0u8..8, a in 0usize..40, b in 0usize..40, wild in any::<u64>(),
        count in 0u32..=64, flip in 0u32..64, checksum in any::<bool>(),
    ) {
        let pattern = pattern_of(&body, kind, a, b, wild);
        let plain = Options { ignore_case: false, checksum, low_bits: None };
        let Ok(free) = read(&[&pattern], &plain) else { return Ok(()) };
        let whole = eth().encode(&digest);
        let low_bits = Some(low(&digest, count));
        let restricted = match read(&[&pattern], &Options { low_bits, ..plain.clone() }) {
            Ok(restricted) => restricted,
            Err(error) => return Err(TestCaseError::fail(format!("{pattern}: {error}"))),
        };
        prop_assert_eq!(restricted.find(&whole), free.find(&whole));
        if free.find(&whole).is_some() {
            for sharpness in SHARPNESS {
                prop_assert!(restricted.filter(sharpness).accepts(&digest.words()), "{} at {}", pattern, sharpness);
            }
        }
        prop_assert!(restricted.odds() <= free.odds() * 1.000001);
        if count > 0 {
            let other = LowBits { value: low(&digest, count).value ^ 1 << (flip % count), count };
            if let Ok(other) = read(&[&pattern], &Options { low_bits: Some(other), ..plain }) {
                prop_assert_eq!(other.find(&whole), None);
            }
        }
    }
}

#[test]
fn low_bits_count_in_the_odds() {
    let flags = |value: u64| Options { low_bits: Some(LowBits { count: 14, value }), ..Options::default() };
    let odds = |pattern: &str| compiled(&[pattern], &flags(0x00c0)).odds();
    let near = |odds: f64, bits: f64| (odds.log2() + bits).abs() < 0.02;
    assert!(near(odds("cafe"), 30.0) && near(odds("cafe..00c0"), 32.0));
    assert!(near(odds("/^cafe/"), 30.0), "{}", odds("/^cafe/"));
    assert!(near(odds("/[048c]0c0$/"), 14.0), "{}", odds("/[048c]0c0$/"));
    // Anywhere among the 36 digits that are open, or with the four that are not.
    let anywhere = odds("..cafe..").log2() + 14.0;
    let free = compiled(&["..cafe.."], &Options::default()).odds().log2();
    assert!((anywhere - free).abs() < 0.2, "{anywhere} {free}");
    // What the flags leave no room for is told by its place.
    let error = read(&["..00c1"], &flags(0x00c0)).expect_err("contradicts");
    assert!(matches!(error.reason, Reason::Position { position: 40, .. }), "{error}");
    // Sharp filters test these bits on the device.
    let filter = compiled(&["cafe"], &flags(0x00c0)).filter(1e-9);
    assert!(filter.share() < 2f64.powi(-29), "{}", filter.share());
}
