//! Messages between the workers of a search, the threads that verify their claims, and the collector.

use std::sync::Arc;

use crossbeam_channel::{Sender, bounded};
use warpsmith_pattern::Filter;

use super::Match;
use super::claims::Claim;
use super::steady::Track;
use crate::run::pool::PoolEvent;
use crate::run::session::Member;
use crate::space::Lease;
use crate::worker::{Fault, Numbering};

/// A message to the collector.
pub(super) enum Message {
    /// A worker has joined: the next number is its.
    Joined(Box<(Member, Slot)>),
    /// News of the worker pool, or a failure that ends the search.
    Pool(PoolEvent),
    /// What became of claims of a worker.
    Judged { worker: usize, verdicts: Vec<Judged> },
    /// A worker has done its lease, of which it claimed so much in all, and waits for another.
    Done { worker: usize, claimed: u64 },
    /// A worker fails.
    Lost { worker: usize, fault: Fault },
}

/// Claims of one worker.
pub(super) struct Claims {
    pub worker: usize,
    pub facts: Arc<Facts>,
    pub claims: Vec<Claim>,
}

/// What must be known of a worker to verify its claims.
pub(super) struct Facts {
    pub device: String,
    pub numbering: Option<Numbering>,
    pub filter: Arc<Filter>,
}

/// What a claim turned out to be.
pub(super) enum Judged {
    /// It is wanted. When it was found and after how much is still to be said.
    Match(Box<Match>),
    /// It matches, and nobody wants to see it.
    Counted,
    /// It passed the filter as filters may, and matches nothing.
    False,
    /// The candidate does not even pass the filter: the device computes wrongly.
    Wrong(String),
}

/// What the collector knows of one worker of a search.
pub(super) struct Slot {
    pub track: Arc<Track>,
    /// The salts it has, where it searches those.
    pub lease: Option<Lease>,
    /// How much it claimed until its lease was done, where it waits for another.
    pub done: Option<u64>,
    /// How much of what it claimed was verified.
    pub judged: u64,
    /// Gives it salts. A thread that waits for some ends when this closes.
    pub leases: Sender<Lease>,
}

impl Slot {
    /// A worker that joins, and that waits for salts where those are searched.
    pub fn new(track: Arc<Track>, leases: Sender<Lease>) -> Slot {
        Slot { track, lease: None, done: Some(0), judged: 0, leases }
    }

    /// Whether it waits for salts, and all it claimed of those before was verified.
    pub fn waits(&self) -> bool {
        self.done.is_some_and(|claimed| claimed == self.judged)
    }

    /// Gives it no more salts.
    pub fn close(&mut self) {
        self.leases = bounded(1).0;
    }
}
