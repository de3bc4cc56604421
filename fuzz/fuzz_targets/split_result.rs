//! See `warpsmith_fuzzing::split_result`. Run: `tools/fuzz.sh 60 split_result`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::split_result(data));
