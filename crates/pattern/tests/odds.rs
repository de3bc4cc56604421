//! Odds against counting: over random digests, and exactly where that is possible.

use warpsmith_chain::{Digest, KeyTarget, find};
use warpsmith_pattern::{Options, Patterns, compile};

fn npub() -> &'static dyn KeyTarget {
    find("npub").unwrap()
}

fn compiled(set: &[&str]) -> Patterns {
    compile(set, npub(), &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// SplitMix64: the same digests in every run.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn digest(&mut self) -> Digest {
        let words: Vec<u8> = (0..4).flat_map(|_| self.word().to_be_bytes()).collect();
        Digest::new(&words)
    }
}

/// Counted as often as `odds` says, and up to `more` above.
fn assert_close(what: &str, counted: usize, of: usize, odds: f64, more: f64) {
    let expected = (counted as f64).clamp(odds * of as f64, (odds + more) * of as f64);
    // Five standard deviations: a false alarm once in three million, and the digests are always the same.
    let allowed = 5.0 * (expected * (1.0 - odds)).sqrt() + 3.0;
    assert!((counted as f64 - expected).abs() <= allowed, "{what}: {counted} of {of}, expected {expected}");
}

#[test]
fn odds_and_filters_agree_with_counts_over_random_digests() {
    // Patterns, and whether the filter is as sharp as the patterns themselves.
    let sets: &[(&[&str], bool)] = &[
        (&["ca"], true),
        (&["..ca"], true),
        (&["c..a"], true),
        (&["..ca.."], true),
        (&["..qq.."], true),
        (&["..q?q.."], true),
        (&["c?f"], true),
        (&["?a"], true),
        (&["..a?"], true),
        (&["..s??????"], true),
        (&["c", "ca", "d"], true),
        (&["c", "..d"], true),
        (&["/ca/"], true),
        (&["/^(ca|da)/"], true),
        (&["/^c.*a$/"], true),
        (&["/(ca|da)$/"], true),
        (&["/^[c-f]a/"], true),
        (&["/[0-9]{6}/"], false),
        (&["/a.*c.*d.*e/"], false),
        (&["/^[0-9]{3}/"], false),
        (&["/ll|^[^a]{20}q/"], false),
    ];
    let mut random = Random(1);
    let sample: Vec<(Digest, String)> = (0..200_000)
        .map(|_| {
            let digest = random.digest();
            (digest, npub().encode(&digest))
        })
        .collect();
    for (set, is_sharp) in sets {
        let patterns = compiled(set);
        let matched = sample.iter().filter(|(_, text)| patterns.find(text).is_some()).count();
        assert_close(&format!("{set:?} matches"), matched, sample.len(), patterns.odds(), 0.0);
        for max_false in [1e-3, 1e-9] {
            let filter = patterns.filter(max_false);
            let accepted = sample.iter().filter(|(digest, _)| filter.accepts(&digest.words())).count();
            assert!(accepted >= matched);
            if *is_sharp {
                assert_close(&format!("{set:?} accepts"), accepted, sample.len(), patterns.odds(), max_false);
            }
        }
    }
}

#[test]
fn odds_of_fixed_ends_are_powers_of_two() {
    let whole = "0elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg";
    let cases = [
        ("cafe", 20),
        ("ca?e", 15),
        ("..cafe", 20),
        ("cafe..8a8e", 40),
        ("npub1cafe", 20),
        ("cafe..", 20),
        // Six checksum symbols, and the 52nd that carries one bit.
        ("..scafeca", 31),
        ("..cscafeca", 36),
        (whole, 256),
        (&whole[..52], 256),
        (&whole[..51], 255),
        // All but one data symbol and the whole checksum: the rest is determined.
        (&format!("?{}", &whole[1..]), 256),
    ];
    for (pattern, bits) in cases {
        assert_eq!(compiled(&[pattern]).odds(), 2f64.powi(-bits), "{pattern}");
    }
}

#[test]
fn covered_and_repeated_patterns_do_not_add_to_the_odds() {
    assert_eq!(compiled(&["ca", "cafe", "ca", "caca", "cb".replace('b', "d").as_str()]).odds(), 2.0 / 1024.0);
    assert_eq!(compiled(&["..cafe", "..cafe"]).odds(), 2f64.powi(-20));
    let all: Vec<String> = "qpzry9x8gf2tvdw0s3jn54khce6mua7l".chars().map(String::from).collect();
    let patterns = compile(&all, npub(), &Options::default()).unwrap();
    assert_eq!(patterns.odds(), 1.0);
    assert_eq!(patterns.filter(0.0).top.len(), 1);
    assert_eq!(compiled(&[]).odds(), 0.0);
    assert_eq!(compiled(&[]).filter(0.0), Default::default());
}

#[test]
fn odds_near_one_do_not_exceed_it() {
    for pattern in ["/[^a].[^a]/", "/[^a].*[^a]/", "/[^q]/", "/[^qs]{2}/"] {
        let odds = compiled(&[pattern, "..c", "q"]).odds();
        assert!(odds > 0.999 && odds <= 1.0 && compiled(&[pattern]).odds() <= 1.0, "{pattern} {odds}");
    }
}

#[test]
fn tiny_odds_do_not_vanish() {
    let both = compiled(&["cafecafecafe", "..cafecqcafeca"]).odds();
    assert!((both / 2f64.powi(-60) - 17.0).abs() < 1e-3, "{both}");
    let contains = compiled(&["..cafecafecafe.."]).odds();
    assert!(contains > 30.0 * 2f64.powi(-60) && contains < 60.0 * 2f64.powi(-60), "{contains}");
}
