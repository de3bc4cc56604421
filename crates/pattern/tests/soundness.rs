//! The filter contract: whatever the exact test accepts, the filter accepts, at every sharpness. And the exact test
//! itself against a naive one on strings.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use warpsmith_chain::{Digest, KeyTarget, find};
use warpsmith_pattern::{Filter, Options, Patterns, compile};

const SHARPNESS: [f64; 6] = [1.0, 0.01, 1.9e-6, 1e-9, 1e-20, 0.0];
const ALPHABET: &[u8] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

fn npub() -> &'static dyn KeyTarget {
    find("npub").unwrap()
}

fn compiled(patterns: &[String]) -> Patterns {
    compile(patterns, npub(), &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn filters(patterns: &Patterns) -> Vec<Filter> {
    let filters: Vec<Filter> = SHARPNESS.iter().map(|&max_false| patterns.filter(max_false)).collect();
    for filter in &filters {
        assert!(filter.top.iter().all(|i| i.first <= i.last));
        assert!(filter.top.windows(2).all(|pair| pair[0].last + 1 < pair[1].first));
        for term in &filter.terms {
            assert!((0..4).all(|i| term.value[i] & !term.mask[i] == 0));
            assert!(term.parities.len() <= 24);
        }
    }
    filters
}

/// A digest and its text after the head.
fn key() -> impl Strategy<Value = (Digest, String)> {
    any::<[u8; 32]>().prop_map(|bytes| {
        let digest = Digest::new(&bytes);
        (digest, npub().encode(&digest)[5..].to_string())
    })
}

/// A pattern of any kind that the text matches, by how its parts are cut out of it.
fn pattern_of(body: &str, kind: u8, a: usize, b: usize, wild: u64) -> String {
    let masked = |range: std::ops::Range<usize>, wild: u64| -> String {
        let keep = range.start;
        range
            .map(
                |i| if i != keep && wild >> (i % 64) & 1 == 1 { '?' } else { char::from(body.as_bytes()[i]) },
            )
            .collect()
    };
    let n = body.len();
    match kind {
        0 => masked(0..a.clamp(1, n), 0),
        1 => masked(0..a.clamp(1, n), wild),
        2 => format!("..{}", masked(n - a.clamp(1, n)..n, wild)),
        3 => {
            let a = a.clamp(1, n - 1);
            format!("{}..{}", masked(0..a, wild), masked(n - b.clamp(1, n - a)..n, wild))
        }
        4 => {
            let start = a % n;
            format!("..{}..", masked(start..(start + b.clamp(1, n)).min(n), wild))
        }
        5 => format!("/^{}/", masked(0..a.clamp(1, n), wild).replace('?', ".")),
        6 => format!("/{}$/", masked(n - a.clamp(1, n)..n, wild).replace('?', "[^b]")),
        7 => {
            let (a, b) = (a % (n / 2), b % (n / 2));
            format!("/{}.*({}|zzzz)/", &body[a..(a + 3).min(n / 2)], &body[n / 2 + b..(n / 2 + b + 3).min(n)])
        }
        8 => {
            let c = body.as_bytes()[a % n] as char;
            let start = (b % n).min(n - 4);
            format!(
                "/([{c}x-z]|{}+{}?[a-z0-9]{{0,2}}{})/",
                &body[start..=start],
                &body[start + 1..=start + 1],
                &body[start + 3..start + 4]
            )
        }
        _ => {
            let start = a % (n - 6);
            format!(r"/(?i)(^|\B){}(\d|[[:alpha:]])+$/", body[start..start + 2].to_uppercase())
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
        (digest, body) in key(), kind in 0u8..10, a in 0usize..60, b in 0usize..60, wild: u64, sparse: u64
    ) {
        let pattern = pattern_of(&body, kind, a, b, wild & sparse);
        let patterns = compiled(std::slice::from_ref(&pattern));
        let text = format!("npub1{body}");
        prop_assert_eq!(patterns.find(&text), Some(0), "{}", pattern);
        prop_assert!(patterns.odds() > 0.0 && patterns.odds() <= 1.0, "{} {}", pattern, patterns.odds());
        for filter in filters(&patterns) {
            prop_assert!(filter.accepts(&digest.words()), "{} {:?}", pattern, filter);
        }
    }

}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn sets_accept_what_any_member_matches(
        keys in proptest::collection::vec((key(), 0u8..10, 0usize..12, 0usize..12), 1..8)
    ) {
        let texts: Vec<String> = keys.iter().map(|((_, body), kind, a, b)| pattern_of(body, *kind, *a, *b, 0)).collect();
        let patterns = compiled(&texts);
        let filters = filters(&patterns);
        for ((digest, body), ..) in &keys {
            let found = patterns.find(&format!("npub1{body}"));
            let first = texts.iter().position(|one| compiled(std::slice::from_ref(one)).find(&format!("npub1{body}")).is_some());
            prop_assert_eq!(found, first);
            prop_assert!(found.is_some());
            for filter in &filters {
                prop_assert!(filter.accepts(&digest.words()));
            }
        }
    }

}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn find_agrees_with_a_naive_matcher(
        (_, body) in key(), kind in 0u8..5, cut in "[qpzry98?]{1,2}", other in "[qpzry98?]{1,2}"
    ) {
        let cut = cut.replace("??", "q?");
        let fits = |pattern: &str, text: &str| {
            pattern.len() == text.len() && pattern.chars().zip(text.chars()).all(|(p, t)| p == '?' || p == t)
        };
        let (n, c, o) = (body.len(), cut.len(), other.len());
        let begins = |part: &str| fits(part, &body[..part.len()]);
        let ends = |part: &str| fits(part, &body[n - part.len()..]);
        let (pattern, expected) = match kind {
            0 => (cut.clone(), begins(&cut)),
            1 => (format!("..{cut}"), ends(&cut)),
            2 => (format!("{cut}..{other}"), begins(&cut) && ends(&other)),
            3 => (format!("..{cut}.."), (0..=n - c).any(|i| fits(&cut, &body[i..i + c]))),
            _ => (format!("/{}.*{}/", cut.replace('?', "."), other.replace('?', ".")),
                (0..=n - c).any(|i| fits(&cut, &body[i..i + c]) && (i + c..=n - o).any(|j| fits(&other, &body[j..j + o])))),
        };
        if let Ok(patterns) = compile([&pattern], npub(), &Options::default()) {
            prop_assert_eq!(patterns.find(&format!("npub1{body}")).is_some(), expected, "{}", pattern);
        } else {
            // Only a lone '?' is refused here.
            prop_assert!(pattern.chars().all(|c| "?./*".contains(c)), "{}", pattern);
        }
    }
}

/// Digests at and around the edges of everything: the field's prime, zero, one, and each interval's ends.
fn edges(filter: &Filter) -> Vec<[u8; 32]> {
    let mut all = vec![[0; 32], [0xff; 32]];
    let mut prime = [0xff; 32];
    prime[27] = 0xfe;
    prime[30] = 0xfc;
    for low in [0x2d, 0x2e, 0x2f, 0x30] {
        prime[31] = low;
        all.push(prime);
    }
    for interval in &filter.top {
        for edge in [interval.first, interval.last] {
            for near in [edge.wrapping_sub(1), edge, edge.wrapping_add(1)] {
                for fill in [0, 0xff, 0x5a] {
                    let mut bytes = [fill; 32];
                    bytes[..8].copy_from_slice(&near.to_be_bytes());
                    all.push(bytes);
                }
            }
        }
    }
    for bit in 0..256 {
        let mut bytes = [0; 32];
        bytes[bit / 8] = 0x80 >> (bit % 8);
        all.push(bytes);
        all.push(bytes.map(|byte| !byte));
    }
    all
}

#[test]
fn edges_of_intervals_and_of_the_digest_are_decided_as_the_text_says() {
    let sets: &[&[&str]] = &[
        &["q"],
        &["l"],
        &["c"],
        &["qqqqqq"],
        &["llllll"],
        &["qqqqqqq"],
        &["lllllll"],
        &["cafecafe"],
        &["?q"],
        &["?l"],
        &["c?fe"],
        &["l?????l"],
        &["q", "p"],
        &["7", "l"],
        &["qq", "q", "ql"],
        &["..q"],
        &["..l"],
        &["q..q"],
        &["l..l"],
        &["..qq.."],
        &["..ll.."],
        &["/^[ql]/"],
        &["/^(qq|ll|ca)/"],
        &["/^q.*q/"],
        &["/q{3}|l{3}/"],
        &["/^[^q]/"],
        &["/^[qpzr]{2}..[zr]/"],
        &["0000", "..0000", "/^0/"],
    ];
    for set in sets {
        let patterns = compile(*set, npub(), &Options::default()).unwrap();
        for filter in filters(&patterns) {
            for bytes in edges(&filter) {
                let digest = Digest::new(&bytes);
                let text = npub().encode(&digest);
                if patterns.find(&text).is_some() {
                    assert!(filter.accepts(&digest.words()), "{set:?} {text}");
                }
            }
        }
    }
}

#[test]
fn prefixes_filters_are_exact_up_to_the_top_bits() {
    for set in [&["cafe"][..], &["c?fe"], &["q", "ca", "cafe"], &["/^(ca|fe)/"], &["ll", "?7"], &["?????l"]] {
        let patterns = compile(set, npub(), &Options::default()).unwrap();
        for filter in filters(&patterns) {
            for bytes in edges(&filter) {
                let digest = Digest::new(&bytes);
                let found = patterns.find(&npub().encode(&digest)).is_some();
                assert_eq!(filter.accepts(&digest.words()), found, "{set:?}");
            }
        }
    }
}

#[test]
fn the_lowering_follows_the_allowed_false_accepts() {
    let filter = |pattern: &str, max_false: f64| compiled(&[pattern.to_string()]).filter(max_false);
    let shape = |pattern: &str, max_false: f64| {
        let filter = filter(pattern, max_false);
        (filter.top.len(), filter.terms.len())
    };
    assert_eq!(shape("cafe", 0.0), (1, 0));
    assert_eq!(shape("cafecafecafe", 0.0), (1, 0));
    assert_eq!(shape("c?fe", 0.0), (32, 0));
    assert_eq!(shape("cafe..8a8e", 2f64.powi(-19)), (1, 0));
    assert_eq!(shape("cafe..8a8e", 2f64.powi(-30)), (0, 1));
    assert_eq!(shape("..cafe", 0.5), (0, 1));
    // 55 places, less the four that would put one of these at the 52nd position.
    assert_eq!(shape("..cafe..", 0.5), (0, 51));
    // One place for each position of the stronger part, where that is enough; else one for each pair.
    assert_eq!(shape("/ca.*fefe/", 1e-3), (0, 49));
    assert!(shape("/ca.*fefe/", 1e-9).1 > 1000);
    assert_eq!(shape("????????cafe", 0.0), (0, 1));
    assert_eq!(shape("/^(cafe|8a8e)/", 0.0), (2, 0));
    assert_eq!(shape("/cafe$/", 0.0), (0, 1));
    assert_eq!(shape("/[a-z]{20}/", 0.0).0, 0);

    let both = filter("cafe..8a8e", 0.0);
    assert_eq!(both.terms[0].mask, [0xffff_f000_0000_0000, 0, 0, 0]);
    assert_eq!(both.terms[0].parities.len(), 20);
    // Nothing useful is implied: everything is accepted.
    for weak in ["/[ql].*[ql]/", "/[a-f].*[0-9].*[a-f].*[0-9]/", "/[ac]|[de].*[fg]/"] {
        let weak = filter(weak, 0.0);
        assert!(weak.top.is_empty() && weak.terms.len() == 1);
        assert!(weak.accepts(&[0; 4]) && weak.accepts(&[u64::MAX; 4]));
    }
    // Too many alternatives to keep apart still leave what they share.
    let many = filter("/[ac]?[de]?[fg]?[hj]?[kl]?[mn]?[pq]?[rs]?[tu]?[vw]?[xy]?[z0]?zzzz/", 0.0);
    assert_eq!(many.terms.len(), 51);
    let words = "/cafe|8a8e|xyzxyz|000|lal/";
    assert!(filter(words, 0.0).terms.len() <= 4096 && filter(words, 0.0).terms.len() > 250);
}

#[test]
fn the_first_of_several_matches_wins() {
    let text = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg";
    let find = |set: &[&str]| compile(set, npub(), &Options::default()).unwrap().find(text);
    assert_eq!(find(&["0elfc", "0e", "0elf", "0e"]), Some(0));
    assert_eq!(find(&["cafe", "0e", "0elfc"]), Some(1));
    assert_eq!(find(&["..tg", "0e"]), Some(0));
    assert_eq!(find(&["0e", "..tg"]), Some(0));
    assert_eq!(find(&["cafe", "..cafe", "/^0/", "0e"]), Some(2));
    assert_eq!(find(&["cafe"]), None);
    assert_eq!(find(&[]), None);
    let patterns = compile(["npub10e"], npub(), &Options::default()).unwrap();
    assert_eq!((patterns.find(text), patterns.text(0), patterns.len()), (Some(0), "npub10e", 1));
    for odd in ["", "npub1", "npub", "nsec10e", "NPUB10ELF", "npub10", "npub1é", "npub1bbbb"] {
        assert_eq!(patterns.find(odd), None, "{odd}");
    }
}

#[test]
fn every_symbol_is_a_prefix_of_its_own() {
    for &symbol in ALPHABET {
        let pattern = char::from(symbol).to_string();
        let patterns = compiled(std::slice::from_ref(&pattern));
        assert_eq!(patterns.odds(), 1.0 / 32.0);
        let filter = patterns.filter(0.0);
        assert_eq!(filter.top.len(), 1);
        assert_eq!(filter.top[0].last - filter.top[0].first, u64::MAX >> 5);
    }
}
