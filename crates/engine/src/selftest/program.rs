//! The test before a search: planted candidates must come back from the very program that will search.
//!
//! A card has a program compiled for each kind of filter, the processor a way for each. Which one a filter selects is the
//! device's business; here filters are tried until one selects the same. They are made of digests, not of patterns, so that
//! any number of ranges can be had for any target.

use std::collections::BTreeSet;

use warpsmith_pattern::{Filter, Interval, Parity, ScoreFilter, Term, Words};

use super::best;
use super::probe::Probe;
use crate::error::{Error, Result};
use crate::space::Subject;
use crate::worker::{Backend, Program, Search, Spot};

/// Candidates planted together, and one after the other.
const TOGETHER: usize = 128;
const IN_TURN: usize = 8;

/// Candidates planted by terms, one after the other: the search for each is an exact one and takes its time.
const BY_TERMS: usize = 4;

/// Bits of a digest by which a planted candidate is told from all others.
const RARE: u32 = 48;

/// Candidates of a sample: enough that every sign, orbit and image is among them.
const SAMPLE: f64 = 512.0;

/// Numbers of ranges to try besides those of the search itself: a device may treat hundreds, thousands and tens of thousands
/// each in its own way, and more take longer to be made ready.
const SIZES: [usize; 3] = [16, 2_000, 20_000];

/// Proves the program by which a device is to do this search.
pub(crate) fn prove_program(device: &dyn Backend, subject: Subject<'_>, search: &Search<'_>) -> Result<()> {
    let _open = device.hold();
    let program = device.program(search);
    let mut probe = Probe::new(device, subject, "sample")?;
    let Some((size, stand_in)) = stand_in(&probe, &program, search.filter)? else {
        return Err(probe.fail(format!("no filter was found that selects what is to search ({})", program.0)));
    };
    if !probe.adopt(&stand_in)? {
        return Ok(());
    }
    if let Some(wanted) = search.filter.score.as_ref().filter(|wanted| wanted.each) {
        return by_each_score(&probe, &program, search.filter, size, wanted);
    }
    if let Some(wanted) = &search.filter.score {
        same_program(&probe, &program, &Filter::scored(wanted.score.clone(), 1))?;
        return best(device, subject, &wanted.score).map(drop);
    }
    if !search.filter.terms.is_empty() {
        return plant(&probe, &program, 1, BY_TERMS, |probe, spots| by_terms(probe, spots, size));
    }
    if device.is_card() {
        // A prefix that many have shows all lanes of a card at once.
        sample(&probe, &program, size)?;
    }
    let together = size.max(TOGETHER);
    if probe.program(&Filter { top: ranges(together)?, ..Filter::default() }) == program {
        return plant(&probe, &program, TOGETHER, TOGETHER, |probe, spots| by_ranges(probe, spots, together));
    }
    if !device.is_card() {
        plant(&probe, &program, size, IN_TURN, |probe, spots| by_ranges(probe, spots, size))?;
        // And all places at once, as many patterns are searched: by the same walk.
        let many = probe.program(&Filter { top: ranges(together)?, ..Filter::default() });
        return plant(&probe, &many, TOGETHER, TOGETHER, |probe, spots| by_ranges(probe, spots, together));
    }
    Ok(())
}

/// A filter of next to nothing by which the device runs this program, as it does by `filter`, and how many ranges it has.
fn stand_in(probe: &Probe<'_>, program: &Program, filter: &Filter) -> Result<Option<(usize, Filter)>> {
    let wanted = filter.top.len();
    let terms = if filter.terms.is_empty() { Vec::new() } else { vec![term(&random_words()?)] };
    // What is searched by ranges alone is tested by one at least.
    let least = usize::from(terms.is_empty() && filter.score.is_none());
    for size in [wanted.clamp(least, SIZES[0])].into_iter().chain(SIZES).chain([wanted]) {
        let stand_in = Filter { top: ranges(size)?, terms: terms.clone(), score: filter.score.clone() };
        if probe.program(&stand_in) == *program {
            return Ok(Some((size, stand_in)));
        }
    }
    Ok(None)
}

