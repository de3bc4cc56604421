//! What the server sees, as statistics: with the smallest shapes, where any bias would be large.
//!
//! Every claim is tested at five standard deviations or more, so a correct program fails about once in a million runs.

use std::path::Path;

use warpsmith_hash::Lanes;
use warpsmith_rms24::hints::{Hints, Skeleton};
use warpsmith_rms24::wire::{Picks, read_queries};
use warpsmith_rms24::{Choice, Client, Key, Params, Prf, Version};

use crate::support::Dice;

/// c = w = 4. A query finds no hint with a chance of 0.8125^64.
fn params() -> Params {
    Params::new(Choice { lambda: 16, block_size: Some(4), backups: Some(16), ..Choice::new(16, 8) }).unwrap()
}

/// The picks of queries that one fresh client makes in turn. All entries are zero, so the answers are too.
fn view(folder: &Path, params: &Params, indices: &[u64]) -> Vec<Picks> {
    let key = Key::random().unwrap();
    let prf = Prf::new(&key, params, Lanes::detect());
    let skeleton = Skeleton::new(&prf, params, 1).unwrap();
    let (m, q, size) = (skeleton.regular_len(), skeleton.backups_len(), params.entry_size());
    let hints =
        Hints { skeleton, parities: vec![0; m * size], low: vec![0; q * size], high: vec![0; q * size] };
    let path = folder.join("state");
    let version = Version { database: [0; 32], epoch: 0 };
    let mut client = Client::create(&path, *params, version, key, hints, Lanes::detect()).unwrap();
    let mut seen = Vec::new();
    for &index in indices {
        let asked = client.ask(&[index]).unwrap();
        let (_, mut queries) = read_queries(params, &asked.body).unwrap();
        seen.push(Picks::read(params, queries.next().unwrap()).unwrap());
        let mut answer = b"WPA1".to_vec();
        answer.extend_from_slice(&[0; 8]);
        answer.extend_from_slice(&[1, 0, 0, 0]);
        answer.resize(16 + params.answer_bytes(), 0);
        client.receive(&asked, &answer).unwrap();
    }
    drop(client);
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(folder.join("state.journal")).unwrap();
    seen
}

/// Whether `hits` of `runs` fit a chance, within six standard deviations.
fn fits(hits: u64, runs: u64, chance: f64) -> bool {
    let expected = runs as f64 * chance;
    (hits as f64 - expected).abs() < 6.0 * (expected * (1.0 - chance)).sqrt()
}

/// A folder in memory, as states are made durable over and over.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

const RUNS: u64 = 12_000;

#[test]
fn every_balanced_mask_is_equally_likely_and_offsets_are_uniform() {
    let (folder, p) = (folder(), params());
    for index in [0, 6, 15] {
        let mut masks = [0u64; 16];
        let mut offsets = [[0u64; 4]; 4];
        for _ in 0..RUNS {
            let picks = view(folder.path(), &p, &[index]).remove(0);
            let mask = picks.colours.iter().rev().fold(0, |mask, colour| 2 * mask + usize::from(*colour));
            masks[mask] += 1;
            for block in 0..4 {
                offsets[block][picks.offsets[block] as usize] += 1;
            }
        }
        for (mask, &count) in masks.iter().enumerate() {
            let chance = if mask.count_ones() == 2 { 1.0 / 6.0 } else { 0.0 };
            assert!(
                if chance == 0.0 { count == 0 } else { fits(count, RUNS, chance) },
                "{mask:04b}: {count}"
            );
        }
        for count in offsets.as_flattened() {
            assert!(fits(*count, RUNS, 0.25), "{offsets:?}");
        }
    }
}

/// The order of slots: whether the first query was for (0, 0) must not show in the second. Appending the new hint instead
/// of putting it in place would make 0.182 of the 0.25.
#[test]
fn a_second_query_does_not_tell_what_the_first_was() {
    let (folder, p) = (folder(), params());
    // Entry 0, then one of another block; the same after an unrelated one; the same entry again.
    for indices in [[0, 9], [13, 9], [0, 0]] {
        let (mut zero, mut together, mut same_offset) = (0, 0, 0);
        for _ in 0..2 * RUNS {
            let seen = view(folder.path(), &p, &indices);
            zero += u64::from(seen[1].offsets[0] == 0);
            together += u64::from(seen[1].colours[0] == seen[1].colours[2]);
            same_offset += u64::from(seen[0].offsets[0] == seen[1].offsets[0]);
        }
        let runs = 2 * RUNS;
        assert!(fits(zero, runs, 0.25), "{indices:?}: offset 0 in block 0 in {zero} of {runs}");
        assert!(
            fits(same_offset, runs, 0.25),
            "{indices:?}: the offset of block 0 again in {same_offset} of {runs}"
        );
        // Two given blocks have one colour in 2 of 6 balanced masks.
        assert!(
            fits(together, runs, 1.0 / 3.0),
            "{indices:?}: blocks 0 and 2 together in {together} of {runs}"
        );
    }
}

/// A toy's hint: an offset for three of four blocks; with the given one among them, if any.
fn toy_hint(dice: &mut Dice, with: Option<(usize, u64)>) -> [Option<u64>; 4] {
    loop {
        let left_out = dice.below(4) as usize;
        let mut hint = [None; 4];
        for (block, held) in hint.iter_mut().enumerate() {
            let offset = dice.below(4);
            *held = (block != left_out).then_some(offset);
        }
        if with.is_none_or(|(block, offset)| hint[block] == Some(offset)) {
            return hint;
        }
    }
}

/// The test above can fail: with the new hint at the end of the list it would.
#[test]
fn appending_the_new_hint_would_be_seen() {
    let mut dice = Dice::new();
    let mut rates = [0.0; 2];
    for (append, rate) in [false, true].into_iter().zip(&mut rates) {
        let (mut runs, mut zero) = (0u64, 0u64);
        while runs < 60_000 {
            let mut hints: Vec<_> = (0..64).map(|_| toy_hint(&mut dice, None)).collect();
            let Some(first) = hints.iter().position(|hint| hint[0] == Some(0)) else { continue };
            let new = toy_hint(&mut dice, Some((0, 0)));
            if append {
                hints.remove(first);
                hints.push(new);
            } else {
                hints[first] = new;
            }
            let Some(used) = hints.iter().find(|hint| hint[2] == Some(1)) else { continue };
            // What block 0 shows: the hint's offset where it holds the block, else a uniform one.
            runs += 1;
            zero += u64::from(used[0].unwrap_or(dice.below(4)) == 0);
        }
        *rate = zero as f64 / runs as f64;
    }
    assert!((0.24..0.26).contains(&rates[0]) && rates[1] < 0.21, "{rates:?}");
}
