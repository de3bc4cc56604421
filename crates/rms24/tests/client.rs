//! The client with a real database: right answers through repeats, batches, updates, restarts and failures; and states that
//! must not be used are refused.

use std::collections::HashSet;

use warpsmith_hash::Lanes;
use warpsmith_rms24::hints::make::Processor;
use warpsmith_rms24::wire::{Picks, read_queries};
use warpsmith_rms24::{Choice, Client, Error, Key, Version};

use crate::support::{Bench, Dice, open, put};

fn small() -> Choice {
    Choice { lambda: 60, block_size: Some(16), backups: Some(700), ..Choice::new(500, 40) }
}

#[test]
fn two_thousand_queries_with_repeats_updates_and_restarts() {
    let mut dice = Dice::new();
    for (block_size, entry_size) in [(32, 40), (20, 33)] {
        let choice =
            Choice { block_size: Some(block_size), backups: Some(1100), ..Choice::new(1000, entry_size) };
        let bench = Bench::new(choice);
        let mut client = bench.client();
        let before = client.remaining();
        let mut ids = HashSet::new();
        let mut asked_in_all = 0;
        while asked_in_all < 1000 {
            let batch = 1 + dice.below(6);
            // Often the same few entries, also within a batch.
            let indices: Vec<u64> = (0..batch)
                .map(|_| if dice.below(2) == 0 { dice.below(5) } else { dice.below(1000) })
                .collect();
            let asked = client.ask(&indices).unwrap();
            for id in client.spent_ids() {
                assert!(ids.insert(id), "hint {id} was sent twice");
            }
            let answers = bench.live.answer(&asked.body, 10).unwrap();
            for (index, result) in indices.iter().zip(client.receive(&asked, &answers).unwrap()) {
                assert_eq!(result.unwrap().entry, bench.live.entry(*index).unwrap(), "entry {index}");
            }
            asked_in_all += batch;
            assert_eq!(client.remaining(), before - asked_in_all);
            match dice.below(12) {
                0 => {
                    drop(client);
                    client = open(&bench.state());
                }
                1 => client.compact().unwrap(),
                2 | 3 => {
                    let values: Vec<_> = (0..dice.below(20))
                        .map(|_| (dice.below(1000), vec![dice.below(256) as u8; entry_size as usize]))
                        .collect();
                    let update = bench.live.difference(&values).unwrap();
                    bench.live.update(update.clone()).unwrap();
                    // A client that has not updated yet still gets the answers of its own epoch.
                    if dice.below(2) == 0 {
                        let old = client.ask(&[7]).unwrap();
                        let answers = bench.live.answer(&old.body, 10).unwrap();
                        let got = client.receive(&old, &answers).unwrap().remove(0).unwrap();
                        let mut expected = bench.live.entry(7).unwrap();
                        for (_, delta) in update.changes(entry_size as usize).filter(|(index, _)| *index == 7)
                        {
                            expected.iter_mut().zip(delta).for_each(|(byte, change)| *byte ^= change);
                        }
                        assert_eq!(got.entry, expected);
                        asked_in_all += 1;
                    }
                    client.update(&update).unwrap();
                }
                _ => {}
            }
        }
    }
}

#[test]
fn ten_thousand_updates() {
    let mut dice = Dice::new();
    let bench = Bench::new(small());
    let mut client = bench.client();
    let (mut changes, mut asked) = (0, 0);
    while changes < 10_000 {
        let count = 1 + dice.below(400);
        let values: Vec<_> =
            (0..count).map(|_| (dice.below(500), (0..40).map(|_| dice.below(256) as u8).collect())).collect();
        let update = bench.live.difference(&values).unwrap();
        changes += update.indices.len();
        bench.live.update(update).unwrap();
        if asked < 600 {
            // Now and then several epochs at once, as a client fetches them.
            if dice.below(3) == 0 {
                let body = bench.live.updates_after(client.version().epoch, usize::MAX).unwrap();
                for update in warpsmith_rms24::wire::read_updates(&bench.params, &body).unwrap() {
                    client.update(&update).unwrap();
                }
                bench.fetch(&mut client, &[dice.below(500), dice.below(500), dice.below(500)]);
                asked += 3;
            }
        }
    }
    let body = bench.live.updates_after(client.version().epoch, usize::MAX).unwrap();
    for update in warpsmith_rms24::wire::read_updates(&bench.params, &body).unwrap() {
        client.update(&update).unwrap();
    }
    drop(client);
    let mut client = open(&bench.state());
    for index in 0..50 {
        bench.fetch(&mut client, &[index * 10]);
    }
}

