//! Units against a reference that knows the secret and walks nothing: every candidate, on every kind of device.

use std::sync::atomic::{AtomicBool, AtomicU64};

use warpsmith_chain::KeyTarget;
use warpsmith_chain::coin::{AddressType, BITCOIN};
use warpsmith_chain::ethereum::{Account, Deployment, Factory, SaltRequest};
use warpsmith_chain::nostr::Npub;
use warpsmith_pattern::{Feature, Options, Patterns, Ranking, compile};

use super::runner::is_share;
use super::*;
use crate::cpu::Cpu;
use crate::devices::Devices;
use crate::gpu::tests::pocl;
use crate::origin::{Secret, public_point};
use crate::search::{Show, Wanted};
use crate::simd::{self, Simd};
use crate::space::Subject;
use crate::worker::Backend;

/// Entries of the units here: what the card of the tests has, so that all devices can do the same unit.
const HALF: u32 = 16;

pub(super) fn devices() -> Vec<(&'static str, Devices)> {
    let cpu = |simd, threads| {
        let device = Cpu::new(simd, threads).with_half(HALF).expect("any number of entries");
        Devices::of(vec![device])
    };
    let mut all = vec![
        ("one portable thread", cpu(Simd::Portable, 1)),
        ("three threads of the best lanes", cpu(simd::detect(), 3)),
    ];
    all.extend(pocl().map(|gpu| ("OpenCL", Devices::of(vec![std::sync::Arc::new(gpu)]))));
    all
}

fn run(runner: &mut UnitRunner<'_>, unit: &Unit, bits: u32, beat: u32) -> Covered {
    let (stop, tried) = (AtomicBool::new(false), AtomicU64::new(0));
    let covered = runner.run(unit, bits, beat, &stop, &tried).expect("done").expect("not stopped");
    let tried = u128::from(tried.into_inner());
    assert!(tried >= unit.candidates(), "{tried} of {}", unit.candidates());
    covered
}

/// Shares and matches of all keys of a unit, by the secret.
fn reference(
    secret: &Secret,
    unit: &KeyUnit,
    target: &dyn KeyTarget,
    patterns: &Patterns,
    bits: u32,
) -> Covered {
    let mut covered = Covered::default();
    let mut keys = 0;
    for step in 0..unit.steps {
        for (index, orbit, minus) in (0..=unit.half)
            .flat_map(|index| (0..unit.orbits).flat_map(move |o| [(index, o, false), (index, o, true)]))
            .filter(|&(index, orbit, minus)| index > 0 || (orbit == 0 && !minus))
        {
            for image in 0..3 {
                for negate in if unit.signs { &[false, true][..] } else { &[false] } {
                    let place = Place { lane: 0, step, index, minus, orbit, image, negate: *negate };
                    let key = secret.moved(place.offset(unit.half), image, *negate).expect("a key");
                    let digest = target.digest(&public_point(&key.public_key()));
                    keys += 1;
                    let spot = KeyUnit::spot(&place);
                    assert_eq!(unit.place(spot), Some(place));
                    if is_share(&digest, bits) {
                        covered.shares.push(spot);
                    }
                    if patterns.find(&target.encode(&digest)).is_some() {
                        covered.matches.push(spot);
                    }
                }
            }
        }
    }
    assert_eq!(keys, Unit::Keys(*unit).candidates());
    let all: Vec<f64> = (0..unit.steps << LOW_BITS).filter_map(|spot| Unit::Keys(*unit).part(spot)).collect();
    for (at, part) in all.iter().enumerate().step_by(97) {
        assert!((part - at as f64 / keys as f64).abs() < 1e-9, "spots are spread evenly and in order");
    }
    covered.shares.sort_unstable();
    covered.matches.sort_unstable();
    covered.matches.truncate(UnitRunner::MOST_MATCHES);
    covered
}

/// Every candidate of a unit is looked at once, none outside it, on every device: first and last group, seams between lanes and
/// between threads, units smaller than a step of all lanes. Shares are those of the reference, all of them.
fn assert_exact(target: &dyn KeyTarget, pattern: &str, sizes: &[u64]) {
    let patterns = compile([pattern], target, &Options::default()).expect("possible");
    for (name, devices) in devices() {
        let mut runner =
            UnitRunner::new(&devices, Subject::Key(target), Wanted::Patterns(&patterns)).expect("proved");
        let Outfit { half, orbits, signs, .. } = runner.outfit();
        assert_eq!(half, HALF);
        assert_eq!((orbits, signs), KeyUnit::relatives(target.form()), "{name}");
        for &steps in sizes {
            let secret = Secret::random().expect("random");
            let unit = KeyUnit { point: secret.public_key(), half, orbits, signs, steps };
            let expected = reference(&secret, &unit, target, &patterns, 4);
            let covered = run(&mut runner, &Unit::Keys(unit), 4, 0);
            assert_eq!(covered, expected, "{steps} groups on {name}");
        }
    }
}

