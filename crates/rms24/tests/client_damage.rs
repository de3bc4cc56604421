//! State and journal of a client, damaged, cut short, put back, or left by a crash at any moment: refused, or the client knows
//! all that was ever sent.

use std::path::PathBuf;

use warpsmith_hash::Lanes;
use warpsmith_rms24::{Choice, Client, Error, Result};

use crate::support::{Bench, fast_folder, flipped, open, put};

/// All of a client that decides what is sent next.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    epoch: u64,
    made: u64,
    remaining: u64,
    spent: Vec<u64>,
    waiting: Vec<u8>,
}

impl Known {
    fn of(client: &Client) -> Known {
        Known {
            epoch: client.version().epoch,
            made: client.made(),
            remaining: client.remaining(),
            spent: client.spent_ids(),
            waiting: client.resend().unwrap().body,
        }
    }
}

/// State and journal at one moment, and what a client knows then.
#[derive(Clone)]
struct Moment {
    state: Vec<u8>,
    journal: Vec<u8>,
    known: Known,
    /// Both files were written anew in this step.
    compacted: bool,
}

/// A client's files.
struct Files {
    bench: Bench,
}

impl Files {
    fn new() -> Files {
        let choice = Choice { lambda: 30, block_size: Some(2), backups: Some(32), ..Choice::new(8, 8) };
        Files { bench: Bench::in_folder(fast_folder(), choice) }
    }

    fn moment(&self, client: &Client, compacted: bool) -> Moment {
        let state = std::fs::read(self.bench.state()).unwrap();
        let journal = std::fs::read(self.journal()).unwrap();
        Moment { state, journal, known: Known::of(client), compacted }
    }

    fn journal(&self) -> PathBuf {
        self.bench.folder.path().join("state.journal")
    }

    /// What a client knows that opens these files. Writing over a file keeps its mode.
    fn opened(&self, state: &[u8], journal: &[u8]) -> Result<Known> {
        put(self.bench.state(), state).unwrap();
        put(self.journal(), journal).unwrap();
        Client::open(&self.bench.state(), Lanes::detect()).map(|client| Known::of(&client))
    }

    /// A client's life, step by step.
    fn life(&self) -> Vec<Moment> {
        let bench = &self.bench;
        let mut client = bench.client();
        let mut moments = vec![self.moment(&client, false)];
        for round in 0..3u64 {
            let asked = client.ask(&[round]).unwrap();
            moments.push(self.moment(&client, false));
            let answers = bench.live.answer(&asked.body, 10).unwrap();
            let fetched = client.receive(&asked, &answers).unwrap().remove(0).unwrap();
            moments.push(self.moment(&client, false));
            match round {
                0 => {
                    let update = bench.live.difference(&[(5, vec![9; 8])]).unwrap();
                    bench.live.update(update.clone()).unwrap();
                    client.update(&update).unwrap();
                }
                1 => client.compact().unwrap(),
                _ => client.spoil(&fetched).unwrap(),
            }
            moments.push(self.moment(&client, round == 1));
        }
        for index in [6, 7] {
            client.ask(&[index]).unwrap();
            moments.push(self.moment(&client, false));
        }
        moments
    }
}

fn refused(what: &str, result: Result<Known>) {
    let error = result.err().unwrap_or_else(|| panic!("{what} was accepted"));
    assert!(
        matches!(error, Error::Stale { .. } | Error::Damaged { .. } | Error::Format { .. }),
        "{what}: {error}"
    );
}

#[test]
fn every_flipped_byte_of_a_client_is_told_or_harmless() {
    let files = Files::new();
    let now = files.life().pop().unwrap();
    let mut harmless = Vec::new();
    for at in 0..now.state.len() {
        match files.opened(&flipped(&now.state, at), &now.journal) {
            Ok(known) => {
                assert_eq!(known, now.known, "byte {at} of the state was flipped, and nobody noticed");
                harmless.push(at);
            }
            error => refused(&format!("a state with byte {at} flipped"), error),
        }
    }
    // The newest mark: the journal tells the same, and the mark is written anew.
    assert_eq!(harmless.len(), 512);
    assert!([512, 1024].contains(&harmless[0]));
    for at in 0..now.journal.len() {
        let damaged = flipped(&now.journal, at);
        refused(&format!("a journal with byte {at} flipped"), files.opened(&now.state, &damaged));
    }
    assert_eq!(files.opened(&now.state, &now.journal).unwrap(), now.known);
}

