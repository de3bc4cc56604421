//! See `warpsmith_fuzzing::store_files`. Run: `tools/fuzz.sh 60 store_files`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::store_files(data));
