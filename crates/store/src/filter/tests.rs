use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use xorf::{BinaryFuse8, BinaryFuse16, Filter as _};

use super::*;
use crate::{BuildOptions, Database};

/// Numbers without a pattern.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    (1..).map(move |step: u64| {
        let mixed = (step.wrapping_add(seed << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ mixed >> 32
    })
}

fn filter_of(keys: &[u64], width: Width) -> Filter {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.dedup();
    Filter::of_keys(&keys, width, 1, vec![AddressKind::P2PKH], [1; 16]).unwrap()
}

/// The formula in this crate and the crate that makes the filters agree on every key, in the set or not.
#[test]
fn the_formula_is_that_of_the_crate() {
    for count in [0, 1, 2, 3, 10, 1000, 100_000] {
        let keys: Vec<u64> = numbers(1).take(count).collect();
        let (eight, sixteen) =
            (BinaryFuse8::try_from(&keys).unwrap(), BinaryFuse16::try_from(&keys).unwrap());
        let ours = Width::ALL.map(|width| filter_of(&keys, width));
        let edges = [0, 1, u64::MAX, 1 << 63];
        for key in keys.iter().copied().chain(numbers(2).take(100_000)).chain(edges) {
            assert_eq!(ours[0].contains_key(key), sixteen.contains(&key));
            assert_eq!(ours[1].contains_key(key), eight.contains(&key));
        }
        for key in keys {
            assert!(ours.iter().all(|filter| filter.contains_key(key)));
        }
    }
}

/// Values of the formula for a filter of known numbers, computed in another language: a kernel is checked against the same, and a change of the crate
/// that made old files wrong would show here.
#[test]
fn the_formula_is_what_it_always_was() {
    let part =
        FilterPart { first: 0, seed: 0x0123_4567_89ab_cdef, segment_length: 4, segment_count_length: 12 };
    let fingerprints: Vec<u8> = (0..20).map(|index: u8| index.wrapping_mul(37)).collect();
    let filter = Filter {
        parts: vec![part],
        fingerprints: Fingerprints::Bytes(fingerprints),
        kinds: vec![],
        keys: 0,
        identity: [0; 16],
    };
    let passing: Vec<u64> = (0..2000).filter(|&key| filter.contains_key(key)).collect();
    assert_eq!(passing, PINNED);
}
const PINNED: [u64; 6] = [728, 1125, 1567, 1606, 1843, 1879];

#[test]
fn false_positives_are_as_rare_as_they_should_be() {
    let keys: HashSet<u64> = numbers(3).take(300_000).collect();
    let list: Vec<u64> = keys.iter().copied().collect();
    for width in Width::ALL {
        let filter = filter_of(&list, width);
        let trials = 1 << 22;
        let others = numbers(4).filter(|key| !keys.contains(key)).take(trials);
        let passed = others.filter(|key| filter.contains_key(*key)).count() as f64;
        let expected = trials as f64 * width.false_share();
        // Five deviations: less than one run in a million is outside.
        assert!((passed - expected).abs() < 5.0 * expected.sqrt(), "{width:?}: {passed} of {expected}");
    }
}

#[test]
fn sizes_are_as_foretold() {
    for count in [0, 1, 2, 10, 1000, 99_999, 1_000_000] {
        let keys: Vec<u64> = numbers(5).take(count).collect();
        for width in Width::ALL {
            let (size, foretold) = (filter_of(&keys, width).size(), choose::bytes_for(count as u64, width));
            assert!(size <= foretold && foretold <= size + size / 8 + 64, "{count}: {size} of {foretold}");
        }
    }
}

/// A database of so many hashes, each as P2PKH and as P2WPKH, and one Ethereum account.
fn database(folder: &Path, name: &str, count: u64) -> Database {
    let list = folder.join(format!("{name}.txt"));
    let mut text = String::new();
    for number in 0..count {
        let digest = digest(number);
        for kind in [AddressKind::P2PKH, AddressKind::P2WPKH] {
            text += &kind.text(&digest);
            text += "\n";
        }
    }
    text += &AddressKind::ETHEREUM.text(&digest(count));
    fs::write(&list, text).unwrap();
    let options = BuildOptions {
        strict: true,
        threads: 1,
        memory: 1 << 20,
        stop: &AtomicBool::new(false),
        progress: &|_| (),
    };
    Database::build(&folder.join(name), &[list], &options).unwrap();
    Database::open(&folder.join(name)).unwrap()
}

