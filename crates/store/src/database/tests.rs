use std::fs;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

/// A folder to build in, and addresses to build from.
struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn build(&self, name: &str, sources: &[PathBuf]) -> Result<Built, Error> {
        build(&self.path(name), sources, false)
    }
}

fn build(path: &Path, sources: &[PathBuf], strict: bool) -> Result<Built, Error> {
    let options = BuildOptions {
        strict,
        threads: 3,
        memory: 1 << 20,
        stop: &AtomicBool::new(false),
        progress: &|_| (),
    };
    Database::build(path, sources, &options)
}

/// Some address of a kind, by number.
fn record(kind: Kind, number: u64, amount: Option<u128>) -> Record {
    use sha2::Digest as _;
    let hash = sha2::Sha256::digest(number.to_le_bytes());
    Record { kind, digest: Digest::new(&hash[..kind.digest_bytes()]), amount }
}

fn known_kinds() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|kind| *kind != Kind::Hash160)
}

fn line(record: &Record) -> String {
    match record.amount {
        Some(amount) => format!("{}\t{amount}\n", record.text()),
        None => record.text() + "\n",
    }
}

#[test]
fn every_address_that_went_in_is_found_and_no_other() {
    let shop = Workshop::new();
    let mut records = Vec::new();
    for kind in known_kinds() {
        records.extend((0..3000).map(|number| {
            // Amounts of no byte, 8 and 16.
            let amount = [None, Some(u128::from(number)), Some(1 << 90)][(number % 3) as usize];
            record(kind, number, amount)
        }));
    }
    // Three packings, each with a third of them; sorting has to bring them together. A buffer holds 6990 entries, so there
    // are several runs.
    let thirds: Vec<String> =
        (0..3).map(|skip| records.iter().skip(skip).step_by(3).map(line).collect()).collect();
    let plain = shop.file("plain.tsv", format!("address\tbalance\n{}", thirds[0]));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(thirds[1].as_bytes()).unwrap();
    let gz = shop.file("two.gz", gzip.finish().unwrap());
    let zst = shop.file("three.zst", zstd::encode_all(thirds[2].as_bytes(), 1).unwrap());
    let built = shop.build("db", &[plain, gz, zst]).unwrap();
    assert_eq!((built.report.addresses, built.report.duplicates, built.report.bad), (27_000, 0, 0));

    let database = Database::open(&shop.path("db")).unwrap();
    assert_eq!(database.about(), &built.about);
    assert_eq!(database.about().records, 27_000);
    for kind in Kind::ALL {
        assert_eq!(database.about().count(kind), if kind == Kind::Hash160 { 0 } else { 3000 });
    }
    let reader = database.reader().unwrap();
    for record in &records {
        assert_eq!(reader.find(record.kind, record.digest.as_bytes()).unwrap(), Some(*record));
    }
    for number in 3000..6000 {
        for kind in Kind::ALL {
            let other = record(kind, number, None);
            assert_eq!(reader.find(kind, other.digest.as_bytes()).unwrap(), None);
        }
    }
    // The kind belongs to the address, and a digest of another length to none.
    let one = record(Kind::P2pkh, 5, None);
    assert_eq!(reader.find(Kind::Hash160, one.digest.as_bytes()).unwrap(), None);
    assert_eq!(reader.find(Kind::P2pkh, &one.digest.as_bytes()[..19]).unwrap(), None);
    let kinds = [Kind::P2pkh, Kind::P2wpkh, Kind::Hash160];
    assert_eq!(reader.find_any(&kinds, one.digest.as_bytes()).unwrap().len(), 2);
    drop(reader);
    let read = std::cell::Cell::new(0);
    database.verify(|count| read.set(count)).unwrap();
    assert_eq!(read.get(), 27_000);
    assert_eq!(shop.names(), ["db", "plain.tsv", "three.zst", "two.gz"]);
}

#[test]
fn duplicates_scripts_and_bad_lines_are_counted() {
    let shop = Workshop::new();
    let (one, two) = (record(Kind::P2pkh, 1, Some(5)), record(Kind::P2sh, 2, None));
    let script = "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3";
    let first =
        shop.file("first", format!("{}{}\nnonsense\n{script}\n{}", line(&one), line(&two), line(&one)));
    let richer = Record { amount: Some(9), ..one };
    let second = shop.file("second", format!("# more\n{}{}\t1\n", line(&richer), one.text()));
    let built = shop.build("db", &[first.clone(), second]).unwrap();
    let report = &built.report;
    assert_eq!((report.addresses, report.duplicates, report.scripts, report.bad), (5, 3, 1, 1));
    assert_eq!(
        report.bad_lines[0].to_string().split(": ").next().unwrap(),
        format!("{}, line 4", first.display())
    );
    assert_eq!(built.about.records, 2);
    let database = Database::open(&shop.path("db")).unwrap();
    let reader = database.reader().unwrap();
    assert_eq!(reader.find(one.kind, one.digest.as_bytes()).unwrap(), Some(richer));

    let error = build(&shop.path("strict"), &[first], true).unwrap_err();
    assert!(matches!(&error, Error::BadLine(bad) if bad.line == 4), "{error}");
    assert_eq!(shop.names(), ["db", "first", "second"]);
}