/// Plants candidates, at most so many and so many at a time, and searches for them by the filters that `filter` makes.
fn plant(
    probe: &Probe<'_>,
    program: &Program,
    at_a_time: usize,
    limit: usize,
    filter: impl Fn(&Probe<'_>, &[Spot]) -> Result<Filter>,
) -> Result<()> {
    for spots in probe.plants(limit).chunks(at_a_time.max(1)) {
        let filter = filter(probe, spots)?;
        same_program(probe, program, &filter)?;
        let seen = probe.search(&filter)?;
        for spot in spots {
            probe.came_back_once(&seen, *spot)?;
        }
    }
    Ok(())
}

/// Searches for a range so wide that many candidates lie in it: every hit is recomputed, none may come twice, their number
/// must fit the number of candidates, every sign, orbit and image must occur, and a planted one is among them.
fn sample(probe: &Probe<'_>, program: &Program, size: usize) -> Result<()> {
    // The last candidate of all, and some hundred others that look like it.
    let (planted, candidates) = probe.extent();
    let bits = (candidates / SAMPLE).log2().floor().max(2.0) as u32;
    let wide = around(probe.digest(planted)?.words()[0], bits);
    let filter = Filter { top: with(vec![wide], size)?, ..Filter::default() };
    same_program(probe, program, &filter)?;
    let seen = probe.search(&filter)?;
    if !seen.contains_key(&planted) {
        return Err(probe.fail(format!("the candidate at {planted:?} was missed")));
    }
    let expected = candidates * filter.share();
    if (seen.len() as f64 - expected).abs() > 6.0 * expected.sqrt() + 6.0 {
        return Err(probe.fail(format!("{} candidates found where {expected:.0} were expected", seen.len())));
    }
    let mut kinds = BTreeSet::new();
    for spot in seen.keys() {
        probe.came_back_once(&seen, *spot)?;
        if !filter.accepts(&probe.digest(*spot)?.words()) {
            return Err(probe.fail(format!("the candidate at {spot:?} is not what was searched for")));
        }
        if let Spot::Key(place) = spot
            && place.index > 0
        {
            kinds.insert((place.image, place.orbit, place.minus, place.negate));
        }
    }
    // With 500 keys the chance that one of eighteen kinds is absent is below 10^-11.
    let all = probe.numbering.map_or(0, |s| 6 * usize::from(s.orbits) * if s.signs { 2 } else { 1 });
    if expected > 500.0 && kinds.len() < all {
        return Err(probe.fail("a sign, orbit or image never occurs"));
    }
    Ok(())
}

/// Whether a test is run by the program it is to prove.
fn same_program(probe: &Probe<'_>, program: &Program, filter: &Filter) -> Result<()> {
    let runs = probe.program(filter);
    if runs == *program {
        Ok(())
    } else {
        Err(probe.fail(format!("its test runs {runs:?}, not {program:?}")))
    }
}

/// So many ranges, among them one for each of these candidates.
fn by_ranges(probe: &Probe<'_>, spots: &[Spot], size: usize) -> Result<Filter> {
    let of = |spot: &Spot| Ok(around(probe.digest(*spot)?.words()[0], RARE));
    let top = spots.iter().map(of).collect::<Result<Vec<Interval>>>()?;
    Ok(Filter { top: with(top, size)?, ..Filter::default() })
}

/// A term for each of these candidates, beside so many ranges.
fn by_terms(probe: &Probe<'_>, spots: &[Spot], size: usize) -> Result<Filter> {
    let of = |spot: &Spot| Ok(term(&probe.digest(*spot)?.words()));
    Ok(Filter {
        top: ranges(size)?,
        terms: spots.iter().map(of).collect::<Result<Vec<Term>>>()?,
        score: None,
    })
}

/// Plants candidates for a search that is told of each that scores enough: beside ranges or terms where the filter has some, or else the
/// best of those that the host looks at.
fn by_each_score(
    probe: &Probe<'_>,
    program: &Program,
    filter: &Filter,
    size: usize,
    wanted: &ScoreFilter,
) -> Result<()> {
    let scored = |spots: &[Spot], beside: Filter| -> Result<Filter> {
        let scores = spots.iter().map(|spot| Ok(wanted.score.of(&probe.digest(*spot)?)));
        let at_least = scores.collect::<Result<Vec<u32>>>()?.into_iter().min().unwrap_or(0);
        Ok(Filter { score: Some(ScoreFilter { at_least, ..wanted.clone() }), ..beside })
    };
    if !filter.terms.is_empty() {
        return plant(probe, program, 1, BY_TERMS, |probe, spots| {
            scored(spots, by_terms(probe, spots, size)?)
        });
    }
    if !filter.top.is_empty() {
        return plant(probe, program, 1, BY_TERMS, |probe, spots| {
            scored(spots, by_ranges(probe, spots, size)?)
        });
    }
    let mut best = None;
    for spot in probe.spots() {
        best = best.max(Some((wanted.score.of(&probe.digest(spot)?), spot)));
    }
    let Some((_, spot)) = best else { return Ok(()) };
    let filter = scored(&[spot], Filter::default())?;
    same_program(probe, program, &filter)?;
    probe.came_back_once(&probe.search(&filter)?, spot)
}

/// Bits in the middle of a digest, which all have, and a parity of its start.
fn term(words: &Words) -> Term {
    let mask = [0, u64::MAX >> (64 - RARE), 0, 0];
    let parity = Parity { mask: [u64::MAX, 0, 0, 0], odd: words[0].count_ones() % 2 == 1 };
    Term { mask, value: [0, words[1] & mask[1], 0, 0], parities: vec![parity] }
}

/// The digests that begin with the same so many bits.
fn around(top: u64, bits: u32) -> Interval {
    let rest = u64::MAX.checked_shr(bits).unwrap_or(0);
    Interval { first: top & !rest, last: top | rest }
}

/// So many ranges that next to nothing lies in.
pub(super) fn ranges(size: usize) -> Result<Vec<Interval>> {
    with(Vec::new(), size)
}

/// These ranges and others, in which next to nothing lies, up to so many: sorted, and none touches another.
fn with(mut ranges: Vec<Interval>, size: usize) -> Result<Vec<Interval>> {
    loop {
        ranges.sort_by_key(|range| range.first);
        ranges.dedup_by(|next, range| next.first <= range.last.saturating_add(1));
        let missing = size.saturating_sub(ranges.len());
        if missing == 0 {
            return Ok(ranges);
        }
        let mut bytes = vec![0; 8 * missing];
        warpsmith_entropy::fill(&mut bytes).map_err(Error::Randomness)?;
        let tops =
            bytes.chunks_exact(8).map(|bytes| bytes.iter().fold(0, |top, byte| top << 8 | u64::from(*byte)));
        ranges.extend(tops.map(|top| around(top, RARE)));
    }
}

fn random_words() -> Result<Words> {
    let mut bytes = [0; 16];
    warpsmith_entropy::fill(&mut bytes).map_err(Error::Randomness)?;
    let word = |half: &[u8]| half.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    Ok([word(&bytes[..8]), word(&bytes[8..]), 0, 0])
}

#[cfg(test)]
mod tests;
