//! The public names of the library, compared with `API.md`, so that they change only on purpose.
//!
//! `WRITE_API=1 cargo test -p warpsmith --test interface` writes the page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names of each module, by its path.
type Names = BTreeMap<String, BTreeSet<String>>;

const HEAD: &str = "# Public interface of `warpsmith`\n\n\
    Every public name, by module. `crates/warpsmith/tests/interface.rs` compares this page with the code.\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The names that a list of `pub use` gives, without the path before them.
fn imported(list: &str) -> Vec<String> {
    let list = match list.split_once('{') {
        Some((_, names)) => names.trim_end_matches('}'),
        None => list,
    };
    assert!(!list.contains('{') && !list.contains('*'), "one list without globs: {list}");
    let name = |one: &str| {
        let last = one.rsplit("::").next().expect("a name");
        last.rsplit(" as ").next().expect("a name").trim().to_owned()
    };
    list.split(',').map(str::trim).filter(|one| !one.is_empty()).map(name).collect()
}

/// Adds what the text of a module declares, at the left edge of it and of the modules within.
fn collect(text: &str, module: &str, folder: &Path, names: &mut Names) {
    let mut path = vec![module.to_owned()];
    let mut import: Option<String> = None;
    for line in text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().lines() {
        let margin = line.len() - line.trim_start().len();
        let (depth, line) = (path.len() - 1, line.trim());
        if let Some(list) = &mut import {
            *list += line;
        } else if margin == 4 * depth && line.starts_with("pub use ") {
            import = Some(line["pub use ".len()..].to_owned());
        }
        if let Some(list) = import.take_if(|list| list.ends_with(';')) {
            names.entry(path.join("::")).or_default().extend(imported(list.trim_end_matches(';')));
            continue;
        }
        if depth > 0 && margin == 4 * (depth - 1) && line == "}" {
            path.pop();
        }
        let Some(declared) = line.strip_prefix("pub ").filter(|_| margin == 4 * depth) else { continue };
        let (kind, rest) = declared.split_once(' ').unwrap_or((declared, ""));
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        match kind {
            "mod" if rest.ends_with('{') => path.push(name),
            "mod" => {
                let files = [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")];
                let file = files.iter().find(|file| file.exists()).expect("the module's file");
                let text = fs::read_to_string(file).expect("a source");
                collect(&text, &format!("{}::{name}", path.join("::")), &folder.join(&name), names);
            }
            "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" => {
                names.entry(path.join("::")).or_default().insert(name);
            }
            _ => {}
        }
    }
}

fn page(names: &Names) -> String {
    names.iter().fold(HEAD.to_owned(), |page, (module, names)| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        format!("{page}\n## `{module}`\n\n{}\n", names.join(", "))
    })
}

#[test]
fn the_page_lists_every_public_name() {
    let (text, mut names) =
        (fs::read_to_string(folder().join("src/lib.rs")).expect("a source"), Names::new());
    collect(&text, "warpsmith", &folder().join("src"), &mut names);
    assert!(names.len() > 10 && names["warpsmith"].contains("mine"), "{names:?}");
    let file = folder().join("API.md");
    if std::env::var_os("WRITE_API").is_some() {
        fs::write(&file, page(&names)).expect("written");
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    let (expected, found): (BTreeSet<String>, BTreeSet<String>) = (listed(&page(&names)), listed(&written));
    let (new, gone): (Vec<_>, Vec<_>) =
        (expected.difference(&found).collect(), found.difference(&expected).collect());
    assert!(
        written == page(&names),
        "the public interface changed; new: {new:?}, gone: {gone:?}. If that is meant, run WRITE_API=1 cargo test -p warpsmith \
         --test interface"
    );
}

/// Each name of a page behind its module.
fn listed(page: &str) -> BTreeSet<String> {
    let mut module = "";
    let mut all = BTreeSet::new();
    for line in page.lines() {
        match line.strip_prefix("## ") {
            Some(name) => module = name.trim_matches('`'),
            None if line.starts_with('`') => {
                all.extend(line.split(", ").map(|name| format!("{module}::{}", name.trim_matches('`'))));
            }
            None => {}
        }
    }
    all
}

#[test]
fn declarations_and_lists_are_read() {
    let text = "pub use a::b;\npub use c::{\n    d, e as f,\n};\nuse g::h;\npub mod i {\n    pub use j::{k, l};\n\n    \
                pub mod m {\n        pub fn n() {}\n    }\n}\npub fn o() {\n    pub struct P;\n}\npub(crate) fn q() {}\n";
    let mut names = Names::new();
    collect(text, "x", Path::new("nowhere"), &mut names);
    let of = |module: &str| names[module].iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    assert_eq!((of("x"), of("x::i"), of("x::i::m")), ("b d f o".into(), "k l".into(), "n".into()));
}
