//! Units of a range on one device: keys that follow each other, compared with digests that differ from unit to unit.
//!
//! A unit begins at a key, or at a point whose logarithm whoever does the unit need not know. What is told of it are the distances
//! from there of keys that have one of the digests in the form it is wanted in.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use secp256k1::PublicKey;
use warpsmith_chain::{Digest, Form, PublicPoint};
use warpsmith_curve::{Affine, Scalar};

use super::check::public;
use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::origin::{affine, point_of};
use crate::origins::moved_by;
use crate::prefilter::{ScanFilter, TopList};
use crate::scan::{Unproved, prove};
use crate::worker::scanner::{Scanner, small};
use crate::worker::{Backend, Fault};

/// Keys that follow each other. See [`RangeRunner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeUnit {
    /// The first.
    pub start: RangeStart,
    /// How many.
    pub count: u64,
}

/// Where a unit of a range begins. See [`RangeRunner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeStart {
    /// At this key, big-endian.
    Key([u8; 32]),
    /// At the key of this point, whoever knows it.
    Point(PublicKey),
}

impl RangeUnit {
    /// The most keys a unit can have.
    pub const MOST: u64 = 1 << 62;

    /// Whether all of its keys are keys.
    pub fn is_sound(&self) -> bool {
        (1..=Self::MOST).contains(&self.count)
            && match &self.start {
                RangeStart::Key(first) => Scalar::from_be_bytes(first).is_some_and(|first| {
                    // n - first: the key itself, and those after it.
                    !first.is_zero() && small(first.negate()).is_none_or(|room| room >= self.count)
                }),
                RangeStart::Point(_) => true,
            }
    }

    /// What the scanner counts from, and the first number.
    fn origin(&self) -> (Option<Affine>, Scalar) {
        match &self.start {
            RangeStart::Key(first) => (None, Scalar::from_be_bytes(first).unwrap_or(Scalar::ZERO)),
            RangeStart::Point(point) => (Some(affine(point)), Scalar::ZERO),
        }
    }

    /// The points so far from the first one, in the unit or beyond it; none where that is infinity. By our own additions, some
    /// microseconds each.
    pub fn points(&self, offsets: &[u64]) -> Vec<Option<PublicPoint>> {
        let (base, first) = self.origin();
        let Some(start) = base.or_else(|| point_of(first)) else { return vec![None; offsets.len()] };
        let ways: Vec<Scalar> = offsets.iter().map(|offset| Scalar::from_u64(*offset)).collect();
        moved_by(start, &ways).into_iter().map(|point| point.map(public)).collect()
    }
}

/// One device that does units of ranges.
///
/// ```
/// use std::collections::HashSet;
/// use std::sync::atomic::{AtomicBool, AtomicU64};
/// use warpsmith_chain::Form;
/// use warpsmith_engine::{Devices, RangeRunner, RangeStart, RangeUnit, Secret, public_point};
///
/// let devices = Devices::cpu()?;
/// let mut runner = RangeRunner::new(&devices, &[Form::Hash160])?;
/// let mut key = [0; 32];
/// key[30] = 7;
/// let wanted = Secret::from_bytes(&key).expect("a key").public_key();
/// let wanted = HashSet::from([(Form::Hash160, Form::Hash160.reference(&public_point(&wanted)))]);
/// let mut first = [0; 32];
/// first[31] = 1;
/// let unit = RangeUnit { start: RangeStart::Key(first), count: 5000 };
/// let (stop, tried) = (AtomicBool::new(false), AtomicU64::new(0));
/// assert_eq!(runner.run(&unit, &wanted, &stop, &tried)?, Some(vec![7 * 256 - 1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RangeRunner<'a> {
    device: &'a Arc<dyn Backend>,
    forms: Vec<Form>,
}

