//! Self-tests: keys are planted where a walk must pass, and every one must come back, once.
//!
//! The expected keys are computed by libsecp256k1 and encoded by the target; the device sees points and a
//! filter, as in a real search.

use std::collections::BTreeMap;

use warpsmith_curve::walk::Place;
use warpsmith_pattern::{Options, compile};
use warpsmith_target::{KeyTarget, Recipe, TARGETS};

use crate::device::Devices;
use crate::error::{Error, Result};
use crate::origin::{Origin, Recovered, Secret, public_point};
use crate::worker::{Backend, Shape};

/// What a self-test proved on one device.
#[derive(Clone, Debug)]
pub struct SelfTest {
    /// The device.
    pub device: String,
    /// The target.
    pub target: &'static str,
    /// The kind of pattern.
    pub case: &'static str,
    /// Keys planted and found.
    pub planted: usize,
}

/// A kind of pattern, made from the text it shall find.
struct Case {
    name: &'static str,
    /// Plants in one search; the rest is searched one at a time.
    together: usize,
    pattern: fn(&str) -> String,
}

/// Enough characters that nothing but the planted key matches.
const CASES: [Case; 7] = [
    Case { name: "prefix", together: 1, pattern: |body| body[..12].to_owned() },
    Case { name: "many prefixes", together: usize::MAX, pattern: |body| body[..12].to_owned() },
    Case { name: "wildcard", together: 1, pattern: |body| format!("{}?{}", &body[..3], &body[4..14]) },
    Case { name: "suffix", together: 1, pattern: |body| format!("..{}", &body[body.len() - 12..]) },
    Case {
        name: "prefix and suffix",
        together: 1,
        pattern: |body| format!("{}..{}", &body[..2], &body[body.len() - 10..]),
    },
    Case { name: "contains", together: 1, pattern: |body| format!("..{}..", &body[17..29]) },
    Case {
        name: "regex",
        together: 1,
        pattern: |body| format!("/^{}[{}z].{}/", &body[..2], &body[2..3], &body[4..14]),
    },
];

/// Steps walked: the first, one between and the last are planted.
const STEPS: u64 = 3;

/// The places worth planting: first, second, middle and last of everything that has an edge.
fn places(shape: &Shape) -> Vec<Place> {
    let mut places = Vec::new();
    let indices = [0, 1, 2, shape.half / 2, shape.half - 1, shape.half];
    // Every lane, step, index, sign, orbit and image occurs with every other's edge over the list, without
    // the full product: the counters run at coprime paces.
    let lanes: Vec<u32> = match shape.lanes {
        0..=16 => (0..shape.lanes).collect(),
        n => vec![0, 1, 31, 32, 33, n / 2 - 1, n / 2, n - 33, n - 32, n - 2, n - 1],
    };
    for (n, &index) in indices.iter().cycle().take(indices.len() * 18).enumerate() {
        let centre = index == 0;
        places.push(Place {
            lane: lanes[n % lanes.len()],
            step: (n as u64 / 5) % STEPS,
            index,
            minus: !centre && n / indices.len() % 2 == 1,
            orbit: if centre { 0 } else { (n / indices.len() / 2 % 3) as u8 },
            image: (n / indices.len() / 6 % 3) as u8,
            negate: false,
        });
    }
    places.sort();
    places.dedup();
    places
}

/// The targets the walks compute.
fn searched() -> impl Iterator<Item = &'static dyn KeyTarget> {
    TARGETS.iter().copied().filter(|target| target.recipe() == Recipe::X)
}

/// Proves every target and kind of pattern on every device.
pub fn selftest(devices: &Devices, report: &mut dyn FnMut(&SelfTest)) -> Result<()> {
    for device in &devices.list {
        for target in searched() {
            for case in &CASES {
                let planted = plant(device.as_ref(), target, case, usize::MAX)?;
                report(&SelfTest { device: device.id(), target: target.name(), case: case.name, planted });
            }
        }
    }
    Ok(())
}

