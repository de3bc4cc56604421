//! See `warpsmith_fuzzing::fleet_messages`. Run: `tools/fuzz.sh 60 fleet_messages`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::fleet_messages(data));