/// One entry, two blocks of one entry, a last block that is all padding: every entry can be read, many times.
#[test]
fn the_smallest_databases() {
    for (entries, block_size) in [(1, None), (2, Some(1)), (3, Some(1)), (5, Some(4)), (1, Some(8))] {
        let bench = Bench::new(Choice { block_size, backups: Some(32), ..Choice::new(entries, 8) });
        let mut client = bench.client();
        for round in 0..30 {
            bench.fetch(&mut client, &[round % entries]);
        }
    }
}

#[test]
fn queries_have_one_shape() {
    let mut dice = Dice::new();
    let bench = Bench::new(small());
    let mut client = bench.client();
    for _ in 0..100 {
        let index = dice.below(500);
        let asked = client.ask(&[index]).unwrap();
        assert_eq!(asked.body.len(), 16 + bench.params.query_bytes());
        let (epoch, mut queries) = read_queries(&bench.params, &asked.body).unwrap();
        assert_eq!(epoch, 5);
        // `read` checks that exactly half of the blocks are of either colour.
        let picks = Picks::read(&bench.params, queries.next().unwrap()).unwrap();
        assert_eq!(
            picks.colours.iter().filter(|colour| **colour == 1).count(),
            bench.params.blocks() as usize / 2
        );
        let answers = bench.live.answer(&asked.body, 1).unwrap();
        assert_eq!(answers.len(), 16 + bench.params.answer_bytes());
        client.receive(&asked, &answers).unwrap();
    }
}

#[test]
fn a_query_is_sent_again_byte_for_byte() {
    let bench = Bench::new(small());
    let mut client = bench.client();
    // The second and third use what the first and second left pending.
    let asked = client.ask(&[3, 3, 3, 400]).unwrap();
    assert_eq!(client.resend().unwrap().body, asked.body);
    drop(client);
    let mut client = open(&bench.state());
    let again = client.resend().unwrap();
    assert_eq!(again.body, asked.body);
    assert!(client.compact().is_err() && client.update(&bench.live.difference(&[]).unwrap()).is_err());
    let answers = bench.live.answer(&again.body, 9).unwrap();
    for (index, result) in [3, 3, 3, 400].iter().zip(client.receive(&again, &answers).unwrap()) {
        assert_eq!(result.unwrap().entry, bench.live.entry(*index).unwrap());
    }
    assert!(client.resend().unwrap().is_empty());
    bench.fetch(&mut client, &[3, 400]);
}

#[test]
fn what_was_abandoned_fails_later_and_nothing_else() {
    let bench = Bench::new(small());
    let mut client = bench.client();
    client.ask(&[3, 3]).unwrap();
    drop(client);
    let mut client = open(&bench.state());
    assert_eq!(client.abandon().unwrap(), 2);
    // The hint for entry 3 is worthless, but a query for it is sent as any other.
    let asked = client.ask(&[3, 4]).unwrap();
    assert_eq!(asked.body.len(), 16 + 2 * bench.params.query_bytes());
    let answers = bench.live.answer(&asked.body, 2).unwrap();
    let results = client.receive(&asked, &answers).unwrap();
    assert!(matches!(results[0], Err(Error::Poisoned)));
    assert_eq!(results[1].as_ref().unwrap().entry, bench.live.entry(4).unwrap());
    drop(client);
    // Nearly all other entries are well; a few may have had the same first hint.
    let mut client = open(&bench.state());
    let mut failed = 0;
    for index in 0..500 {
        let asked = client.ask(&[index]).unwrap();
        let answers = bench.live.answer(&asked.body, 1).unwrap();
        match client.receive(&asked, &answers).unwrap().remove(0) {
            Ok(fetched) => assert_eq!(fetched.entry, bench.live.entry(index).unwrap()),
            Err(error) => {
                assert!(matches!(error, Error::Poisoned));
                failed += 1;
            }
        }
    }
    assert!((1..100).contains(&failed), "{failed}");
}