/// The test at every start. A card is tested with the very program that will search: it compiles for a few ranges or
/// for a set, and a search with one short prefix shows all of its lanes at once.
pub(crate) fn short(device: &dyn Backend, target: &dyn KeyTarget, patterns: usize) -> Result<()> {
    if device.card().is_some() && (1..=4).contains(&patterns) {
        return sample(device, target, patterns);
    }
    if device.card().is_none() {
        plant(device, target, &CASES[0], 8)?;
    }
    plant(device, target, &CASES[1], 128).map(drop)
}

/// Searches for prefixes so short that many keys of a few steps have them: every hit is recomputed, none may come
/// twice, their number must fit the number of keys, every sign, orbit and image must occur, and a planted key is
/// among them.
fn sample(device: &dyn Backend, target: &dyn KeyTarget, patterns: usize) -> Result<()> {
    let fail = |what: String| Error::SelfTest {
        device: device.id(),
        what: format!("{} sample: {what}", target.name()),
    };
    let secret = Secret::random()?;
    let point = Origin::known(secret.clone()).point().ok_or_else(|| fail("no origin".to_owned()))?;
    let origin = Origin::known(secret);
    let text_at = |shape: &Shape, place: &Place| -> Result<String> {
        match origin.recover(place.offset(shape.half, shape.stride), place.image) {
            Some(Recovered::Key(key)) => Ok(target.encode(&target.digest(&public_point(&key.public_key())))),
            _ => Err(fail(format!("{place:?} has no key"))),
        }
    };
    let shape = {
        let patterns =
            compile(["qqqqqqqqqqqq"], target, &Options::default()).map_err(|e| fail(e.to_string()))?;
        device.worker(&patterns.filter(device.max_false())).map_err(fail)?.shape()
    };
    // The last key of the last step of the last lane, and some hundred others that look like it.
    let keys = shape.lanes as f64 * (18 * shape.half as u64 + 3) as f64 * STEPS as f64;
    let length = ((keys / 64.0).log2() / 5.0).floor().max(1.0) as usize;
    let (lane, step, index) = (shape.lanes - 1, STEPS - 1, shape.half);
    let planted = Place { lane, step, index, minus: true, orbit: 2, image: 2, negate: false };
    let text = text_at(&shape, &planted)?;
    let wanted = &body(target, &text)[..length];
    // As many patterns as the job has, so that the same program is built; the others match next to nothing.
    let others = ["qqqqqqqqqqqq", "zzzzzzzzzzzz", "llllllllllll"].into_iter().take(patterns - 1);
    let set = compile(std::iter::once(wanted).chain(others), target, &Options::default());
    let set = set.map_err(|e| fail(e.to_string()))?;
    let mut worker = device.worker(&set.filter(device.max_false())).map_err(fail)?;
    worker.start(point).map_err(fail)?;
    let mut seen = BTreeMap::new();
    for _ in 0..STEPS {
        for hit in worker.step().map_err(fail)?.hits {
            *seen.entry(hit.place).or_insert(0u32) += 1;
        }
    }
    if !seen.contains_key(&planted) {
        return Err(fail(format!("the key at {planted:?} was missed")));
    }
    let expected = keys * set.odds();
    if (seen.len() as f64 - expected).abs() > 6.0 * expected.sqrt() + 6.0 {
        return Err(fail(format!("{} keys found where {expected:.0} were to be expected", seen.len())));
    }
    let mut kinds = [false; 18];
    for (place, times) in &seen {
        if *times > 1 {
            return Err(fail(format!("the key at {place:?} came back {times} times")));
        }
        if set.find(&text_at(&shape, place)?).is_none() {
            return Err(fail(format!("the key at {place:?} is not what was searched for")));
        }
        if place.index > 0 {
            kinds[(place.image * 6 + place.orbit * 2 + u8::from(place.minus)) as usize] = true;
        }
    }
    // With 500 keys the chance that one of eighteen kinds is absent is below 10^-11.
    if expected > 500.0 && kinds.contains(&false) {
        return Err(fail("a sign, orbit or image never occurs".to_owned()));
    }
    Ok(())
}

