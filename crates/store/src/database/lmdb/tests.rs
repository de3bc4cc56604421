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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A database as earlier versions built it.
fn old(path: &Path, records: &[Record]) {
    let mut entries: Vec<Entry> = records.iter().map(Entry::new).collect();
    entries.sort_unstable();
    let mut summary = Summary::default();
    entries.iter().for_each(|entry| summary.add(entry));
    let about = summary.finish([7; 16], 1_763_200_000);
    let mut text = format!(
        "{ABOUT_HEAD}1\nidentity {}\ncreated {}\nrecords {}\naddresses {}\namounts {}\n",
        hex(&about.identity),
        about.created,
        about.records,
        hex(&about.addresses),
        hex(&about.amounts)
    );
    for (kind, count) in &about.kinds {
        text += &format!("kind {} {count}\n", kind.name());
    }
    let pairs = entries.iter().map(|entry| (entry.key().to_vec(), entry.value().to_vec())).collect();
    let about = vec![(ABOUT.as_bytes().to_vec(), text.into_bytes())];
    environment(path, &[(RECORDS, &pairs), (ABOUT, &about)]);
}

fn some(count: u64) -> Vec<Record> {
    let amounts = [None, Some(5), Some(1 << 90)];
    (0..count)
        .map(|number| {
            record(
                [AddressKind::P2PKH, AddressKind::P2TR][number as usize % 2],
                number,
                amounts[number as usize % 3],
            )
        })
        .collect()
}

#[test]
fn our_old_databases_become_new_ones() {
    let shop = Workshop::new();
    // Three levels of pages.
    let records = some(20_000);
    old(&shop.path("old"), &records);
    let built = shop.build("new", &[shop.path("old")]).unwrap();
    assert_eq!((built.report.addresses, built.report.bad), (20_000, 0));
    let database = Database::open(&shop.path("new")).unwrap();
    let reader = database.reader();
    for record in &records {
        assert_eq!(reader.find(record.kind, record.digest.as_bytes()).unwrap(), Some(*record));
    }
}

/// Any change to a page is an error or does not matter: never a crash, never another database than the one that was.
#[test]
fn damaged_old_databases_are_refused() {
    let shop = Workshop::new();
    old(&shop.path("old"), &some(100));
    let right = shop.build("right", &[shop.path("old")]).unwrap().about;
    let data = shop.path("old").join(DATA);
    let length = fs::metadata(&data).unwrap().len();
    let file = OpenOptions::new().read(true).write(true).open(&data).unwrap();
    let summary = || -> Result<About, Error> {
        let mut summary = Summary::default();
        read(&shop.path("old"), |entries, wrong| {
            assert!(wrong.is_empty());
            entries.iter().for_each(|entry| summary.add(entry));
            true
        })?;
        Ok(summary.finish([0; 16], 0))
    };
    let (mut refused, mut whole) = (0, 0);
    for at in (0..length).step_by(3) {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ [0x01, 0x80, 0xff, 0x10][at as usize % 4]], at).unwrap();
        match summary() {
            Ok(read) => {
                assert_eq!((&read.addresses, &read.amounts), (&right.addresses, &right.amounts), "byte {at}");
                whole += 1;
            }
            Err(_) => refused += 1,
        }
        file.write_all_at(&byte, at).unwrap();
    }
    // The rest are old pages and room that was never used.
    assert!(refused > 1000 && whole > 1000, "{refused} {whole}");
    for cut in (0..length).rev().step_by(61) {
        file.set_len(cut).unwrap();
        if let Ok(read) = summary() {
            assert_eq!(read.addresses, right.addresses, "cut at {cut}");
        }
    }
}

#[test]
fn what_old_databases_say_of_themselves_is_read_with_care() {
    let text = format!(
        "{ABOUT_HEAD}1\nidentity {}\ncreated 5\nrecords 3\naddresses {}\namounts {}\nkind p2pkh 3\n",
        "07".repeat(16),
        "ab".repeat(32),
        "cd".repeat(32)
    );
    let path = Path::new("db");
    let about = read_about(path, text.as_bytes()).unwrap();
    assert_eq!((about.records, about.count(AddressKind::P2PKH)), (3, 3));
    for (from, to) in [
        ("records 3", "records x"),
        ("kind p2pkh", "kind p2wsh"),
        ("identity 07", "identity 7"),
        ("amounts", "amount"),
        ("warpsmith", "w"),
    ] {
        let wrong = text.replace(from, to);
        assert!(matches!(read_about(path, wrong.as_bytes()), Err(Error::Corrupt { .. })), "{from} -> {to}");
    }
    let newer = text.replace("database 1", "database 2");
    assert!(matches!(read_about(path, newer.as_bytes()), Err(Error::Version { found: 2, .. })));
}
