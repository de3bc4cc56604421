//! What workers and the coordinator say to each other, as JSON. All of it is public; what decides is checked by whoever reads it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use warpsmith_engine::{KeyUnit, Outfit, PublicKey, RangeStart, RangeUnit, SaltUnit, Unit};

use crate::id::JobId;
use crate::leases::Holder;
use crate::secrets::Master;

/// The version of these messages; a worker of another one is told so.
pub const VERSION: u32 = 2;

/// The longest message that is read.
pub const MOST_BYTES: usize = 64 << 10;

/// The most shares that are told of a unit: several times what any unit is cut for.
pub const MOST_SHARES: usize = 2048;

/// Shares that a lease may make a worker expect: twice what any unit is cut for.
const MAX_EXPECTED: f64 = 256.0;
/// A lease that would take longer than so many times its time is none that a coordinator gives.
const MAX_LATENESS: f64 = 10.0;
/// The longest time of a lease that counts: a day.
const MAX_TIME: Duration = Duration::from_secs(86_400);
/// The least time of a lease that is looked at so: seconds.
const MIN_LATE: f64 = 60.0;

/// A device asks for work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// [`VERSION`].
    pub version: u32,
    /// Which of the worker's devices.
    pub slot: u16,
    /// What the worker calls it.
    pub device: String,
    /// What it is ready for.
    pub ready: Option<Ready>,
    /// Jobs it cannot do.
    #[serde(default)]
    pub unable: Vec<JobId>,
    /// Units it has.
    #[serde(default)]
    pub holding: Vec<u64>,
    /// Whether this is a heartbeat of a device at work, which needs no unit.
    #[serde(default)]
    pub busy: bool,
}

/// The job that a device has prepared, and how it would have its units. Which keys count as candidates follows from the job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// The job.
    pub job: JobId,
    /// Table entries of a group.
    pub half: u32,
    /// Groups, or salts, that it does side by side.
    pub grain: u64,
    /// Candidates a second, as it says: believed until a unit is proven, and then measured.
    pub rate: f64,
}

impl Ready {
    /// A device with this outfit.
    pub fn new(job: JobId, outfit: Outfit, rate: f64) -> Ready {
        let Outfit { half, grain, .. } = outfit;
        Ready { job, half, grain, rate }
    }
}

/// The answer to that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Do this.
    Lease(Box<Lease>),
    /// Get this job's text, prepare for it, and ask again. A busy device drops its units first.
    Prepare {
        /// The job.
        job: JobId,
    },
    /// Ask again then; a busy device continues, and sends its next heartbeat then.
    Wait {
        /// Milliseconds.
        ms: u64,
    },
    /// Not any more.
    Refused {
        /// Why.
        why: String,
    },
}

/// A unit for one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// The job.
    pub job: JobId,
    /// The unit's number.
    pub unit: u64,
    /// How many numbers it stands for; 0 if it is to be compared with what another did, and counts for nothing.
    pub count: u64,
    /// The coordinator that gave it.
    pub epoch: u64,
    /// The worker, and which of its devices.
    pub worker: u32,
    /// Which of its devices.
    pub slot: u16,
    /// Leading zero bits of a share.
    pub bits: u32,
    /// The score to beat.
    pub beat: u32,
    /// Milliseconds until it is given to another.
    pub ms: u64,
    /// What to do.
    pub work: Work,
    /// By which the coordinator, or one after it, recognises it.
    pub token: String,
}

/// What a unit is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Keys around a point.
    Keys {
        /// The point, compressed, hex.
        point: String,
        /// Table entries of a group.
        half: u32,
        /// Powers of lambda on an entry.
        orbits: u8,
        /// Whether a key and its negative are two candidates.
        signs: bool,
        /// Groups.
        steps: u64,
    },
    /// Salts.
    Salts {
        /// What the free bytes hold that the counter does not reach, hex.
        base: String,
        /// The first counter.
        first: u64,
        /// The last.
        last: u64,
    },
    /// Keys of a range that follow each other.
    Range {
        /// The first key, hex.
        first: String,
        /// How many.
        count: u64,
        /// Digests to look for besides the job's: which of the job's forms, and hex.
        also: Vec<String>,
    },
    /// The same from a point on, whose key is not told.
    Points {
        /// The first point, compressed, hex.
        point: String,
        /// How many.
        count: u64,
        /// The x coordinates to look for, hex.
        wanted: Vec<String>,
    },
}

impl Work {
    /// How many candidates there are; none if it is no unit.
    pub fn candidates(&self) -> Option<u128> {
        match self {
            Work::Keys { .. } | Work::Salts { .. } => self.unit().map(|unit| unit.candidates()),
            Work::Range { .. } | Work::Points { .. } => self.range().map(|unit| u128::from(unit.count)),
        }
    }

    /// The unit of a range, as a worker does it; none if it is none.
    pub fn range(&self) -> Option<RangeUnit> {
        let (start, count) = match self {
            Work::Range { first, count, .. } => {
                let mut key = [0; 32];
                const_hex::decode_to_slice(first, &mut key).ok()?;
                (RangeStart::Key(key), *count)
            }
            Work::Points { point, count, .. } => (RangeStart::Point(read_point(point)?), *count),
            Work::Keys { .. } | Work::Salts { .. } => return None,
        };
        Some(RangeUnit { start, count }).filter(RangeUnit::is_sound)
    }

    /// The same without what to look for: which keys they are.
    pub fn place(&self) -> Work {
        match self.clone() {
            Work::Range { first, count, .. } => Work::Range { first, count, also: Vec::new() },
            Work::Points { point, count, .. } => Work::Points { point, count, wanted: Vec::new() },
            work => work,
        }
    }

