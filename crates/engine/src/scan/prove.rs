//! Self-tests of devices that scan: keys planted where the parts of their work meet must come back, in every form, through a
//! filter of the kind a scan has. Before a scan for what it looks for, and on demand for everything a scan can look for.

use std::collections::HashMap;
use std::sync::Arc;

use warpsmith_chain::{Digest, Form, TYPES};
use warpsmith_curve::Scalar;
use warpsmith_store::{Filter, KeyMask, U256, Width};

use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::prefilter::{Fuse, MayHold, ScanFilter, TopList};
use crate::selftest::{SelfTest, side_by_side};
use crate::worker::scanner::{Scanner, Survivor, digest_of};
use crate::worker::{Backend, Fault};

/// Why a device takes no part in a scan.
pub(crate) enum Unproved {
    /// It cannot do it.
    Unable(Fault),
    /// It said it could, and failed its self-test.
    Failed(Fault),
}

/// Keys planted besides, at even distances: all lanes and multiprocessors have some.
const SPREAD: u64 = 61;

/// Survivors nobody planted that are recomputed, where the filter lets some pass.
const RECOMPUTED: usize = 64;

/// A key planted for a self-test: it must come back in this form with this digest.
type Planted = (Scalar, Form, Digest);

/// Scans that are proved at a time at most: eight write down points of 11 GB each on the largest cards.
const AT_A_TIME: u64 = 8;

/// Proves scans on every device: for each form of a key and for all of them at once, among a list of addresses and through
/// the filters of a database.
///
/// Shown by [`selftest`](crate::selftest()), which it is called as.
pub fn selftest_scans(devices: &Devices, report: &mut dyn FnMut(&SelfTest)) -> Result<()> {
    let named = |form: Form| {
        let kept = TYPES.iter().filter(|known| !known.kinds.is_empty());
        let first = kept.into_iter().find(|known| known.form() == form);
        (first.expect("every form is that of some addresses").name.as_str(), vec![form])
    };
    let kinds: Vec<_> =
        Form::SCANNED.map(named).into_iter().chain([("all types", Form::SCANNED.to_vec())]).collect();
    for device in &devices.list {
        let prove = |(what, forms): &(&str, Vec<Form>), report: &mut dyn FnMut(&SelfTest)| {
            prove_filters(device.as_ref(), what, forms, report)
        };
        side_by_side(device.as_ref(), AT_A_TIME, &kinds, prove, report)?;
    }
    Ok(())
}

/// Proves scans for these forms, by each kind of filter.
fn prove_filters(
    device: &dyn Backend,
    what: &str,
    forms: &[Form],
    report: &mut dyn FnMut(&SelfTest),
) -> Result<()> {
    // Filters in parts are looked up the same way whatever is tested.
    let parts = if forms.len() > 1 { 1..=2 } else { 1..=1 };
    let fuses = parts.flat_map(|parts| Width::ALL.map(|width| (width, parts)));
    for fuse in [None].into_iter().chain(fuses.map(Some)) {
        let case = match fuse {
            None => format!("{what}, list"),
            Some((width, 1)) => format!("{what}, {}", width.name()),
            Some((width, _)) => format!("{what}, {} in parts", width.name()),
        };
        // Which addresses there are does not matter: those planted take their place.
        let filter = match fuse {
            None => ScanFilter::List(TopList::new([])),
            Some((width, parts)) => {
                let first = Filter::of_tops(&[0], width, parts)?;
                ScanFilter::Fuse(Box::new(Fuse { first, second: None }))
            }
        };
        // Every device can do every scan, so one that cannot is at fault too.
        let planted = prove(device, forms, &filter).map_err(|unproved| {
            let (Unproved::Unable(why) | Unproved::Failed(why)) = unproved;
            Error::SelfTest { device: device.id(), what: format!("scan, {case}: {why}") }
        })?;
        report(&SelfTest { device: device.id(), target: "scan", case, planted });
    }
    Ok(())
}

/// How many keys were planted for a device, in every form, and found by it.
pub(crate) fn prove(
    device: &dyn Backend,
    forms: &[Form],
    filter: &ScanFilter,
) -> std::result::Result<usize, Unproved> {
    // Any keys do: these are where nothing special lies.
    prove_numbers(device, forms, filter, &Numbers { first: Scalar::LAMBDA, mask: None })
}

/// The same by candidates of a mask: the first of them.
pub(crate) fn prove_mask(
    device: &dyn Backend,
    forms: &[Form],
    filter: &ScanFilter,
    mask: &Arc<KeyMask>,
) -> std::result::Result<usize, Unproved> {
    // Of texts with a checksum hardly any is a key: how keys are tested is proved by others.
    let others = if mask.texts().is_some() { prove(device, forms, filter)? } else { 0 };
    Ok(others + prove_numbers(device, forms, filter, &Numbers { first: Scalar::ZERO, mask: Some(mask) })?)
}

/// What numbers of a scan stand for.
struct Numbers<'m> {
    /// Where a self-test begins.
    first: Scalar,
    /// Whose candidates they are; none where they are keys themselves.
    mask: Option<&'m Arc<KeyMask>>,
}

