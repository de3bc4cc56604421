//! Count of detached threads that are inside a driver.

use std::sync::atomic::{AtomicUsize, Ordering};

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Returns whether a detached thread is still inside a driver, opening a device or compiling for a run that has ended without it. A
/// program that ends now should end by `_exit`: drivers that are torn down by `exit` while a thread is inside them may crash.
///
/// ```
/// assert!(!warpsmith_device::drivers_are_busy());
/// ```
pub fn drivers_are_busy() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// Counts a detached thread that calls a driver, until dropped.
pub struct InDriver(());

impl InDriver {
    /// Counts one more. To be called before the thread is spawned, and to be moved into it.
    pub fn enter() -> InDriver {
        COUNT.fetch_add(1, Ordering::AcqRel);
        InDriver(())
    }
}

impl Drop for InDriver {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::AcqRel);
    }
}