/// A wrong answer gives a wrong entry; once that is known, later entries do not suffer silently.
#[test]
fn a_spoilt_entry_is_not_passed_on() {
    let bench = Bench::new(small());
    let mut client = bench.client();
    let asked = client.ask(&[9]).unwrap();
    let mut answers = bench.live.answer(&asked.body, 1).unwrap();
    answers[16..].iter_mut().for_each(|byte| *byte ^= 0x55);
    let fetched = client.receive(&asked, &answers).unwrap().remove(0).unwrap();
    assert_ne!(fetched.entry, bench.live.entry(9).unwrap());
    client.spoil(&fetched).unwrap();
    drop(client);
    let mut client = open(&bench.state());
    let asked = client.ask(&[9]).unwrap();
    let answers = bench.live.answer(&asked.body, 1).unwrap();
    assert!(matches!(client.receive(&asked, &answers).unwrap()[0], Err(Error::Poisoned)));
}

#[test]
fn queries_run_out() {
    let bench = Bench::new(Choice { backups: Some(16), ..small() });
    let mut client = bench.client();
    assert_eq!(client.remaining(), 16);
    assert!(matches!(client.ask(&[0; 17]), Err(Error::Exhausted(_))));
    bench.fetch(&mut client, &[1; 10]);
    bench.fetch(&mut client, &[2; 6]);
    assert_eq!(client.remaining(), 0);
    assert!(matches!(client.ask(&[1]), Err(Error::Exhausted(_))));
    assert!(matches!(client.ask(&[500]), Err(Error::Index { .. })));
}

#[test]
fn answers_to_something_else_are_refused_and_the_query_still_waits() {
    let bench = Bench::new(small());
    let mut client = bench.client();
    let asked = client.ask(&[1]).unwrap();
    let good = bench.live.answer(&asked.body, 1).unwrap();
    let two = bench
        .live
        .answer(&[&asked.body[..12], &[2, 0, 0, 0], &asked.body[16..], &asked.body[16..]].concat(), 2)
        .unwrap();
    let mut other_epoch = good.clone();
    other_epoch[4] ^= 1;
    for bad in [&good[..good.len() - 1], &two, &other_epoch, b"", b"WPA1"] {
        assert!(client.receive(&asked, bad).is_err());
    }
    assert!(client.receive(&asked, &good).unwrap()[0].is_ok());
    // Once answered, it is over.
    assert!(client.receive(&asked, &good).is_err());
}

#[test]
fn copies_that_are_older_than_the_journal_are_refused() {
    let bench = Bench::new(small());
    let mut client = bench.client();
    let state = bench.state();
    let journal = bench.folder.path().join("state.journal");
    bench.fetch(&mut client, &[1, 2, 3]);
    let (old_state, old_journal) = (std::fs::read(&state).unwrap(), std::fs::read(&journal).unwrap());
    client.compact().unwrap();
    let compacted = std::fs::read(&state).unwrap();
    bench.fetch(&mut client, &[4]);
    let (new_state, new_journal) = (std::fs::read(&state).unwrap(), std::fs::read(&journal).unwrap());
    // Open twice: the second is kept out.
    assert!(Client::open(&state, Lanes::detect()).is_err());
    drop(client);

    let refused = |what: &str| {
        let error =
            Client::open(&state, Lanes::detect()).err().unwrap_or_else(|| panic!("{what} was accepted"));
        assert!(matches!(error, Error::Stale { .. }), "{what}: {error}");
    };
    // Writing over a file keeps its mode.
    std::fs::write(&state, &old_state).unwrap();
    refused("an old state");
    std::fs::write(&state, &new_state).unwrap();
    std::fs::write(&journal, &old_journal).unwrap();
    refused("an old journal");
    std::fs::remove_file(&journal).unwrap();
    refused("a state without a journal");
    // A crash after the state was written and before the journal was renewed: nothing is lost.
    let mut options = std::fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    std::io::Write::write_all(&mut options.write(true).create(true).open(&journal).unwrap(), &old_journal)
        .unwrap();
    refused("the journal before, of a state that has gone on since");
    std::fs::write(&state, &compacted).unwrap();
    drop(open(&state));
    std::fs::write(&state, &new_state).unwrap();
    std::fs::write(&journal, &new_journal).unwrap();
    let mut client = open(&state);
    bench.fetch(&mut client, &[1, 4]);
    drop(client);
    let new_state = std::fs::read(&state).unwrap();
    // A flipped bit in the middle of the journal.
    let whole = std::fs::read(&journal).unwrap();
    let mut damaged = whole.clone();
    damaged[80] ^= 1;
    std::fs::write(&journal, &damaged).unwrap();
    refused("a damaged journal");
    // A journal of another state.
    std::fs::write(&journal, &whole).unwrap();
    let other = Bench::new(small());
    drop(other.client());
    std::fs::copy(other.folder.path().join("state.journal"), &journal).unwrap();
    refused("another state's journal");
    // A damaged state.
    std::fs::write(&journal, &whole).unwrap();
    let mut damaged = new_state.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&state, &damaged).unwrap();
    assert!(matches!(Client::open(&state, Lanes::detect()), Err(Error::Damaged { .. })));
    std::fs::write(&state, &new_state).unwrap();
    let mut client = open(&state);
    bench.fetch(&mut client, &[77]);
}

