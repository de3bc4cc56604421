//! The thread that encrypts results, one after the other.
//!
//! Its queue is short: a search that finds faster than keys can be encrypted waits, and a person who ends it waits for a few
//! results at most. What was put in comes out in the same order.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;

use warpsmith::keys::wiping_stack;

use crate::encryption::{Encrypted, Encryption};
use crate::ending::Failure;
use crate::record::Deliverable;

/// Results that wait to be encrypted, at most.
const QUEUE: usize = 4;

type Sealed = Result<(Deliverable, Encrypted), Failure>;

/// The queue is full; the result comes back.
pub(crate) struct Refused(pub Deliverable);

pub(crate) struct Sealer {
    to: SyncSender<Deliverable>,
    from: Receiver<Sealed>,
    /// Taken and not yet given back.
    inside: usize,
}

impl Sealer {
    pub fn start(encryption: Encryption) -> Result<Sealer, Failure> {
        let (to, taken) = sync_channel::<Deliverable>(QUEUE);
        // Room for all that can be inside, so that the thread never waits for whoever waits for it.
        let (give, from) = sync_channel(2 * QUEUE + 2);
        let seal = move || {
            for found in taken {
                let sealed = wiping_stack(|| encryption.seal(&found));
                if give.send(sealed.map(|encrypted| (found, encrypted))).is_err() {
                    return;
                }
            }
        };
        let started = thread::Builder::new().name("encrypt".to_owned()).spawn(seal);
        started.map_err(|error| Failure::Other(format!("results cannot be encrypted: {error}")))?;
        Ok(Sealer { to, from, inside: 0 })
    }

    /// Takes a result, or gives it back where there is no room: then [`Sealer::next`] makes some.
    pub fn take(&mut self, found: Deliverable) -> Result<(), Refused> {
        if self.inside > QUEUE {
            return Err(Refused(found));
        }
        self.to.try_send(found).map_err(|error| match error {
            TrySendError::Full(found) | TrySendError::Disconnected(found) => Refused(found),
        })?;
        self.inside += 1;
        Ok(())
    }

    /// Whether there is something to wait for.
    pub fn is_at_work(&self) -> bool {
        self.inside > 0
    }

    /// Waits for the next one.
    pub fn next(&mut self) -> Sealed {
        let sealed = self.from.recv().map_err(|_| gone())?;
        self.inside -= 1;
        sealed
    }

    /// The next one, if it is ready.
    pub fn ready(&mut self) -> Option<Sealed> {
        match self.from.try_recv() {
            Ok(sealed) => {
                self.inside -= 1;
                Some(sealed)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(gone())),
        }
    }
}

fn gone() -> Failure {
    Failure::Other(
        "a result could not be encrypted, and is lost: the thread for it ended. There may be too little memory; 1 GiB is \
         enough"
            .to_owned(),
    )
}
