//! Arbitrary text as a pattern for every target: it is refused, or its filter and exact test work and agree.
//! Run: `cargo fuzz run pattern_parse fuzz/corpus/pattern_parse fuzz/seeds/pattern_parse`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use warpsmith_pattern::{Options, compile};
use warpsmith_target::bitcoin::Bitcoin;
use warpsmith_target::{Digest, Layout, TARGETS, Target};

fuzz_target!(|data: &[u8]| {
    // The first bytes make a digest, so that the fuzzer can look for one that matches but is not accepted.
    let (bytes, pattern) = data.split_at(data.len().min(32));
    let Ok(pattern) = std::str::from_utf8(if pattern.is_empty() { bytes } else { pattern }) else { return };
    let mut digest = [0; 32];
    digest[..bytes.len()].copy_from_slice(bytes);

    let bitcoin: Vec<Bitcoin> = Bitcoin::all().collect();
    let others = TARGETS.iter().map(|target| *target as &dyn Target);
    for target in others.chain(bitcoin.iter().map(|target| target as &dyn Target)) {
        // Of 20 bytes or 32, as the text tells.
        let length = match target.layout() {
            Layout::Linear(linear) if linear.symbols.len() > 40 => 32,
            _ => 20,
        };
        let digest = Digest::new(&digest[..length]);
        for (ignore_case, checksum) in [(false, false), (true, false), (false, true)] {
            let Ok(patterns) = compile([pattern], target, &Options { ignore_case, checksum }) else {
                continue;
            };
            assert!(patterns.odds() > 0.0 && patterns.odds() <= 1.0);
            patterns.find(pattern);
            let found = patterns.find(&target.encode(&digest));
            for max_false in [1e-3, 1e-9] {
                assert!(patterns.filter(max_false).accepts(&digest.words()) || found.is_none());
            }
        }
    }
});
