//! How the candidates of a mask of digits are divided among the lanes and steps of a card.
//!
//! A block of candidates has the low bits of their numbers in three parts: those within a group, whose weights make the table
//! (`cpu/ranges/masked.rs` has the formulas); some whose weights double from one to the next, so that one step of all lanes adds
//! one and the same point; and those of lanes, whose starts are added up from points made once.

use std::sync::Arc;

use warpsmith_curve::group::{self, Point};
use warpsmith_curve::{Affine, Scalar};
use warpsmith_store::{KeyMask, U256};

use crate::cpu::{Inner, scalar};
use crate::gpu::LaunchShape;
use crate::origin::point_of;
use crate::origins::points_of;
use crate::run::threads::in_threads;
use crate::worker::Fault;
use crate::worker::batch_add::{add_all, add_pairs};

/// Bits of a block's steps at most: with 2^18 lanes of 512 candidates a second or two of a large card.
const MOST_STEP_BITS: u32 = 6;

/// Candidates that one core tests in a moment.
pub(super) const FEW_CANDIDATES: u64 = 1 << 24;

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
    pub mask: Arc<KeyMask>,
    pub inner: Inner,
    /// The lowest bit of steps, and how many there are.
    pub step_bit: u32,
    step_bits: u32,
    /// The bits of lanes, lowest first.
    lane_bits: Vec<u32>,
    /// How far each lane starts from the first.
    pub ways: Arc<Vec<Scalar>>,
    /// The points of these, but for the first lane's.
    points: Vec<Affine>,
    /// Where the lanes of a block begin, made ahead.
    pub prepared: Option<(U256, Vec<Affine>)>,
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

    pub fn steps(&self) -> u32 {
        1 << self.step_bits
    }

    /// Bits of a block.
    pub fn bits(&self) -> u32 {
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
    pub fn group_at(&self, lane: u32, step: u32) -> u64 {
        let lane = u64::from(lane);
        let at = self.lane_bits.iter().enumerate().map(|(from, to)| (lane >> from & 1) << to);
        at.sum::<u64>() + (u64::from(step) << self.step_bit)
    }

    /// The middle of the first group of a block at some step.
    pub fn first(&self, block: U256, step: u32) -> Scalar {
        let first = self.inner.middle_of(block << (self.bits() - self.inner.bits()));
        first.add(self.stride().mul(Scalar::from_u64(u64::from(step))))
    }

    /// Where some lanes of a block are at some step.
    pub fn starts(&self, block: U256, step: u32, lanes: std::ops::Range<u32>) -> Result<Vec<Affine>, Fault> {
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
    pub masked: &'m Masked,
    pub first_lane: u32,
    pub first_step: u32,
    /// Candidates of the block before those asked for.
    pub before: u64,
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
