//! A device with the kernels of one shape of database, and a window of the database on it.

use warpsmith_device::{Api, Arg, Buffer, Device, Info, Kernel, Options, Queue, Source, Vendor};
use warpsmith_kernel::embedded;
use warpsmith_kernel::pir::{self, HintTask, Launch, Part};

use crate::error::Result;
use crate::params::Params;

/// How a device is used. The usual values suit all; tests take small ones.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// The most bytes of the database on the device at a time, where it is streamed.
    pub window: u64,
    /// Blocks of the database that one launch goes through. Between launches all lanes are in step again, so that
    /// none falls behind what the second-level cache holds; a launch takes some ten milliseconds.
    pub blocks: u32,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning { window: 1 << 30, blocks: 4096 }
    }
}

/// A kernel and how it is launched.
#[derive(Clone, Copy)]
pub(super) struct CardKernel {
    pub kernel: Kernel,
    /// Lanes of a block.
    pub lanes: u32,
    /// Blocks that the device holds at a time.
    pub resident: u32,
}

/// The device.
pub(super) struct Card {
    pub queue: Box<dyn Queue>,
    info: Info,
    pub shape: HintTask,
    pub tuning: Tuning,
    pub cutoffs: CardKernel,
    pub regular: CardKernel,
    pub pairs: CardKernel,
    pub ties: CardKernel,
    pub extras: CardKernel,
    pub halves: CardKernel,
    spread: CardKernel,
    make_up: CardKernel,
}

impl Card {
    /// Opens a device and builds its kernels.
    pub fn open(device: &dyn Device, params: &Params, tuning: &Tuning) -> Result<Card> {
        let info = device.info().clone();
        let shape = shape_of(params);
        let mut queue = device.queue()?;
        let mut build = |part: Part, names: &[&str]| -> Result<Vec<CardKernel>> {
            let on_processor = Launch { block: 64, blocks: 1, inline: false };
            let launch = if info.is_gpu { part.on_card() } else { on_processor };
            let source = pir::join(&shape, part, &launch);
            let mut options = Options::default();
            if info.api == Api::OpenCl && info.vendor == Vendor::Nvidia {
                // OpenCL has no launch bounds: without this the compiler takes as many registers as it likes.
                let registers = 65_536 / (launch.block * launch.blocks) / 8 * 8;
                options.extra.push(format!("-cl-nv-maxrregcount={}", registers.min(255)));
            }
            let key = format!("{:032x}", source.hash);
            let program =
                queue.build(&Source { text: &source.text, key: &key, ptx: embedded(&source) }, &options)?;
            let entry = |name: &&str| {
                let kernel = queue.kernel(program, name)?;
                let held = queue.occupancy(kernel, launch.block).unwrap_or(launch.blocks).max(1);
                Ok(CardKernel { kernel, lanes: launch.block, resident: info.units.max(1) * held })
            };
            names.iter().map(entry).collect()
        };
        let cutoffs = build(Part::Cutoffs, &["pir_cutoffs"])?[0];
        let regular = build(Part::Regular, &["pir_parities"])?[0];
        let pairs = build(Part::Pairs, &["pir_parities"])?[0];
        let names = ["pir_ties", "pir_extras", "pir_halves", "pir_spread", "pir_make_up"];
        let rest = build(Part::Rest, &names)?;
        Ok(Card {
            queue,
            info,
            shape,
            tuning: *tuning,
            cutoffs,
            regular,
            pairs,
            ties: rest[0],
            extras: rest[1],
            halves: rest[2],
            spread: rest[3],
            make_up: rest[4],
        })
    }

    /// The device's id.
    pub fn id(&self) -> &str {
        &self.info.id
    }

    /// A buffer of so many words, at least one.
    pub fn alloc(&mut self, words: u64) -> Result<Buffer> {
        Ok(self.queue.alloc(4 * words.max(1))?)
    }

