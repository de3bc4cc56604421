//! How fast a scan is: keys of a range nobody uses, with some planted that must come back, or through the filter of a database,
//! which must let as many pass as it should.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warpsmith_chain::KeyType;
use warpsmith_curve::Scalar;
use warpsmith_store::{Job, Map, Order, TargetList, U256, parse_range};

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::run::report::{Event, Outcome};
use crate::scan::{ScanJob, ScanTargets, Unkept, scan};
use crate::worker::measure::Profile;
use crate::worker::scanner::digest_of;

/// Keys that are planted.
const PLANTED: u64 = 32;

/// Digits that all keys of the range share, and how many are left: more than any device covers in an hour.
const DIGITS: usize = 52;
const LEFT: u32 = 4 * (64 - DIGITS as u32);

/// What is looked for.
///
/// See [`bench_scan`].
#[derive(Clone, Copy)]
pub enum ScanOf<'a> {
    /// Addresses of these types, those of the planted keys.
    Planted(&'a [&'static KeyType]),
    /// These, through the filter of their database.
    Database(&'a ScanTargets),
}

/// What a scan was measured to do.
///
/// See [`bench_scan`].
#[derive(Clone, Debug)]
pub struct ScanBench {
    /// The device.
    pub device: String,
    /// What a key was tested as.
    pub types: Vec<&'static str>,
    /// Keys a second, each tested as all of these.
    pub rate: f64,
    /// Planted keys that were covered, and came back as each type once; or what passed the filter of a database and was looked
    /// up.
    pub verified: u64,
    /// How many that should be.
    pub expected: f64,
    /// How long it took.
    pub seconds: f64,
    /// What it takes of a card and what its parts cost, if that was asked for; none for a processor.
    pub profile: Option<Profile>,
}

/// Times a scan on each device. A planted key that does not come back exactly once, or a filter that lets too many or too few pass,
/// is an error instead of a rate. With `detail` the parts of a scan on a card are timed too.
///
/// ```
/// use warpsmith_chain::KeyType;
/// use warpsmith_engine::{Devices, ScanOf, bench_scan};
///
/// let types = [KeyType::find("p2pkh").unwrap()];
/// for bench in bench_scan(&Devices::cpu()?, ScanOf::Planted(&types), 0.5, false)? {
///     println!("{}: {:.3e} keys/s, {} planted and found", bench.device, bench.rate, bench.verified);
/// }
/// # Ok::<(), warpsmith_engine::Error>(())
/// ```
pub fn bench_scan(devices: &Devices, of: ScanOf<'_>, seconds: f64, detail: bool) -> Result<Vec<ScanBench>> {
    let measure = |device: Devices| {
        let (bench, made) = match of {
            ScanOf::Planted(types) => {
                let (bench, targets) = planted(&device, types, seconds)?;
                (bench, Some(targets))
            }
            ScanOf::Database(targets) => (through_filter(&device, targets, seconds)?, None),
        };
        let targets = match of {
            ScanOf::Database(targets) => targets,
            ScanOf::Planted(_) => made.as_ref().expect("just made"),
        };
        let profile = if detail { profile(&device, targets)? } else { None };
        Ok(ScanBench { profile, ..bench })
    };
    devices.each().map(measure).collect()
}

/// What a scan for these takes of a card.
fn profile(device: &Devices, targets: &ScanTargets) -> Result<Option<Profile>> {
    let measured = device.list.first().and_then(|backend| backend.measure());
    let measured = measured.and_then(|card| card.profile_scan(&targets.forms(), targets.filter()));
    measured.transpose().map_err(|what| Error::SelfTest { device: name(device), what })
}

