//! Every input that is kept in `fuzz/` once more: seeds made by hand, and what the fuzzer found worth keeping.

use std::fs;
use std::path::Path;

use warpsmith_fuzzing::TARGETS;

/// Bytes of two hex digits each.
fn bytes(line: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&line[at..at + 2], 16).expect("hex digits");
    (0..line.len()).step_by(2).map(byte).collect()
}

#[test]
fn kept_inputs_are_read_or_refused() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    for (name, target) in TARGETS {
        let mut inputs = Vec::new();
        for seed in fs::read_dir(fuzz.join("seeds").join(name)).into_iter().flatten() {
            inputs.push(fs::read(seed.expect("an entry").path()).expect("a seed"));
        }
        let kept = fs::read_to_string(fuzz.join("kept").join(format!("{name}.hex")));
        inputs.extend(kept.iter().flat_map(|text| text.lines().map(bytes)));
        println!("{name}: {} inputs", inputs.len());
        // Nothing at all is an input too.
        inputs.push(Vec::new());
        inputs.iter().for_each(|input| target(input));
    }
}

#[test]
fn every_target_has_seeds_and_its_own_file() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut names: Vec<String> = fs::read_dir(fuzz.join("fuzz_targets"))
        .expect("the folder of the targets")
        .map(|entry| {
            entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    assert!(names.iter().eq(TARGETS.iter().map(|(name, _)| name)), "{names:?}");
    for name in names {
        let seeds = fs::read_dir(fuzz.join("seeds").join(&name));
        assert!(seeds.is_ok_and(|mut seeds| seeds.next().is_some()), "{name} has no seeds");
    }
}
