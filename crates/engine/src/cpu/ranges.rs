//! A stretch of a range on the processor: every key of it once, in every form that is wanted.
//!
//! Each lane of the walk takes groups that follow each other; the lanes' shares lie side by side. What the last lanes
//! compute beyond the stretch is thrown away. A group is never laid across 0 or n: at the upper end of the keys the
//! stretch is moved back and what was there before it thrown away instead.

mod hashing;
pub(crate) mod listed;
pub(crate) mod masked;

use std::sync::Arc;

use warpsmith_chain::Form;
use warpsmith_curve::group::Point;
use warpsmith_curve::walk::{Places, Walk};
use warpsmith_curve::{Affine, Scalar};
use warpsmith_store::KeyMask;

use super::Cpu;
use crate::prefilter::MayHold;
use crate::worker::Fault;
#[cfg(test)]
use crate::worker::ends::flipped;
use crate::worker::ends::{Must, Row, compare};
use crate::worker::scanner::{Scanner, Survivor, small};
use hashing::{Hashing, Window};
use listed::Listed;
use masked::Masked;

/// Groups of one lane in a stretch: some hundredths of a second.
const GROUPS: u64 = 48;

/// Stretches a scanner is given at a time.
const STRETCHES: u64 = 2;

/// One thread's scanner.
pub(crate) struct CpuScanner<'a> {
    cpu: &'a Cpu,
    forms: &'a [Form],
    filter: &'a dyn MayHold,
    /// What keys are counted from.
    base: Point,
    /// What numbers stand for, where that is not every key.
    way: Option<Way>,
    /// What is still to be covered.
    first: Scalar,
    left: u64,
    /// A bit of a lane's centre to be turned over in the middle of the next stretch.
    #[cfg(test)]
    flip: std::cell::Cell<Option<(u32, u32)>>,
}

/// Numbers that stand for candidates of a mask.
enum Way {
    /// A walk by the weights of its digits.
    Masked(Box<Masked>),
    /// One by one.
    Listed(Listed),
}

impl Scanner for CpuScanner<'_> {
    fn most(&self) -> u64 {
        STRETCHES * self.stretch()
    }

    fn seams(&self) -> Vec<u64> {
        match &self.way {
            None => vec![self.group(), 2 * self.group()],
            Some(Way::Masked(masked)) => vec![masked.group(), self.lanes() * masked.group()],
            Some(Way::Listed(_)) => vec![8, 16],
        }
    }

    fn follow(&mut self, mask: &Arc<KeyMask>) -> Result<(), Fault> {
        let masked = Masked::new(self.cpu, mask);
        self.way = Some(match masked {
            Some(masked) => Way::Masked(Box::new(masked)),
            None => Way::Listed(Listed::new(mask)),
        });
        Ok(())
    }

    fn count_from(&mut self, base: Affine) -> Result<(), Fault> {
        self.base = Some(base);
        Ok(())
    }

    fn begin(&mut self, first: Scalar, count: u64) -> Result<(), Fault> {
        (self.first, self.left) = (first, count);
        Ok(())
    }

    fn go_on(&mut self) -> Result<(u64, Vec<Survivor>), Fault> {
        let count = self.left.min(self.stretch());
        if count == 0 {
            return Ok((0, Vec::new()));
        }
        let survivors = match &self.way {
            None => self.cover(self.first, count)?,
            Some(Way::Masked(masked)) => self.cover_masked(masked, self.first, count)?,
            Some(Way::Listed(listed)) => self.cover_listed(listed, self.first, count)?,
        };
        (self.first, self.left) = (self.first.add(Scalar::from_u64(count)), self.left - count);
        Ok((count, survivors))
    }

    #[cfg(test)]
    fn flip(&mut self, lane: u32, bit: u32) {
        self.flip.set(Some((lane, bit)));
    }
}

impl<'a> CpuScanner<'a> {
    pub fn new(cpu: &'a Cpu, forms: &'a [Form], filter: &'a dyn MayHold) -> Self {
        CpuScanner {
            cpu,
            forms,
            filter,
            base: None,
            way: None,
            first: Scalar::ZERO,
            left: 0,
            #[cfg(test)]
            flip: Default::default(),
        }
    }

