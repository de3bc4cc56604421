//! Lookups by key, end to end: a synthetic state, its table, and a client that asks for every place every time.

use warpsmith_hash::Lanes;
use warpsmith_hash::keccak::keccak256;
use warpsmith_pir::database::{Builder, Database};
use warpsmith_pir::ethereum::{self, Account, RECORD, Synthetic};
use warpsmith_pir::keyword::{
    Change, Layout, Plan, TableShape, Take, build, entries_of_changes, tagged_value,
};
use warpsmith_pir::updates::Live;
use warpsmith_pir::{Choice, Client, Params, Version};

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
fn a_synthetic_state_is_read_by_address_and_slot() {
    let folder = tempfile::tempdir().unwrap();
    let (source, data) = (folder.path().join("source"), folder.path().join("data"));
    let synthetic = Synthetic { accounts: 500, slots: 1500, seed: 7 };
    synthetic.write(&source).unwrap();
    let records = std::fs::read(source.join("database.bin")).unwrap();
    assert_eq!(records.len(), 2000 * RECORD);
    let description = ethereum::build(&source, &data, 0).unwrap();
    let shape = description.keyword.clone().unwrap();
    assert_eq!(
        (shape.keys, shape.layout, description.params.entries()),
        (2000, Layout::State, shape.entries)
    );
    assert!(shape.entries < 2400, "{}", shape.entries);
    Database::open(&data).unwrap().verify().unwrap();
    let live = Live::open(&data, Lanes::detect(), 1000).unwrap();
    let mut client = client(&live, &folder, 1000);
    let accounts = std::fs::read(source.join("account-mapping.bin")).unwrap();
    let slots = std::fs::read(source.join("storage-mapping.bin")).unwrap();
    let mut dice = Dice::new();
    for _ in 0..80 {
        let index = dice.below(500) as usize;
        let address: [u8; 20] = accounts[24 * index..][..20].try_into().unwrap();
        let account = ethereum::find_account(&address, &fetch(&live, &mut client, &shape, &address)).unwrap();
        assert_eq!(ethereum::account_record(&address, &account), records[index * RECORD..][..RECORD]);
        let index = dice.below(1500) as usize;
        let key = &slots[56 * index..][..52];
        let value = ethereum::find_slot(key, &fetch(&live, &mut client, &shape, key)).unwrap();
        assert!(value.iter().rev().eq(&records[(500 + index) * RECORD..][..32]));
        assert_eq!((key.to_vec(), value), synthetic.slot(index as u32));
        // Keys that are not there look the same from outside.
        let mut absent = address;
        absent[3] ^= 1;
        assert_eq!(ethereum::find_account(&absent, &fetch(&live, &mut client, &shape, &absent)), None);
    }
    // The same seed, the same state; another, another.
    let again = folder.path().join("again");
    synthetic.write(&again).unwrap();
    assert_eq!(std::fs::read(again.join("database.bin")).unwrap(), records);
    Synthetic { seed: 8, ..synthetic }.write(&again).unwrap();
    assert_ne!(std::fs::read(again.join("database.bin")).unwrap(), records);
    // A record that belongs to another key.
    let mut mixed = records.clone();
    mixed.copy_within(0..RECORD, RECORD);
    std::fs::write(source.join("database.bin"), mixed).unwrap();
    assert!(ethereum::build(&source, &data, 0).is_err());
    // A mapping that is cut short, and one that names a record that is not there.
    std::fs::write(source.join("database.bin"), &records).unwrap();
    std::fs::write(source.join("storage-mapping.bin"), &slots[..slots.len() - 1]).unwrap();
    assert!(ethereum::build(&source, &data, 0).is_err());
    let outside = [&slots[..52], &2000u32.to_le_bytes()].concat();
    std::fs::write(source.join("storage-mapping.bin"), outside).unwrap();
    assert!(ethereum::build(&source, &data, 0).is_err());
    // The database from before is as it was.
    Database::open(&data).unwrap().verify().unwrap();
}

