use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use warpsmith_chain::Digest;

use super::*;

/// A folder to build in, and addresses to build from.
pub(super) struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn build(&self, name: &str, sources: &[PathBuf]) -> Result<Built, Error> {
        build(&self.path(name), sources, false, layout::CHUNK)
    }

    /// A database of these records, in chunks of so many bytes.
    pub fn database(&self, name: &str, records: &[Record], chunk: u32) -> Database {
        let list = self.file(&format!("{name}.txt"), records.iter().map(line).collect::<String>());
        build(&self.path(name), std::slice::from_ref(&list), true, chunk).unwrap();
        fs::remove_file(list).unwrap();
        Database::open(&self.path(name)).unwrap()
    }
}

fn build(path: &Path, sources: &[PathBuf], strict: bool, chunk: u32) -> Result<Built, Error> {
    let options = BuildOptions {
        strict,
        threads: 3,
        memory: 1 << 20,
        stop: &AtomicBool::new(false),
        progress: &|_| (),
    };
    Database::build_with(path, sources, &options, chunk)
}

/// Some address of a kind, by number.
pub(super) fn record(kind: AddressKind, number: u64, amount: Option<u128>) -> Record {
    use sha2::Digest as _;
    let hash = sha2::Sha256::digest(number.to_le_bytes());
    Record { kind, digest: Digest::new(&hash[..kind.digest_bytes()]), amount }
}

pub(super) fn known_kinds() -> impl Iterator<Item = AddressKind> {
    AddressKind::all().filter(|kind| *kind != AddressKind::HASH160)
}

pub(super) fn line(record: &Record) -> String {
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
    let all = records.len() as u64;
    assert_eq!((built.report.addresses, built.report.duplicates, built.report.bad), (all, 0, 0));

    let database = Database::open(&shop.path("db")).unwrap();
    assert_eq!(database.about(), &built.about);
    assert_eq!(database.about().records, all);
    for kind in AddressKind::all() {
        assert_eq!(database.about().count(kind), if kind == AddressKind::HASH160 { 0 } else { 3000 });
    }
    let reader = database.reader();
    for record in &records {
        assert_eq!(reader.find(record.kind, record.digest.as_bytes()).unwrap(), Some(*record));
    }
    for number in 3000..6000 {
        for kind in AddressKind::all() {
            let other = record(kind, number, None);
            assert_eq!(reader.find(kind, other.digest.as_bytes()).unwrap(), None);
        }
    }
    // The kind belongs to the address, and a digest of another length to none.
    let one = record(AddressKind::P2PKH, 5, None);
    assert_eq!(reader.find(AddressKind::HASH160, one.digest.as_bytes()).unwrap(), None);
    assert_eq!(reader.find(AddressKind::P2PKH, &one.digest.as_bytes()[..19]).unwrap(), None);
    let kinds = [AddressKind::P2PKH, AddressKind::P2WPKH, AddressKind::HASH160];
    assert_eq!(reader.find_any(&kinds, one.digest.as_bytes()).unwrap().len(), 2);
    let all: Vec<Record> = database.records().collect::<Result<_, _>>().unwrap();
    assert_eq!(all.len(), records.len());
    assert!(all.is_sorted_by_key(|record| (record.kind, record.digest.as_bytes().to_vec())));
    let read = std::cell::Cell::new(0);
    database.verify(|count| read.set(count)).unwrap();
    assert_eq!(read.get(), records.len() as u64);
    assert_eq!(shop.names(), ["db", "plain.tsv", "three.zst", "two.gz"]);
}

#[test]
fn duplicates_scripts_and_bad_lines_are_counted() {
    let shop = Workshop::new();
    let (one, two) = (record(AddressKind::P2PKH, 1, Some(5)), record(AddressKind::P2SH, 2, None));
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
    let reader = database.reader();
    assert_eq!(reader.find(one.kind, one.digest.as_bytes()).unwrap(), Some(richer));

    let error = build(&shop.path("strict"), &[first], true, layout::CHUNK).unwrap_err();
    assert!(matches!(&error, Error::BadLine(bad) if bad.line == 4), "{error}");
    assert_eq!(shop.names(), ["db", "first", "second"]);
}

