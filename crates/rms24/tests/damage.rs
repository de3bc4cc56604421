//! A database and its updates, damaged or cut short: every byte is flipped. It is told, or proved harmless; never is anything
//! silently wrong, and never a crash.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use warpsmith_hash::Lanes;
use warpsmith_rms24::hints::make::{Make, Processor};
use warpsmith_rms24::table::{self, Plan};
use warpsmith_rms24::updates::Live;
use warpsmith_rms24::{Choice, Error, Params, Result};

use crate::support::{Bench, fast_folder, flipped, put};

/// A database of twenty keys, so that its head has all it can have.
fn small_database(folder: &Path) -> PathBuf {
    let path = folder.join("data");
    let plan = Plan::tagged(20, 8);
    let mut source = |take: &mut table::Take<'_>| {
        (0..20u64).try_for_each(|number| take(&number.to_le_bytes(), &number.to_le_bytes()))
    };
    table::build(&path, &plan, &mut source, &mut |_| Ok(())).unwrap();
    path
}

fn open_live(path: &Path) -> Result<Live> {
    Live::open(path, Lanes::detect(), 1000)
}

/// All entries of the newest epoch.
fn entries(live: &Live) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut take = |part: &[u8]| {
        all.extend_from_slice(part);
        Ok(())
    };
    live.with_entries(|_, entries| entries.stream(&mut take))?;
    Ok(all)
}

#[test]
fn no_hint_is_made_of_a_damaged_database() {
    let folder = fast_folder();
    let path = small_database(folder.path());
    let good = std::fs::read(&path).unwrap();
    let truth = entries(&open_live(&path).unwrap()).unwrap();
    let blocks = 4096..good.len() - 32;
    for at in 0..good.len() {
        put(&path, flipped(&good, at)).unwrap();
        let told = open_live(&path).and_then(|live| {
            assert!(blocks.contains(&at), "the database was opened with byte {at} flipped");
            // Neither one entry nor an answer comes from it either.
            assert!(matches!(live.entry(0), Err(Error::Damaged { .. })));
            assert!(matches!(live.difference(&[(0, vec![0; 24])]), Err(Error::Damaged { .. })));
            assert!(matches!(live.refresh(), Err(Error::Damaged { .. })), "the trouble is remembered");
            entries(&live)
        });
        let told = told.expect_err(&format!("byte {at} was flipped, and nobody noticed")).to_string();
        if blocks.contains(&at) {
            let place = format!("segment 0 of the entries (bytes 4096 to {})", blocks.end - 1);
            assert!(told.contains(&place), "byte {at}: {told}");
        }
    }
    // The makers of hints get nothing of it, nor does a server that loads it.
    let make = Processor { lanes: Lanes::detect(), threads: 1 };
    let params = Params::new(Choice { lambda: 20, ..Choice::new(truth.len() as u64 / 24, 24) }).unwrap();
    for at in [blocks.start, blocks.end - 1] {
        put(&path, flipped(&good, at)).unwrap();
        let mut live = open_live(&path).unwrap();
        let mut handed_over = 0;
        let made = make.offline(&params, &AtomicBool::new(false), &mut |push| {
            live.with_entries(|_, entries| {
                entries.stream(&mut |part| {
                    handed_over += part.len();
                    push(part)
                })
            })
        });
        assert!(matches!(made, Err(Error::Damaged { .. })));
        assert_eq!(handed_over, 0);
        for in_memory in [true, false] {
            assert!(matches!(live.load(in_memory, &mut |_| Ok(())), Err(Error::Damaged { .. })));
        }
    }
    for length in (0..good.len()).step_by(7) {
        put(&path, &good[..length]).unwrap();
        assert!(open_live(&path).is_err(), "cut to {length} bytes");
    }
    put(&path, &good).unwrap();
    assert_eq!(entries(&open_live(&path).unwrap()).unwrap(), truth);
}

