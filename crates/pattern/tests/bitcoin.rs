//! The filter contract, the exact test, odds and refusals for Bitcoin addresses: base58, whose texts are numbers of
//! several lengths, and bech32 with a head that patterns include.

use proptest::prelude::*;
use warpsmith_chain::coin::{AddressType, BITCOIN, CoinAddress};
use warpsmith_chain::text::base58;
use warpsmith_chain::{Digest, Encoding, Target};
use warpsmith_pattern::{Filter, Options, Patterns, compile};

const SHARPNESS: [f64; 3] = [1.0, 1.9e-6, 0.0];
const P2PKH: CoinAddress = BITCOIN.main(AddressType::P2pkh);
const P2SH: CoinAddress = BITCOIN.main(AddressType::P2sh);
const P2WPKH: CoinAddress = BITCOIN.main(AddressType::P2wpkh);
const P2TR: CoinAddress = BITCOIN.main(AddressType::P2tr);
const IGNORE: Options = Options { ignore_case: true, checksum: false, low_bits: None };

fn compiled(patterns: &[&str], target: &CoinAddress, options: &Options) -> Patterns {
    compile(patterns, target, options).unwrap_or_else(|error| panic!("{error}"))
}

fn plain(pattern: &str, target: &CoinAddress) -> Patterns {
    compiled(&[pattern], target, &Options::default())
}

fn filters(patterns: &Patterns) -> Vec<Filter> {
    let filters: Vec<Filter> = SHARPNESS.iter().map(|&max_false| patterns.filter(max_false)).collect();
    for filter in &filters {
        assert!(filter.top.iter().all(|i| i.first <= i.last));
        assert!(filter.top.windows(2).all(|pair| pair[0].last + 1 < pair[1].first));
    }
    filters
}

fn digest(target: &CoinAddress, bytes: &[u8; 32]) -> Digest {
    Digest::new(&bytes[..if target.is_taproot() { 32 } else { 20 }])
}

/// Swaps the case of some letters.
fn recased(text: &str, which: u64) -> String {
    let swap = |(i, c): (usize, char)| match (which >> (i % 64) & 1, c.is_ascii_lowercase()) {
        (0, _) => c,
        (_, true) => c.to_ascii_uppercase(),
        (_, false) => c.to_ascii_lowercase(),
    };
    text.chars().enumerate().map(swap).collect()
}

/// Whether the text contains the run, where `?` is any character: then so does every text with the same head.
fn is_in(text: &str, run: &str) -> bool {
    let fits = |window: &[u8]| window.iter().zip(run.bytes()).all(|(&t, r)| r == b'?' || r == t);
    text.as_bytes().windows(run.len()).any(fits)
}

