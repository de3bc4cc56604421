//! `warpsmith-pir bench`: how fast this machine makes hints, on the real path, with a sample verified.

use clap::Args;
use serde::Serialize;
use warpsmith_console::devices::DeviceFlags;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_rms24::{Choice, ENTRY_SIZES, Params};

use super::bytes;
use super::info::ShapeFlags;
use crate::devices::Maker;
use crate::failures::OrFail as _;

const EXAMPLES: &str = "\
Examples:
  warpsmith-pir bench
  warpsmith-pir bench --entries 16777216 --device cpu --threads 1 --json
  warpsmith-pir bench --entries 1834095877 --device cuda:0

Rates: a pair is one (hint, block); a gather is one entry added to a parity; a hint is a regular one, and counts as
many gathers as that has, so a backup pair counts for nearly two.";

/// Measure how fast hints are made
///
/// Makes all hints of a client for a database of pseudorandom entries, and compares a sample with the reference; a
/// difference is an error.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    /// Entries of the database
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = human::whole::<u64>(1..))]
    entries: u64,

    /// Bytes an entry
    #[arg(long, value_name = "N", default_value_t = 40,
        value_parser = human::whole::<u32>(ENTRY_SIZES))]
    entry_size: u32,

    /// Entries a block [default: the power of two next to the square root of their number]
    #[arg(long, value_name = "N", value_parser = human::whole::<u32>(..))]
    block_size: Option<u32>,

    #[command(flatten)]
    shape: ShapeFlags,

    #[command(flatten)]
    devices: DeviceFlags,

    /// Hints to compare with the reference
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = human::whole::<u32>(1..=100_000))]
    samples: u32,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct BenchLine<'a> {
    event: &'static str,
    hints_per_s: f64,
    pairs_per_s: f64,
    gathers_per_s: f64,
    /// All hints of a client.
    client_s: f64,
    /// The part of it for cutoffs and extras, which need no database.
    cutoffs_s: f64,
    /// Pairs a second of processor time, of all threads together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs_per_core_s: Option<f64>,
    verified: usize,
    device: &'a str,
    entries: u64,
    entry_size: usize,
    block_size: u32,
    blocks: u32,
    hints: u64,
    backup_pairs: u64,
}

impl Bench {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let Bench { entries, entry_size, block_size, .. } = *self;
        let (lambda, backups) = (self.shape.lambda.unwrap_or(80), self.shape.queries);
        let params = Params::new(Choice { entries, entry_size, lambda, block_size, backups }).or_fail()?;
        let makers = Maker::open_all(&self.devices)?;
        let mut screen = Screen::new(self.json);
        let size = bytes(entries * u64::from(entry_size));
        screen.say(format_args!(
            "measuring all hints of a client for {} entries of {entry_size} bytes ({size})",
            human::count(entries as f64)
        ));
        for maker in &makers {
            screen.say(format_args!("device    {}: {}", maker.id, maker.description));
            self.measure(&params, maker, stdout)?;
        }
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }

    /// Measures one device and shows what was found.
    fn measure(&self, params: &Params, maker: &Maker, stdout: &mut Stdout) -> Result<(), Failure> {
        let figures = maker.make.measure(params, self.samples as usize).or_fail()?;
        let seconds = (figures.skeleton + figures.parities).as_secs_f64().max(1e-9);
        let (pairs, gathers) = (figures.pairs as f64, figures.gathers as f64);
        let line = BenchLine {
            event: "bench",
            hints_per_s: gathers / f64::from(params.blocks() / 2 + 1) / seconds,
            pairs_per_s: pairs / seconds,
            gathers_per_s: gathers / seconds,
            client_s: seconds,
            cutoffs_s: figures.skeleton.as_secs_f64(),
            pairs_per_core_s: figures.processor.map(|time| pairs / time.as_secs_f64().max(1e-9)),
            verified: figures.verified,
            device: &maker.id,
            entries: params.entries(),
            entry_size: params.entry_size(),
            block_size: params.block_size(),
            blocks: params.blocks(),
            hints: params.regular(),
            backup_pairs: params.backups(),
        };
        if self.json {
            return stdout.show_json(&line);
        }
        let core = line.pairs_per_core_s.map_or(String::new(), |rate| {
            format!("; {} a second of processor time", human::rate(rate).trim_end_matches("/s").trim_end())
        });
        let text = format!(
            "client     {} hints and {} backup pairs in {}, {} of it for cutoffs\n\
             hints      {}\npairs      {}{core}\ngathers    {}\nverified   {} hints, equal to the reference\n",
            human::count(params.regular() as f64),
            human::count(params.backups() as f64),
            human::seconds(seconds),
            human::seconds(line.cutoffs_s),
            human::rate(line.hints_per_s),
            human::rate(line.pairs_per_s),
            human::rate(line.gathers_per_s),
            line.verified
        );
        stdout.show(text.as_bytes())
    }
}