#[test]
fn states_are_private_and_never_written_over() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(small());
    let client = bench.client();
    for file in ["state", "state.journal"] {
        let path = bench.folder.path().join(file);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
    }
    let (key, hints) = crate::support::offline(&bench.live.base(), &bench.params);
    assert_eq!(format!("{key:?}"), "Key(..)");
    assert!(
        Client::create(&bench.state(), bench.params, bench.version(), key, hints, Lanes::detect()).is_err()
    );
    drop(client);
    std::fs::set_permissions(bench.state(), std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(Client::open(&bench.state(), Lanes::detect()).is_err());
}

/// The two-server mode: a hint maker sends pairs, and queries never end.
#[test]
fn a_hint_maker_tops_up() {
    use warpsmith_rms24::two_server::{self, Request};
    let bench = Bench::new(Choice { backups: Some(16), ..small() });
    // The hint maker's side: it sees a key and numbers. An update came before the client did.
    let make = |request: &[u8]| {
        let (epoch, hints) = Request::read(request)
            .unwrap()
            .fulfil(&bench.live, &Processor { lanes: Lanes::detect(), threads: 1 }, &Default::default())
            .unwrap();
        two_server::body(epoch, &hints)
    };
    bench.live.update(bench.live.difference(&[(3, vec![9; 40]), (499, vec![8; 40])]).unwrap()).unwrap();
    let first = Request {
        key: Key::random().unwrap(),
        lambda: 60,
        regular: true,
        first: bench.params.regular(),
        pairs: 16,
    };
    let (epoch, hints) = two_server::read(&bench.params, &make(&first.to_bytes())).unwrap();
    let version = Version { epoch, ..bench.version() };
    let mut client =
        Client::create(&bench.state(), bench.params, version, first.key.clone(), hints, Lanes::detect())
            .unwrap();
    for round in 0..6 {
        bench.fetch(&mut client, &[round, 3, 3]);
        let (next, key) = client.next_pair();
        let request = Request { key: key.clone(), regular: false, first: next, pairs: 16, ..first.clone() };
        let body = make(&request.to_bytes());
        let before = client.remaining();
        client.top_up(&body).unwrap();
        assert_eq!(client.remaining(), before + 16);
        assert!(client.top_up(&body).is_err(), "the same pairs twice");
        drop(client);
        client = open(&bench.state());
        assert_eq!(client.remaining(), before + 16);
        if round == 3 {
            client.compact().unwrap();
        }
    }
    bench.fetch(&mut client, &[0; 40]);
}

/// A query that uses what another left pending is answered after it; asked the other way round, nothing breaks.
#[test]
fn answers_are_taken_in_an_order_that_works() {
    let bench = Bench::new(small());
    let mut client = bench.client();
    let (first, second) = (client.ask(&[3]).unwrap(), client.ask(&[3, 8]).unwrap());
    let answers = bench.live.answer(&second.body, 2).unwrap();
    assert!(matches!(client.receive(&second, &answers), Err(Error::Mismatch(_))));
    let before = bench.live.answer(&first.body, 1).unwrap();
    assert!(client.receive(&first, &before).unwrap()[0].is_ok());
    for (index, result) in [3, 8].iter().zip(client.receive(&second, &answers).unwrap()) {
        assert_eq!(result.unwrap().entry, bench.live.entry(*index).unwrap());
    }
    bench.fetch(&mut client, &[3, 8]);
}

