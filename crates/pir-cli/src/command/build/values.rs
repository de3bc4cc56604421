//! Databases of keys and values: pairs, text, codes, addresses and Bitcoin's coins.

use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use warpsmith_console::exit::Failure;
use warpsmith_console::human;
use warpsmith_eth_state::import::{Form, Pairs, is_not_text};
use warpsmith_eth_state::look_up::{amount_bytes, coins_bytes, key_of};
use warpsmith_eth_state::{ADDRESS, CODE_ENTRY, SCRIPT};
use warpsmith_rms24::database::Description;
use warpsmith_rms24::keyword::{Layout, TAG_BYTES, chunks_of};
use warpsmith_rms24::table::{self, Plan, Take};
use warpsmith_rms24::{Error, Result};
use warpsmith_store::{self as store, BuildOptions, Progress, Snapshot};

use super::{Build, Watch};
use crate::failures::{IntoFailure as _, OrFail as _, failure_of};

/// The most bytes of an entry whose value is a chunk: longer ones save queries of long values, and shorter ones the download of short
/// values.
const CHUNK_ENTRY: u32 = 1024;
/// The longest value that stands in one entry.
const LONGEST_ENTRY: u32 = 4080;
/// Bytes of the hash of a script and of what its coins are.
const SCRIPT_BYTES: usize = 32 + 12;

/// An error of a file that is no text, with what to do where its bytes are meant.
fn with_flat(error: Error) -> Error {
    match error {
        Error::Format { what, reason } if is_not_text(&error) => {
            Error::Format { what, reason: format!("{reason}; a flat file needs --entry-size") }
        }
        error => error,
    }
}

impl Build {
    /// Keys and values, both in hex or both as they are.
    pub(super) fn build_pairs(
        &self,
        input: &Path,
        form: Form,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        let pairs = Pairs::survey(input, form, &mut || watch.tell(None)).map_err(with_flat).or_fail()?;
        if pairs.keys == 0 {
            let line = match form {
                Form::Text => "a key, a tab and a value",
                _ => "a key and a value, both in hex",
            };
            return Err(Failure::Usage(format!(
                "{} has no keys; give a line with {line} for each",
                input.display()
            )));
        }
        let value_size = self.value_size.unwrap_or(pairs.longest as u32);
        if (value_size as usize) < pairs.longest {
            return Err(Failure::Usage(format!(
                "--value-size {value_size} is too small: there are values of {} bytes",
                pairs.longest
            )));
        }
        let plan = if form == Form::Hex && value_size <= LONGEST_ENTRY {
            self.plan(Layout::Tagged, pairs.keys, value_size)
        } else {
            // The last chunk is never full, so that a value of the longest takes a byte more.
            let plan = self.plan(Layout::Tagged, 0, (value_size + 1).min(CHUNK_ENTRY - TAG_BYTES as u32));
            let most = chunks_of(value_size as usize, plan.entry_size as usize);
            let most = u16::try_from(most).map_err(|_| {
                Failure::Usage(format!(
                    "values of {value_size} bytes have more chunks than a table can have (65,535)"
                ))
            })?;
            let layout = if form == Form::Text { Layout::Text(most) } else { Layout::Chunked(most) };
            Plan { layout, keys: pairs.chunks(plan.entry_size, &mut || watch.tell(None)).or_fail()?, ..plan }
        };
        let chunked = plan.layout.chunks().map(|_| plan.entry_size);
        let built = table::build(&self.database, &plan, &mut |take| pairs.each(take), &mut |share| {
            watch.tell(Some(share))
        });
        built.map_err(|error| pairs.with_lines(error, chunked)).or_fail()
    }

    /// Codes of contracts, by their hashes.
    pub(super) fn build_codes(
        &self,
        input: &Path,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        let codes =
            Pairs::survey(input, Form::Code, &mut || watch.tell(None)).map_err(with_flat).or_fail()?;
        let chunks = codes.chunks(CODE_ENTRY, &mut || watch.tell(None)).or_fail()?;
        let plan = self.code_flags.table().plan(chunks, codes.longest, self.block_size, self.epoch);
        let built = table::build(&self.database, &plan, &mut |take| codes.each(take), &mut |share| {
            watch.tell(Some(share))
        });
        built.map_err(|error| codes.with_lines(error, Some(CODE_ENTRY))).or_fail()
    }

