//! `warpsmith pir build`: a database from a flat file, keys and values, an address database, or Ethereum's state.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::{ArgGroup, Args, ValueEnum};
use warpsmith::look_up::{amount_bytes, key_of};
use warpsmith::pir::database::{Builder, Description};
use warpsmith::pir::ethereum::{self, CODE_ENTRY, ChainHead, CodeList, Folder, Synthetic, code_hash_record};
use warpsmith::pir::keyword::{self, Layout, Names, Plan, TAG_BYTES};
use warpsmith::pir::{Choice, ENTRY_SIZES, Error, Result};
use warpsmith::store;

use super::codes::CodeFlags;
use super::info::{DatabaseLine, database_text};
use super::node::Node;
use super::pairs::{Form, Pairs};
use super::{Route, refuse_existing};
use crate::ending::{Ending, Failure};
use crate::human;
use crate::running::interrupt;
use crate::screen::Screen;
use crate::stdout::{AsAsked, Stdout};

const EXAMPLES: &str = "\
What INPUT is:
  a file, with --entry-size     flat: entries of so many bytes, one after the other, read by index
  a text file                   pairs: one key and one value in hex per line, separated by blanks, read by key
  a file of `warpsmith db`      addresses: the amount of an address, read by address
  a folder with database.bin, account-mapping.bin and storage-mapping.bin
                                state: Ethereum's accounts and slots in 40-byte records, read by address or ADDRESS:SLOT
  a text file, with --format codes
                                codes: one code of a contract in hex per line, read by its hash

Examples:
  warpsmith pir build data.pir entries.bin --entry-size 40
  warpsmith pir build keys.pir pairs.txt --value-size 32
  warpsmith pir build coins.pir addresses.db
  warpsmith pir build state.pir --synthetic 1000000
  warpsmith pir build state.pir --rpc http://127.0.0.1:8545 --room 100000 --codes codes.pir
  warpsmith pir build state.pir folder --chain-id 1 --block-number 23876768 --block-hash 0xd46b...";

