//! Tables that are full and grow: every key is found before and after, and nobody gets an answer of the other table.

use std::collections::HashMap;
use std::path::Path;

use warpsmith_hash::Lanes;
use warpsmith_rms24::keyword::{Layout, Name, RecordLayout, name};
use warpsmith_rms24::table::{Plan, Take, build};
use warpsmith_rms24::updates::{
    Change, Keep, Live, entries_of_changes, entries_of_changes_moving, fold, standing,
};
use warpsmith_rms24::{Client, Error, Version, hints};

/// Records of 40 bytes: a value of 32 that says what the database is the state of where the key is that of the head, and behind it eight
/// bytes of the key's name.
struct Records;

const HEAD_KEY: &[u8] = b"head";

fn tag(key: &[u8]) -> [u8; 8] {
    *name(key).first_chunk().unwrap()
}

fn record(key: &[u8], value: &[u8; 32]) -> Vec<u8> {
    [&value[..], &tag(key)].concat()
}

impl RecordLayout for Records {
    fn belongs_to(&self, key: &[u8], record: &[u8]) -> bool {
        record.ends_with(&tag(key))
    }

    fn head_keys(&self) -> Vec<Vec<u8>> {
        vec![HEAD_KEY.to_vec()]
    }

    fn head(&self, records: &[Vec<Vec<u8>>]) -> Option<String> {
        let [records] = records else {
            panic!("there is one key, and there are records of {}", records.len())
        };
        let record = records.iter().find(|record| self.belongs_to(HEAD_KEY, record))?;
        Some(format!("state {}", record[0]))
    }
}

fn open(path: &Path) -> Live {
    Live::open(path, Lanes::detect(), 10_000).unwrap().with_records(&Records)
}

fn key(number: u32) -> Vec<u8> {
    [&[7; 20][..], &number.to_be_bytes()].concat()
}

/// A key with the value that it has in a layout.
fn change(layout: Layout, number: u32) -> Change {
    let value = match layout {
        Layout::Records => record(&key(number), &[number as u8 | 1; 32]),
        _ => number.to_be_bytes().to_vec(),
    };
    (key(number), Some(value))
}

fn make(path: &Path, layout: Layout, keys: u32, room: u64) {
    let plan = Plan { room, ..Plan::new(layout, keys.into(), 40) };
    let mut source = |take: &mut Take<'_>| {
        (0..keys).try_for_each(|number| {
            let (key, value) = change(layout, number);
            take(&key, &value.unwrap())
        })
    };
    build(path, &plan, &mut source, &mut |_| Ok(())).unwrap();
}

/// Whether these keys are in the table as they were put in, and the next ones are not.
fn assert_keys(live: &Live, layout: Layout, keys: u32) {
    let shape = live.base().description().keyword.clone().unwrap();
    for number in 0..keys + 50 {
        let (key, value) = change(layout, number);
        let entry = standing(live, &shape, &key).unwrap();
        let found = match layout {
            Layout::Records => entry,
            _ => entry.map(|entry| entry[16..20].to_vec()),
        };
        assert_eq!(found, value.filter(|_| number < keys), "key {number} of {keys}");
    }
}

#[test]
fn a_table_that_is_full_grows_and_keeps_every_key() {
    for layout in [Layout::Tagged, Layout::Records] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        make(&path, layout, 300, 0);
        let (live, mut server, asleep) = (open(&path), open(&path), open(&path));
        server.load(true, &mut |_| Ok(())).unwrap();
        let lineage = live.base().description().lineage();
        let names: HashMap<[u8; 8], Name> =
            (0..2000).map(|number| (tag(&key(number)), name(&key(number)))).collect();
        let name_of = |record: &[u8]| names.get(record.last_chunk()?).copied();
        let nobody = |_: &[u8]| None;
        // A client of the old table, which stays behind.
        let params = live.params();
        let (secret, made) = live.with_entries(|_, newest| {
            hints::offline(&params, Lanes::detect(), 1, |push| newest.stream(push)).unwrap()
        });
        let version = Version { database: lineage, epoch: 0 };
        let mut client =
            Client::create(&folder.path().join("state"), params, version, secret, made, Lanes::detect())
                .unwrap();
        let asked = client.ask(&[1, 2]).unwrap();
        let (mut keys, mut grown, mut lineages) = (300, 0, vec![lineage]);
        while keys < 1300 {
            let changes: Vec<Change> = (keys..keys + 25).map(|number| change(layout, number)).collect();
            let shape = live.base().description().keyword.clone().unwrap();
            match entries_of_changes_moving(&live, &shape, &changes, &name_of) {
                Ok(entries) => {
                    live.update(live.difference(&entries).unwrap()).unwrap();
                    keys += 25;
                }
                Err(Error::Full(number)) => {
                    assert!(number < 25);
                    let (epoch, before) = (live.epoch(), live.base().description().clone());
                    if layout == Layout::Records {
                        // Nobody knows whose the records are: nothing is done.
                        let told = live.grow(100, &nobody, &mut |_| Ok(())).unwrap_err().to_string();
                        assert!(told.contains(".names"), "{told}");
                    }
                    let stopped = live.grow(100, &name_of, &mut |_| Err(Error::Stopped));
                    assert!(matches!(stopped, Err(Error::Stopped)));
                    assert_eq!((live.epoch(), live.base().description()), (epoch, &before));
                    live.grow(u64::from(keys) / 2, &name_of, &mut |_| Ok(())).unwrap();
                    grown += 1;
                    let after = live.base().description().clone();
                    assert_eq!(after.predecessors[0], before.lineage());
                    assert_eq!(after.predecessors[1..], before.predecessors);
                    assert!(
                        after.params.entries() > before.params.entries()
                            && !lineages.contains(&after.lineage())
                    );
                    lineages.push(after.lineage());
                    // Epochs go on, and none is of both tables.
                    assert_eq!((live.epoch(), live.oldest(), after.epoch), (epoch + 1, epoch + 1, epoch + 1));
                    assert_eq!(after.keyword.unwrap().keys, u64::from(keys));
                }
                Err(error) => panic!("{error}"),
            }
            server.refresh().unwrap();
            assert!(server.epoch() == live.epoch() && server.is_in_memory());
            let answered = server.answer(&asked.body, 10);
            match grown {
                0 => drop(answered.unwrap()),
                _ => {
                    let told = answered.unwrap_err().to_string();
                    assert!(
                        told.contains("epoch 0 is not known any more") && told.contains("new hints"),
                        "{told}"
                    );
                }
            }
        }
        assert!(grown >= 2, "{grown}");
        assert_keys(&server, layout, keys);
        // Folded it stays what it is.
        fold(&path, Keep::default(), &mut |_| Ok(())).unwrap();
        server.refresh().unwrap();
        assert_keys(&server, layout, keys);
        let fresh = open(&path);
        assert_eq!(fresh.base().description().lineage(), *lineages.last().unwrap());
        let before: Vec<_> = lineages.iter().rev().skip(1).copied().collect();
        assert_eq!(fresh.base().description().predecessors, before);
        // Who slept through all of it goes over at once.
        assert_eq!(asleep.epoch(), 0);
        asleep.refresh().unwrap();
        assert_keys(&asleep, layout, keys);
        assert_keys(&fresh, layout, keys);
    }
}