/// Several segments: those before the damaged one are handed over, it and those after it are not.
#[test]
fn a_stream_ends_before_the_damaged_segment() {
    let bench = Bench::new(Choice::new(150_000, 40));
    let path = bench.folder.path().join("data");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096 + (3 << 20) + 17] ^= 16;
    put(&path, bytes).unwrap();
    let live = open_live(&path).unwrap();
    let mut seen = 0;
    let mut take = |part: &[u8]| {
        seen += part.len();
        Ok(())
    };
    let told = live.with_entries(|_, entries| entries.stream(&mut take)).unwrap_err().to_string();
    assert_eq!(seen, 3 << 20);
    assert!(told.contains("segment 3 of the entries (bytes 3149824 to 4198399)"), "{told}");
    // Entries elsewhere are well.
    live.entry(0).unwrap();
    assert!(live.entry((3 << 20) / 40 + 9).is_err());
}

/// What may be known of a database with updates.
fn known(live: &Live) -> (u64, Vec<u8>) {
    (live.epoch(), entries(live).unwrap())
}

#[test]
fn a_damaged_update_is_told_and_an_unfinished_one_is_not_in_the_way() {
    let folder = fast_folder();
    let path = small_database(folder.path());
    let log = folder.path().join("data.updates");
    let append = |value: u8| {
        let live = open_live(&path)?;
        live.update(live.difference(&[(u64::from(value), vec![value; 24])])?)
    };
    (1..=2).for_each(|value| append(value).unwrap());
    let before = (std::fs::read(&log).unwrap(), known(&open_live(&path).unwrap()));
    append(3).unwrap();
    let after = (std::fs::read(&log).unwrap(), known(&open_live(&path).unwrap()));
    assert_eq!((before.1.0, after.1.0), (2, 3));

    let mut harmless = 0;
    for at in 0..after.0.len() {
        put(&log, flipped(&after.0, at)).unwrap();
        match open_live(&path) {
            Ok(live) => {
                assert_eq!(known(&live), after.1, "byte {at} was flipped, and nobody noticed");
                harmless += 1;
            }
            Err(error) => assert!(matches!(error, Error::Damaged { .. } | Error::Format { .. }), "{error}"),
        }
    }
    // The bytes of the two marks, of which one is enough.
    assert_eq!(harmless, 1024);
    for length in 0..after.0.len() {
        put(&log, &after.0[..length]).unwrap();
        let told = open_live(&path).err().unwrap_or_else(|| panic!("cut to {length} bytes")).to_string();
        assert!(told.contains("damaged"), "{told}");
    }

    // An append that a crash ended: first the update is written, then a mark.
    let (data, mark) = (before.0.len()..after.0.len(), 512 * (1 + 3 % 2)..512 * (2 + 3 % 2));
    for end in data.clone() {
        let mut torn = after.0[..end].to_vec();
        torn[..before.0.len()].copy_from_slice(&before.0);
        put(&log, torn).unwrap();
        assert_eq!(known(&open_live(&path).unwrap()), before.1);
        append(3).unwrap();
        assert_eq!(known(&open_live(&path).unwrap()), after.1);
    }
    for end in mark.clone() {
        let mut torn = after.0.clone();
        torn[end..mark.end].copy_from_slice(&before.0[end..mark.end]);
        put(&log, &torn).unwrap();
        // The update is whole: whether it counts is open until somebody was told, but then it stays so.
        let epoch = open_live(&path).unwrap().epoch();
        assert!(epoch == 3 || (epoch == 2 && torn[mark.clone()] == before.0[mark.clone()]), "{end}");
        if epoch == 3 && end % 16 == 0 {
            append(4).unwrap();
            assert_eq!(open_live(&path).unwrap().epoch(), 4);
        }
    }
    // Of the format before, and of another database.
    let mut old = b"WPIRUPDS".to_vec();
    std::fs::remove_file(&log).unwrap();
    old.extend_from_slice(&open_live(&path).unwrap().base().description().identity);
    put(&log, &old).unwrap();
    assert!(open_live(&path).is_err_and(|error| error.to_string().contains("version 1 of the format")));
    let mut other = after.0.clone();
    other[12] ^= 1;
    put(&log, &other).unwrap();
    assert!(open_live(&path).is_err());
}
