//! What happens in drivers beside a run: cards are looked for and their programs compiled on threads that nobody waits for at the
//! end, since a driver cannot be told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

use crossbeam_channel::{Receiver, bounded};
use warpsmith_chain::Recipe;
use warpsmith_pattern::Filter;

use crate::run::threads::STACK;
use crate::worker::{Backend, Fault, Held, Search};

/// Threads that are inside a driver and that nobody waits for.
static IN_DRIVERS: AtomicUsize = AtomicUsize::new(0);

/// Whether a card is still being opened or compiled for, for a run that has ended without it. A program that ends now should end by
/// `_exit`: drivers that are torn down by `exit` while a thread is inside them may crash.
///
/// ```
/// assert!(!warpsmith_engine::drivers_are_busy());
/// ```
pub fn drivers_are_busy() -> bool {
    IN_DRIVERS.load(Ordering::Acquire) > 0
}

/// Counts a thread for as long as it lives.
struct Inside;

impl Inside {
    fn new() -> Inside {
        IN_DRIVERS.fetch_add(1, Ordering::AcqRel);
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        IN_DRIVERS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Does something on a thread that nobody waits for. The channel closes without a word where there is no thread to be had.
pub(crate) fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (tell, told) = bounded(1);
    let inside = Inside::new();
    let run = move || {
        let _inside = inside;
        let _ = tell.send(work());
    };
    drop(Builder::new().name("driver".to_owned()).stack_size(STACK).spawn(run));
    told
}

/// Cards that are being looked for.
pub(crate) struct Later(Receiver<Vec<Arc<dyn Backend>>>);

impl Later {
    /// Begins to look.
    pub fn look(cards: impl FnOnce() -> Vec<Arc<dyn Backend>> + Send + 'static) -> Later {
        Later(aside(cards))
    }

    /// Tells once what was found; closes where nobody can look.
    pub fn found(&self) -> &Receiver<Vec<Arc<dyn Backend>>> {
        &self.0
    }
}

/// Opens a card and compiles what this search takes, so that its next worker is there at once; tells when it is done, with what
/// keeps the card open.
pub(crate) fn warm(
    device: &Arc<dyn Backend>,
    recipe: &Recipe,
    filter: &Arc<Filter>,
) -> Receiver<Result<Held, Fault>> {
    let (device, recipe, filter) = (Arc::clone(device), recipe.clone(), Arc::clone(filter));
    aside(move || {
        let held = device.hold();
        device.worker(&Search::new(&recipe, &filter)).map(drop)?;
        Ok(held)
    })
}
