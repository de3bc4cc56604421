//! Candidates of a mask of digits on a card.
//!
//! A block of candidates has the low bits of their numbers in three parts: those within a group, whose weights make the table
//! (`cpu/ranges/masked.rs` has the formulas); some whose weights double from one to the next, so that one step of all lanes adds
//! one and the same point; and those of lanes, whose starts are added up from points made once. Each block begins anew from its own
//! starts, which are made while the block before it runs.

use std::sync::Arc;

use warpsmith_curve::group::{self, Point};
use warpsmith_curve::{Affine, Scalar};
use warpsmith_kernel::scan::{RECORD_WORDS, ScanRecord};
use warpsmith_store::{KeyMask, U256};

use super::super::flight::Landed;
use super::super::{LaunchShape, as_bytes, centre_words};
use super::records::Sorting;
use super::{CpuScanner, RangeScanner};
use crate::cpu::{Inner, scalar};
use crate::origin::point_of;
use crate::origins::points_of;
use crate::prefilter::ScanFilter;
use crate::run::threads::in_threads;
use crate::worker::Fault;
use crate::worker::batch_add::{add_all, add_pairs};
use crate::worker::ends::{Must, combine, signed};
use crate::worker::scanner::{Scanner as _, Survivor};

/// Bits of a block's steps at most: with 2^18 lanes of 512 candidates a second or two of a large card.
const MOST_STEP_BITS: u32 = 6;

/// Candidates that one core tests in a moment.
const FEW_CANDIDATES: u64 = 1 << 24;

/// Lanes that are worth a thread to add them up.
const FEW: usize = 1 << 13;

/// Blocks of a batch.
const BLOCKS: u64 = 4;

/// What the numbers of a scan stand for.
pub(super) enum Candidates {
    /// Those of a mask with enough of them for whole blocks.
    Divided(Box<Masked>),
    /// Those of any other: the processor has them.
    Few(Arc<KeyMask>),
}

impl Candidates {
    /// Of a mask, by lanes and groups as this shape has them; it is changed to those that are used.
    pub fn new(mask: &Arc<KeyMask>, shape: &mut LaunchShape) -> Candidates {
        // Halves of all sums of so many weights: a power of two.
        let entries = 1 << shape.spec.group.ilog2();
        let Some(masked) = Masked::new(mask, entries, shape.lanes, shape.spec.block) else {
            return Candidates::Few(Arc::clone(mask));
        };
        (shape.spec.group, shape.lanes) = (entries, masked.lanes());
        Candidates::Divided(Box::new(masked))
    }

    /// The point of a step and the entries of the table, where a card has a part in it.
    pub fn table(&self) -> Option<(Affine, Vec<Affine>)> {
        match self {
            Candidates::Divided(masked) => Some(masked.table()),
            Candidates::Few(_) => None,
        }
    }

    /// What a batch of them best has.
    pub fn most(&self) -> u64 {
        match self {
            Candidates::Divided(masked) => BLOCKS * masked.block(),
            Candidates::Few(_) => FEW_CANDIDATES,
        }
    }

    /// Distances at which something begins anew.
    pub fn seams(&self) -> Vec<u64> {
        let Candidates::Divided(masked) = self else { return vec![8, 16] };
        let lowest = masked.lane_bits.first().map_or(1, |bit| 1 << bit);
        let mut seams = vec![masked.inner.group(), lowest, 1 << masked.step_bit, masked.block()];
        seams.sort_unstable();
        seams.dedup();
        seams
    }
}

/// How the bits of candidates are divided.
pub(super) struct Masked {
    mask: Arc<KeyMask>,
    inner: Inner,
    /// The lowest bit of steps, and how many there are.
    step_bit: u32,
    step_bits: u32,
    /// The bits of lanes, lowest first.
    lane_bits: Vec<u32>,
    /// How far each lane starts from the first.
    ways: Arc<Vec<Scalar>>,
    /// The points of these, but for the first lane's.
    points: Vec<Affine>,
    /// Where the lanes of a block begin, made ahead.
    prepared: Option<(U256, Vec<Affine>)>,
}