    /// The amounts of a database of addresses.
    pub(super) fn build_addresses(
        &self,
        input: &Path,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        let failed = |error: store::Error| failure_of("address database", &error);
        let addresses = store::Database::open(input).map_err(failed)?;
        let mut longest = 0;
        for (i, record) in addresses.records().enumerate() {
            longest = longest.max(amount_bytes(record.map_err(failed)?.amount).len());
            if i % (1 << 14) == 0 {
                watch.tell(None).or_fail()?;
            }
        }
        let plan = self.plan(ADDRESS, addresses.about().records, longest as u32);
        let mut source = |take: &mut Take<'_>| {
            addresses.records().try_for_each(|record| {
                let damaged =
                    |error| Error::Io { path: input.to_owned(), source: std::io::Error::other(error) };
                let record = record.map_err(damaged)?;
                take(&key_of(record.kind, record.digest.as_bytes()), &amount_bytes(record.amount))
            })
        };
        table::build(&self.database, &plan, &mut source, &mut |share| watch.tell(Some(share))).or_fail()
    }

    /// What the scripts of a UTXO set have. Its coins are added up first, in a file without a name, and the sums go to another: they
    /// are read as often as it takes to find places for them.
    pub(super) fn build_coins(
        &self,
        input: &Path,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        let failed = |source| Error::Io { path: self.database.clone(), source };
        let mut sums = BufWriter::with_capacity(
            1 << 20,
            warpsmith_files::scratch(&self.database).map_err(Error::from).or_fail()?,
        );
        let (mut scripts, mut written) = (0u64, Ok(()));
        let stop = watch.stop;
        let screen = Mutex::new(&mut *watch.screen);
        let progress = |progress: Progress| {
            if let Ok(mut screen) = screen.try_lock() {
                let share = progress.done as f64 / (progress.total as f64).max(1.0);
                screen.bar("coins read", Some(share), "");
            }
        };
        let options = BuildOptions { stop, progress: &progress, ..BuildOptions::default() };
        let read = Snapshot::each_script(input, &self.database, &options, &mut |script| {
            // 2^32 coins are more than there are.
            let coins = coins_bytes(script.satoshi, u32::try_from(script.coins).unwrap_or(u32::MAX));
            written = sums.write_all(&script.script).and_then(|()| sums.write_all(&coins));
            scripts += 1;
            written.is_ok()
        });
        written.map_err(failed).or_fail()?;
        if stop.load(Ordering::Relaxed) && read.is_err() {
            return Err(Error::Stopped.into_failure());
        }
        let set = read.map_err(|error| failure_of("", &error))?;
        if scripts == 0 {
            return Err(Failure::Usage(format!("{} has no coins", input.display())));
        }
        // SEC: 64 hex digits may be a key to whoever reads along, so a block goes by its last ones.
        watch.screen.say(format_args!(
            "{}: the UTXO set of {} behind the block that ends with {}, {} coins of {} scripts",
            input.display(),
            set.network,
            &set.block[set.block.len() - 16..],
            human::count(set.coins as f64),
            human::count(scripts as f64)
        ));
        let mut sums = sums.into_inner().map_err(|error| failed(error.into_error())).or_fail()?;
        let plan = self.plan(SCRIPT, scripts, 12);
        let mut source = |take: &mut Take<'_>| -> Result<()> {
            sums.rewind().map_err(failed)?;
            let mut sums = BufReader::with_capacity(1 << 20, &sums);
            let mut line = [0; SCRIPT_BYTES];
            for _ in 0..scripts {
                sums.read_exact(&mut line).map_err(failed)?;
                take(&line[..32], &line[32..])?;
            }
            Ok(())
        };
        table::build(&self.database, &plan, &mut source, &mut |share| watch.tell(Some(share))).or_fail()
    }

    /// A plan by the flags.
    fn plan(&self, layout: Layout, keys: u64, value_size: u32) -> Plan {
        Plan { layout, block_size: self.block_size, epoch: self.epoch, ..Plan::tagged(keys, value_size) }
    }
}
