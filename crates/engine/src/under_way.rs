//! What devices are busy with before they take part in anything. Drivers are there once for the whole process, and what they do takes
//! seconds in which nobody reports; so whoever shows it asks here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What takes its time before a device works.
///
/// See [`under_way`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparing {
    /// Drivers are asked what there is.
    Finding,
    /// A program is compiled, or taken from the cache, which is a matter of milliseconds.
    Compiling,
    /// A device proves that it computes rightly.
    Proving,
}

/// Something that takes its time.
///
/// See [`under_way`].
#[derive(Clone, Debug)]
pub struct UnderWay {
    /// What.
    pub what: Preparing,
    /// The device; none where devices are looked for.
    pub device: Option<String>,
    /// For how long by now.
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

/// What the devices of this process are busy with before they work, the oldest first.
///
/// ```
/// use warpsmith_engine::under_way;
///
/// for busy in under_way() {
///     println!("{:?}: {:?} for {:?}", busy.device, busy.what, busy.lasts);
/// }
/// ```
pub fn under_way() -> Vec<UnderWay> {
    let told = |entry: &Entry| UnderWay {
        what: entry.what,
        device: entry.device.clone(),
        lasts: entry.since.elapsed(),
    };
    list().iter().map(told).collect()
}

/// Is listed for as long as it lives.
pub(crate) struct Busy(u64);

impl Busy {
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
