//! Which crate may know which: the arrows of docs/architecture.md, held against `cargo metadata`.

use std::process::Command;

use serde_json::Value;

/// Each crate of ours and all it may depend on directly.
const ALLOWED: &[(&str, &[&str])] = &[
    ("warpsmith-curve", &[]),
    ("warpsmith-entropy", &[]),
    ("warpsmith-files", &[]),
    ("warpsmith-hash", &[]),
    ("warpsmith-kernel", &[]),
    ("warpsmith-device", &[]),
    ("warpsmith-trials", &[]),
    ("warpsmith-chain", &["warpsmith-hash"]),
    ("warpsmith-pattern", &["warpsmith-chain"]),
    ("warpsmith-store", &["warpsmith-entropy", "warpsmith-files", "warpsmith-chain"]),
    (
        "warpsmith-engine",
        &[
            "warpsmith-curve",
            "warpsmith-device",
            "warpsmith-entropy",
            "warpsmith-hash",
            "warpsmith-kernel",
            "warpsmith-pattern",
            "warpsmith-store",
            "warpsmith-chain",
        ],
    ),
    (
        "warpsmith-pir",
        &["warpsmith-device", "warpsmith-entropy", "warpsmith-files", "warpsmith-hash", "warpsmith-kernel"],
    ),
    (
        "warpsmith",
        &[
            "warpsmith-curve",
            "warpsmith-engine",
            "warpsmith-entropy",
            "warpsmith-pattern",
            "warpsmith-pir",
            "warpsmith-store",
            "warpsmith-chain",
        ],
    ),
    ("warpsmith-cli", &["warpsmith", "warpsmith-files"]),
    (
        "warpsmith-fuzzing",
        &["warpsmith-engine", "warpsmith-pattern", "warpsmith-pir", "warpsmith-store", "warpsmith-chain"],
    ),
];

#[test]
fn crates_depend_only_on_what_lies_below_them() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() >= 7);
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        let (_, allowed) = ALLOWED.iter().find(|(crate_name, _)| *crate_name == name).unwrap_or_else(|| {
            panic!("{name} has no place in the layering; give it one here and in the docs")
        });
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let other = dependency["name"].as_str().expect("a name");
            // Development dependencies may look anywhere: they are tests.
            if dependency["kind"].is_null() && other.starts_with("warpsmith") {
                assert!(allowed.contains(&other), "{name} must not depend on {other}");
            }
        }
    }
}
