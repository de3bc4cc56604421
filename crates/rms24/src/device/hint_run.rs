//! One client's hints in the making: their cutoffs, then their parities window by window.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use warpsmith_device::{Arg, Buffer, Later};
use warpsmith_kernel::pir::{BIN_ROOM, BINS, OPEN_HEADER, Part, TIES_HEADER};

use super::card::{Card, CardKernel, Window};
use super::window;
use crate::error::{Error, Result};
use crate::hints::make::{Order, Processor};
use crate::hints::{Hints, Skeleton, cutoff, extras, unless_stopped};
use crate::params::{GROUP, Params};
use crate::prf::Prf;

/// Hints that the cutoffs' kernel may leave open, one by one; past that the processor computes all.
const OPEN: u64 = 4096;
/// Groups that a block of lanes does in one launch of the cutoffs' kernel.
const GROUPS_A_LAUNCH: u32 = 16;
/// Ties a list has room for beyond twice the expected number.
const SPARE_TIES: u64 = 4096;

/// Reads that may be under way: those of about two slices.
const READS: usize = 4;

/// The kinds of hints: pairs come first, so that the processor draws extras while the device is busy with them.
const PAIRS: usize = 0;
const REGULAR: usize = 1;

/// Where sums belong that come back.
#[derive(Clone, Copy)]
enum Output {
    Parities,
    Low,
    High,
}

/// Hints of one kind.
struct HintKind {
    part: Part,
    entry: CardKernel,
    /// The group of the first id, and how many groups.
    first_group: u64,
    groups: u32,
    /// Where their cutoffs begin.
    first_hint: u32,
    /// Their sums; pairs have a second half, `apart` words after the first.
    sums: Buffer,
    apart: u64,
}

impl HintKind {
    /// Hints of some ids with sums of zero; their cutoffs begin at `first_hint`.
    fn new(card: &mut Card, part: Part, ids: &Range<u64>, first_hint: u32) -> Result<HintKind> {
        let hints = ids.end - ids.start;
        let apart = hints * u64::from(card.shape.row());
        let (entry, halves) = if part == Part::Pairs { (card.pairs, 2) } else { (card.regular, 1) };
        let words = (halves * apart).max(1);
        let sums = card.alloc(words)?;
        card.queue.zero(sums, 0, 4 * words)?;
        let groups = (hints / GROUP) as u32;
        Ok(HintKind { part, entry, first_group: ids.start / GROUP, groups, first_hint, sums, apart })
    }

    fn hints(&self) -> usize {
        self.groups as usize * GROUP as usize
    }

    /// Ranges of groups, as many at a time as the device holds. Full ones, and what is left over at the end: on a
    /// multiprocessor with fewer blocks of lanes than the others they would run ahead of what the cache holds.
    fn slices(&self) -> impl Iterator<Item = Range<u32>> + use<> {
        let length = self.entry.resident * (self.entry.lanes / self.part.team());
        let groups = self.groups;
        (0..groups).step_by(length as usize).map(move |start| start..groups.min(start + length))
    }
}

/// The hints in the making.
pub(super) struct HintRun<'a> {
    prf: &'a Prf,
    params: &'a Params,
    host: Processor,
    key: [Arg; 4],
    skeleton: Skeleton,
    cutoffs: Buffer,
    kinds: [HintKind; 2],
    ties: Buffer,
    ties_room: u64,
    extras: Option<Buffer>,
    /// Finished sums on their way back, in order, and what has come.
    reads: VecDeque<(Output, Later)>,
    received: Vec<u8>,
    parities: Vec<u8>,
    low: Vec<u8>,
    high: Vec<u8>,
    stop: &'a AtomicBool,
}

