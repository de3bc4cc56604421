//! Threads of workers and scanners.

use std::thread::{Builder, Scope};

use crate::worker::Fault;

/// The stack of one. The lanes of a build without optimisation keep every value of a walk on it.
const STACK: usize = 16 << 20;

/// Runs a worker in a thread of its own; `lost` hears of it where there is none to be had.
pub(crate) fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    run: impl FnOnce() + Send + 'scope,
    lost: impl FnOnce(Fault),
) {
    if let Err(error) = Builder::new().stack_size(STACK).spawn_scoped(scope, run) {
        lost(format!("it got no thread: {error}"));
    }
}
