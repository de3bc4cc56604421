//! See `warpsmith_fuzzing::address_decode`. Run: `tools/fuzz.sh 60 address_decode`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::address_decode(data));
