//! A run on a thread of its own, whose results are taken one by one.

use std::fmt;
use std::iter::FusedIterator;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use crate::error::{Error, Result};

/// The thread's stack: self-tests walk on it, and the lanes of a build without optimisation keep every value there.
const STACK: usize = 16 << 20;

/// What is told besides results while a search or a scan goes on.
///
/// ```
/// use warpsmith::{Devices, Note, mine, npub};
///
/// let search = mine(npub(), ["q"]).on(Devices::cpu()?).watch(|note| match note {
///     Note::Progress(progress) => eprintln!("{:.3e} keys/s", progress.rate),
///     Note::Warning(text) => eprintln!("{text}"),
///     _ => {}
/// });
/// search.first()?;
/// # Ok::<(), warpsmith::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Note<P> {
    /// How it goes.
    Progress(P),
    /// Something a person should know, such as a device that was dropped; the others go on.
    Warning(String),
    /// Something a person may like to know, such as a device that joins.
    Told(String),
}

/// Who hears these.
pub(crate) type Watcher<P> = Box<dyn FnMut(Note<P>) + Send>;

/// Where a run hands over its results. An error says that nobody wants them any more.
pub(crate) struct Outlet<T>(SyncSender<T>);

impl<T: Send + 'static> Outlet<T> {
    /// Hands over a result. Returns when it was taken, so that nothing piles up and the newest is lost to nobody.
    pub fn give(&self, result: T) -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.0.send(result).map_err(|_| "nobody takes the results any more".into())
    }
}

/// A run under way, or over: an iterator over its results, as they are found.
///
/// A run waits with a result until it is taken. Dropping the iterator stops it, and its devices are free after that. An error
/// comes through the iterator and ends it. See [`Matches`](crate::Matches) and [`Findings`](crate::scan::Findings).
pub struct Running<T, O> {
    results: Option<Receiver<T>>,
    interrupt: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<O>>>,
    /// Why there is no thread.
    refused: Option<Error>,
    outcome: Option<O>,
}

impl<T: Send + 'static, O: Send + 'static> Running<T, O> {
    /// Starts it. `run` ends soon after its flag is raised.
    pub(crate) fn start(run: impl FnOnce(&AtomicBool, &Outlet<T>) -> Result<O> + Send + 'static) -> Self {
        // No room: a result is either the run's or the receiver's.
        let (sender, results) = sync_channel(0);
        let interrupt = Arc::new(AtomicBool::new(false));
        let raised = Arc::clone(&interrupt);
        let thread = Builder::new()
            .name("warpsmith".to_owned())
            .stack_size(STACK)
            .spawn(move || run(&raised, &Outlet(sender)));
        let (thread, refused) = match thread {
            Ok(thread) => (Some(thread), None),
            Err(error) => (None, Some(Error::Thread(error))),
        };
        Running { results: Some(results), interrupt, thread, refused, outcome: None }
    }
}

impl<T, O> Running<T, O> {
    /// How it ended; none while it goes on, and none after an error.
    pub fn outcome(&self) -> Option<&O> {
        self.outcome.as_ref()
    }
}

impl<T, O> Iterator for Running<T, O> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        if let Some(error) = self.refused.take() {
            return Some(Err(error));
        }
        if let Some(Ok(result)) = self.results.as_ref().map(Receiver::recv) {
            return Some(Ok(result));
        }
        // The run's end is gone, so it is over.
        self.results = None;
        match self.thread.take()?.join() {
            Ok(Ok(outcome)) => {
                self.outcome = Some(outcome);
                None
            }
            Ok(Err(error)) => Some(Err(error)),
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl<T, O> FusedIterator for Running<T, O> {}

impl<T, O: fmt::Debug> fmt::Debug for Running<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}

/// Whoever drops it wants no more: the run is stopped, and its devices are free when this returns.
impl<T, O> Drop for Running<T, O> {
    fn drop(&mut self) {
        self.interrupt.store(true, Ordering::Relaxed);
        // Before the thread is waited for: it may be handing something over.
        self.results = None;
        if let Some(thread) = self.thread.take() {
            // How it ended matters to nobody, be it a panic.
            drop(thread.join());
        }
    }
}
