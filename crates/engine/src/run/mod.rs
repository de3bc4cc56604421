//! What every run over devices has, a search and a scan alike: the worker pool that devices join (`pool`), what the collector knows of
//! it (`session`), threads (`threads`), when to report and when to end (`clock`), pauses (`pause`), rates (`rates`), and what is
//! reported (`report`).

pub(crate) mod clock;
pub(crate) mod pause;
pub(crate) mod pool;
pub(crate) mod rates;
pub(crate) mod report;
pub(crate) mod session;
pub(crate) mod threads;
