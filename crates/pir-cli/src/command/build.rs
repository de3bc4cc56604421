//! `warpsmith-pir build`: a database from a flat file, keys and values, an address database, Ethereum's state, or Bitcoin's coins.

mod state;
mod values;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::{ArgGroup, Args, ValueEnum};
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::human;
use warpsmith_console::screen::Screen;
use warpsmith_console::signals::interrupt;
use warpsmith_console::stdout::{NoSummary, Stdout};
use warpsmith_eth_state::ChainHead;
use warpsmith_eth_state::import::{Dump, Form, Synthetic};
use warpsmith_rms24::database::{Builder, Description};
use warpsmith_rms24::{Choice, ENTRY_SIZES, Error, Result};
use warpsmith_store::{self as store, Snapshot};

use super::codes::CodeFlags;
use super::info::{DatabaseLine, database_text};
use super::{Route, refuse_existing};
use crate::failures::OrFail as _;

/// In the order in which they are given: by itself clap would show a group before all else.
const USAGE: &str = "warpsmith-pir build [OPTIONS] <DBFILE> <INPUT|--synthetic <N>|--rpc <URL>>";

const EXAMPLES: &str = "\
What INPUT is, with the name for --format where it does not look like it:
  a file, with --entry-size     flat: entries of so many bytes, one after the other, read by index
  a text file                   pairs: one key and one value in hex per line, separated by blanks, read by key
  a text file                   text: a key, a tab and the value per line, as they are, read by key; name the format
  a text file                   accounts: CSV with the columns address, balance, nonce and code_hash, read by address; name it
  JSON of a node                dump: accounts and slots as `geth dump` prints them, anvil's dump of its state or a genesis file
                                has them, read by address or ADDRESS:SLOT
  a text file                   codes: one code of a contract in hex per line, read by its hash; name it
  a file of `warpsmith db`      addresses: the amount of an address, read by address
  a file of `bitcoin-cli dumptxoutset`
                                coins: what an output script of Bitcoin has, read by address or script:HEX
  a folder with database.bin, account-mapping.bin and storage-mapping.bin
                                state: Ethereum's accounts and slots in 40-byte records, read by address or ADDRESS:SLOT

Examples:
  warpsmith-pir build data.pir entries.bin --entry-size 40
  warpsmith-pir build keys.pir pairs.txt --value-size 32
  warpsmith-pir build pages.pir pages.tsv --format text
  warpsmith-pir build amounts.pir addresses.db
  warpsmith-pir build coins.pir utxo.dat
  warpsmith-pir build state.pir accounts.csv --format accounts --chain-id 1 --block-number 23876768 --block-hash 0xd46b...
  warpsmith-pir build state.pir dump.jsonl --names --chain-id 1 --block-number 23876768 --block-hash 0xd46b...
  warpsmith-pir build state.pir --synthetic 1000000
  warpsmith-pir build state.pir --rpc http://127.0.0.1:8545 --room 100000 --codes codes.pir
  warpsmith-pir build state.pir folder --chain-id 1 --block-number 23876768 --block-hash 0xd46b...";

/// Build a database, read by index or by key
///
/// Memory does not grow with the input; a database by key takes twice its size on disk while it is built.
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE, group = ArgGroup::new("source").required(true))]
pub(crate) struct Build {
    /// The database to make; nothing may be there yet
    #[arg(value_name = "DBFILE")]
    database: PathBuf,

    /// What to make it from
    #[arg(value_name = "INPUT", group = "source")]
    input: Option<PathBuf>,

    /// Bytes of an entry of a flat file, 8 to 4096
    #[arg(long, value_name = "N", conflicts_with_all = ["synthetic", "value_size"], value_parser = parse_entry_size)]
    entry_size: Option<u32>,

    /// Make a synthetic state of so many records, which looks like Ethereum's and belongs to nobody
    #[arg(long, value_name = "N", value_parser = human::whole::<u64>(..), group = "source")]
    synthetic: Option<u64>,

    /// Ask this node for its whole state: http://HOST:PORT of an anvil, whose chain is for trials
    #[arg(long, value_name = "URL", group = "source", conflicts_with_all = ["chain_id", "entry_size", "value_size"])]
    rpc: Option<String>,

    #[command(flatten)]
    route: Route,

    /// State: leave room for so many more keys
    #[arg(long, value_name = "N", value_parser = human::whole::<u64>(..), default_value_t = 0)]
    room: u64,

    /// State: write down which records are whose (DBFILE.names), so that `warpsmith-pir follow` can move them
    #[arg(long)]
    names: bool,

    /// State: tell the hashes of contracts' codes, for eth_getCode; a folder has them in code_store.bin, --rpc always tells them
    #[arg(long, conflicts_with = "synthetic")]
    code_hashes: bool,

    /// With --rpc: write the codes of contracts, too, to a database of their own
    #[arg(long, value_name = "DBFILE")]
    codes: Option<PathBuf>,