/// Bytes by hand: an account with 2^64 + 3 wei and nonce 5, and its slot 7 with the value 0x0102.
#[test]
fn numbers_of_a_folder_are_little_endian() {
    let folder = tempfile::tempdir().unwrap();
    let (address, mut slot) = ([0x11; 20], [0; 32]);
    slot[31] = 7;
    let key = [&address[..], &slot].concat();
    let tag = |key: &[u8]| keccak256(key)[..8].to_vec();
    let account =
        [&[3, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0; 7], &[5, 0, 0, 0], &[0; 4], &tag(&address), &[0; 8]];
    let value = [&[2, 1][..], &[0; 30], &tag(&key)];
    for (name, bytes) in [
        ("database.bin", [account.concat(), value.concat()].concat()),
        ("account-mapping.bin", [&address[..], &[0, 0, 0, 0]].concat()),
        ("storage-mapping.bin", [&key[..], &[1, 0, 0, 0]].concat()),
    ] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let mut met = Vec::new();
    let take = &mut |key: &[u8], record: &[u8]| {
        met.push((key.to_vec(), vec![record.to_vec()]));
        Ok(())
    };
    ethereum::Folder::open(folder.path()).unwrap().each(take).unwrap();
    let [(first, account), (second, value)] = &met[..] else { panic!("{met:?}") };
    let account = ethereum::find_account(first[..].try_into().unwrap(), account).unwrap();
    assert_eq!(account, ethereum::Account { balance: (1 << 64) + 3, nonce: 5, code: 0 });
    let mut expected = [0; 32];
    expected[30..].copy_from_slice(&[1, 2]);
    assert_eq!((second, ethereum::find_slot(second, value)), (&key, Some(expected)));
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
fn delta_files() {
    let mut bytes = [2u64.to_le_bytes(), 5u64.to_le_bytes()].concat();
    for index in [7u64, 9] {
        bytes.extend_from_slice(&index.to_le_bytes());
        bytes.extend_from_slice(&[index as u8; 40]);
    }
    let update = ethereum::read_delta(3, &bytes).unwrap();
    assert_eq!((update.number, &update.indices[..], update.deltas.len()), (3, &[7, 9][..], 80));
    for bad in [&bytes[..bytes.len() - 1], &bytes[..15], &[&bytes[..8], &[6], &bytes[9..]].concat()] {
        assert!(ethereum::read_delta(3, bad).is_err());
    }
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
        live.update(live.difference(&[]).map(|u| warpsmith_pir::wire::Update { number: 9, ..u }).unwrap())
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

/// With their names, records of a state move to make room; and an epoch leads back to where it was.
#[test]
fn records_of_a_state_move_by_their_names_and_epochs_lead_back() {
    use warpsmith_pir::ethereum::ChainHead;
    use warpsmith_pir::keyword::{Names, entries_of_changes_moving, standing};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let key =
        |i: u16| -> ethereum::Address { std::array::from_fn(|at| (i >> (8 * (at % 2))) as u8 ^ at as u8) };
    let record = |i: u16, balance: u128| {
        ethereum::account_record(&key(i), &Account { balance, nonce: 1, code: 0 }).to_vec()
    };
    let head = |number: u64| ChainHead { chain_id: 1, number, time: 0, hash: [number as u8; 32] };
    let plan = Plan { room: 500, ..ethereum::plan(12, None, 0) };
    let mut source = |take: &mut Take<'_>| {
        head(0).records().iter().try_for_each(|(key, record)| take(key, record))?;
        (0..10).try_for_each(|i| take(&key(i), &record(i, 1)))
    };
    let built = build(&path, &plan, &mut source, &mut |_| Ok(())).unwrap();
    let shape = built.keyword.clone().unwrap();
    assert_eq!((shape.keys, shape.entries > 512), (12, true));
    let mut names = Names::create(&path, &built.identity).unwrap();
    let first: Vec<Vec<u8>> = ChainHead::keys().into_iter().chain((0..10).map(|i| key(i).to_vec())).collect();
    names.add(first.iter().map(Vec::as_slice)).unwrap();
    let live = Live::open(&path, Lanes::detect(), 0).unwrap();
    // 25 new accounts a block, up to five of six places of the table.
    let last = 19;
    for block in 1..=last {
        let (from, to) = (10 + 25 * (block as u16 - 1), 10 + 25 * block as u16);
        let mut changes: Vec<Change> =
            (from..to).map(|i| (key(i).to_vec(), Some(record(i, u128::from(block))))).collect();
        changes.extend(head(block).records().map(|(key, record)| (key, Some(record.to_vec()))));
        if block == last {
            // Without them there is no way: of so many, one has all its places taken.
            assert!(entries_of_changes(&live, &shape, &changes).is_err());
        }
        names.add(changes.iter().map(|(key, _)| &key[..])).unwrap();
        let values = entries_of_changes_moving(&live, &shape, &changes, &|record| names.of(record)).unwrap();
        live.update(live.difference(&values).unwrap()).unwrap();
        assert_eq!(live.newest(), (block, Some(head(block))));
    }
    let all_are_there = |blocks: u64| {
        for i in 0..10 + 25 * last as u16 {
            let block = if i < 10 { 0 } else { 1 + (u64::from(i) - 10) / 25 };
            let expected = (block <= blocks).then(|| record(i, u128::from(block.max(1))));
            assert_eq!(standing(&live, &shape, &key(i)).unwrap(), expected, "account {i}");
        }
    };
    all_are_there(last);
    let heads: Vec<_> = (0..=last).rev().map(|block| (block, Some(head(block)))).collect();
    assert_eq!(live.heads(), heads);
    live.update(live.back_to(7).unwrap()).unwrap();
    assert_eq!(live.newest(), (last + 1, Some(head(7))));
    all_are_there(7);
    assert!(live.back_to(99).is_err());
    // Back again: what an epoch took back is kept in it.
    live.update(live.back_to(last).unwrap()).unwrap();
    all_are_there(last);
    assert_eq!(live.heads()[..2], [(last + 2, Some(head(last))), (last + 1, Some(head(7)))]);
}
