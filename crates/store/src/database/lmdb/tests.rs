//! Trees as LMDB itself writes them, whole and damaged.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use heed::types::Bytes;
use heed::{EnvOpenOptions, PutFlags};
use warpsmith_chain::Digest;

use super::*;
use crate::database::Database;
use crate::database::tests::{Workshop, line, record};
use crate::record::Record;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// An LMDB environment with these tables.
fn environment(path: &Path, tables: &[(&str, &Pairs)]) {
    fs::create_dir(path).unwrap();
    // SAFETY: the folder is new and nobody else's.
    let env = unsafe { EnvOpenOptions::new().map_size(1 << 24).max_dbs(4).open(path) }.unwrap();
    for (name, pairs) in tables {
        let mut txn = env.write_txn().unwrap();
        let table: heed::Database<Bytes, Bytes> = env.create_database(&mut txn, Some(name)).unwrap();
        for (key, value) in *pairs {
            table.put_with_flags(&mut txn, PutFlags::empty(), key, value).unwrap();
        }
        txn.commit().unwrap();
    }
    env.prepare_for_closing().wait();
}

#[test]
fn databases_of_the_finder_are_sources() {
    let shop = Workshop::new();
    let records = vec![
        (vec![1; 20], 5_000_000_000u64.to_be_bytes().to_vec()),
        (vec![2; 20], vec![]),
        (vec![3; 20], 1u64.to_be_bytes().to_vec()),
        (vec![4; 20], (-1i64).to_be_bytes().to_vec()),
        (vec![5; 19], vec![]),
        (vec![6; 20], vec![1, 2, 3]),
    ];
    environment(&shop.path("lmdb"), &[(FINDER, &records), ("another", &records)]);
    let built = shop.build("db", &[shop.path("lmdb")]).unwrap();
    assert_eq!((built.report.addresses, built.report.bad), (3, 3));
    assert_eq!(built.report.bad_lines.iter().map(|bad| bad.line).collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!(built.about.kinds, [(AddressKind::HASH160, 3)]);
    // With more addresses, by the name of the data file.
    let more = shop.file("more", line(&record(AddressKind::ETHEREUM, 1, Some(7))));
    let built = shop.build("both", &[shop.path("lmdb").join(DATA), more]).unwrap();
    assert_eq!(built.about.kinds, [(AddressKind::ETHEREUM, 1), (AddressKind::HASH160, 3)]);
    let database = Database::open(&shop.path("both")).unwrap();
    let reader = database.reader();
    let amount =
        |kind: AddressKind, digest: &[u8]| reader.find(kind, digest).unwrap().map(|record| record.amount);
    assert_eq!(amount(AddressKind::HASH160, &[1; 20]), Some(Some(5_000_000_000)));
    assert_eq!(amount(AddressKind::HASH160, &[2; 20]), Some(Some(0)));
    assert_eq!(amount(AddressKind::HASH160, &[4; 20]), None);
    assert_eq!(
        amount(AddressKind::ETHEREUM, record(AddressKind::ETHEREUM, 1, None).digest.as_bytes()),
        Some(Some(7))
    );

    // A hash of unknown type is found by any address that has it.
    let hash = Digest::new(&[1; 20]);
    for (kind, count) in [
        (AddressKind::P2PKH, 1),
        (AddressKind::P2SH, 1),
        (AddressKind::find("p2wpkh-test").unwrap(), 1),
        (AddressKind::ETHEREUM, 0),
    ] {
        let address = Record::parse(&kind.text(&hash)).unwrap().unwrap();
        let found = reader.find_address(&address).unwrap();
        assert_eq!(found.len(), count);
        assert!(found.iter().all(|found| found.kind == AddressKind::HASH160 && found.digest == hash));
    }
    // And by itself; a hash that is there as an address too is found as both.
    let bare = Record::parse(&format!("hash160:{}", "01".repeat(20))).unwrap().unwrap();
    let listed = [AddressKind::P2PKH, AddressKind::P2TR, AddressKind::ETHEREUM, AddressKind::P2SH];
    let lines = listed.map(|kind| kind.text(&Digest::new(&vec![1; kind.digest_bytes()])) + "\t3\n");
    let list = shop.file("kinds", lines.concat());
    shop.build("kinds.db", &[shop.path("lmdb"), list]).unwrap();
    let database = Database::open(&shop.path("kinds.db")).unwrap();
    let found = |address: &Record| -> Vec<(AddressKind, Option<u128>)> {
        let found = database.reader().find_address(address).unwrap();
        found.into_iter().map(|record| (record.kind, record.amount)).collect()
    };
    let hash160 = (AddressKind::HASH160, Some(5_000_000_000));
    assert_eq!(found(&bare), [hash160, (AddressKind::P2PKH, Some(3)), (AddressKind::P2SH, Some(3))]);
    let own = |kind| Record { kind, ..bare };
    assert_eq!(found(&own(AddressKind::P2SH)), [(AddressKind::P2SH, Some(3)), hash160]);
    assert_eq!(found(&own(AddressKind::P2WPKH)), [hash160]);
    assert_eq!(found(&own(AddressKind::ETHEREUM)), [(AddressKind::ETHEREUM, Some(3))]);

    let error = Database::open(&shop.path("lmdb")).unwrap_err().to_string();
    assert!(error.contains("warpsmith db build NEW OLD"), "{error}");
    fs::create_dir(shop.path("empty")).unwrap();
    assert!(matches!(shop.build("x", &[shop.path("empty")]), Err(Error::NotADatabase { .. })));
    environment(&shop.path("other"), &[("another", &records)]);
    assert!(matches!(shop.build("x", &[shop.path("other")]), Err(Error::NotADatabase { .. })));
}

/// A folder as BitcoinAddressFinder writes it, with records of which every third has no amount.
fn finder(path: &Path, count: u64) -> Vec<Record> {
    let records: Vec<Record> = (0..count)
        .map(|number| record(AddressKind::HASH160, number, Some(u128::from(number % 3) << 40)))
        .collect();
    let value = |amount: u128| match amount {
        0 => Vec::new(),
        _ => i64::try_from(amount).unwrap().to_be_bytes().to_vec(),
    };
    let pair =
        |record: &Record| (record.digest.as_bytes().to_vec(), value(record.amount.unwrap_or_default()));
    environment(path, &[(FINDER, &records.iter().map(pair).collect())]);
    records
}

#[test]
fn folders_of_many_pages_become_databases() {
    let shop = Workshop::new();
    // Three levels of pages.
    let records = finder(&shop.path("old"), 20_000);
    let built = shop.build("new", &[shop.path("old")]).unwrap();
    assert_eq!((built.report.addresses, built.report.bad), (20_000, 0));
    let database = Database::open(&shop.path("new")).unwrap();
    let reader = database.reader();
    for record in &records {
        assert_eq!(reader.find(record.kind, record.digest.as_bytes()).unwrap(), Some(*record));
    }
}

/// A change to a page is an error, changes one record, or does not matter: never a crash, never another number of records.
#[test]
fn damaged_folders_are_refused() {
    let shop = Workshop::new();
    let records = finder(&shop.path("old"), 100);
    let right: Vec<Entry> = records.iter().map(Entry::new).collect();
    let data = shop.path("old").join(DATA);
    let length = fs::metadata(&data).unwrap().len();
    let file = OpenOptions::new().read(true).write(true).open(&data).unwrap();
    // How many records are other ones than those put in.
    let changed = || -> Result<usize, Error> {
        let (mut found, mut wrong) = (Vec::new(), 0);
        read(&shop.path("old"), |entries, unread| {
            found.extend(entries);
            wrong += unread.len();
            true
        })?;
        assert_eq!(found.len() + wrong, right.len());
        Ok(wrong + found.iter().filter(|entry| !right.contains(entry)).count())
    };
    assert_eq!(changed().unwrap(), 0);
    let (mut refused, mut whole) = (0, 0);
    for at in (0..length).step_by(3) {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ [0x01, 0x80, 0xff, 0x10][at as usize % 4]], at).unwrap();
        match changed() {
            Ok(changed) => {
                assert!(changed <= 1, "byte {at}");
                whole += 1;
            }
            Err(_) => refused += 1,
        }
        file.write_all_at(&byte, at).unwrap();
    }
    // The rest are old pages, room that was never used, and bytes of records, which have no checksum.
    assert!(refused > 300 && whole > 1000, "{refused} {whole}");
    for cut in (0..length).rev().step_by(61) {
        file.set_len(cut).unwrap();
        if let Ok(changed) = changed() {
            assert_eq!(changed, 0, "cut at {cut}");
        }
    }
}