impl<'a> HintRun<'a> {
    /// Computes the cutoffs. The skeleton has no extras yet.
    pub fn begin(card: &mut Card, prf: &'a Prf, host: Processor, order: &Order<'a>) -> Result<HintRun<'a>> {
        let Order { params, key, regular, backups, stop } = order.clone();
        for end in [regular.start, regular.end, backups.start, backups.end] {
            if !end.is_multiple_of(GROUP) {
                return Err(Error::params(format!("hints come in groups of sixteen; {end} is no multiple")));
            }
        }
        let (m, q) = (regular.end - regular.start, backups.end - backups.start);
        if m + q > u64::from(u32::MAX) {
            let reason = format!("{} hints are more than a device can count; ask for fewer than 2^32", m + q);
            return Err(Error::params(reason));
        }
        let key = key.expose().as_chunks().0;
        let key: [Arg; 4] = std::array::from_fn(|i| Arg::U64(u64::from_le_bytes(key[i])));
        let kinds = [
            HintKind::new(card, Part::Pairs, &backups, m as u32)?,
            HintKind::new(card, Part::Regular, &regular, 0)?,
        ];
        let cutoffs = card.alloc(m + q)?;
        // A tie is a chance of 2^-16 for each hint and block, and the cutoff itself makes one for each hint.
        let most = kinds.iter().flat_map(HintKind::slices).map(|slice| slice.len() as u64 * GROUP).max();
        let ties_room = 2 * most.unwrap_or(0) * (1 + (u64::from(params.blocks()) >> 16)) + SPARE_TIES;
        let ties_room = if params.is_packed() { ties_room } else { 1 };
        let ties = card.alloc(TIES_HEADER + 2 * ties_room)?;
        card.write(ties, 0, &[0, ties_room as u32, 0, 0])?;
        let skeleton = Skeleton { regular, backups, cutoffs: Vec::new(), extras: Vec::new() };
        let bytes = |hints: u64| Vec::with_capacity(hints as usize * params.entry_size());
        let mut making = HintRun {
            prf,
            params,
            host,
            key,
            skeleton,
            cutoffs,
            kinds,
            ties,
            ties_room,
            extras: None,
            reads: VecDeque::new(),
            received: Vec::new(),
            parities: bytes(m),
            low: bytes(q),
            high: bytes(q),
            stop,
        };
        making.find_cutoffs(card)?;
        Ok(making)
    }

    /// What the hints hold, as far as it is known.
    pub fn skeleton(&self) -> &Skeleton {
        &self.skeleton
    }

    fn find_cutoffs(&mut self, card: &mut Card) -> Result<()> {
        let entry = card.cutoffs;
        let lists = card.alloc(u64::from(entry.resident) * u64::from(16 * BINS * BIN_ROOM))?;
        let open = card.alloc(OPEN_HEADER + OPEN)?;
        card.write(open, 0, &[0, OPEN as u32])?;
        let blocks = self.params.blocks();
        let window = window::Window::new(blocks);
        for kind in &self.kinds {
            let length = entry.resident * GROUPS_A_LAUNCH;
            for start in (0..kind.groups).step_by(length as usize) {
                let groups = length.min(kind.groups - start);
                let launched = entry.resident.min(groups);
                let mut args = vec![Arg::Buffer(self.cutoffs), Arg::Buffer(lists), Arg::Buffer(open)];
                args.extend(self.key);
                args.push(Arg::U64(kind.first_group + u64::from(start)));
                let first_hint = kind.first_hint + GROUP as u32 * start;
                args.extend([groups, first_hint, blocks, window.shift, window.bins, launched].map(Arg::U32));
                card.queue.launch(entry.kernel, launched, entry.lanes, &args)?;
            }
        }
        let hints = self.kinds.iter().map(HintKind::hints).sum();
        self.skeleton.cutoffs = card.read(self.cutoffs, hints)?;
        let told = card.read(open, (OPEN_HEADER + OPEN) as usize)?;
        card.queue.free(lists)?;
        card.queue.free(open)?;
        let (count, hints) = (told[0] as usize, &told[OPEN_HEADER as usize..]);
        match hints.get(..count) {
            Some(hints) => self.settle(card, hints),
            None => self.recompute(card),
        }
    }

    /// The id of a hint, by its place among the cutoffs.
    fn id(&self, hint: u32) -> u64 {
        let regular = self.skeleton.regular_len() as u64;
        match u64::from(hint).checked_sub(regular) {
            None => self.skeleton.regular.start + u64::from(hint),
            Some(pair) => self.skeleton.backups.start + pair,
        }
    }

    /// Computes the cutoffs the device left open.
    fn settle(&mut self, card: &mut Card, open: &[u32]) -> Result<()> {
        for &hint in open {
            if hint as usize >= self.skeleton.cutoffs.len() {
                let what = format!("hint {hint}, which it leaves open and nobody asked for,");
                return Err(Error::Wrong { device: card.id().to_owned(), what });
            }
            let first = self.id(hint) / GROUP * GROUP;
            let group = cutoff::cutoffs(self.prf, self.params.blocks(), first..first + GROUP, 1);
            let value = group[hint as usize % GROUP as usize];
            self.skeleton.cutoffs[hint as usize] = value;
            card.write(self.cutoffs, hint.into(), &[value])?;
        }
        Ok(())
    }

    /// Computes all cutoffs on the processor: there are so many blocks that the device's bins are too small.
    fn recompute(&mut self, card: &mut Card) -> Result<()> {
        let of = |ids: &Range<u64>| {
            cutoff::cutoffs(self.prf, self.params.blocks(), ids.clone(), self.host.threads)
        };
        let cutoffs = [of(&self.skeleton.regular), of(&self.skeleton.backups)].concat();
        self.skeleton.cutoffs = cutoffs;
        card.write(self.cutoffs, 0, &self.skeleton.cutoffs)
    }

    /// Draws the extras.
    pub fn draw_extras(&mut self, card: &mut Card) -> Result<()> {
        self.beside_extras(card, |_, _| Ok(()))
    }

    /// Does something while the processor draws the extras, unless they are drawn already.
    fn beside_extras(
        &mut self,
        card: &mut Card,
        work: impl FnOnce(&mut Self, &mut Card) -> Result<()>,
    ) -> Result<()> {
        if self.extras.is_some() {
            return work(self, card);
        }
        // The work has no use for the cutoffs in the host's memory.
        let cutoffs = std::mem::take(&mut self.skeleton.cutoffs);
        let (prf, params, threads) = (self.prf, self.params, self.host.threads);
        let (first, regular) = (self.skeleton.regular.start, self.skeleton.regular_len());
        let drawn = std::thread::scope(|scope| {
            let drawing = scope.spawn(|| extras(prf, params, first, &cutoffs[..regular], threads));
            work(self, card)?;
            drawing.join().expect("drawing extras does not panic")
        });
        self.skeleton.cutoffs = cutoffs;
        self.skeleton.extras = drawn?;
        let places = self.skeleton.extras.iter();
        let words: Vec<u32> = places.flat_map(|extra| [extra.block, extra.offset]).collect();
        self.extras = Some(card.upload(&words)?);
        Ok(())
    }

    /// Adds the entries of a window to all parities. Extras that were not drawn yet are drawn while the device is busy with
    /// the pairs. With the last window the parities are done, and come back slice by slice.
    pub fn absorb(&mut self, card: &mut Card, window: &Window) -> Result<()> {
        self.beside_extras(card, |making, card| making.absorb_kind(card, window, PAIRS))?;
        self.absorb_kind(card, window, REGULAR)
    }

    /// Adds the entries of a window to the parities of one kind.
    fn absorb_kind(&mut self, card: &mut Card, window: &Window, kind: usize) -> Result<()> {
        let data = self.params.entries().div_ceil(self.params.block_size().into());
        let last = u64::from(window.first) + u64::from(window.blocks) >= data;
        for slice in self.kinds[kind].slices() {
            unless_stopped(self.stop)?;
            let kind = &self.kinds[kind];
            for column in 0..card.shape.columns() {
                self.march(card, window, kind, slice.clone(), column * card.shape.column_words())?;
            }
            if self.params.is_packed() {
                self.settle_ties(card, window, kind)?;
            }
            let rows = GROUP as u32 * slice.start..GROUP as u32 * slice.end;
            if kind.part == Part::Regular {
                self.add_extras(card, window, kind, &rows)?;
            }
            if last {
                self.send_back(card, kind.part, &rows)?;
            }
        }
        Ok(())
    }

    /// Adds the extras of some regular hints that lie in a window.
    fn add_extras(&self, card: &mut Card, window: &Window, kind: &HintKind, rows: &Range<u32>) -> Result<()> {
        let Some(extras) = self.extras else { return Ok(()) };
        let mut args: Vec<Arg> = [window.database, self.cutoffs, kind.sums, extras].map(Arg::Buffer).into();
        let shape = card.shape;
        let numbers = [rows.start, rows.len() as u32, window.first, window.blocks];
        args.extend(numbers.map(Arg::U32));
        args.extend([shape.block_size, shape.stride(), shape.row()].map(Arg::U32));
        card.launch_each(card.extras, rows.len() as u64, &args)
    }

    /// Sends some groups through the blocks of a window.
    fn march(
        &self,
        card: &mut Card,
        window: &Window,
        kind: &HintKind,
        slice: Range<u32>,
        column: u32,
    ) -> Result<()> {
        let groups = slice.len() as u32;
        let teams = kind.entry.lanes / kind.part.team();
        for skip in (0..window.blocks).step_by(card.tuning.blocks as usize) {
            let blocks = card.tuning.blocks.min(window.blocks - skip);
            let mut args: Vec<Arg> =
                [window.database, self.cutoffs, kind.sums, self.ties].map(Arg::Buffer).into();
            args.extend(self.key);
            args.push(Arg::U64(kind.first_group + u64::from(slice.start)));
            let first_row = GROUP as u32 * slice.start;
            args.extend(
                [groups, kind.first_hint + first_row, first_row, window.first + skip, skip, blocks]
                    .map(Arg::U32),
            );
            args.extend([card.shape.block_size, column].map(Arg::U32));
            args.push(Arg::U64(kind.apart));
            card.queue.launch(kind.entry.kernel, groups.div_ceil(teams), kind.entry.lanes, &args)?;
        }
        Ok(())
    }

    fn settle_ties(&self, card: &mut Card, window: &Window, kind: &HintKind) -> Result<()> {
        let mut args: Vec<Arg> =
            [window.database, self.cutoffs, kind.sums, self.ties].map(Arg::Buffer).into();
        args.extend(self.key);
        args.push(Arg::U64(kind.first_group));
        let shape = card.shape;
        args.extend(
            [kind.first_hint, window.first, shape.block_size, shape.stride(), shape.row()].map(Arg::U32),
        );
        card.launch_all(card.ties, &args)?;
        Ok(card.queue.zero(self.ties, 0, 4)?)
    }

    /// Begins to read the finished sums of some rows, and ends reads that began some slices ago: so the device always has
    /// work, and the host never holds much for it.
    fn send_back(&mut self, card: &mut Card, part: Part, rows: &Range<u32>) -> Result<()> {
        let kind = &self.kinds[if part == Part::Regular { REGULAR } else { PAIRS }];
        let row = 4 * u64::from(card.shape.row());
        let (from, bytes) = (row * u64::from(rows.start), row * rows.len() as u64);
        if part == Part::Regular {
            self.reads.push_back((Output::Parities, card.queue.read_later(kind.sums, from, bytes)?));
        } else {
            let numbers = [kind.first_hint, rows.start, rows.len() as u32, card.shape.row()].map(Arg::U32);
            let mut args = vec![Arg::Buffer(self.cutoffs), Arg::Buffer(kind.sums)];
            args.extend(numbers);
            args.push(Arg::U64(kind.apart));
            card.launch_each(card.halves, rows.len() as u64, &args)?;
            self.reads.push_back((Output::Low, card.queue.read_later(kind.sums, from, bytes)?));
            let high = card.queue.read_later(kind.sums, 4 * kind.apart + from, bytes)?;
            self.reads.push_back((Output::High, high));
        }
        while self.reads.len() > READS {
            self.receive(card)?;
        }
        Ok(())
    }

    /// Ends the oldest read.
    fn receive(&mut self, card: &mut Card) -> Result<()> {
        let Some((place, later)) = self.reads.pop_front() else { return Ok(()) };
        card.queue.finish_later(later, &mut self.received)?;
        let (row, size) = (4 * card.shape.row() as usize, self.params.entry_size());
        let to = match place {
            Output::Parities => &mut self.parities,
            Output::Low => &mut self.low,
            Output::High => &mut self.high,
        };
        if row == size {
            to.extend_from_slice(&self.received);
        } else {
            // Without the words that only fill rows.
            self.received.chunks_exact(row).for_each(|row| to.extend_from_slice(&row[..size]));
        }
        Ok(())
    }

    /// The hints, once all of the database went by.
    pub fn finish(mut self, card: &mut Card) -> Result<Hints> {
        while !self.reads.is_empty() {
            self.receive(card)?;
        }
        let lost = card.read(self.ties, TIES_HEADER as usize)?[2];
        if lost != 0 {
            let what = format!("a list of ties, with more than {} in it,", self.ties_room);
            return Err(Error::Wrong { device: card.id().to_owned(), what });
        }
        self.free(card)?;
        Ok(Hints { skeleton: self.skeleton, parities: self.parities, low: self.low, high: self.high })
    }

    /// Gives up, and leaves the device as it was before.
    pub fn abandon(mut self, card: &mut Card) -> Result<()> {
        while !self.reads.is_empty() {
            self.receive(card)?;
        }
        self.free(card)
    }

    fn free(&mut self, card: &mut Card) -> Result<()> {
        let sums = self.kinds.iter().map(|kind| kind.sums);
        for buffer in sums.chain([self.cutoffs, self.ties]).chain(self.extras.take()) {
            card.queue.free(buffer)?;
        }
        Ok(())
    }
}
