//! No modules of a crate import each other in a ring: whoever reads one can read on downwards and comes to an end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module by its path within the crate; the root is empty.
type Module = Vec<String>;

/// The modules of a source folder, with their text.
fn modules(root: &Path) -> BTreeMap<Module, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![(root.to_owned(), Module::new())];
    while let Some((folder, within)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let stem = path.file_stem().expect("a name").to_str().expect("text").to_owned();
            let mut module = within.clone();
            if path.is_dir() {
                module.push(stem);
                folders.push((path, module));
            } else if path.extension().is_some_and(|end| end == "rs") {
                let is_own = stem == "mod" || (within.is_empty() && (stem == "lib" || stem == "main"));
                if !is_own {
                    module.push(stem);
                }
                found.insert(module, fs::read_to_string(&path).expect("a source"));
            }
        }
    }
    found
}

/// Paths that a source names, from `crate`, `self` or `super` on: comments and its unit tests are left out.
fn named_paths(text: &str) -> Vec<Vec<String>> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let is_part_of_a_name = |character: char| character.is_alphanumeric() || character == '_';
    let mut paths = Vec::new();
    for head in ["crate", "self", "super"] {
        for (at, _) in code.match_indices(&format!("{head}::")) {
            if code[..at].ends_with(|before: char| is_part_of_a_name(before) || before == ':') {
                continue;
            }
            expand(&code[at..], &mut Vec::new(), &mut paths);
        }
    }
    paths
}

/// Adds the path at the start of a text, or all paths of the group it ends with, and returns the text behind.
fn expand<'t>(text: &'t str, head: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> &'t str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(text.len());
    let before = head.len();
    head.extend(text[..end].split("::").filter(|part| !part.is_empty()).map(str::to_owned));
    let mut rest = &text[end..];
    if text[..end].ends_with("::") && rest.starts_with('{') {
        while let Some(inner) = rest.strip_prefix(['{', ',']) {
            rest = expand(inner.trim_start(), head, paths).trim_start();
            // A name behind `as` says nothing.
            rest = &rest[rest.find(['{', ',', '}']).unwrap_or(rest.len())..];
        }
        rest = rest.strip_prefix('}').unwrap_or(rest);
    } else if !head.is_empty() {
        paths.push(head.clone());
    }
    head.truncate(before);
    rest
}

/// Modules each module imports from, but for those it lies in.
fn imports(modules: &BTreeMap<Module, String>) -> BTreeMap<&Module, BTreeSet<&Module>> {
    let mut all = BTreeMap::new();
    for (module, text) in modules {
        let of = all.entry(module).or_insert_with(BTreeSet::new);
        for path in named_paths(text) {
            let mut place = if path[0] == "crate" { Module::new() } else { module.clone() };
            for part in path {
                match part.as_str() {
                    "crate" | "self" => {}
                    "super" => drop(place.pop()),
                    name => place.push(name.to_owned()),
                }
            }
            while !place.is_empty() && !modules.contains_key(&place) {
                place.pop();
            }
            let Some((other, _)) = modules.get_key_value(&place) else { continue };
            if !module.starts_with(other) {
                of.insert(other);
            }
        }
    }
    all
}

/// The modules that can be reached from one.
fn reached<'m>(
    from: &'m Module,
    imports: &BTreeMap<&'m Module, BTreeSet<&'m Module>>,
) -> BTreeSet<&'m Module> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(module) = left.pop() {
        for &next in imports.get(module).into_iter().flatten() {
            if seen.insert(next) {
                left.push(next);
            }
        }
    }
    seen
}

#[test]
fn no_modules_import_each_other_in_a_ring() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut rings = Vec::new();
    for entry in fs::read_dir(&crates).expect("the crates") {
        let krate = entry.expect("an entry").path();
        let modules = modules(&krate.join("src"));
        let imports = imports(&modules);
        let ring: Vec<String> = modules
            .keys()
            .filter(|module| reached(module, &imports).contains(module))
            .map(|module| module.join("::"))
            .collect();
        if !ring.is_empty() {
            rings.push(format!("{}: {}", krate.file_name().expect("a name").display(), ring.join(", ")));
        }
    }
    assert!(rings.is_empty(), "modules that import each other:\n{}", rings.join("\n"));
}

#[test]
fn a_ring_is_noticed() {
    let module = |name: &str| vec![name.to_owned()];
    let sources = BTreeMap::from([
        (module("a"), "use super::b::B;\n#[cfg(test)]\nmod tests { use crate::c; }".to_owned()),
        (module("b"), "// crate::c\nfn f() { crate::a::g() }".to_owned()),
        (module("c"), "use crate::{x::{Y, z}, d as e, y};".to_owned()),
        (module("d"), "use super::{self, e, c::{C, D}};".to_owned()),
    ]);
    let imports = imports(&sources);
    let reaches_itself = |name: &str| reached(&module(name), &imports).contains(&module(name));
    assert!(reaches_itself("a") && reaches_itself("b"));
    assert!(reaches_itself("c") && reaches_itself("d"), "in groups too");
    assert!(!reached(&module("a"), &imports).contains(&module("c")), "tests and comments do not count");
}
