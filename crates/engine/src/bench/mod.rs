//! Benchmarks of the real path: the search itself, its matches verified as always.
//!
//! `field` times the arithmetic by itself, `detail` is what can be told beside a rate, `baseline` is the usual loop of
//! targets that hash points, `tune` looks for the shape in which a card is fastest.

mod baseline;
pub(crate) mod detail;
pub(crate) mod field;
pub(crate) mod scan;
pub(crate) mod tune;

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use detail::Detail;
use secp256k1::{PublicKey, SecretKey};
use warpsmith_curve::field::chains::Op;
use warpsmith_pattern::{Options, Patterns, compile};

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::origin::public_point;
use crate::run::report::Event;
use crate::samples::Sample;
use crate::search::{Job, Match, Rule, Wanted, run_with};
use crate::simd;
use crate::space::Subject;
use crate::worker::{Runner, Search, suits};

/// What a benchmark measures.
///
/// See [`bench`](bench()).
pub struct BenchOptions<'a> {
    /// How long.
    pub seconds: f64,
    /// Whether the usual loop runs beside it.
    pub baseline: bool,
    /// Threads of that loop.
    pub baseline_threads: usize,
    /// Patterns to search for instead of the standard one.
    pub patterns: Option<&'a Patterns>,
    /// Whether to find out where the time goes: takes some seconds more.
    pub detail: bool,
}

/// What it found.
///
/// See [`bench`](bench()).
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
    /// Addresses a second without the first launches, if the run was long enough to tell.
    pub steady_rate: Option<f64>,
    /// Addresses a second of the usual loop.
    pub baseline_rate: Option<f64>,
    /// Where the time goes, if that was asked for.
    pub detail: Option<Detail>,
}

/// What the baseline is.
pub const BASELINE_DESCRIPTION: &str = "one key at a time: 32 bytes from the operating system, the secp256k1 crate's public key, its text compared; \
     for what hashes points (eth, btc but for taproot) the same walk as the search's, each key hashed in turn with the sha3, \
     or the sha2 and ripemd crates";

/// How long the field is timed for a detailed report.
const FIELD_TIME: Duration = Duration::from_millis(300);

/// Slices of the run between which search and baseline alternate, so that other load meets both alike.
const SLICES: u32 = 4;

/// Searches for a pattern that matches now and then and counts. The number of matches must fit the number of
/// candidates tried within six standard deviations, or the rate is an error instead.
///
/// ```
/// use warpsmith_engine::{BenchOptions, Devices, bench, samples};
///
/// let npub = samples().into_iter().find(|sample| sample.name == "npub").expect("it is there");
/// let options = BenchOptions { seconds: 0.5, baseline: false, baseline_threads: 1, patterns: None, detail: false };
/// for bench in bench(&Devices::cpu()?, &npub, &options)? {
///     println!("{}: {:.3e} keys/s, {} matches verified", bench.device, bench.rate, bench.verified);
/// }
/// # Ok::<(), warpsmith_engine::Error>(())
/// ```
pub fn bench(devices: &Devices, sample: &Sample, options: &BenchOptions<'_>) -> Result<Vec<Bench>> {
    devices.each().map(|device| bench_one(&device, sample, options)).collect()
}

fn bench_one(devices: &Devices, sample: &Sample, options: &BenchOptions<'_>) -> Result<Bench> {
    let Some(backend) = devices.list.first() else {
        return Err(Error::NoDevice("none was selected".to_owned()));
    };
    let (device, target) = (backend.id(), sample.subject.target());
    let _open = backend.hold();
    let wrong = |what: String| Error::SelfTest { device: device.clone(), what };
    let recipe = sample.subject.recipe();
    let standard = |bits: f64| {
        let text = target.encoding().sample(bits);
        compile([text], target, &Options::default()).map_err(|error| wrong(error.to_string()))
    };
    let standard = match options.patterns {
        Some(_) => None,
        None => {
            // A first one, which is met rarely if ever, to learn the speed.
            let first = standard(5.0 - backend.max_false(&recipe).log2())?;
            let time = Duration::from_secs_f64((options.seconds / 4.0).min(MOMENT));
            let rate = rate_over(time, devices, sample.subject, Wanted::Patterns(&first))?;
            Some(standard(verifying_bits(rate, options.seconds))?)
        }
    };
    let patterns = options.patterns.or(standard.as_ref()).expect("one or the other");
    let filter = patterns.filter(backend.max_false(&recipe));
    if let Err(why) = suits(backend.as_ref(), &Search::new(&recipe, &filter), patterns.odds()) {
        return Err(Error::NoDevice(format!(
            "{device} cannot search for these patterns: {why}; try the device cpu"
        )));
    }
    let slices = if options.baseline { SLICES } else { 1 };
    let slice = Duration::from_secs_f64(options.seconds / f64::from(slices));
    let (mut tried, mut seconds, mut verified) = (0u64, 0.0, 0);
    let (mut loops, mut loop_seconds) = (0u64, 0.0);
    let (mut steady_rate, mut host_cpu) = (None, None);
    for _ in 0..slices {
        let job = Job {
            time_limit: Some(slice),
            interval: Duration::from_secs(3600),
            ..Job::new(sample.subject, Wanted::Patterns(patterns))
        };
        let mut warning = None;
        let mut sink = |event: Event<'_, Match>| {
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
        (steady_rate, host_cpu) = (outcome.steady_rate, outcome.host_cpu);
        if options.baseline {
            let (keys, time) = match sample.subject {
                Subject::Key(_) if baseline::has(&recipe) => {
                    let simd = match backend.runner() {
                        Runner::Processor { lanes, .. } => lanes.simd(),
                        Runner::Card(_) => simd::detect(),
                    };
                    baseline::run(&recipe, &filter, simd, options.baseline_threads, slice)?
                }
                subject => one_by_one(subject, patterns, options.baseline_threads, slice),
            };
            loops += keys;
            loop_seconds += time;
        }
    }
    let expected = tried as f64 * patterns.odds();
    if (verified as f64 - expected).abs() > 6.0 * expected.sqrt() + 6.0 {
        return Err(wrong(format!("{verified} matches where {expected:.0} were to be expected")));
    }
    let detail = if options.detail {
        let measured = backend.measure().ok_or_else(|| wrong("its parts cannot be timed".to_owned()))?;
        let field_mul = measured.field(Op::Mul, FIELD_TIME).map_err(&wrong)?.rate;
        let search = Search::new(&recipe, &filter);
        let profile = measured.profile(&search).transpose().map_err(&wrong)?;
        Some(Detail { host_cpu, field_mul, profile })
    } else {
        None
    };
    Ok(Bench {
        target: sample.name,
        device,
        rate: tried as f64 / seconds,
        verified,
        expected,
        seconds,
        baseline_rate: options.baseline.then(|| loops as f64 / loop_seconds),
        steady_rate,
        detail,
    })
}