/// What is kept of an address that several sources have: the largest amount, in whatever order and form they come; any amount
/// rather than none; and a hash without a type beside the address that has it.
#[test]
fn the_largest_amount_of_all_sources_is_kept() {
    let shop = Workshop::new();
    let amounts = [[Some(5), Some(7)], [Some(7), Some(5)], [None, Some(0)], [Some(3), None], [None, None]];
    let of = |number: usize, amount| record(AddressKind::P2WPKH, number as u64, amount);
    let column = |side: usize| -> Vec<Record> {
        amounts.iter().enumerate().map(|(number, pair)| of(number, pair[side])).collect()
    };
    let texts =
        [0, 1].map(|side| shop.file(["one", "two"][side], column(side).iter().map(line).collect::<String>()));
    shop.database("first", &column(0), 512);
    let sources = [
        vec![texts[0].clone(), texts[1].clone()],
        vec![texts[1].clone(), texts[0].clone()],
        vec![shop.path("first"), texts[1].clone()],
        vec![texts[1].clone(), shop.path("first")],
    ];
    for (number, sources) in sources.iter().enumerate() {
        let built = shop.build(&format!("db{number}"), sources).unwrap();
        assert_eq!((built.report.addresses, built.report.duplicates), (10, 5));
        let database = Database::open(&shop.path(&format!("db{number}"))).unwrap();
        for (number, pair) in amounts.iter().enumerate() {
            let known = of(number, None);
            let found = database.reader().find(known.kind, known.digest.as_bytes()).unwrap();
            assert_eq!(found.map(|found| found.amount), Some(pair[0].max(pair[1])), "{number}");
        }
    }
}

#[test]
fn the_same_addresses_have_the_same_name_and_each_build_its_own() {
    let shop = Workshop::new();
    let lines: Vec<String> =
        (0..100).map(|number| line(&record(AddressKind::P2WPKH, number, None))).collect();
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

/// Databases of ours are sources, and what is damaged is not taken over.
#[test]
fn our_own_databases_are_sources() {
    let shop = Workshop::new();
    let records: Vec<Record> =
        (0..500).map(|number| record(AddressKind::P2SH, number, Some(number.into()))).collect();
    shop.database("db", &records, 512);
    let more = shop.file("more", line(&record(AddressKind::ETHEREUM, 1, Some(7))));
    let built = shop.build("both", &[shop.path("db"), more.clone()]).unwrap();
    assert_eq!(built.about.kinds, [(AddressKind::P2SH, 500), (AddressKind::ETHEREUM, 1)]);
    let database = Database::open(&shop.path("both")).unwrap();
    let reader = database.reader();
    for known in &records {
        assert_eq!(reader.find(known.kind, known.digest.as_bytes()).unwrap(), Some(*known));
    }
    let whole = fs::read(shop.path("db")).unwrap();
    let with_damage = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        fs::write(shop.path("db"), bytes).unwrap();
        shop.build("x", &[shop.path("db"), more.clone()])
    };
    assert!(matches!(with_damage(6000), Err(Error::Corrupt { .. })));
    // One that no longer begins as a database does is not taken for lines.
    for at in 0..layout::MAGIC.len() {
        assert!(matches!(with_damage(at), Err(Error::NotADatabase { .. })), "byte {at}");
    }
    assert_eq!(shop.names(), ["both", "db", "more"]);
}

fn add(shop: &Workshop, name: &str, sources: &[PathBuf], strict: bool) -> Result<Built, Error> {
    let options = BuildOptions { strict, threads: 2, memory: 1 << 20, ..Default::default() };
    Database::add(&shop.path(name), sources, &options)
}