/// A long journal makes way for a new state file; a short one stays, and so does one with queries that wait.
#[test]
fn a_long_journal_is_folded_into_the_state() {
    let bench = Bench::new(Choice { lambda: 60, backups: Some(64), ..Choice::new(500, 40) });
    let mut client = bench.client();
    bench.fetch(&mut client, &[1]);
    let short = client.journal_bytes();
    assert!(!client.tidy().unwrap() && client.journal_bytes() == short);
    for epoch in 0..33 {
        let values = [(epoch, vec![9; 40]), (499 - epoch, vec![8; 40])];
        let update = bench.live.difference(&values).unwrap();
        bench.live.update(update.clone()).unwrap();
        client.update(&update).unwrap();
    }
    let asked = client.ask(&[3]).unwrap();
    assert!(!client.tidy().unwrap(), "a query waits");
    assert_eq!((client.waiting(), client.made()), (1, 2));
    drop(client);
    let mut client = open(&bench.state());
    assert_eq!(client.waiting(), 1);
    client.receive(&asked, &bench.live.answer(&asked.body, 10).unwrap()).unwrap();
    let before = client.journal_bytes();
    assert!(client.tidy().unwrap() && client.journal_bytes() < before);
    drop(client);
    let mut client = open(&bench.state());
    assert_eq!((client.version().epoch, client.made()), (5 + 33, 2));
    bench.fetch(&mut client, &[0, 3, 480, 499]);
}

/// The place of a new state is looked at before any work, and nothing stays of it.
#[test]
fn a_place_for_a_state_is_reserved() {
    let bench = Bench::new(Choice { lambda: 20, backups: Some(64), ..Choice::new(500, 40) });
    let files = || std::fs::read_dir(bench.folder.path()).unwrap().count();
    let before = files();
    let reserved = Client::reserve(&bench.state()).unwrap();
    assert_eq!(files(), before + 1);
    drop(reserved);
    assert_eq!(files(), before);
    let reserved = Client::reserve(&bench.state()).unwrap();
    let client = bench.client();
    drop(reserved);
    drop(client);
    open(&bench.state());
    assert!(
        Client::reserve(&bench.state()).is_err_and(|error| error.to_string().contains("never written over"))
    );
    assert!(Client::reserve(&bench.folder.path().join("nowhere/state")).is_err());
}

/// New hints in the place of the old ones: of another epoch, with another key, and nothing of before can be sent again.
#[test]
fn a_state_is_renewed_whole_or_not_at_all() {
    let choice = Choice { lambda: 60, block_size: Some(16), backups: Some(64), ..Choice::new(300, 24) };
    let bench = Bench::new(choice);
    let (state, journal) = (bench.state(), bench.folder.path().join("state.journal"));
    let mut client = bench.client();
    bench.fetch(&mut client, &[1, 2, 3]);
    bench.live.update(bench.live.difference(&[(2, vec![9; 24])]).unwrap()).unwrap();
    let version = Version { epoch: bench.live.epoch(), ..bench.version() };
    let fresh = || {
        bench.live.with_entries(|_, newest| {
            warpsmith_rms24::hints::offline(&bench.params, Lanes::detect(), 1, |push| newest.stream(push))
                .unwrap()
        })
    };
    // Not while a query waits.
    client.ask(&[5]).unwrap();
    let (key, hints) = fresh();
    let refused = client.renew(bench.params, version, key, hints, Lanes::detect());
    assert!(matches!(refused, Err(Error::Mismatch(_))));
    client.abandon().unwrap();
    let before = [&state, &journal].map(|path| std::fs::read(path).unwrap());
    let (key, hints) = fresh();
    client.renew(bench.params, version, key, hints, Lanes::detect()).unwrap();
    assert_eq!((client.version(), client.made(), client.remaining(), client.waiting()), (version, 4, 64, 0));
    drop(client);
    // A crash after the state was written and before its journal was begun.
    put(&journal, &before[1]).unwrap();
    let mut client = open(&state);
    assert_eq!((client.version(), client.remaining()), (version, 64));
    bench.fetch(&mut client, &[1, 2, 2, 299]);
    drop(client);
    let mut client = open(&state);
    bench.fetch(&mut client, &[2, 5]);
    assert_eq!((client.made(), client.remaining()), (10, 58));
    drop(client);
    // The old state beside the new journal, and the new state beside the old journal, are both told.
    let after = [&state, &journal].map(|path| std::fs::read(path).unwrap());
    for (one, two) in [(&before[0], &after[1]), (&after[0], &before[1])] {
        put(&state, one).unwrap();
        put(&journal, two).unwrap();
        assert!(matches!(Client::open(&state, Lanes::detect()), Err(Error::Stale { .. })));
    }
}