/// A pattern of some kind that the text matches.
fn pattern_of(text: &str, kind: u8, a: usize, b: usize, wild: u64) -> String {
    let masked = |range: std::ops::Range<usize>, wild: u64| -> String {
        let keep = range.end - 1;
        let character = |i: usize| match i != keep && wild >> (i % 64) & 1 == 1 {
            true => '?',
            false => char::from(text.as_bytes()[i]),
        };
        range.map(character).collect()
    };
    let n = text.len();
    let head = if text.starts_with("bc1") || text.starts_with("tb1") { 4 } else { 1 };
    let a = a.clamp(head + 1, n);
    match kind {
        0 => masked(0..a, 0),
        1 => masked(0..a, wild),
        2 => format!("..{}", masked(n - b.clamp(1, n - head - 1)..n, wild)),
        3 => {
            let a = a.min(n - 1);
            format!("{}..{}", masked(0..a, wild), masked(n - b.clamp(1, n - a)..n, wild))
        }
        4 => {
            let start = head + 1 + a % (n - head - 1);
            format!("..{}..", masked(start..(start + b.clamp(1, n)).min(n), wild))
        }
        5 => format!("/^{}/", masked(0..a, wild).replace('?', ".")),
        6 => format!("/{}$/", masked(n - b.clamp(1, n - head - 1)..n, wild).replace('?', "[^!]")),
        7 => format!("/^{}[{}x-z].*{}/", &text[..head + 1], &text[head + 1..head + 2], &text[n - 2..]),
        _ => format!("/^.{{{}}}{}.{{1,60}}$/", head + 2, &text[head + 2..head + 4]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn what_matches_is_accepted(
        bytes: [u8; 32], zeros in 0usize..4, kind in 0u8..9, a in 0usize..40, b in 0usize..12, wild: u64, sparse: u64,
        case: u64,
    ) {
        let mut bytes = bytes;
        // Leading zero bytes are leading ones in base58, and shorter texts.
        bytes[..zeros].fill(0);
        for target in BITCOIN.addresses() {
            let digest = digest(&target, &bytes);
            let text = target.encode(&digest);
            let pattern = pattern_of(&text, kind, a, b, wild & sparse & case);
            let is_base58 = matches!(target.encoding(), Encoding::Base58(_));
            let recased = recased(&pattern, case);
            // In a regular expression the case of letters may matter beyond the text ([x-z] reversed).
            let other = if is_base58 && kind < 5 { &recased } else { &pattern };
            for (written, options) in [(&pattern, Options::default()), (other, IGNORE)] {
                let patterns = compile([written], &target, &options);
                let patterns = match patterns {
                    Ok(patterns) => patterns,
                    // Other cases of a letter that are no characters: O, I and l.
                    Err(_) if written != &pattern && written.contains(['O', 'I', 'l']) => continue,
                    Err(_) if kind == 4 && is_in(&text[..4], pattern.trim_matches('.')) => continue,
                    Err(error) => return Err(TestCaseError::fail(format!("{error} {text}"))),
                };
                prop_assert_eq!(patterns.find(&text), Some(0), "{} {}", written, text);
                prop_assert!(patterns.odds() > 0.0 && patterns.odds() < 1.0, "{} {}", written, patterns.odds());
                for filter in filters(&patterns) {
                    prop_assert!(filter.accepts(&digest.words()), "{} {} {:?}", written, text, filter);
                }
            }
        }
    }

    #[test]
    fn prefixes_in_base58_decide_as_their_intervals_say(
        bytes: [u8; 32], zeros in 0usize..3, length in 2usize..9, near in -2i64..=2
    ) {
        let mut bytes = bytes;
        bytes[..zeros].fill(0);
        for target in [P2PKH, P2SH] {
            let text = target.encode(&digest(&target, &bytes));
            let patterns = plain(&text[..length], &target);
            let filter = patterns.filter(0.0);
            prop_assert!(filter.terms.is_empty());
            // A digest whose top bits are at an edge, or near it: matches are inside, and inside but for the edge's own
            // top bits all match.
            for interval in &filter.top {
                for edge in [interval.first, interval.last] {
                    let top = edge.wrapping_add_signed(near);
                    bytes[..8].copy_from_slice(&top.to_be_bytes());
                    let digest = digest(&target, &bytes);
                    let found = patterns.find(&target.encode(&digest)).is_some();
                    prop_assert!(!found || filter.accepts(&digest.words()));
                    if interval.first < top && top < interval.last {
                        prop_assert!(found, "{} {}", &text[..length], target.encode(&digest));
                    }
                }
            }
        }
    }
}

#[test]
fn odds_of_prefixes_are_the_sizes_of_their_intervals() {
    for (target, pattern) in [
        (P2PKH, "1Love"),
        (P2PKH, "11"),
        (P2PKH, "111x"),
        (P2PKH, "1Q"),
        (P2PKH, "1z"),
        (P2SH, "3Cat"),
        (P2SH, "3R"),
    ] {
        let patterns = plain(pattern, &target);
        let filter = patterns.filter(0.0);
        assert!((filter.share() / patterns.odds() - 1.0).abs() < 1e-9, "{pattern}");
    }
    // A second character of 1 is a zero byte; one of z needs a text of 33 characters or less.
    assert!((plain("11", &P2PKH).odds() * 256.0 - 1.0).abs() < 1e-12);
    assert!(plain("1z", &P2PKH).odds() < plain("1B", &P2PKH).odds() / 50.0);
    // The figures of docs/bitcoin.md.
    let one_in = |pattern: &str, target: &CoinAddress| (1.0 / plain(pattern, target).odds()).round();
    let figures = [one_in("1A", &P2PKH), one_in("1z", &P2PKH), one_in("11", &P2PKH), one_in("3A", &P2SH)];
    assert_eq!(figures, [23.0, 1354.0, 256.0, 23.0]);
    let all = compiled(&["1L", "1Lo", "1B"], &P2PKH, &Options::default());
    let apart = plain("1L", &P2PKH).odds() + plain("1B", &P2PKH).odds();
    assert!((all.odds() / apart - 1.0).abs() < 1e-12);
}

#[test]
fn odds_agree_with_counting_texts() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u8
    };
    let texts = |target: &CoinAddress, random: &mut dyn FnMut() -> u8| -> Vec<String> {
        (0..30_000).map(|_| target.encode(&digest(target, &std::array::from_fn(|_| random())))).collect()
    };
    let cases: &[(CoinAddress, &[&str])] = &[
        (
            P2PKH,
            &[
                "1A",
                "1?a",
                "1??7",
                "..a",
                "1B..?z",
                "..ab..",
                "/^1[A-F]/",
                "/^.{33}$/",
                "/^1.*[xyz]$/",
                "/aa|bb/",
            ],
        ),
        (P2SH, &["3A", "3?a", "..9", "/^3[0-9]/", "/[A-Z]{5}/"]),
        (P2WPKH, &["bc1qa", "bc1q?c", "..q", "bc1qq..q", "..aa..", "/^bc1q[a-f]/", "/1q[02]/", "/aa|cc/"]),
        (P2TR, &["bc1pa", "bc1p?c", "..q", "/p[02]/"]),
    ];
    for (target, patterns) in cases {
        let texts = texts(target, &mut random);
        for pattern in *patterns {
            for options in [Options::default(), IGNORE] {
                let patterns = compiled(&[pattern], target, &options);
                let found = texts.iter().filter(|text| patterns.find(text).is_some()).count() as f64;
                let expected = patterns.odds() * texts.len() as f64;
                let error = (found - expected).abs();
                assert!(error < 5.0 * expected.sqrt() + 5.0, "{pattern} {options:?}: {found} for {expected}");
            }
        }
    }
}

