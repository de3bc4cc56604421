//! `warpsmith scan --keys FILE`: keys of a list instead of a range, to find out which of those one is responsible for are in use.
//!
//! One thread reads the file block by block, others test keys; never more than a few blocks are in memory.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use warpsmith::Devices;
use warpsmith::scan::{Finding, GivenKeys, ScanProgress};
use warpsmith::store::{Block, read_blocks};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::Stdout;

use super::{Covered, Scan, described, progress_line, remarks};
use crate::failures::{OrFail as _, failure_of};
use crate::keys;
use crate::record::Deliverable;
use crate::results::Results;
use crate::running::ProgressFormat;

/// Lines that are no keys and are shown.
const SHOWN: usize = 20;

/// How long a thread without a block waits before it looks whether the end has come.
const LOOK: Duration = Duration::from_millis(50);

/// What came of a block.
struct Tested {
    keys: u64,
    found: Vec<Finding>,
    bad: Vec<(u64, String)>,
}

impl Scan {
    /// Tests the keys of a list.
    pub(super) fn test_keys(&self, file: &str, stdout: Stdout) -> Result<ExitStatus, Failure> {
        self.refuse_of_keys()?;
        if file != "-" {
            // Before anything is said or made.
            let readable =
                std::fs::File::open(file).map_err(|error| format!("could not read {file}: {error}"));
            readable.map_err(|why| {
                Failure::Usage(format!("--keys: {why}; give the name of one that is there"))
            })?;
        }
        let threads = self.run.devices.thread_count();
        let mut screen = self.run.screen();
        let listed = self.database.is_empty().then(|| self.read_targets()).transpose()?;
        let (targets, remarks) = match listed {
            None => (self.open_databases(&Devices::cpu().or_fail()?, &mut screen)?, Vec::new()),
            Some((targets, list)) => (targets, remarks(&list.report)),
        };
        let mut seen = HashSet::new();
        let tester = GivenKeys::new(&targets).or_fail()?;
        let encryption = self.recipient.open()?;
        let mut results = Results::open(stdout, self.run.output.as_deref(), self.run.json, encryption)?;
        results.notify(self.run.notify.as_deref());
        results.answer_with(self.asked()?);
        results.born(self.birthday.unwrap_or_default());
        remarks.iter().for_each(|line| screen.warn(line));
        screen.say(format_args!("targets   {}", described(&targets)[1]));
        let (stop, started) = (interrupt()?, Instant::now());
        let length = std::fs::metadata(file).ok().filter(|facts| facts.is_file()).map(|facts| facts.len());
        let read = Arc::new(AtomicU64::new(0));
        let (mut tried, mut matches, mut bad, mut repeated) = (0u64, 0u64, 0u64, 0u64);
        let (most, every) = (self.count.unwrap_or(u64::MAX), self.run.interval(&screen));
        let (limit, stopped) = (self.run.time_limit, Arc::clone(&stop));
        let is_over = move || {
            let is_late = limit.is_some_and(|limit| started.elapsed() >= limit);
            stopped.load(Ordering::Relaxed) || is_late
        };
        let (blocks, waiting) = bounded::<Block>(threads);
        let (done, told) = bounded::<Result<Tested, Failure>>(threads);
        let (last, ending) = bounded(1);
        let (path, counted, is_read_over) = (PathBuf::from(file), Arc::clone(&read), is_over.clone());
        // Nobody waits for it: a pipe may say nothing for ever.
        std::thread::spawn(move || {
            let take = |block| !is_read_over() && blocks.send(block).is_ok();
            let count = |bytes| {
                counted.fetch_add(bytes, Ordering::Relaxed);
            };
            // Before those who test see that there are no more blocks. Whoever has enough does not listen.
            let _ = last.send(read_blocks(&path, count, take));
            drop(blocks);
        });
        // Then nobody waits for another block either.
        let is_enough = AtomicBool::new(false);
        let is_forced = || is_enough.load(Ordering::Relaxed) || is_over();
        let ended = std::thread::scope(|scope| -> Result<bool, Failure> {
            for _ in 0..threads {
                let (waiting, done) = (waiting.clone(), done.clone());
                let (tester, is_forced) = (&tester, &is_forced);
                scope.spawn(move || work(tester, &waiting, &done, is_forced));
            }
            // Nobody but them.
            drop((waiting, done));
            let (mut failure, mut reported) = (None, Instant::now());
            loop {
                let tested = match told.recv_timeout(every.saturating_sub(reported.elapsed())) {
                    Ok(tested) => Some(tested),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                let count = |Tested { keys, mut found, bad: lines }: Tested| {
                    tried += keys;
                    let all = found.len();
                    found.retain(|found| seen.insert((found.found_as.name.as_str(), found.address.clone())));
                    repeated += (all - found.len()) as u64;
                    for (line, why) in lines {
                        bad += 1;
                        let text = format!("--keys, line {line}: {why}");
                        match self.strict {
                            true => {
                                return Err(Failure::Usage(
                                    text + "; without --strict such lines are counted",
                                ));
                            }
                            false if bad <= SHOWN as u64 => screen.warn(&text),
                            false => {}
                        }
                    }
                    matches += found.len() as u64;
                    if !found.is_empty() {
                        results.publish(found.into_iter().map(Deliverable::Finding).collect())?;
                        // The next block may be long in coming.
                        results.finish()?;
                    }
                    let seconds = started.elapsed().as_secs_f64();
                    let more = format!(
                        "{} keys, {}",
                        human::count(tried as f64),
                        human::rate(tried as f64 / seconds)
                    );
                    let part =
                        length.map(|length| read.load(Ordering::Relaxed) as f64 / length.max(1) as f64);
                    screen.bar("keys of the list", part, &more);
                    Ok(())
                };
                let mut taken = tested.map_or(Ok(()), |tested| tested.and_then(count));
                if reported.elapsed() >= every {
                    reported = Instant::now();
                    if let Some(ProgressFormat::Json) = self.run.progress {
                        let share =
                            length.map(|length| read.load(Ordering::Relaxed) as f64 / length.max(1) as f64);
                        let progress = progress_of(tried, matches, started.elapsed(), share);
                        taken =
                            taken.and_then(|()| results.stdout().progress_json(&progress_line(&progress)));
                    }
                }
                if let Err(error) = taken {
                    failure = Some(error);
                    break;
                }
                if matches >= most {
                    break;
                }
            }
            // Whoever still has something to say finds nobody, and ends.
            is_enough.store(failure.is_some() || matches >= most, Ordering::Relaxed);
            drop(told);
            let ended = match is_forced() {
                // It may still wait for its file.
                true => ending.try_recv().unwrap_or(Ok(())),
                false => ending.recv().expect("reading does not panic"),
            };
            screen.clear();
            match failure {
                Some(error) => Err(error),
                None => ended.map(|()| is_over()).map_err(|error| failure_of("--keys", &error)),
            }
        });
        let delivered = results.finish();
        let was_stopped = ended?;
        delivered?;
        if tried == 0 && !was_stopped {
            return Err(Failure::Usage(format!(
                "--keys {file}: there is no key in it; each line is one: 64 hex digits, a WIF key or an nsec"
            )));
        }
        let seconds = started.elapsed().as_secs_f64();
        let lines = match bad {
            0 => String::new(),
            1 => ", 1 line is no key".to_owned(),
            n => format!(", {} lines are no keys", human::count(n as f64)),
        };
        let again = match repeated {
            0 => String::new(),
            n => format!(" ({} more on lines that repeat a key)", human::count(n as f64)),
        };
        screen.say(format_args!(
            "{} keys tested in {}, {}: {} found{again}{lines}",
            human::count(tried as f64),
            human::seconds(seconds),
            human::rate(tried as f64 / seconds.max(1e-9)),
            human::count(matches as f64)
        ));
        let is_interrupted = stop.load(Ordering::Relaxed);
        let ended = match (is_interrupted, was_stopped) {
            _ if matches >= most => "count",
            (true, _) => "interrupted",
            (false, true) => "time_limit",
            (false, false) => "exhausted",
        };
        let covered = tried.to_string();
        results
            .stdout()
            .done(self.run.json, &Covered { covered, matches, tried, elapsed_s: seconds, ended })?;
        Ok(match (ended, matches) {
            ("interrupted", _) => ExitStatus::Interrupted,
            (_, 0) => ExitStatus::NoMatch,
            _ => ExitStatus::Done,
        })
    }

    /// What a list of keys has no use for.
    fn refuse_of_keys(&self) -> Result<(), Failure> {
        let given = [("--map", self.map.is_some()), ("--random", self.random), ("--estimate", self.estimate)];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Failure::Usage(format!(
                "{flag} is for ranges; a list of keys (--keys) is read once from its first line to its last. Leave it out"
            ))),
            None => Ok(()),
        }
    }
}