#[test]
fn the_same_addresses_have_the_same_name_and_each_build_its_own() {
    let shop = Workshop::new();
    let lines: Vec<String> = (0..100).map(|number| line(&record(Kind::P2wpkh, number, None))).collect();
    let forwards = shop.file("forwards", lines.concat());
    let backwards = shop.file("backwards", lines.iter().rev().cloned().collect::<String>());
    let fewer = shop.file("fewer", lines[1..].concat());
    let targets = |name: &str, source: PathBuf| {
        let built = shop.build(name, &[source]).unwrap();
        (Database::open(&shop.path(name)).unwrap().targets(), built.about.identity)
    };
    let (one, first) = targets("one", forwards.clone());
    let (two, second) = targets("two", backwards);
    assert_eq!(one, two);
    assert_ne!(first, second);
    assert_ne!(targets("three", fewer).0, one);
    // A list of the same addresses has the same digest, but is no database.
    let list = crate::TargetList::read(&[forwards], true).unwrap().targets();
    assert_eq!((list.digest, list.count), (one.digest, one.count));
    assert_ne!(list, one);
}

/// An environment as BitcoinAddressFinder writes it.
fn finder(path: &Path, records: &[(Vec<u8>, Vec<u8>)]) {
    fs::create_dir(path).unwrap();
    // SAFETY: the folder is new and nobody else's.
    let env = unsafe { EnvOpenOptions::new().map_size(1 << 20).max_dbs(1).open(path) }.unwrap();
    let mut txn = env.write_txn().unwrap();
    let table: Table = env.create_database(&mut txn, Some("hash160toCoin")).unwrap();
    for (key, value) in records {
        table.put(&mut txn, key, value).unwrap();
    }
    txn.commit().unwrap();
    env.prepare_for_closing().wait();
}

