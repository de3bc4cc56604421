//! A queue for something of which there is a fixed number, fair by client.
//!
//! A permit that becomes free goes to the client that holds the fewest; among equals clients take turns, and within one
//! client requests go in the order of arrival. When the queue is full, a client with few waiting requests displaces the
//! newest of the client with the most: one client alone never keeps the others out.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;
use tokio::time::timeout_at;

use crate::host_of;

/// Permits, and the requests that wait for one.
pub struct FairQueue {
    permits: usize,
    max_waiting: usize,
    state: Mutex<State>,
}

struct State {
    free: usize,
    /// Permits of each client that has any.
    held: HashMap<IpAddr, usize>,
    /// Clients that wait, in the order of their turns, each with its requests in the order of arrival.
    waiting: VecDeque<(IpAddr, VecDeque<Waiter>)>,
    next: u64,
}

struct Waiter {
    number: u64,
    grant: oneshot::Sender<Permit>,
}

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueError {
    /// The queue is full.
    Full,
    /// The deadline passed first.
    Late,
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QueueError::Full => "too many requests wait already",
            QueueError::Late => "the deadline passed before a permit was free",
        })
    }
}

impl std::error::Error for QueueError {}

/// A permit. It belongs to the work: move it there, so that it is free when the work has ended and not before.
pub struct Permit {
    queue: Arc<FairQueue>,
    client: IpAddr,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.release(self.client);
    }
}

/// A request's place in the queue, given up when this is dropped.
struct Place<'q> {
    queue: &'q FairQueue,
    client: IpAddr,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        let Some(at) = state.waiting.iter().position(|(client, _)| *client == self.client) else { return };
        let (_, requests) = &mut state.waiting[at];
        requests.retain(|waiter| waiter.number != self.number);
        if requests.is_empty() {
            state.waiting.remove(at);
        }
    }
}

impl FairQueue {
    /// So many permits, and room for so many requests that wait for one.
    pub fn new(permits: usize, max_waiting: usize) -> Arc<FairQueue> {
        let state = State { free: permits, held: HashMap::new(), waiting: VecDeque::new(), next: 0 };
        Arc::new(FairQueue { permits, max_waiting, state: Mutex::new(state) })
    }

    /// Returns the number of permits in use.
    pub fn busy(&self) -> usize {
        self.permits - self.lock().free
    }

