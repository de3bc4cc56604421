//! See `warpsmith_fuzzing::pir_messages`. Run: `tools/fuzz.sh 60 pir_messages`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::pir_messages(data));