    /// The same, with keys that are counted from here.
    pub fn with_base(self, base: Point) -> Self {
        CpuScanner { base, ..self }
    }

    /// Covers all that is left.
    pub fn rest(&mut self) -> Result<Vec<Survivor>, Fault> {
        let mut survivors = Vec::new();
        while self.left > 0 {
            survivors.extend(self.go_on()?.1);
        }
        Ok(survivors)
    }

    /// The most keys a stretch can have.
    fn stretch(&self) -> u64 {
        let groups = if self.filter.holds_all() { 1 } else { GROUPS };
        match &self.way {
            None => self.lanes() * groups * self.group(),
            Some(Way::Masked(masked)) => self.lanes() * groups * masked.group(),
            Some(Way::Listed(listed)) => listed.stretch(),
        }
    }

    fn lanes(&self) -> u64 {
        u64::from(self.cpu.numbering().lanes)
    }

    /// Keys of a group.
    fn group(&self) -> u64 {
        2 * u64::from(self.cpu.numbering().half) + 1
    }

    /// The keys first, first + 1, .. of which the filter lets a form pass: `count` keys in all, at most
    /// [`Self::stretch`]. None of them is 0 or beyond n - 1.
    fn cover(&self, first: Scalar, count: u64) -> Result<Vec<Survivor>, Fault> {
        let (lanes, group) = (self.lanes(), self.group());
        assert!(0 < count && count <= self.stretch(), "a stretch has 1 to {} keys", self.stretch());
        let groups = count.div_ceil(lanes * group);
        let window = lanes * groups * group;
        // How many keys of the window lie before the stretch: as many as would lie beyond n - 1.
        let last = first.add(Scalar::from_u64(count - 1));
        let room = last.negate(); // n - last: the keys after it and one
        let beyond = window - count;
        let before = match small(room) {
            // Where a point's 0 lies among the keys is nobody's business, and nobody meets it.
            Some(room) if self.base.is_none() && room <= beyond => beyond - (room - 1),
            _ => 0,
        };
        let start = first.sub(Scalar::from_u64(before));
        let (first_centre, apart) =
            (start.add(Scalar::from_u64(group / 2)), Scalar::from_u64(groups * group));
        let row = Row { base: self.base, first: first_centre, apart };
        // Each lane ends where the next began: the last of these is where the last lane must end.
        let starts: Vec<Point> = (0..=lanes).map(|lane| row.lane(lane)).collect();
        let (begin, end) = (&starts[..lanes as usize], &starts[1..]);
        if begin.iter().any(Option::is_none) {
            return Err("a lane began at no key".to_owned());
        }
        let mut walk = Walk::new(self.cpu.table(), begin);
        let places = KeyPlaces { groups, group, before, count };
        let mut hashing = Hashing::new(self.cpu, self.forms, self.filter, &places);
        let mut walked = 0;
        for _ in 0..groups {
            #[cfg(test)]
            if let Some((lane, bit)) = self.flip.take() {
                let centre = walk.centres()[lane as usize].expect("not infinity");
                walk.put(lane as usize, Some(flipped(centre, bit)));
            }
            walked += walk.points(&mut hashing);
        }
        hashing.flush();
        compare(&walk.centres(), end)?;
        if walked != window {
            return Err(format!("{walked} keys were walked instead of {window}"));
        }
        let at = |(offset, form, digest)| Survivor { key: first.add(Scalar::from_u64(offset)), form, digest };
        Ok(hashing.survivors.into_iter().map(at).collect())
    }
}

/// How the places of a walk become keys.
struct KeyPlaces {
    /// Groups of a lane.
    groups: u64,
    /// Keys of a group.
    group: u64,
    /// Keys of the window before the stretch.
    before: u64,
    /// Keys of the stretch.
    count: u64,
}

impl Window for KeyPlaces {
    type At = Places;

    fn offset(&self, places: &Places, point: usize) -> Option<u64> {
        let place = places.place(point, 0, false);
        let centre = (u64::from(place.lane) * self.groups + place.step) * self.group + self.group / 2;
        let index = u64::from(place.index);
        let at = if place.minus { centre - index } else { centre + index };
        at.checked_sub(self.before).filter(|&offset| offset < self.count)
    }
}

#[cfg(test)]
mod tests;
