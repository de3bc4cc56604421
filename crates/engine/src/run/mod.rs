//! What every run over devices has, a search and a scan alike: who takes part (`roster`), threads (`threads`), when to report
//! and when to end (`clock`), and how fast it goes (`rates`).

pub(crate) mod clock;
pub(crate) mod rates;
pub(crate) mod roster;
pub(crate) mod threads;
