//! A walk on a GPU, whatever it looks for: launches under way, what they left, and what has to be done again.
//!
//! The device is given centres (public points), a table and a filter, and answers with records. The host knows where every
//! lane is ([`Lanes`]). So a launch whose hits did not fit is done again in smaller pieces, and a lane that met its table is
//! walked on the processor and then put where it belongs.
//!
//! A lane whose walk has ended with a match goes on for as long as launches are under way, and begins its next walk with the
//! launch after those. What it did in between is neither told nor counted. Launches are short enough that this is little.

use std::ops::Range;

use warpsmith_curve::Affine;
use warpsmith_curve::walk::Place;
use warpsmith_device::{Buffer, Queue};
use warpsmith_kernel::abi::{self, Record};

use super::ends::Watch;
use super::flight::{Flights, Landed};
use super::lanes::Lanes;
use super::moves::Moves;
use super::{CAPACITY, Gpu, LaunchShape, Outcome, as_bytes};
use crate::worker::{Batch, Fault, Hit, Numbering, Spot, Start, Worker};

/// Of so many lanes one may match in a launch: a lane that does is idle for a launch and a half, so this costs some five
/// percent at most.
const CALM: f32 = 32.0;

/// How much the last launch counts for the length of the next ones.
const FRESH: f32 = 0.25;

/// What a walk looks for, and how: what differs from one to the other.
pub(super) trait Quest: Send {
    /// Powers of lambda on an entry, and whether a key and its negative are two candidates.
    fn relatives(&self) -> (u8, bool);
    /// Candidates of one lane in one step.
    fn keys(&self) -> u64;
    /// The score to beat; 0 where none counts.
    fn beat(&self) -> u32 {
        0
    }
    /// From now on only higher scores are wanted.
    fn raise_to(&mut self, _beat: u32) {}
    /// From now on only scores of at least this are.
    fn raise(&mut self, _at_least: u32) {}
    /// Enqueues so many steps of so many lanes from these centres.
    fn launch(
        &self,
        queue: &mut dyn Queue,
        centres: Buffer,
        lanes: u32,
        hits: Buffer,
        steps: u32,
    ) -> Outcome<()>;
    /// Of the places a launch told of, adds those that are wanted to `hits`. Steps are those of the worker.
    fn judge(&mut self, lanes: &Lanes<'_>, told: &[(Place, abi::Hit)], hits: &mut Vec<Hit>);
    /// Walks one lane for so many steps on the processor, exactly.
    fn walk_lane(&mut self, lanes: &Lanes<'_>, lane: u32, steps: Range<u64>, hits: &mut Vec<Hit>);
}

/// A worker that walks.
pub(super) struct Walker<'a, Q> {
    pub quest: Q,
    pub shape: LaunchShape,
    pub lanes: Lanes<'a>,
    pub queue: Box<dyn Queue>,
    centres: Buffer,
    /// For launches done again.
    spare: Buffer,
    pub flights: Flights,
    pub watch: Watch,
    moves: Moves,
    /// Up to where what was last told as tried goes: the step all lanes are before, and that lanes before this one are behind.
    reached: (u64, u32),
    /// Since launches were last paced: steps that have landed, records these left, and lanes that matched.
    landed: u64,
    told: u64,
    matched: u32,
    /// What a step has of matches and records, where 1 is as much as a launch should have.
    busy: Option<f32>,
    /// Steps after which the walk ends, if it does. Then every candidate before that is looked at, however many hits there are.
    end: Option<u64>,
    /// Whether a lane may have met its table where nobody looked, so that all are put back before the next launch.
    doubtful: bool,
}

impl<'a, Q: Quest> Walker<'a, Q> {
    /// A walk in this shape, with launches of at most so many steps.
    pub fn new(
        gpu: &'a Gpu,
        shape: LaunchShape,
        mut queue: Box<dyn Queue>,
        most: u32,
        quest: Q,
    ) -> Outcome<Self> {
        let bytes = 4 * abi::centres_words(shape.lanes) as u64;
        let (centres, spare) = (queue.alloc(bytes)?, queue.alloc(bytes)?);
        let moves = Moves::new(queue.as_mut(), shape.lanes)?;
        Ok(Walker {
            quest,
            shape,
            lanes: Lanes::new(gpu),
            flights: Flights::new(queue.as_mut(), most, gpu.launch_ms, CAPACITY)?,
            queue,
            centres,
            spare,
            watch: Watch::new(centres, shape.lanes),
            moves,
            reached: (0, 0),
            landed: 0,
            told: 0,
            matched: 0,
            busy: None,
            end: None,
            doubtful: false,
        })
    }