/// How long the speed is learned at most, in seconds.
const MOMENT: f64 = 0.3;

/// Matches that verify a figure, and the most in a second: more would cost more than they prove.
const VERIFYING: f64 = 30.0;
const A_SECOND: f64 = 20.0;

/// The bits of a pattern of which a bench at this rate meets so many. The nearest pattern that there is may have half a symbol more
/// or less: of an npub 5 to 170 are met where 30 were meant.
fn verifying_bits(rate: f64, seconds: f64) -> f64 {
    let every = (rate * seconds / VERIFYING).max(rate / A_SECOND);
    every.max(1.0).log2()
}

/// The usual loop; returns candidates and seconds.
fn one_by_one(subject: Subject<'_>, patterns: &Patterns, threads: usize, time: Duration) -> (u64, f64) {
    let started = Instant::now();
    let tried = thread::scope(|scope| {
        let one = || {
            let mut tried = 0u64;
            while started.elapsed() < time {
                for _ in 0..16 {
                    let mut bytes = [0; 32];
                    if warpsmith_entropy::fill(&mut bytes).is_err() {
                        return tried;
                    }
                    let digest = match subject {
                        Subject::Key(target) => {
                            let Ok(secret) = SecretKey::from_secret_bytes(bytes) else { continue };
                            target.digest(&public_point(&PublicKey::from_secret_key(&secret)))
                        }
                        Subject::Salt(target) => target.digest(&bytes),
                    };
                    let text = subject.target().encode(&digest);
                    std::hint::black_box(patterns.find(&text));
                    tried += 1;
                }
            }
            tried
        };
        let handles: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(one)).collect();
        handles.into_iter().map(|h| h.join().unwrap_or(0)).sum()
    });
    (tried, started.elapsed().as_secs_f64())
}

/// The rate of all devices together over a moment: for estimates.
///
/// ```
/// use warpsmith_chain::nostr::Npub;
/// use warpsmith_engine::{Devices, Subject, Wanted, quick_rate};
/// use warpsmith_pattern::{Options, compile};
///
/// let patterns = compile(["cafe"], &Npub, &Options::default())?;
/// let rate = quick_rate(&Devices::cpu()?, Subject::Key(&Npub), Wanted::Patterns(&patterns))?;
/// assert!(rate > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn quick_rate(devices: &Devices, subject: Subject<'_>, wanted: Wanted<'_>) -> Result<f64> {
    rate_over(Duration::from_millis(700), devices, subject, wanted)
}

fn rate_over(time: Duration, devices: &Devices, subject: Subject<'_>, wanted: Wanted<'_>) -> Result<f64> {
    let job =
        Job { time_limit: Some(time), interval: Duration::from_secs(3600), ..Job::new(subject, wanted) };
    let outcome = run_with(&job, devices, &AtomicBool::new(false), &mut |_| Ok(()), Rule::Count)?;
    Ok(outcome.tried as f64 / outcome.elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_as_rare_as_a_figure_needs() {
        // An H200 in five seconds, a core in ten.
        for (rate, seconds) in [(1.2e11, 5.0), (5e7, 10.0)] {
            let met = rate * seconds * (-verifying_bits(rate, seconds)).exp2();
            assert!((met - 30.0).abs() < 0.01, "{met}");
        }
        // In half a second no more than they are worth.
        assert!(5e7 * 0.5 * (-verifying_bits(5e7, 0.5)).exp2() <= 0.5 * 20.0 + 0.01);
        assert_eq!(verifying_bits(0.0, 5.0), 0.0, "no speed is no error");
    }
}