/// Build a database, read by index or by key
///
/// Memory does not grow with the input; a database by key takes twice its size on disk while it is built.
#[derive(Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("source").required(true))]
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
    #[arg(long, value_name = "N", group = "source")]
    synthetic: Option<u64>,

    /// Ask this node for its whole state: http://HOST:PORT of an anvil, whose chain is for trials
    #[arg(long, value_name = "URL", group = "source", conflicts_with_all = ["chain_id", "entry_size", "value_size"])]
    rpc: Option<String>,

    #[command(flatten)]
    route: Route,

    /// State: leave room for so many more keys
    #[arg(long, value_name = "N", default_value_t = 0)]
    room: u64,

    /// State: write down which records are whose (DBFILE.names), so that `warpsmith pir follow` can move them
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
    #[arg(long, value_name = "N", default_value_t = 1, requires = "synthetic")]
    seed: u64,

    /// What INPUT is, where it is not what it looks like
    #[arg(long, value_name = "FORMAT", conflicts_with = "synthetic")]
    format: Option<Format>,

    /// Pairs: room for values of so many bytes, so that later ones may be longer [default: the longest there is]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=4080))]
    value_size: Option<u32>,

    /// Entries a block [default: the power of two next to the square root of their number]
    #[arg(long, value_name = "N")]
    block_size: Option<u32>,

    /// The number of the epoch that this is
    #[arg(long, value_name = "N", default_value_t = 0)]
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
    #[arg(long, value_name = "N", requires_all = ["block_number", "block_hash"])]
    chain_id: Option<u64>,

    /// State: the block after which it is so
    #[arg(long, value_name = "N", requires = "chain_id")]
    block_number: Option<u64>,

    /// State: the hash of that block, 64 hex digits
    #[arg(long, value_name = "HASH", requires = "chain_id", value_parser = parse_hash)]
    block_hash: Option<[u8; 32]>,

    /// State: when that block was made, in seconds since 1970
    #[arg(long, value_name = "N", requires = "chain_id", default_value_t = 0)]
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
    pub fn run(&self, stdout: &mut Stdout) -> std::result::Result<Ending, Failure> {
        let started = Instant::now();
        // Of what excludes each other clap forgets what else is asked for.
        if self.codes.is_some() && self.rpc.is_none() {
            let text = "--codes is for --rpc URL; from a text of codes --format codes makes such a database";
            return Err(Failure::Usage(text.to_owned()));
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
            (None, None) => self.build_input(&mut watch),
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
        stdout.done(self.json, &AsAsked {})?;
        Ok(Ending::Done)
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

    fn build_synthetic(
        &self,
        records: u64,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        let synthetic = Synthetic::new(records, self.seed)?;
        self.build_state(synthetic.keys(), &|take| synthetic.each(take), watch)
    }

    /// A state, and of which block it is where that is known.
    fn build_state(
        &self,
        keys: u64,
        each: &dyn Fn(&mut keyword::Take<'_>) -> Result<()>,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        self.build_state_of(self.head.head(), keys, each, watch)
    }

    fn build_state_of(
        &self,
        head: Option<ChainHead>,
        keys: u64,
        each: &dyn Fn(&mut keyword::Take<'_>) -> Result<()>,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        let head: Vec<_> = head.iter().flat_map(ChainHead::records).collect();
        let plan = ethereum::plan(keys + head.len() as u64, self.block_size, self.epoch);
        let plan = Plan { room: self.room, ..plan };
        let mut source = |take: &mut keyword::Take<'_>| {
            head.iter().try_for_each(|(key, record)| take(key, record))?;
            each(take)
        };
        let built = keyword::build(&self.database, &plan, &mut source, &mut |share| watch.tell(Some(share)))?;
        if self.names || self.rpc.is_some() {
            let mut names = Names::create(&self.database, &built.identity)?;
            let mut keys: Vec<Vec<u8>> = Vec::new();
            source(&mut |key, _| {
                keys.push(key.to_vec());
                if keys.len() == 1 << 16 {
                    names.add(keys.iter().map(Vec::as_slice))?;
                    keys.clear();
                }
                Ok(())
            })?;
            names.add(keys.iter().map(Vec::as_slice))?;
        }
        Ok(built)
    }

    /// The whole state of a node.
    fn build_node(&self, url: &str, watch: &mut Watch<'_>) -> std::result::Result<Description, Failure> {
        let node = Node::new(self.route.to(url)?);
        let (head, dump) = node.dump().map_err(|error| Failure::Other(format!("--rpc: {error}")))?;
        if let Some(codes) = &self.codes {
            self.code_flags.build(codes, &dump.codes, &mut |_| watch.tell(None))?;
        }
        let records: Vec<_> =
            dump.records.into_iter().filter_map(|(key, record)| Some((key, record?))).collect();
        let each =
            |take: &mut keyword::Take<'_>| records.iter().try_for_each(|(key, record)| take(key, record));
        self.build_state_of(Some(head), records.len() as u64, &each, watch)
    }

    fn build_input(&self, watch: &mut Watch<'_>) -> std::result::Result<Description, Failure> {
        let input = self.input.as_deref().expect("clap asks for INPUT where there is no --synthetic");
        let format = match self.format {
            Some(format) => format,
            None => self.guess(input)?,
        };
        let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
        if format != Format::State && (self.names || self.room > 0 || self.code_hashes) {
            return usage("--names, --room and --code-hashes are for states of Ethereum");
        }
        if format != Format::State && self.head.chain_id.is_some() {
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
            (Format::Pairs, None) => self.build_pairs(input, watch),
            _ if self.value_size.is_some() => {
                usage("--value-size is for keys and values; elsewhere it follows from the records")
            }
            (Format::Addresses, None) => self.build_addresses(input, watch),
            (Format::Codes, None) => self.build_codes(input, watch),
            (Format::State, None) => self.build_folder(input, watch),
        }
    }

    fn build_folder(&self, input: &Path, watch: &mut Watch<'_>) -> std::result::Result<Description, Failure> {
        let folder = Folder::open(input)?;
        if !self.code_hashes {
            return self.build_state(folder.keys(), &|take| folder.each(take), watch);
        }
        let codes = CodeList::open(input)?;
        // How many contracts there are no file says.
        let mut contracts = 0;
        folder.each(&mut |key, record| {
            contracts += u64::from(key.len() == 20 && codes.of(record)?.is_some());
            Ok(())
        })?;
        let each = |take: &mut keyword::Take<'_>| {
            folder.each(&mut |key, record| {
                take(key, record)?;
                let Ok(address) = <&ethereum::Address>::try_from(key) else { return Ok(()) };
                match codes.of(record)?.map(|hash| code_hash_record(address, &hash)) {
                    Some((key, record)) => take(&key, &record),
                    None => Ok(()),
                }
            })
        };
        self.build_state(folder.keys() + contracts, &each, watch)
    }

    fn guess(&self, input: &Path) -> std::result::Result<Format, Failure> {
        let facts = std::fs::metadata(input).map_err(|error| Failure::of_file(&input.display(), &error))?;
        if facts.is_file() {
            return Ok(match self.entry_size {
                Some(_) => Format::Flat,
                None if store::Database::is_at(input) => Format::Addresses,
                None => Format::Pairs,
            });
        }
        let has = |name: &str| input.join(name).exists();
        match (has("database.bin"), has("data.mdb")) {
            (true, _) => Ok(Format::State),
            // Which is told how to make one of it.
            (false, true) => Ok(Format::Addresses),
            (false, false) => Err(Failure::Other(format!(
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
        let mut file = File::open(input).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        if length == 0 || !length.is_multiple_of(u64::from(size)) {
            return Err(Failure::Usage(format!(
                "{} has {length} bytes, which are not entries of {size}; give the --entry-size it was written with",
                input.display()
            )));
        }
        let choice = Choice { block_size: self.block_size, ..Choice::new(length / u64::from(size), size) };
        let mut builder = Builder::new(&self.database, choice, self.epoch, None)?;
        let (mut buffer, mut done) = (vec![0; 1 << 20], 0);
        loop {
            watch.tell(Some(done as f64 / length as f64))?;
            let read = file.read(&mut buffer).map_err(failed)?;
            if read == 0 {
                return Ok(builder.finish()?);
            }
            builder.push(&buffer[..read])?;
            done += read;
        }
    }

    fn build_pairs(&self, input: &Path, watch: &mut Watch<'_>) -> std::result::Result<Description, Failure> {
        let pairs = Pairs::survey(input, Form::Hex, &mut || watch.tell(None))?;
        if pairs.keys == 0 {
            return Err(Failure::Other(format!(
                "{} has no keys; give a line with a key and a value, both in hex, for each",
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
        let plan = self.plan(Layout::Tagged, pairs.keys, value_size);
        let built = keyword::build(&self.database, &plan, &mut |take| pairs.each(take), &mut |share| {
            watch.tell(Some(share))
        });
        Ok(built.map_err(|error| pairs.with_lines(error, None))?)
    }

    fn build_codes(&self, input: &Path, watch: &mut Watch<'_>) -> std::result::Result<Description, Failure> {
        let codes = Pairs::survey(input, Form::Code, &mut || watch.tell(None))?;
        let chunks = codes.chunks(CODE_ENTRY, &mut || watch.tell(None))?;
        let plan = self.code_flags.plan(chunks, codes.longest, self.block_size, self.epoch);
        let built = keyword::build(&self.database, &plan, &mut |take| codes.each(take), &mut |share| {
            watch.tell(Some(share))
        });
        Ok(built.map_err(|error| codes.with_lines(error, Some(CODE_ENTRY)))?)
    }

    fn build_addresses(
        &self,
        input: &Path,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Description, Failure> {
        let foreign = |error: store::Error| Error::Format {
            what: "address database".into(),
            reason: error.to_string(),
        };
        let addresses = store::Database::open(input).map_err(foreign)?;
        let mut longest = 0;
        for (i, record) in addresses.records().enumerate() {
            longest = longest.max(amount_bytes(record.map_err(foreign)?.amount).len());
            if i % (1 << 14) == 0 {
                watch.tell(None)?;
            }
        }
        let plan = self.plan(Layout::Address, addresses.about().records, longest as u32);
        let mut source = |take: &mut keyword::Take<'_>| {
            addresses.records().try_for_each(|record| {
                let record = record.map_err(foreign)?;
                take(&key_of(record.kind, record.digest.as_bytes()), &amount_bytes(record.amount))
            })
        };
        Ok(keyword::build(&self.database, &plan, &mut source, &mut |share| watch.tell(Some(share)))?)
    }

    /// Tagged entries, of whole words: the sums of other sizes take longer.
    fn plan(&self, layout: Layout, keys: u64, value_size: u32) -> Plan {
        let entry_size = (TAG_BYTES as u32 + value_size).next_multiple_of(8);
        Plan { layout, places: 3, keys, room: 0, entry_size, block_size: self.block_size, epoch: self.epoch }
    }
}