    /// Returns the number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.lock().waiting_count()
    }

    /// Waits for a permit until the deadline. Dropping the future gives up the place in the queue.
    ///
    /// # Errors
    ///
    /// When the queue is full, or the deadline passes.
    pub async fn acquire(
        self: &Arc<FairQueue>,
        address: IpAddr,
        deadline: Instant,
    ) -> Result<Permit, QueueError> {
        let client = host_of(address);
        let (granted, _place) = {
            let mut state = self.lock();
            if state.free > 0 {
                state.free -= 1;
                *state.held.entry(client).or_default() += 1;
                return Ok(Permit { queue: Arc::clone(self), client });
            }
            if state.waiting_count() >= self.max_waiting && !state.displace_for(client) {
                return Err(QueueError::Full);
            }
            let (grant, granted) = oneshot::channel();
            let number = state.enter(client, grant);
            (granted, Place { queue: self, client, number })
        };
        match timeout_at(deadline.into(), granted).await {
            Ok(Ok(permit)) => Ok(permit),
            // Displaced by another client's request.
            Ok(Err(_)) => Err(QueueError::Full),
            Err(_) => Err(QueueError::Late),
        }
    }

    /// Takes a permit back, and hands it to whose turn it is.
    fn release(self: &Arc<FairQueue>, client: IpAddr) {
        let mut state = self.lock();
        if let Some(held) = state.held.get_mut(&client) {
            *held -= 1;
            if *held == 0 {
                state.held.remove(&client);
            }
        }
        let Some((client, waiter)) = state.take_next() else {
            state.free += 1;
            return;
        };
        *state.held.entry(client).or_default() += 1;
        // A permit that is not taken goes back by its own drop, which needs the lock.
        drop(state);
        let _ = waiter.grant.send(Permit { queue: Arc::clone(self), client });
    }

    /// The numbers are right at every moment, also after a panic elsewhere.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn waiting_count(&self) -> usize {
        self.waiting.iter().map(|(_, requests)| requests.len()).sum()
    }

    fn enter(&mut self, client: IpAddr, grant: oneshot::Sender<Permit>) -> u64 {
        let number = self.next;
        self.next += 1;
        let waiter = Waiter { number, grant };
        match self.waiting.iter_mut().find(|(other, _)| *other == client) {
            Some((_, requests)) => requests.push_back(waiter),
            None => self.waiting.push_back((client, VecDeque::from([waiter]))),
        }
        number
    }

    /// Drops the newest request of the client with the most, if that client still has more than this one then.
    fn displace_for(&mut self, client: IpAddr) -> bool {
        let own = self.waiting.iter().find(|(other, _)| *other == client).map_or(0, |(_, all)| all.len());
        let Some((_, most)) = self.waiting.iter_mut().max_by_key(|(_, all)| all.len()) else { return false };
        let is_greedy = most.len() > own + 1;
        if is_greedy {
            most.pop_back();
        }
        is_greedy
    }

    /// Takes the request whose turn it is out of the queue; those whose clients have gone are skipped.
    fn take_next(&mut self) -> Option<(IpAddr, Waiter)> {
        loop {
            let held = |client: &IpAddr| self.held.get(client).copied().unwrap_or(0);
            let (at, _) = self.waiting.iter().enumerate().min_by_key(|(_, (client, _))| held(client))?;
            let (client, mut requests) = self.waiting.remove(at)?;
            let next = requests.pop_front();
            if !requests.is_empty() {
                self.waiting.push_back((client, requests));
            }
            if let Some(next) = next.filter(|waiter| !waiter.grant.is_closed()) {
                return Some((client, next));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::task::{JoinHandle, yield_now};

    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
    const C: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 3));

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(test);
    }

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    /// A request that waits in the queue, on a task of its own.
    async fn wait(queue: &Arc<FairQueue>, client: IpAddr) -> JoinHandle<Result<Permit, QueueError>> {
        let queue = Arc::clone(queue);
        let task = tokio::spawn(async move { queue.acquire(client, far()).await });
        yield_now().await;
        task
    }

    #[test]
    fn a_newcomer_goes_before_the_queue_of_another_client() {
        run(async {
            let queue = FairQueue::new(2, 10);
            let mut held =
                vec![queue.acquire(A, far()).await.unwrap(), queue.acquire(A, far()).await.unwrap()];
            let (first, second) = (wait(&queue, A).await, wait(&queue, A).await);
            let (third, other) = (wait(&queue, B).await, wait(&queue, C).await);
            assert_eq!((queue.busy(), queue.waiting()), (2, 4));
            // The first client still holds one, the second none.
            held.pop();
            let permit_of_b = third.await.unwrap().unwrap();
            assert!(!first.is_finished());
            held.pop();
            let permit_of_a = first.await.unwrap().unwrap();
            drop(permit_of_b);
            let permit_of_c = other.await.unwrap().unwrap();
            assert!(!second.is_finished());
            drop((permit_of_a, permit_of_c));
            drop(second.await.unwrap().unwrap());
            assert_eq!((queue.busy(), queue.waiting()), (0, 0));
        });
    }

    #[test]
    fn a_full_queue_makes_room_for_a_client_with_few() {
        run(async {
            let queue = FairQueue::new(1, 3);
            let held = queue.acquire(A, far()).await.unwrap();
            let of_a = [wait(&queue, A).await, wait(&queue, A).await, wait(&queue, A).await];
            assert_eq!(queue.acquire(A, far()).await.err(), Some(QueueError::Full));
            let of_b = wait(&queue, B).await;
            let [first, second, newest] = of_a;
            assert_eq!(newest.await.unwrap().err(), Some(QueueError::Full));
            // Both have a fair part now, or would by another displacement.
            assert_eq!(queue.acquire(B, far()).await.err(), Some(QueueError::Full));
            let of_c = wait(&queue, C).await;
            assert_eq!(second.await.unwrap().err(), Some(QueueError::Full));
            drop(held);
            for granted in [first, of_b, of_c] {
                drop(granted.await.unwrap().unwrap());
            }
        });
    }

    #[test]
    fn clients_that_leave_and_deadlines_give_places_back() {
        run(async {
            let queue = FairQueue::new(1, 10);
            let held = queue.acquire(A, far()).await.unwrap();
            assert_eq!(queue.acquire(B, Instant::now()).await.err(), Some(QueueError::Late));
            let leaves = wait(&queue, B).await;
            leaves.abort();
            assert!(leaves.await.is_err());
            assert_eq!((queue.busy(), queue.waiting()), (1, 0));
            // One that leaves in the moment between the grant and its next turn.
            let leaves = wait(&queue, B).await;
            let stays = wait(&queue, A).await;
            drop(held);
            leaves.abort();
            drop(stays.await.unwrap().unwrap());
            assert_eq!((queue.busy(), queue.waiting()), (0, 0));
        });
    }
}