#[test]
fn filters_are_as_sharp_as_the_start_of_a_text_allows() {
    let share = |pattern: &str, target: &CoinAddress, options: &Options| {
        let patterns = compiled(&[pattern], target, options);
        (patterns.filter(1e-9).share(), patterns.odds())
    };
    // The start alone is tested; the end is a checksum.
    for pattern in ["1Love..x", "/^1Love.*x$/", "/^1Love[a-z]*/"] {
        let (passed, _) = share(pattern, &P2PKH, &Options::default());
        let (start, _) = share("1Love", &P2PKH, &Options::default());
        assert!((passed / start - 1.0).abs() < 1e-9, "{pattern}");
    }
    for pattern in ["1?ve", "1L??e", "/^1(Love|Hate)/", "/^1[A-F][a-f]/"] {
        let (passed, odds) = share(pattern, &P2PKH, &Options::default());
        assert!((passed / odds - 1.0).abs() < 1e-2, "{pattern}: {passed} {odds}");
    }
    let (passed, odds) = share("1LoveBitco", &P2PKH, &IGNORE);
    // 512 ranges of 53 bits, each wider by what the top bits do not tell.
    assert!((passed / odds - 1.0).abs() < 1e-2);
    // Nothing is known of the start.
    for pattern in ["..x", "..Love..", "/Love/", "1..x", "/x$/"] {
        assert_eq!(share(pattern, &P2PKH, &Options::default()).0, 1.0, "{pattern}");
    }
    // In bech32 ends are linear, so they are tested.
    for pattern in ["..cafe", "bc1qca..fe", "bc1q??????????cafe", "/^bc1q.*cafe$/"] {
        let (passed, odds) = share(pattern, &P2WPKH, &Options::default());
        assert!((passed / odds - 1.0).abs() < 1e-9, "{pattern}: {passed} {odds}");
    }
    assert_eq!(plain("bc1qcafe", &P2WPKH).filter(0.0).top.len(), 1);
    assert_eq!(plain("bc1qcafe", &P2WPKH).odds(), 2f64.powi(-20));
    assert_eq!(plain("bc1p?q", &P2TR).odds(), 2f64.powi(-5));
}

#[test]
fn the_exact_test_sees_whole_addresses() {
    let text = "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH";
    let find = |set: &[&str], options: &Options| compiled(set, &P2PKH, options).find(text);
    assert_eq!(find(&["1Bh", "1Bg", "1BgG"], &Options::default()), Some(1));
    assert_eq!(find(&["..AMH", "1Bg"], &Options::default()), Some(0));
    assert_eq!(find(&["1bG", "1Bg"], &Options::default()), Some(1));
    assert_eq!(find(&["1bG", "1Bg"], &IGNORE), Some(0));
    assert_eq!(find(&["/^1Bg.*H$/"], &Options::default()), Some(0));
    assert_eq!(find(&[text], &Options::default()), Some(0));
    let text = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";
    let find = |set: &[&str], options: &Options| compiled(set, &P2WPKH, options).find(text);
    assert_eq!(find(&["bc1qw5", "..t4"], &Options::default()), Some(0));
    assert_eq!(find(&["BC1QW5"], &IGNORE), Some(0));
    assert_eq!(find(&["/^bc1qw5/", "bc1qw"], &Options::default()), Some(0));
    assert_eq!(find(&["..08d6.."], &Options::default()), Some(0));
    assert_eq!(find(&[text], &Options::default()), Some(0));
    assert_eq!(compiled(&["bc1qw5"], &P2WPKH, &Options::default()).find("tb1qw508d6"), None);
}

