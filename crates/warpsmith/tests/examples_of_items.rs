//! Every public item of this library has an example that runs as a test, or says with a link where one is.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A public item and its documentation.
struct Item {
    file: PathBuf,
    docs: String,
}

/// The sources of a crate, but for tests.
fn sources(krate: &str) -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(krate).join("src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            match entry.extension() {
                _ if entry.is_dir() => folders.push(entry),
                Some(extension) if extension == "rs" && !entry.ends_with("tests.rs") => files.push(entry),
                _ => {}
            }
        }
    }
    files
}

/// The name of what a line of a source declares at its left edge, if that is public. Constants and modules are no items to show.
fn declared(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest =
        ["fn ", "struct ", "enum ", "trait ", "type "].iter().find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// The public items of a crate by their names. Of two items of one name the documented one counts.
fn items(krate: &str) -> HashMap<String, Item> {
    let mut items: HashMap<String, Item> = HashMap::new();
    for file in sources(krate) {
        let text = fs::read_to_string(&file).expect("a source");
        let mut docs = String::new();
        for line in text.lines() {
            if let Some(said) = line.strip_prefix("///") {
                docs += said;
                docs += "\n";
            } else if let Some(name) = declared(line) {
                let item = Item { file: file.clone(), docs: std::mem::take(&mut docs) };
                items.entry(name.to_owned()).and_modify(|known| known.docs += &item.docs).or_insert(item);
            } else if line.is_empty() || line.starts_with('}') {
                docs.clear();
            }
        }
    }
    items
}

/// What this library names of the engine.
fn named_of_engine() -> HashSet<String> {
    let mut names = HashSet::new();
    for file in sources("warpsmith") {
        let text = fs::read_to_string(file).expect("a source");
        for list in text.split("pub use warpsmith_engine::{").skip(1) {
            let list = list.split('}').next().expect("a list");
            names
                .extend(list.split(',').filter_map(|name| name.split_whitespace().next()).map(str::to_owned));
        }
    }
    names
}

/// Whether an item is shown: by an example of its own, or by a link to an item, or a method, that is.
fn is_shown(item: &Item, items: &HashMap<String, Item>) -> bool {
    item.docs.contains("```")
        || item.docs.split("[`").skip(1).filter_map(|link| link.split('`').next()).any(|link| {
            let name = link.split("::").find(|part| *part != "crate").expect("a name");
            items.get(name).is_some_and(|shown| shown.docs.contains("```"))
        })
}

#[test]
fn every_item_has_an_example_or_says_where_one_is() {
    let own = items("warpsmith");
    let mut engine = items("engine");
    let named = named_of_engine();
    assert!(own.len() > 15 && named.len() > 50, "{} and {}", own.len(), named.len());
    engine.retain(|name, _| named.contains(name));
    assert!(engine.len() > 45, "{}", engine.len());
    let missing = [&own, &engine].into_iter().flat_map(|items| {
        let missing = items.iter().filter(|(_, item)| !is_shown(item, items));
        missing.map(|(name, item)| format!("{} in {}", name, item.file.display()))
    });
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "without an example:\n{}", missing.join("\n"));
}

#[test]
fn an_item_without_an_example_is_noticed() {
    let item = |docs: &str| Item { file: PathBuf::new(), docs: docs.to_owned() };
    let items =
        HashMap::from([("shown".to_owned(), item("```\n```")), ("bare".to_owned(), item("Nothing."))]);
    assert!(is_shown(&items["shown"], &items) && !is_shown(&items["bare"], &items));
    assert!(
        is_shown(&item("See [`shown`]."), &items) && is_shown(&item("See [`crate::shown::new`]."), &items)
    );
    assert!(!is_shown(&item("See [`bare`]."), &items) && !is_shown(&item("See [`gone`]."), &items));
}
