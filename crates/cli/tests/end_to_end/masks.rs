//! What is left of a key: hexadecimal, WIF and nsec with unknown, doubtful and missing characters, stopped and gone on with.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tempfile::tempdir;
use warpsmith_trials::replaced as with;

use crate::given::{nsec, wif};
use crate::harness::{text, warpsmith};
use crate::scan::{findings, p2pkh, write};

#[test]
fn what_is_left_of_a_key_finds_it() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (targets, file) = (path("targets"), path("mask"));
    let key = 0x6cfe_83c1_d97b_40a2_e5f1_088a_b3c7_d45e_u128;
    write(targets.as_ref(), [p2pkh(key)]);
    let hex = format!("{key:064x}");
    let (long, short, nostr) = (wif(key, true), wif(key, false), nsec(key));
    let cases = [
        (with(&hex, &[(33, "?"), (40, "?"), (50, "?"), (63, "?")]), "0", 1 << 16),
        (with(&hex, &[(40, "?"), (41, "?"), (42, "?")]), "0", 1 << 12),
        (with(&hex, &[(40, "[0-9a-f]"), (50, &format!("[{}0f]", &hex[50..51]))]), "0", 0),
        (with(&long, &[(20, "?"), (51, "?")]), "0", 58 * 58),
        (with(&short, &[(1, "?"), (30, "?")]), "0", 58 * 58),
        (with(&nostr, &[(30, "?"), (40, "?"), (60, "?")]), "0", 1 << 15),
        (with(&long, &[(33, "")]), "1", 0),
        (with(&nostr, &[(44, "")]), "1", 0),
        (with(&hex, &[(44, "")]), "1", 0),
    ];
    for (mask, missing, count) in cases {
        fs::write(&file, format!("{mask}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let mut arguments =
            vec!["scan", "--targets", &targets, "--type", "p2pkh", "--json", "--device", "cpu"];
        if missing != "0" {
            arguments.extend(["--missing", missing]);
        }
        for given in [["--mask", &mask], ["--mask-file", &file]] {
            let run = warpsmith(&[&arguments[..], &given].concat()).code(0);
            let (found, done) = findings(&run);
            assert_eq!(found, [("p2pkh".to_owned(), key)], "{mask}");
            assert_eq!(text(&done, "ended"), "count", "every address is found");
            // What is known of the key is nowhere but in the result.
            assert!(!run.stderr.contains(&mask[..20]), "{}", run.stderr);
        }
        // To its end, for an address it does not have.
        if count > 0 {
            write(path("others").as_ref(), [p2pkh(5)]);
            let others = path("others");
            let nothing = ["scan", "--targets", &others, "--type", "p2pkh", "--json", "--mask", &mask];
            let (found, done) = findings(&warpsmith(&nothing).code(1));
            assert_eq!((found.len(), text(&done, "covered")), (0, count.to_string().as_str()), "{mask}");
        }
    }
}

/// The checksum of a WIF key or an nsec tells it by itself, where it leaves few.
#[test]
fn a_mask_with_a_checksum_needs_no_targets() {
    let key = 0x6cfe_83c1_d97b_40a2_e5f1_088a_b3c7_d45e_u128;
    let cases = [
        (with(&wif(key, true), &[(20, "?"), (51, "?")]), wif(key, true)),
        (with(&wif(key, false), &[(1, "?"), (30, "?")]), wif(key, false)),
        (with(&nsec(key), &[(30, "?"), (40, "?")]), nsec(key)),
    ];
    for (mask, whole) in cases {
        let run = warpsmith(&["scan", "--mask", &mask, "--json", "--threads", "1"]).code(0);
        assert_eq!(text(&run.json()[0], "export"), whole);
        run.says(&["every key whose checksum is right"]);
    }
    let long = wif(key, true);
    warpsmith(&["scan", "--mask", &long[..51]]).code(2).says(&["try --missing 1"]);
    let many = with(&long, &[20, 21, 22, 23, 24, 25, 26].map(|at| (at, "?")));
    warpsmith(&["scan", "--mask", &many]).code(2).says(&["some 514", "--targets", "--public-key"]);
    warpsmith(&["scan", "--mask", &with(&format!("{key:064x}"), &[(9, "?")])]).code(2).says(&["--targets"]);
}

/// A map goes on where it was, and is of one mask.
#[test]
fn a_mask_has_a_map() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (targets, map) = (path("targets"), path("map"));
    let key = 0x6cfe_83c1_d97b_40a2_e5f1_088a_b3c7_d45e_u128;
    // Another that fits as well: both must be found for the scan to end.
    let other = key ^ 0xf << 40;
    write(targets.as_ref(), [p2pkh(key), p2pkh(other)]);
    let mask = with(&format!("{key:064x}"), &[(36, "?"), (53, "?"), (60, "?"), (61, "?")]);
    let scan = |mask: &str, more: &[&str]| {
        let usual =
            ["scan", "--mask", mask, "--targets", &targets, "--type", "p2pkh", "--json", "--map", &map];
        warpsmith(&[&usual[..], more].concat())
    };
    let (mut found, done) = findings(&scan(&mask, &["--count", "1"]).code(0));
    assert_eq!(text(&done, "ended"), "count");
    let more = scan(&mask, &["--count", "2"]);
    found.extend(findings(&more).0);
    found.sort();
    let mut expected = vec![("p2pkh".to_owned(), key), ("p2pkh".to_owned(), other)];
    expected.sort();
    assert_eq!(found, expected, "each once");
    let text = fs::read_to_string(&map).unwrap();
    assert!(text.contains("\nmask ") && !text.contains(&mask[..16]), "{text}");
    scan(&with(&mask, &[(20, "1")]), &[]).code(4).says(&["another", "mask"]);
    warpsmith(&["scan", "--range", "1:ffff", "--targets", &targets, "--type", "p2pkh", "--map", &map])
        .code(4);
    let shown = warpsmith(&["map", "show", &map]).code(0);
    assert!(shown.stdout.contains("candidates"), "{shown:?}");
}