#[test]
fn units_of_x_are_exact() {
    assert_exact(&Npub, "q", &[1, 7, 67]);
}

#[test]
fn units_of_hashed_points_are_exact() {
    assert_exact(&Account, "7", &[1, 65]);
    assert_exact(&BITCOIN.main(AddressType::P2wpkh), "bc1qq", &[9]);
}

#[test]
fn units_of_taproot_are_exact() {
    assert_exact(&BITCOIN.main(AddressType::P2tr), "bc1pq", &[17]);
}

/// T17: one larger unit has the same shares on every device, whatever its lanes; also where it has to be asked for another number
/// of entries than its own.
#[test]
fn devices_agree_on_shares() {
    let patterns = compile(["cafecafe"], &Npub, &Options::default()).expect("possible");
    let point = Secret::random().expect("random").public_key();
    for half in [HALF, 100] {
        let unit = Unit::Keys(KeyUnit { point, half, orbits: 3, signs: false, steps: 300 });
        let bits = unit.candidates().ilog2() - 9;
        let mut seen: Vec<(&str, Covered)> = Vec::new();
        for (name, devices) in devices() {
            let mut runner =
                UnitRunner::new(&devices, Subject::Key(&Npub), Wanted::Patterns(&patterns)).expect("proved");
            seen.push((name, run(&mut runner, &unit, bits, 0)));
        }
        let (first, covered) = &seen[0];
        assert!((300..1200).contains(&covered.shares.len()), "{} shares", covered.shares.len());
        for (name, other) in &seen[1..] {
            assert_eq!(other, covered, "{name} and {first}, {half} entries");
        }
    }
}

/// A part of a unit has the shares of that part, moved by what is said; units that a search does not have are refused, by a runner
/// that goes on working.
#[test]
fn parts_of_units_are_units_and_others_are_refused() {
    let patterns = compile(["cafecafe"], &Npub, &Options::default()).expect("possible");
    let devices = Devices::cpu().expect("a processor");
    let mut runner =
        UnitRunner::new(&devices, Subject::Key(&Npub), Wanted::Patterns(&patterns)).expect("proved");
    let point = Secret::random().expect("random").public_key();
    let keys = KeyUnit { point, half: 16, orbits: 3, signs: false, steps: 300 };
    let unit = Unit::Keys(keys);
    let whole = run(&mut runner, &unit, 6, 0);
    for (first, length) in [(0, 300), (0, 7), (77, 120), (299, 1)] {
        let (part, shift) = unit.stretch(first, length).expect("a part");
        assert_eq!(part.length(), length);
        let shares: Vec<u64> = run(&mut runner, &part, 6, 0).shares.iter().map(|spot| spot + shift).collect();
        let is_inside = |spot: &u64| (first..first + length).contains(&(spot >> LOW_BITS));
        assert_eq!(shares, whole.shares.iter().copied().filter(is_inside).collect::<Vec<_>>());
    }
    assert!(unit.stretch(1, 300).is_none() && unit.stretch(0, 0).is_none());
    let salts = Unit::Salts(SaltUnit { base: [7; 32], first: 5, last: 104 });
    let part = SaltUnit { base: [7; 32], first: 15, last: 24 };
    assert_eq!((salts.length(), salts.stretch(10, 10)), (100, Some((Unit::Salts(part), 10))));
    assert_eq!(runner.refusal(&unit), None);
    let others =
        [KeyUnit { orbits: 1, ..keys }, KeyUnit { signs: true, ..keys }, KeyUnit { half: 1000, ..keys }];
    for other in others {
        assert!(runner.refusal(&Unit::Keys(other)).is_some(), "{other:?}");
    }
    assert!(runner.refusal(&salts).is_some());
}

/// A flood of hits, far more than a launch has room for, is told whole.
#[test]
fn floods_are_told_whole() {
    let patterns = compile(["qqqqqqqq"], &Npub, &Options::default()).expect("possible");
    let point = Secret::random().expect("random").public_key();
    let unit = Unit::Keys(KeyUnit { point, half: HALF, orbits: 3, signs: false, steps: 500 });
    let told: Vec<Covered> = devices()
        .iter()
        .map(|(_, devices)| {
            let mut runner =
                UnitRunner::new(devices, Subject::Key(&Npub), Wanted::Patterns(&patterns)).expect("proved");
            run(&mut runner, &unit, 2, 0)
        })
        .collect();
    let share = told[0].shares.len() as f64 / unit.candidates() as f64;
    assert!((0.24..0.26).contains(&share), "{share}");
    assert!(told.iter().all(|covered| *covered == told[0]));
}

