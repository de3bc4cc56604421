//! Databases that are folded while they are served, appended to, and killed.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use warpsmith_hash::Lanes;
use warpsmith_rms24::database::Database;
use warpsmith_rms24::updates::{Folded, Keep, Live, fold};
use warpsmith_rms24::wire::read_updates;
use warpsmith_rms24::{Choice, Client, Error, Result, Version};

use crate::support::{Bench, Dice, put};

/// The entries of every epoch, kept by somebody who adds up nothing.
type Model = Mutex<HashMap<u64, Arc<Vec<Vec<u8>>>>>;

const NOTHING: Keep = Keep { epochs: 0, changes: Some(0) };

fn quietly(path: &Path, keep: Keep) -> Result<Folded> {
    fold(path, keep, &mut |_| Ok(()))
}

fn entries_of(live: &Live) -> Vec<Vec<u8>> {
    (0..live.params().entries()).map(|index| live.entry(index).unwrap()).collect()
}

/// Appends an epoch of some changes, of which the first and the last entry are often part.
fn append(live: &Live, model: &Model, dice: &mut Dice) {
    let (entries, size) = (live.params().entries(), live.params().entry_size());
    let mut news = entries_of_epoch(model, live.epoch()).as_ref().clone();
    let mut values = Vec::new();
    for _ in 0..1 + dice.below(20) {
        let index = [0, entries - 1, dice.below(entries), dice.below(entries)][dice.below(4) as usize];
        let value: Vec<u8> = (0..size).map(|_| dice.below(256) as u8).collect();
        news[index as usize].clone_from(&value);
        values.push((index, value));
    }
    // The last of several values of one entry counts.
    let update = live.difference(&values).unwrap();
    model.lock().unwrap().insert(update.number, Arc::new(news));
    live.update(update).unwrap();
}

fn entries_of_epoch(model: &Model, epoch: u64) -> Arc<Vec<Vec<u8>>> {
    model.lock().unwrap()[&epoch].clone()
}

/// Asks for some entries, which must be those of the client's epoch.
fn ask(live: &Live, client: &mut Client, model: &Model, dice: &mut Dice) -> Result<()> {
    let indices: Vec<u64> = (0..3).map(|_| dice.below(live.params().entries())).collect();
    let asked = client.ask(&indices).unwrap();
    let answers = match live.answer(&asked.body, 10) {
        Ok(answers) => answers,
        Err(error) => {
            client.abandon().unwrap();
            return Err(error);
        }
    };
    let expected = entries_of_epoch(model, client.version().epoch);
    for (index, fetched) in indices.iter().zip(client.receive(&asked, &answers).unwrap()) {
        match fetched {
            Ok(fetched) => assert_eq!(fetched.entry, expected[*index as usize], "entry {index}"),
            // Of a query that was given up.
            Err(error) => assert!(matches!(error, Error::Poisoned), "{error}"),
        }
    }
    Ok(())
}

fn catch_up(live: &Live, client: &mut Client) -> Result<()> {
    let body = live.updates_after(client.version().epoch, 1 << 20)?;
    for update in read_updates(&live.params(), &body)? {
        client.update(&update)?;
    }
    Ok(())
}

fn client_of(live: &Live, bench: &Bench, name: &str) -> Client {
    let entries = entries_of(live).concat();
    let lanes = Lanes::detect();
    let (key, hints) =
        warpsmith_rms24::hints::offline(&bench.params, lanes, 1, |push| push(&entries)).unwrap();
    let version = Version { database: live.base().description().lineage(), epoch: live.epoch() };
    Client::create(&bench.folder.path().join(name), bench.params, version, key, hints, lanes).unwrap()
}

fn bench() -> (Bench, Model) {
    let bench = Bench::new(Choice { lambda: 40, backups: Some(4000), ..Choice::new(501, 24) });
    let model = Model::new(HashMap::from([(5, Arc::new(entries_of(&bench.live)))]));
    (bench, model)
}

