//! See `warpsmith_fuzzing::fleet_files`. Run: `tools/fuzz.sh 60 fleet_files`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::fleet_files(data));
