//! Which crate may know which: the arrows of docs/architecture.md, held against `cargo metadata`. And that every test there is
//! belongs to a program that is run, and that every crate can be published or says that it is not meant to be.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Each crate of ours and all it may depend on directly.
const ALLOWED: &[(&str, &[&str])] = &[
    ("warpsmith-simd", &[]),
    ("warpsmith-curve", &["warpsmith-simd"]),
    ("warpsmith-entropy", &[]),
    ("warpsmith-files", &[]),
    ("warpsmith-hash", &["warpsmith-simd"]),
    ("warpsmith-http", &[]),
    ("warpsmith-kernel", &[]),
    ("warpsmith-text", &[]),
    ("warpsmith-device", &["warpsmith-simd", "warpsmith-text"]),
    ("warpsmith-console", &["warpsmith-device", "warpsmith-files", "warpsmith-http", "warpsmith-text"]),
    ("warpsmith-trials", &["warpsmith-curve"]),
    ("warpsmith-chain", &["warpsmith-hash", "warpsmith-text"]),
    ("warpsmith-pattern", &["warpsmith-chain", "warpsmith-text"]),
    ("warpsmith-keystore", &["warpsmith-chain", "warpsmith-entropy", "warpsmith-text"]),
    ("warpsmith-store", &["warpsmith-entropy", "warpsmith-files", "warpsmith-chain", "warpsmith-text"]),
    (
        "warpsmith-engine",
        &[
            "warpsmith-curve",
            "warpsmith-device",
            "warpsmith-entropy",
            "warpsmith-hash",
            "warpsmith-kernel",
            "warpsmith-pattern",
            "warpsmith-simd",
            "warpsmith-store",
            "warpsmith-chain",
            "warpsmith-text",
        ],
    ),
    (
        "warpsmith-rms24",
        &[
            "warpsmith-device",
            "warpsmith-entropy",
            "warpsmith-files",
            "warpsmith-hash",
            "warpsmith-http",
            "warpsmith-kernel",
            "warpsmith-simd",
        ],
    ),
    (
        "warpsmith-eth-state",
        &[
            "warpsmith-chain",
            "warpsmith-device",
            "warpsmith-entropy",
            "warpsmith-files",
            "warpsmith-hash",
            "warpsmith-http",
            "warpsmith-rms24",
            "warpsmith-text",
        ],
    ),
    (
        "warpsmith-fleet",
        &[
            "warpsmith-chain",
            "warpsmith-engine",
            "warpsmith-entropy",
            "warpsmith-files",
            "warpsmith-pattern",
            "warpsmith-store",
            "warpsmith-text",
        ],
    ),
    (
        "warpsmith",
        &[
            "warpsmith-curve",
            "warpsmith-engine",
            "warpsmith-entropy",
            "warpsmith-fleet",
            "warpsmith-keystore",
            "warpsmith-pattern",
            "warpsmith-store",
            "warpsmith-chain",
        ],
    ),
    (
        "warpsmith-cli",
        &["warpsmith", "warpsmith-console", "warpsmith-files", "warpsmith-http", "warpsmith-text"],
    ),
    (
        "warpsmith-pir",
        &[
            "warpsmith-console",
            "warpsmith-device",
            "warpsmith-eth-state",
            "warpsmith-files",
            "warpsmith-http",
            "warpsmith-rms24",
            "warpsmith-simd",
            "warpsmith-store",
        ],
    ),
    (
        "warpsmith-fuzzing",
        &[
            "warpsmith-engine",
            "warpsmith-fleet",
            "warpsmith-keystore",
            "warpsmith-pattern",
            "warpsmith-rms24",
            "warpsmith-store",
            "warpsmith-chain",
        ],
    ),
];

/// All crates of the workspace.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages").clone();
    assert!(packages.len() >= 7);
    packages
}

#[test]
fn crates_depend_only_on_what_lies_below_them() {
    for package in packages() {
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

/// The crates of ours that a package is made of, itself among them, tests aside.
fn made_of(name: &str) -> Vec<String> {
    let packages = packages();
    let (mut seen, mut waiting) = (Vec::new(), vec![name.to_owned()]);
    while let Some(name) = waiting.pop() {
        let package = packages.iter().find(|package| package["name"] == name.as_str()).expect("one of ours");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let other = dependency["name"].as_str().expect("a name").to_owned();
            if dependency["kind"].is_null() && other.starts_with("warpsmith") && !seen.contains(&other) {
                waiting.push(other);
            }
        }
        seen.push(name);
    }
    seen
}

/// Somebody who wants an npub compiles no server of databases, and whoever runs one no search.
#[test]
fn neither_program_is_made_of_what_only_the_other_does() {
    let (search, retrieval) = (made_of("warpsmith-cli"), made_of("warpsmith-pir"));
    for name in ["warpsmith-rms24", "warpsmith-eth-state", "warpsmith-pir"] {
        assert!(!search.iter().any(|other| other == name), "warpsmith is made of {name}");
    }
    for name in ["", "-curve", "-engine", "-fleet", "-keystore", "-pattern", "-cli"] {
        let name = format!("warpsmith{name}");
        assert!(!retrieval.contains(&name), "warpsmith-pir is made of {name}");
    }
}

/// Retrieval serves whatever it is given: neither it nor what it is made of, tests aside, knows a chain.
#[test]
fn private_retrieval_knows_no_chain() {
    let parts = made_of("warpsmith-rms24");
    for name in ["warpsmith-chain", "warpsmith-eth-state"] {
        assert!(!parts.iter().any(|part| part == name), "{name} is below retrieval");
    }
    assert!(parts.len() > 3, "{parts:?}");
    for file in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../rms24/src"), true) {
        let text = std::fs::read_to_string(&file).expect("a source").to_lowercase();
        for word in ["ethereum", "bitcoin", "blockchain", "wallet", "eth_"] {
            assert!(!text.contains(word), "{} speaks of {word}", file.display());
        }
    }
}

