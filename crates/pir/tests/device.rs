//! Hints by devices against the reference, byte for byte. PoCL is a device of every machine that has it; cards take part
//! where there are any.

use std::sync::Arc;

use warpsmith_device::{Device, survey};
use warpsmith_hash::Lanes;
use warpsmith_pir::device::{self, Host, Tuning};
use warpsmith_pir::hints::measure::pseudorandom;
use warpsmith_pir::hints::{Hints, reference};
use warpsmith_pir::{Choice, Error, Key, Params, Prf, Result};

/// Every device, each card once.
fn devices() -> Vec<Arc<dyn Device>> {
    let survey = survey();
    let usable = |device: &Arc<dyn Device>| device.can_build().is_ok();
    let devices: Vec<_> = survey.devices.into_iter().filter(usable).collect();
    if devices.is_empty() {
        println!("SKIPPED: this machine has no device: {:?}", survey.missing);
    }
    devices
}

fn host() -> Host {
    Host { lanes: Lanes::detect(), threads: 2 }
}

fn params(entries: u64, entry_size: u32, lambda: u32, block_size: Option<u32>) -> Params {
    Params::new(Choice { lambda, block_size, ..Choice::new(entries, entry_size) }).unwrap()
}

/// Pushes a database in pieces.
fn pieces(database: &[u8], length: usize) -> impl FnOnce(Push<'_>) -> Result<()> {
    move |push| database.chunks(length).try_for_each(push)
}

/// What takes the pieces.
type Push<'a> = &'a mut dyn FnMut(&[u8]) -> Result<()>;

/// All hints of a shape, in windows of a few blocks and launches of one step; then some ids only.
fn check(p: &Params) {
    let database = pseudorandom(p.entries() as usize * p.entry_size());
    let reader = reference::Database::new(p, &database);
    for device in devices() {
        let key = Key::random().unwrap();
        let prf = Prf::new(&key, p, Lanes::detect());
        let (m, q) = (p.regular(), p.backups());
        let small = Tuning { window: 8 * 64 * p.block_bytes() as u64, blocks: 4 };
        let far = (1 << 36) + 16;
        for (tuning, piece, regular, backups) in
            [(small, 1000, 0..m, m..m + q), (Tuning::default(), usize::MAX, 16..m.min(48), far..far + 32)]
        {
            let made = device::hints(
                p,
                device.as_ref(),
                host(),
                &tuning,
                &key,
                regular.clone(),
                backups.clone(),
                pieces(&database, piece),
            );
            let made: Hints = made.unwrap();
            for (id, &cutoff) in regular.chain(backups).zip(&made.skeleton.cutoffs) {
                assert_eq!(cutoff, reference::cutoff(&prf, p.blocks(), id), "{p:?}, id {id}");
            }
            let expected = reference::hints(&prf, &reader, &made.skeleton);
            assert!(made == expected, "{}, {p:?}", device.info().id);
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
        params(130, 4096, 1, Some(16)),
    ] {
        check(&p);
    }
}

/// More than 65,536 blocks: several blocks share the upper half of nearly every order, also of the cutoff.
#[test]
fn many_blocks_with_many_ties() {
    for block_size in [1, 3] {
        let p = params(70_001 * u64::from(block_size), 8, 16 / block_size, Some(block_size));
        check(&p.with_backups(16).unwrap());
    }
}

#[test]
fn large_blocks() {
    for (block_size, entry_size) in [(4096, 40), (50_000, 40)] {
        let p = params(5 * u64::from(block_size) - 7, entry_size, 1, Some(block_size));
        let database = pseudorandom(p.entries() as usize * p.entry_size());
        let reader = reference::Database::new(&p, &database);
        for device in devices() {
            let key = Key::random().unwrap();
            let prf = Prf::new(&key, &p, Lanes::detect());
            // The hints of a few ids only: the reference is slow.
            let (regular, backups) = (32..64, 60_000..60_016);
            let stream = pieces(&database, 123_457);
            let tuning = Tuning::default();
            let made =
                device::hints(&p, device.as_ref(), host(), &tuning, &key, regular, backups, stream).unwrap();
            assert!(made == reference::hints(&prf, &reader, &made.skeleton), "{}", device.info().id);
        }
    }
}

/// The whole offline phase, and the benchmark.
#[test]
fn offline_and_measure() {
    let p = params(1000, 40, 2, None);
    let database = pseudorandom(p.entries() as usize * p.entry_size());
    for device in devices() {
        let stream = pieces(&database, 7777);
        let (key, made) = device::offline(&p, device.as_ref(), Lanes::detect(), 2, stream).unwrap();
        let prf = Prf::new(&key, &p, Lanes::detect());
        let reader = reference::Database::new(&p, &database);
        assert!(made == reference::hints(&prf, &reader, &made.skeleton), "{}", device.info().id);
        let figures = device::measure(&p, device.as_ref(), Lanes::detect(), 2, 20).unwrap();
        assert_eq!((figures.verified, figures.pairs), (32, p.pairs()));
    }
}

#[test]
fn a_stream_of_the_wrong_length_is_refused() {
    let p = params(1000, 40, 2, None);
    let database = pseudorandom(40_001);
    for device in devices() {
        for length in [0, 39_999, 40_001] {
            let stream = pieces(&database[..length], 5000);
            let made = device::offline(&p, device.as_ref(), Lanes::detect(), 1, stream);
            assert!(matches!(made, Err(Error::Format { .. })), "{length} bytes");
        }
    }
}
