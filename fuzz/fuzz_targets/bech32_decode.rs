//! See `warpsmith_fuzzing::bech32_decode`. Run: `tools/fuzz.sh 60 bech32_decode`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::bech32_decode(data));
