//! Benchmarks of the real path: the search itself, its matches verified as always.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use secp256k1::{PublicKey, SecretKey};
use warpsmith_pattern::{Options, Patterns, compile};
use warpsmith_target::KeyTarget;

use crate::device::Devices;
use crate::error::{Error, Result};
use crate::origin::public_point;
use crate::session::{Event, Job, Rule, run_with};

/// What a benchmark measures.
pub struct BenchOptions<'a> {
    /// How long.
    pub seconds: f64,
    /// Whether the usual loop runs beside it.
    pub baseline: bool,
    /// Threads of that loop.
    pub baseline_threads: usize,
    /// Patterns to search for instead of the standard one.
    pub patterns: Option<&'a Patterns>,
}

/// What it found.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The target.
    pub target: &'static str,
    /// The device.
    pub device: String,
    /// Addresses a second.
    pub rate: f64,
    /// Matches met on the way and verified by libsecp256k1, one by one.
    pub verified: u64,
    /// How many matches the number of keys tried leads one to expect.
    pub expected: f64,
    /// How long it took.
    pub seconds: f64,
    /// Addresses a second of the usual loop.
    pub baseline_rate: Option<f64>,
}

/// What the baseline is.
pub const BASELINE_DESCRIPTION: &str = "one key at a time: 32 bytes from the operating system, the secp256k1 crate's public key, its text compared";

/// Slices of the run between which search and baseline alternate, so that other load meets both alike.
const SLICES: u32 = 4;

/// Searches for a pattern that matches now and then and counts. The number of matches must fit the number of
/// keys tried within six standard deviations, or the rate is an error instead.
pub fn bench(devices: &Devices, target: &dyn KeyTarget, options: &BenchOptions<'_>) -> Result<Vec<Bench>> {
    devices.each().map(|device| bench_one(&device, target, options)).collect()
}

fn bench_one(devices: &Devices, target: &dyn KeyTarget, options: &BenchOptions<'_>) -> Result<Bench> {
    let device = devices.list.first().map_or_else(String::new, |d| d.id());
    let wrong = |what: String| Error::SelfTest { device: device.clone(), what };
    // Rare enough not to disturb, frequent enough to verify: seven characters for a card, five for a processor.
    let rarity = devices.list.first().map_or(0.0, |d| -d.max_false().log2());
    let sample = &"cafewaves"[..((rarity / 5.0).ceil() as usize + 1).clamp(2, 9)];
    let standard = compile([sample], target, &Options::default()).map_err(|e| wrong(e.to_string()))?;
    let patterns = options.patterns.unwrap_or(&standard);
    if let Some(Err(why)) = devices.list.first().map(|d| d.supports(&patterns.filter(d.max_false()))) {
        return Err(Error::NoDevice(format!(
            "{device} cannot search for these patterns: {why}; try --device cpu"
        )));
    }
    let slices = if options.baseline { SLICES } else { 1 };
    let slice = Duration::from_secs_f64(options.seconds / f64::from(slices));
    let (mut tried, mut seconds, mut verified) = (0u64, 0.0, 0);
    let (mut loops, mut loop_seconds) = (0u64, 0.0);
    for _ in 0..slices {
        let job = Job {
            target,
            patterns,
            split: None,
            count: None,
            time_limit: Some(slice),
            interval: Duration::from_secs(3600),
        };
        let mut warning = None;
        let mut sink = |event: Event<'_>| {
            if let Event::Warning(text) = event {
                warning = Some(text);
            }
            Ok(())
        };
        let outcome = run_with(&job, devices, &AtomicBool::new(false), &mut sink, Rule::Count)?;
        if let Some(warning) = warning {
            return Err(wrong(warning));
        }
        tried += outcome.tried;
        verified += outcome.matches;
        seconds += outcome.elapsed.as_secs_f64();
        if options.baseline {
            let (keys, time) = baseline(target, patterns, options.baseline_threads, slice);
            loops += keys;
            loop_seconds += time;
        }
    }
    let expected = tried as f64 * patterns.odds();
    if (verified as f64 - expected).abs() > 6.0 * expected.sqrt() + 6.0 {
        return Err(wrong(format!("{verified} matches where {expected:.0} were to be expected")));
    }
    Ok(Bench {
        target: target.name(),
        device,
        rate: tried as f64 / seconds,
        verified,
        expected,
        seconds,
        baseline_rate: options.baseline.then(|| loops as f64 / loop_seconds),
    })
}

/// The usual loop; returns keys and seconds.
fn baseline(target: &dyn KeyTarget, patterns: &Patterns, threads: usize, time: Duration) -> (u64, f64) {
    let started = Instant::now();
    let keys = thread::scope(|scope| {
        let one = || {
            let mut keys = 0u64;
            while started.elapsed() < time {
                for _ in 0..16 {
                    let mut bytes = [0; 32];
                    if getrandom::fill(&mut bytes).is_err() {
                        return keys;
                    }
                    let Ok(secret) = SecretKey::from_secret_bytes(bytes) else { continue };
                    let public = PublicKey::from_secret_key(&secret);
                    let text = target.encode(&target.digest(&public_point(&public)));
                    std::hint::black_box(patterns.find(&text));
                    keys += 1;
                }
            }
            keys
        };
        let handles: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(one)).collect();
        handles.into_iter().map(|h| h.join().unwrap_or(0)).sum()
    });
    (keys, started.elapsed().as_secs_f64())
}

/// The rate of all devices together over a moment: for estimates.
pub fn quick_rate(devices: &Devices, target: &dyn KeyTarget, patterns: &Patterns) -> Result<f64> {
    let job = Job {
        target,
        patterns,
        split: None,
        count: None,
        time_limit: Some(Duration::from_millis(700)),
        interval: Duration::from_secs(3600),
    };
    let outcome = run_with(&job, devices, &AtomicBool::new(false), &mut |_| Ok(()), Rule::Count)?;
    Ok(outcome.tried as f64 / outcome.elapsed.as_secs_f64())
}
