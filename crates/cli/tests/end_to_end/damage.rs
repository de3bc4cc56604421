//! Files of a scan that were damaged, or put in the way by somebody else: told, never believed, never a crash.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use miniscript::bitcoin::hashes::{Hash, sha256};
use tempfile::{TempDir, tempdir};

use crate::harness::{BINARY, PATIENCE, Run, signal, text, warpsmith};
use crate::scan::{findings, p2pkh, scan, write};

struct Desk {
    folder: TempDir,
}

impl Desk {
    fn new() -> Desk {
        Desk { folder: tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

/// Numbers without a pattern.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Damages a file while it lives.
struct Damage<'d> {
    path: &'d Path,
    whole: Vec<u8>,
}

impl<'d> Damage<'d> {
    /// Changes some bytes, or cuts the file, at random.
    fn new(path: &'d Path, random: &mut Random) -> Damage<'d> {
        let whole = fs::read(path).unwrap();
        let file = OpenOptions::new().write(true).open(path).unwrap();
        let at = random.below(whole.len() as u64);
        if random.below(7) == 0 {
            file.set_len(at).unwrap();
        } else {
            let count = [1, 1, 16, 4096][random.below(4) as usize].min(whole.len() as u64 - at);
            let bytes = &whole[at as usize..(at + count) as usize];
            let changed: Vec<u8> = bytes.iter().map(|byte| byte ^ (1 + random.below(255) as u8)).collect();
            file.write_all_at(&changed, at).unwrap();
        }
        Damage { path, whole }
    }
}

impl Drop for Damage<'_> {
    fn drop(&mut self) {
        fs::write(self.path, &self.whole).unwrap();
    }
}

/// Forty runs over damaged databases and filters: each names the damage, or found every key there is.
#[test]
fn damage_to_a_database_is_told_or_does_not_matter() {
    let desk = Desk::new();
    let planted: Vec<u128> = (0x1000..0x3000).step_by(0x199).collect();
    let others = (0..30_000)
        .map(|number| format!("0x{}", &sha256::Hash::hash(&u32::to_le_bytes(number)).to_string()[..40]));
    let lines = planted.iter().map(|&key| format!("{}\t{key}", p2pkh(key)));
    write(&desk.path("list"), lines.chain(others));
    let (database, path) = (desk.name("db"), desk.path("db"));
    warpsmith(&["db", "build", &database, &desk.name("list")]).code(0);
    let expected: Vec<(String, u128)> = planted.iter().map(|&key| ("p2pkh".to_owned(), key)).collect();
    let scan =
        || scan(&["--range", "1000:3000", "--database", &database, "--type", "p2pkh", "--filter", "fuse8"]);
    let addresses: Vec<String> = planted.iter().map(|&key| p2pkh(key)).collect();
    let mut lookup = vec!["db", "lookup", &database];
    lookup.extend(addresses.iter().map(String::as_str));
    assert_eq!(findings(&scan().code(0)).0, expected);
    warpsmith(&lookup).code(0);
    let filter = desk.path("db.fuse8+p2pkh");
    assert!(filter.exists());

    let told = |run: Run| {
        let said = ["damaged", "end is missing", "begins otherwise", "of format"];
        assert!(said.iter().any(|words| run.stderr.contains(words)), "{run:?}");
        assert!(!run.stdout.contains("\"done\""), "{run:?}");
    };
    let mut random = Random(18);
    for round in 0..40 {
        let damaged = if round % 8 == 7 { &filter } else { &path };
        let damage = Damage::new(damaged, &mut random);
        match round % 8 {
            0 | 3 | 6 => told(warpsmith(&["db", "verify", &database]).code(4)),
            1 | 4 => {
                let run = warpsmith(&lookup);
                match run.code {
                    Some(0) => assert_eq!(run.stdout.matches("found").count(), planted.len(), "{run:?}"),
                    _ => told(run.code(4)),
                }
            }
            // With the filter that was made of the whole database: what passes it is looked up.
            2 | 5 => {
                let run = scan();
                match run.code {
                    Some(0) => assert_eq!(findings(&run).0, expected),
                    _ => told(run.code(4)),
                }
            }
            // A filter that was damaged would let keys go by.
            _ => told(scan().code(4)),
        }
        drop(damage);
    }
    // No filter is made of what is damaged.
    fs::remove_file(&filter).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    file.write_all_at(&[whole[5000] ^ 0x10], 5000).unwrap();
    let run = scan().code(4).says(&["--database", "chunk 1 of", "of kind p2pkh", "another checksum"]);
    assert!(!run.stdout.contains("done") && !filter.exists(), "{run:?}");
    file.write_all_at(&whole[5000..5001], 5000).unwrap();
    assert_eq!(findings(&scan().code(0)).0, expected);
}

#[test]
fn a_folder_of_another_program_is_refused_with_the_way_on() {
    let desk = Desk::new();
    fs::create_dir(desk.path("old")).unwrap();
    fs::write(desk.path("old").join("data.mdb"), [0; 8192]).unwrap();
    let old = desk.name("old");
    for args in [
        &["db", "info", &old][..],
        &["db", "verify", &old],
        &["db", "lookup", &old, &p2pkh(5)],
        &["scan", "--range", "1:5", "--database", &old, "--device", "cpu"],
    ] {
        warpsmith(args).code(4).says(&["warpsmith db build NEW OLD"]);
    }
    // And this one is none at all.
    warpsmith(&["db", "build", &desk.name("new"), &old]).code(4).says(&["LMDB"]);
    assert!(!desk.path("new").exists() && !desk.path("new.part").exists());
}

/// Starts a scan that takes long, and waits until its map is there.
fn start_long(desk: &Desk) -> Child {
    write(&desk.path("targets"), [p2pkh(0x5000)]);
    let mut command = Command::new(BINARY);
    command.args([
        "scan",
        "--range",
        "1:ffffffffffff",
        "--targets",
        &desk.name("targets"),
        "--map",
        &desk.name("map"),
    ]);
    command.args(["--device", "cpu", "--threads", "1"]).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("starts");
    let started = Instant::now();
    while !desk.path("map").exists() {
        assert!(started.elapsed() < PATIENCE, "there is no map");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child
}

/// The lock lies on the map itself: no other way to it leads around.
#[test]
fn two_scans_cannot_have_one_map_by_any_name() {
    let desk = Desk::new();
    let mut first = start_long(&desk);
    // So that it replaces nothing meanwhile.
    signal(&first, "STOP");
    let second = |map: &str| {
        scan(&[
            "--range",
            "1:ffffffffffff",
            "--targets",
            &desk.name("targets"),
            "--map",
            map,
            "--time-limit",
            "1ms",
        ])
    };
    let refusals = {
        let own = second(&desk.name("map"));
        symlink(desk.path("map"), desk.path("link")).unwrap();
        let linked = second(&desk.name("link"));
        fs::hard_link(desk.path("map"), desk.path("hard")).unwrap();
        [
            (own, "in use by another process"),
            (linked, "symbolic link"),
            (second(&desk.name("hard")), "2 names"),
        ]
    };
    signal(&first, "KILL");
    first.wait().unwrap();
    for (run, why) in refusals {
        run.code(4).says(&["--map", why]);
    }
    fs::remove_file(desk.path("hard")).unwrap();
    assert_ne!(second(&desk.name("map")).code, Some(4));
}

#[test]
fn what_lies_beside_a_map_is_not_written_through() {
    let desk = Desk::new();
    write(&desk.path("targets"), [p2pkh(0x5000)]);
    fs::write(desk.path("victim"), "precious").unwrap();
    for name in ["map.new", "map.lock"] {
        symlink(desk.path("victim"), desk.path(name)).unwrap();
    }
    let (targets, map) = (desk.name("targets"), desk.name("map"));
    let run = scan(&["--range", "1:7fff", "--targets", &targets, "--map", &map]).code(0);
    assert_eq!(findings(&run).0.len(), 1);
    assert_eq!(fs::read(desk.path("victim")).unwrap(), b"precious");
    let mode = |name: &str| fs::metadata(desk.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("map"), 0o600);
    warpsmith(&["map", "merge", &desk.name("joined"), &map]).code(0);
    assert_eq!(mode("joined"), 0o600);
    // What others may read is told with what to do, and is not used.
    fs::set_permissions(desk.path("map"), fs::Permissions::from_mode(0o644)).unwrap();
    let before = fs::read(desk.path("map")).unwrap();
    scan(&["--range", "1:7fff", "--targets", &targets, "--map", &map]).code(4).says(&["--map", "chmod 600"]);
    warpsmith(&["map", "show", &map]).code(4).says(&["chmod 600"]);
    assert_eq!((fs::read(desk.path("map")).unwrap(), mode("map")), (before, 0o644));
}

/// The largest numbers that a map can hold, written by hand.
#[test]
fn hand_made_maps_are_shown() {
    let desk = Desk::new();
    let body = format!(
        "warpsmith map 2\nrange 1:ff\ntypes p2pkh\ntargets addresses {most} {:064x}\norder sequential\n\
         stretch {most} {most} {}\nstretch 0 0 0\ntotal 0\n",
        5,
        num_bigint::BigUint::from(2u8).pow(256) - 1u8,
        most = u64::MAX
    );
    let map = desk.path("map");
    fs::write(&map, format!("{body}sha256 {}\n", sha256::Hash::hash(body.as_bytes()))).unwrap();
    fs::set_permissions(&map, fs::Permissions::from_mode(0o600)).unwrap();
    let shown = warpsmith(&["map", "show", &desk.name("map")]).code(0);
    assert!(shown.stdout.contains("584554051223-11-09"), "{shown:?}");
    let line = warpsmith(&["map", "show", &desk.name("map"), "--json"]).code(0).json().remove(0);
    assert_eq!(text(&line, "remaining"), "255");
    let most_keys = num_bigint::BigUint::from(2u8).pow(256) - 1u8;
    assert_eq!(text(&line["history"][0], "keys"), most_keys.to_string());
    assert!(line["history"][0]["seconds"].is_null() && line["rate"].is_null(), "{line}");
}
