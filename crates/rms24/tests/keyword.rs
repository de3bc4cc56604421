//! Lookups by key, end to end: a table, and a client that asks for every place every time.

use warpsmith_hash::Lanes;
use warpsmith_rms24::database::{Builder, Database};
use warpsmith_rms24::keyword::{TableShape, tagged_value};
use warpsmith_rms24::table::{Plan, Take, build};
use warpsmith_rms24::updates::{Live, entries_of_changes};
use warpsmith_rms24::{Choice, Client, Params, Version};

use crate::support::Dice;

/// The entries of all places of a key, in order; how much was sent is the same for all keys.
fn fetch(live: &Live, client: &mut Client, shape: &TableShape, key: &[u8]) -> Vec<Vec<u8>> {
    let asked = client.ask(&shape.places_of(key)).unwrap();
    assert_eq!(asked.len(), usize::from(shape.places));
    assert_eq!(asked.body.len(), 16 + usize::from(shape.places) * client.params().query_bytes());
    let answers = live.answer(&asked.body, 10).unwrap();
    client.receive(&asked, &answers).unwrap().into_iter().map(|result| result.unwrap().entry).collect()
}

fn client(live: &Live, folder: &tempfile::TempDir, backups: u64) -> Client {
    let description = live.base().description().clone();
    let params = Params::new(Choice { backups: Some(backups), ..description.params.choice() }).unwrap();
    let (key, hints) = crate::support::offline(&live.base(), &params);
    let version = Version { database: description.identity, epoch: description.epoch };
    Client::create(&folder.path().join("state"), params, version, key, hints, Lanes::detect()).unwrap()
}

#[test]
fn pairs_of_keys_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let keys: Vec<String> = (0..300).map(|i| format!("key number {i}")).collect();
    let plan = Plan { places: 2, ..Plan::tagged(300, 8) };
    let mut source = |take: &mut Take<'_>| {
        keys.iter().zip(0u64..).try_for_each(|(key, i)| take(key.as_bytes(), &i.to_be_bytes()))
    };
    let shape = build(&path, &plan, &mut source, &mut |_| Ok(())).unwrap().keyword.unwrap();
    let live = Live::open(&path, Lanes::detect(), 0).unwrap();
    let mut client = client(&live, &folder, 400);
    for i in (0..300).step_by(7) {
        let entries = fetch(&live, &mut client, &shape, keys[i].as_bytes());
        assert_eq!(tagged_value(keys[i].as_bytes(), &entries).unwrap(), (i as u64).to_be_bytes());
    }
    let entries = fetch(&live, &mut client, &shape, b"key number 300");
    assert_eq!(tagged_value(b"key number 300", &entries), None);
}

/// New, changed and deleted keys, so many that entries must move; lookups of a client that follows stay right.
#[test]
fn keys_come_change_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let plan = Plan::tagged(400, 8);
    let mut source =
        |take: &mut Take<'_>| (0..400u32).try_for_each(|i| take(&i.to_le_bytes(), &i.to_be_bytes()));
    let shape = build(&path, &plan, &mut source, &mut |_| Ok(())).unwrap().keyword.unwrap();
    let live = Live::open(&path, Lanes::detect(), 10_000).unwrap();
    let mut client = client(&live, &folder, 2000);
    let mut expected: std::collections::BTreeMap<u32, Vec<u8>> =
        (0..400u32).map(|i| (i, i.to_be_bytes().to_vec())).collect();
    let mut dice = Dice::new();
    for round in 0..12u32 {
        let mut changes = Vec::new();
        // Out with some, others change, and as many new ones come as go, or a few more.
        for _ in 0..6 {
            let gone = *expected.keys().nth(dice.below(expected.len() as u64) as usize).unwrap();
            expected.remove(&gone);
            changes.push((gone.to_le_bytes().to_vec(), None));
        }
        for i in 0..7 {
            let key = if i < 2 { *expected.keys().nth(i * 9).unwrap() } else { 1000 + round * 10 + i as u32 };
            let value = vec![round as u8; 1 + i];
            expected.insert(key, value.clone());
            changes.push((key.to_le_bytes().to_vec(), Some(value)));
        }
        let entries = entries_of_changes(&live, &shape, &changes).unwrap();
        let update = live.difference(&entries).unwrap();
        live.update(update.clone()).unwrap();
        client.update(&update).unwrap();
        for key in expected.keys().copied().filter(|key| *key >= 1000).chain([0, 7, 150, 399]) {
            let entries = fetch(&live, &mut client, &shape, &key.to_le_bytes());
            assert_eq!(tagged_value(&key.to_le_bytes(), &entries), expected.get(&key).cloned(), "key {key}");
        }
    }
    for key in 0..2000u32 {
        let places = shape.places_of(&key.to_le_bytes());
        let entries: Vec<Vec<u8>> = places.into_iter().map(|place| live.entry(place).unwrap()).collect();
        assert_eq!(tagged_value(&key.to_le_bytes(), &entries), expected.get(&key).cloned(), "key {key}");
    }
    let refused = |key: &[u8], value: Option<Vec<u8>>| {
        entries_of_changes(&live, &shape, &[(key.to_vec(), value)]).unwrap_err().to_string()
    };
    assert!(refused(b"nobody", None).contains("change 0: there is no such key"));
    assert!(refused(b"new", Some(vec![1; 9])).contains("does not fit"));
    // More than the table holds: refused as a whole.
    let many: Vec<_> = (5000..5400u32).map(|key| (key.to_le_bytes().to_vec(), Some(vec![1]))).collect();
    assert!(entries_of_changes(&live, &shape, &many).unwrap_err().to_string().contains("no place"));
}