#[test]
fn a_journal_that_was_cut_short_is_refused() {
    let files = Files::new();
    let now = files.life().pop().unwrap();
    for length in 0..now.journal.len() {
        let cut = &now.journal[..length];
        refused(&format!("a journal cut to {length} bytes"), files.opened(&now.state, cut));
    }
    for length in (0..now.state.len()).step_by(5) {
        let cut = &now.state[..length];
        refused(&format!("a state cut to {length} bytes"), files.opened(cut, &now.journal));
    }
    put(files.bench.state(), &now.state).unwrap();
    std::fs::remove_file(files.journal()).unwrap();
    let missing = Client::open(&files.bench.state(), Lanes::detect()).map(|client| Known::of(&client));
    refused("a state without its journal", missing);
}

/// Any older copy of one file beside the newer other one: refused, or the client knows all that was ever sent.
#[test]
fn neither_file_can_be_put_back_alone() {
    let files = Files::new();
    let moments = files.life();
    let mut refusals = 0;
    for (old, before) in moments.iter().enumerate() {
        for (new, after) in moments.iter().enumerate().skip(old + 1) {
            let what = format!("the journal of moment {old} and the state of {new}");
            match files.opened(&after.state, &before.journal) {
                // The state was just written anew, and holds everything.
                Ok(known) => assert!(after.compacted && known == after.known, "{what}"),
                error => refused(&what, error),
            }
            let what = format!("the state of moment {old} and the journal of {new}");
            match files.opened(&before.state, &after.journal) {
                Ok(known) => assert_eq!(known, after.known, "{what}"),
                error => {
                    refused(&what, error);
                    refusals += 1;
                }
            }
        }
    }
    assert!(refusals > 20, "{refusals}");
}

/// The files as a loss of power leaves them at any moment of a step: the client opens, and knows of the step or does not.
#[test]
fn a_crash_at_any_moment_leaves_a_state_that_opens() {
    let files = Files::new();
    let moments = files.life();
    for (number, pair) in moments.windows(2).enumerate() {
        let [before, after] = pair else { unreachable!() };
        if after.compacted {
            // The state has its name before its journal has.
            assert_eq!(files.opened(&after.state, &before.journal).unwrap(), after.known, "{number}");
            continue;
        }
        for end in before.journal.len()..=after.journal.len() {
            let known = files.opened(&before.state, &after.journal[..end]).unwrap();
            let expected = if end == after.journal.len() { &after.known } else { &before.known };
            assert_eq!(known, *expected, "step {number}, journal cut at {end}");
        }
        // The mark, cut short: all bytes that differ lie in one of the two.
        let differs: Vec<usize> =
            (0..after.state.len()).filter(|&at| before.state[at] != after.state[at]).collect();
        assert!(differs.iter().all(|at| at / 512 == differs[0] / 512 && [1, 2].contains(&(at / 512))));
        for &end in &differs {
            let torn = [&after.state[..end], &before.state[end..]].concat();
            assert_eq!(
                files.opened(&torn, &after.journal).unwrap(),
                after.known,
                "step {number}, mark {end}"
            );
        }
    }
    // Before a new state has its journal.
    let first = &moments[0];
    put(files.bench.state(), &first.state).unwrap();
    std::fs::remove_file(files.journal()).unwrap();
    assert_eq!(Known::of(&open(&files.bench.state())), first.known);
}

/// Somebody puts copies in the place of files that are in use: nothing is sent any more.
#[test]
fn files_that_are_replaced_while_in_use_are_noticed() {
    for name in ["state", "state.journal"] {
        let files = Files::new();
        let mut client = files.bench.client();
        let path = files.bench.folder.path().join(name);
        let copy = std::fs::read(&path).unwrap();
        files.bench.fetch(&mut client, &[1]);
        std::fs::remove_file(&path).unwrap();
        put(&path, copy).unwrap();
        let told = client.ask(&[2]).unwrap_err().to_string();
        assert!(told.contains("while it was in use"), "{told}");
        assert!(matches!(client.ask(&[2]), Err(Error::Stale { .. })));
    }
}

#[test]
fn files_of_a_client_are_not_followed_through_links() {
    let files = Files::new();
    drop(files.bench.client());
    let folder = files.bench.folder.path();
    for name in ["state", "state.journal"] {
        let (path, moved) = (folder.join(name), folder.join("moved"));
        std::fs::rename(&path, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &path).unwrap();
        let told = Client::open(&files.bench.state(), Lanes::detect()).err().unwrap().to_string();
        assert!(told.contains("symbolic link"), "{told}");
        std::fs::remove_file(&path).unwrap();
        std::fs::hard_link(&moved, &path).unwrap();
        let told = Client::open(&files.bench.state(), Lanes::detect()).err().unwrap().to_string();
        assert!(told.contains("2 names"), "{told}");
        std::fs::remove_file(&moved).unwrap();
    }
    drop(open(&files.bench.state()));
    // The journal of a state that is gone is not written over.
    std::fs::remove_file(files.bench.state()).unwrap();
    let told = Client::reserve(&files.bench.state()).err().unwrap().to_string();
    assert!(told.contains("never written over") && told.contains("journal"), "{told}");
}
