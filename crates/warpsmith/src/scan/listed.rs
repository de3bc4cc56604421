//! Scans of listed keys: which keys of a file have one of the addresses.
//!
//! One thread reads the file block by block, others test keys; only a few blocks are in memory at a time. SEC: keys are in no
//! event but findings, and blocks are overwritten after use.

use std::collections::HashSet;
use std::error::Error as StdError;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use warpsmith_engine::{Ended, Error as EngineError, Finding, GivenKeys, ScanTargets};
use warpsmith_store::{Block, read_blocks};

use crate::error::{Error, Result};
use crate::key_text::{KeyTextError, decode_secret, is_key};

/// Interval at which a thread without a block checks for the end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Longest time without a report of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// A scan of the keys of a file.
///
/// See [`run`].
pub struct Job<'a> {
    /// The file, one key per line in hex, WIF or nsec, plain or compressed (`.gz`, `.zst`); `-` is standard input.
    pub file: &'a Path,
    /// The addresses to look for.
    pub targets: &'a ScanTargets,
    /// Threads that test keys.
    pub threads: usize,
    /// Number of findings that ends the scan.
    pub count: Option<u64>,
    /// Time after which the scan ends.
    pub time_limit: Option<Duration>,
}

/// The reason why a line is no private key.
///
/// See [`run`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadLine {
    /// It is not UTF-8.
    #[error("it is not text")]
    NotText,
    /// It is not written as keys are.
    #[error(transparent)]
    Key(KeyTextError),
    /// The number is out of range.
    #[error("it is no private key: keys are 1 to n - 1")]
    OutOfRange,
}

/// Numbers of a scan up to now.
///
/// See [`run`].
#[derive(Clone, Debug)]
pub struct Progress {
    /// Keys tested.
    pub tried: u64,
    /// Addresses found.
    pub matches: u64,
    /// Findings that were left out, because an earlier line had the same address.
    pub repeated: u64,
    /// Lines that are no keys.
    pub bad_lines: u64,
    /// The part of the file that was read, from 0 to 1; none of standard input and other files without a length.
    pub share: Option<f64>,
    /// Time since the start.
    pub elapsed: Duration,
}

/// The outcome of a scan.
///
/// See [`run`].
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why it ended.
    pub ended: Ended,
    /// The numbers at the end.
    pub progress: Progress,
}

/// An event of a scan.
///
/// See [`run`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Addresses found, each once: of a key on several lines the first that was tested.
    Found(Vec<Finding>),
    /// A line that is no key.
    BadLine(u64, BadLine),
    /// Progress.
    Progress(&'a Progress),
}

