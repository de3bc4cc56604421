//! Scans by a fleet: a range cut into units, each with keys planted in it.
//!
//! A worker is given where a unit begins, how many keys it has, and digests to look for. Some of these are of keys that the
//! coordinator planted in this very unit, in a number that nobody else knows; others are of keys that lie elsewhere. They are told
//! in the order of their digits, so that nothing tells them apart. Whoever has not told all that were planted has not done the unit:
//! one that leaves out a tenth of it goes through with 26 planted keys, which is the mean, once in 15 times, and a single time
//! is enough.
//!
//! **Open units** say the key they begin at. Targets are known by their hash, so a worker that finds one has its private key, and
//! so has whoever reads the server's messages. **Hidden units** are for targets whose public key Q is known. The worker gets the
//! points `P = (a + r) G` and `Q + r G`, `-Q + r G`, with another secret r for each unit, and answers with distances from P. It
//! learns neither a, nor the range, nor Q; a target looks like a planted key. Units of a hidden scan begin at a secret distance
//! before the range, so that not even their grid says anything of a key.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use warpsmith_chain::{Digest, Form, KeyType, PublicPoint};
use warpsmith_engine::{Finding, PublicKey, RangeStart, RangeUnit, ScanTargets, Secret, public_point};
use warpsmith_store::{Interval, TargetList, U256, parse_range};

use crate::error::{Error, Result};
use crate::secrets::Master;
use crate::wire::{Lease, Work};

/// Keys of one number, at least: so few that all of them may be told of in one report.
const LEAST_CHUNK: u32 = 10;
/// Digests that are told besides what is looked for: planted ones, and others.
const TOLD: usize = 48;
/// Of those so many are planted, at least, and at most so many more.
const PLANTED: (usize, usize) = (12, 29);
/// Keys that a report may tell of. A unit with more counts as far as those reach.
pub const MOST_FOUND: usize = 2048;
/// Targets of a hidden scan, at most: each takes two points in every lease.
pub const MOST_HIDDEN: usize = 128;

/// Bits of the number of keys of a range, at most: numbers have 62 of them, and so have the keys of one.
const MOST_BITS: u32 = 124;

fn bits(range: &Interval) -> u32 {
    256 - range.count().leading_zeros()
}

/// What a worker knows of a scan besides its units.
pub struct ScanTask {
    forms: Vec<Form>,
    digests: Vec<(Form, Digest)>,
}

impl ScanTask {
    /// One whose units say all there is to look for.
    pub fn hidden() -> ScanTask {
        ScanTask { forms: vec![Form::X], digests: Vec::new() }
    }

    /// One for these targets.
    pub fn open(order: &Order) -> Result<ScanTask> {
        order.range()?;
        let targets = order.targets()?;
        let digests = targets.digests().unwrap_or_default();
        Ok(ScanTask { forms: targets.forms(), digests })
    }

    /// The forms that are computed of each key.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// What to look for in a unit; none if it is no unit of a scan.
    pub fn wanted(&self, work: &Work) -> Option<HashSet<(Form, Digest)>> {
        let told: Option<HashSet<_>> = match work {
            Work::Range { also, .. } => also.iter().map(|text| read_digest(&self.forms, text)).collect(),
            Work::Points { wanted, .. } => {
                wanted.iter().map(|text| read_digest(&[Form::X], &format!("0:{text}"))).collect()
            }
            Work::Keys { .. } | Work::Salts { .. } => None,
        };
        told.map(|told| told.into_iter().chain(self.digests.iter().copied()).collect())
    }
}

/// A digest as leases have it: which of the forms, and hex.
fn write_digest(forms: &[Form], form: Form, digest: &Digest) -> String {
    let at = forms.iter().position(|known| *known == form).unwrap_or_default();
    format!("{at}:{}", const_hex::encode(digest.as_bytes()))
}

