//! See `warpsmith_fuzzing::scan_text`. Run: `tools/fuzz.sh 60 scan_text`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::scan_text(data));
