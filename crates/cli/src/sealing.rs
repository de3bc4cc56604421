//! The thread that encrypts results, one after the other.
//!
//! Its queue is short: a search that finds faster than keys can be encrypted waits, and a person who ends it waits for a few
//! results at most. What was put in comes out in the same order.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};

use warpsmith::keys::wiping_stack;
use warpsmith_console::exit::Failure;

use crate::encrypted::Encrypted;
use crate::encryption::Encryption;
use crate::record::Deliverable;

/// Results that wait to be encrypted, at most.
const QUEUE: usize = 4;

type Sealed = Result<(Deliverable, Encrypted), Failure>;

pub(crate) struct Sealer {
    /// Both ends, until the thread shall end.
    ends: Option<(SyncSender<Deliverable>, Receiver<Sealed>)>,
    thread: Option<JoinHandle<()>>,
    /// Taken and not yet given back.
    inside: usize,
}

impl Sealer {
    pub fn start(encryption: Encryption) -> Result<Sealer, Failure> {
        // Room for all that can be inside, so that neither side ever waits for the other to take something.
        let (to, taken) = sync_channel::<Deliverable>(QUEUE + 1);
        let (give, from) = sync_channel(QUEUE + 1);
        let seal = move || {
            for found in taken {
                let sealed = wiping_stack(|| encryption.seal(&found));
                if give.send(sealed.map(|encrypted| (found, encrypted))).is_err() {
                    return;
                }
            }
        };
        let started = thread::Builder::new().name("encrypt".to_owned()).spawn(seal);
        let started =
            started.map_err(|error| Failure::Other(format!("results cannot be encrypted: {error}")))?;
        Ok(Sealer { ends: Some((to, from)), thread: Some(started), inside: 0 })
    }

    /// Whether another can be taken; if not, [`Sealer::next`] makes room.
    pub fn has_room(&self) -> bool {
        self.inside <= QUEUE
    }

    /// Takes a result.
    pub fn take(&mut self, found: Deliverable) -> Result<(), Failure> {
        let (to, _) = self.ends.as_ref().ok_or_else(gone)?;
        to.send(found).map_err(|_| gone())?;
        self.inside += 1;
        Ok(())
    }

    /// Whether there is something to wait for.
    pub fn is_at_work(&self) -> bool {
        self.inside > 0
    }

    /// Waits for the next one.
    pub fn next(&mut self) -> Sealed {
        let (_, from) = self.ends.as_ref().ok_or_else(gone)?;
        let sealed = from.recv().map_err(|_| gone())?;
        self.inside -= 1;
        sealed
    }

    /// The next one, if it is ready.
    pub fn ready(&mut self) -> Option<Sealed> {
        match self.ends.as_ref()?.1.try_recv() {
            Ok(sealed) => {
                self.inside -= 1;
                Some(sealed)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(gone())),
        }
    }
}

/// SEC: waits until the thread has erased the password, a second or two at most.
impl Drop for Sealer {
    fn drop(&mut self) {
        self.ends = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn gone() -> Failure {
    Failure::Other(
        "a result could not be encrypted, and is lost: the thread for it ended. There may be too little memory; 1 GiB is \
         enough"
            .to_owned(),
    )
}