#[test]
fn epochs_and_clients_go_on_across_folds() {
    let (bench, model) = bench();
    let mut dice = Dice::new();
    let path = bench.folder.path().join("data");
    let origin = bench.live.base().description().identity;
    // One that answers from memory, one from the file; both were opened before any fold.
    let mut in_memory = Live::open(&path, Lanes::detect(), 100_000).unwrap();
    in_memory.load(true, &mut |_| Ok(())).unwrap();
    let in_file = Live::open(&path, Lanes::detect(), 100_000).unwrap();
    let (mut old, mut new) = (client_of(&bench.live, &bench, "old"), client_of(&bench.live, &bench, "new"));
    // With nothing to fold nothing changes.
    let nothing = Folded { epoch: 5, before: 5, changes: 0, oldest: 5 };
    assert_eq!(quietly(&path, NOTHING).unwrap(), nothing);
    for round in 0..6u64 {
        for _ in 0..10 {
            append(&bench.live, &model, &mut dice);
        }
        let before = bench.live.base().description().epoch;
        let folded = quietly(&path, Keep { epochs: 14, changes: Some(0) }).unwrap();
        let epoch = 15 + 10 * round;
        assert_eq!((folded.epoch, folded.before), (epoch, before));
        assert_eq!(folded.oldest, epoch - if round == 0 { 10 } else { 14 });
        let file = Database::open(&path).unwrap();
        assert_eq!((file.description().lineage(), file.description().epoch), (origin, epoch));
        assert_ne!(file.description().identity, origin);
        file.verify().unwrap();
        let fresh = Live::open(&path, Lanes::detect(), 100_000).unwrap();
        for live in [&bench.live, &in_memory, &in_file, &fresh] {
            live.refresh().unwrap();
            assert_eq!((live.epoch(), live.oldest(), live.changes()), (epoch, folded.oldest, 0));
            assert_eq!(live.base().description().epoch, epoch);
            assert_eq!(entries_of(live), *entries_of_epoch(&model, epoch), "round {round}");
            // At the epoch before, and at the newest.
            if new.version().epoch >= folded.oldest {
                ask(live, &mut new, &model, &mut dice).unwrap();
            }
        }
        // Back to any epoch that is kept, also before the file.
        let back = fresh.back_to(folded.oldest).unwrap();
        let mut entries = entries_of(&fresh);
        for (index, delta) in back.changes(24) {
            entries[index as usize].iter_mut().zip(delta).for_each(|(byte, delta)| *byte ^= delta);
        }
        assert_eq!(entries, *entries_of_epoch(&model, folded.oldest));
        catch_up(&in_file, &mut new).unwrap();
        assert_eq!(new.version().epoch, epoch);
        ask(&in_memory, &mut new, &model, &mut dice).unwrap();
        // The one that stays behind is served for as long as its epoch is kept, and then told so.
        let told = ask(&in_file, &mut old, &model, &mut dice).err().map(|error| error.to_string());
        assert_eq!(told.is_some(), round > 0);
        if let Some(told) = told {
            let range = format!("there are {} to {epoch}", folded.oldest);
            assert!(told.contains("epoch 5 is not known any more") && told.contains(&range), "{told}");
            assert!(told.contains("new hints"), "{told}");
            assert!(matches!(in_memory.updates_after(5, 1000), Err(Error::Mismatch(_))));
        }
    }
    // New hints are of the same lineage.
    let mut late = client_of(&in_file, &bench, "late");
    append(&bench.live, &model, &mut dice);
    assert_eq!((in_file.refresh().unwrap(), in_file.changes() > 0), (1, true));
    catch_up(&in_file, &mut late).unwrap();
    ask(&in_file, &mut late, &model, &mut dice).unwrap();
    assert_eq!(late.version().database, new.version().database);
    // Nothing but the files of a database and of its clients.
    let names = std::fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.count(), 2 + 2 * 3);
}