/// Half as long with one key to learn the rate, then with keys planted over four fifths of what will be covered.
fn planted(device: &Devices, types: &[&'static KeyType], seconds: f64) -> Result<(ScanBench, ScanTargets)> {
    let range = TestRange::random()?;
    let probe = range.run(device, &range.targets(types, &[0])?, seconds / 2.0)?;
    let reach = (probe.rate() * seconds * 0.8).clamp(1.0, (1u64 << LEFT) as f64) as u64;
    let offsets: Vec<u64> = (0..PLANTED).map(|part| reach / PLANTED * part + part * part % 7).collect();
    let targets = range.targets(types, &offsets)?;
    let run = range.run(device, &targets, seconds)?;
    let wrong = |what: String| Error::SelfTest { device: name(device), what };
    let mut verified = 0;
    for offset in offsets {
        let (key, covered) = (range.key(offset), run.map.is_covered(range.number(offset)));
        let times = targets.types().iter().map(|wanted| run.found.get(&(key, wanted.name.as_str())).copied());
        if let Some(times) = times.map(|times| times.unwrap_or(0)).find(|times| *times != u64::from(covered))
        {
            return Err(wrong(format!("a key planted for the measurement came back {times} times")));
        }
        verified += u64::from(covered);
    }
    Ok((run.bench(device, &targets, verified, verified as f64), targets))
}

/// Counts what passes the filter and is none of the database's.
fn through_filter(device: &Devices, targets: &ScanTargets, seconds: f64) -> Result<ScanBench> {
    let run = TestRange::random()?.run(device, targets, seconds)?;
    let passed = run.outcome.false_hits;
    let expected = run.outcome.tried as f64 * targets.forms().len() as f64 * targets.false_share();
    if (passed as f64 - expected).abs() > 6.0 * expected.sqrt() + 6.0 {
        let what = format!("{passed} digests passed the filter where {expected:.1} are to be expected");
        return Err(Error::SelfTest { device: name(device), what });
    }
    Ok(run.bench(device, targets, passed, expected))
}

fn name(device: &Devices) -> String {
    device.describe().into_iter().map(|(id, _)| id).collect()
}

/// A range that nobody uses: its first digits are drawn.
struct TestRange {
    digits: String,
}

/// What came of a scan of it.
struct Run {
    outcome: Outcome,
    map: Map,
    /// How often each key came back as each type.
    found: BTreeMap<([u8; 32], &'static str), u64>,
}

impl TestRange {
    fn random() -> Result<TestRange> {
        let mut bytes = [0; DIGITS / 2];
        warpsmith_entropy::fill(&mut bytes).map_err(Error::Randomness)?;
        // Far below the group's order, and far above what a table of small multiples knows.
        bytes[0] = bytes[0] & 0x7f | 0x40;
        Ok(TestRange { digits: bytes.iter().map(|byte| format!("{byte:02x}")).collect() })
    }

    fn text(&self, offset: u64) -> String {
        format!("{}{offset:0width$x}", self.digits, width = 64 - DIGITS)
    }

    fn key(&self, offset: u64) -> [u8; 32] {
        self.number(offset).to_be_bytes()
    }

    fn number(&self, offset: u64) -> U256 {
        let text = self.text(offset);
        parse_range(&format!("{text}:{text}")).expect("a key").first()
    }

    /// The addresses of these types of the keys with these offsets.
    fn targets(&self, types: &[&'static KeyType], offsets: &[u64]) -> Result<ScanTargets> {
        let mut addresses = Vec::new();
        for offset in offsets {
            let key = Scalar::from_be_bytes(&self.key(*offset)).expect("below the order");
            for wanted in types {
                let digest = digest_of(key, wanted.form()).expect("not zero");
                let kind = wanted.kinds.first();
                let text = kind
                    .map(|kind| kind.text(&digest))
                    .ok_or_else(|| Error::Scan(format!("addresses of type {wanted} are not scanned for")));
                addresses.push(text?);
            }
        }
        ScanTargets::list(&TargetList::of(&addresses)?, types)
    }

    fn run(&self, device: &Devices, targets: &ScanTargets, seconds: f64) -> Result<Run> {
        let last = (1u64 << LEFT) - 1;
        let range = parse_range(&format!("{}:{}", self.text(0), self.text(last))).expect("a range");
        let names: Vec<&str> = targets.types().iter().map(|wanted| wanted.name.as_str()).collect();
        let mut map = Unkept(Map::new(Job::new(range, &names, *targets.identity()), Order::Sequential));
        let limit = Duration::from_secs_f64(seconds);
        let job =
            ScanJob { time_limit: Some(limit), interval: Duration::from_secs(3600), ..ScanJob::new(targets) };
        let (mut found, mut warning) = (BTreeMap::new(), None);
        let outcome = scan(&job, &mut map, device, &AtomicBool::new(false), &mut |event| {
            match event {
                Event::Found(findings) => findings.iter().for_each(|finding| {
                    let as_type = (*finding.secret().as_bytes(), finding.found_as.name.as_str());
                    *found.entry(as_type).or_insert(0) += 1;
                }),
                Event::Warning(text) => warning = Some(text),
                Event::Progress(_) | Event::Note(_) => {}
            }
            Ok(())
        })?;
        match warning {
            Some(what) => Err(Error::SelfTest { device: name(device), what }),
            None => Ok(Run { outcome, map: map.0, found }),
        }
    }
}

impl Run {
    fn rate(&self) -> f64 {
        self.outcome.tried as f64 / self.outcome.elapsed.as_secs_f64().max(1e-9)
    }

    fn bench(&self, device: &Devices, targets: &ScanTargets, verified: u64, expected: f64) -> ScanBench {
        ScanBench {
            device: name(device),
            types: targets.types().iter().map(|wanted| wanted.name.as_str()).collect(),
            rate: self.rate(),
            verified,
            expected,
            seconds: self.outcome.elapsed.as_secs_f64(),
            profile: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_keys_verify_a_measured_scan() {
        let types: Vec<&'static KeyType> =
            ["p2pkh", "eth"].iter().map(|name| KeyType::find(name).expect("a type")).collect();
        for types in [&types[..1], &types[..]] {
            let benches =
                bench_scan(&Devices::cpu().expect("a processor"), ScanOf::Planted(types), 0.3, true);
            let bench = benches.expect("measured").remove(0);
            assert!(bench.rate > 0.0 && bench.verified > 0 && bench.verified <= PLANTED, "{bench:?}");
            assert_eq!(bench.types.len(), types.len());
        }
    }

    #[test]
    fn ranges_are_keys_and_never_the_same() {
        let (one, two) = (TestRange::random().expect("random"), TestRange::random().expect("random"));
        assert_ne!(one.digits, two.digits);
        let last = (1u64 << LEFT) - 1;
        for range in [one, two] {
            assert!(Scalar::from_be_bytes(&range.key(last)).is_some());
            assert!(range.number(0) < range.number(1) && range.number(1) < range.number(last));
        }
    }
}