    /// Uploads the centres of some lanes at a step.
    fn place(&mut self, to: Buffer, lanes: Range<u32>, step: u64) -> Result<(), Fault> {
        let words = self.lanes.words(lanes, step)?;
        self.queue.write(to, 0, &as_bytes(&words)).map_err(|e| e.to_string())
    }

    /// Puts all lanes where they belong once nothing is under way.
    fn put_back(&mut self) -> Result<(), Fault> {
        self.watch.forget(self.queue.as_mut()).map_err(|e| e.to_string())?;
        self.doubtful = false;
        self.moves.forget();
        let (centres, lanes, step) = (self.centres, self.shape.lanes, self.lanes.step());
        self.place(centres, 0..lanes, step)
    }

    /// Has lanes that begin anew do so behind all that is under way.
    fn move_lanes(&mut self) -> Result<(), Fault> {
        self.moves.launch(self.queue.as_mut(), self.centres, self.shape.lanes).map_err(|e| e.to_string())
    }

    /// Sends the next launch on its way.
    pub fn take_off(&mut self) -> Result<(), Fault> {
        if self.doubtful {
            // What is under way may have begun in the wrong place: it is left out.
            self.flights.forget(self.queue.as_mut()).map_err(|e| e.to_string())?;
            self.watch.gave_up();
            self.put_back()?;
        }
        self.move_lanes()?;
        // Beyond the end of a stretch lie keys of others.
        if let Some(end) = self.end {
            let left = end.saturating_sub(self.lanes.step());
            self.flights.steps = self.flights.steps.min(left.try_into().unwrap_or(u32::MAX));
        }
        let (quest, centres, lanes, steps) =
            (&self.quest, self.centres, self.shape.lanes, self.flights.steps);
        let launch = |queue: &mut dyn Queue, hits: Buffer, steps: u32| {
            quest.launch(queue, centres, lanes, hits, steps)
        };
        let took_off = self.flights.take_off(self.queue.as_mut(), self.lanes.step(), quest.beat(), launch);
        took_off.map_err(|e| e.to_string())?;
        self.lanes.advance(steps);
        Ok(())
    }

    /// Waits for the oldest launch and accounts for it.
    pub fn land(&mut self) -> Result<Batch, Fault> {
        let Some(landed) = self.flights.land(self.queue.as_mut()).map_err(|e| e.to_string())? else {
            return Ok(Batch::default());
        };
        let mut batch = self.account(landed)?;
        for hit in &mut batch.hits {
            if let Spot::Key(place) = &mut hit.spot {
                place.step = self.lanes.walks().age(place.lane, place.step).expect("others were left out");
            }
        }
        Ok(batch)
    }

    /// Has launches follow the rate of matches, and leave no more records than half of what there is room for.
    fn pace(&mut self) {
        if self.landed > 0 {
            let matches = CALM * self.matched as f32 / self.shape.lanes as f32;
            let records = self.told as f32 / (CAPACITY / 2) as f32;
            let last = matches.max(records) / self.landed as f32;
            let busy = self.busy.map_or(last, |busy| busy + FRESH * (last - busy));
            (self.landed, self.told, self.matched, self.busy) = (0, 0, 0, Some(busy));
            self.flights.calm = (1.0 / busy).clamp(1.0, u32::MAX as f32) as u32;
        }
    }

