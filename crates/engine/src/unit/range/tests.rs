//! Units of ranges against libsecp256k1: each planted key once, none beside the unit, on every kind of device.

use super::*;
use crate::origin::{Secret, public_point};
use crate::unit::tests::devices;
use crate::worker::scanner::digest_of;

fn run(runner: &mut RangeRunner<'_>, unit: &RangeUnit, wanted: &HashSet<(Form, Digest)>) -> Vec<u64> {
    let (stop, tried) = (AtomicBool::new(false), AtomicU64::new(0));
    let spots = runner.run(unit, wanted, &stop, &tried).expect("done").expect("not stopped");
    assert_eq!(tried.into_inner(), unit.count);
    spots
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    warpsmith_entropy::fill(&mut bytes).expect("random");
    u64::from_le_bytes(bytes)
}

/// Keys at the first and last place of a unit, around seams of groups, lanes and threads, and anywhere; and such that lie just
/// beside it, which are not told. From a key on and from its point on the same.
#[test]
fn planted_keys_are_told_once_and_none_beside_the_unit() {
    let before_last = Scalar::from_u64(200_000).negate();
    for (name, devices) in devices() {
        let forms = Form::SCANNED;
        let mut runner = RangeRunner::new(&devices, &forms).expect("proved");
        for (first, count) in [
            (Scalar::from_u64(1), 1),
            (Scalar::from_u64(1), 70_001),
            (Scalar::LAMBDA, 33),
            (Scalar::LAMBDA, 34),
            (Scalar::LAMBDA, 70_001),
            // To the very last key.
            (before_last, 200_000),
        ] {
            let last = count - 1;
            let mut offsets = vec![0, last, last / 2, 16.min(last), 17.min(last), 32.min(last), 33.min(last)];
            offsets.extend((0..40).map(|_| random() % count));
            let plant = |(at, offset): (usize, &u64)| {
                let form = forms[at % forms.len()];
                (form, digest_of(first.add(Scalar::from_u64(*offset)), form).expect("a key"))
            };
            let mut wanted: HashSet<_> = offsets.iter().enumerate().map(plant).collect();
            for beside in [first.sub(Scalar::from_u64(1)), first.add(Scalar::from_u64(count))] {
                wanted.extend(forms.iter().filter_map(|form| Some((*form, digest_of(beside, *form)?))));
            }
            // A digest that is right, in a form in which it is not wanted.
            let middle = digest_of(first.add(Scalar::from_u64(last / 3)), Form::X).expect("a key");
            if !offsets.contains(&(last / 3)) {
                wanted.insert((Form::Taproot, middle));
            }
            offsets.sort_unstable();
            offsets.dedup();
            let key = RangeStart::Key(first.to_be_bytes());
            let point = Secret::from_bytes(&first.to_be_bytes()).expect("a key").public_key();
            // A point that somebody made of random bits lies near no end of the keys.
            let point = (first == Scalar::LAMBDA).then_some(RangeStart::Point(point));
            for start in [Some(key), point].into_iter().flatten() {
                let told = run(&mut runner, &RangeUnit { start, count }, &wanted);
                assert_eq!(told, offsets, "{count} keys from {first:?} on {name}, {start:?}");
            }
        }
    }
}

/// What is computed of a unit at home is what libsecp256k1 says.
#[test]
fn points_of_a_unit_are_those_of_its_keys() {
    let first = Secret::random().expect("random");
    let offsets = [0, 1, 77, 1 << 40, u64::MAX];
    let expected: Vec<_> = offsets
        .iter()
        .map(|offset| {
            let key = first.moved(Scalar::from_u64(*offset), 0, false).expect("a key");
            Some(public_point(&key.public_key()))
        })
        .collect();
    for start in [RangeStart::Key(*first.as_bytes()), RangeStart::Point(first.public_key())] {
        assert_eq!(RangeUnit { start, count: 5 }.points(&offsets), expected);
    }
}

#[test]
fn only_keys_make_a_unit() {
    let unit = |first: Scalar, count| RangeUnit { start: RangeStart::Key(first.to_be_bytes()), count };
    let last = Scalar::from_u64(1).negate();
    assert!(unit(Scalar::from_u64(1), RangeUnit::MOST).is_sound() && unit(last, 1).is_sound());
    assert!(!unit(last, 2).is_sound() && !unit(Scalar::ZERO, 1).is_sound());
    assert!(
        !unit(Scalar::from_u64(1), 0).is_sound() && !unit(Scalar::LAMBDA, RangeUnit::MOST + 1).is_sound()
    );
    assert!(!RangeUnit { start: RangeStart::Key([0xff; 32]), count: 1 }.is_sound());
    let devices = Devices::cpu().expect("a processor");
    let mut runner = RangeRunner::new(&devices, &[Form::X]).expect("proved");
    let (stop, tried) = (AtomicBool::new(false), AtomicU64::new(0));
    assert!(runner.run(&unit(last, 2), &HashSet::new(), &stop, &tried).is_err());
    stop.store(true, Ordering::Relaxed);
    assert_eq!(
        runner.run(&unit(Scalar::LAMBDA, 1 << 40), &HashSet::new(), &stop, &tried).expect("none"),
        None
    );
}