fn digest(number: u64) -> warpsmith_chain::Digest {
    use sha2::Digest as _;
    warpsmith_chain::Digest::new(&sha2::Sha256::digest(number.to_le_bytes())[..20])
}

#[test]
fn a_filter_has_all_addresses_of_its_kinds_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), "db", 2000);
    for width in Width::ALL {
        let all = Filter::build(&database, &[], width).unwrap();
        assert_eq!((all.keys(), all.width()), (2001, width));
        assert_eq!(all.kinds(), [AddressKind::P2PKH, AddressKind::P2WPKH, AddressKind::ETHEREUM]);
        assert!((0..=2000).all(|number| all.contains(digest(number).as_bytes())));
        let some = Filter::build(&database, &[AddressKind::P2WPKH, AddressKind::P2TR], width).unwrap();
        assert_eq!((some.keys(), some.kinds()), (2000, &[AddressKind::P2WPKH][..]));
        assert!((0..2000).all(|number| some.contains(digest(number).as_bytes())));
        assert_eq!(key_of(digest(7).as_bytes()), digest(7).words()[0]);
    }
}

/// Of many parts, of parts without a key, and of keys at the seams of parts.
#[test]
fn a_filter_in_parts_has_all_it_should_and_little_else() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), "db", 2000);
    for width in Width::ALL {
        for most in [4000, 1000, 100, 7] {
            let filter = Filter::build_in_parts(&database, &[], width, most, &mut |_| ()).unwrap();
            assert_eq!((filter.keys(), filter.parts().len() as u64), (2001, 4001u64.div_ceil(most)));
            assert!((0..=2000).all(|number| filter.contains(digest(number).as_bytes())));
            let foretold = choose::fingerprints_for(4001, most) * u64::from(width.bits() / 8);
            assert!(filter.size() <= foretold, "{} of {foretold}", filter.size());
            filter.save(&database).unwrap();
            assert_eq!(Filter::open(&database, &[], width).unwrap(), filter);
        }
    }
    for parts in [1, 2, 3, 5, 64, 1000] {
        let seams = (0..parts as u128).map(|part| ((part << 64).div_ceil(parts as u128)) as u64);
        let mut keys: Vec<u64> =
            seams.flat_map(|seam| [seam.wrapping_sub(1), seam, seam + 1]).chain([u64::MAX]).collect();
        keys.extend(numbers(6).take(3));
        for width in Width::ALL {
            let filter = Filter::of_tops(&keys, width, parts).unwrap();
            assert_eq!(filter.parts().len(), parts);
            assert!(keys.iter().all(|key| filter.contains_key(*key)), "{parts} parts");
            let passed = numbers(7).take(1 << 16).filter(|key| filter.contains_key(*key)).count() as f64;
            let expected = 65536.0 * width.false_share();
            assert!(passed < expected + 6.0 * expected.sqrt() + 6.0, "{parts} parts: {passed} of {expected}");
        }
    }
}

/// The bytes of the coarse filter are the low ones of the fine filter: what passes the fine one passes the coarse one, so that of what
/// a card lets pass by the one, as much is left by the other as passes that alone.
#[test]
fn the_coarse_filter_is_a_part_of_the_fine_one() {
    let keys: Vec<u64> = numbers(8).take(50_000).collect();
    for parts in [1, 3] {
        let [fine, coarse] = Width::ALL.map(|width| Filter::of_tops(&keys, width, parts).unwrap());
        assert_eq!(fine.parts(), coarse.parts());
        let (Fingerprints::Words(words), Fingerprints::Bytes(bytes)) =
            (&fine.fingerprints, &coarse.fingerprints)
        else {
            panic!("sixteen bits and eight");
        };
        assert!(words.iter().zip(bytes).all(|(word, byte)| *word as u8 == *byte));
    }
}

/// A filter that an earlier version of this program made is made anew, not an error.
#[test]
fn a_filter_of_the_format_before_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), "db", 50);
    let filter = Filter::build(&database, &[], Width::Fuse8).unwrap();
    filter.save(&database).unwrap();
    let path = folder.path().join("db.fuse8");
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&1u32.to_le_bytes(), 8).unwrap();
    let mut made = 0;
    Filter::open_or_build(&database, &[], Width::Fuse8, &mut |share| {
        if share == 0.0 {
            made += 1;
        }
    })
    .unwrap();
    assert_eq!((made, Filter::open(&database, &[], Width::Fuse8).unwrap().keys()), (1, filter.keys()));
}