#[test]
fn what_is_added_to_a_database_is_there_with_what_was() {
    let shop = Workshop::new();
    let one = |number: u64, amount: u64| record(AddressKind::P2PKH, number, Some(amount.into()));
    shop.database("db", &(0..500).map(|number| one(number, 10)).collect::<Vec<_>>(), 512);
    let before = Database::open(&shop.path("db")).unwrap();
    let bytes = fs::read(shop.path("db")).unwrap();
    fs::set_permissions(shop.path("db"), fs::Permissions::from_mode(0o640)).unwrap();
    // New ones of two kinds, some that were there with less, the same, more, and nothing known; and a line that is none.
    let changes = [one(3, 9), one(4, 10), one(5, 11), Record { amount: None, ..one(6, 0) }, one(500, 1)];
    let other = record(AddressKind::ETHEREUM, 1, None);
    let text: String = changes.iter().chain([&other]).map(line).collect();
    let more = shop.file("more", format!("nonsense\n{text}"));
    assert!(matches!(add(&shop, "db", std::slice::from_ref(&more), true), Err(Error::BadLine(_))));
    assert_eq!(fs::read(shop.path("db")).unwrap(), bytes, "what failed has changed nothing");
    // Through a link, which stays one.
    symlink("db", shop.path("link")).unwrap();
    let built = add(&shop, "link", std::slice::from_ref(&more), false).unwrap();
    assert_eq!((built.report.addresses, built.report.duplicates, built.report.bad), (6, 4, 1));
    assert_eq!(built.about.kinds, [(AddressKind::P2PKH, 501), (AddressKind::ETHEREUM, 1)]);
    assert!(fs::symlink_metadata(shop.path("link")).unwrap().is_symlink());
    assert_eq!(shop.names(), ["db", "link", "more"]);
    assert_eq!(fs::metadata(shop.path("db")).unwrap().permissions().mode() & 0o777, 0o640);
    let after = Database::open(&shop.path("db")).unwrap();
    after.verify(|_| ()).unwrap();
    assert_ne!(after.about().identity, before.about().identity);
    let found: Vec<Difference> = before.differences(&after).collect::<Result<_, _>>().unwrap();
    let mut expected = vec![
        Difference::Changed(one(5, 10), one(5, 11)),
        Difference::Added(one(500, 1)),
        Difference::Added(other),
    ];
    let order = |difference: &Difference| match difference {
        Difference::Added(record) | Difference::Removed(record) => Entry::new(record),
        Difference::Changed(_, record) => Entry::new(record),
    };
    expected.sort_by_key(order);
    assert_eq!(found, expected);
    // The old one is as it was to who has it open.
    assert_eq!(before.reader().find(other.kind, other.digest.as_bytes()).unwrap(), None);
    before.verify(|_| ()).unwrap();
    // Again: there is nothing new, so it is the same database with the same filters.
    let same = add(&shop, "db", &[more], false).unwrap();
    assert_eq!((same.about.identity, same.report.duplicates), (after.about().identity, 6));
    assert_eq!(Database::open(&shop.path("db")).unwrap().about(), after.about());
    let empty = shop.file("empty", "# nothing\n");
    assert!(
        matches!(add(&shop, "db", std::slice::from_ref(&empty), false), Err(Error::NoAddress { path, .. }) if path == empty)
    );
    assert!(matches!(add(&shop, "nowhere", &[empty], false), Err(Error::Io { .. })));
    assert_eq!(shop.names(), ["db", "empty", "link", "more"]);
}

/// Filters of what was there before are not taken for those of what is there now.
#[test]
fn filters_are_made_anew_for_a_database_that_was_added_to() {
    let shop = Workshop::new();
    let (old, new) = (record(AddressKind::P2PKH, 1, None), record(AddressKind::P2PKH, 2, None));
    shop.database("db", &[old], 512);
    let filter = |making: &mut u32| {
        let database = Database::open(&shop.path("db")).unwrap();
        let mut made = false;
        let filter =
            crate::Filter::open_or_build(&database, &[], crate::Width::Fuse16, &mut |_| made = true).unwrap();
        *making += u32::from(made);
        filter
    };
    let mut made = 0;
    assert!(filter(&mut made).contains(old.digest.as_bytes()));
    add(&shop, "db", &[shop.file("more", line(&new))], true).unwrap();
    for round in 1..3 {
        let filter = filter(&mut made);
        assert!([old, new].iter().all(|known| filter.contains(known.digest.as_bytes())));
        assert_eq!((made, filter.keys()), (2, 2), "made once for each, round {round}");
    }
}

