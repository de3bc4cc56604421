//! What the documents list is what the tables of the code hold: a row that is missing on a page fails here.

use warpsmith::chain::{CHAINS, TYPES};
use warpsmith::pattern::KINDS;

/// A page of `docs/`.
fn page(name: &str) -> String {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The row of the table of chains that begins with this command.
fn row(page: &str, command: &str) -> String {
    let begins = format!("| `{command}` |");
    let found = page.lines().find(|line| line.starts_with(&begins));
    found.unwrap_or_else(|| panic!("docs/chains.md has no row for {command}")).to_owned()
}

#[test]
fn every_chain_and_type_stands_in_the_page_of_chains() {
    let page = page("chains.md");
    for chain in CHAINS.iter() {
        let row = row(&page, chain.name);
        assert!(row.contains(chain.title), "{}", chain.name);
    }
    for known in TYPES.iter() {
        let row = row(&page, known.chain.name);
        if let Some(variant) = known.variant() {
            assert!(row.contains(&format!("`{variant}`")), "{known}: its type is missing");
        }
        if !known.kinds.is_empty() {
            assert!(row.contains(&format!("`{}`", known.name)), "{known}: its name in scans is missing");
        }
    }
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, CHAINS.len(), "a row for every chain, and no other");
}

#[test]
fn every_way_to_write_a_pattern_stands_in_the_page_of_mining() {
    let page = page("mining.md");
    for kind in KINDS {
        for (written, means) in kind.examples("cafe", "0ace") {
            let row = format!("| `{written}` |");
            assert!(page.contains(&row), "docs/mining.md has no row {row} ({}: {means})", kind.name);
        }
    }
}
