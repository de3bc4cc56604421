//! Call timeout for servers that do not answer: a wallet gets an error within five seconds, however long an attempt to reach them
//! takes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use warpsmith_rms24::remote::{Contact, Remote};

use crate::look_up::{Answered, NoAnswer};

/// How long a call waits for a server that does not answer.
const CALL_TIMEOUT: Duration = Duration::from_millis(4500);
/// Time without an answer after which a server counts as away: less than a call waits, as a look-up leaves somewhat later.
const AWAY_AFTER: Duration = Duration::from_secs(4);
/// How often a call that waits looks whether its servers answer.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The servers that calls depend on, by the names they have in messages.
#[derive(Default)]
pub struct Servers(Vec<(&'static str, Arc<Contact>)>);

impl Servers {
    /// Adds a server, which then fails fast.
    pub fn add(&mut self, name: &'static str, remote: Remote) -> Remote {
        self.0.push((name, remote.contact()));
        remote.failing_fast()
    }

    /// Waits for the answer to a call that came at `since`; an error says that the proxy ends. As long as the servers answer
    /// it waits for as long as it takes, since rounds may leave by the clock.
    pub(super) async fn wait(
        &self,
        mut answer: oneshot::Receiver<Answered>,
        since: Instant,
    ) -> Result<Answered, oneshot::error::RecvError> {
        loop {
            if let Ok(answer) = tokio::time::timeout(CHECK_INTERVAL, &mut answer).await {
                return answer;
            }
            if since.elapsed() >= CALL_TIMEOUT
                && let Some(reason) = self.away()
            {
                return Ok(Err(NoAnswer::from(reason)));
            }
        }
    }

    /// Says which server is away, if one is.
    fn away(&self) -> Option<String> {
        self.0.iter().find_map(|(name, contact)| {
            let outage = contact.outage().filter(|outage| outage.lasted() >= AWAY_AFTER)?;
            let reason = outage.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            let seconds = outage.lasted().as_secs();
            Some(format!("the {name} has not answered for {seconds} seconds{reason}; ask again later"))
        })
    }
}
