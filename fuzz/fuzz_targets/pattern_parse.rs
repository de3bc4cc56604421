//! See `warpsmith_fuzzing::pattern_parse`. Run: `tools/fuzz.sh 60 pattern_parse`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::pattern_parse(data));