fn read_digest(forms: &[Form], text: &str) -> Option<(Form, Digest)> {
    let (at, hex) = text.split_once(':')?;
    let form = *forms.get(at.parse::<usize>().ok()?)?;
    let bytes = const_hex::decode(hex).ok()?;
    (bytes.len() == form.bytes()).then(|| (form, Digest::new(&bytes)))
}

/// What a person asked for: a range and addresses, as text. Of a hidden scan it never leaves the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The range, as a scan takes it, both ends included.
    pub range: String,
    /// Types of addresses.
    pub types: Vec<String>,
    /// The addresses.
    pub addresses: Vec<String>,
}

impl Order {
    fn targets(&self) -> Result<ScanTargets> {
        let bad = |why: String| Error::Usage(why);
        let find = |name: &String| {
            let known = KeyType::find(name).filter(|known| !known.kinds.is_empty());
            known.ok_or_else(|| bad(format!("'{}' is no type of address", name.escape_debug())))
        };
        let types = self.types.iter().map(find).collect::<Result<Vec<_>>>()?;
        let list = TargetList::of(&self.addresses).map_err(|error| bad(error.to_string()))?;
        Ok(ScanTargets::list(&list, &types)?)
    }

    fn range(&self) -> Result<Interval> {
        let bad = |why: &str| Error::Usage(why.to_owned());
        let range = parse_range(&self.range).map_err(|_| bad("the range of this scan cannot be read"))?;
        match bits(&range) <= MOST_BITS {
            true => Ok(range),
            false => Err(bad(
                "a fleet scans ranges of fewer than 2^124 keys, and nobody comes to the end of those; give a part of it",
            )),
        }
    }
}

/// A scan as the coordinator has it.
pub struct ScanHome {
    range: Interval,
    targets: ScanTargets,
    forms: Vec<Form>,
    digests: HashSet<(Form, Digest)>,
    /// The points of a hidden scan's targets; none of an open one.
    hidden: Option<Vec<PublicKey>>,
    /// Keys of one number, as a power of two.
    chunk: u32,
    /// The key of the first number: the range's, or somewhat before it.
    first: U256,
    /// What was asked for in place of addresses.
    asked: HashMap<String, String>,
}

/// What a report of a unit came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// Where targets were found.
    pub found: Vec<u64>,
    /// Numbers of the unit that are covered, from its first on.
    pub numbers: u64,
}

/// What is false about a report of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FalseReport {
    /// The unit is none of this scan.
    #[error("that is no unit")]
    NoUnit,
    /// A key lies beside the unit.
    #[error("it tells of a key outside of its unit")]
    Outside,
    /// Planted keys are missing.
    #[error("it did not find all keys that were planted in its unit")]
    Planted,
    /// A key is neither planted nor a target.
    #[error("a match is false")]
    Match,
}

impl ScanHome {
    /// The scan of this order.
    pub fn open(order: &Order, is_hidden: bool, master: &Master) -> Result<ScanHome> {
        let (range, targets) = (order.range()?, order.targets()?);
        let (forms, digests) = (targets.forms(), targets.digests().unwrap_or_default());
        if is_hidden && forms != [Form::X] {
            return Err(Error::Usage("only public keys can be looked for without showing them".to_owned()));
        }
        let hidden = is_hidden.then(|| digests.iter().filter_map(|(_, digest)| lift(digest)).collect());
        let digests = digests.into_iter().collect();
        // Numbers have 64 bits.
        let chunk = LEAST_CHUNK.max(bits(&range).saturating_sub(62));
        let mut first = range.first();
        if is_hidden {
            let shift = U256::from_be_bytes(*master.shift()) & ((U256::ONE << chunk) - U256::ONE);
            // A range that begins with the very first keys has nothing before it.
            first -= shift.min(range.first() - U256::ONE);
        }
        Ok(ScanHome { range, targets, forms, digests, hidden, chunk, first, asked: HashMap::new() })
    }

    /// The scan that answers with what was asked for, by the addresses it is found as.
    pub fn answer_with(self, asked: HashMap<String, String>) -> ScanHome {
        ScanHome { asked, ..self }
    }