/// What crates.io asks for or shows, and what a reader of a package needs: `cargo package` warns at most. Categories are some
/// of those that crates.io has.
#[test]
fn what_is_published_is_whole_and_depends_on_nothing_else_of_ours() {
    const FOR_TESTS_ALONE: [&str; 2] = ["warpsmith-fuzzing", "warpsmith-trials"];
    const CATEGORIES: [&str; 14] = [
        "algorithms",
        "command-line-utilities",
        "concurrency",
        "cryptography",
        "cryptography::cryptocurrencies",
        "database",
        "database-implementations",
        "encoding",
        "filesystem",
        "hardware-support",
        "network-programming",
        "os",
        "os::unix-apis",
        "text-processing",
    ];
    for package in packages() {
        let name = package["name"].as_str().expect("a name");
        // What may not be published has an empty list of registries.
        let is_published = package["publish"].is_null();
        assert_eq!(is_published, !FOR_TESTS_ALONE.contains(&name), "{name}");
        if !is_published {
            continue;
        }
        let folder =
            Path::new(package["manifest_path"].as_str().expect("a path")).parent().expect("a folder");
        for field in ["description", "license", "repository", "readme", "rust_version"] {
            assert!(package[field].as_str().is_some_and(|text| !text.is_empty()), "{name} has no {field}");
        }
        let texts = |field: &str| -> Vec<String> {
            let all = package[field].as_array().expect("a list").iter();
            all.map(|text| text.as_str().expect("text").to_owned()).collect()
        };
        let (keywords, categories) = (texts("keywords"), texts("categories"));
        assert!((1..=5).contains(&keywords.len()) && keywords.iter().all(|word| word.len() <= 20), "{name}");
        let is_known = |category: &String| CATEGORIES.contains(&category.as_str());
        assert!(
            (1..=5).contains(&categories.len()) && categories.iter().all(is_known),
            "{name}: {categories:?}"
        );
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let text = std::fs::read_to_string(folder.join(licence)).unwrap_or_default();
            assert!(text.len() > 500, "{name} has no {licence}; link it to the one of the workspace");
        }
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let other = dependency["name"].as_str().expect("a name");
            // Without a version it is left out of the package, which is right for tests alone.
            if other.starts_with("warpsmith") {
                let is_left_out = dependency["req"] == "*";
                let is_for_tests = FOR_TESTS_ALONE.contains(&other) && dependency["kind"] == "dev";
                assert_eq!(is_left_out, is_for_tests, "{name} depends on {other}: give it a version");
            }
        }
    }
}

/// Several files of `tests/` make one program, and a library without tests of its own is not compiled for them: a file
/// or a test that is added beside these must not go by unnoticed.
#[test]
fn every_test_belongs_to_a_program_that_is_run() {
    for package in packages() {
        let folder =
            Path::new(package["manifest_path"].as_str().expect("a path")).parent().expect("a folder");
        let targets = package["targets"].as_array().expect("targets");
        let of_kind = |kind: &str| {
            let kind = kind.to_owned();
            targets.iter().filter(move |target| target["kind"][0] == kind.as_str())
        };
        let sources: Vec<(&Path, String)> = of_kind("test")
            .map(|target| Path::new(target["src_path"].as_str().expect("a path")))
            .map(|path| (path, std::fs::read_to_string(path).expect("a source")))
            .collect();
        for file in files(&folder.join("tests"), false) {
            let module = format!("mod {};", file.file_stem().expect("a name").to_str().expect("text"));
            let is_run = sources.iter().any(|(path, text)| *path == file || text.contains(&module));
            assert!(is_run, "{} is part of no test program: write `{module}` in one", file.display());
        }
        for library in of_kind("lib").filter(|library| library["test"] == false) {
            let source = Path::new(library["src_path"].as_str().expect("a path"));
            for file in files(source.parent().expect("a folder"), true) {
                let text = std::fs::read_to_string(&file).expect("a source");
                let has_tests =
                    text.contains("#[cfg(test)]") || text.contains("//! ```") || text.contains("/// ```");
                assert!(
                    !has_tests,
                    "{}: Cargo.toml says `test = false`, this would not be run",
                    file.display()
                );
            }
        }
    }
}

/// The Rust files of a folder, and of those in it.
fn files(folder: &Path, whole: bool) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() && whole {
            found.extend(files(&path, whole));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found
}
