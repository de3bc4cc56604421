//! Fast hints against the reference, byte for byte, for all kinds of shapes and instruction sets.

use warpsmith_hash::{Lanes, SETS, Simd};
use warpsmith_rms24::hints::measure::pseudorandom;
use warpsmith_rms24::hints::parity::Parities;
use warpsmith_rms24::hints::{Hints, INVALID, Skeleton, cutoff, reference};
use warpsmith_rms24::{Choice, Key, Params, Place, Prf};

fn available() -> impl Iterator<Item = Simd> {
    SETS.into_iter().filter(|simd| {
        if !simd.is_available() {
            println!("SKIPPED: this machine has no {simd}");
        }
        simd.is_available()
    })
}

fn params(entries: u64, entry_size: u32, lambda: u32, block_size: Option<u32>) -> Params {
    Params::new(Choice { lambda, block_size, ..Choice::new(entries, entry_size) }).unwrap()
}

/// Pushes the database in pieces of this many bytes.
fn fast(prf: &Prf, p: &Params, skeleton: Skeleton, database: &[u8], threads: usize, piece: usize) -> Hints {
    let mut parities = Parities::new(prf, p, skeleton, threads);
    for bytes in database.chunks(piece) {
        parities.push(bytes).unwrap();
    }
    parities.finish().unwrap()
}

fn check(p: &Params) {
    let key = Key::random().unwrap();
    let database = pseudorandom(p.entries() as usize * p.entry_size());
    let reader = reference::Database::new(p, &database);
    let slow = Prf::new(&key, p, Lanes::new(Simd::Portable));
    let skeleton = Skeleton::new(&slow, p, 1).unwrap();
    for (id, &fast) in (0..).zip(&skeleton.cutoffs) {
        assert_eq!(fast, reference::cutoff(&slow, p.blocks(), id), "{p:?}, id {id}");
    }
    let expected = reference::hints(&slow, &reader, &skeleton);
    for simd in available() {
        let prf = Prf::new(&key, p, Lanes::new(simd));
        for (threads, piece) in [(1, usize::MAX), (2, 1000), (3, 4097)] {
            let ids = 0..p.regular() + p.backups();
            assert_eq!(cutoff::cutoffs(&prf, p.blocks(), ids, threads), skeleton.cutoffs, "{simd}, {p:?}");
            let hints = fast(&prf, p, skeleton.clone(), &database, threads, piece);
            assert!(hints == expected, "{simd}, {threads} threads, {p:?}");
        }
    }
}

#[test]
fn one_entry_two_blocks_and_odd_sizes() {
    for p in [
        params(1, 8, 80, None),
        params(1, 40, 3, Some(5)),
        params(2, 40, 16, Some(1)),
        params(2, 41, 5, None),
        params(3, 40, 4, Some(1)),
        params(9, 13, 9, Some(4)),
        params(100, 40, 2, Some(7)),
        params(1000, 40, 2, None),
        params(1023, 33, 1, Some(32)),
        params(1025, 64, 1, Some(32)),
        params(4000, 100, 1, Some(100)),
    ] {
        check(&p);
    }
}

#[test]
fn random_shapes() {
    let mut state = u64::from_le_bytes(Key::random().unwrap().expose()[..8].try_into().unwrap());
    println!("seed {state}");
    for _ in 0..40 {
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        let entries = 1 + next(600);
        let block_size = (next(3) > 0).then(|| 1 + next(70) as u32);
        let entry_size = if next(2) == 0 { 40 } else { 8 + next(150) as u32 };
        let lambda = 1 + (next(40) as u32 / block_size.unwrap_or(32)).min(4);
        check(&params(entries, entry_size, lambda, block_size));
    }
}

/// More than 65,536 blocks: several blocks share the upper half of nearly every order. And one more block than a round
/// number, so that the last lanes lie past the end.
#[test]
fn many_blocks_with_many_ties() {
    for block_size in [1, 3] {
        let p = params(70_001 * u64::from(block_size), 8, 16 / block_size, Some(block_size));
        let p = p.with_backups(16).unwrap();
        check(&p);
    }
}

