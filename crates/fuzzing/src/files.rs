//! Files that were made elsewhere or damaged since: lists of addresses, databases, and what private retrieval keeps.
//!
//! Digests in these files are not guessed by a fuzzer. So the bytes are read as damage done to good files: what opens in spite of
//! it must work, and the rest is refused with a reason.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;
use warpsmith_rms24::database::Builder;
use warpsmith_rms24::updates::Live;
use warpsmith_rms24::{Choice, Client, Lanes, Params, Version, hints};
use warpsmith_store::{BuildOptions, Database, TargetList};

use crate::assert_told;

/// A file with damage: cut off if the first bit says so, then bytes changed. Six bytes each: place, the exclusive or, and whether
/// all bytes up to the next are meant.
pub(crate) fn damage(file: &[u8], data: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    let Some((&first, mut data)) = data.split_first() else { return file };
    if first & 1 == 1 {
        let Some((keep, rest)) = data.split_first_chunk() else { return file };
        file.truncate(u32::from_le_bytes(*keep) as usize % (file.len() + 1));
        data = rest;
    }
    if first & 2 == 2 {
        let (more, rest) = data.split_at(data.len().min(usize::from(first >> 2)));
        file.extend_from_slice(more);
        data = rest;
    }
    for change in data.as_chunks::<6>().0 {
        let [place @ .., with, length] = *change;
        let place = u32::from_le_bytes(place) as usize % file.len().max(1);
        file.iter_mut().skip(place).take(1 + usize::from(length)).for_each(|byte| *byte ^= with);
    }
    file
}

/// Bytes as a file of addresses, strict and not: every address in it reads back as itself.
pub fn address_file(data: &[u8]) {
    // A window of 2 GiB is allowed, for what `zstd --long=31` packs; here it would only be slow.
    if data.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return;
    }
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));
    let path = FOLDER.path().join(format!("list-{:?}", std::thread::current().id()));
    fs::write(&path, data).expect("the list is written");
    let strict = TargetList::read(std::slice::from_ref(&path), true).map_err(assert_told).ok();
    if let Ok(list) = TargetList::read(&[path], false).map_err(assert_told) {
        assert!(!list.records.is_empty());
        assert!(strict.is_none_or(|strict| strict == list));
        for record in &list.records {
            let again = warpsmith_store::Record::parse(&record.text()).expect("an address");
            assert_eq!(again.map(|again| (again.kind, again.digest)), Some((record.kind, record.digest)));
        }
    }
}

/// Bytes as a UTXO set of Bitcoin Core: refused, or a database of what it says, whose list makes the same database.
pub fn utxo_set(data: &[u8]) {
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));
    let name = |what: &str| FOLDER.path().join(format!("{what}-{:?}", std::thread::current().id()));
    let (set, database, list, again) = (name("set"), name("database"), name("list"), name("again"));
    // What it begins with is not for a fuzzer to find.
    fs::write(&set, [b"utxo\xff", data].concat()).expect("the set is written");
    let options = BuildOptions { threads: 1, memory: 1 << 20, ..Default::default() };
    if let Ok(built) = Database::build(&database, &[set], &options).map_err(assert_told) {
        let opened = Database::open(&database).expect("it was built");
        let line = |record: warpsmith_store::Record| {
            format!("{}\t{}\n", record.text(), record.amount.expect("coins have amounts"))
        };
        let lines: String = opened.records().map(|record| line(record.expect("a record"))).collect();
        fs::write(&list, lines).expect("the list is written");
        let same = Database::build(&again, &[list], &options).expect("a list of addresses").about;
        assert_eq!((same.addresses, same.amounts), (built.about.addresses, built.about.amounts));
    }
    for path in [database, again] {
        fs::remove_file(path).ok();
    }
}

/// Good files of private retrieval: a database, its updates, and a client's state and journal.
struct Pir {
    folder: TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
}

/// An entry of the database as it was built.
fn first(index: u64) -> Vec<u8> {
    (index * 8..index * 8 + 8).map(|i| (i * 7) as u8).collect()
}

/// What two updates made of an entry.
fn changed(index: u64) -> Option<Vec<u8>> {
    CHANGED.iter().find_map(|&at| match index.checked_sub(at) {
        Some(0) => Some(vec![0x55; 8]),
        Some(1) => Some(vec![at as u8; 8]),
        _ => None,
    })
}

/// Where each of two updates changes two entries.
const CHANGED: [u64; 2] = [3, 17];

