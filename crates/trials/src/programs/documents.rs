//! `docs/json.md` against what programs print: every field of every document is explained there, and every document that is
//! explained there is printed, or said to need what a test has not.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Program, assert_exact, text};

const PAGE: &str = include_str!("../../../../docs/json.md");

/// What the page says of a document.
#[derive(Debug, Default)]
struct Explained {
    /// What it needs to be printed, where that is not in every test.
    needs: Option<&'static str>,
    /// The names of its fields, with dots for those within others and `*` for any name.
    fields: BTreeSet<String>,
    /// The commands that print it, where the page names them (`Of ...`).
    commands: Vec<&'static str>,
}

impl Explained {
    /// Whether a program must print it: `warpsmith-pir` what a command of its own prints, `warpsmith` what another command or every
    /// command prints.
    fn is_of(&self, program: &Program) -> bool {
        let is_pir = |command: &&str| command.starts_with("warpsmith-pir ");
        match program.name {
            "warpsmith-pir" => self.commands.iter().any(is_pir),
            _ => self.commands.is_empty() || !self.commands.iter().all(is_pir),
        }
    }
}

/// The documents that the page explains.
fn explained() -> BTreeMap<String, Explained> {
    let mut all: BTreeMap<String, Explained> = BTreeMap::new();
    let mut event = None;
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let name = heading.split('`').nth(1).map(str::to_owned);
            let needs = heading.split_once("(needs ").map(|(_, rest)| rest.trim_end_matches(')'));
            if let Some(name) = &name {
                all.insert(name.clone(), Explained { needs, ..Explained::default() });
            }
            event = name;
        } else if let (Some(event), Some(row)) = (&event, line.strip_prefix("| `")) {
            let names = row.split(" | ").next().unwrap_or_default().replace('`', "");
            let names = names.split(", ").map(str::to_owned);
            all.get_mut(event).expect("its heading").fields.extend(names);
        } else if let (Some(event), Some(commands)) = (&event, line.strip_prefix("Of `")) {
            let commands = commands.split('.').next().unwrap_or_default().split('`').step_by(2);
            all.get_mut(event).expect("its heading").commands.extend(commands);
        }
    }
    all
}

/// The fields that the page says are decimal texts, as (document, field).
fn decimal_texts() -> BTreeSet<(String, String)> {
    let section =
        PAGE.split("## Numbers").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section");
    let names = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<String>>()
    };
    let rows = section.lines().filter(|line| line.starts_with("| `")).map(|row| {
        let mut cells = row.trim_matches('|').split('|');
        (names(cells.next().unwrap_or_default()), names(cells.next().unwrap_or_default()))
    });
    let each = |(events, fields): (Vec<String>, Vec<String>)| {
        events
            .into_iter()
            .flat_map(move |event| fields.clone().into_iter().map(move |field| (event.clone(), field)))
    };
    rows.flat_map(each).collect()
}

/// The values of a field of a document, with dots for those within others.
fn values<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let found: Vec<&Value> = match value {
        Value::Array(all) => return all.iter().flat_map(|value| values(value, path)).collect(),
        value => value.get(name).into_iter().collect(),
    };
    if rest.is_empty() { found } else { found.into_iter().flat_map(|value| values(value, rest)).collect() }
}

/// The names of all fields of a document.
fn names(value: &Value, within: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields_of) => {
            for (name, value) in fields_of {
                assert!(!name.contains(' '), "a name has a space: {name}");
                let path = if within.is_empty() { name.clone() } else { format!("{within}.{name}") };
                into.insert(path.clone());
                names(value, &path, into);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| names(value, within, into)),
        _ => {}
    }
}

fn is_explained(path: &str, known: &BTreeSet<String>) -> bool {
    let any = |at: usize| format!("{}.*", &path[..at]);
    ["event", "version"].contains(&path)
        || known.contains(path)
        || path.match_indices('.').any(|(at, _)| known.contains(&any(at)))
}

/// Compares documents that a program printed with the page: every field is explained, every document that the page says the program
/// prints is among them, and all of `exceeded`, as `document: field`, are numbers beyond what doubles keep.
pub fn check_documents(program: &Program, printed: Vec<Value>, exceeded: &[&str]) {
    let explained = explained();
    assert!(explained.len() > 20, "{:?}", explained.keys());
    let mut seen = BTreeSet::new();
    let mut lacking = BTreeSet::new();
    let decimal_texts = decimal_texts();
    let mut exceeding = BTreeSet::new();
    for document in printed {
        // Numbers that doubles do not keep exactly are texts, and so are the same fields where they are small.
        assert_exact(&document);
        for (event, path) in decimal_texts.iter().filter(|(event, _)| *event == document["event"]) {
            for value in values(&document, path).into_iter().filter(|value| !value.is_null()) {
                let number = value.as_str().and_then(|text| text.parse::<f64>().ok());
                let number = number.unwrap_or_else(|| panic!("{path} is no decimal text: {document}"));
                if number > 2f64.powi(53) {
                    exceeding.insert(format!("{event}: {path}"));
                }
            }
        }
        assert_eq!(document["version"], 1, "{document}");
        let event = text(&document, "event").to_owned();
        let Some(Explained { fields: known, .. }) = explained.get(&event) else {
            panic!("{event} is not explained: {document}")
        };
        let mut all = BTreeSet::new();
        names(&document, "", &mut all);
        lacking.extend(
            all.into_iter().filter(|path| !is_explained(path, known)).map(|path| format!("{event}: {path}")),
        );
        seen.insert(event);
    }
    assert!(
        exceeded.iter().all(|name| exceeding.contains(*name)),
        "no large numbers were printed: {exceeding:?}"
    );
    for (event, path) in &decimal_texts {
        assert!(
            explained.get(event).is_some_and(|known| is_explained(path, &known.fields)),
            "{event}: {path}"
        );
    }
    assert!(lacking.is_empty(), "fields that docs/json.md does not explain: {lacking:#?}");
    for (event, known) in &explained {
        let is_seen = seen.contains(event) || known.needs.is_some() || !known.is_of(program);
        assert!(is_seen, "{event} was not printed; say what it needs");
        assert!(!known.fields.is_empty() || ["done"].contains(&event.as_str()), "{event} has no fields");
    }
}