    /// How many numbers there are.
    pub fn numbers(&self) -> u64 {
        let keys = self.range.last() - self.first + U256::ONE;
        ((keys + ((U256::ONE << self.chunk) - U256::ONE)) >> self.chunk).as_u64()
    }

    /// As many numbers as have so many keys, at least one.
    pub fn numbers_of(&self, keys: f64) -> u64 {
        let most = (RangeUnit::MOST >> self.chunk).max(1);
        ((keys / (self.chunk as f64).exp2()).round().max(1.0) as u64).min(most)
    }

    /// Keys of so many numbers.
    pub fn keys_of(&self, numbers: u64) -> u64 {
        u64::try_from(U256::from(numbers) << self.chunk).unwrap_or(u64::MAX)
    }

    /// The first key of a number.
    fn key(&self, number: u64) -> U256 {
        self.first + (U256::from(number - 1) << self.chunk)
    }

    /// The unit of these numbers: where it begins, and how many keys it has.
    fn unit(&self, master: &Master, number: u64, count: u64) -> Option<RangeUnit> {
        let first = self.key(number);
        let whole = U256::from(count) << self.chunk;
        let (start, keys) = match &self.hidden {
            None => (RangeStart::Key(first.to_be_bytes()), whole.min(self.range.last() - first + U256::ONE)),
            // Also beyond the range: where it ends is not told.
            Some(_) => {
                let own = Secret::from_bytes(&first.to_be_bytes())?.public_key();
                (RangeStart::Point(own.combine(&master.unit(number).public_key()).ok()?), whole)
            }
        };
        Some(RangeUnit { start, count: u64::try_from(keys).ok()? }).filter(RangeUnit::is_sound)
    }

    /// The unit of these numbers as a worker gets it.
    pub fn work(&self, master: &Master, number: u64, count: u64) -> Option<Work> {
        let unit = self.unit(master, number, count)?;
        let plan = Plan::new(master, number, unit.count, self.forms.len());
        let offsets: Vec<u64> = plan.told.iter().map(|(offset, _)| *offset).collect();
        let points = unit.points(&offsets);
        let told = plan.told.iter().zip(&points).filter_map(|((_, form), point)| {
            let form = self.forms[*form];
            Some((form, form.reference(point.as_ref()?)))
        });
        // In the order of their digits, which says nothing.
        let sorted = |mut texts: Vec<String>| {
            texts.sort_unstable();
            texts
        };
        Some(match (unit.start, &self.hidden) {
            (RangeStart::Point(point), Some(targets)) => {
                let blind = master.unit(number).public_key();
                let moved = |target: PublicKey| target.combine(&blind).ok().map(|sum| public_point(&sum));
                let sought = targets.iter().flat_map(|target| [moved(*target), moved(target.negate())]);
                let x = |point: PublicPoint| const_hex::encode(point.x);
                let told = told.map(|(_, digest)| const_hex::encode(digest.as_bytes()));
                let wanted = sorted(sought.flatten().map(x).chain(told).collect());
                Work::Points { point: const_hex::encode(point.serialize()), count: unit.count, wanted }
            }
            (RangeStart::Key(first), _) => {
                let also =
                    sorted(told.map(|(form, digest)| write_digest(&self.forms, form, &digest)).collect());
                Work::Range { first: const_hex::encode(first), count: unit.count, also }
            }
            (RangeStart::Point(_), None) => return None,
        })
    }

