//! Whether somebody did what they say: statistics of shares.
//!
//! A share is a candidate whose digest begins with so many zero bits. How many a unit has is Poisson's law, its mean known
//! beforehand; where they lie is even chance; and each was verified. So whoever leaves work out has too few, or a gap, or too few
//! of one lane. The figures are those of the tests below:
//!
//! - **A unit** with fewer shares than one honest unit in a million has, or with a gap that wide, is done again by another.
//! - **A worker** is flagged when z falls below [`FLAG`], and set aside below [`ASIDE`]. z is the work that its shares prove less the
//!   work it reported, in standard deviations: a share of b zero bits proves 2^b candidates, so that no number of small units makes
//!   up for a large one. The same is computed for each class of sizes apart (units whose shares have the same number of bits).
//! - **Lanes**: shares are counted by where in a unit they lie, over many units of about the largest size. A part of a card that
//!   is dead shows as a bin that stays empty.
//! - **Units done twice** by two workers must have the same shares, bit for bit. As each share was verified, one who lacks a share
//!   has not done the unit. Flagged workers have every unit done twice, new ones their first, others one in fifty.
//!
//! A false share or match sets a worker aside at once: there is no honest way to one.
//!
//! **By lot.** Of a worker in good standing 8 shares of a unit are verified, chosen when the report is there. What is said above counts
//! shares that were told, so it holds as long as those are true: one who leaves out a part f of a unit and makes up for it with false
//! shares is caught in that unit with a chance of `1 - (1 - f)^8`, 57 % where f is a tenth, and loses all it did. New and flagged
//! workers, and all units that are done twice, have every share verified.
//!
//! **Detection power.** The shares of work W prove W on average, whatever a worker chooses to do, to report or to abandon. So work
//! that is left out shows as a deficit, and stays unnoticed only within chance, which grows with the square root of the number of
//! full units. The best simulated worker, which watches its own z and keeps it above -2.5 or -3, leaves out 3 units of 60 and 10 of
//! 1,000 where nobody compares, and 2 of either where one unit in fifty is compared.

use std::collections::BTreeMap;

/// Bins by which lanes are watched.
const BINS: usize = 128;
/// Units of fewer candidates are not looked at by bins: those that have one candidate more than others would have 1 % more shares, or, of
/// fewer than 128, some would have none.
const BINNED: u128 = BINS as u128 * 100;

/// The chance at which something is not believed to have happened to an honest worker's unit.
const UNLIKELY: f64 = 1e-6;

/// Below this, every unit of a worker is done twice. One that leaves out a tenth of each unit comes below it within 60 units of one
/// size in 99.3 % of simulations; an honest one loses nothing by it.
pub const FLAG: f64 = -4.0;
/// Below this, a worker is set aside. z is looked at after every unit, so that an honest worker has a thousand chances in a thousand
/// units; all together they come to some 3e-6.
pub const ASIDE: f64 = -5.0;
/// So many refused units within the last hundred set a worker aside too.
const REFUSED: u32 = 3;

/// The chance that a Poisson variable of this mean is at most `count`.
pub fn poisson_at_most(count: u64, mean: f64) -> f64 {
    // From the largest term down: for what is asked here, count below the mean, they fall off quickly.
    let ln_term = |k: f64| k * mean.ln() - mean - ln_factorial(k);
    let mut term = ln_term(count as f64).exp();
    let mut sum = 0.0;
    for k in (0..=count).rev() {
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
        term *= k as f64 / mean;
    }
    sum.min(1.0)
}

/// ln k!, by Stirling's series from 10 on.
fn ln_factorial(k: f64) -> f64 {
    if k < 10.0 {
        return (2..=k as u64).map(|i| (i as f64).ln()).sum();
    }
    let x = k + 1.0;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + 1.0 / (12.0 * x)
        - 1.0 / (360.0 * x.powi(3))
}

/// The chance that somewhere between so many even shares, or at an end, a gap is at least this wide: at most the sum of the
/// chances of each gap.
pub fn gap_at_least(shares: usize, gap: f64) -> f64 {
    ((shares as f64 + 1.0) * (1.0 - gap).max(0.0).powi(shares as i32)).min(1.0)
}

/// What shares say of one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UnitVerdict {
    /// As an honest one.
    Fine,
    /// Too few.
    TooFew,
    /// A part without any.
    Gap,
}

/// Judges one unit by its shares: where each lies, from 0 to 1 and rising, and how many were expected.
pub fn judge(parts: &[f64], expected: f64) -> UnitVerdict {
    if poisson_at_most(parts.len() as u64, expected) < UNLIKELY {
        return UnitVerdict::TooFew;
    }
    let ends = std::iter::once(0.0).chain(parts.iter().copied());
    let widest = ends.zip(parts.iter().copied().chain([1.0])).map(|(a, b)| b - a).fold(0.0, f64::max);
    if gap_at_least(parts.len(), widest) < UNLIKELY { UnitVerdict::Gap } else { UnitVerdict::Fine }
}

/// What is thought of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Nothing speaks against it.
    Honest,
    /// It has rather few shares: all it does is done twice.
    Flagged(String),
    /// Nothing it says is taken any more.
    Aside(String),
}

/// Shares of all units of one class of sizes.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    shares: u64,
    /// How many there should be.
    expected: f64,
}

