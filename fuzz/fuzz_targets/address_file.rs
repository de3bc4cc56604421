//! See `warpsmith_fuzzing::address_file`. Run: `tools/fuzz.sh 60 address_file`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::address_file(data));
