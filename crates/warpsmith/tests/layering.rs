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
            "warpsmith-http",
            "warpsmith-keystore",
            "warpsmith-pattern",
            "warpsmith-store",
            "warpsmith-chain",
            "warpsmith-text",
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

/// Crates of programs and of tests: all others are libraries.
const PROGRAMS: [&str; 5] = ["cli", "console", "fuzzing", "pir-cli", "trials"];

/// Texts of libraries with flags in them: those of other programs.
const FLAGS_OF_OTHERS: [(&str, &str); 8] = [
    ("chain/src/ethereum/account.rs", "`cast wallet import NAME --interactive`"),
    ("chain/src/ethereum/salted.rs", "\" --from {}\""),
    (
        "chain/src/ethereum/salted.rs",
        "\"cast send {deployer} {arguments}{from} --interactive --rpc-url URL{note}\"",
    ),
    ("device/src/cuda/nvrtc.rs", "--gpu-architecture="),
    ("fleet/src/net/connect.rs", "nats-server --signal reload"),
    // Retrieval's own program reads it from its server.
    ("rms24/src/server/routes.rs", "(warpsmith-pir hint --token-file)"),
    // geth's.
    ("eth-state/src/import/dump.rs", "without --limit"),
    ("eth-state/src/import/dump.rs", "with --cache.preimages"),
];

/// Files of the libraries' sources that are not tests, by their names below `crates`, without comments and the tests at their ends.
fn library_sources() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder");
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(crates).expect("crates") {
        let folder = entry.expect("an entry").path();
        if PROGRAMS.iter().any(|program| folder.ends_with(program)) {
            continue;
        }
        for file in texts(&folder.join("src")) {
            let name = file.strip_prefix(crates).expect("below it").to_str().expect("text").to_owned();
            if name.contains("/tests/") || name.ends_with("tests.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&file).expect("a source");
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let is_comment =
                |line: &&str| line.starts_with("//") || line.starts_with('#') && name.ends_with(".toml");
            let code: Vec<&str> = code.lines().filter(|line| !is_comment(&line.trim_start())).collect();
            sources.push((name, code.join("\n")));
        }
    }
    assert!(sources.len() > 200, "{}", sources.len());
    sources
}

/// Rust files and tables of a folder and those in it.
fn texts(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(texts(&path));
        } else if path.extension().is_some_and(|end| end == "rs" || end == "toml") {
            found.push(path);
        }
    }
    found
}

/// Places of a text at which a flag is written: two hyphens and a lower-case letter, behind neither a letter nor a hyphen.
fn flags(line: &str) -> bool {
    line.match_indices("--").any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let is_start = !before.is_some_and(|before| before == '-' || before.is_alphanumeric());
        is_start && line[at + 2..].starts_with(|next: char| next.is_ascii_lowercase())
    })
}

/// Libraries say what is missing or wrong; the command line knows which flag gives it (`crates/cli/src/advice.rs`).
#[test]
fn no_message_of_a_library_names_a_flag() {
    let mut found = Vec::new();
    for (name, mut code) in library_sources() {
        for (_, text) in FLAGS_OF_OTHERS.iter().filter(|(file, _)| *file == name) {
            assert!(code.contains(text), "{name} no longer has {text}: take it off the list");
            code = code.replace(text, "");
        }
        found.extend(code.lines().filter(|line| flags(line)).map(|line| format!("{name}: {}", line.trim())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn flags_are_told_from_hyphens() {
    for line in ["add --type", "\"--type\"", "(--mask)", "`--salt`"] {
        assert!(flags(line), "{line}");
    }
    for line in ["a--b", "---x", "-- x", "--X", "-x", "<!-- table -->"] {
        assert!(!flags(line), "{line}");
    }
}

/// Errors are types, which callers can match.
#[test]
fn no_error_of_a_library_is_a_text() {
    const CHECKED: [&str; 10] =
        ["chain", "device", "files", "fleet", "hash", "http", "kernel", "keystore", "pattern", "store"];
    let is_text = |line: &str| {
        let line = line.trim_end_matches(['{', ' ', ',', ';']);
        line.contains("Result<") && (line.ends_with(", String>") || line.ends_with(", &'static str>"))
    };
    let found = library_sources()
        .into_iter()
        .filter(|(name, _)| CHECKED.iter().any(|checked| name.split('/').next() == Some(*checked)));
    let found: Vec<String> = found
        .flat_map(|(name, code)| {
            let lines =
                code.lines().filter(|line| is_text(line)).map(|line| format!("{name}: {}", line.trim()));
            lines.collect::<Vec<_>>()
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(is_text("fn read() -> Result<u8, String> {") && !is_text("fn read() -> Result<Vec<String>> {"));
}

/// The lints know the oldest compiler from a file of their own.
#[test]
fn lints_are_those_of_the_oldest_compiler() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lints = std::fs::read_to_string(root.join("clippy.toml")).expect("a file");
    for package in packages() {
        let oldest = package["rust_version"].as_str().expect("a version");
        assert!(lints.contains(&format!("msrv = \"{oldest}\"\n")), "{}: {oldest}", package["name"]);
    }
}
