//! `warpsmith db build` and `db add`: a database from lists of addresses and other sources.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread::available_parallelism;
use std::time::Instant;

use clap::Args;
use warpsmith::store::{BuildOptions, Built, Database, Progress, Snapshot, Stage};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::screen::Screen;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_console::{config, human};

use super::{SnapshotLine, about_line, about_text, failed, remarks};

#[derive(Args)]
pub(super) struct Build {
    /// The database to make; nothing may be there yet
    #[arg(value_name = "DB")]
    database: PathBuf,

    #[command(flatten)]
    flags: BuildFlags,
}

#[derive(Args)]
pub(super) struct Add {
    /// The database to add to
    #[arg(value_name = "DB")]
    database: PathBuf,

    #[command(flatten)]
    flags: BuildFlags,
}

/// What is put in, and how.
#[derive(Args)]
struct BuildFlags {
    /// Text with one address a line, or tab-separated address and amount, plain or .gz or .zst; the UTXO set of Bitcoin Core's
    /// dumptxoutset; another database; or an LMDB folder of BitcoinAddressFinder
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    sources: Vec<PathBuf>,

    /// Stop at the first line that is no address, instead of counting such lines
    #[arg(long)]
    strict: bool,

    /// Threads that read and sort [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = human::parse_threads)]
    threads: Option<usize>,

    /// Memory for sorting, in mebibytes
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = human::whole::<u32>(16..))]
    memory: u32,

    /// Print JSON
    #[arg(short, long)]
    json: bool,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

/// Makes a database of sources.
type Make = fn(&Path, &[PathBuf], &BuildOptions<'_>) -> Result<Built, warpsmith::store::Error>;

impl Build {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        self.flags.run(&self.database, None, Database::build, stdout)
    }
}

impl Add {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let before = Database::open(&self.database).map_err(failed)?.about().records;
        self.flags.run(&self.database, Some(before), Database::add, stdout)
    }
}

impl BuildFlags {
    /// Makes a database, or makes it anew where it had so many addresses before, and says what is in it.
    fn run(
        &self,
        path: &Path,
        before: Option<u64>,
        make: Make,
        stdout: &mut Stdout,
    ) -> Result<ExitStatus, Failure> {
        let stop = interrupt()?;
        let started = Instant::now();
        let screen = std::sync::Mutex::new(Screen::new(self.quiet));
        let progress = |progress: Progress| {
            let Ok(mut screen) = screen.try_lock() else { return };
            let (what, rate) = match progress.stage {
                Stage::Reading => ("read", progress.addresses),
                Stage::Writing => ("written", progress.done),
            };
            let rate = human::rate(rate as f64 / started.elapsed().as_secs_f64().max(1e-9));
            let count = human::count(progress.addresses as f64);
            let share = progress.done as f64 / (progress.total as f64).max(1.0);
            screen.bar(what, Some(share), &format!("{count} addresses, {rate}"));
        };
        let options = BuildOptions {
            strict: self.strict,
            threads: self
                .threads
                .or(config::get().threads.value)
                .unwrap_or_else(|| available_parallelism().map_or(1, |n| n.get())),
            memory: self.memory as usize * (1 << 20),
            stop: &stop,
            progress: &progress,
        };
        let built = make(path, &self.sources, &options);
        let mut screen = screen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        screen.clear();
        if stop.load(Ordering::Relaxed) && built.is_err() {
            return Err(Failure::Interrupted);
        }
        let built = built.map_err(failed)?;
        for (file, set) in &built.snapshots {
            // SEC: 64 hex digits may be a key to whoever reads along, so a block goes by its last ones.
            let (file, coins, block) =
                (file.display(), human::count(set.coins as f64), &set.block[set.block.len() - 16..]);
            screen.say(format_args!(
                "{file}: the UTXO set of {} behind the block that ends with {block}, {coins} coins",
                set.network
            ));
        }
        for line in remarks(&built.report) {
            screen.warn(&line);
        }
        let database = Database::open(path).map_err(failed)?;
        let added = before.map(|before| built.about.records.saturating_sub(before));
        let seconds = started.elapsed().as_secs_f64();
        if self.json {
            let mut line = about_line("built", &database);
            line.added = added;
            line.duplicates = Some(built.report.duplicates);
            line.scripts = Some(built.report.scripts);
            line.bad = Some(built.report.bad);
            line.snapshots = built.snapshots.iter().map(snapshot_line).collect();
            line.seconds = Some(seconds);
            stdout.show_json(&line)?;
        } else {
            stdout.show_text(&about_text(&database))?;
        }
        let what = match added {
            None => "built".to_owned(),
            Some(added) => format!("{} addresses added", human::count(added as f64)),
        };
        screen.say(format_args!(
            "{what} in {}, {}, {} duplicates left out",
            human::seconds(seconds),
            human::rate(built.report.addresses as f64 / seconds.max(1e-9)),
            human::count(built.report.duplicates as f64)
        ));
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }
}

fn snapshot_line((file, set): &(PathBuf, Snapshot)) -> SnapshotLine {
    let Snapshot { network, block, coins, scripts } = set;
    SnapshotLine {
        file: file.display().to_string(),
        network,
        block: block.clone(),
        coins: *coins,
        scripts: *scripts,
    }
}
