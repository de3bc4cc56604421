//! See `warpsmith_fuzzing::bitcoin_decode`. Run: `tools/fuzz.sh 60 bitcoin_decode`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::bitcoin_decode(data));
