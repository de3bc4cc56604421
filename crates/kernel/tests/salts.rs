//! The search for salts as host C under sanitizers, against the `sha3` crate; and the filter of digests against its
//! definition.

use std::collections::HashSet;

use crate::support::{HostProgram, Random, address, create, keccak, top, words};
use warpsmith_kernel::abi;
use warpsmith_kernel::digest_filter::{Count, DigestTest, Score, Term, Wanted, build};
use warpsmith_kernel::salts::{Guarded, Salts};
use warpsmith_kernel::{Program, Spec};

/// The salt of a counter: its bytes stand in the last eight free ones, the least significant in the last.
fn salt(salts: &Salts, counter: u64) -> [u8; 32] {
    let mut salt = salts.base;
    let mut rest = counter;
    for place in (0..32).rev().filter(|&i| salts.free[i]).take(8) {
        salt[place] = rest as u8;
        rest >>= 8;
    }
    assert_eq!(rest, 0, "a counter of too many bytes");
    salt
}

/// What the chain makes of a salt.
fn digest(salts: &Salts, counter: u64) -> [u8; 20] {
    let salt = salt(salts, counter);
    let salt = salts.guard.as_ref().map_or(salt, |Guarded { before, salt: own, after }| {
        keccak(&[before.as_slice(), &salt[own.start..own.end], after].concat())
    });
    let message = [[0xff].as_slice(), &salts.deployer, &salt, &salts.code_hash].concat();
    let contract = address(&message);
    if salts.create { create(&contract, 1) } else { contract }
}

/// Random salts with these bytes free, and a guard with so many bytes before them and behind.
fn salts(random: &mut Random, free: &[usize], guard: Option<(usize, usize)>, create: bool) -> Salts {
    let mut bytes = |count: usize| -> Vec<u8> { (0..count).map(|_| random.next() as u8).collect() };
    let mut guarded = |(before, after)| Guarded { before: bytes(before), salt: 0..32, after: bytes(after) };
    Salts {
        guard: guard.map(&mut guarded),
        deployer: bytes(20).try_into().unwrap(),
        code_hash: bytes(32).try_into().unwrap(),
        create,
        base: bytes(32).try_into().unwrap(),
        free: std::array::from_fn(|i| free.contains(&i)),
    }
}

/// Runs one launch over counters from the first to the last of `range`; returns the count of records, the counters and top words told, and the best score.
fn run(
    salts: &Salts,
    shape: DigestTest,
    filter: &[u32],
    range: (u64, u64),
    launch: (u32, u32, u32),
) -> (u32, Vec<(u64, u32)>, u32) {
    run_from(salts, shape, filter, range, launch, 0)
}

/// The same from a score to beat.
fn run_from(
    salts: &Salts,
    shape: DigestTest,
    filter: &[u32],
    range: (u64, u64),
    launch: (u32, u32, u32),
    best: u32,
) -> (u32, Vec<(u64, u32)>, u32) {
    let (block, lanes, steps) = launch;
    let program = Program::Salts { stages: salts.stages(), filter: shape };
    let host = HostProgram::search(Spec { program, block, ..Spec::default() }, include_str!("host/salts.c"));
    let (first, last) = range;
    let params = salts.words();
    let capacity = lanes * steps * 256;
    let mut request = vec![lanes, steps, filter.len() as u32, capacity, best, params.len() as u32];
    request.extend([first as u32, (first >> 32) as u32, last as u32, (last >> 32) as u32, 0, 0]);
    request.extend(params);
    request.extend(filter);
    let hits = host.run(&request);
    let records = hits[abi::HITS_HEADER..].chunks_exact(abi::HIT_WORDS).take(hits[0] as usize);
    let counters = records.map(|r| {
        let block = first / 256 + u64::from(r[1]) * u64::from(lanes) + u64::from(r[0]);
        (256 * block + u64::from(r[2]), r[3])
    });
    (hits[0], counters.collect(), hits[abi::HITS_BEST])
}

/// Which bytes are free, the guard's bytes before and behind the salt, whether a proxy creates, and the first counter.
type Case<'a> = (&'a [usize], Option<(usize, usize)>, bool, u64);

