//! Whatever is done to the bytes of a database: it is found when it is touched, and no look-up is wrong.

use std::fs::{self, OpenOptions};

use super::tests::{Workshop, known_kinds, record};
use super::*;
use crate::{Filter, Width};

/// Records of two kinds in several chunks of 256 bytes, with and without amounts.
fn small(shop: &Workshop) -> (Database, Vec<Record>) {
    let one =
        (0..30).map(|number| record(AddressKind::P2PKH, number, (number % 3 > 0).then_some(number.into())));
    let records: Vec<Record> =
        one.chain((0..20).map(|number| record(AddressKind::P2TR, number, None))).collect();
    (shop.database("db", &records, 256), records)
}

/// Looks at everything in a file that may be damaged: never wrong, never a panic. Whether anything was found wrong, and what.
fn examine(path: &Path, records: &[Record]) -> Result<(), Error> {
    let database = Database::open(path)?;
    let (mut errors, reader) = (Vec::new(), database.reader());
    for known in records {
        match reader.find(known.kind, known.digest.as_bytes()) {
            Ok(found) => assert_eq!(found, Some(*known), "a look-up is right or an error"),
            Err(error) => errors.push(error),
        }
        let other = record(known.kind, 1 << 40, None);
        match reader.find(known.kind, other.digest.as_bytes()) {
            Ok(found) => assert_eq!(found, None),
            Err(error) => errors.push(error),
        }
    }
    match Filter::build(&database, &[], Width::Fuse16) {
        Ok(filter) => assert!(records.iter().all(|known| filter.contains(known.digest.as_bytes()))),
        Err(error) => errors.push(error),
    }
    match database.verify(|_| ()) {
        Ok(()) if !errors.is_empty() => panic!("`verify` found nothing, and a look-up: {}", errors[0]),
        verified => verified,
    }
}

#[test]
fn every_changed_byte_is_found() {
    let shop = Workshop::new();
    let (database, records) = small(&shop);
    let (path, length) = (shop.path("db"), database.size());
    examine(&path, &records).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    for at in 0..length {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        // Every bit of one byte in turn, and now and then the whole of it.
        let changes = [1 << (at % 8), if at % 16 == 0 { 0xff } else { 0x81 }];
        for change in changes {
            file.write_all_at(&[byte[0] ^ change], at).unwrap();
            let error = examine(&path, &records).unwrap_err();
            match at {
                0..8 => assert!(matches!(error, Error::Foreign { .. }), "{at}: {error}"),
                8..12 => assert!(matches!(error, Error::Version { .. }), "{at}: {error}"),
                _ => assert!(matches!(error, Error::Corrupt { .. }), "{at}: {error}"),
            }
        }
        file.write_all_at(&byte, at).unwrap();
    }
    examine(&path, &records).unwrap();
    // Where it is, in words: 30 records of 21 bytes are 3 chunks of 11.
    file.write_all_at(&[0x55], HEAD as u64 + 2 * 256 + 40).unwrap();
    let error = examine(&path, &records).unwrap_err().to_string();
    let place = "chunk 3 of 6, with the records 23 to 30 of 30 of kind p2pkh";
    assert!(error.contains(place) && error.contains("build it again"), "{error}");
}

#[test]
fn every_cut_is_found() {
    let shop = Workshop::new();
    let (database, records) = small(&shop);
    let (path, length) = (shop.path("db"), database.size());
    let whole = fs::read(&path).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    for cut in (0..length).rev() {
        file.set_len(cut).unwrap();
        let error = examine(&path, &records).unwrap_err();
        match cut {
            0 => assert!(matches!(error, Error::Foreign { .. }), "{error}"),
            _ => assert!(matches!(error, Error::Truncated { .. }), "{cut}: {error}"),
        }
    }
    fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
    assert!(matches!(examine(&path, &records), Err(Error::Corrupt { .. })));
}

/// Chunks that are whole, but not where they belong.
#[test]
fn chunks_in_the_wrong_place_are_found() {
    let shop = Workshop::new();
    let (database, records) = small(&shop);
    let whole = fs::read(shop.path("db")).unwrap();
    let other = fs::read({
        shop.database("other", &records, 256);
        shop.path("other")
    })
    .unwrap();
    let place = |chunk: u64| {
        let at = database.layout.place(chunk) as usize;
        at..at + 256
    };
    for chunk in 0..database.layout.chunks {
        for from in 0..database.layout.chunks {
            for source in [&whole, &other] {
                if from == chunk && std::ptr::eq(source, &whole) {
                    continue;
                }
                let mut changed = whole.clone();
                changed[place(chunk)].copy_from_slice(&source[place(from)]);
                fs::write(shop.path("db"), changed).unwrap();
                let error = examine(&shop.path("db"), &records).unwrap_err();
                assert!(error.to_string().contains(&format!("chunk {} of 6", chunk + 1)), "{error}");
            }
        }
    }
}

/// A file that is cut, or changed, while it is open.
#[test]
fn damage_to_an_open_database_is_an_error() {
    let shop = Workshop::new();
    let (database, records) = small(&shop);
    let file = OpenOptions::new().write(true).open(shop.path("db")).unwrap();
    let reader = database.reader();
    let find = |record: &Record| reader.find(record.kind, record.digest.as_bytes());
    let mut in_order = records.clone();
    in_order.sort_by_key(Entry::new);
    let (first, last) = (&in_order[0], &in_order[in_order.len() - 1]);
    assert_eq!(find(first).unwrap(), Some(*first));
    file.set_len(HEAD as u64 + 256).unwrap();
    assert!(matches!(find(last), Err(Error::Truncated { .. })));
    // What could not be read is not taken for the chunk that was there before.
    assert_eq!(find(first).unwrap(), Some(*first));
    assert!(matches!(database.verify(|_| ()), Err(Error::Truncated { .. })));
    file.write_all_at(&[0x99; 4], HEAD as u64 + 30).unwrap();
    assert!(matches!(find(last), Err(Error::Truncated { .. })));
    assert!(matches!(find(first), Err(Error::Corrupt { .. })));
}

/// Bytes, runs of bytes and whole pages at random in a database of all kinds and the usual chunks.
#[test]
fn damage_at_random_is_found() {
    let shop = Workshop::new();
    let records: Vec<Record> = known_kinds()
        .flat_map(|kind| {
            (0..2000).map(move |number| record(kind, number, Some(u128::from(number) << (number % 60))))
        })
        .collect();
    let database = shop.database("db", &records, layout::CHUNK);
    let (path, length) = (shop.path("db"), database.size());
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let sample: Vec<Record> = records.iter().step_by(97).copied().collect();
    let mut state = 7u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..200 {
        let at = random(length);
        let count = [1, 2, 64, 4096][round % 4].min(length - at) as usize;
        let mut before = vec![0; count];
        file.read_exact_at(&mut before, at).unwrap();
        let damage: Vec<u8> = before.iter().map(|byte| byte ^ (1 + random(255) as u8)).collect();
        file.write_all_at(&damage, at).unwrap();
        assert!(examine(&path, &sample).is_err(), "{count} bytes at {at}");
        file.write_all_at(&before, at).unwrap();
    }
    examine(&path, &sample).unwrap();
}
