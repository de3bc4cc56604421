//! Ethereum's state as a table, end to end: its records are read by address and slot, change, and move by their names.

use tempfile::TempDir;
use warpsmith_eth_state::import::{self, Folder, Synthetic};
use warpsmith_eth_state::{
    Account, Address, ChainHead, Names, RECORD, STATE, account_record, find_account, find_slot, heads,
    newest, open_database,
};
use warpsmith_hash::Lanes;
use warpsmith_hash::keccak::keccak256;
use warpsmith_rms24::database::Database;
use warpsmith_rms24::keyword::TableShape;
use warpsmith_rms24::table::{Plan, Take, build};
use warpsmith_rms24::updates::{Change, Live, entries_of_changes, entries_of_changes_moving, standing};
use warpsmith_rms24::{Choice, Client, Key, Params, Version, hints};

/// Small random numbers that a failed test can repeat.
struct Dice(u64);

impl Dice {
    /// Prints its seed.
    fn new() -> Dice {
        let seed = u64::from_le_bytes(*Key::random().unwrap().expose().first_chunk().unwrap());
        println!("seed {seed}");
        Dice(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

/// The entries of all places of a key, in order; how much was sent is the same for all keys.
fn fetch(live: &Live, client: &mut Client, shape: &TableShape, key: &[u8]) -> Vec<Vec<u8>> {
    let asked = client.ask(&shape.places_of(key)).unwrap();
    assert_eq!(asked.len(), usize::from(shape.places));
    assert_eq!(asked.body.len(), 16 + usize::from(shape.places) * client.params().query_bytes());
    let answers = live.answer(&asked.body, 10).unwrap();
    client.receive(&asked, &answers).unwrap().into_iter().map(|result| result.unwrap().entry).collect()
}

fn client(live: &Live, folder: &TempDir, backups: u64) -> Client {
    let description = live.base().description().clone();
    let params = Params::new(Choice { backups: Some(backups), ..description.params.choice() }).unwrap();
    let blocks = live.base().read_all().unwrap();
    let entries = &blocks[..params.entries() as usize * params.entry_size()];
    let (key, hints) = hints::offline(&params, Lanes::detect(), 1, |push| push(entries)).unwrap();
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
    let description = import::build(&source, &data, 0).unwrap();
    let shape = description.keyword.clone().unwrap();
    assert_eq!((shape.keys, shape.layout, description.params.entries()), (2000, STATE, shape.entries));
    assert!(shape.entries < 2400, "{}", shape.entries);
    Database::open(&data).unwrap().verify().unwrap();
    let live = open_database(&data, Lanes::detect(), 1000).unwrap();
    let mut client = client(&live, &folder, 1000);
    let accounts = std::fs::read(source.join("account-mapping.bin")).unwrap();
    let slots = std::fs::read(source.join("storage-mapping.bin")).unwrap();
    let mut dice = Dice::new();
    for _ in 0..80 {
        let index = dice.below(500) as usize;
        let address: [u8; 20] = accounts[24 * index..][..20].try_into().unwrap();
        let account = find_account(&address, &fetch(&live, &mut client, &shape, &address)).unwrap();
        assert_eq!(account_record(&address, &account), records[index * RECORD..][..RECORD]);
        let index = dice.below(1500) as usize;
        let key = &slots[56 * index..][..52];
        let value = find_slot(key, &fetch(&live, &mut client, &shape, key)).unwrap();
        assert!(value.iter().rev().eq(&records[(500 + index) * RECORD..][..32]));
        assert_eq!((key.to_vec(), value), synthetic.slot(index as u32));
        // Keys that are not there look the same from outside.
        let mut absent = address;
        absent[3] ^= 1;
        assert_eq!(find_account(&absent, &fetch(&live, &mut client, &shape, &absent)), None);
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
    assert!(import::build(&source, &data, 0).is_err());
    // A mapping that is cut short, and one that names a record that is not there.
    std::fs::write(source.join("database.bin"), &records).unwrap();
    std::fs::write(source.join("storage-mapping.bin"), &slots[..slots.len() - 1]).unwrap();
    assert!(import::build(&source, &data, 0).is_err());
    let outside = [&slots[..52], &2000u32.to_le_bytes()].concat();
    std::fs::write(source.join("storage-mapping.bin"), outside).unwrap();
    assert!(import::build(&source, &data, 0).is_err());
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
    Folder::open(folder.path()).unwrap().each(take).unwrap();
    let [(first, account), (second, value)] = &met[..] else { panic!("{met:?}") };
    let account = find_account(first[..].try_into().unwrap(), account).unwrap();
    assert_eq!(account, Account { balance: (1 << 64) + 3, nonce: 5, code: 0 });
    let mut expected = [0; 32];
    expected[30..].copy_from_slice(&[1, 2]);
    assert_eq!((second, find_slot(second, value)), (&key, Some(expected)));
}

#[test]
fn delta_files() {
    let mut bytes = [2u64.to_le_bytes(), 5u64.to_le_bytes()].concat();
    for index in [7u64, 9] {
        bytes.extend_from_slice(&index.to_le_bytes());
        bytes.extend_from_slice(&[index as u8; 40]);
    }
    let update = import::read_delta(3, &bytes).unwrap();
    assert_eq!((update.number, &update.indices[..], update.deltas.len()), (3, &[7, 9][..], 80));
    for bad in [&bytes[..bytes.len() - 1], &bytes[..15], &[&bytes[..8], &[6], &bytes[9..]].concat()] {
        assert!(import::read_delta(3, bad).is_err());
    }
}

/// With their names, records of a state move to make room; and an epoch leads back to where it was.
#[test]
fn records_of_a_state_move_by_their_names_and_epochs_lead_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let key = |i: u16| -> Address { std::array::from_fn(|at| (i >> (8 * (at % 2))) as u8 ^ at as u8) };
    let record =
        |i: u16, balance: u128| account_record(&key(i), &Account { balance, nonce: 1, code: 0 }).to_vec();
    let head = |number: u64| ChainHead { chain_id: 1, number, time: 0, hash: [number as u8; 32] };
    let plan = Plan { room: 500, ..import::plan(12, None, 0) };
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
    let live = open_database(&path, Lanes::detect(), 0).unwrap();
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
        assert_eq!(newest(&live), (block, Some(head(block))));
    }
    let all_are_there = |blocks: u64| {
        for i in 0..10 + 25 * last as u16 {
            let block = if i < 10 { 0 } else { 1 + (u64::from(i) - 10) / 25 };
            let expected = (block <= blocks).then(|| record(i, u128::from(block.max(1))));
            assert_eq!(standing(&live, &shape, &key(i)).unwrap(), expected, "account {i}");
        }
    };
    all_are_there(last);
    let expected: Vec<_> = (0..=last).rev().map(|block| (block, Some(head(block)))).collect();
    assert_eq!(heads(&live), expected);
    live.update(live.back_to(7).unwrap()).unwrap();
    assert_eq!(newest(&live), (last + 1, Some(head(7))));
    all_are_there(7);
    assert!(live.back_to(99).is_err());
    // Back again: what an epoch took back is kept in it.
    live.update(live.back_to(last).unwrap()).unwrap();
    all_are_there(last);
    assert_eq!(heads(&live)[..2], [(last + 2, Some(head(last))), (last + 1, Some(head(7)))]);
}