#[test]
fn every_salt_is_tested_once_whatever_is_free_and_whatever_the_factory_does() {
    let mut random = Random(77);
    let (shape, filter) = build(&Wanted { intervals: vec![(0, u64::MAX)], ..Wanted::default() }, 5);
    let all: Vec<usize> = (0..32).collect();
    let after_caller: Vec<usize> = (20..32).collect();
    // A first counter far from zero shows every byte of it, and begins within a block of 256.
    let far = 0x1234_5678_9abc_ff80;
    let cases: [Case<'_>; 18] = [
        (&all, None, false, far),
        (&all, None, true, far),
        (&all, Some((0, 0)), false, far),
        (&all, Some((20, 0)), true, far),
        (&after_caller, Some((32, 0)), false, far),
        (&after_caller, Some((52, 0)), true, far),
        (&all, Some((64, 0)), true, far),
        (&after_caller, Some((103, 0)), false, far),
        (&all, Some((0, 103)), false, far),
        (&all, Some((32, 32)), true, far),
        (&after_caller, Some((0, 32)), false, far),
        (&[0, 31], Some((51, 52)), false, 0xfe03),
        (&after_caller, None, false, u64::MAX - 700),
        (&[0], None, false, 0),
        (&[31], Some((64, 0)), true, 0),
        (&[2, 17], None, true, 0xfe03),
        (&[0, 5, 9, 13], None, false, 0xffff_fd00),
        (&[3, 4, 11, 12, 19, 20, 27], Some((20, 0)), false, 0x00ff_ffff_ffff_fc00),
    ];
    for (free, guard, create, first) in cases {
        let salts = salts(&mut random, free, guard, create);
        // Three steps of two lanes go past the end where few are left, and stop short of 1,500 where many are.
        let end = u64::MAX >> (64 - 8 * free.len().min(8));
        let last = end.min(first.saturating_add(1500));
        let (count, told, _) = run(&salts, shape, &filter, (first, last), (2, 2, 3));
        let reached = (first / 256 + 5).min(end / 256) * 256 + 255;
        let expected: HashSet<(u64, u32)> = (first..=last.min(reached))
            .map(|counter| (counter, words(&digest(&salts, counter))[0]))
            .collect();
        assert_eq!(count as usize, expected.len(), "{free:?} {guard:?} {create}");
        assert_eq!(told.into_iter().collect::<HashSet<_>>(), expected, "{free:?} {guard:?} {create}");
    }
}

/// A factory that takes fewer bytes than CREATE2 does: the others are in no message.
#[test]
fn a_part_of_the_salt_is_hashed_where_the_factory_takes_no_more() {
    let mut random = Random(31);
    let (shape, filter) = build(&Wanted { intervals: vec![(0, u64::MAX)], ..Wanted::default() }, 5);
    for (own, guard) in [(20..32, (20, 0)), (20..32, (0, 123)), (0..12, (7, 40)), (30..32, (133, 0))] {
        let free: Vec<usize> = own.clone().collect();
        let mut salts = salts(&mut random, &free, Some(guard), false);
        salts.guard.as_mut().unwrap().salt = own;
        let first = 0xfd80;
        let (count, told, _) = run(&salts, shape, &filter, (first, first + 511), (2, 2, 2));
        let expected: HashSet<(u64, u32)> =
            (first..first + 512).map(|counter| (counter, words(&digest(&salts, counter))[0])).collect();
        assert_eq!(count, 512, "{guard:?}");
        assert_eq!(told.into_iter().collect::<HashSet<_>>(), expected, "{guard:?}");
    }
}

/// What the filter says, by its definition.
fn accepts(wanted: &Wanted, digest: &[u8; 20]) -> bool {
    let (head, words) = (top(digest), words(digest));
    wanted.intervals.iter().any(|&(first, last)| (first..=last).contains(&head))
        || wanted.terms.iter().any(|term| {
            (0..8).all(|i| words[i] & term.mask[i] == term.value[i])
                && term.parities.iter().all(|(mask, odd)| {
                    (0..8).map(|i| (words[i] & mask[i]).count_ones()).sum::<u32>() % 2 == u32::from(*odd)
                })
        })
}