#[test]
fn databases_of_the_finder_and_our_own_are_sources() {
    let shop = Workshop::new();
    let records = [
        (vec![1; 20], 5_000_000_000u64.to_be_bytes().to_vec()),
        (vec![2; 20], vec![]),
        (vec![3; 20], 1u64.to_be_bytes().to_vec()),
        (vec![4; 20], (-1i64).to_be_bytes().to_vec()),
        (vec![5; 19], vec![]),
        (vec![6; 20], vec![1, 2, 3]),
    ];
    finder(&shop.path("lmdb"), &records);
    let built = shop.build("db", &[shop.path("lmdb")]).unwrap();
    assert_eq!((built.report.addresses, built.report.bad), (3, 3));
    assert_eq!(built.report.bad_lines.iter().map(|bad| bad.line).collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!(built.about.kinds, [(Kind::Hash160, 3)]);
    // With more addresses, by the name of the data file.
    let more = shop.file("more", line(&record(Kind::Ethereum, 1, Some(7))));
    let built = shop.build("both", &[shop.path("db").join(DATA), more]).unwrap();
    assert_eq!(built.about.kinds, [(Kind::Ethereum, 1), (Kind::Hash160, 3)]);
    let database = Database::open(&shop.path("both")).unwrap();
    let reader = database.reader().unwrap();
    let amount = |kind: Kind, digest: &[u8]| reader.find(kind, digest).unwrap().map(|record| record.amount);
    assert_eq!(amount(Kind::Hash160, &[1; 20]), Some(Some(5_000_000_000)));
    assert_eq!(amount(Kind::Hash160, &[2; 20]), Some(Some(0)));
    assert_eq!(amount(Kind::Hash160, &[4; 20]), None);
    assert_eq!(amount(Kind::Ethereum, record(Kind::Ethereum, 1, None).digest.as_bytes()), Some(Some(7)));

    // A hash of unknown type is found by any address that has it.
    let hash = Digest::new(&[1; 20]);
    for (kind, count) in [(Kind::P2pkh, 1), (Kind::P2sh, 1), (Kind::P2wpkhTest, 1), (Kind::Ethereum, 0)] {
        let address = Record::parse(&kind.text(&hash)).unwrap().unwrap();
        let found = reader.find_address(&address).unwrap();
        assert_eq!(found.len(), count);
        assert!(found.iter().all(|found| found.kind == Kind::Hash160 && found.digest == hash));
    }

    // Ours to the finder's reader, and the finder's to ours.
    let error = Database::open(&shop.path("lmdb")).unwrap_err().to_string();
    assert!(error.contains("of another program; build one from it"), "{error}");
    fs::create_dir(shop.path("empty")).unwrap();
    assert!(matches!(shop.build("x", &[shop.path("empty")]), Err(Error::NotADatabase { .. })));
}

#[test]
fn what_is_there_is_never_written_over() {
    let shop = Workshop::new();
    let list = shop.file("list", line(&record(Kind::P2pkh, 1, None)));
    shop.build("db", std::slice::from_ref(&list)).unwrap();
    let before = fs::read(shop.path("db").join(DATA)).unwrap();
    for name in ["db", "list"] {
        assert!(matches!(shop.build(name, std::slice::from_ref(&list)), Err(Error::Exists { .. })));
    }
    assert_eq!(fs::read(shop.path("db").join(DATA)).unwrap(), before);
    assert!(matches!(shop.build("x", &[shop.path("nowhere")]), Err(Error::Io { .. })));
    let empty = shop.file("empty", "\n# nothing\n");
    assert!(matches!(shop.build("x", &[empty]), Err(Error::NoAddress { .. })));
    let text = shop.file("notes", "not an address\n".repeat(3));
    assert!(matches!(shop.build("x", &[text]), Err(Error::NoAddress { .. })));
    // What a killed build left is cleared away.
    fs::create_dir(shop.path("x.part")).unwrap();
    fs::write(shop.path("x.part").join(DATA), "half").unwrap();
    shop.build("x", &[list]).unwrap();
    assert_eq!(shop.names(), ["db", "empty", "list", "notes", "x"]);
}

#[test]
fn a_build_stops_when_told_and_says_how_far_it_is() {
    let shop = Workshop::new();
    let lines: String = (0..60_000).map(|number| line(&record(Kind::P2pkh, number, None))).collect();
    let list = shop.file("list", &lines);
    for stage in [Stage::Reading, Stage::Writing] {
        let stop = AtomicBool::new(false);
        let seen = AtomicU64::new(0);
        let progress = |progress: Progress| {
            assert!(progress.done <= progress.total);
            if progress.stage == stage {
                seen.fetch_add(1, Ordering::Relaxed);
                stop.store(true, Ordering::Relaxed);
            }
        };
        let options =
            BuildOptions { strict: false, threads: 2, memory: 1 << 20, stop: &stop, progress: &progress };
        let stopped = Database::build(&shop.path("db"), std::slice::from_ref(&list), &options);
        assert!(matches!(stopped, Err(Error::Stopped)));
        assert!(seen.load(Ordering::Relaxed) > 0);
        assert_eq!(shop.names(), ["list"]);
    }
}

/// Any changed byte of the file that matters is noticed, by opening, by verifying, or by LMDB.
#[test]
fn damage_is_noticed() {
    let shop = Workshop::new();
    let lines: String = (0..5000).map(|number| line(&record(Kind::P2pkh, number, Some(3)))).collect();
    shop.build("db", &[shop.file("list", lines)]).unwrap();
    let data = shop.path("db").join(DATA);
    let whole = fs::read(&data).unwrap();
    let check = || Database::open(&shop.path("db")).and_then(|database| database.verify(|_| ()));
    check().unwrap();

    fs::write(&data, &whole[..whole.len() - 4096]).unwrap();
    assert!(matches!(check(), Err(Error::Truncated { .. })));
    for content in [&b"not LMDB at all"[..], b"", &whole[..100]] {
        fs::write(&data, content).unwrap();
        let error = check().unwrap_err();
        assert!(matches!(error, Error::NotADatabase { .. } | Error::Truncated { .. }), "{error}");
    }
    // A digest and an amount in the middle of the file.
    let target = record(Kind::P2pkh, 77, None);
    let at = whole.windows(20).position(|bytes| bytes == target.digest.as_bytes()).unwrap();
    for (at, words) in [(at + 19, "addresses"), (at + 20 + 7, "amounts")] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&data, damaged).unwrap();
        let error = check().unwrap_err();
        assert!(matches!(&error, Error::Corrupt { .. }) && error.to_string().contains(words), "{error}");
    }
    fs::write(&data, &whole).unwrap();
    check().unwrap();
}

#[test]
fn a_hundred_addresses_take_little_room() {
    let shop = Workshop::new();
    let lines: String = (0..100_000).map(|number| line(&record(Kind::P2wpkh, number, None))).collect();
    shop.build("db", &[shop.file("list", lines)]).unwrap();
    let database = Database::open(&shop.path("db")).unwrap();
    // 100 million addresses in 5 GB are 50 bytes each; full pages make it 32.
    let each = database.size().unwrap() as f64 / 1e5;
    assert!(each < 34.0, "{each} bytes an address");
}