#[test]
fn filters_are_saved_beside_their_database_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), "db", 500);
    let kinds: [&[AddressKind]; 2] = [&[], &[AddressKind::P2PKH]];
    for width in Width::ALL {
        for kinds in kinds {
            let mut made = 0;
            let built = Filter::open_or_build(&database, kinds, width, &mut |share| {
                if share == 0.0 {
                    made += 1;
                }
            })
            .unwrap();
            let read = Filter::open_or_build(&database, kinds, width, &mut |share| {
                if share == 0.0 {
                    made += 1;
                }
            })
            .unwrap();
            assert_eq!(made, 1);
            assert_eq!(built, read);
        }
    }
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["db", "db.fuse16", "db.fuse16+p2pkh", "db.fuse8", "db.fuse8+p2pkh", "db.txt"]);
}

#[test]
fn a_filter_of_another_database_is_never_used() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (database(folder.path(), "one", 100), database(folder.path(), "two", 101));
    Filter::build(&one, &[], Width::Fuse8).unwrap().save(&one).unwrap();
    let path = folder.path().join("two.fuse8");
    fs::copy(folder.path().join("one.fuse8"), &path).unwrap();
    let error = Filter::open(&two, &[], Width::Fuse8).unwrap_err();
    assert!(matches!(error, Error::OtherDatabase { .. }));
    assert!(error.to_string().contains(&two.about().identity_text()), "{error}");
    // As when a database was built again under its old name: the filter is made again too.
    let mut made = 0;
    let filter = Filter::open_or_build(&two, &[], Width::Fuse8, &mut |share| {
        if share == 0.0 {
            made += 1;
        }
    })
    .unwrap();
    assert_eq!((made, filter.identity), (1, two.about().identity));
    assert_eq!(Filter::open(&two, &[], Width::Fuse8).unwrap(), filter);
    // One of other kinds or another width under a wrong name is no better.
    fs::rename(folder.path().join("one.fuse8"), folder.path().join("one.fuse16")).unwrap();
    assert!(matches!(Filter::open(&one, &[], Width::Fuse16), Err(Error::Corrupt { .. })));
}

#[test]
fn damaged_filters_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), "db", 50);
    let filter = Filter::build_in_parts(&database, &[], Width::Fuse16, 40, &mut |_| ()).unwrap();
    assert_eq!(filter.parts().len(), 3);
    filter.save(&database).unwrap();
    let path = folder.path().join("db.fuse16");
    let whole = fs::read(&path).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let refusal = || {
        // It is never taken for one that is missing, which would be made anew without a word.
        let opened = Filter::open_or_build(&database, &[], Width::Fuse16, &mut |_| panic!("made"));
        opened.unwrap_err()
    };
    for at in 0..whole.len() {
        for change in [1, 0x80] {
            file.write_all_at(&[whole[at] ^ change], at as u64).unwrap();
            let error = refusal();
            match at {
                0..8 => assert!(matches!(error, Error::Foreign { .. }), "{error}"),
                8..12 => assert!(matches!(error, Error::Version { .. }), "{error}"),
                _ => {
                    assert!(matches!(error, Error::Corrupt { .. } | Error::Truncated { .. }), "{at}: {error}")
                }
            }
        }
        file.write_all_at(&whole[at..=at], at as u64).unwrap();
    }
    Filter::open(&database, &[], Width::Fuse16).unwrap();
    file.write_all_at(&[0], whole.len() as u64).unwrap();
    assert!(matches!(refusal(), Error::Corrupt { .. }));
    for cut in (0..whole.len()).rev() {
        file.set_len(cut as u64).unwrap();
        let error = refusal();
        assert!(matches!(error, Error::Truncated { .. }), "{cut}: {error}");
        assert!(error.to_string().contains("remove it, and it is made anew"));
        assert_eq!(fs::metadata(&path).unwrap().len(), cut as u64);
    }
}

#[test]
fn how_much_of_a_filter_is_done_is_told_from_nothing_to_all_and_never_falls() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path(), "db", 500);
    let mut told = Vec::new();
    Filter::build_in_parts(&database, &[], Width::Fuse8, 100, &mut |share| told.push(share)).unwrap();
    assert_eq!((told[0], told[told.len() - 1]), (0.0, 1.0));
    assert!(told.len() > 5 && told.is_sorted(), "{told:?}");
}