#[test]
fn masks_that_are_none_are_refused_before_any_work() {
    let folder = tempdir().unwrap();
    let targets = folder.path().join("targets").to_str().unwrap().to_owned();
    write(targets.as_ref(), [p2pkh(7)]);
    let scan = |more: &[&str]| warpsmith(&[&["scan", "--targets", &targets][..], more].concat());
    let hex = format!("????{}", "a7".repeat(30));
    scan(&["--mask", "abc?"]).code(2).says(&["4 characters", "64 digits", "--missing"]);
    scan(&["--mask", &hex[1..]]).code(2).says(&["63 characters"]);
    scan(&["--mask", &with(&hex, &[(9, "g")])]).code(2).says(&["character 10", "0 to 9 and a to f"]);
    scan(&["--mask", &with(&hex, &[(9, "[")])]).code(2).says(&["brackets at character 10"]);
    scan(&["--mask", &"a7".repeat(32)]).code(2).says(&["nothing in it is unknown", "--keys"]);
    scan(&["--mask", &"?".repeat(64)]).code(2).says(&["2^248"]);
    scan(&["--mask", &hex, "--missing", "9"]).code(2).says(&["--missing"]);
    scan(&["--range", "1:2", "--missing", "1"]).code(2).says(&["--mask"]);
    scan(&["--mask", &hex, "--range", "1:2"]).code(2).says(&["cannot be used with"]);
    // How long it takes is told without beginning.
    let run = scan(&[
        "--mask",
        &format!("{}{}{}", &hex[..40], "?".repeat(10), &hex[50..]),
        "--estimate",
        "--device",
        "cpu",
    ]);
    let run = run.code(0);
    assert!(["2^56", "rate", "50 %"].iter().all(|part| run.stdout.contains(part)), "{run:?}");
}