#[test]
fn units_of_salts_are_exact_and_scores_are_too() {
    let factory = Factory::find("createx").expect("known");
    let request = SaltRequest { caller: Some([0x22; 20]), ..SaltRequest::default() };
    let target = Deployment::create3(factory, None, None, &request).expect("free bytes");
    let subject = Subject::Salt(&target);
    let leading = Ranking::new(Feature::LeadingZeros);
    let wanted = Wanted::best(&leading);
    for (name, devices) in devices() {
        let mut runner = UnitRunner::new(&devices, subject, wanted).expect("proved");
        for (first, last, beat) in [(0, 0, 0), (5, 70_000, 0), (255, 300, 0), (1 << 40, (1 << 40) + 9999, 1)]
        {
            let unit = Unit::Salts(SaltUnit { base: [7; 32], first, last });
            let spots: Vec<u64> = (0..=last - first).collect();
            let mut expected = Covered::default();
            for (spot, digest) in spots.iter().zip(check_spots(&unit, subject, &spots)) {
                let digest = digest.expect("a salt");
                if is_share(&digest, 5) {
                    expected.shares.push(*spot);
                }
                if digest.as_bytes().iter().take_while(|byte| **byte == 0).count() > beat
                    && expected.matches.len() < UnitRunner::MOST_MATCHES
                {
                    expected.matches.push(*spot);
                }
            }
            assert_eq!(run(&mut runner, &unit, 5, beat as u32), expected, "{first}..={last} on {name}");
        }
    }
    let (cpu, zeros) = (Devices::cpu().expect("a processor"), Ranking::new(Feature::Zeros));
    let refused = UnitRunner::new(&cpu, subject, Wanted::best(&zeros)).err();
    assert!(refused.expect("refused").to_string().contains("not of the most zero bytes"));
    let ties = Wanted::Best { ranking: &leading, show: Show::Ties, enough: None };
    let refused = UnitRunner::new(&cpu, subject, ties).err();
    assert!(refused.expect("refused").to_string().contains("a unit can be proved"));
}

/// What a worker tells leads home to the key, and nothing else does: other spots, other units, spots that are none.
#[test]
fn spots_lead_home() {
    let patterns = compile(["q"], &Npub, &Options::default()).expect("possible");
    let (subject, wanted) = (Subject::Key(&Npub), Wanted::Patterns(&patterns));
    let devices = Devices::cpu().expect("a processor");
    let mut runner = UnitRunner::new(&devices, subject, wanted).expect("proved");
    let Outfit { half, orbits, signs, .. } = runner.outfit();
    for owner in [None, Some(Secret::random().expect("random"))] {
        let secret = Secret::random().expect("random");
        let split = owner.as_ref().map(Secret::public_key);
        let point = match &split {
            Some(owner) => owner.combine(&secret.public_key()).expect("not infinity"),
            None => secret.public_key(),
        };
        let unit = KeyUnit { point, half, orbits, signs, steps: 3 };
        let covered = run(&mut runner, &Unit::Keys(unit), 8, 0);
        assert!(covered.matches.len() > 10);
        let origin = |secret: &Secret| UnitOrigin::Key { secret: secret.clone(), split, unit };
        for &spot in &covered.matches {
            let found = settle(subject, wanted, 0, origin(&secret), spot, "w").expect("true");
            assert!(found.address.starts_with("npub1q"));
            let place = unit.place(spot).expect("a place");
            match &owner {
                None => assert_eq!(
                    found.secret().map(|key| *key.as_bytes()),
                    secret.moved(place.offset(half), place.image, false).map(|key| *key.as_bytes())
                ),
                Some(owner) => {
                    let split = found.split().expect("split");
                    crate::join::join(owner, split, &Npub, &found.address, None).expect("joins");
                }
            }
        }
        let others = (0..4000).filter(|spot| unit.place(*spot).is_some() && !covered.matches.contains(spot));
        for spot in others.take(20) {
            // Some spots match and were left out, being more than are told.
            if let Ok(found) = settle(subject, wanted, 0, origin(&secret), spot, "w") {
                assert!(found.address.starts_with("npub1q"));
            }
        }
        for spot in [3 << LOW_BITS, 6, u64::MAX, 1, u64::from(half + 1) << 6, 1 << 5, 1 << 3] {
            assert!(settle(subject, wanted, 0, origin(&secret), spot, "w").is_err(), "{spot:x}");
            assert_eq!(check_spots(&Unit::Keys(unit), subject, &[spot]), [None]);
        }
    }
}

#[test]
fn wide_numbers_are_reduced() {
    use num_bigint::BigUint;
    let order = BigUint::parse_bytes(b"fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16)
        .expect("a number");
    for _ in 0..200 {
        let mut bytes = [0; 64];
        warpsmith_entropy::fill(&mut bytes).expect("random");
        let key = Secret::from_wide(&bytes).expect("a key");
        assert_eq!(BigUint::from_bytes_be(key.as_bytes()), BigUint::from_bytes_be(&bytes) % &order);
    }
    assert!(Secret::from_wide(&[0; 64]).is_none() && Secret::from_wide(&[0xff; 64]).is_none());
}
