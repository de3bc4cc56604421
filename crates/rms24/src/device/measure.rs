//! How fast a device makes all hints of a client, the database on it already.

use std::time::Instant;

use warpsmith_device::Device;
use warpsmith_hash::Lanes;

use super::card::{Card, Tuning};
use super::hint_run::HintRun;
use crate::error::Result;
use crate::hints::make::{Order, Processor};
use crate::hints::measure::{Figures, pseudorandom_at};
use crate::hints::{NEVER, Sample};
use crate::params::{GROUP, Params};
use crate::prf::{Key, Prf};

/// Makes all hints for a database of pseudorandom bytes, which the device makes up, and measures it. About `samples` hints
/// are recomputed by the processor, from entries it makes up itself.
///
/// The time is that of everything between a database on the device and hints in the host's memory: a key, cutoffs, extras,
/// parities, reading back. The kernels are built and the database is there before; the check comes after.
///
/// # Errors
///
/// When the device fails, or has no room for the database, or computes something wrong.
pub fn measure(
    params: &Params,
    device: &dyn Device,
    lanes: Lanes,
    threads: usize,
    samples: usize,
) -> Result<Figures> {
    let mut card = Card::open(device, params, &Tuning::default())?;
    let database = card.make_up(params)?;
    card.queue.finish()?;
    let begin = Instant::now();
    let key = Key::random()?;
    let prf = Prf::new(&key, params, lanes);
    let host = Processor { lanes, threads };
    let (m, q) = (params.regular(), params.backups());
    let order = Order { params, key: &key, regular: 0..m, backups: m..m + q, stop: &NEVER };
    let mut making = HintRun::begin(&mut card, &prf, host, &order)?;
    let skeleton = begin.elapsed();
    making.absorb(&mut card, &database)?;
    let hints = making.finish(&mut card)?;
    let parities = begin.elapsed() - skeleton;

    let groups = samples.div_ceil(2 * GROUP as usize);
    let mut sample = Sample::new(&prf, params, &hints.skeleton, groups)?;
    sample.take(pseudorandom_at);
    sample.check(card.id(), &hints)?;
    Ok(Figures {
        pairs: params.pairs(),
        gathers: params.gathers(),
        skeleton,
        parities,
        processor: None,
        verified: sample.len(),
    })
}