/// Two processes with one database: each sees what the other appended, and none writes over the other.
#[test]
fn updates_of_another_process_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let mut builder = Builder::new(&path, Choice::new(100, 8), 0, None).unwrap();
    builder.push(&[0; 800]).unwrap();
    builder.finish().unwrap();
    let open = || Live::open(&path, Lanes::detect(), 100).unwrap();
    let (one, two) = (open(), open());
    assert!(!folder.path().join("data.updates").exists(), "reading makes no file");
    one.update(one.difference(&[(3, vec![1; 8])]).unwrap()).unwrap();
    assert_eq!((two.epoch(), two.refresh().unwrap(), two.epoch()), (0, 1, 1));
    assert_eq!((two.entry(3).unwrap(), two.refresh().unwrap()), (vec![1; 8], 0));
    two.update(two.difference(&[(3, vec![2; 8])]).unwrap()).unwrap();
    // The first one does not know yet: its next update is made for an old epoch, and refused.
    let late = one.difference(&[(4, vec![9; 8])]).unwrap();
    assert!(one.update(late).is_err());
    assert_eq!((one.epoch(), one.entry(3).unwrap()), (2, vec![2; 8]));
    // A writer was killed: half an update does not count, is not in the way, and is cut off.
    let log = folder.path().join("data.updates");
    let whole = std::fs::read(&log).unwrap();
    std::fs::write(&log, [&whole[..], &[3, 0, 0, 0, 0, 0, 0, 0, 1]].concat()).unwrap();
    assert_eq!(two.refresh().unwrap(), 0);
    one.update(one.difference(&[(4, vec![9; 8])]).unwrap()).unwrap();
    assert_eq!((two.refresh().unwrap(), two.entry(4).unwrap(), open().epoch()), (1, vec![9; 8], 3));
    // What was given out cannot be taken back.
    std::fs::write(&log, &whole).unwrap();
    assert!(two.refresh().unwrap_err().to_string().contains("shorter"));
    assert_eq!(two.epoch(), 3);
}

#[test]
fn damaged_databases_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let mut builder = Builder::new(&path, Choice::new(1000, 40), 3, None).unwrap();
    builder.push(&[5; 40_000]).unwrap();
    assert!(builder.push(&[5]).is_err());
    let description = builder.finish().unwrap();
    assert_eq!(Database::open(&path).unwrap().description(), &description);
    let good = std::fs::read(&path).unwrap();
    let entries = 4096..4096 + description.data_bytes() as usize;
    // Head, entries, digests.
    for at in [0, 12, 17, 50, 4090, entries.start, entries.end - 1, entries.end, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(&path, &bad).unwrap();
        let opened = Database::open(&path);
        match entries.contains(&at) {
            true => assert!(opened.unwrap().verify().is_err(), "byte {at}"),
            false => assert!(opened.is_err(), "byte {at}"),
        }
    }
    std::fs::write(&path, &good[..good.len() - 1]).unwrap();
    assert!(Database::open(&path).is_err());
    std::fs::write(&path, &good).unwrap();
    // Updates: what was confirmed and is not whole is told.
    let live = Live::open(&path, Lanes::detect(), 100).unwrap();
    for epoch in 0..3u8 {
        live.update(live.difference(&[(u64::from(epoch), vec![epoch; 40])]).unwrap()).unwrap();
    }
    assert!(
        live.update(live.difference(&[]).map(|u| warpsmith_rms24::wire::Update { number: 9, ..u }).unwrap())
            .is_err()
    );
    drop(live);
    let log = folder.path().join("data.updates");
    let updates = std::fs::read(&log).unwrap();
    std::fs::write(&log, &updates[..updates.len() - 1]).unwrap();
    assert!(
        Live::open(&path, Lanes::detect(), 100).is_err_and(|error| error.to_string().contains("cut short"))
    );
    let mut damaged = updates.clone();
    damaged[70] ^= 1;
    std::fs::write(&log, &damaged).unwrap();
    assert!(Live::open(&path, Lanes::detect(), 100).is_err());
    std::fs::write(&log, &updates).unwrap();
    assert_eq!(Live::open(&path, Lanes::detect(), 100).unwrap().epoch(), 6);
}