impl Masked {
    /// For groups of so many entries and at most so many lanes; none where a mask has too few candidates for a block of at
    /// least `least` lanes.
    pub fn new(mask: &Arc<KeyMask>, entries: u32, most_lanes: u32, least: u32) -> Option<Masked> {
        let inner = Inner::new(mask, entries)?;
        let weights = mask.digits()?.weights();
        let (within, all) = (inner.bits(), weights.len() as u32);
        let fits = inner.group() == 2 * u64::from(entries) && least.is_power_of_two();
        if !fits || all < within + least.ilog2() {
            return None;
        }
        let doubles = |bit: u32| weights[bit as usize + 1] == weights[bit as usize] << 1u32;
        let lanes = most_lanes.ilog2();
        let divided = (0..=MOST_STEP_BITS).rev().find_map(|steps| {
            let end = all.min(within + lanes + steps);
            let is_run = |first: &u32| (*first..(first + steps).saturating_sub(1)).all(doubles);
            // The highest, since low ones are where lanes of one block of threads differ.
            let first = (within..=end.checked_sub(steps)?).rev().find(is_run)?;
            (end - within - steps >= least.ilog2()).then_some((first, steps, end))
        });
        let (step_bit, step_bits, end) = divided?;
        let steps = step_bit..step_bit + step_bits;
        let lane_bits: Vec<u32> = (within..end).filter(|bit| !steps.contains(bit)).collect();
        // Each lane is one with its highest bit cleared, and that bit's weight.
        let mut ways = vec![Scalar::ZERO];
        for bit in &lane_bits {
            let weight = scalar(weights[*bit as usize]);
            ways.extend(ways.clone().into_iter().map(|way| way.add(weight)));
        }
        let bytes: Vec<[u8; 32]> = ways[1..].iter().map(|way| way.to_be_bytes()).collect();
        let points = points_of(&bytes).into_iter().collect::<Option<Vec<Affine>>>()?;
        let (mask, ways) = (Arc::clone(mask), Arc::new(ways));
        Some(Masked { mask, inner, step_bit, step_bits, lane_bits, ways, points, prepared: None })
    }

    pub fn lanes(&self) -> u32 {
        self.ways.len() as u32
    }

    fn steps(&self) -> u32 {
        1 << self.step_bits
    }

    /// Bits of a block.
    fn bits(&self) -> u32 {
        self.inner.bits() + self.step_bits + self.lane_bits.len() as u32
    }

    /// Candidates of a block.
    pub fn block(&self) -> u64 {
        1 << self.bits()
    }

    /// The way of a step.
    fn stride(&self) -> Scalar {
        match self.step_bits {
            // One step, behind which nobody asks where lanes are but the check of ends.
            0 => Scalar::LAMBDA,
            _ => scalar(self.inner.digits().weights()[self.step_bit as usize]),
        }
    }

    /// The table: the point of a step, and what lies around a centre.
    pub fn table(&self) -> (Affine, Vec<Affine>) {
        let step = group::multiply(self.stride(), Some(Affine::G)).expect("no multiple of n");
        (step, self.inner.entries())
    }

    /// Where in its block a group lies.
    fn group_at(&self, lane: u32, step: u32) -> u64 {
        let lane = u64::from(lane);
        let at = self.lane_bits.iter().enumerate().map(|(from, to)| (lane >> from & 1) << to);
        at.sum::<u64>() + (u64::from(step) << self.step_bit)
    }

    /// The middle of the first group of a block at some step.
    fn first(&self, block: U256, step: u32) -> Scalar {
        let first = self.inner.middle_of(block << (self.bits() - self.inner.bits()));
        first.add(self.stride().mul(Scalar::from_u64(u64::from(step))))
    }