    #[command(flatten)]
    code_flags: CodeFlags,

    /// Which synthetic state
    #[arg(long, value_name = "N", value_parser = human::whole::<u64>(..), default_value_t = 1, requires = "synthetic")]
    seed: u64,

    /// What INPUT is, where it is not what it looks like
    #[arg(long, value_name = "FORMAT", conflicts_with = "synthetic")]
    format: Option<Format>,

    /// Pairs and text: room for values of so many bytes, so that later ones may be longer [default: the longest there is]
    #[arg(long, value_name = "N", value_parser = human::whole::<u32>(0..=1 << 26))]
    value_size: Option<u32>,

    /// Entries a block [default: the power of two next to the square root of their number]
    #[arg(long, value_name = "N", value_parser = human::whole::<u32>(..))]
    block_size: Option<u32>,

    /// The number of the epoch that this is
    #[arg(long, value_name = "N", value_parser = human::whole::<u64>(..), default_value_t = 0)]
    epoch: u64,

    #[command(flatten)]
    head: HeadFlags,

    /// Print JSON
    #[arg(short, long)]
    json: bool,

    /// Print nothing on stderr but warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

/// The block that a state is of.
#[derive(Args)]
struct HeadFlags {
    /// State: the id of the chain it is of, for wallets; 1 is Ethereum's own
    #[arg(long, value_name = "N", value_parser = human::whole::<u64>(..), requires_all = ["block_number", "block_hash"])]
    chain_id: Option<u64>,

    /// State: the block after which it is so
    #[arg(long, value_name = "N", value_parser = human::whole::<u64>(..), requires = "chain_id")]
    block_number: Option<u64>,

    /// State: the hash of that block, 64 hex digits
    #[arg(long, value_name = "HASH", requires = "chain_id", value_parser = parse_hash)]
    block_hash: Option<[u8; 32]>,

    /// State: when that block was made, in seconds since 1970
    #[arg(long, value_name = "N", value_parser = human::whole::<u64>(..), requires = "chain_id", default_value_t = 0)]
    block_time: u64,
}

impl HeadFlags {
    fn head(&self) -> Option<ChainHead> {
        Some(ChainHead {
            chain_id: self.chain_id?,
            number: self.block_number?,
            time: self.block_time,
            hash: self.block_hash?,
        })
    }
}

fn parse_hash(text: &str) -> std::result::Result<[u8; 32], String> {
    let bytes = const_hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "a hash is 64 hex digits".to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Flat,
    Pairs,
    Addresses,
    State,
    Codes,
    Text,
    Accounts,
    Dump,
    Coins,
}

impl Format {
    /// Whether a state of Ethereum comes of it.
    fn is_state(self) -> bool {
        matches!(self, Format::State | Format::Accounts | Format::Dump)
    }
}

fn parse_entry_size(text: &str) -> std::result::Result<u32, String> {
    let size = text.parse().ok().filter(|size| ENTRY_SIZES.contains(size));
    size.ok_or_else(|| "give a number of bytes from 8 to 4096".to_owned())
}

/// How the work is watched: progress on the screen, and an end when a person wants one.
struct Watch<'a> {
    stop: &'a AtomicBool,
    screen: &'a mut Screen,
}

impl Watch<'_> {
    fn tell(&mut self, share: Option<f64>) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        self.screen.bar(if share.is_some() { "built" } else { "reading the input" }, share, "");
        Ok(())
    }
}

impl Build {
    pub fn run(&self, stdout: &mut Stdout) -> std::result::Result<ExitStatus, Failure> {
        let started = Instant::now();
        // Of what excludes each other clap forgets what else is asked for.
        if self.codes.is_some() && self.rpc.is_none() {
            let text = "--codes is for --rpc URL; from a text of codes --format codes makes such a database";
            return Err(Failure::Usage(text.to_owned()));
        }
        if let Some(input) = self.input.as_ref().filter(|input| self.database.exists() && !input.exists()) {
            return Err(Failure::Usage(format!(
                "{}: there is a file already, and none at {}; the database to make comes first: warpsmith-pir build DBFILE INPUT",
                self.database.display(),
                input.display(),
            )));
        }
        for database in [Some(&self.database), self.codes.as_ref()].into_iter().flatten() {
            refuse_existing(database, "a database")?;
            for (suffix, what) in
                [(".updates", "the list of a database's updates"), (".names", "the list of its names")]
            {
                let mut beside = database.as_os_str().to_owned();
                beside.push(suffix);
                refuse_existing(Path::new(&beside), what)?;
            }
        }
        let stop = interrupt()?;
        let mut screen = Screen::new(self.quiet);
        let mut watch = Watch { stop: &stop, screen: &mut screen };
        let built = match (self.synthetic, &self.rpc) {
            (Some(records), _) => self.build_synthetic(records, &mut watch),
            (None, Some(url)) => self.build_node(url, &mut watch),
            (None, None) => self.build_input(&mut watch).map_err(Failure::of_input),
        };
        screen.clear();
        let description = built?;
        let seconds = started.elapsed().as_secs_f64();
        let examples = self.examples();
        if self.json {
            let mut line = DatabaseLine::new("built", &self.database, &description);
            (line.seconds, line.examples) = (Some(seconds), examples);
            stdout.show_json(&line)?;
        } else {
            stdout.show(database_text(&self.database, &description).as_bytes())?;
            for example in examples.iter().flatten() {
                stdout.show(format!("for example  {example}\n").as_bytes())?;
            }
        }
        screen.say(format_args!("built in {}", human::seconds(seconds)));
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }

