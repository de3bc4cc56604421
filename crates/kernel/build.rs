//! Embeds the PTX files of a release build; see `src/embedded.rs`. Without `WARPSMITH_PTX` there is nothing to embed
//! and nothing is needed.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-env-changed=WARPSMITH_PTX");
    let mut entries = String::new();
    if let Some(folder) = env::var_os("WARPSMITH_PTX").filter(|folder| !folder.is_empty()) {
        println!("cargo::rerun-if-changed={}", Path::new(&folder).display());
        for path in files(Path::new(&folder)) {
            let hash = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let is_hash = hash.len() == 32 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            assert!(is_hash, "WARPSMITH_PTX: {} is not named by a hash", path.display());
            println!("cargo::rerun-if-changed={}", path.display());
            writeln!(entries, "    (0x{hash}, include_str!({path:?})),").expect("a string takes all");
        }
        assert!(!entries.is_empty(), "WARPSMITH_PTX: no .ptx file in {}", Path::new(&folder).display());
    }
    let text = format!("static EMBEDDED: &[(u128, &str)] = &[\n{entries}];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("embedded.rs");
    fs::write(out, text).expect("the build folder can be written");
}

/// The PTX files of a folder, by absolute path and in order of name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.canonicalize().unwrap_or_else(|e| panic!("WARPSMITH_PTX: {}: {e}", folder.display()));
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|e| panic!("WARPSMITH_PTX: {}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    paths.sort();
    paths
}