    /// Checks a report of a unit against what was planted in it and what is looked for.
    pub fn check(
        &self,
        master: &Master,
        lease: &Lease,
        spots: &[u64],
    ) -> std::result::Result<Scanned, FalseReport> {
        let unit = self.unit(master, lease.unit, lease.count).ok_or(FalseReport::NoUnit)?;
        let plan = Plan::new(master, lease.unit, unit.count, self.forms.len());
        let planted: HashSet<u64> = plan.planted().iter().map(|(offset, _)| *offset).collect();
        // A report that is full goes as far as it goes; its last key may not be all there is of its number.
        let is_full = spots.len() >= MOST_FOUND;
        let numbers = if is_full { spots[spots.len() - 1] >> self.chunk } else { lease.count };
        let reached = if is_full { numbers << self.chunk } else { unit.count };
        if spots.last().is_some_and(|last| *last >= unit.count) {
            return Err(FalseReport::Outside);
        }
        let told: HashSet<u64> = spots.iter().copied().collect();
        if planted.iter().any(|spot| *spot < reached && !told.contains(spot)) {
            return Err(FalseReport::Planted);
        }
        // A target may lie where something was planted.
        let digests = |point: &PublicPoint| {
            let wanted = |form: &Form| self.digests.contains(&(*form, form.reference(point)));
            self.forms.iter().any(wanted)
        };
        let plain = RangeUnit { start: RangeStart::Key(self.key(lease.unit).to_be_bytes()), ..unit };
        let (mut found, points) = (Vec::new(), plain.points(spots));
        for (spot, point) in spots.iter().zip(&points) {
            let is_target = point.as_ref().is_some_and(digests);
            if is_target {
                found.push(*spot);
            } else if !planted.contains(spot) {
                return Err(FalseReport::Match);
            }
        }
        // What lies beside the range was not asked for, and what lies beyond what is covered will be told of again.
        let is_asked = |spot: u64| self.range.contains(self.key(lease.unit) + U256::from(spot));
        found.retain(|spot| *spot < reached && is_asked(*spot));
        Ok(Scanned { found, numbers })
    }

    /// The keys at a spot, by libsecp256k1; an error if that is none of the targets.
    pub fn settle(&self, number: u64, spot: u64, device: &str) -> Result<Vec<Finding>> {
        let key = self.key(number).checked_add(U256::from(spot)).filter(|key| self.range.contains(*key));
        let wrong = || Error::Usage(format!("a result of {device} is false"));
        let secret = key.and_then(|key| Secret::from_bytes(&key.to_be_bytes())).ok_or_else(wrong)?;
        let mut found = self.targets.findings(&secret, device)?;
        for found in &mut found {
            found.asked = self.asked.get(&found.address).cloned();
        }
        if found.is_empty() { Err(wrong()) } else { Ok(found) }
    }
}

/// The point with this x coordinate and an even y; none where there is none.
fn lift(x: &Digest) -> Option<PublicKey> {
    PublicKey::from_slice(&[&[2], x.as_bytes()].concat()).ok()
}

/// Which keys are told of with a unit: the first of them are planted in it, the others lie beyond it.
struct Plan {
    /// How far from the start of the unit, and in which of the forms.
    told: Vec<(u64, usize)>,
    planted: usize,
}

impl Plan {
    /// The same for the same unit, so that whoever is given it twice learns nothing by that.
    fn new(master: &Master, number: u64, keys: u64, forms: usize) -> Plan {
        let mut bytes = [0; 2 + 9 * TOLD];
        master.plan(number, keys, &mut bytes);
        let (head, rest) = bytes.split_at(2);
        let planted = PLANTED.0 + usize::from(u16::from_le_bytes([head[0], head[1]])) % PLANTED.1;
        let planted = planted.min(usize::try_from(keys).unwrap_or(usize::MAX));
        let mut taken = HashSet::new();
        let place = |(at, bytes): (usize, &[u8])| {
            let wide = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
            let mut offset = if at < planted { wide % keys } else { keys + (wide >> 2) };
            // Two alike would stand out.
            while !taken.insert(offset) {
                offset = if at < planted { (offset + 1) % keys } else { offset + 1 };
            }
            (offset, usize::from(bytes[8]) % forms.max(1))
        };
        Plan { told: rest.chunks_exact(9).enumerate().map(place).collect(), planted }
    }

    fn planted(&self) -> &[(u64, usize)] {
        &self.told[..self.planted]
    }
}

#[cfg(test)]
mod tests;
