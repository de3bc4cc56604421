//! See `warpsmith_fuzzing::key_stores`. Run: `tools/fuzz.sh 60 key_stores`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::key_stores(data));