    fn account(&mut self, landed: Landed) -> Result<Batch, Fault> {
        let mut batch = Batch::default();
        let end = landed.first + u64::from(landed.steps);
        self.landed += u64::from(landed.steps);
        self.told += u64::from(landed.count);
        self.reached = (end, 0);
        let met = if landed.overflowed() {
            self.again(&landed, &mut batch)?
        } else {
            // Walks begin between launches.
            let walking = self.lanes.walking(0..self.shape.lanes, landed.first);
            batch.tried = walking * u64::from(landed.steps) * self.quest.keys();
            self.sort_out(&landed, 0, &mut batch)
        };
        if met {
            // The device has left the lanes that met their table where they were: put all lanes where they belong.
            // Launches in flight report the same lanes again and are made good the same way.
            while let Some(landed) = self.flights.land(self.queue.as_mut()).map_err(|e| e.to_string())? {
                let more = self.account(landed)?;
                batch.tried += more.tried;
                batch.stale += more.stale;
                batch.hits.extend(more.hits);
            }
            self.put_back()?;
        }
        Ok(batch)
    }

    /// Turns records into hits, but for those of walks that have ended. Lanes that met their table are walked on the processor
    /// for the rest of the launch; says whether there were any.
    fn sort_out(&mut self, landed: &Landed, lane0: u32, batch: &mut Batch) -> bool {
        let (mut met, mut told) = (false, Vec::with_capacity(landed.records.len()));
        let walks = |lanes: &Lanes<'_>, lane, step| lanes.walks().age(lane, step).is_some();
        for &record in &landed.records {
            match Record::read(record) {
                Record::Hit(hit) => {
                    let place = Place {
                        lane: lane0 + hit.lane,
                        step: landed.first + u64::from(hit.step),
                        index: hit.index,
                        minus: hit.minus,
                        orbit: hit.orbit as u8,
                        image: hit.image as u8,
                        negate: hit.negate,
                    };
                    if walks(&self.lanes, place.lane, place.step) {
                        told.push((place, hit));
                    } else {
                        batch.stale += 1;
                    }
                }
                // A lane that is to begin elsewhere is put there anyway.
                Record::Fault { lane, .. } if !walks(&self.lanes, lane0 + lane, landed.first) => {}
                Record::Fault { lane, step } => {
                    met = true;
                    let steps = landed.first + u64::from(step)..landed.first + u64::from(landed.steps);
                    self.quest.walk_lane(&self.lanes, lane0 + lane, steps, &mut batch.hits);
                }
            }
        }
        self.quest.judge(&self.lanes, &told, &mut batch.hits);
        self.quest.raise_to(landed.best);
        met
    }

    /// Does a launch again whose hits did not fit: step by step, and over as few lanes as it takes. It ends when there are
    /// hits in plenty, which end the walks of their lanes, and counts the keys up to there; a stretch is done to its end. Says whether a lane met its
    /// table; where not all of the launch was looked at, that remains in doubt.
    fn again(&mut self, landed: &Landed, batch: &mut Batch) -> Result<bool, Fault> {
        let (all, block, keys) = (self.shape.lanes, self.shape.spec.block, self.quest.keys());
        // Pieces expected to fill half the buffer.
        let share = f64::from(CAPACITY) / 2.0 * f64::from(landed.steps) / f64::from(landed.count.max(1));
        let mut lanes = ((f64::from(all) * share.min(1.0)) as u32 / block * block).max(block);
        let is_fault = |&record: &[u32; abi::HIT_WORDS]| matches!(Record::read(record), Record::Fault { .. });
        let mut met = landed.records.iter().any(is_fault);
        for step in landed.first..landed.first + u64::from(landed.steps) {
            let mut from = 0;
            while from < all {
                if batch.hits.len() > CAPACITY as usize && self.end.is_none() {
                    (self.doubtful, self.reached) = (true, (step, from));
                    return Ok(met);
                }
                let to = (from + lanes).min(all);
                let piece = self.piece(from..to, step)?;
                if piece.overflowed() && lanes > block {
                    lanes = (lanes / 2 / block * block).max(block);
                    continue;
                }
                if piece.overflowed() {
                    // So many keys pass, or survive the bitmap of a set, that not even a block of them fits: the
                    // processor has no such limit.
                    met |= piece.records.iter().any(is_fault);
                    for lane in from..to {
                        if self.lanes.walks().age(lane, step).is_some() {
                            self.quest.walk_lane(&self.lanes, lane, step..step + 1, &mut batch.hits);
                            batch.tried += keys;
                        }
                        if batch.hits.len() > CAPACITY as usize && self.end.is_none() {
                            (self.doubtful, self.reached) = (true, (step, lane + 1));
                            return Ok(met);
                        }
                    }
                } else {
                    met |= self.sort_out(&piece, from, batch);
                    batch.tried += self.lanes.walking(from..to, step) * keys;
                }
                from = to;
            }
        }
        Ok(met)
    }