/// Progress through a list, of which a share has been read where its length is known.
fn progress_of(tried: u64, matches: u64, elapsed: Duration, share: Option<f64>) -> ScanProgress {
    let (seconds, share) = (elapsed.as_secs_f64(), share.unwrap_or(0.0).min(1.0));
    let rate = tried as f64 / seconds.max(1e-9);
    let left = Duration::try_from_secs_f64(seconds * (1.0 - share) / share).ok();
    ScanProgress { tried, rate, elapsed, share, left, matches, devices: vec![("cpu".to_owned(), rate)] }
}

/// Tests blocks until there are no more, or nobody listens; where the end is forced, until none is there.
fn work(
    tester: &GivenKeys<'_>,
    waiting: &Receiver<Block>,
    done: &Sender<Result<Tested, Failure>>,
    is_forced: &impl Fn() -> bool,
) {
    loop {
        let mut block = match waiting.recv_timeout(LOOK) {
            Ok(block) => block,
            Err(RecvTimeoutError::Timeout) if !is_forced() => continue,
            Err(_) => return,
        };
        let tested = test(tester, &block);
        wipe(&mut block.bytes);
        if done.send(tested).is_err() {
            return;
        }
    }
}

/// Overwrites a block of a list. SEC: erasing one byte after the other, as secrets are, would take as long as a tenth of the work; the
/// list itself lies on disk.
fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}

