//! Threads of workers and scanners.

use std::panic::resume_unwind;
use std::thread::{Builder, Scope, available_parallelism, scope};

use crate::worker::Fault;

/// The stack of one. The lanes of a build without optimisation keep every value of a walk on it.
pub(crate) const STACK: usize = 16 << 20;

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

/// The most threads that share a piece of work.
const MOST: usize = 32;

/// Does something with all of these, a part in each of several threads where there are more than `few`: the results of all parts
/// in order, or the first error.
pub(crate) fn in_threads<T: Sync, R: Send, E: Send>(
    all: &[T],
    few: usize,
    some: impl Fn(&[T]) -> Result<Vec<R>, E> + Sync,
) -> Result<Vec<R>, E> {
    let cores = available_parallelism().map_or(1, usize::from);
    let threads = (all.len() / few).clamp(1, cores.min(MOST));
    if threads == 1 {
        return some(all);
    }
    let (own, others) = all.split_at(all.len().div_ceil(threads));
    let some = &some;
    scope(|scope| {
        let others = others.chunks(own.len()).map(|part| scope.spawn(move || some(part)));
        let others: Vec<_> = others.collect();
        let mut results = some(own)?;
        for other in others {
            results.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok(results)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_whole_and_in_order() {
        for count in [0u32, 1, 9, 10, 11, 20, 1000, 1001] {
            let all: Vec<u32> = (0..count).collect();
            let same = in_threads(&all, 10, |some| Ok::<_, ()>(some.to_vec()));
            assert_eq!(same, Ok(all.clone()));
            let error = in_threads(&all, 10, |some| match some.last().is_some_and(|at| at + 1 == count) {
                true => Err("the last"),
                false => Ok(some.to_vec()),
            });
            assert_eq!(error.is_err(), count > 0, "{count}");
        }
    }
}