/// One appends, one folds, two serve, and clients ask all the while.
#[test]
fn every_answer_is_right_while_a_database_is_folded() {
    let (bench, model) = bench();
    let path = bench.folder.path().join("data");
    let mut in_memory = Live::open(&path, Lanes::detect(), 100_000).unwrap();
    in_memory.load(true, &mut |_| Ok(())).unwrap();
    let in_file = Live::open(&path, Lanes::detect(), 100_000).unwrap();
    let clients = [client_of(&bench.live, &bench, "one"), client_of(&bench.live, &bench, "two")];
    let (done, folds) = (AtomicBool::new(false), Mutex::new(0));
    std::thread::scope(|scope| {
        for (live, mut client) in [&in_memory, &in_file].into_iter().zip(clients) {
            let (done, model) = (&done, &model);
            scope.spawn(move || {
                let (mut dice, mut asked) = (Dice::new(), 0);
                while !done.load(Ordering::Relaxed) || asked < 100 {
                    if client.remaining() < 3 {
                        break;
                    }
                    ask(live, &mut client, model, &mut dice).unwrap();
                    asked += 1;
                    if dice.below(3) == 0 {
                        live.refresh().unwrap();
                        catch_up(live, &mut client).unwrap();
                    }
                }
                live.refresh().unwrap();
                catch_up(live, &mut client).unwrap();
                ask(live, &mut client, model, &mut dice).unwrap();
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // Nobody is so far behind as that.
                quietly(&path, Keep { epochs: 400, changes: Some(0) }).unwrap();
                *folds.lock().unwrap() += 1;
            }
        });
        let mut dice = Dice::new();
        for _ in 0..60 {
            append(&bench.live, &model, &mut dice);
            bench.live.refresh().unwrap();
        }
        while *folds.lock().unwrap() < 5 {
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    for live in [&in_memory, &in_file] {
        live.refresh().unwrap();
        assert_eq!((live.epoch(), entries_of(live)), (65, entries_of_epoch(&model, 65).as_ref().clone()));
    }
}

/// A server that slept through so many folds that the updates in between are gone goes on from the file.
#[test]
fn who_fell_behind_goes_on_from_the_file() {
    let (bench, model) = bench();
    let mut dice = Dice::new();
    let path = bench.folder.path().join("data");
    let mut asleep = [
        Live::open(&path, Lanes::detect(), 1000).unwrap(),
        Live::open(&path, Lanes::detect(), 1000).unwrap(),
    ];
    asleep[0].load(true, &mut |_| Ok(())).unwrap();
    for _ in 0..3 {
        append(&bench.live, &model, &mut dice);
        append(&bench.live, &model, &mut dice);
        quietly(&path, NOTHING).unwrap();
        bench.live.refresh().unwrap();
    }
    append(&bench.live, &model, &mut dice);
    for live in &asleep {
        assert_eq!(live.epoch(), 5);
        // It may not append on what it has not seen.
        let stale = live.difference(&[(1, vec![1; 24])]).unwrap();
        assert!(matches!(live.update(stale), Err(Error::Mismatch(_))));
        live.refresh().unwrap();
        assert_eq!((live.epoch(), live.oldest()), (12, 11));
        assert_eq!(entries_of(live), *entries_of_epoch(&model, 12));
        assert_eq!(live.refresh().unwrap(), 0);
    }
    assert!(asleep[0].is_in_memory() && !asleep[1].is_in_memory());
    append(&asleep[0], &model, &mut dice);
    assert_eq!(asleep[1].refresh().unwrap(), 1);
    assert_eq!(entries_of(&asleep[1]), *entries_of_epoch(&model, 13));
}

/// What is no fold of the file is not taken, and what is damaged is not either: the old file is served on.
#[test]
fn nothing_else_takes_the_place_of_a_file() {
    let (bench, model) = bench();
    let mut dice = Dice::new();
    let path = bench.folder.path().join("data");
    append(&bench.live, &model, &mut dice);
    let old = std::fs::read(&path).unwrap();
    quietly(&path, Keep::default()).unwrap();
    let new = std::fs::read(&path).unwrap();
    let (place, live) = (bench.folder.path().join("elsewhere"), &bench.live);
    let put_there = |bytes: &[u8]| {
        put(&place, bytes).unwrap();
        std::fs::rename(&place, &path).unwrap();
    };
    let mut damaged = new.clone();
    damaged[5000] ^= 1;
    put_there(&damaged);
    for _ in 0..2 {
        let told = live.refresh().unwrap_err().to_string();
        assert!(told.contains("cannot be taken") && told.contains("segment 0"), "{told}");
        assert_eq!(entries_of(live), *entries_of_epoch(&model, 6));
    }
    // Of another shape, and so of another lineage.
    let stranger = Bench::new(Choice { lambda: 40, ..Choice::new(502, 24) });
    put_there(&std::fs::read(stranger.folder.path().join("data")).unwrap());
    assert!(live.refresh().unwrap_err().to_string().contains("another database"));
    put_there(&new);
    live.refresh().unwrap();
    assert_eq!(live.base().description().epoch, 6);
    // An old copy of the file beside a list that begins later.
    let list = bench.folder.path().join("data.updates");
    let before = std::fs::read(&list).unwrap();
    append(live, &model, &mut dice);
    quietly(&path, NOTHING).unwrap();
    let newest = std::fs::read(&path).unwrap();
    put_there(&old);
    let told = Live::open(&path, Lanes::detect(), 1000).err().unwrap().to_string();
    assert!(told.contains("older copy"), "{told}");
    // And a list of before beside a newer file.
    put_there(&newest);
    std::fs::write(&list, &before).unwrap();
    let told = Live::open(&path, Lanes::detect(), 1000).err().unwrap().to_string();
    assert!(told.contains("ends with epoch 6, and epoch 7 was there"), "{told}");
}

const DATABASE: &str = "WARPSMITH_PIR_TEST_FOLD";
const STEP: &str = "WARPSMITH_PIR_TEST_STEP";

/// The fold that is killed, at its so many-th step.
#[test]
fn child() {
    let (Ok(database), Ok(step)) = (std::env::var(DATABASE), std::env::var(STEP)) else { return };
    let mut left: u32 = step.parse().unwrap();
    let folded = fold(Path::new(&database), Keep { epochs: 2, changes: Some(0) }, &mut |_| {
        left -= 1;
        if left == 0 {
            let me = std::process::id().to_string();
            Command::new("kill").args(["-9", &me]).status().unwrap();
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
        Ok(())
    });
    folded.unwrap();
}

#[test]
fn a_fold_that_is_killed_leaves_a_whole_database() {
    // So large that the new file has several segments.
    let bench = Bench::new(Choice { lambda: 2, ..Choice::new(100_000, 24) });
    let path = bench.folder.path().join("data");
    let mut expected = entries_of(&bench.live);
    let mut killed = Vec::new();
    for round in 0..8u32 {
        for epoch in 0..4 {
            let values: Vec<(u64, Vec<u8>)> = (0..50)
                .map(|i| {
                    ((i * 1999 + u64::from(round)) % 100_000, vec![(round * 7 + epoch + i as u32) as u8; 24])
                })
                .collect();
            values.iter().for_each(|(index, value)| expected[*index as usize].clone_from(value));
            bench.live.update(bench.live.difference(&values).unwrap()).unwrap();
        }
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "fold::child", "--nocapture"])
            .env(DATABASE, &path)
            .env(STEP, (1 + round).to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        killed.push(!output.status.success());
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
        // What a trim leaves that is killed.
        std::fs::write(bench.folder.path().join("data.updates.new"), "half a list").unwrap();
        Database::open(&path).unwrap().verify().unwrap();
        let fresh = Live::open(&path, Lanes::detect(), 1000).unwrap();
        assert_eq!(fresh.epoch(), 5 + 4 * u64::from(round + 1), "round {round}");
        assert!(entries_of(&fresh) == expected, "round {round}");
        bench.live.refresh().unwrap();
        assert!(entries_of(&bench.live) == expected, "round {round}");
    }
    // Before anything was written, in the middle, and between the new file and the new list; and not at all.
    assert!(killed[..4].iter().all(|killed| *killed) && !killed[7], "{killed:?}");
    let folded = quietly(&path, NOTHING).unwrap();
    assert_eq!((folded.epoch, folded.oldest), (37, 37));
    assert!(entries_of(&Live::open(&path, Lanes::detect(), 1000).unwrap()) == expected);
    let mut names: Vec<_> =
        std::fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["data", "data.updates"]);
}

#[test]
fn two_do_not_fold_at_once() {
    let (bench, model) = bench();
    let path = bench.folder.path().join("data");
    append(&bench.live, &model, &mut Dice::new());
    let mut told = None;
    fold(&path, NOTHING, &mut |_| {
        let other = quietly(&path, NOTHING);
        // After the new file is in its place, that one can be folded.
        told.get_or_insert_with(|| other.unwrap_err().to_string());
        Ok(())
    })
    .unwrap();
    assert!(told.unwrap().contains("being folded"));
    let link = bench.folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(quietly(&link, NOTHING).unwrap_err().to_string().contains("is a link"));
    // Stopped by the one who watches: nothing has changed.
    append(&bench.live, &model, &mut Dice::new());
    let stopped = fold(&path, NOTHING, &mut |_| Err(Error::Stopped));
    assert!(matches!(stopped, Err(Error::Stopped)));
    assert_eq!(Live::open(&path, Lanes::detect(), 10).unwrap().base().description().epoch, 6);
}
