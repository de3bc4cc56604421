//! The pages of `docs/`: tables that list what the program knows are compared with the program, and links lead somewhere.

use std::fs;
use std::path::{Path, PathBuf};

use warpsmith::devices::{Api, Selector};
use warpsmith::pattern::{KINDS, SCORES, ScoreKind};
use warpsmith::proof::selftest_cases;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is there")
}

/// The rows of a table of `docs/reference.md`: what stands in backquotes in this column.
fn table(name: &str, column: usize) -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/reference.md")).expect("the page is there");
    let mark = format!("<!-- table: {name} -->");
    let (_, rest) = page.split_once(&mark).unwrap_or_else(|| panic!("docs/reference.md has no {mark}"));
    let rows = rest.trim_start().lines().take_while(|line| line.starts_with('|')).skip(2);
    let cells =
        rows.map(|row| row.split('|').nth(column + 1).unwrap_or_else(|| panic!("{row} is too short")));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn the_page_lists_every_kind_of_pattern() {
    let known: Vec<_> = KINDS.iter().map(|kind| kind.name.to_owned()).collect();
    assert_eq!(table("kinds", 0), known);
}

#[test]
fn pages_list_every_score() {
    let names: Vec<_> = SCORES.iter().map(|kind| kind.name.to_owned()).collect();
    assert_eq!(table("scores", 0), names);
    for page in ["docs/reference.md", "docs/ethereum.md"] {
        let text = fs::read_to_string(root().join(page)).expect("the page is there");
        for ScoreKind { name, counts, .. } in SCORES {
            assert!(text.contains(&format!("| `{name}` | {counts} |")), "{page} lacks {name}");
        }
    }
}

#[test]
fn the_page_lists_every_case_of_the_self_test() {
    let known: Vec<_> = selftest_cases().map(str::to_owned).collect();
    assert_eq!(table("selftest", 0), known);
}

#[test]
fn the_page_lists_devices_as_they_are_selected() {
    let listed = table("devices", 1);
    assert!(listed.len() > 5, "{listed:?}");
    for text in &listed {
        let selector: Selector = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(selector.to_string(), *text);
    }
    for simd in Selector::INSTRUCTION_SETS {
        assert!(listed.contains(&format!("cpu:{simd}")), "{simd} is not in {listed:?}");
    }
    for api in Api::ALL {
        assert!(listed.contains(&api.to_string()), "{api} is not in {listed:?}");
    }
}

/// Every page: those of `docs/` and below, and the two at the root.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            match entry.extension() {
                _ if entry.is_dir() => folders.push(entry),
                Some(extension) if extension == "md" => pages.push(entry),
                _ => {}
            }
        }
    }
    pages
}

/// The name of a heading in links to it, as forges make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
}

#[test]
fn links_lead_somewhere() {
    let pages = pages();
    assert!(pages.len() > 15, "{pages:?}");
    let mut wrong = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).expect("a page");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") {
                continue;
            }
            let (path, heading) = link.split_once('#').map_or((link, None), |(path, h)| (path, Some(h)));
            let to = if path.is_empty() { page.clone() } else { page.parent().expect("a folder").join(path) };
            let leads = match (to.exists(), heading) {
                (true, Some(heading)) => fs::read_to_string(&to).is_ok_and(|there| {
                    there
                        .lines()
                        .any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == heading)
                }),
                (exists, _) => exists,
            };
            if !leads {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
}

/// Sources and tests that pages name in backquotes: a path from the root, or from `crates/`.
#[test]
fn files_that_pages_name_are_there() {
    let mut wrong = Vec::new();
    for page in pages().iter().filter(|page| !page.ends_with("CHANGELOG.md")) {
        let text = fs::read_to_string(page).expect("a page");
        for named in text.split('`').skip(1).step_by(2) {
            let is_path = ["crates/", "docs/", "tools/", "fuzz/"].iter().any(|root| named.starts_with(root))
                && named.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
                && !named.contains("your");
            if is_path && !root().join(named).exists() {
                wrong.push(format!("{}: {named}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "files that are not there:\n{}", wrong.join("\n"));
}

#[test]
fn the_readme_shows_the_first_example_as_it_is() {
    let example =
        fs::read_to_string(root().join("crates/warpsmith/examples/mine_npub.rs")).expect("an example");
    let (_, code) = example.split_once("\n\n").expect("a comment, then code");
    let shown = code.replace("pub(crate) fn", "fn");
    let readme = fs::read_to_string(root().join("README.md")).expect("the page is there");
    assert!(readme.contains(&format!("```rust\n{shown}```")), "README.md does not have:\n{shown}");
}
