//! From the filter of patterns to what a worker tests, and every threshold at which one way gives place to another.
//!
//! The processor tests x on the way (`walk`) or eight digests at a time (`digests`), a card by programs compiled for a kind of
//! filter (`card`); a scan looks the first 64 bits of a digest up (`scan`). All of them may let pass what nobody wants, and none holds back what somebody does.

mod card;
mod digests;
mod scan;
mod walk;

use std::sync::{Arc, OnceLock};

use warpsmith_curve::walk::Sieve;
use warpsmith_pattern::Filter;

pub(crate) use card::{XWords, bar, digest_test, digest_words, first_bar, x_test, x_tests};
pub(crate) use digests::Sought;
pub(crate) use scan::{Everything, Fuse, MayHold, ScanFilter, TopList};
pub(crate) use walk::sieve;

/// Ranges of the top bits that are compared one by one; more go through tables. Each costs the walk of a processor some
/// twenty vector instructions an entry, its tables about a hundred for any number; a bitmap of digests costs about as much as
/// four comparisons; and kernels are written for as many.
const FEW_RANGES: usize = warpsmith_kernel::digest_filter::FEW_RANGES;

/// A filter as the processor's workers test it, made once for all of them: tables of many patterns are tens of megabytes,
/// and as many copies as there are threads would leave a shared cache.
pub(crate) struct Prefilter<'s> {
    filter: &'s Filter,
    sieve: OnceLock<Sieve>,
    sought: OnceLock<Arc<Sought>>,
}

impl<'s> Prefilter<'s> {
    /// Nothing is made before it is asked for.
    pub fn new(filter: &'s Filter) -> Self {
        Prefilter { filter, sieve: OnceLock::new(), sought: OnceLock::new() }
    }

    /// The filter for a walk that tests x. Each worker has a copy, and copies share what is large.
    pub fn sieve(&self) -> &Sieve {
        self.sieve.get_or_init(|| sieve(self.filter))
    }

    /// The filter for digests, eight at a time.
    pub fn sought(&self) -> &Arc<Sought> {
        self.sought.get_or_init(|| Arc::new(Sought::new(self.filter)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpsmith_pattern::Interval;

    /// What is made of many patterns is made once, whatever the number of workers.
    #[test]
    fn workers_share_what_a_filter_is_made_into() {
        let top = (0..1000).map(|i| Interval { first: i << 50, last: i << 50 }).collect();
        let filter = Filter { top, ..Filter::default() };
        let prefilter = Prefilter::new(&filter);
        let made: Vec<_> = (0..3).map(|_| Arc::clone(prefilter.sought())).collect();
        assert_eq!(Arc::strong_count(&made[0]), 1 + made.len());
        assert!(made.iter().all(|sought| Arc::ptr_eq(sought, &made[0])));
        assert!(prefilter.sieve().bits.is_some() && prefilter.sieve.get().is_some());
    }
}
