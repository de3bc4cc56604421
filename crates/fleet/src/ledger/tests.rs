//! Ledgers that are cut, damaged, replaced, revoked and made short.

use super::*;

const JOB: JobId = JobId([3; 32]);

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger");
    (folder, path)
}

fn state(ledger: &Ledger) -> (u64, u128, Vec<(u64, u64)>) {
    let standing = ledger.standing();
    (standing.units, standing.keys, standing.intervals().collect())
}

#[test]
fn what_was_synced_is_there_again() {
    let (_folder, path) = folder();
    let mut ledger = Ledger::open(&path, JOB, 1).expect("made");
    assert!(ledger.done(7, 1, 1, 100) && ledger.done(8, 3, 2, 200) && ledger.done(7, 2, 1, 100));
    assert!(!ledger.done(9, 3, 1, 50), "each counts once");
    assert!(!ledger.done(9, 4, 2, 50), "not even in part");
    ledger.mark(900);
    ledger.sync().expect("synced");
    let before = state(&ledger);
    assert_eq!(before, (4, 400, vec![(1, 4)]));
    assert!(Ledger::open(&path, JOB, 2).is_err(), "held");
    assert_eq!(look(&path, JOB).expect("read").units, 4);
    drop(ledger);
    let again = Ledger::open(&path, JOB, 2).expect("opened");
    assert_eq!(state(&again), before);
    assert_eq!((again.standing().marked, again.damage()), (900, None));
    assert_eq!(again.standing().gap(1, 10), Some((5, 6)));
    drop(again);
    let why = Ledger::open(&path, JOB, 2).unwrap_err().to_string();
    assert!(why.contains("epoch 2"), "{why}");
    assert!(Ledger::open(&path, JobId([4; 32]), 9).unwrap_err().to_string().contains("another job"));
}

/// Cut anywhere and flipped anywhere, a journal loses the records that were hit and no others.
#[test]
fn damage_costs_what_it_hits() {
    let (_folder, path) = folder();
    let mut ledger = Ledger::open(&path, JOB, 1).expect("made");
    for unit in 1..=40 {
        ledger.done(1, 2 * unit, 1, 1);
    }
    ledger.sync().expect("synced");
    drop(ledger);
    let whole = std::fs::read(&path).expect("there");
    assert_eq!(whole.len(), (1 + 1 + 40) * RECORD);
    for cut in (RECORD..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..cut]).expect("written");
        let mut ledger = Ledger::open(&path, JOB, 2).expect("opened");
        let kept = (cut / RECORD).saturating_sub(2) as u64;
        assert_eq!(ledger.standing().units, kept, "cut at {cut}");
        // And it goes on from there.
        assert!(ledger.done(1, 1001, 1, 1));
        ledger.sync().expect("synced");
        drop(ledger);
        assert_eq!(look(&path, JOB).expect("read").units, kept + 1);
    }
    for at in (2 * RECORD..whole.len()).step_by(11) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&path, &bytes).expect("written");
        let standing = look(&path, JOB).expect("read");
        let record = (at / RECORD * RECORD) as u64;
        let named = vec![(record, RECORD as u64)];
        assert_eq!(standing.units, 39, "flipped at {at}");
        assert_eq!(standing.damage, Damage { stretches: 1, named }, "flipped at {at}");
    }
    // Bytes that are missing cost the record they are of, and put nothing behind them out of place; so does a damaged head.
    for (at, missing) in (0..whole.len() - RECORD).step_by(13).zip([1, 2, 5, 47].iter().cycle()) {
        let mut bytes = whole.clone();
        bytes.drain(at..at + missing);
        std::fs::write(&path, &bytes).expect("written");
        let mut ledger = Ledger::open(&path, JOB, 2).expect("opened");
        let units = ledger.standing().units;
        assert!((38..=40).contains(&units), "{units} units without {missing} bytes at {at}");
        let text = ledger.damage().expect("named");
        assert!(text.contains("are damaged") && text.contains(path.to_str().expect("text")), "{text}");
        assert!(ledger.done(1, 1001, 1, 1));
        ledger.sync().expect("synced");
        drop(ledger);
        assert_eq!(look(&path, JOB).expect("read").units, units + 1);
    }
    for at in 0..RECORD {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&path, &bytes).expect("written");
        let standing = look(&path, JOB).expect("read");
        assert_eq!(
            (standing.units, standing.damage.named),
            (40, vec![(0, RECORD as u64)]),
            "flipped at {at}"
        );
    }
    // Records of another job are none of this one.
    std::fs::write(&path, &whole[RECORD..]).expect("written");
    assert_eq!(look(&path, JOB).expect("read").units, 40);
    assert!(look(&path, JobId([4; 32])).is_err());
    std::fs::write(&path, b"something else, quite long enough to be a head of one").expect("written");
    assert!(Ledger::open(&path, JOB, 3).unwrap_err().to_string().contains("no ledger"));
}