impl Class {
    fn excess(&self) -> f64 {
        self.shares as f64 - self.expected
    }
}

/// The record of a worker.
#[derive(Clone, Debug)]
pub struct Record {
    /// Units that were judged.
    pub units: u64,
    /// Classes of sizes, by the number of zero bits of a share.
    classes: BTreeMap<u32, Class>,
    /// Candidates of all units, and the sum of the squares of each unit's.
    candidates: f64,
    squares: f64,
    bins: [u32; BINS],
    /// How many shares there should be in all bins together.
    binned: f64,
    /// Candidates of the largest unit in the bins.
    largest: u128,
    /// Refused units, the last hundred units as they came.
    refused: u128,
    trust: Trust,
}

impl Default for Record {
    fn default() -> Record {
        Record {
            units: 0,
            classes: BTreeMap::new(),
            candidates: 0.0,
            squares: 0.0,
            bins: [0; BINS],
            binned: 0.0,
            largest: 0,
            refused: 0,
            trust: Trust::Honest,
        }
    }
}

impl Record {
    /// Returns the work that its shares prove less the work it reported, in standard deviations.
    pub fn z(&self) -> f64 {
        let work = |(bits, class): (&u32, &Class)| f64::from(*bits).exp2() * class.excess();
        let variance = |(bits, class): (&u32, &Class)| f64::from(2 * *bits).exp2() * class.expected;
        let (work, variance): (f64, f64) =
            (self.classes.iter().map(work).sum(), self.classes.iter().map(variance).sum());
        if variance > 0.0 { work / variance.sqrt() } else { 0.0 }
    }

    /// Returns the lowest of [`Record::z`] and that of each class alone.
    fn lowest_z(&self) -> f64 {
        let alone = self.classes.values().filter(|class| class.expected > 0.0);
        alone.map(|class| class.excess() / class.expected.sqrt()).fold(self.z(), f64::min)
    }

    /// Returns how many units of one size say as much as those that were judged: small ones count for little beside large ones.
    pub fn full_units(&self) -> f64 {
        if self.squares > 0.0 { self.candidates * self.candidates / self.squares } else { 0.0 }
    }

    /// What is thought of it.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Whether nothing it says is taken.
    pub fn is_aside(&self) -> bool {
        matches!(self.trust, Trust::Aside(_))
    }

    /// Sets it aside, for good.
    pub fn set_aside(&mut self, why: impl Into<String>) {
        if !self.is_aside() {
            self.trust = Trust::Aside(why.into());
        }
    }

    /// Takes a unit of so many candidates that was proven by other means than shares.
    pub fn count(&mut self, candidates: u128) {
        self.units += 1;
        self.candidates += candidates as f64;
        self.squares += candidates as f64 * candidates as f64;
    }

    /// Takes a unit of so many candidates whose shares, of so many zero bits, were verified; see [`judge`]. Returns whether that
    /// unit can be taken.
    pub fn take(&mut self, parts: &[f64], candidates: u128, bits: u32) -> UnitVerdict {
        let expected = candidates as f64 * (-f64::from(bits)).exp2();
        let verdict = judge(parts, expected);
        self.count(candidates);
        let class = self.classes.entry(bits).or_default();
        class.shares += parts.len() as u64;
        class.expected += expected;
        self.bin(parts, expected, candidates);
        const LAST: u128 = (1 << 100) - 1;
        self.refused = self.refused << 1 & LAST | u128::from(verdict != UnitVerdict::Fine);
        if self.is_aside() {
            return verdict;
        }
        let z = self.lowest_z();
        if z < ASIDE {
            self.set_aside(format!("too few shares (z = {z:.1}): it does not do all it reports"));
        } else if self.refused.count_ones() >= REFUSED {
            self.set_aside("several units with too few shares, or none in a part of them");
        } else if self.units.is_power_of_two()
            && let Some(bin) = self.empty_bin()
        {
            self.set_aside(format!(
                "of part {bin} of {BINS} of its units no shares come: some of its lanes do nothing"
            ));
        } else if z < FLAG {
            self.trust = Trust::Flagged(format!("rather few shares (z = {z:.1})"));
        } else if matches!(self.trust, Trust::Flagged(_)) && z > FLAG + 1.0 {
            self.trust = Trust::Honest;
        }
        verdict
    }

    /// Counts shares by where they lie, of units of at least half the largest size: smaller ones would hide what those lack.
    fn bin(&mut self, parts: &[f64], expected: f64, candidates: u128) {
        if candidates < BINNED || 2 * candidates < self.largest {
            return;
        }
        if candidates > 2 * self.largest {
            (self.bins, self.binned) = ([0; BINS], 0.0);
        }
        self.largest = self.largest.max(candidates);
        self.binned += expected;
        for part in parts {
            self.bins[((part * BINS as f64) as usize).min(BINS - 1)] += 1;
        }
    }

    /// A bin with so few shares that it cannot be chance, looked for each time the units have doubled.
    fn empty_bin(&self) -> Option<usize> {
        let expected = self.binned / BINS as f64;
        self.bins.iter().position(|&bin| {
            f64::from(bin) < expected && poisson_at_most(u64::from(bin), expected) < UNLIKELY * 1e-4
        })
    }
}

#[cfg(test)]
mod tests;
