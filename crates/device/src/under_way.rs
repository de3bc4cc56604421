//! Registry of preparations in progress: finding devices, compiling kernels, self-tests.
//!
//! Drivers are shared by the whole process, and these steps take seconds in which nothing is reported; whoever displays them
//! asks here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A step before a device works.
///
/// See [`under_way`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparing {
    /// Devices are being found.
    Finding,
    /// A program is compiled, or loaded from the cache within milliseconds.
    Compiling,
    /// A device runs its self-test.
    Proving,
}

/// A preparation in progress.
///
/// See [`under_way`].
#[derive(Clone, Debug)]
pub struct UnderWay {
    /// The step.
    pub what: Preparing,
    /// The device's id; none while devices are being found.
    pub device: Option<String>,
    /// Time since it began.
    pub lasts: Duration,
}

struct Entry {
    id: u64,
    what: Preparing,
    device: Option<String>,
    since: Instant,
}

static LIST: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

fn list() -> MutexGuard<'static, Vec<Entry>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the preparations in progress in this process, the oldest first.
///
/// ```
/// use warpsmith_device::under_way;
///
/// for busy in under_way() {
///     println!("{:?}: {:?} for {:?}", busy.device, busy.what, busy.lasts);
/// }
/// ```
pub fn under_way() -> Vec<UnderWay> {
    let copied = |entry: &Entry| UnderWay {
        what: entry.what,
        device: entry.device.clone(),
        lasts: entry.since.elapsed(),
    };
    list().iter().map(copied).collect()
}

/// An entry of [`under_way`], removed on drop.
pub struct Busy(u64);

impl Busy {
    /// Lists a step, of this device if it is known.
    pub fn with(what: Preparing, device: Option<String>) -> Busy {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        list().push(Entry { id, what, device, since: Instant::now() });
        Busy(id)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        list().retain(|entry| entry.id != self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_is_listed_until_it_ends() {
        // Other tests prepare devices meanwhile.
        let ours = || under_way().into_iter().filter(|busy| busy.device.as_deref() == Some("ours")).collect();
        let busy = Busy::with(Preparing::Compiling, Some("ours".to_owned()));
        let listed: Vec<UnderWay> = ours();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].what, Preparing::Compiling);
        drop(busy);
        let listed: Vec<UnderWay> = ours();
        assert!(listed.is_empty());
    }
}
