//! Candidates of a mask of digits on a card, block by block (`blocks` says how they are divided). Each block begins anew from its
//! own starts, which are made while the block before it runs.

use std::sync::Arc;

use warpsmith_curve::group::Point;
use warpsmith_curve::{Affine, Scalar};
use warpsmith_kernel::scan::{RECORD_WORDS, ScanRecord};
use warpsmith_store::{KeyMask, U256};

use super::super::flight::Landed;
use super::super::{as_bytes, centre_words};
use super::blocks::{Candidates, FEW_CANDIDATES, InBlock, Masked};
use super::records::Sorting;
use super::{CpuScanner, RangeScanner};
use crate::cpu::scalar;
use crate::origin::point_of;
use crate::origins::points_of;
use crate::worker::Fault;
use crate::worker::ends::{Must, combine, signed};
use crate::worker::scanner::{Scanner as _, Survivor};

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
    fn processor(&self, mask: &Arc<KeyMask>) -> Result<CpuScanner<'_>, Fault> {
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
