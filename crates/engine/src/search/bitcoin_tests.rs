//! Whole sessions on the processor for every type of Bitcoin address.

use std::collections::BTreeSet;
use std::time::Duration;

use warpsmith_chain::coin::{AddressType, BITCOIN, CoinAddress};
use warpsmith_chain::{KeyTarget, Target};
use warpsmith_device::Selector;
use warpsmith_pattern::{Options, compile};

use super::*;
use crate::origin::{Secret, public_point};
use crate::space::Subject;
use crate::{PublicKey, join, parse_public_key};

const LONG: Duration = Duration::from_secs(120);

/// Runs a search and hands over its matches.
fn search(
    target: &CoinAddress,
    patterns: &[&str],
    split: Option<PublicKey>,
    count: u64,
    each: &mut dyn FnMut(&Match),
) -> Outcome {
    let patterns = compile(patterns, target, &Options::default()).expect("possible patterns");
    let job = Job {
        subject: Subject::Key(target),
        wanted: Wanted::Patterns(&patterns),
        split,
        count: Some(count),
        time_limit: Some(LONG),
        interval: LONG,
        pause: None,
    };
    let devices = Devices::open(&[Selector::Cpu(None)], Some(1)).expect("a processor");
    let outcome = run(&job, &devices, &AtomicBool::new(false), &mut |event| {
        match event {
            Event::Found(found) => found.iter().for_each(&mut *each),
            Event::Warning(text) => panic!("{text}"),
            Event::Progress(_) | Event::Note(_) => {}
        }
        Ok(())
    });
    outcome.expect("a search")
}

/// A start of some character after what all texts have, and an end, for this target.
fn some_patterns(target: &CoinAddress) -> [&'static str; 2] {
    match target.encoding().sample(0.0).as_str() {
        start if start.starts_with('1') => ["1B", "..z"],
        start if start.starts_with('3') => ["3C", "..z"],
        start if start.starts_with('2') => ["2N", "..z"],
        start if start.starts_with("bc1q") => ["bc1qc", "..z"],
        start if start.starts_with("tb1q") => ["tb1qc", "..z"],
        start if start.starts_with("bc1p") => ["bc1pc", "..z"],
        start if start.starts_with("tb1p") => ["tb1pc", "..z"],
        // Test addresses of keys begin with m or n.
        _ => ["mx", "..z"],
    }
}

#[test]
fn keys_of_every_type_and_network_have_the_addresses_printed() {
    for target in BITCOIN.addresses() {
        for pattern in some_patterns(&target) {
            let mut found = 0;
            search(&target, &[pattern], None, 2, &mut |m| {
                let secret = m.secret().expect("not split");
                let public = secret.public_key();
                let address = target.encode(&target.digest(&public_point(&public)));
                assert_eq!(m.address, address, "{target:?}");
                assert_eq!(m.public_key(), Some(&public.serialize()));
                let fits = match pattern.strip_prefix("..") {
                    Some(end) => address.ends_with(end),
                    None => address.starts_with(pattern),
                };
                assert!(fits, "{address} for {pattern}");
                found += 1;
            });
            assert_eq!(found, 2, "{target:?} {pattern}");
        }
    }
}

/// The end of a base58 text is a checksum, so all candidates pass the filter: the workers' threads look at the texts,
/// and what is dropped is counted.
#[test]
fn ends_of_base58_are_decided_on_the_text() {
    for address_type in [AddressType::P2pkh, AddressType::P2pkhUncompressed, AddressType::P2sh] {
        let target = BITCOIN.main(address_type);
        for pattern in ["..77", "..ab..", "/[xy]zz$/"] {
            let mut addresses = Vec::new();
            let outcome = search(&target, &[pattern], None, 2, &mut |m| addresses.push(m.address.clone()));
            assert_eq!((outcome.ended, addresses.len()), (Ended::Count, 2));
            assert!(outcome.false_hits > 0);
            for address in &addresses {
                let fits = match pattern {
                    "..77" => address.ends_with("77"),
                    "..ab.." => address.contains("ab"),
                    _ => address.ends_with("xzz") || address.ends_with("yzz"),
                };
                assert!(fits, "{address} for {pattern}");
            }
        }
    }
}

/// Split results of every type rejoin, whatever the sign and the image.
#[test]
fn split_keys_of_every_type_rejoin() {
    for address_type in AddressType::ALL {
        let target = BITCOIN.main(address_type);
        let own = Secret::random().expect("random");
        let given: String = own.public_key().serialize().iter().map(|b| format!("{b:02x}")).collect();
        let public = parse_public_key(&given).expect("a public key");
        let [pattern, _] = some_patterns(&target);
        let mut kinds = BTreeSet::new();
        search(&target, &[pattern], Some(public), 40, &mut |m| {
            let Solution::Split { public_key, split } = m.solution else { panic!("not split: {m:?}") };
            kinds.insert((split.endo, split.negate));
            let joined = join(&own, &split, &target, &m.address, Some(&public_key)).expect("one pair");
            assert_eq!(joined.address, m.address, "{address_type:?}");
            let stranger = Secret::random().expect("random");
            assert!(join(&stranger, &split, &target, &m.address, None).is_err());
        });
        // Each of forty is one of six kinds at random, or of three where the sign does not matter: all of them but for
        // a chance of 6 * (5/6)^40 < 0.5 %; half of them always.
        let least = if target.is_taproot() { 2 } else { 3 };
        assert!(kinds.len() >= least, "{address_type:?}: {kinds:?}");
    }
}

/// A card is not asked to hand over every candidate: the processor steps in, and the person is told.
#[test]
fn ends_of_base58_are_left_to_the_processor() {
    use crate::Inline;
    use crate::gpu::Gpu;
    use std::sync::Arc;

    let Some(card) = warpsmith_device::survey().devices.into_iter().find(|d| d.can_build().is_ok()) else {
        eprintln!("SKIPPED: this machine has no OpenCL or CUDA");
        return;
    };
    let devices = Devices::of(vec![Arc::new(Gpu::new(card, Inline::Auto))]);
    let target = BITCOIN.main(AddressType::P2pkh);
    let patterns = compile(["..777"], &target, &Options::default()).expect("possible");
    let job = Job {
        subject: Subject::Key(&target),
        wanted: Wanted::Patterns(&patterns),
        split: None,
        count: Some(1),
        time_limit: Some(LONG),
        interval: LONG,
        pause: None,
    };
    let (mut warnings, mut addresses) = (Vec::new(), Vec::new());
    let outcome = run(&job, &devices, &AtomicBool::new(false), &mut |event| {
        match event {
            Event::Found(found) => addresses.extend(found.iter().map(|found| found.address.clone())),
            Event::Warning(text) => warnings.push(text),
            Event::Progress(_) | Event::Note(_) => {}
        }
        Ok(())
    });
    assert_eq!(outcome.expect("the processor finds it").matches, 1);
    assert!(addresses[0].ends_with("777"));
    assert!(warnings[0].contains("is not used"), "{warnings:?}");
    assert!(warnings[1].contains("the processor searches instead"), "{warnings:?}");
}
