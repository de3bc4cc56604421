//! See `warpsmith_fuzzing::pir_files`. Run: `tools/fuzz.sh 60 pir_files`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::pir_files(data));
