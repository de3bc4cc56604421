//! Records of a launch become survivors: of a coarse filter millions pass in a second, so all cores sort them out.

use warpsmith_chain::Digest;
use warpsmith_curve::Scalar;
use warpsmith_kernel::scan::{Passed, RECORD_WORDS, ScanRecord};

use super::blocks::InBlock;
use crate::forms;
use crate::prefilter::{MayHold, ScanFilter};
use crate::run::threads::in_threads;
use crate::worker::Fault;
use crate::worker::scanner::{Survivor, digest_of};

/// Records that are worth a thread.
const FEW: usize = 1 << 14;

/// What places of records stand for: of a launch over so many lanes and steps, and the `count` keys from `first` on.
pub(super) struct Sorting<'s> {
    pub wanted: &'s ScanFilter,
    /// Table entries, and keys of a group.
    pub half: u64,
    pub group: u64,
    pub steps: u32,
    pub lanes: u32,
    pub first: Scalar,
    pub count: u64,
    /// Where they are candidates of a mask.
    pub of: Option<InBlock<'s>>,
}

impl Sorting<'_> {
    /// The survivors of these records, in their order.
    pub fn sort_out(&self, records: &[[u32; RECORD_WORDS]]) -> Result<Vec<Survivor>, Fault> {
        in_threads(records, FEW, |records| {
            let mut survivors = Vec::new();
            for record in records {
                survivors.extend(self.survivor(record)?);
            }
            Ok(survivors)
        })
    }

    /// What a record stands for; none where that is no key asked for, or nothing that is wanted.
    fn survivor(&self, record: &[u32; RECORD_WORDS]) -> Result<Option<Survivor>, Fault> {
        let is_place = |passed: &Passed| {
            passed.lane < self.lanes && passed.step < self.steps && u64::from(passed.index) <= self.half
        };
        let passed = match ScanRecord::read(record) {
            Some(ScanRecord::Passed(passed)) if is_place(&passed) => passed,
            Some(ScanRecord::Fault { .. }) => return Err("a lane met its table where none can".to_owned()),
            _ => return Err("it wrote a record that is none".to_owned()),
        };
        let top = u64::from(passed.digest[0]) << 32 | u64::from(passed.digest[1]);
        if let ScanFilter::Fuse(filter) = self.wanted
            && !passed.open
            && !filter.passes_second(top)
        {
            return Ok(None);
        }
        let offset = match &self.of {
            Some(of) => of.offset(passed.lane, passed.step, passed.index, passed.minus),
            None => {
                let step = u64::from(passed.step) * u64::from(self.lanes) + u64::from(passed.lane);
                let (centre, index) = (step * self.group + self.half, u64::from(passed.index));
                Some(if passed.minus { centre - index } else { centre + index })
            }
        };
        let Some(offset) = offset.filter(|offset| *offset < self.count) else { return Ok(None) };
        let (number, form) = (self.first.add(Scalar::from_u64(offset)), forms::of_scan(passed.form));
        let key = match &self.of {
            Some(of) => of.key(self.first, offset),
            None => Some(number),
        };
        // Not every candidate of a mask is a key.
        let Some(key) = key else { return Ok(None) };
        let digest = match passed.open {
            false => Some(digest(&passed)),
            // It could not form the digest, and asks for it to be looked at here.
            true => digest_of(key, form).filter(|digest| self.wanted.may_hold(digest.words()[0])),
        };
        Ok(digest.map(|digest| Survivor { key: number, form, digest }))
    }
}

fn digest(passed: &Passed) -> Digest {
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.chunks_exact_mut(4).zip(passed.digest) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    Digest::new(&bytes[..passed.form.bytes()])
}
