//! Processes killed at random moments, as a person or the system does it, and started again.
//!
//! The killed process is this test program itself, in one of the roles marked `ignore`.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use warpsmith_store::*;

const FOLDER: &str = "WARPSMITH_STORE_TEST_FOLDER";
const MOST: &str = "WARPSMITH_STORE_TEST_MOST";

fn start(role: &str, folder: &Path, most: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", role])
        .env(FOLDER, folder)
        .env(MOST, most.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn folder() -> PathBuf {
    std::env::var_os(FOLDER).expect("this role is for the kill tests alone").into()
}

/// Numbers without a pattern.
fn random() -> u64 {
    let mut bytes = [0; 8];
    warpsmith_entropy::fill(&mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

const FIRST: u128 = (1 << 64) - 5000;
const COUNT: u128 = 3_200_017;
const IN_FLIGHT: usize = 3;
/// Keys of a batch in the processes that are killed.
const SMALL: u64 = 300;
/// So many batches, and a process waits to be killed: 51 times that leaves some for the last, however late kills come.
const SHARE: u64 = 200;
const _: () = assert!((51 * SHARE * SMALL) as u128 + 100_000 < COUNT);
/// What a line of the log ends with.
const WHOLE: &str = " whole";
/// Longer than any pause of a machine; what takes longer will never end.
const PATIENCE: Duration = Duration::from_secs(300);

fn job() -> Job {
    let range = Interval::starting(U256::new(FIRST), U256::new(COUNT)).unwrap();
    Job::new(range, &["p2pkh"], Targets { source: Source::Addresses, count: 1, digest: [9; 32] })
}

/// A scan: takes batches, three at a time, writes what it found in each, and then marks it covered, its share of them.
#[test]
#[ignore = "a role of the kill tests"]
fn scan() {
    let folder = folder();
    let most: u64 = std::env::var(MOST).unwrap().parse().unwrap();
    let order = |job: &Job| match folder.join("random").exists() {
        true => Order::random(&job.range(), 77, U256::new(10_000)),
        false => Order::Sequential,
    };
    let mut file = MapFile::open(&folder.join("map"), job(), order).unwrap();
    let mut planner = Planner::new(file.map());
    let mut log = OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
    let (mut out, mut left) = (Vec::new(), U256::from(most * SHARE));
    loop {
        while out.len() < IN_FLIGHT {
            let Some(batch) = planner.next(U256::from(most)) else { break };
            out.push(batch);
        }
        if out.is_empty() {
            return;
        }
        // Any of them is done first.
        let batch = out.swap_remove(random() as usize % out.len());
        // A kill can cut a line off where it crosses a page.
        log.write_all(format!("\n{}{WHOLE}", batch.keys()).as_bytes()).unwrap();
        let keys = batch.keys().count();
        assert_eq!(file.map_mut().complete(&batch, 1_763_200_000), keys);
        file.save().unwrap();
        if keys >= left {
            return sleep(PATIENCE);
        }
        left -= keys;
    }
}

#[test]
fn a_scan_killed_fifty_times_in_either_order_covers_every_key() {
    for is_random in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        if is_random {
            fs::write(folder.path().join("random"), "").unwrap();
        }
        let map = folder.path().join("map");
        let covered = || if map.exists() { MapFile::read(&map).unwrap().covered() } else { U256::ZERO };
        let mut before = U256::ZERO;
        // Waits until a process has saved something; how long that took since it was started.
        let first_save = |before: U256, started: Instant| {
            while covered() == before {
                assert!(started.elapsed() < PATIENCE, "the scan does not get anywhere");
            }
            started.elapsed()
        };
        let started = Instant::now();
        let child = start("scan", folder.path(), SMALL);
        let time = first_save(before, started).min(Duration::from_secs(1));
        kill(child);
        for round in 0..50 {
            let started = Instant::now();
            let child = start("scan", folder.path(), SMALL);
            // At any moment from before the start on, or at any moment between saves.
            if round % 2 == 1 {
                first_save(before, started);
            }
            sleep(time.mul_f64(3.0 * random() as f64 / u64::MAX as f64));
            kill(child);
            let covered = covered();
            assert!(covered >= before);
            before = covered;
        }
        assert!(before < U256::new(COUNT), "a process did more than its share");
        assert!(start("scan", folder.path(), 100_000).wait().unwrap().success());

        let done = MapFile::read(&map).unwrap();
        assert!(done.is_complete());
        assert_eq!(done.covered(), U256::new(COUNT));
        assert_eq!(
            done.history().iter().fold(U256::ZERO, |sum, stretch| sum + stretch.keys),
            U256::new(COUNT)
        );
        // Every key was scanned, and those scanned again are the ones whose batch was done but not yet saved: one a kill.
        let log = fs::read_to_string(folder.path().join("log")).unwrap();
        let whole = log.lines().filter_map(|line| line.strip_suffix(WHOLE));
        let scanned: Vec<Interval> = whole.map(|line| parse_range(line).unwrap()).collect();
        let all: IntervalSet = scanned.iter().copied().collect();
        assert_eq!(all.iter().collect::<Vec<_>>(), [job().range()]);
        let sum = scanned.iter().fold(U256::ZERO, |sum, batch| sum + batch.count());
        assert!(sum - U256::new(COUNT) <= U256::from(51 * SMALL), "{sum}");
        // A killed process leaves perhaps half a map; the last one clears it away.
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(names.len(), if is_random { 3 } else { 2 }, "{names:?}");
    }
}

fn build_in(folder: &Path) -> Result<Built, Error> {
    let stop = AtomicBool::new(false);
    let options = BuildOptions { strict: true, threads: 2, memory: 4 << 20, stop: &stop, progress: &|_| () };
    Database::build(&folder.join("db"), &[folder.join("list")], &options)
}

#[test]
#[ignore = "a role of the kill tests"]
fn build() {
    build_in(&folder()).unwrap();
}

#[test]
fn a_killed_build_leaves_no_database_and_the_next_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for number in 0..150_000u64 {
        let mut digest = [0; 20];
        digest[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        text +=
            &format!("0x{}\t{number}\n", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
    fs::write(folder.path().join("list"), text).unwrap();
    let database = folder.path().join("db");
    let time = Instant::now();
    assert!(start("build", folder.path(), 0).wait().unwrap().success());
    let mut time = time.elapsed();
    let whole = Database::open(&database).unwrap().about().clone();
    assert_eq!(whole.records, 150_000);
    let mut outcomes: HashMap<bool, u32> = HashMap::new();
    for _ in 0..25 {
        fs::remove_file(&database).ok();
        let started = Instant::now();
        let child = start("build", folder.path(), 0);
        let moment = time.mul_f64(1.1 * random() as f64 / u64::MAX as f64);
        while started.elapsed() < moment {
            sleep(Duration::from_micros(100));
            if database.exists() {
                // The first was a slow one.
                time = started.elapsed();
                break;
            }
        }
        kill(child);
        if database.exists() {
            let found = Database::open(&database).unwrap();
            found.verify(|_| ()).unwrap();
            assert_eq!((found.about().records, found.about().addresses), (whole.records, whole.addresses));
        }
        *outcomes.entry(database.exists()).or_default() += 1;
    }
    assert!(outcomes.get(&false).is_some_and(|&count| count > 5), "{outcomes:?}");
    fs::remove_file(&database).ok();
    assert!(start("build", folder.path(), 0).wait().unwrap().success());
    let found = Database::open(&database).unwrap();
    found.verify(|_| ()).unwrap();
    assert_eq!((found.about().addresses, found.about().amounts), (whole.addresses, whole.amounts));
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["db", "list"]);
}

#[test]
#[ignore = "a role of the kill tests"]
fn add() {
    let folder = folder();
    let options = BuildOptions { threads: 2, memory: 4 << 20, ..Default::default() };
    Database::add(&folder.join("db"), &[folder.join("more")], &options).unwrap();
}

#[test]
fn a_killed_addition_leaves_the_old_database_or_the_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let lines = |numbers: std::ops::Range<u64>| -> String {
        numbers.map(|number| format!("0x{:040x}\t{number}\n", u128::from(number) << 96 | 5)).collect()
    };
    fs::write(path("list"), lines(0..5_000)).unwrap();
    fs::write(path("more"), lines(4_000..150_000)).unwrap();
    let old = build_in(folder.path()).unwrap().about;
    let (database, bytes) = (path("db"), fs::read(path("db")).unwrap());
    let found = || {
        let found = Database::open(&database).unwrap();
        found.verify(|_| ()).unwrap();
        found.about().clone()
    };
    let started = Instant::now();
    assert!(start("add", folder.path(), 0).wait().unwrap().success());
    let (mut time, new) = (started.elapsed(), found());
    assert_eq!(new.records, 150_000);
    let (mut left_old, mut left_new) = (0, 0);
    for round in 0..20 {
        fs::write(&database, &bytes).unwrap();
        let started = Instant::now();
        let child = start("add", folder.path(), 0);
        let is_replaced = || fs::metadata(&database).unwrap().len() != bytes.len() as u64;
        // At its beginning, when it is done, and at moments between.
        let moment = time.mul_f64(random() as f64 / u64::MAX as f64);
        let is_due = || match round {
            0 => path("db.part").exists(),
            1 => false,
            _ => started.elapsed() >= moment,
        };
        while !is_due() && !is_replaced() {
            assert!(started.elapsed() < PATIENCE, "the addition does not get anywhere");
            sleep(Duration::from_micros(100));
        }
        if is_replaced() {
            // The first was a slow one.
            time = started.elapsed();
        }
        kill(child);
        let found = found();
        if found.identity == old.identity {
            assert_eq!(fs::read(&database).unwrap(), bytes);
            left_old += 1;
        } else {
            assert_eq!((found.addresses, found.amounts), (new.addresses, new.amounts));
            left_new += 1;
        }
    }
    assert!(left_old > 0 && left_new > 0, "{left_old} {left_new}");
    // What killed ones left is cleared away.
    assert!(start("add", folder.path(), 0).wait().unwrap().success());
    assert_eq!(found().addresses, new.addresses);
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["db", "list", "more"]);
}

/// What a role says of a disk that takes no more.
fn write_verdict(verdict: &str) {
    // The test reads it from standard error, since files are limited.
    eprintln!("verdict: {verdict}");
}

#[test]
#[ignore = "a role of the full disk tests"]
fn save_on_a_full_disk() {
    let mut file = MapFile::open(&folder().join("map"), job(), |_| Order::Sequential).unwrap();
    let mut planner = Planner::new(file.map());
    let (mut now, mut kept) = (0, Vec::new());
    loop {
        // Every other batch: the map grows by a line each time.
        let batch = planner.next(U256::new(10)).unwrap();
        kept.push(planner.next(U256::new(10)).unwrap());
        now += 1;
        file.map_mut().complete(&batch, now);
        if now % 100 == 0
            && let Err(error) = file.save()
        {
            write_verdict(&error.to_string());
            // Still usable: what is done later is saved when there is room.
            assert!(file.save().is_err());
            return;
        }
    }
}

#[test]
#[ignore = "a role of the full disk tests"]
fn build_on_a_full_disk() {
    write_verdict(&build_in(&folder()).unwrap_err().to_string());
}

/// Runs a role that can write files of 64 KiB at most: a write beyond fails as on a full disk, with an error and not with
/// a signal, which is ignored.
#[cfg(unix)]
fn verdict_with_small_files(role: &str, folder: &Path) -> String {
    let script = "trap '' XFSZ; ulimit -f 128; exec \"$0\" --ignored --exact --nocapture \"$1\"";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg(role)
        .env(FOLDER, folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stdout));
    said.lines().find_map(|line| line.strip_prefix("verdict: ")).expect("a verdict").to_owned()
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_an_error_and_the_map_stays() {
    let folder = tempfile::tempdir().unwrap();
    let verdict = verdict_with_small_files("save_on_a_full_disk", folder.path());
    assert!(verdict.contains("could not write") && verdict.contains("make room"), "{verdict}");
    let map = MapFile::read(&folder.path().join("map")).unwrap();
    assert!(map.covered() > U256::new(1000));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_full_disk_ends_a_build_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..20_000).map(|number| format!("0x{number:040x}\n")).collect();
    fs::write(folder.path().join("list"), text).unwrap();
    let verdict = verdict_with_small_files("build_on_a_full_disk", folder.path());
    assert!(verdict.contains("could not write"), "{verdict}");
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["list"]);
}
