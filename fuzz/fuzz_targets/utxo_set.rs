//! See `warpsmith_fuzzing::utxo_set`. Run: `tools/fuzz.sh 60 utxo_set`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warpsmith_fuzzing::utxo_set(data));
