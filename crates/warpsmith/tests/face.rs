//! The library's two ways in: what they find is right, what goes wrong is told, and whoever has enough stops them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use warpsmith::keys::{Secret, join};
use warpsmith::pattern::Feature;
use warpsmith::scan::Scan;
use warpsmith::search::Ended;
use warpsmith::store::{BuildOptions, Database, MapFile};
use warpsmith::{Devices, Error, Note, Solution, chain, eth, mine, mine_best, npub, scan};

/// Longer than any search here may take to notice that nobody wants it.
const LONG: Duration = Duration::from_secs(60);

/// Addresses of a puzzle with keys of 1, 2, 3, 4 and 5 bits, and these.
const PUZZLES: [(&str, u8); 5] = [
    ("1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH", 0x01),
    ("1CUNEBjYrCn2y1SdiUMohaKUi4wpP326Lb", 0x03),
    ("19ZewH8Kk1PDbSNdJ97FP4EiCjTRaZMZQA", 0x07),
    ("1EhqbyUMvvs7BfL8goY6qcPbD6YKfPqb7e", 0x08),
    ("1E6NuFjCi27W5zoXg8TRdcSRq84zJeBW3k", 0x15),
];

fn cpu() -> Devices {
    Devices::cpu().expect("every machine has a processor")
}

#[test]
fn a_match_is_a_key_of_its_address() {
    let found = mine(npub(), ["qq"]).on(cpu()).first().unwrap();
    let Solution::Key { public_key, secret, export } = &found.solution else { panic!("{found:?}") };
    assert_eq!(*public_key, secret.public_key().serialize());
    assert!(found.address.starts_with("npub1qq") && export.starts_with("nsec1"));
    assert_eq!(found.pattern(), Some("qq"));
    let shown = format!("{found:?}");
    assert!(!shown.contains(export.as_str()) && !shown.contains("nsec"), "{shown}");
}

#[test]
fn a_listed_chain_is_mined_by_its_name() {
    let chain = chain::find("eth").unwrap();
    let found = mine(chain, ["ab"]).on(cpu()).first().unwrap();
    assert!(found.address.to_lowercase().starts_with("0xab"));
    // What is lent answers as itself does.
    assert_eq!(chain::Target::name(&chain), chain.name());
}

#[test]
fn matches_come_one_by_one_and_are_unrelated() {
    let found: Vec<_> = mine(npub(), ["q"]).on(cpu()).into_iter().take(5).map(Result::unwrap).collect();
    let mut keys: Vec<_> = found.iter().map(|found| *found.public_key().unwrap()).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 5);
}

