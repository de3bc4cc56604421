//! A million prefixes: read within seconds, kept compactly, found at once.

use std::time::{Duration, Instant};

use warpsmith_chain::{Digest, find};
use warpsmith_pattern::{Options, compile};

const ALPHABET: &[u8] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

#[test]
fn a_million_prefixes_compile_in_time_and_are_found() {
    let npub = find("npub").unwrap();
    let mut state = 1u64;
    let mut symbol = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(ALPHABET[(state >> 59) as usize])
    };
    // Six to twelve symbols each.
    let texts: Vec<String> = (0..1_000_000).map(|i| (0..6 + i % 7).map(|_| symbol()).collect()).collect();

    let began = Instant::now();
    let patterns = compile(&texts, npub, &Options::default()).unwrap();
    let compiled = began.elapsed();
    let filter = patterns.filter(1e-9);
    let lowered = began.elapsed() - compiled;
    eprintln!("compile {compiled:?}, filter {lowered:?}");
    // Generous, for a slow and busy machine; an optimised build takes about half a second.
    assert!(compiled + lowered < Duration::from_secs(120));

    assert_eq!(patterns.len(), texts.len());
    assert!(filter.terms.is_empty());
    assert!(filter.top.len() > 900_000 && filter.top.len() <= texts.len());
    // About a seventh of a million in each of 30, 35, ... bits; the short ones dominate.
    let expected = 1e6 / 7.0 * 2f64.powi(-30) * 32.0 / 31.0;
    assert!((patterns.odds() / expected - 1.0).abs() < 0.01);

    for (index, text) in texts.iter().enumerate().step_by(9973) {
        let whole = format!("npub1{text}{}", "q".repeat(58 - text.len()));
        let found = patterns.find(&whole).unwrap();
        assert!(found <= index && text.starts_with(&texts[found]) || texts[found].starts_with(text.as_str()));
        let value = |byte: u8| ALPHABET.iter().position(|&symbol| symbol == byte).unwrap() as u64;
        let first =
            text.bytes().chain(*b"qqqqqq").take(12).fold(0, |word, byte| word << 5 | value(byte)) << 4;
        assert!(filter.accepts(&[first, 0, 0, 0]));
    }
    let began = Instant::now();
    for i in 0..10_000u64 {
        let digest = Digest::new(&[i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(); 4].concat());
        let text = npub.encode(&digest);
        if let Some(found) = patterns.find(&text) {
            assert!(text[5..].starts_with(patterns.text(found)));
        }
    }
    assert!(began.elapsed() < Duration::from_secs(60));
}