impl Numbers<'_> {
    /// A scanner for them.
    fn scanner<'s>(
        &self,
        device: &'s dyn Backend,
        forms: &'s [Form],
        filter: &'s ScanFilter,
    ) -> std::result::Result<Box<dyn Scanner + 's>, Unproved> {
        let mut scanner = device.scanner(forms, filter).map_err(Unproved::Unable)?;
        if let Some(mask) = self.mask {
            scanner.follow(mask).map_err(Unproved::Unable)?;
        }
        Ok(scanner)
    }

    /// The digest of a number's key; none where it is none.
    fn digest(&self, number: Scalar, form: Form) -> Option<Digest> {
        let key = match self.mask {
            None => number,
            Some(mask) => Scalar::from_be_bytes(&mask.key_at(U256::from_be_bytes(number.to_be_bytes()))?)?,
        };
        digest_of(key, form)
    }
}

fn prove_numbers(
    device: &dyn Backend,
    forms: &[Form],
    filter: &ScanFilter,
    numbers: &Numbers<'_>,
) -> std::result::Result<usize, Unproved> {
    let first = numbers.first;
    let seams = numbers.scanner(device, forms, filter)?.seams();
    // The last group is not a whole one.
    let mut count = seams.iter().sum::<u64>() + 2;
    if let Some(mask) = numbers.mask {
        count = count.min(u64::try_from(mask.count()).unwrap_or(u64::MAX));
    }
    let mut offsets: Vec<u64> = seams.iter().flat_map(|seam| [seam - 1, *seam, seam + 1]).collect();
    offsets.extend([0, 1, count.saturating_sub(2), count - 1]);
    offsets.extend((0..SPREAD).map(|part| count / SPREAD * part));
    offsets.retain(|offset| *offset < count);
    offsets.sort_unstable();
    offsets.dedup();
    let plant = |form: Form, offset: u64| -> Option<Planted> {
        let number = first.add(Scalar::from_u64(offset));
        Some((number, form, numbers.digest(number, form)?))
    };
    // Of a mask's candidates not all are keys.
    let planted: Vec<Planted> = forms
        .iter()
        .flat_map(|&form| offsets.iter().filter_map(move |&offset| plant(form, offset)))
        .collect();
    let mut tops: Vec<u64> = planted.iter().map(|(_, _, digest)| digest.words()[0]).collect();
    tops.sort_unstable();
    tops.dedup();
    let filter = like(filter, &tops).map_err(Unproved::Unable)?;
    let mut scanner = numbers.scanner(device, forms, &filter)?;
    find_all(scanner.as_mut(), numbers, count, &planted, &filter).map_err(Unproved::Failed)?;
    Ok(planted.len())
}

/// A filter of the same kind that lets these pass.
pub(super) fn like(filter: &ScanFilter, tops: &[u64]) -> std::result::Result<ScanFilter, Fault> {
    Ok(match filter {
        ScanFilter::List(_) => ScanFilter::List(TopList::new(tops.iter().copied())),
        ScanFilter::Fuse(filter) => {
            let alike = |filter: &Filter| {
                Filter::of_tops(tops, filter.width(), filter.parts().len()).map_err(|error| error.to_string())
            };
            let (first, second) = (alike(&filter.first)?, filter.second.as_ref().map(alike).transpose()?);
            ScanFilter::Fuse(Box::new(Fuse { first, second }))
        }
        ScanFilter::Open => ScanFilter::Open,
    })
}

/// Scans a stretch and compares what came back with what was planted there.
fn find_all(
    scanner: &mut dyn Scanner,
    numbers: &Numbers<'_>,
    count: u64,
    planted: &[Planted],
    filter: &ScanFilter,
) -> std::result::Result<(), Fault> {
    scanner.begin(numbers.first, count)?;
    let (mut done, mut found) = (0, Vec::new());
    while done < count {
        let (keys, survivors) = scanner.go_on()?;
        if keys == 0 {
            return Err("it stopped in the middle of its self-test".to_owned());
        }
        done += keys;
        found.extend(survivors);
    }
    if let Some(proof) = scanner.proof()? {
        proof()?;
    }
    // One look-up each: through the filter of a database millions may pass on a card.
    let mut times: HashMap<&Planted, u32> = planted.iter().map(|planted| (planted, 0)).collect();
    for survivor in &found {
        if let Some(times) = times.get_mut(&(survivor.key, survivor.form, survivor.digest)) {
            *times += 1;
        }
    }
    if let Some(((_, form, _), times)) = times.into_iter().find(|(_, times)| *times != 1) {
        return Err(format!("a key planted for its self-test came back {times} times as {form:?}"));
    }
    if let ScanFilter::List(_) = filter
        && found.len() > planted.len()
    {
        let more = found.len() - planted.len();
        return Err(format!("{more} keys that were not planted came back from its self-test"));
    }
    let is_right = |s: &Survivor| {
        numbers.digest(s.key, s.form) == Some(s.digest) && filter.may_hold(s.digest.words()[0])
    };
    match found.iter().step_by(found.len().div_ceil(RECOMPUTED).max(1)).all(is_right) {
        true => Ok(()),
        false => Err("a key that passed in its self-test does not have the digest it computed".to_owned()),
    }
}