    /// Where some lanes of a block are at some step.
    fn starts(&self, block: U256, step: u32, lanes: std::ops::Range<u32>) -> Result<Vec<Affine>, Fault> {
        let first = point_of(self.first(block, step));
        let ways = &self.points[lanes.start.saturating_sub(1) as usize..lanes.end as usize - 1];
        // A card of many lanes waits for none of this only if all cores do it.
        let others = in_threads(ways, FEW, |ways: &[Affine]| -> Result<Vec<Affine>, Fault> {
            let sums = first.and_then(|first| add_all(first, ways)).or_else(|| {
                let pairs: Vec<(Point, Point)> = ways.iter().map(|way| (first, Some(*way))).collect();
                add_pairs(&pairs).into_iter().collect()
            });
            sums.ok_or_else(|| "a lane began at no key".to_owned())
        })?;
        let mut starts = Vec::with_capacity(lanes.len());
        if lanes.start == 0 {
            starts.push(first.ok_or("a lane began at no key")?);
        }
        starts.extend(others);
        Ok(starts)
    }
}

/// What records of a launch stand for: lanes from one on, steps from one on, of a block.
pub(super) struct InBlock<'m> {
    masked: &'m Masked,
    first_lane: u32,
    first_step: u32,
    /// Candidates of the block before those asked for.
    before: u64,
}

impl InBlock<'_> {
    /// How far from the first candidate asked for; none for the middle, and for what lies before.
    pub fn offset(&self, lane: u32, step: u32, index: u32, minus: bool) -> Option<u64> {
        let within = self.masked.inner.within(u64::from(index), minus)?;
        let group = self.masked.group_at(self.first_lane + lane, self.first_step + step);
        (group + within).checked_sub(self.before)
    }

    /// The key of an offset; none where it is none.
    pub fn key(&self, first: Scalar, offset: u64) -> Option<Scalar> {
        let candidate = U256::from_be_bytes(first.to_be_bytes()) + U256::from(offset);
        Scalar::from_be_bytes(&self.masked.mask.key_at(candidate)?)
    }
}

/// The lanes of a block at its end.
struct Spread {
    first: Scalar,
    ways: Arc<Vec<Scalar>>,
    /// Lanes that stand elsewhere, since the formulas did not hold for them; the processor did what they should have.
    stuck: Vec<u32>,
}

impl Must for Spread {
    fn lane(&self, lane: u64) -> Point {
        point_of(self.first.add(self.ways[lane as usize]))
    }

    fn lanes(&self, count: usize) -> Vec<Point> {
        let keys: Vec<[u8; 32]> =
            self.ways[..count].iter().map(|way| self.first.add(*way).to_be_bytes()).collect();
        points_of(&keys)
    }

    fn agrees(&self, centres: &[Affine], weights: &[i32]) -> bool {
        let way = weights.iter().zip(self.ways.iter()).fold(Scalar::ZERO, |sum, (weight, way)| {
            sum.add(self.first.add(*way).mul(signed(i128::from(*weight))))
        });
        combine(centres, weights) == point_of(way)
    }

    fn check(&self, centres: &[Affine]) -> Result<(), Fault> {
        if self.stuck.is_empty() {
            return crate::worker::ends::check(self, centres);
        }
        let mut centres = centres.to_vec();
        for lane in &self.stuck {
            centres[*lane as usize] = self.lane(u64::from(*lane)).ok_or("a lane ended at no key")?;
        }
        crate::worker::ends::check(self, &centres)
    }
}