/// Receives events; an error ends the scan.
///
/// See [`run`].
pub type EventHandler<'h> =
    dyn FnMut(Event<'_>) -> std::result::Result<(), Box<dyn StdError + Send + Sync>> + 'h;

/// A tested block.
#[derive(Default)]
struct Tested {
    keys: u64,
    found: Vec<Finding>,
    bad: Vec<(u64, BadLine)>,
}

/// Tests the keys of a file until its end, the time is up, enough are found, or `interrupt` is set. It does not wait for a pipe that
/// stays open.
///
/// ```
/// use std::path::Path;
/// use std::sync::atomic::AtomicBool;
/// use warpsmith::scan::ScanTargets;
/// use warpsmith::scan::listed::{Event, Job, run};
/// use warpsmith::store::TargetList;
///
/// # let file = std::env::temp_dir().join(format!("warpsmith-listed-{}", std::process::id()));
/// std::fs::write(&file, format!("{:064x}\nno key\nKwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn\n", 7))?;
/// let targets = ScanTargets::list(&TargetList::of(&["1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH".to_owned()])?, &[])?;
/// let job = Job { file: &file, targets: &targets, threads: 1, count: None, time_limit: None };
/// let (mut lines, mut bad) = (Vec::new(), Vec::new());
/// let outcome = run(&job, &AtomicBool::new(false), &mut |event| {
///     match event {
///         Event::Found(found) => lines.extend(found.iter().filter_map(|found| found.line)),
///         Event::BadLine(line, _) => bad.push(line),
///         _ => {}
///     }
///     Ok(())
/// })?;
/// assert_eq!((lines, bad, outcome.progress.tried), (vec![3], vec![2], 2));
/// # std::fs::remove_file(&file)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// When the file cannot be read, this machine computes wrongly, or `on_event` fails.
pub fn run(job: &Job<'_>, interrupt: &AtomicBool, on_event: &mut EventHandler<'_>) -> Result<Outcome> {
    let tester = GivenKeys::new(job.targets)?;
    let started = Instant::now();
    let threads = job.threads.max(1);
    let length = std::fs::metadata(job.file).ok().filter(|facts| facts.is_file()).map(|facts| facts.len());
    let is_over = || {
        let is_late = job.time_limit.is_some_and(|limit| started.elapsed() >= limit);
        interrupt.load(Ordering::Relaxed) || is_late
    };
    let (blocks, waiting) = bounded::<Block>(threads);
    let (done, tested) = bounded::<Result<Tested>>(threads);
    let (last, ending) = bounded(1);
    let (read, is_reading_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (path, counted, stopped) = (job.file.to_owned(), Arc::clone(&read), Arc::clone(&is_reading_over));
    // Detached: a pipe may stay open for ever.
    std::thread::spawn(move || {
        let take = |block| !stopped.load(Ordering::Relaxed) && blocks.send(block).is_ok();
        let count = |bytes| {
            counted.fetch_add(bytes, Ordering::Relaxed);
        };
        // Before the testers see that there are no more blocks. After an early end nobody receives it.
        let _ = last.send(read_blocks(&path, count, take));
        drop(blocks);
    });
    let is_enough = AtomicBool::new(false);
    let is_forced = || {
        let is_forced = is_enough.load(Ordering::Relaxed) || is_over();
        if is_forced {
            is_reading_over.store(true, Ordering::Relaxed);
        }
        is_forced
    };
    let mut state = State {
        progress: Progress {
            tried: 0,
            matches: 0,
            repeated: 0,
            bad_lines: 0,
            share: None,
            elapsed: Duration::ZERO,
        },
        seen: HashSet::new(),
    };
    let has_enough = |progress: &Progress| job.count.is_some_and(|count| progress.matches >= count);
    let ended = std::thread::scope(|scope| {
        for _ in 0..threads {
            let (waiting, done) = (waiting.clone(), done.clone());
            let (tester, is_forced) = (&tester, &is_forced);
            scope.spawn(move || test_blocks(tester, &waiting, &done, is_forced));
        }
        // The testers have their own.
        drop((waiting, done));
        let mut failure = None;
        loop {
            let block = match tested.recv_timeout(PROGRESS_INTERVAL) {
                Ok(block) => block.map(Some),
                // A pipe may say nothing for a while.
                Err(RecvTimeoutError::Timeout) => Ok(None),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let share = length.map(|length| read.load(Ordering::Relaxed) as f64 / length.max(1) as f64);
            let taken = block.and_then(|block| state.take(block, (started, share), on_event));
            if let Err(error) = taken {
                failure = Some(error);
                break;
            }
            if has_enough(&state.progress) {
                break;
            }
        }
        // A tester that still has a block finds no receiver, and ends.
        is_enough.store(failure.is_some() || has_enough(&state.progress), Ordering::Relaxed);
        drop(tested);
        let read = match is_forced() {
            // The reader may still wait for its file.
            true => ending.try_recv().unwrap_or(Ok(())),
            false => ending.recv().expect("reading does not panic"),
        };
        match failure {
            Some(error) => Err(error),
            None => read.map_err(Error::from),
        }
    });
    ended?;
    let mut progress = state.progress;
    let ended = match interrupt.load(Ordering::Relaxed) {
        _ if has_enough(&progress) => Ended::Count,
        true => Ended::Interrupted,
        false if is_over() => Ended::TimeLimit,
        false => Ended::Exhausted,
    };
    progress.elapsed = started.elapsed();
    Ok(Outcome { ended, progress })
}

/// Numbers and findings up to now.
struct State {
    progress: Progress,
    /// Types and addresses that were found.
    seen: HashSet<(&'static str, String)>,
}

impl State {
    /// Adds a tested block, if there is one, and reports it.
    fn take(
        &mut self,
        block: Option<Tested>,
        (started, share): (Instant, Option<f64>),
        on_event: &mut EventHandler<'_>,
    ) -> Result<()> {
        let Tested { keys, mut found, bad } = block.unwrap_or_default();
        let progress = &mut self.progress;
        progress.tried += keys;
        let all = found.len();
        found.retain(|found| self.seen.insert((found.found_as.name.as_str(), found.address.clone())));
        progress.repeated += (all - found.len()) as u64;
        let mut report = |event: Event<'_>| on_event(event).map_err(EngineError::Sink);
        for (line, why) in bad {
            progress.bad_lines += 1;
            report(Event::BadLine(line, why))?;
        }
        progress.matches += found.len() as u64;
        if !found.is_empty() {
            report(Event::Found(found))?;
        }
        (progress.elapsed, progress.share) = (started.elapsed(), share);
        Ok(report(Event::Progress(progress))?)
    }
}

/// Tests blocks until there are no more, or nobody receives; at a forced end until none is there.
fn test_blocks(
    tester: &GivenKeys<'_>,
    waiting: &Receiver<Block>,
    done: &Sender<Result<Tested>>,
    is_forced: &impl Fn() -> bool,
) {
    loop {
        let is_forced = is_forced();
        let mut block = match waiting.recv_timeout(POLL_INTERVAL) {
            Ok(block) => block,
            Err(RecvTimeoutError::Timeout) if !is_forced => continue,
            Err(_) => return,
        };
        let tested = test_block(tester, &block);
        wipe(&mut block.bytes);
        if done.send(tested).is_err() {
            return;
        }
    }
}

/// Overwrites keys. SEC: erasing one byte after the other, as single secrets are, would take a tenth of the time of the work; the
/// list itself is on disk.
fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    std::hint::black_box(bytes);
}

/// Tests the keys of a block.
fn test_block(tester: &GivenKeys<'_>, block: &Block) -> Result<Tested> {
    let (mut keys, mut bad) = (Vec::with_capacity(block.bytes.len() / 40), Vec::new());
    let mut lines = Vec::with_capacity(keys.capacity());
    for (number, line) in block.lines() {
        // Some editors put a mark at the front.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        match read_line(line) {
            Ok(key) => {
                keys.push(key);
                lines.push(number);
            }
            Err(why) => bad.push((number, why)),
        }
    }
    let found = tester.test(&keys);
    wipe(keys.as_flattened_mut());
    let named = |(at, mut finding): (usize, Finding)| {
        finding.line = Some(lines[at]);
        finding
    };
    Ok(Tested { keys: keys.len() as u64, found: found?.into_iter().map(named).collect(), bad })
}

fn read_line(line: &[u8]) -> std::result::Result<[u8; 32], BadLine> {
    // Most lists are of nothing but hexadecimal digits.
    let mut plain = [0; 32];
    if line.len() == 64 && const_hex::decode_to_slice(line, &mut plain).is_ok() && is_key(&plain) {
        return Ok(plain);
    }
    let text = std::str::from_utf8(line).map_err(|_| BadLine::NotText)?;
    let key = decode_secret(text).map_err(BadLine::Key)?;
    if is_key(&key) { Ok(*key) } else { Err(BadLine::OutOfRange) }
}

#[cfg(test)]
mod tests {
    use warpsmith_store::TargetList;

    use super::*;

    /// Addresses of the keys 1 and 3.
    const ADDRESSES: [&str; 2] = ["1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH", "1CUNEBjYrCn2y1SdiUMohaKUi4wpP326Lb"];
    const ONE: &str = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn";

    /// Findings by their lines, lines that are no keys, and the outcome.
    type Scanned = (Vec<(String, u64)>, Vec<(u64, String)>, Outcome);

    fn scan(text: &str, count: Option<u64>) -> Scanned {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("keys");
        std::fs::write(&file, text).expect("a file");
        let list = TargetList::of(ADDRESSES.map(str::to_owned)).expect("addresses");
        let targets = ScanTargets::list(&list, &[]).expect("targets");
        let job = Job { file: &file, targets: &targets, threads: 2, count, time_limit: None };
        let (mut found, mut bad) = (Vec::new(), Vec::new());
        let outcome = run(&job, &AtomicBool::new(false), &mut |event| {
            match event {
                Event::Found(all) => {
                    found.extend(all.into_iter().map(|one| (one.address.clone(), one.line.unwrap_or(0))));
                }
                Event::BadLine(line, why) => bad.push((line, why.to_string())),
                Event::Progress(progress) => assert!(progress.share.is_some()),
            }
            Ok(())
        });
        (found, bad, outcome.expect("a scan"))
    }

    #[test]
    fn keys_are_found_once_in_whatever_form() {
        let text = format!("\u{feff}{:064x}\n# a remark\n\n{:064x}\n{ONE}\n0x{:064x}\n", 1, 7, 3);
        let (mut found, bad, outcome) = scan(&text, None);
        found.sort_by_key(|(_, line)| *line);
        assert_eq!(found, [(ADDRESSES[0].to_owned(), 1), (ADDRESSES[1].to_owned(), 6)]);
        assert_eq!((bad.len(), outcome.ended), (0, Ended::Exhausted));
        let Progress { tried, matches, repeated, .. } = outcome.progress;
        assert_eq!((tried, matches, repeated), (4, 2, 1));
    }

    #[test]
    fn lines_that_are_no_keys_are_counted_and_not_repeated() {
        let secret = "f00d".repeat(15);
        let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
        let text = format!("{ONE}\n{secret}\n{}\n{order}\n5Kb8kLf9zgWQn\n", "0".repeat(64));
        let (found, bad, outcome) = scan(&text, None);
        assert_eq!((found.len(), outcome.progress.tried, outcome.progress.bad_lines), (1, 1, 4));
        assert_eq!(bad.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3, 4, 5]);
        assert!(bad[0].1.contains("60 hex digits") && bad[1].1.contains("1 to n - 1"), "{bad:?}");
        assert!(bad.iter().all(|(_, why)| !why.contains("f00d") && !why.contains("5Kb8")), "{bad:?}");
    }

    #[test]
    fn enough_findings_end_the_scan() {
        let text = format!("{ONE}\n{}", "# nothing\n".repeat(300_000));
        let (found, _, outcome) = scan(&text, Some(1));
        assert_eq!((found.len(), outcome.ended), (1, Ended::Count));
    }

    #[test]
    fn what_cannot_be_read_or_reported_is_an_error() {
        let list = TargetList::of(ADDRESSES.map(str::to_owned)).expect("addresses");
        let targets = ScanTargets::list(&list, &[]).expect("targets");
        let (missing, here) = (Path::new("/nowhere/keys"), tempfile::NamedTempFile::new().expect("a file"));
        let job = Job { file: missing, targets: &targets, threads: 1, count: None, time_limit: None };
        let stop = AtomicBool::new(false);
        assert!(matches!(run(&job, &stop, &mut |_| Ok(())), Err(Error::Store(_))));
        std::fs::write(here.path(), ONE).expect("a file");
        let job = Job { file: here.path(), ..job };
        let refused = run(&job, &stop, &mut |_| Err("full".into()));
        assert!(matches!(refused, Err(Error::Search(EngineError::Sink(_)))), "{refused:?}");
        // Interrupted before it begins, it ends without waiting.
        let outcome = run(&job, &AtomicBool::new(true), &mut |_| Ok(())).expect("a scan");
        assert_eq!(outcome.ended, Ended::Interrupted);
    }
}