/// Plants keys and searches for them; returns how many came back, which is all or an error.
fn plant(device: &dyn Backend, target: &dyn KeyTarget, case: &Case, limit: usize) -> Result<usize> {
    let fail = |what: String| {
        let what = format!("{} {}: {what}", target.name(), case.name);
        Error::SelfTest { device: device.id(), what }
    };
    let shape = {
        let patterns =
            compile(["qqqqqqqqqqqq"], target, &Options::default()).map_err(|e| fail(e.to_string()))?;
        device.worker(&patterns.filter(device.max_false())).map_err(fail)?.shape()
    };
    let secret = Secret::random()?;
    let point = Origin::known(secret.clone()).point().ok_or_else(|| fail("no origin".to_owned()))?;
    let origin = Origin::known(secret);
    let mut plants = Vec::new();
    let places = places(&shape);
    // A limit takes places from the whole list, first and last among them.
    let stride = (places.len() - 1).checked_div(limit.saturating_sub(1)).unwrap_or(1).max(1);
    for place in places.into_iter().step_by(stride).take(limit) {
        let recovered = origin.recover(place.offset(shape.half, shape.stride), place.image);
        let Some(Recovered::Key(key)) = recovered else {
            return Err(fail(format!("{place:?} has no key")));
        };
        let text = target.encode(&target.digest(&public_point(&key.public_key())));
        plants.push((place, text));
    }
    // A kind of pattern the device leaves to others is not its failure; `selftest` reports nothing planted.
    let example = compile([(case.pattern)(body(target, &plants[0].1))], target, &Options::default());
    if let Ok(example) = example
        && device.supports(&example.filter(device.max_false())).is_err()
    {
        return Ok(0);
    }
    // On a card each search takes memory anew; a spread of the places is enough for what is searched one by one,
    // since all of them are searched together as well.
    if case.together == 1 && limit == usize::MAX && device.card().is_some() {
        plants = plants.into_iter().step_by(7).collect();
    }
    for chunk in plants.chunks(case.together.min(plants.len())) {
        let wanted = chunk.iter().map(|(_, text)| (case.pattern)(body(target, text)));
        let patterns = compile(wanted, target, &Options::default()).map_err(|e| fail(e.to_string()))?;
        let filter = patterns.filter(device.max_false());
        let mut worker = device.worker(&filter).map_err(fail)?;
        worker.start(point).map_err(fail)?;
        let mut seen = BTreeMap::new();
        for _ in 0..STEPS {
            for hit in worker.step().map_err(fail)?.hits {
                *seen.entry(hit.place).or_insert(0) += 1;
            }
        }
        for (place, _) in chunk {
            match seen.get(place) {
                Some(1) => {}
                Some(times) => return Err(fail(format!("the key at {place:?} came back {times} times"))),
                None => return Err(fail(format!("the key at {place:?} was missed"))),
            }
        }
    }
    Ok(plants.len())
}

/// The text after the target's head.
fn body<'t>(target: &dyn KeyTarget, text: &'t str) -> &'t str {
    target.layout().body(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Selector;
    use warpsmith_curve::platform::Simd;

    #[test]
    fn every_instruction_set_proves_every_target_and_kind_of_pattern() {
        for simd in Simd::ALL {
            if !simd.is_available() {
                eprintln!("SKIPPED: this machine has no {simd}");
                continue;
            }
            let devices = Devices::open(&[Selector::Cpu(Some(simd))], Some(1)).expect("available");
            let mut cases = 0;
            selftest(&devices, &mut |test| {
                assert!(test.planted > 50, "{test:?}");
                cases += 1;
            })
            .expect("the processor computes rightly");
            assert_eq!(cases, CASES.len() * searched().count());
        }
    }

    #[test]
    fn places_cover_every_index_sign_orbit_and_image() {
        for lanes in [1, 8, 4096] {
            let shape = Shape { half: 512, lanes, stride: 1 };
            let places = places(&shape);
            for index in [1, 2, 256, 511, 512] {
                for minus in [false, true] {
                    for orbit in 0..3 {
                        for image in 0..3 {
                            let found = places.iter().any(|p| {
                                (p.index, p.minus, p.orbit, p.image) == (index, minus, orbit, image)
                            });
                            assert!(found, "{index} {minus} {orbit} {image}");
                        }
                    }
                }
            }
            for lane in [0, lanes - 1] {
                assert!(places.iter().any(|p| p.lane == lane));
            }
            for step in 0..STEPS {
                assert!(places.iter().any(|p| p.step == step));
            }
        }
    }
}
