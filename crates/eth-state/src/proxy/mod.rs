//! A proxy that answers wallets like a node of Ethereum, by private look-ups.
//!
//! Wallets speak JSON-RPC over HTTP ([`router`]); what they ask is looked up in rounds ([`run`]),
//! and calls that cannot be are passed to a node, where there is one ([`Fallback`]).

mod fallback;
mod known;
mod outage;
mod rounds;
mod rpc;
mod spares;
mod web;

use std::fmt;

pub use self::fallback::Fallback;
pub use self::known::{Facts, Known};
pub use self::outage::Servers;
pub use self::rounds::{MAX_WAITING, Rhythm, Terms, Wanted, catch_up, run};
pub use self::rpc::is_private_method;
pub use self::web::{CALL_TIMEOUT, Front, router};
use crate::catch_up::{CatchUp, NewHintsNeeded};
use crate::look_up::Library;

/// The databases that are looked up in.
pub struct Libraries {
    /// The state.
    pub state: Library,
    /// Codes of contracts.
    pub codes: Option<Library>,
}

/// One of the two databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The state.
    State,
    /// Codes of contracts.
    Codes,
}

/// What happens beside the answers.
#[derive(Debug)]
pub enum News<'a> {
    /// The server was asked, and the hints are of this epoch.
    Epoch(u64),
    /// The server could not be asked for what is new.
    Away(&'a crate::Error),
    /// A round brought nothing.
    Lost(&'a crate::Error),
    /// Something became of the hints of one of the databases.
    Hints(Which, HintsNews<'a>),
}

/// What became of hints.
#[derive(Debug)]
pub enum HintsNews<'a> {
    /// They were brought forward, or made anew.
    Forward(&'a CatchUp),
    /// New ones are made, and waited for.
    Making(&'a NewHintsNeeded),
    /// New ones are made beside, since those there are do not do.
    MakingBeside(&'a NewHintsNeeded),
    /// New ones are made beside, since so many queries are left.
    FewLeft(u64),
    /// New ones are in use: so many queries.
    InUse(u64),
    /// New ones could not be used: why.
    NotUsed(&'a str),
    /// New ones could not be made.
    Failed(&'a crate::Error),
}

/// What a person can do who runs the proxy, in the words of the program that runs it: added to
/// answers where that helps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Advice {
    /// How to have a node answer a method.
    pub fallback: Option<&'static str>,
    /// How to have codes answered.
    pub codes: Option<&'static str>,
    /// How to build a state that tells the hashes of codes.
    pub code_hashes: Option<&'static str>,
    /// How to answer web pages of an origin.
    pub origin: Option<&'static str>,
}

/// An advice after a sentence, where there is one.
struct After(Option<&'static str>);

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}