static PIR: LazyLock<Pir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, state) = (folder.path().join("data"), folder.path().join("state"));
    let choice = Choice { lambda: 20, block_size: Some(4), backups: Some(12), ..Choice::new(30, 8) };
    let params = Params::new(choice).expect("these are allowed");
    let mut builder = Builder::new(&path, choice, 5, None).expect("a database is begun");
    let entries: Vec<u8> = (0..params.entries()).flat_map(first).collect();
    builder.push(&entries).expect("entries are written");
    builder.finish().expect("the database is finished");
    let live = Live::open(&path, Lanes::detect(), 1000).expect("it opens");
    let (key, made) = hints::offline(&params, Lanes::detect(), 1, |push| push(&entries)).expect("hints");
    let description = live.base().description().clone();
    let version = Version { database: description.identity, epoch: description.epoch };
    let mut client = Client::create(&state, params, version, key, made, Lanes::detect()).expect("a client");
    for index in CHANGED {
        let change = [index, index + 1].map(|at| (at, changed(at).expect("one of them")));
        let update = live.difference(&change).expect("a change");
        live.update(update.clone()).expect("it is kept");
        client.update(&update).expect("it is taken over");
        let asked = client.ask(&[index]).expect("a query");
        let answers = live.answer(&asked.body, 10).expect("an answer");
        client.receive(&asked, &answers).expect("it is read");
    }
    drop(client);
    drop(live);
    let list = fs::read_dir(folder.path()).expect("the folder is there");
    let mut files: Vec<_> = list
        .map(|entry| entry.expect("a file").path())
        .map(|path| (path.clone(), fs::read(path).expect("it can be read")))
        .collect();
    files.sort();
    assert!(files.len() >= 4, "database, updates, state and journal: {files:?}");
    Pir { folder, files }
});

/// Damage to one of the files of private retrieval, which one by the first byte: they are refused, or a client made of them asks
/// what its server can answer.
pub fn pir_files(data: &[u8]) {
    let Some((&which, data)) = data.split_first() else { return };
    for (at, (path, good)) in PIR.files.iter().enumerate() {
        let is_damaged = at == usize::from(which) % PIR.files.len();
        fs::write(path, if is_damaged { damage(good, data) } else { good.clone() }).expect("it is written");
    }
    let (path, state) = (PIR.folder.path().join("data"), PIR.folder.path().join("state"));
    let live = Live::open(&path, Lanes::detect(), 1000).map_err(assert_told);
    if let Ok(live) = &live {
        let is_sound = live.base().verify().map_err(assert_told).is_ok();
        for index in 0..live.params().entries() {
            match live.entry(index) {
                // What a change left or, where the change itself was lost, what was there before.
                Ok(entry) => assert!(
                    entry == first(index) || changed(index) == Some(entry),
                    "entry {index} is another"
                ),
                Err(why) => {
                    assert!(!is_sound, "entry {index} of a file that is sound: {why}");
                    assert_told(why);
                }
            }
        }
    }
    if let Ok(mut client) = Client::open(&state, Lanes::detect()).map_err(assert_told)
        && let Ok(asked) = client.ask(&[1]).map_err(assert_told)
        && let Ok(live) = live
        && let Ok(answers) = live.answer(&asked.body, 10).map_err(assert_told)
    {
        client.receive(&asked, &answers).map_err(assert_told).ok();
    }
}

/// A good address database, as a folder or a file.
struct Store {
    _folder: TempDir,
    database: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
}

static STORE: LazyLock<Store> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let (list, database) = (folder.path().join("list"), folder.path().join("database"));
    let addresses: String =
        (0..300u32).map(|i| format!("0x{:040x}\t{i}\n", u128::from(i) * 0x9e37_79b9_7f4a_7c15)).collect();
    fs::write(&list, addresses).expect("the list is written");
    let (stop, progress) = (AtomicBool::new(false), |_| ());
    let options =
        BuildOptions { strict: true, threads: 1, memory: 1 << 20, stop: &stop, progress: &progress };
    Database::build(&database, &[list], &options).expect("the database is built");
    let read = |path: PathBuf| (path.clone(), fs::read(path).expect("it can be read"));
    let files = if database.is_dir() {
        let list = fs::read_dir(&database).expect("the folder is there");
        let mut files: Vec<_> = list.map(|entry| read(entry.expect("a file").path())).collect();
        files.sort();
        files
    } else {
        vec![read(database.clone())]
    };
    Store { _folder: folder, database, files }
});

/// Damage to an address database: it is refused, or all of it is read and found right or wrong.
pub fn store_files(data: &[u8]) {
    let Some((&which, data)) = data.split_first() else { return };
    for (at, (path, good)) in STORE.files.iter().enumerate() {
        let is_damaged = at == usize::from(which) % STORE.files.len();
        fs::write(path, if is_damaged { damage(good, data) } else { good.clone() }).expect("it is written");
    }
    if let Ok(database) = Database::open(&STORE.database).map_err(assert_told) {
        database.verify(|_| ()).map_err(assert_told).ok();
    }
}