#[test]
fn filters_accept_by_their_definition() {
    let mut random = Random(123);
    let salts = salts(&mut random, &[7, 30, 31], None, false);
    let range = (256_003, 256_003 + 4000);
    let digests: Vec<[u8; 20]> = (range.0..=range.1).map(|counter| digest(&salts, counter)).collect();
    let mut wanted = Vec::new();
    // Intervals whose ends are digests of the run, one beside them, or nowhere near; as ranges and as a set.
    for count in [1, 4, 5, 300] {
        let mut intervals =
            vec![(top(&digests[9]), top(&digests[9])), (top(&digests[8]) + 1, top(&digests[8]) + 5)];
        intervals.push((top(&digests[7]) - 5, top(&digests[7]) - 1));
        intervals.push((top(&digests[6]) - (1 << 33), top(&digests[6])));
        intervals.extend((0..count).map(|i| (top(&digests[10 * i + 1]), top(&digests[10 * i + 1]) + 9)));
        intervals.truncate(count);
        wanted.push(Wanted { intervals, ..Wanted::default() });
    }
    wanted.push(Wanted {
        intervals: vec![(0, 1 << 60), (u64::MAX - (1 << 60), u64::MAX)],
        ..Wanted::default()
    });
    // Terms: 12 bits at every place of the 160, some with parities, some of parities alone.
    for parities in [0, 1, 9] {
        let mut terms = Vec::new();
        for place in (0..149).step_by(4) {
            let digest = words(&digests[place * 11]);
            let mut mask = [0u32; 8];
            let bits = if parities == 9 { 0 } else { 12 };
            for bit in place..place + bits {
                mask[bit / 32] |= 1 << (31 - bit % 32);
            }
            let value = std::array::from_fn(|i| digest[i] & mask[i]);
            let parities = (0..parities).map(|_| {
                let mask: [u32; 8] = std::array::from_fn(|i| if i < 5 { random.next() } else { 0 });
                (mask, random.next() & 1 == 1)
            });
            terms.push(Term { mask, value, parities: parities.collect() });
        }
        let intervals = if parities == 1 { vec![(5 << 60, 6 << 60)] } else { Vec::new() };
        wanted.push(Wanted { intervals, terms, ..Wanted::default() });
    }
    for wanted in wanted {
        let (shape, filter) = build(&wanted, 5);
        let (count, told, _) = run(&salts, shape, &filter, range, (4, 4, 4));
        let expected: HashSet<u64> = (range.0..=range.1)
            .zip(&digests)
            .filter(|(_, digest)| accepts(&wanted, digest))
            .map(|(counter, _)| counter)
            .collect();
        assert!(!expected.is_empty() && expected.len() < digests.len(), "{shape:?}: {}", expected.len());
        assert_eq!(count as usize, expected.len(), "{shape:?}");
        assert_eq!(told.into_iter().map(|t| t.0).collect::<HashSet<_>>(), expected);
    }
}

#[test]
fn the_best_score_of_all_salts_is_told() {
    let mut random = Random(9);
    let salts = salts(&mut random, &[29, 30, 31], Some((32, 0)), true);
    let zeros = |d: [u8; 20]| d.iter().filter(|&&b| b == 0).count() as u32;
    let (shape, filter) = build(&Wanted { score: Some(Score::best(Count::Zeros)), ..Wanted::default() }, 5);
    let (count, told, best) = run(&salts, shape, &filter, (0, 4095), (4, 4, 4));
    let scores: Vec<u32> = told.iter().map(|t| zeros(digest(&salts, t.0))).collect();
    assert!(told.iter().zip(&scores).all(|(told, score)| told.1 == *score));
    let expected = (0..4096).map(|counter| zeros(digest(&salts, counter))).max().unwrap();
    assert_eq!(scores.iter().copied().max(), Some(expected));
    assert_eq!(best, expected);
    assert_eq!(scores.iter().collect::<HashSet<_>>().len(), scores.len());
    assert_eq!(count as usize, scores.len());
}

/// Each salt whose address fits and scores, and no other; what is told is the score.
#[test]
fn each_salt_that_fits_and_scores_is_told() {
    let mut random = Random(10);
    let salts = salts(&mut random, &[29, 30, 31], None, false);
    let letters = |d: [u8; 20]| d.iter().flat_map(|b| [b >> 4, b & 15]).filter(|&n| n > 9).count() as u32;
    let tail = Term { mask: [0, 0, 0, 0, 3, 0, 0, 0], value: [0, 0, 0, 0, 2, 0, 0, 0], parities: Vec::new() };
    for (intervals, terms) in [
        (vec![(3 << 60, 5 << 60)], Vec::new()),
        (Vec::new(), vec![tail.clone()]),
        ((0..9).map(|i| (i << 60, (i << 60) + (1 << 58))).collect(), vec![tail]),
        (Vec::new(), Vec::new()),
    ] {
        let score = Score { parts: vec![(3, Count::Letters)], each: true };
        let wanted = Wanted { intervals, terms, score: Some(score) };
        let (shape, filter) = build(&wanted, 5);
        let least = 3 * 16;
        let (count, told, best) = run_from(&salts, shape, &filter, (0, 4095), (4, 4, 4), least);
        let is_parted = !wanted.intervals.is_empty() || !wanted.terms.is_empty();
        let fits = |d: [u8; 20]| !is_parted || accepts(&wanted, &d);
        let expected: HashSet<(u64, u32)> = (0..4096)
            .map(|counter| (counter, digest(&salts, counter)))
            .filter(|(_, digest)| fits(*digest) && 3 * letters(*digest) >= least)
            .map(|(counter, digest)| (counter, 3 * letters(digest)))
            .collect();
        assert!(expected.len() > 50 && expected.len() < 4000, "{}", expected.len());
        assert_eq!((count as usize, best), (expected.len(), least));
        assert_eq!(told.into_iter().collect::<HashSet<_>>(), expected);
    }
}