    /// One step of some lanes by itself.
    fn piece(&mut self, lanes: Range<u32>, step: u64) -> Result<Landed, Fault> {
        let count = lanes.end - lanes.start;
        self.place(self.spare, lanes, step)?;
        let (quest, spare) = (&self.quest, self.spare);
        let launch = |queue: &mut dyn Queue, hits: Buffer| quest.launch(queue, spare, count, hits, 1);
        self.flights.alone(self.queue.as_mut(), step, 1, quest.beat(), launch).map_err(|e| e.to_string())
    }
}

impl<Q: Quest> Worker for Walker<'_, Q> {
    fn numbering(&self) -> Option<Numbering> {
        let (orbits, signs) = self.quest.relatives();
        let LaunchShape { spec, lanes } = self.shape;
        Some(Numbering { half: spec.group, lanes, orbits, signs })
    }

    fn start(&mut self, start: Start<'_>) -> Result<(), Fault> {
        let (points, end) = start.walk().ok_or("a walk starts at points")?;
        if points.len() != self.shape.lanes as usize {
            return Err(format!("{} points for {} lanes", points.len(), self.shape.lanes));
        }
        // What is in flight belongs to origins nobody asks about any more.
        self.flights.forget(self.queue.as_mut()).map_err(|e| e.to_string())?;
        self.watch.gave_up();
        self.lanes.begin(points);
        self.end = end;
        self.put_back()
    }

    fn replace(&mut self, lane: u32, step: u64, met: u64, point: Affine) -> u64 {
        let (reached, behind) = self.reached;
        let last = if lane < behind { reached } else { reached.saturating_sub(1) };
        let after = last.saturating_sub(self.lanes.walks().step(lane, step));
        let not_tried = self.numbering().map_or(0, |numbering| numbering.not_tried(after, met));
        self.watch.less(not_tried);
        self.matched += 1;
        self.lanes.replace(lane, point);
        self.moves.add(lane, point);
        not_tried
    }

    fn run(&mut self) -> Result<Batch, Fault> {
        self.pace();
        let is_at_end = |lanes: &Lanes<'_>, end: Option<u64>| end.is_some_and(|end| lanes.step() >= end);
        if is_at_end(&self.lanes, self.end) && self.flights.is_empty() {
            self.check()?;
            return Ok(Batch { done: true, ..Batch::default() });
        }
        while !self.flights.full() && !is_at_end(&self.lanes, self.end) {
            self.take_off()?;
            self.watch.took_off(self.queue.as_mut(), self.flights.under_way(), &self.lanes)?;
        }
        // While all of them run: the card does not wait for it.
        self.watch.look(self.queue.as_mut())?;
        let batch = self.land()?;
        self.watch.landed(batch.tried);
        Ok(batch)
    }

    fn step(&mut self) -> Result<Batch, Fault> {
        let steps = std::mem::replace(&mut self.flights.steps, 1);
        self.take_off()?;
        let batch = self.land();
        self.flights.steps = steps;
        batch
    }

    fn check(&mut self) -> Result<(), Fault> {
        self.move_lanes()?;
        self.watch.look_now(self.queue.as_mut(), &self.lanes)
    }

    fn unproved(&self) -> u64 {
        self.watch.unproved()
    }

    fn raise(&mut self, at_least: u32) -> Result<(), Fault> {
        self.quest.raise(at_least);
        Ok(())
    }

    #[cfg(test)]
    fn flip(&mut self, lane: u32, bit: u32, every: u32) {
        self.watch.every(every);
        self.watch.flip(self.queue.as_mut(), lane, bit);
    }
}