/// Tests the keys of a block.
fn test(tester: &GivenKeys<'_>, block: &Block) -> Result<Tested, Failure> {
    let (mut keys, mut bad) = (Vec::with_capacity(block.bytes.len() / 40), Vec::new());
    let mut lines = Vec::with_capacity(keys.capacity());
    for (number, line) in block.lines() {
        // Some editors put a mark at the front.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        // Most lists are of nothing but hexadecimal digits.
        let mut plain = [0; 32];
        if line.len() == 64 && const_hex::decode_to_slice(line, &mut plain).is_ok() && keys::is_key(&plain) {
            keys.push(plain);
            lines.push(number);
            continue;
        }
        let key = std::str::from_utf8(line).map_err(|_| "it is not text".to_owned()).and_then(keys::plain);
        match key {
            Ok(key) if keys::is_key(&key) => {
                keys.push(*key);
                lines.push(number);
            }
            Ok(_) => bad.push((number, "it is no private key: keys are 1 to n - 1".to_owned())),
            Err(why) => bad.push((number, why)),
        }
    }
    let found = tester.test(&keys);
    wipe(keys.as_flattened_mut());
    let named = |(at, mut finding): (usize, Finding)| {
        finding.line = Some(lines[at]);
        finding
    };
    Ok(Tested { keys: keys.len() as u64, found: found.or_fail()?.into_iter().map(named).collect(), bad })
}