#[test]
fn a_coordinator_that_was_replaced_writes_nothing_that_counts() {
    let (_folder, path) = folder();
    let mut ledger = Ledger::open(&path, JOB, 5).expect("made");
    ledger.done(1, 1, 1, 1);
    ledger.sync().expect("synced");
    drop(ledger);
    drop(Ledger::open(&path, JOB, 6).expect("opened"));
    // As one would that was paused before it was replaced, and has the file open.
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("there");
    let late = Entry::Done { worker: 1, first: 2, count: 1, keys: 1, epoch: 5 };
    file.write_all(&late.bytes(JOB)).expect("written");
    assert_eq!(look(&path, JOB).expect("read").intervals().collect::<Vec<_>>(), [(1, 1)]);
}

#[test]
fn what_a_cheat_did_is_open_again_and_what_others_did_is_not() {
    let (_folder, path) = folder();
    let mut ledger = Ledger::open(&path, JOB, 1).expect("made");
    for unit in 1..=100 {
        ledger.done((unit % 4) as u32, unit, 1, 10);
    }
    ledger.revoke(2).expect("revoked");
    assert_eq!((ledger.standing().units, ledger.standing().keys), (75, 750));
    assert_eq!(ledger.standing().gap(1, 100), Some((2, 1)));
    assert!(!ledger.done(2, 2, 1, 10), "and nothing it does later counts");
    assert!(ledger.done(3, 2, 1, 10), "another can do it");
    ledger.sync().expect("synced");
    drop(ledger);
    let ledger = Ledger::open(&path, JOB, 2).expect("opened");
    assert_eq!((ledger.standing().units, ledger.revoked()), (76, &[2][..]));
    assert!(ledger.standing().marked >= 100);
}

/// A journal that was made short says the same as before, also of whom nothing counts; and a cheat that is caught later loses what
/// is still known to be its own.
#[test]
fn a_short_journal_says_the_same() {
    let (_folder, path) = folder();
    let mut ledger = Ledger::open(&path, JOB, 1).expect("made");
    ledger.keep_at_most(100);
    for unit in 1..=60u64 {
        assert!(ledger.done((unit % 3) as u32 + 1, unit, 1, 1 << 62));
    }
    ledger.revoke(3).expect("revoked");
    ledger.mark(500);
    let before = state(&ledger);
    assert_eq!(before.0, 40);
    for unit in 61..=110u64 {
        assert!(ledger.done((unit % 2) as u32 + 1, unit, 1, 1 << 62));
    }
    let whole = state(&ledger);
    assert_eq!((whole.0, whole.1), (90, 90 << 62));
    ledger.sync().expect("synced");
    assert!(ledger.records < 100, "{} records", ledger.records);
    assert_eq!(state(&ledger), whole);
    let read = look(&path, JOB).expect("read");
    assert_eq!((read.units, read.keys, read.marked, read.damage.stretches), (90, 90 << 62, 500, 0));
    assert!(Ledger::open(&path, JOB, 2).is_err(), "still held");
    assert!(!ledger.done(3, 200, 1, 1), "it was revoked before");
    // The newer half is known by worker: of 1 and 2 in turn.
    ledger.revoke(1).expect("revoked");
    assert!((60..90).contains(&ledger.standing().units), "{}", ledger.standing().units);
    let after = state(&ledger);
    drop(ledger);
    let again = Ledger::open(&path, JOB, 2).expect("opened");
    assert_eq!((state(&again), again.revoked()), (after, &[1, 3][..]));
}

/// Wherever a process dies while a journal is made short, one of the two is there, whole.
#[test]
fn a_shortened_journal_that_is_cut_costs_what_is_cut() {
    let (_folder, path) = folder();
    let mut ledger = Ledger::open(&path, JOB, 1).expect("made");
    ledger.keep_at_most(20);
    for unit in 1..=40u64 {
        ledger.done(1, unit, 1, 5);
        ledger.sync().expect("synced");
    }
    drop(ledger);
    let whole = std::fs::read(&path).expect("there");
    assert!(whole.len() < 40 * RECORD);
    let mut units = Vec::new();
    for cut in (RECORD..=whole.len()).step_by(RECORD) {
        std::fs::write(&path, &whole[..cut]).expect("written");
        units.push(look(&path, JOB).expect("read").units);
    }
    assert!(units.is_sorted() && units.last() == Some(&40), "{units:?}");
}