impl RangeScanner<'_> {
    /// From now on candidates of a mask: with a table and lanes of their own.
    pub(super) fn follow_mask(&mut self, mask: &Arc<KeyMask>) -> Result<(), Fault> {
        let followed = RangeScanner::with_mask(self.gpu, self.forms, self.wanted, Some(mask));
        *self = followed.map_err(|e| e.to_string())?;
        match self.candidates {
            // All cores do that faster than this scanner's one.
            Some(Candidates::Few(_)) if mask.count() > U256::from(FEW_CANDIDATES) => {
                Err("its groups of threads are of a size that masks do not fit".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Covers some of the candidates asked for: what the next block has of them.
    pub(super) fn cover_candidates(&mut self) -> Result<(u64, Vec<Survivor>), Fault> {
        let mut candidates = self.candidates.take();
        let done = match &mut candidates {
            Some(Candidates::Divided(masked)) => self.block(masked),
            Some(Candidates::Few(mask)) => {
                let mut scanner = self.processor(mask)?;
                scanner.begin(self.first, self.left)?;
                scanner.go_on()
            }
            None => Err("there are no candidates".to_owned()),
        };
        self.candidates = candidates;
        done
    }

    fn block(&mut self, masked: &mut Masked) -> Result<(u64, Vec<Survivor>), Fault> {
        let first = U256::from_be_bytes(self.first.to_be_bytes());
        let block = first >> masked.bits();
        let before = (first - (block << masked.bits())).as_u64();
        let count = (masked.block() - before).min(self.left);
        let starts = match masked.prepared.take() {
            Some((of, starts)) if of == block => starts,
            _ => masked.starts(block, 0, 0..masked.lanes())?,
        };
        self.queue.write(self.centres, 0, &as_bytes(&centre_words(&starts))).map_err(|e| e.to_string())?;
        #[cfg(test)]
        if let Some((lane, bit)) = self.flip.take() {
            self.ends.flip(self.queue.as_mut(), lane, bit);
        }
        let (mut launched, mut survivors, mut stuck) = (0, Vec::new(), Vec::new());
        loop {
            while launched < masked.steps() && !self.flights.full() {
                let (paced, lanes) = (self.flights.steps, masked.lanes());
                self.flights.steps = paced.min(masked.steps() - launched);
                let launch = self.launch(self.centres, lanes);
                let took_off = self.flights.take_off(self.queue.as_mut(), u64::from(launched), 0, launch);
                took_off.map_err(|e| e.to_string())?;
                launched += self.flights.steps;
                self.flights.steps = paced;
            }
            if masked.prepared.is_none() {
                // While the card works: where the lanes of the block before ended, and where those of the next begin. Beyond the
                // last candidate nothing is asked for.
                self.ends.look(self.queue.as_mut())?;
                let next = block + U256::ONE;
                if next << masked.bits() < masked.mask.count() {
                    masked.prepared = Some((next, masked.starts(next, 0, 0..masked.lanes())?));
                }
            }
            let Some(landed) = self.flights.land(self.queue.as_mut()).map_err(|e| e.to_string())? else {
                break;
            };
            let first_step = landed.first as u32;
            if landed.overflowed() {
                for step in first_step..first_step + landed.steps {
                    survivors.extend(self.step_again(masked, block, step, before, count)?);
                }
                continue;
            }
            let of = InBlock { masked, first_lane: 0, first_step, before };
            survivors.extend(self.sort_masked(&landed, masked.lanes(), of, count, &mut stuck)?);
        }
        stuck.sort_unstable();
        stuck.dedup();
        for lane in &stuck {
            // It never left the step where that happened: all it had to do is done by the processor.
            survivors.retain(|survivor| !is_of(masked, *lane, self.first, before, survivor));
            for step in 0..masked.steps() {
                survivors.extend(self.group_by_processor(
                    masked,
                    block,
                    masked.group_at(*lane, step),
                    before,
                    count,
                )?);
            }
        }
        let first = masked.first(block, masked.steps());
        self.ends.ask(self.queue.as_mut(), Spread { first, ways: Arc::clone(&masked.ways), stuck })?;
        Ok((count, survivors))
    }

    /// The survivors of a launch over so many lanes; lanes for which the formulas did not hold are noted.
    fn sort_masked(
        &self,
        landed: &Landed<RECORD_WORDS>,
        lanes: u32,
        of: InBlock<'_>,
        count: u64,
        stuck: &mut Vec<u32>,
    ) -> Result<Vec<Survivor>, Fault> {
        let (mut records, first_lane) = (Vec::with_capacity(landed.records.len()), of.first_lane);
        for record in &landed.records {
            match ScanRecord::read(record) {
                Some(ScanRecord::Fault { lane, .. }) if lane < lanes => stuck.push(first_lane + lane),
                _ => records.push(*record),
            }
        }
        let (half, group) = (u64::from(self.shape.spec.group), of.masked.inner.group());
        let sorting = Sorting {
            wanted: self.wanted,
            half,
            group,
            steps: landed.steps,
            lanes,
            first: self.first,
            count,
            of: Some(of),
        };
        sorting.sort_out(&records)
    }

    /// Does a step again whose records did not fit, over as few lanes as it takes.
    fn step_again(
        &mut self,
        masked: &Masked,
        block: U256,
        step: u32,
        before: u64,
        count: u64,
    ) -> Result<Vec<Survivor>, Fault> {
        let (mut survivors, mut at) = (Vec::new(), 0);
        let (threads, mut lanes) = (self.shape.spec.block, masked.lanes());
        while at < masked.lanes() {
            let piece = lanes.min(masked.lanes() - at);
            let starts = masked.starts(block, step, at..at + piece)?;
            self.queue.write(self.spare, 0, &as_bytes(&centre_words(&starts))).map_err(|e| e.to_string())?;
            let launch = self.launch(self.spare, piece);
            let landed = self
                .flights
                .alone(self.queue.as_mut(), 0, 1, 0, |queue, hits| launch(queue, hits, 1))
                .map_err(|e| e.to_string())?;
            if landed.overflowed() && lanes > threads {
                lanes /= 2;
                continue;
            }
            let mut stuck = Vec::new();
            if landed.overflowed() {
                stuck.extend(at..at + piece);
            } else {
                let of = InBlock { masked, first_lane: at, first_step: step, before };
                let found = self.sort_masked(&landed, piece, of, count, &mut stuck)?;
                survivors.extend(found);
                survivors.retain(|survivor| {
                    !stuck.iter().any(|lane| is_of(masked, *lane, self.first, before, survivor))
                });
            }
            for lane in stuck {
                survivors.extend(self.group_by_processor(
                    masked,
                    block,
                    masked.group_at(lane, step),
                    before,
                    count,
                )?);
            }
            at += piece;
        }
        Ok(survivors)
    }

    /// A group by the processor, as much of it as is asked for.
    fn group_by_processor(
        &self,
        masked: &Masked,
        block: U256,
        group: u64,
        before: u64,
        count: u64,
    ) -> Result<Vec<Survivor>, Fault> {
        let (from, to) = (group.max(before), (group + masked.inner.group()).min(before + count));
        if from >= to {
            return Ok(Vec::new());
        }
        let mut scanner = self.processor(&masked.mask)?;
        let first = (block << masked.bits()) + U256::from(from);
        scanner.begin(scalar(first), to - from)?;
        scanner.rest()
    }

    /// The processor, for what the card does not do of a mask.
    fn processor(&self, mask: &Arc<KeyMask>) -> Result<CpuScanner<'_, ScanFilter>, Fault> {
        let mut scanner = CpuScanner::new(&self.cpu, self.forms, self.wanted);
        scanner.follow(mask)?;
        Ok(scanner)
    }
}

/// Whether a survivor came of a lane.
fn is_of(masked: &Masked, lane: u32, first: Scalar, before: u64, survivor: &Survivor) -> bool {
    let Some(offset) = crate::worker::scanner::small(survivor.key.sub(first)) else { return false };
    let group = (offset + before) & !(masked.inner.group() - 1);
    let without_steps = group & !(u64::from(masked.steps() - 1) << masked.step_bit);
    without_steps == masked.group_at(lane, 0)
}
