//! How fast this machine makes hints, on the real path, with a sample checked against the reference.

use std::time::{Duration, Instant};

use warpsmith_hash::Lanes;

use super::parity::Parities;
use super::{Skeleton, reference};
use crate::error::{Error, Result};
use crate::params::Params;
use crate::prf::{Key, Prf};

/// What a measurement found.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// (hint, block) pairs.
    pub pairs: u64,
    /// Entries read.
    pub gathers: u64,
    /// Time for the cutoffs and extras.
    pub skeleton: Duration,
    /// Time for the parities.
    pub parities: Duration,
    /// Processor time of both, of all threads; none where the system does not tell.
    pub processor: Option<Duration>,
    /// Hints compared with the reference: all of them equal, else there are no figures.
    pub verified: usize,
}

/// Makes all hints for a database of pseudorandom bytes and measures it.
///
/// # Errors
///
/// When the system gives no random bytes, or the database does not fit in memory.
///
/// # Panics
///
/// When a hint differs from the reference.
pub fn measure(params: &Params, lanes: Lanes, threads: usize, samples: usize) -> Result<Figures> {
    let length = params.entries() * params.entry_size() as u64;
    let fits = usize::try_from(length).is_ok_and(|length| Vec::<u8>::new().try_reserve_exact(length).is_ok());
    if !fits {
        return Err(Error::params(format!(
            "{length} bytes do not fit in memory; measure a smaller database"
        )));
    }
    let database = pseudorandom(length as usize);
    let prf = Prf::new(&Key::random()?, params, lanes);
    let (begin, processor) = (Instant::now(), processor_time());
    let skeleton = Skeleton::new(&prf, params, threads)?;
    let skeleton_time = begin.elapsed();
    let mut parities = Parities::new(&prf, params, skeleton, threads);
    parities.push(&database)?;
    let hints = parities.finish()?;
    let parities_time = begin.elapsed() - skeleton_time;
    let processor = processor.zip(processor_time()).map(|(before, after)| after - before);

    let reader = reference::Database::new(params, &database);
    let (m, q, size) = (hints.skeleton.regular_len(), hints.skeleton.backups_len(), params.entry_size());
    for sample in 0..samples {
        // Ends included, the rest spread over all.
        let hint = sample * (m + q - 1) / samples.max(2).saturating_sub(1);
        let (id, cutoff) = (hint as u64, hints.skeleton.cutoffs[hint]);
        assert_eq!(cutoff, reference::cutoff(&prf, params.blocks(), id), "cutoff of hint {id}");
        if cutoff == super::INVALID {
            continue;
        }
        let [mut low, high] = reference::halves(&prf, &reader, id, cutoff);
        if hint < m {
            let extra = reader.entry(hints.skeleton.extras[hint]);
            low.iter_mut().zip(extra).for_each(|(sum, byte)| *sum ^= byte);
            assert_eq!(low, hints.parities[hint * size..][..size], "parity of hint {id}");
        } else {
            assert_eq!(low, hints.low[(hint - m) * size..][..size], "lower parity of pair {id}");
            assert_eq!(high, hints.high[(hint - m) * size..][..size], "upper parity of pair {id}");
        }
    }
    Ok(Figures {
        pairs: params.pairs(),
        gathers: params.gathers(),
        skeleton: skeleton_time,
        parities: parities_time,
        processor,
        verified: samples,
    })
}

/// Bytes to measure and test with: SplitMix64 of their place.
pub fn pseudorandom(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    pseudorandom_at(0, &mut bytes);
    bytes
}

/// Those bytes from place `at` on.
pub fn pseudorandom_at(at: u64, mut bytes: &mut [u8]) {
    let mut place = at;
    while !bytes.is_empty() {
        let mut z = (place / 8 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let word = (z ^ z >> 31).to_le_bytes();
        let within = &word[(place % 8) as usize..];
        let (now, later) = bytes.split_at_mut(within.len().min(bytes.len()));
        now.copy_from_slice(&within[..now.len()]);
        place += now.len() as u64;
        bytes = later;
    }
}

/// Processor time of this process so far.
#[cfg(unix)]
fn processor_time() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the struct it is given and nothing else.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    (result == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(not(unix))]
fn processor_time() -> Option<Duration> {
    None
}