impl<'a> RangeRunner<'a> {
    /// The first of these devices, if it can scan for these forms and has proved itself. An error says why it cannot.
    pub fn new(devices: &'a Devices, forms: &[Form]) -> Result<RangeRunner<'a>> {
        let device = devices.list.first().ok_or_else(|| Error::NoDevice("none was selected".to_owned()))?;
        match prove(device.as_ref(), forms, &ScanFilter::List(TopList::new([]))) {
            Ok(_) => Ok(RangeRunner { device, forms: forms.to_vec() }),
            Err(Unproved::Unable(why)) => Err(Error::NoDevice(format!("{}: {why}", device.id()))),
            Err(Unproved::Failed(what)) => Err(Error::SelfTest { device: device.id(), what }),
        }
    }

    /// The device.
    pub fn id(&self) -> String {
        self.device.id()
    }

    /// Does a unit: every key of it once, in every form. The distances from its start of keys with one of these digests, rising and
    /// each once. `tried` counts as it goes. None if it was stopped.
    pub fn run(
        &mut self,
        unit: &RangeUnit,
        wanted: &HashSet<(Form, Digest)>,
        stop: &AtomicBool,
        tried: &AtomicU64,
    ) -> Result<Option<Vec<u64>>> {
        let lost = |what: Fault| Error::DevicesLost { device: self.device.id(), what };
        if !unit.is_sound() {
            return Err(lost("its unit holds what is no key".to_owned()));
        }
        let filter = ScanFilter::List(TopList::new(wanted.iter().map(|(_, digest)| digest.words()[0])));
        let scanners: std::result::Result<Vec<_>, Fault> =
            (0..self.device.scanners()).map(|_| self.device.scanner(&self.forms, &filter)).collect();
        let shared = Shared { unit, wanted, stop, tried, next: AtomicU64::new(0) };
        let told = scanners.and_then(|scanners| shared.cover(scanners)).map_err(lost)?;
        Ok(told.map(|mut spots| {
            spots.sort_unstable();
            // One key may be wanted in several forms.
            spots.dedup();
            spots
        }))
    }
}

/// What the scanners of a device share while they do a unit.
struct Shared<'s> {
    unit: &'s RangeUnit,
    wanted: &'s HashSet<(Form, Digest)>,
    stop: &'s AtomicBool,
    tried: &'s AtomicU64,
    /// The first key that nobody has taken.
    next: AtomicU64,
}

impl Shared<'_> {
    /// Has scanners do the unit between them. None if they were stopped.
    fn cover(&self, scanners: Vec<Box<dyn Scanner + '_>>) -> std::result::Result<Option<Vec<u64>>, Fault> {
        thread::scope(|scope| {
            let threads: Vec<_> = scanners
                .into_iter()
                .map(|mut scanner| scope.spawn(move || self.batches(scanner.as_mut())))
                .collect();
            let mut all = Some(Vec::new());
            for thread in threads {
                let told = thread.join().unwrap_or_else(|_| Err("it panicked".to_owned()))?;
                all = all.zip(told).map(|(mut all, told)| {
                    all.extend(told);
                    all
                });
            }
            Ok(all)
        })
    }

    /// One scanner until nothing is left.
    fn batches(&self, scanner: &mut dyn Scanner) -> std::result::Result<Option<Vec<u64>>, Fault> {
        let (base, first) = self.unit.origin();
        if let Some(base) = base {
            scanner.count_from(base)?;
        }
        let most = scanner.most().clamp(1, RangeUnit::MOST);
        let mut spots = Vec::new();
        loop {
            let at = self.next.fetch_add(most, Ordering::Relaxed);
            if at >= self.unit.count {
                return Ok(Some(spots));
            }
            let keys = most.min(self.unit.count - at);
            scanner.begin(first.add(Scalar::from_u64(at)), keys)?;
            let mut done = 0;
            while done < keys {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                let (covered, survivors) = scanner.go_on()?;
                if covered == 0 || covered > keys - done {
                    return Err(format!("{covered} keys of {} were reported covered", keys - done));
                }
                done += covered;
                self.tried.fetch_add(covered, Ordering::Relaxed);
                for survivor in survivors {
                    if self.wanted.contains(&(survivor.form, survivor.digest)) {
                        let spot = small(survivor.key.sub(first)).filter(|spot| *spot < self.unit.count);
                        spots.push(spot.ok_or("it found a key outside of its unit")?);
                    }
                }
            }
            // Nothing is told before the lanes were found where they must be.
            if let Some(proof) = scanner.proof()? {
                proof()?;
            }
        }
    }
}

#[cfg(test)]
mod tests;
