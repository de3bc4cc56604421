//! Files of matches that are damaged.

use warpsmith_trials::{Random, count};

use super::*;
use crate::wire::Work;

fn found(unit: u64) -> FoundAt {
    let work = Work::Salts { base: "00".repeat(32), first: 1, last: 9 };
    let (job, token) = (JobId([3; 32]), "ab".repeat(16));
    let lease =
        Lease { job, unit, count: 1, epoch: 1, worker: 4, slot: 0, bits: 1, beat: 0, ms: 3000, work, token };
    FoundAt {
        lease,
        spot: 7 * unit,
        tried: 12_345,
        seconds: 0.1 + 0.2,
        score: None,
        address: Some("npub1q".into()),
    }
}

/// One flipped bit anywhere, or one byte that is missing, costs one match at most, and that is named with its line; a flipped separator
/// costs none.
#[test]
fn damage_is_named_and_costs_one_match() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(FOUND);
    assert_eq!(read_found(&path).expect("none"), FoundFile::default());
    let all: Vec<FoundAt> = (1..=5).map(found).collect();
    all.iter().for_each(|found| found.append(&path).expect("written"));
    let whole = std::fs::read(&path).expect("there");
    let read = read_found(&path).expect("read");
    assert!(read.damage.is_empty());
    assert_eq!(read.records.iter().map(|(_, found)| found.clone()).collect::<Vec<_>>(), all);
    // It is still a file of JSON documents.
    let documents = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    assert!(documents.clone().all(|line| serde_json::from_slice::<serde_json::Value>(line).is_ok()));
    let mut random = Random::new("damage_is_named_and_costs_one_match");
    for trial in 0..count(2000, 40_000) {
        // What is damaged is not the end of the file: that might be under way, and is waited for.
        let at = random.below(whole.len() as u64 - 1) as usize;
        let mut bytes = whole.clone();
        if trial % 2 == 0 {
            bytes[at] ^= 1 << random.below(8);
        } else {
            bytes.remove(at);
        }
        std::fs::write(&path, &bytes).expect("written");
        let read = read_found(&path).expect("read");
        assert!(read.records.iter().all(|(_, found)| all.contains(found)), "{at}");
        match whole[at] {
            b'\n' => assert_eq!(read.records.len(), 5, "{at}"),
            _ => {
                assert_eq!(read.records.len(), 4, "{at}");
                let line = 1 + whole[..at].iter().filter(|byte| **byte == b'\n').count();
                assert!(read.damage.iter().any(|(number, _)| *number == line), "{at}: {:?}", read.damage);
            }
        }
    }
}

/// Matches are delivered by what they are: damage to what was delivered keeps nothing new from being so.
#[test]
fn what_was_delivered_is_known_by_identity() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(read_delivered(folder.path()).expect("none").is_empty());
    let names: Vec<String> = (1..=6).map(|unit| found(unit).identity()).collect();
    add_delivered(folder.path(), &names[..2]).expect("noted");
    add_delivered(folder.path(), &names[2..3]).expect("noted");
    let delivered = read_delivered(folder.path()).expect("read");
    assert!(names[..3].iter().all(|name| delivered.contains(name)));
    assert!(!names[3..].iter().any(|name| delivered.contains(name)));
    let path = folder.path().join(DELIVERED);
    let mut bytes = std::fs::read(&path).expect("there");
    for at in 0..bytes.len() {
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).expect("written");
        let damaged = read_delivered(folder.path()).expect("read");
        assert!(names[..3].iter().filter(|name| damaged.contains(*name)).count() >= 1, "{at}");
        assert!(!names[3..].iter().any(|name| damaged.contains(name)), "{at}");
        bytes[at] ^= 1;
    }
}

/// A hidden scan of another range, or for another key, would find nothing and say nothing: every flipped bit is found out.
#[test]
fn a_damaged_order_is_no_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(ORDER);
    let order = Order {
        range: "8000:ffff".to_owned(),
        types: vec!["rawtr".to_owned()],
        addresses: vec!["bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr".to_owned()],
    };
    let write = |bytes: &[u8]| {
        warpsmith_files::replace(&path, 0o600, |file| file.write_all(bytes)).expect("written");
        read_order(&path)
    };
    let whole = order_text(&order).into_bytes();
    assert_eq!(write(&whole).expect("whole"), order);
    for bit in 0..8 * whole.len() {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let told = write(&bytes).expect_err("damaged").to_string();
        assert!(told.contains("scan.json") && !told.contains("8000"), "{told}");
    }
    assert!(write(&whole[..whole.len() - 2]).is_err());
}
