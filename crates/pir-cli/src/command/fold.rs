//! `warpsmith-pir fold`: makes one file of a database and its updates, while it is served.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_rms24::updates::{Folded, Keep, Live, fold};
use warpsmith_rms24::{Error, Result};

use crate::failures::OrFail as _;

const EXAMPLES: &str = "\
Examples:
  warpsmith-pir fold data.pir
  warpsmith-pir fold data.pir --keep 1000

The new file is written beside the old one and takes its place when it is whole; a run that is killed leaves the database as it
was. A running `warpsmith-pir serve` goes over to it within a second or two, and epochs go on as before. Clients that are at an epoch whose
updates are kept catch up as ever; others are told to make new hints. It takes as much disk again as the database, and
the bytes of its updates; memory does not grow with these.";

/// Make one file of a database and its updates, while it is served
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Fold {
    /// The database
    #[arg(value_name = "DBFILE")]
    database: PathBuf,

    #[command(flatten)]
    keep: KeepFlags,

    /// Print JSON
    #[arg(short, long)]
    json: bool,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

/// What is kept of the updates.
#[derive(Args, Clone, Copy)]
pub(super) struct KeepFlags {
    /// Keep the updates of so many epochs before the newest, for clients that are behind and chains that take blocks back
    #[arg(long, value_name = "N", value_parser = human::whole::<u64>(..), default_value_t = Keep::default().epochs)]
    keep: u64,

    /// Keep more of them, as long as they have no more changes than this [default: as many as are cheaper than new hints]
    #[arg(long, value_name = "N", value_parser = human::whole::<u64>(..))]
    keep_changes: Option<u64>,
}

impl KeepFlags {
    pub(super) fn keep(&self) -> Keep {
        Keep { epochs: self.keep, changes: self.keep_changes }
    }
}

#[derive(Serialize)]
pub(super) struct FoldedLine {
    event: &'static str,
    database: String,
    epoch: u64,
    /// The epoch of the file before.
    from_epoch: u64,
    changes: u64,
    /// The oldest epoch that clients can come from.
    oldest_epoch: u64,
    seconds: f64,
}

impl FoldedLine {
    pub(super) fn new(database: &Path, folded: &Folded, seconds: f64) -> FoldedLine {
        FoldedLine {
            event: "folded",
            database: database.display().to_string(),
            epoch: folded.epoch,
            from_epoch: folded.before,
            changes: folded.changes,
            oldest_epoch: folded.oldest,
            seconds,
        }
    }
}

/// The same for people.
pub(super) fn text(folded: &Folded) -> String {
    let Folded { epoch, before, changes, oldest } = folded;
    let done = match epoch == before {
        true => "nothing to fold".to_owned(),
        false => format!("{} changes since epoch {before} folded", human::count(*changes as f64)),
    };
    format!("epoch {epoch}: {done}; clients can come from epoch {oldest} on")
}

impl Fold {
    pub fn run(&self, stdout: &mut Stdout) -> std::result::Result<ExitStatus, Failure> {
        let mut screen = Screen::new(self.quiet);
        fold_and_tell(&self.database, self.keep.keep(), self.json, &mut screen, stdout)?;
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }
}

/// Folds a database, and says what was done.
pub(super) fn fold_and_tell(
    database: &Path,
    keep: Keep,
    json: bool,
    screen: &mut Screen,
    stdout: &mut Stdout,
) -> std::result::Result<(), Failure> {
    let (started, stop) = (Instant::now(), interrupt()?);
    let folded = fold(database, keep, &mut |share| {
        screen.bar("folded", Some(share), "");
        go_on(&stop)
    });
    screen.clear();
    let folded = folded.or_fail()?;
    let seconds = started.elapsed().as_secs_f64();
    match json {
        true => stdout.show_json(&FoldedLine::new(database, &folded, seconds))?,
        false => stdout.show(format!("{}\n", text(&folded)).as_bytes())?,
    }
    screen.say(format_args!("done in {}", human::seconds(seconds)));
    Ok(())
}

fn go_on(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
}

/// Time after a fold that failed before another is tried.
const AFTER_FAILURE: Duration = Duration::from_secs(600);
/// Updates of fewer bytes are not folded unasked.
const FEW_BYTES: u64 = 64 << 20;

/// Folds now and then, on a thread of its own, beside something that appends updates.
pub(super) struct Folding {
    database: PathBuf,
    /// Fold after so many epochs; 0 for never, none for when it is worth it.
    every: Option<u64>,
    keep: Keep,
    running: Option<(Instant, JoinHandle<Result<Folded>>)>,
    failed: Option<Instant>,
    stop: Arc<AtomicBool>,
}

impl Folding {
    pub(super) fn new(database: &Path, every: Option<u64>, keep: Keep) -> Folding {
        let (running, failed, stop) = (None, None, Arc::default());
        Folding { database: database.to_owned(), every, keep, running, failed, stop }
    }

    /// What is folded.
    pub(super) fn database(&self) -> &Path {
        &self.database
    }

    /// Begins a fold where one is due, and says what one that has ended did, and in how many seconds. One that failed left everything
    /// as it was, and another is tried later.
    pub(super) fn look(&mut self, live: &Live) -> Option<Result<(Folded, f64)>> {
        if let Some((started, running)) = self.running.take_if(|(_, running)| running.is_finished()) {
            let folded = running.join().expect("a fold does not panic");
            self.failed = folded.is_err().then(Instant::now);
            return Some(folded.map(|folded| (folded, started.elapsed().as_secs_f64())));
        }
        let may_try = self.failed.is_none_or(|failed| failed.elapsed() >= AFTER_FAILURE);
        if self.running.is_none() && may_try && self.is_due(live) {
            let (database, keep, stop) = (self.database.clone(), self.keep, Arc::clone(&self.stop));
            let work = move || fold(&database, keep, &mut |_| go_on(&stop));
            self.running = Some((Instant::now(), std::thread::spawn(work)));
        }
        None
    }

    /// Ends a fold that is under way, which leaves everything as it was.
    pub(super) fn give_up(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some((_, running)) = self.running.take() {
            let _ = running.join();
        }
        self.stop.store(false, Ordering::Relaxed);
    }

    fn is_due(&self, live: &Live) -> bool {
        let base = live.base();
        let description = base.description();
        match self.every {
            Some(0) => false,
            Some(every) => live.epoch() - description.epoch >= every,
            // A new client downloads them beside the file, and every server has them in memory.
            None => {
                let bytes = live.changes() * (8 + description.params.entry_size() as u64);
                bytes > FEW_BYTES.max(description.data_bytes() / 4)
            }
        }
    }
}

/// A fold that is not wanted any more leaves everything as it was.
impl Drop for Folding {
    fn drop(&mut self) {
        self.give_up();
    }
}