/// Killed after the new file took its place, and before the list of updates was begun anew: the old list counts as none.
#[test]
fn a_list_of_the_table_before_counts_as_none() {
    let folder = tempfile::tempdir().unwrap();
    let (path, list) = (folder.path().join("data"), folder.path().join("data.updates"));
    // Without room one more key has no place in one table of some thousand.
    make(&path, Layout::Tagged, 100, 100);
    let live = open(&path);
    let shape = live.base().description().keyword.clone().unwrap();
    let entries = entries_of_changes(&live, &shape, &[change(Layout::Tagged, 100)]).unwrap();
    live.update(live.difference(&entries).unwrap()).unwrap();
    let before = std::fs::read(&list).unwrap();
    live.grow(100, &|_| None, &mut |_| Ok(())).unwrap();
    let anew = std::fs::read(&list).unwrap();
    std::fs::write(&list, &before).unwrap();
    let again = open(&path);
    assert_eq!((again.epoch(), again.oldest()), (2, 2));
    assert_keys(&again, Layout::Tagged, 101);
    assert_eq!(fold(&path, Keep::default(), &mut |_| Ok(())).unwrap().epoch, 2);
    let shape = again.base().description().keyword.clone().unwrap();
    let entries = entries_of_changes(&again, &shape, &[change(Layout::Tagged, 101)]).unwrap();
    again.update(again.difference(&entries).unwrap()).unwrap();
    assert_keys(&open(&path), Layout::Tagged, 102);
    assert_eq!(again.epoch(), 3);
    // A list of yet another database is no list of the one before.
    let other = tempfile::tempdir().unwrap();
    make(&other.path().join("data"), Layout::Tagged, 50, 0);
    let stranger = open(&other.path().join("data"));
    stranger.update(stranger.difference(&[(0, vec![0; 40])]).unwrap()).unwrap();
    std::fs::copy(other.path().join("data.updates"), &list).unwrap();
    assert!(Live::open(&path, Lanes::detect(), 10).err().unwrap().to_string().contains("another database"));
    std::fs::write(&list, anew).unwrap();
    assert_eq!(open(&path).epoch(), 2);
    // Entries without keys have nothing to grow.
    let flat = crate::support::Bench::new(warpsmith_rms24::Choice::new(100, 8));
    assert!(flat.live.grow(10, &|_| None, &mut |_| Ok(())).unwrap_err().to_string().contains("no table"));
}

/// Without the layout of its records a database is neither read by key nor changed: what would be written might be another's.
#[test]
fn records_of_an_unknown_layout_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    make(&path, Layout::Records, 10, 10);
    let live = Live::open(&path, Lanes::detect(), 0).unwrap();
    let shape = live.base().description().keyword.clone().unwrap();
    for told in [
        standing(&live, &shape, &key(0)).unwrap_err(),
        entries_of_changes(&live, &shape, &[change(Layout::Records, 10)]).unwrap_err(),
    ] {
        assert!(told.to_string().contains("without their layout"), "{told}");
    }
    assert_eq!((live.newest(), live.heads()), ((0, None), Vec::new()));
    assert!(standing(&open(&path), &shape, &key(0)).unwrap().is_some());
}

#[test]
fn epochs_have_the_heads_that_their_records_tell() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    make(&path, Layout::Records, 10, 10);
    let live = open(&path);
    let shape = live.base().description().keyword.clone().unwrap();
    for number in [3, 4] {
        let change = (HEAD_KEY.to_vec(), Some(record(HEAD_KEY, &[number; 32])));
        let entries = entries_of_changes(&live, &shape, &[change]).unwrap();
        live.update(live.difference(&entries).unwrap()).unwrap();
    }
    let head = |number: u8| Some(format!("state {number}"));
    assert_eq!((live.newest(), live.offer().2), ((2, head(4)), head(4)));
    assert_eq!(live.heads(), [(2, head(4)), (1, head(3)), (0, None)]);
    live.update(live.back_to(1).unwrap()).unwrap();
    assert_eq!(live.newest(), (3, head(3)));
}
