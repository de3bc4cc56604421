//! What a job is at home: a search or a scan, with all that workers are not told, and what becomes of what they found.

use std::path::Path;

use warpsmith_engine::{Finding, Match, SaltUnit, Unit, UnitOrigin, settle};

use crate::error::{Error, Result};
use crate::folder::{ORDER, read_asked, read_order};
use crate::job::{Descriptor, Search, Task};
use crate::scan::ScanHome;
use crate::secrets::Master;
use crate::wire::Lease;

/// Salts of one number.
pub(crate) const SALTS: u64 = 1 << 16;

/// What a job is at home.
pub enum Duty {
    /// A search.
    Search(Box<Search>),
    /// A scan.
    Scan(Box<ScanHome>),
}

/// Something that was found, made of what only home knows and verified.
#[derive(Debug)]
pub enum Found {
    /// By a search.
    Match(Box<Match>),
    /// By a scan.
    Finding(Box<Finding>),
}

impl Found {
    /// The address, or the public key that was asked for in its place.
    pub fn address(&self) -> &str {
        match self {
            Found::Match(found) => &found.address,
            Found::Finding(found) => found.answer(),
        }
    }
}

impl Duty {
    /// What the job in this folder is.
    pub fn open(folder: &Path, descriptor: &Descriptor, master: &Master) -> Result<Duty> {
        match descriptor.open()? {
            Task::Search(search) => return Ok(Duty::Search(search)),
            Task::Scan(_) => {}
        }
        let order = match descriptor.order() {
            Some(order) => order,
            None => read_order(&folder.join(ORDER))?,
        };
        let scan = ScanHome::open(&order, descriptor.is_hidden(), master)?;
        Ok(Duty::Scan(Box::new(scan.answer_with(read_asked(folder)?))))
    }

    /// How many numbers its units have; none where there are always more.
    pub(crate) fn numbers(&self) -> Option<u64> {
        match self {
            Duty::Search(search) => search.salts().map(|salts| salts.div_ceil(u128::from(SALTS)) as u64),
            Duty::Scan(scan) => Some(scan.numbers()),
        }
    }

    /// The chance that a candidate is what is searched for; 0 where nobody can say.
    pub fn odds(&self) -> f64 {
        match self {
            Duty::Search(search) => search.wanted().odds(0),
            Duty::Scan(_) => 0.0,
        }
    }

    /// What lies at a spot, by libsecp256k1 and from the secret: the one place where a private key is made of what a worker told.
    pub fn settle(&self, master: &Master, lease: &Lease, spot: u64) -> Result<Vec<Found>> {
        let device = format!("worker {}", lease.worker);
        let search = match self {
            Duty::Search(search) => search,
            Duty::Scan(scan) => {
                let found = scan.settle(lease.unit, spot, &device)?;
                return Ok(found.into_iter().map(|found| Found::Finding(Box::new(found))).collect());
            }
        };
        let unit = lease.work.unit().ok_or_else(|| Error::Usage("that is no unit".to_owned()))?;
        let origin = match unit {
            Unit::Keys(unit) => {
                UnitOrigin::Key { secret: master.unit(lease.unit), split: search.split, unit }
            }
            Unit::Salts(SaltUnit { base, first, last }) => UnitOrigin::Salt(SaltUnit { base, first, last }),
        };
        let found = settle(search.subject(), search.wanted(), lease.beat, origin, spot, &device)?;
        Ok(vec![Found::Match(Box::new(found))])
    }
}