    /// The work of a unit.
    pub fn of(unit: &Unit) -> Work {
        match unit {
            Unit::Keys(KeyUnit { point, half, orbits, signs, steps }) => Work::Keys {
                point: const_hex::encode(point.serialize()),
                half: *half,
                orbits: *orbits,
                signs: *signs,
                steps: *steps,
            },
            Unit::Salts(SaltUnit { base, first, last }) => {
                Work::Salts { base: const_hex::encode(base), first: *first, last: *last }
            }
        }
    }

    /// The unit of a search, as a worker does it; none if it is none.
    pub fn unit(&self) -> Option<Unit> {
        match self {
            Work::Keys { point, half, orbits, signs, steps } => {
                let point = read_point(point)?;
                let unit = KeyUnit { point, half: *half, orbits: *orbits, signs: *signs, steps: *steps };
                unit.is_sound().then_some(Unit::Keys(unit))
            }
            Work::Salts { base, first, last } => {
                let mut bytes = [0; 32];
                const_hex::decode_to_slice(base, &mut bytes).ok()?;
                (first <= last).then_some(Unit::Salts(SaltUnit { base: bytes, first: *first, last: *last }))
            }
            Work::Range { .. } | Work::Points { .. } => None,
        }
    }
}

fn read_point(text: &str) -> Option<PublicKey> {
    let mut bytes = [0; 33];
    const_hex::decode_to_slice(text, &mut bytes).ok()?;
    PublicKey::from_slice(&bytes).ok()
}

impl Lease {
    /// The device it is for.
    pub fn holder(&self) -> Holder {
        Holder { worker: self.worker, slot: self.slot }
    }

    fn text(&self) -> Vec<u8> {
        serde_json::to_vec(&Lease { token: String::new(), ..self.clone() }).expect("plain values")
    }

    /// Returns why a device of this worker should not do it, if it should not: no coordinator gives such a lease, but whoever runs the
    /// server can make one up. `ready` has the device's own rate.
    pub fn refusal(&self, worker: u32, slot: u16, ready: &Ready) -> Option<String> {
        if (self.job, self.worker, self.slot) != (ready.job, worker, slot) {
            return Some("it is for another job, worker or device".to_owned());
        }
        let Some(candidates) = self.work.candidates() else { return Some("it is no unit".to_owned()) };
        let candidates = candidates as f64;
        let expected = candidates * (-f64::from(self.bits)).exp2();
        if self.work.unit().is_some() && expected > MAX_EXPECTED {
            return Some(format!(
                "it would have {expected:.0} shares, and a unit has at most {MAX_EXPECTED}"
            ));
        }
        let time = Duration::from_millis(self.ms).min(MAX_TIME).as_secs_f64();
        let seconds = candidates / ready.rate.max(1.0);
        if seconds > (MAX_LATENESS * time).max(MIN_LATE) {
            return Some(format!("it would take {seconds:.0} seconds, and is given for {time:.0}"));
        }
        None
    }

    /// With the token that proves where it came from.
    pub fn signed(mut self, master: &Master) -> Lease {
        self.token = const_hex::encode(master.sign(&self.text()));
        self
    }

    /// Whether it came from whoever has this master.
    pub fn is_signed(&self, master: &Master) -> bool {
        let mut token = [0; 16];
        const_hex::decode_to_slice(&self.token, &mut token).is_ok() && master.is_signed(&self.text(), &token)
    }
}

/// What came of a lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The lease as it was given.
    pub lease: Lease,
    /// Spots of shares, rising.
    pub shares: Vec<u64>,
    /// Spots of what is wanted, rising.
    pub matches: Vec<u64>,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

/// The answer to that. It comes when the ledger is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It counts.
    Counted,
    /// It was done already, and does not count again.
    Known,
    /// It does not count.
    Refused {
        /// Why.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leases that no coordinator gives: floods of shares, units of years, those of others.
    #[test]
    fn made_up_leases_are_refused() {
        let job = JobId([1; 32]);
        let ready = Ready { job, half: 16, grain: 1, rate: 1e6 };
        let point = const_hex::encode(
            PublicKey::from_slice(
                &const_hex::decode("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
                    .expect("hex"),
            )
            .expect("a point")
            .serialize(),
        );
        let keys = |orbits, steps| Work::Keys { point: point.clone(), half: 16, orbits, signs: false, steps };
        let good = Lease {
            job,
            unit: 1,
            count: 1,
            epoch: 1,
            worker: 3,
            slot: 2,
            bits: 11,
            beat: 0,
            ms: 3000,
            work: keys(3, 500),
            token: String::new(),
        };
        let why = |lease: Lease| lease.refusal(3, 2, &ready).unwrap_or_default();
        assert_eq!(why(good.clone()), "");
        assert!(why(Lease { bits: 1, ..good.clone() }).contains("shares"));
        assert!(why(Lease { bits: 50, work: keys(3, 1 << 35), ..good.clone() }).contains("seconds"));
        let years = Lease { ms: u64::MAX, bits: 50, work: keys(3, 1 << 35), ..good.clone() };
        assert!(why(years).contains("seconds"));
        assert!(why(Lease { work: keys(2, 500), ..good.clone() }).contains("no unit"));
        for other in [
            Lease { worker: 4, ..good.clone() },
            Lease { slot: 1, ..good.clone() },
            Lease { job: JobId([2; 32]), ..good },
        ] {
            assert!(why(other).contains("another"));
        }
    }
}
