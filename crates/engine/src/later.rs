//! What happens in drivers beside a run: cards are looked for and their programs compiled on threads that nobody waits for at the
//! end, since a driver cannot be told to stop.

use std::sync::Arc;
use std::thread::Builder;

use crossbeam_channel::{Receiver, bounded};
use warpsmith_chain::Recipe;
use warpsmith_device::InDriver;
use warpsmith_pattern::Filter;

use crate::run::threads::STACK;
use crate::worker::{Backend, Fault, Held, Search};

/// Does something on a thread that nobody waits for. The channel closes without a word where there is no thread to be had.
pub(crate) fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (tell, told) = bounded(1);
    let inside = InDriver::enter();
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