#[test]
fn impossible_patterns_say_why() {
    let wif = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn";
    let cases: &[(CoinAddress, &str, &[&str])] = &[
        (P2PKH, "1", &["matches every key"]),
        (P2PKH, "", &["matches every key"]),
        (P2PKH, "1?", &["matches every key"]),
        (P2PKH, "/^1/", &["matches every key"]),
        (P2PKH, "1l0ve", &["'l' (character 2)", "'0' (character 3)", "Try '1Love'"]),
        (P2PKH, "1OIl", &["'O'", "'I'", "'l'", "Try '1oiL'"]),
        (P2PKH, "2x", &["no btc text begins so", "the first character is 1 and never '2'"]),
        (P2SH, "3z", &["after '3' comes one of 123456789ABCDEFGHJKLMNPQR and never 'z'"]),
        (P2PKH, "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMh", &["checksum"]),
        (P2PKH, "11111111111111111111111111111", &["checksum"]),
        (P2PKH, &"1Love".repeat(8), &["fixes 40 characters, but btc text has only 34; shorten"]),
        (P2PKH, "/^2/", &["no btc text matches"]),
        (P2PKH, "/^.{35}/", &["no btc text matches"]),
        (P2PKH, "/0/", &["no btc text matches"]),
        (P2PKH, wif, &["SECRET"]),
        (P2WPKH, "bc1q", &["matches every key"]),
        (P2WPKH, "bc1", &["matches every key"]),
        (P2WPKH, "..bc1q..", &["matches every key"]),
        (P2WPKH, "/^bc1q/", &["matches every key"]),
        (P2WPKH, "bc1qbob", &["after bc1q there is never 'b' (characters 5 and 7)", "Try 'bc1q808'"]),
        (P2WPKH, "..b1o", &["'b' (character 3)", "'1' (character 4)", "'o' (character 5)"]),
        (P2WPKH, "..bib..", &["'b'", "'i'"]),
        (P2WPKH, "bc1p", &["is always q and never 'p'"]),
        (P2WPKH, "love", &["never 'o'"]),
        (P2WPKH, "BC1QLAVE", &["'L' (character 5)", "Try 'bc1qlave'"]),
        (P2TR, "/^bc1q/", &["no btc text matches"]),
    ];
    for (target, pattern, says) in cases {
        let message = compile([pattern], target, &Options::default()).map(|_| ()).unwrap_err().to_string();
        for part in *says {
            assert!(message.contains(part), "{pattern}: {message}");
        }
        assert!(!message.contains(wif));
    }
}

/// Every prefix of two characters after the head: refused exactly where no text begins so.
#[test]
fn what_is_refused_is_what_has_no_range() {
    for target in BITCOIN.addresses() {
        let Encoding::Base58(code) = target.encoding() else { continue };
        let mut accepted = 0.0;
        for first in base58::ALPHABET.chars() {
            for second in base58::ALPHABET.chars() {
                let pattern = format!("{first}{second}");
                let values: Vec<u8> = pattern.bytes().filter_map(base58::value).collect();
                match compile([&pattern], &target, &Options::default()) {
                    Ok(patterns) => {
                        accepted += patterns.odds();
                        assert!(code.is_possible(&values), "{pattern}");
                    }
                    Err(_) => assert!(!code.is_possible(&values), "{pattern}"),
                }
            }
        }
        assert!((accepted - 1.0).abs() < 1e-9, "{target:?} {accepted}");
    }
}

#[test]
fn many_prefixes_compile_quickly_and_are_found() {
    let text = "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH";
    let alphabet = base58::ALPHABET.as_bytes();
    let set: Vec<String> = (0..50_000usize)
        .map(|i| {
            let digits = [i % 22, i / 22 % 58, i / 1276 % 58, i * 7 % 58, i * 11 % 58];
            std::iter::once('1')
                .chain(digits.iter().map(|&d| char::from(alphabet[d + usize::from(d < 1)])))
                .collect()
        })
        .chain(["1BgGZ9tc".to_owned()])
        .collect();
    let patterns = compile(&set, &P2PKH, &Options::default()).unwrap();
    assert_eq!(patterns.find(text), Some(50_000));
    let filter = patterns.filter(1e-9);
    assert!(filter.terms.is_empty() && filter.top.len() > 10_000);
    assert!((filter.share() / patterns.odds() - 1.0).abs() < 1e-6);
}