/// What a process that was killed while adding leaves: the old database, whole, and nothing in the way.
#[test]
fn an_addition_that_was_cut_off_leaves_the_old_database() {
    let shop = Workshop::new();
    let records: Vec<Record> = (0..60_000).map(|number| record(AddressKind::P2PKH, number, None)).collect();
    shop.database("db", &records[..1000], layout::CHUNK);
    let bytes = fs::read(shop.path("db")).unwrap();
    let more = shop.file("more", records[1000..].iter().map(line).collect::<String>());
    for stage in [Stage::Reading, Stage::Writing] {
        let stop = AtomicBool::new(false);
        let progress = |progress: Progress| {
            if progress.stage == stage {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let options =
            BuildOptions { strict: true, threads: 2, memory: 1 << 20, stop: &stop, progress: &progress };
        let stopped = Database::add(&shop.path("db"), std::slice::from_ref(&more), &options);
        assert!(matches!(stopped, Err(Error::Stopped)));
        assert_eq!(fs::read(shop.path("db")).unwrap(), bytes);
        assert_eq!(shop.names(), ["db", "more"]);
    }
    // A half-written file of a process that is gone is cleared away; one that is being written is not.
    fs::write(shop.path("db.part"), "half").unwrap();
    let draft = warpsmith_files::Draft::begin(&shop.path("db"), &shop.path("db.part"), 0o644).unwrap();
    assert!(matches!(add(&shop, "db", std::slice::from_ref(&more), true), Err(Error::InUse { .. })));
    drop(draft);
    fs::write(shop.path("db.part"), "half").unwrap();
    assert_eq!(add(&shop, "db", &[more], true).unwrap().about.records, 60_000);
    assert_eq!(shop.names(), ["db", "more"]);
}

/// Where chunks begin and end, with digests that are spread evenly and with such that are not: those between, below and
/// above all are looked for too.
#[test]
fn every_record_of_every_chunk_is_found() {
    let shop = Workshop::new();
    let near = |number: u64| {
        let mut digest = [0; 20];
        digest[12..].copy_from_slice(&(number * 2 + 1).to_be_bytes());
        Record { kind: AddressKind::ETHEREUM, digest: Digest::new(&digest), amount: None }
    };
    let far = |number: u64| {
        let mut digest = [0xff; 20];
        digest[12..].copy_from_slice(&(number * 2 + 1).to_be_bytes());
        Record { kind: AddressKind::ETHEREUM, digest: Digest::new(&digest), amount: None }
    };
    let spread = |number| record(AddressKind::ETHEREUM, number, None);
    // 12 fit a chunk of 256 bytes.
    for (name, count) in [("one", 1), ("full", 12), ("over", 13), ("many", 500)] {
        let makes: [&dyn Fn(u64) -> Record; 3] = [&near, &far, &spread];
        for (at, make) in makes.iter().enumerate() {
            let records: Vec<Record> = (0..count).map(make).collect();
            let database = shop.database(&format!("{name}{at}"), &records, 256);
            assert_eq!(database.layout.chunks, count.div_ceil(12));
            let reader = database.reader();
            let find = |digest: &[u8]| reader.find(AddressKind::ETHEREUM, digest).unwrap();
            for known in &records {
                assert_eq!(find(known.digest.as_bytes()), Some(*known));
                let mut other: [u8; 20] = known.digest.as_bytes().try_into().unwrap();
                other[19] ^= 1;
                assert_eq!(find(&other), None);
            }
            assert_eq!((find(&[0; 20]), find(&[0xff; 20])), (None, None));
        }
    }
}

#[test]
fn what_is_there_is_never_written_over() {
    let shop = Workshop::new();
    let list = shop.file("list", line(&record(AddressKind::P2PKH, 1, None)));
    shop.build("db", std::slice::from_ref(&list)).unwrap();
    let before = fs::read(shop.path("db")).unwrap();
    for name in ["db", "list"] {
        assert!(matches!(shop.build(name, std::slice::from_ref(&list)), Err(Error::Exists { .. })));
    }
    assert_eq!(fs::read(shop.path("db")).unwrap(), before);
    assert!(matches!(shop.build("x", &[shop.path("nowhere")]), Err(Error::Io { .. })));
    let empty = shop.file("empty", "\n# nothing\n");
    assert!(matches!(shop.build("x", &[empty]), Err(Error::NoAddress { .. })));
    let text = shop.file("notes", "not an address\n".repeat(3));
    assert!(matches!(shop.build("x", &[text]), Err(Error::NoAddress { .. })));
    // What a killed build left is cleared away.
    fs::write(shop.path("x.part"), "half").unwrap();
    fs::write(shop.path("x.runs"), "half").unwrap();
    shop.build("x", &[list]).unwrap();
    assert_eq!(shop.names(), ["db", "empty", "list", "notes", "x"]);
}

/// What somebody puts at the temporary names is removed, never written through.
#[test]
fn links_at_temporary_names_are_not_followed() {
    let shop = Workshop::new();
    let list = shop.file("list", line(&record(AddressKind::P2PKH, 1, None)));
    let victim = shop.file("victim", "precious");
    for name in ["db.part", "db.runs"] {
        symlink(&victim, shop.path(name)).unwrap();
    }
    shop.build("db", std::slice::from_ref(&list)).unwrap();
    for name in ["hard.part", "hard.runs"] {
        fs::hard_link(&victim, shop.path(name)).unwrap();
    }
    shop.build("hard", &[list]).unwrap();
    let database = Database::open(&shop.path("db")).unwrap();
    symlink(&victim, shop.path("db.fuse8.part")).unwrap();
    crate::Filter::open_or_build(&database, &[], crate::Width::Fuse8, &mut |_| ()).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(shop.names(), ["db", "db.fuse8", "hard", "list", "victim"]);
}

#[test]
fn two_cannot_build_one_database() {
    let shop = Workshop::new();
    let list = shop.file("list", line(&record(AddressKind::P2PKH, 1, None)));
    let draft = warpsmith_files::Draft::begin(&shop.path("db"), &shop.path("db.part"), 0o644).unwrap();
    assert!(matches!(shop.build("db", std::slice::from_ref(&list)), Err(Error::InUse { .. })));
    drop(draft);
    shop.build("db", &[list]).unwrap();
}

#[test]
fn a_build_stops_when_told_and_says_how_far_it_is() {
    let shop = Workshop::new();
    let lines: String = (0..60_000).map(|number| line(&record(AddressKind::P2PKH, number, None))).collect();
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

#[test]
fn what_is_no_database_is_told() {
    let shop = Workshop::new();
    let open = |name: &str| Database::open(&shop.path(name)).unwrap_err();
    fs::create_dir(shop.path("folder")).unwrap();
    fs::write(shop.path("folder").join(lmdb::DATA), "").unwrap();
    assert!(open("folder").to_string().contains("warpsmith db build NEW OLD"));
    shop.file("notes", "my notes");
    assert!(matches!(open("notes"), Error::Foreign { .. }));
    shop.file("empty", "");
    assert!(matches!(open("empty"), Error::Foreign { .. }));
    shop.file("short", "warpaddr");
    assert!(matches!(open("short"), Error::Truncated { .. }));
    assert!(matches!(open("nowhere"), Error::Io { .. }));
    assert!(Database::open(Path::new("/dev/zero")).unwrap_err().to_string().contains("no regular file"));
    assert!(Database::is_at(&shop.path("short")) && !Database::is_at(&shop.path("notes")));
    assert!(!Database::is_at(&shop.path("empty")) && !Database::is_at(&shop.path("folder")));
}

#[test]
fn a_hundred_thousand_addresses_take_little_room() {
    let shop = Workshop::new();
    let lines: String = (0..100_000).map(|number| line(&record(AddressKind::P2WPKH, number, None))).collect();
    shop.build("db", &[shop.file("list", lines)]).unwrap();
    let database = Database::open(&shop.path("db")).unwrap();
    let each = database.size() as f64 / 1e5;
    assert!(each < 20.3, "{each} bytes an address");
}
