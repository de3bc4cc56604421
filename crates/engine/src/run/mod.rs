//! What every run over devices has, a search and a scan alike: who takes part (`roster`), threads (`threads`), when to report
//! and when to end (`clock`), how it rests (`pause`), how fast it goes (`rates`), and what it tells (`report`).

pub(crate) mod clock;
pub(crate) mod pause;
pub(crate) mod rates;
pub(crate) mod report;
pub(crate) mod roster;
pub(crate) mod threads;
