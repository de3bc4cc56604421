//! The sieves for many prefixes, which ask Bloom filters: one for filters that let next to nothing pass (`sparse`), one for
//! the others (`dense`).

mod ask;
mod dense;
pub(super) mod exact_top;
mod sparse;

pub(super) use ask::Judge;
pub(super) use dense::Dense;
pub(super) use sparse::Sparse;