    /// Keys of a synthetic state, since nobody knows them by heart: an account and a slot.
    fn examples(&self) -> Option<Vec<String>> {
        let synthetic = Synthetic::new(self.synthetic?, self.seed).ok()?;
        let (address, _) = synthetic.account(0);
        let mut keys = vec![format!("0x{}", const_hex::encode(address))];
        if synthetic.slots > 0 {
            let (key, _) = synthetic.slot(0);
            keys.push(format!("0x{}:0x{}", const_hex::encode(&key[..20]), const_hex::encode(&key[20..])));
        }
        Some(keys)
    }

    fn build_input(&self, watch: &mut Watch<'_>) -> std::result::Result<Description, Failure> {
        let input = self.input.as_deref().expect("clap asks for INPUT where there is no --synthetic");
        let format = match self.format {
            Some(format) => format,
            None => self.guess(input)?,
        };
        let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
        if !format.is_state() && (self.names || self.room > 0) {
            return usage("--names and --room are for states of Ethereum");
        }
        if format != Format::State && self.code_hashes {
            return usage(
                "--code-hashes is for folders of records; the other formats tell the hashes where they have them",
            );
        }
        if !format.is_state() && self.head.chain_id.is_some() {
            return usage(
                "--chain-id and --block-number are for states of Ethereum; other databases are of no block",
            );
        }
        match (format, self.entry_size) {
            (Format::Flat, None) => usage("a flat file needs --entry-size N: the bytes of each entry"),
            (Format::Flat, Some(size)) => self.build_flat(input, size, watch),
            (_, Some(_)) => {
                usage("--entry-size is for flat files; in the other formats it follows from the records")
            }
            (Format::Pairs, None) => self.build_pairs(input, Form::Hex, watch),
            (Format::Text, None) => self.build_pairs(input, Form::Text, watch),
            _ if self.value_size.is_some() => {
                usage("--value-size is for keys and values; elsewhere it follows from the records")
            }
            (Format::Addresses, None) => self.build_addresses(input, watch),
            (Format::Codes, None) => self.build_codes(input, watch),
            (Format::State, None) => self.build_folder(input, watch),
            (Format::Accounts, None) => self.build_accounts(input, watch),
            (Format::Dump, None) => self.build_dump(input, watch),
            (Format::Coins, None) => self.build_coins(input, watch),
        }
    }

    fn guess(&self, input: &Path) -> std::result::Result<Format, Failure> {
        let facts = std::fs::metadata(input).map_err(|error| Failure::of_file(&input.display(), &error))?;
        if facts.is_file() {
            return Ok(match self.entry_size {
                Some(_) => Format::Flat,
                None if store::Database::is_at(input) => Format::Addresses,
                None if Snapshot::is_at(input) => Format::Coins,
                None if Dump::is_at(input) => Format::Dump,
                None => Format::Pairs,
            });
        }
        let has = |name: &str| input.join(name).exists();
        match (has("database.bin"), has("data.mdb")) {
            (true, _) => Ok(Format::State),
            // Which is told how to make one of it.
            (false, true) => Ok(Format::Addresses),
            (false, false) => Err(Failure::Usage(format!(
                "{} is a folder without database.bin (records of a state); give a folder with that, or a file",
                input.display()
            ))),
        }
    }

    fn build_flat(
        &self,
        input: &Path,
        size: u32,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        let failed = |source| Error::Io { path: input.to_owned(), source };
        let mut file = File::open(input).map_err(failed).or_fail()?;
        let length = file.metadata().map_err(failed).or_fail()?.len();
        if length == 0 || !length.is_multiple_of(u64::from(size)) {
            return Err(Failure::Usage(format!(
                "{} has {length} bytes, which are not entries of {size}; give the --entry-size it was written with",
                input.display()
            )));
        }
        let choice = Choice { block_size: self.block_size, ..Choice::new(length / u64::from(size), size) };
        let mut builder = Builder::new(&self.database, choice, self.epoch, None).or_fail()?;
        let (mut buffer, mut done) = (vec![0; 1 << 20], 0);
        loop {
            watch.tell(Some(done as f64 / length as f64)).or_fail()?;
            let read = file.read(&mut buffer).map_err(failed).or_fail()?;
            if read == 0 {
                return builder.finish().or_fail();
            }
            builder.push(&buffer[..read]).or_fail()?;
            done += read;
        }
    }
}