/// Blocks too large for sixteen, or eight, side by side.
#[test]
fn large_blocks() {
    for (block_size, entry_size) in [(4096, 40), (2048, 100), (1024, 4096), (50_000, 40)] {
        let p = params(5 * u64::from(block_size) - 7, entry_size, 1, Some(block_size));
        let p = p.with_backups(32).unwrap();
        let key = Key::random().unwrap();
        let database = pseudorandom(p.entries() as usize * p.entry_size());
        let reader = reference::Database::new(&p, &database);
        for simd in available() {
            let prf = Prf::new(&key, &p, Lanes::new(simd));
            // The hints of a few ids only: the reference is slow.
            let skeleton = Skeleton::of_ids(&prf, &p, 32..64, 1600..1632, 2).unwrap();
            let expected = reference::hints(&prf, &reader, &skeleton);
            assert!(fast(&prf, &p, skeleton, &database, 2, 12_345) == expected, "{simd}, {p:?}");
        }
    }
}

/// Exactly half of the blocks lie below a cutoff; the extra's block never does.
#[test]
fn half_of_the_blocks_and_an_extra_outside() {
    for p in [params(64, 8, 20, Some(4)), params(500, 8, 20, Some(5)), params(7, 8, 50, Some(1))] {
        let prf = Prf::new(&Key::random().unwrap(), &p, Lanes::detect());
        let skeleton = Skeleton::new(&prf, &p, 2).unwrap();
        let mut offsets = vec![0u32; p.block_size() as usize];
        // A hint whose middle two blocks have one order, which nobody uses: a chance of 2^-23 and less for each.
        let invalid = skeleton.cutoffs.iter().filter(|&&cutoff| cutoff == INVALID).count();
        assert!(invalid <= 1, "{invalid} of {}", skeleton.cutoffs.len());
        for (id, &cutoff) in (0..).zip(&skeleton.cutoffs).filter(|(_, cutoff)| **cutoff != INVALID) {
            let low = (0..p.blocks()).filter(|&k| prf.is_low(id, cutoff, k)).count();
            assert_eq!(low, p.blocks() as usize / 2);
            if let Some(extra) = skeleton.extras.get(id as usize) {
                assert!(extra.block < p.blocks() && !prf.is_low(id, cutoff, extra.block));
                offsets[extra.offset as usize] += 1;
            }
        }
        let expected = skeleton.extras.len() as f64 / f64::from(p.block_size());
        for count in offsets {
            assert!((f64::from(count) - expected).abs() < 6.0 * expected.sqrt() + 1.0);
        }
    }
}

/// A hint without a cutoff is skipped by all alike: nothing below it, parities of zero, no extra.
#[test]
fn invalid_hints_are_empty_everywhere() {
    let p = params(300, 40, 4, Some(16));
    let key = Key::random().unwrap();
    let database = pseudorandom(p.entries() as usize * p.entry_size());
    let prf = Prf::new(&key, &p, Lanes::detect());
    let mut skeleton = Skeleton::new(&prf, &p, 1).unwrap();
    for hint in [0, 17, skeleton.regular_len() - 1, skeleton.regular_len(), skeleton.cutoffs.len() - 1] {
        skeleton.cutoffs[hint] = INVALID;
        if let Some(extra) = skeleton.extras.get_mut(hint) {
            *extra = Place { block: 0, offset: 0 };
        }
    }
    let expected = reference::hints(&prf, &reference::Database::new(&p, &database), &skeleton);
    assert_eq!(expected.parities[17 * 40..18 * 40], [0; 40]);
    for simd in available() {
        let prf = Prf::new(&key, &p, Lanes::new(simd));
        assert!(fast(&prf, &p, skeleton.clone(), &database, 2, 999) == expected, "{simd}");
    }
}

#[test]
fn a_stream_of_the_wrong_length_is_refused() {
    let p = params(100, 40, 4, None);
    let prf = Prf::new(&Key::random().unwrap(), &p, Lanes::detect());
    let skeleton = Skeleton::new(&prf, &p, 1).unwrap();
    let database = pseudorandom(4001);
    let mut parities = Parities::new(&prf, &p, skeleton.clone(), 1);
    assert!(parities.push(&database).is_err());
    let mut parities = Parities::new(&prf, &p, skeleton, 1);
    parities.push(&database[..3999]).unwrap();
    assert!(parities.finish().is_err());
}
