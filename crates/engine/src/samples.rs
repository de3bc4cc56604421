//! Something to search of every recipe: for self-tests and benchmarks, by name.

use warpsmith_target::nostr::Npub;

use crate::space::Subject;

/// One of them.
#[derive(Clone, Copy)]
pub struct Sample {
    /// What `bench` calls it.
    pub name: &'static str,
    /// What is searched.
    pub subject: Subject<'static>,
}

/// All of them.
pub fn samples() -> Vec<Sample> {
    vec![Sample { name: "npub", subject: Subject::Key(&Npub) }]
}