#[test]
fn a_dropped_iterator_stops_a_search_that_would_never_end() {
    let watched = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&watched);
    let matches = mine(npub(), ["qqqqqqqqqqqqqqqqqqqq"])
        .on(cpu())
        .watch(move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
        })
        .into_iter();
    let started = Instant::now();
    while watched.load(Ordering::Relaxed) == 0 {
        assert!(started.elapsed() < LONG, "no word of a search for a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(matches);
    assert!(started.elapsed() < LONG);
    // The thread held the other end, and it has ended.
    assert_eq!(Arc::strong_count(&watched), 1);
}

#[test]
fn a_search_with_a_match_that_nobody_takes_is_stopped_too() {
    let matches = mine(npub(), ["q"]).on(cpu()).into_iter();
    std::thread::sleep(Duration::from_millis(300));
    drop(matches);
}

#[test]
fn errors_come_through_the_iterator_once() {
    let mut matches = mine(npub(), ["bob"]).on(cpu()).into_iter();
    assert!(matches!(matches.next(), Some(Err(Error::Pattern(_)))));
    assert!(matches.next().is_none() && matches.next().is_none());
    assert!(matches.outcome().is_none());
    let none: [&str; 0] = [];
    assert!(matches!(scan("1:ff", none).on(cpu()).all(), Err(Error::Store(_))));
    assert!(matches!(scan("ff:1", [PUZZLES[0].0]).on(cpu()).all(), Err(Error::Range(_))));
    let error = scan("1:ff", ["1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMI"]).on(cpu()).all().unwrap_err();
    assert!(error.to_string().contains("line 1"), "{error}");
}

#[test]
fn a_time_limit_ends_a_search_with_an_outcome() {
    let search = || mine(npub(), ["qqqqqqqqqqqqqqqqqqqq"]).on(cpu()).time_limit(Duration::from_secs(1));
    let mut matches = search().into_iter();
    assert!(matches.next().is_none());
    assert_eq!(matches.outcome().map(|outcome| outcome.ended), Some(Ended::TimeLimit));
    assert!(matches!(search().first(), Err(Error::NoMatch { tried }) if tried > 0));
}

#[test]
fn a_split_key_is_worth_nothing_without_its_owner() {
    let own = Secret::random().unwrap();
    let found = mine(eth(), ["ab"]).on(cpu()).split_key(own.public_key()).first().unwrap();
    assert!(found.secret().is_none() && found.export().is_none());
    let Solution::Split { public_key, split } = &found.solution else { panic!("{found:?}") };
    let joined = join(&own, split, &eth(), &found.address, Some(public_key)).unwrap();
    assert_eq!(joined.secret().public_key().serialize(), *public_key);
    let stranger = Secret::random().unwrap();
    assert!(join(&stranger, split, &eth(), &found.address, Some(public_key)).is_err());
}

#[test]
fn a_search_for_the_best_ends_with_enough() {
    let found: Vec<_> = mine_best(eth(), Feature::LeadingZeros).on(cpu()).enough(2).into_iter().collect();
    let scores: Vec<_> = found.into_iter().map(|found| found.unwrap().score().unwrap()).collect();
    assert!(scores.is_sorted() && scores.last() >= Some(&2), "{scores:?}");
}

#[test]
fn scans_find_every_key_and_nothing_else() {
    let mut found = scan("1:fff", PUZZLES.map(|(address, _)| address)).on(cpu()).all().unwrap();
    found.sort_by_key(|found| *found.secret().as_bytes());
    let keys: Vec<_> =
        found.iter().map(|found| (found.address.as_str(), found.secret().as_bytes()[31])).collect();
    assert_eq!(keys, PUZZLES);
    assert!(scan("2:2", [PUZZLES[0].0]).on(cpu()).first().unwrap().is_none());
}

#[test]
fn a_map_remembers_and_refuses_another_scan() {
    let folder = tempfile::tempdir().unwrap();
    let map = folder.path().join("map");
    let of = |range: &str| scan(range, [PUZZLES[4].0]).on(cpu()).map_file(&map);
    let mut findings = of("1:fff").into_iter();
    assert_eq!(findings.by_ref().map(Result::unwrap).count(), 1);
    assert_eq!(
        findings.outcome().map(|outcome| (outcome.ended, outcome.matches)),
        Some((Ended::Exhausted, 1))
    );
    assert!(MapFile::read(&map).unwrap().is_complete());
    // Everything is covered: nothing is tested, and nothing told again.
    assert!(of("1:fff").all().unwrap().is_empty());
    assert!(matches!(of("1:ffe").all(), Err(Error::Store(_))));
}

#[test]
fn a_finding_that_nobody_takes_leaves_its_keys_uncovered() {
    let folder = tempfile::tempdir().unwrap();
    let map = folder.path().join("map");
    let of = || scan("1:fff", [PUZZLES[4].0]).on(cpu()).map_file(&map);
    let findings = of().into_iter();
    std::thread::sleep(Duration::from_millis(500));
    drop(findings);
    assert_eq!(of().all().unwrap().len(), 1);
}

#[test]
fn files_and_databases_are_scanned_for() {
    let folder = tempfile::tempdir().unwrap();
    let (list, database) = (folder.path().join("list"), folder.path().join("database"));
    std::fs::write(&list, PUZZLES.map(|(address, _)| address).join("\n")).unwrap();
    let stop = AtomicBool::new(false);
    let options = BuildOptions { strict: true, threads: 1, memory: 1 << 24, stop: &stop, progress: &|_| () };
    Database::build(&database, std::slice::from_ref(&list), &options).unwrap();
    let notes = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&notes);
    let watch = move |note| {
        if let Note::Warning(text) = note {
            heard.lock().unwrap().push(text);
        }
    };
    assert_eq!(Scan::for_files("1:fff", [&list]).on(cpu()).all().unwrap().len(), PUZZLES.len());
    let scan = Scan::for_database("1:fff", &database).on(cpu()).random_order().watch(watch);
    assert_eq!(scan.all().unwrap().len(), PUZZLES.len());
    assert!(notes.lock().unwrap().is_empty());
}
