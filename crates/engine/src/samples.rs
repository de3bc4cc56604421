//! Something to search of every recipe: for self-tests and benchmarks, by name.

use std::sync::LazyLock;

use warpsmith_target::ethereum::{Account, Contract};
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

static FIRST_CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::new(0).expect("a nonce"));

/// All of them.
pub fn samples() -> Vec<Sample> {
    vec![
        Sample { name: "npub", subject: Subject::Key(&Npub) },
        Sample { name: "eth", subject: Subject::Key(&Account) },
        Sample { name: "eth-contract", subject: Subject::Key(&*FIRST_CONTRACT) },
    ]
}