    /// A buffer with these words.
    pub fn upload(&mut self, words: &[u32]) -> Result<Buffer> {
        let buffer = self.alloc(words.len() as u64)?;
        self.write(buffer, 0, words)?;
        Ok(buffer)
    }

    /// Writes words from word `at` on.
    pub fn write(&mut self, buffer: Buffer, at: u64, words: &[u32]) -> Result<()> {
        // A piece at a time, so that the copy does not double the memory.
        for (i, part) in words.chunks(1 << 20).enumerate() {
            let mut bytes = vec![0; 4 * part.len()];
            bytes.as_chunks_mut().0.iter_mut().zip(part).for_each(|(to, word)| *to = word.to_le_bytes());
            self.queue.write(buffer, 4 * at + ((i as u64) << 22), &bytes)?;
        }
        Ok(())
    }

    /// Reads words.
    pub fn read(&mut self, buffer: Buffer, words: usize) -> Result<Vec<u32>> {
        let mut bytes = vec![0; 4 * words];
        self.queue.read(buffer, 0, &mut bytes)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    /// Launches one lane for each of `items`.
    pub fn launch_each(&mut self, entry: CardKernel, items: u64, args: &[Arg]) -> Result<()> {
        let groups = items.div_ceil(entry.lanes.into());
        if groups > 0 {
            self.queue.launch(entry.kernel, groups as u32, entry.lanes, args)?;
        }
        Ok(())
    }

    /// The arguments that say how entries lie: their size and the words from one to the next.
    fn layout(&self) -> [Arg; 2] {
        [self.shape.entry_size, self.shape.stride()].map(Arg::U32)
    }

    /// Launches as many lanes as the device holds, which share the work; their number is the last argument.
    pub fn launch_all(&mut self, entry: CardKernel, args: &[Arg]) -> Result<()> {
        let mut args = args.to_vec();
        args.push(Arg::U32(entry.resident * entry.lanes));
        Ok(self.queue.launch(entry.kernel, entry.resident, entry.lanes, &args)?)
    }

    /// The whole database on the device, made up: [`crate::hints::measure::pseudorandom`] bytes.
    pub fn make_up(&mut self, params: &Params) -> Result<Window> {
        let blocks = steps(params.blocks());
        let words = u64::from(blocks) * self.shape.block_words();
        let database = self.alloc(words)?;
        let args = [Arg::Buffer(database), Arg::U64(params.entries()), Arg::U64(words)];
        self.launch_all(self.make_up, &[&args[..], &self.layout()].concat())?;
        Ok(Window { database, first: 0, blocks })
    }
}

/// Blocks, rounded up to whole steps of either kind of hints.
fn steps(blocks: u32) -> u32 {
    blocks.next_multiple_of(Part::Regular.team().max(Part::Pairs.team()))
}

/// Blocks of the database on the device, spread. Those past the database's end are zeros.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub database: Buffer,
    /// The first block.
    pub first: u32,
    /// How many: whole steps.
    pub blocks: u32,
}

/// Collects a stream of the database into windows, which follow each other in one place or side by side.
pub(super) struct Store {
    packed: Buffer,
    database: Buffer,
    /// Whether windows lie side by side: then the whole database is on the device in the end.
    keeps: bool,
    block_bytes: u64,
    /// Blocks of a window.
    blocks: u32,
    /// The first block of the window, and the bytes that have come of it.
    first: u32,
    filled: u64,
}

impl Store {
    /// For windows, one at a time.
    pub fn new(card: &mut Card, params: &Params) -> Result<Store> {
        Store::with_room(card, params, None)
    }

    /// For the whole database: [`Store::all`] has it when everything was pushed.
    pub fn for_all(card: &mut Card, params: &Params) -> Result<Store> {
        Store::with_room(card, params, Some(data_blocks(params)))
    }

