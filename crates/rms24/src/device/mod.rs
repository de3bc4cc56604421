//! Hints made by a graphics card, or any other device of CUDA or OpenCL: the same bytes as the processor's.
//!
//! ```text
//! cutoffs    on the device; the few it leaves open, and the extras, on the processor
//! database   window by window, spread so that entries are aligned; or all of it, where it stays for many clients or is made up
//!            to measure
//! parities   for each window: pairs, then regular hints, as many at a time as the device has registers for
//! sample     a group of regular hints and one of pairs, chosen at random, recomputed by the processor from the same stream
//! ```
//!
//! SEC: whoever runs the device holds the key and could read the queries. It is the client's own, or that of a hint maker
//! which sees no queries.
//!
//! Files: `card.rs` is the device with its kernels, `hint_run.rs` one client's hints on it, `window.rs` where the cutoffs'
//! kernel looks, `hints/sample.rs` the check, `resident.rs` a database that stays, `measure.rs` the benchmark, `make.rs`
//! the device as one of those who make hints. Beside it the processor does a part: extras, cutoffs the device leaves open, the sample.

mod card;
mod hint_run;
mod make;
mod measure;
mod resident;
mod window;

use warpsmith_device::Device;
use warpsmith_hash::Lanes;

pub use card::Tuning;
use card::{Card, Store};
use hint_run::HintRun;
pub use make::OnDevice;
pub use measure::measure;
pub use resident::Resident;

use crate::error::{Error, Result};
use crate::hints::make::{Order, Processor};
use crate::hints::{self, Hints, NEVER, Sample};
use crate::params::Params;
use crate::prf::{Key, Prf};

/// The whole offline phase: a fresh key, and hints from a stream of the database, as [`crate::hints::offline`].
///
/// # Errors
///
/// When the stream fails or has the wrong length, the system gives no random bytes, the device fails
/// ([`Error::Device`]) or computes something wrong ([`Error::Wrong`]). After the last two the processor can still do it.
pub fn offline(
    params: &Params,
    device: &dyn Device,
    lanes: Lanes,
    threads: usize,
    stream: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
) -> Result<(Key, Hints)> {
    let key = Key::random()?;
    let (m, q) = (params.regular(), params.backups());
    let host = Processor { lanes, threads };
    let order = Order { params, key: &key, regular: 0..m, backups: m..m + q, stop: &NEVER };
    let hints = self::hints(device, host, &Tuning::default(), &order, stream)?;
    Ok((key, hints))
}

/// The hints of some ids under a key, from a stream of the database: what a hint maker is asked for.
///
/// # Errors
///
/// As for [`offline`], when the ranges are not of whole groups or more than a device can count, and when it is stopped.
pub fn hints(
    device: &dyn Device,
    host: Processor,
    tuning: &Tuning,
    order: &Order<'_>,
    stream: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
) -> Result<Hints> {
    let params = order.params;
    let mut card = Card::open(device, params, tuning)?;
    let prf = Prf::new(order.key, params, host.lanes);
    let mut making = HintRun::begin(&mut card, &prf, host, order)?;
    making.draw_extras(&mut card)?;
    let mut sample = Sample::new(&prf, params, making.skeleton(), 1)?;
    let mut store = Store::new(&mut card, params)?;
    let whole = whole_length(params);
    let mut seen = 0;
    stream(&mut |bytes| {
        if bytes.len() as u64 > whole - seen {
            return Err(wrong_length(format!("it is longer than {whole} bytes")));
        }
        sample.push(seen, bytes);
        seen += bytes.len() as u64;
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = store.push(&mut card, rest)?;
            if let Some(window) = store.full(&mut card)? {
                making.absorb(&mut card, &window)?;
            }
        }
        Ok(())
    })?;
    check_length(params, seen)?;
    if let Some(window) = store.last(&mut card)? {
        making.absorb(&mut card, &window)?;
    }
    let hints = making.finish(&mut card)?;
    sample.check(card.id(), &hints)?;
    Ok(hints)
}

/// The most bytes of the host's memory that so many hints take while a device makes them. One that is no card keeps its own
/// buffers there too.
pub fn memory(params: &Params, device: &dyn Device, tuning: &Tuning, regular: u64, pairs: u64) -> u64 {
    let hints = hints::bytes(params, regular, pairs);
    // The hints, rows of them on their way back, and copies of cutoffs and extras on their way there.
    let host = 2 * hints + 4 * (regular + pairs) + 8 * regular;
    if device.info().is_gpu { host } else { host.saturating_add(card::bytes(params, tuning, regular, pairs)) }
}

/// The bytes of all entries.
fn whole_length(params: &Params) -> u64 {
    params.entries() * params.entry_size() as u64
}

/// Whether all entries have come, where no more than that can have.
fn check_length(params: &Params, seen: u64) -> Result<()> {
    match whole_length(params) {
        whole if seen == whole => Ok(()),
        whole => Err(wrong_length(format!("it ended after {seen} of {whole} bytes"))),
    }
}

fn wrong_length(reason: String) -> Error {
    Error::format("the stream of the database", reason)
}
