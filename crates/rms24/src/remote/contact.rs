//! Whether a server answers, as its requests show: for those who must not wait longer than it is worth.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The state of a server, shared by all clones of its [`Remote`](super::Remote).
#[derive(Debug, Default)]
pub struct Contact(Mutex<Option<Outage>>);

/// A time without an answer, from the first request on that got none.
#[derive(Clone, Debug)]
pub struct Outage {
    since: Instant,
    /// Why the last attempt failed; none while the first is under way.
    pub reason: Option<String>,
}

impl Outage {
    /// How long the server has not answered.
    pub fn lasted(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Contact {
    /// Returns the time without an answer, if the last request got none or is waiting for one.
    pub fn outage(&self) -> Option<Outage> {
        self.lock().clone()
    }

    /// Notes that a request is sent.
    pub(super) fn asked(&self) {
        self.lock().get_or_insert_with(|| Outage { since: Instant::now(), reason: None });
    }

    /// Notes that the server answered, whatever it said.
    pub(super) fn answered(&self) {
        *self.lock() = None;
    }

    /// Notes why an attempt failed.
    pub(super) fn failed(&self, reason: &str) {
        let mut outage = self.lock();
        let outage = outage.get_or_insert_with(|| Outage { since: Instant::now(), reason: None });
        outage.reason = Some(reason.to_owned());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Outage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_lasts_from_the_first_request_without_an_answer() {
        let contact = Contact::default();
        assert!(contact.outage().is_none());
        contact.asked();
        let first = contact.outage().unwrap();
        contact.failed("refused");
        contact.asked();
        let outage = contact.outage().unwrap();
        assert_eq!((outage.since, outage.reason.as_deref()), (first.since, Some("refused")));
        contact.answered();
        assert!(contact.outage().is_none());
    }
}