    /// For windows, side by side if there is room for so many blocks.
    fn with_room(card: &mut Card, params: &Params, all: Option<u32>) -> Result<Store> {
        let block_bytes = params.block_bytes() as u64;
        let spread = 4 * card.shape.block_words();
        let room = card.tuning.window.min(card.info.largest_buffer).min(card.info.memory / 8);
        let blocks = u32::try_from(room / spread).unwrap_or(u32::MAX).min(params.blocks());
        let step = steps(1);
        let blocks = steps((blocks / step * step).max(1));
        Ok(Store {
            // One word more: the kernel reads two for one that is not aligned.
            packed: card.alloc((u64::from(blocks) * block_bytes).div_ceil(4) + 1)?,
            database: card.alloc(u64::from(all.unwrap_or(blocks)) * card.shape.block_words())?,
            keeps: all.is_some(),
            block_bytes,
            blocks,
            first: 0,
            filled: 0,
        })
    }

    /// Takes what fits into the window, beside the work on the window before; the rest comes back.
    pub fn push<'a>(&mut self, card: &mut Card, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let room = u64::from(self.blocks) * self.block_bytes - self.filled;
        let (now, later) = bytes.split_at(room.min(bytes.len() as u64) as usize);
        card.queue.write_beside(self.packed, self.filled, now)?;
        self.filled += now.len() as u64;
        Ok(later)
    }

    /// The window, if it is full.
    pub fn full(&mut self, card: &mut Card) -> Result<Option<Window>> {
        if self.filled < u64::from(self.blocks) * self.block_bytes { Ok(None) } else { self.last(card) }
    }

    /// What is there of the window, if anything is.
    pub fn last(&mut self, card: &mut Card) -> Result<Option<Window>> {
        if self.filled == 0 {
            return Ok(None);
        }
        let blocks = steps(self.filled.div_ceil(self.block_bytes) as u32);
        let words = u64::from(blocks) * card.shape.block_words();
        let to = if self.keeps { u64::from(self.first) * card.shape.block_words() } else { 0 };
        let numbers = [self.filled, words, to].map(Arg::U64);
        let args = [&[Arg::Buffer(self.packed), Arg::Buffer(self.database)][..], &numbers].concat();
        // What comes next may travel as soon as this is spread, while the device works on it.
        card.queue.launches_follow()?;
        card.launch_all(card.spread, &[&args[..], &card.layout()].concat())?;
        card.queue.copies_follow()?;
        let window = Window { database: self.database, first: self.first, blocks };
        self.first += blocks;
        self.filled = 0;
        Ok(Some(window))
    }

    /// All blocks, once everything was pushed into a store that keeps them; what only collected them is given back.
    pub fn all(mut self, card: &mut Card) -> Result<Window> {
        self.last(card)?;
        card.queue.free(self.packed)?;
        Ok(Window { database: self.database, first: 0, blocks: self.first })
    }
}

/// Blocks with entries that do not only fill them, in whole steps.
fn data_blocks(params: &Params) -> u32 {
    steps(params.entries().div_ceil(params.block_size().into()) as u32)
}

/// The bytes of the whole database on a device, spread.
pub(super) fn whole_bytes(params: &Params) -> u64 {
    4 * u64::from(data_blocks(params)) * shape_of(params).block_words()
}

/// The bytes on a device of the hints in the making, and of the windows that go by. A database that stays is not the request's.
pub(super) fn bytes(params: &Params, tuning: &Tuning, regular: u64, pairs: u64) -> u64 {
    let sums = 4 * u64::from(shape_of(params).row()) * (regular + 2 * pairs);
    sums + 4 * (regular + pairs) + 8 * regular + 2 * tuning.window.min(whole_bytes(params))
}

fn shape_of(params: &Params) -> HintTask {
    HintTask {
        entry_size: params.entry_size() as u32,
        block_size: params.block_size(),
        blocks: params.blocks(),
        packed: params.is_packed(),
    }
}
