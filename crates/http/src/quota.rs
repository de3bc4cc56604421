//! Something of which there is a limited amount, for all and for each address: connections, memory, work.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::host_of;

/// What there is, and who has taken how much of it.
pub struct Quota {
    all: u64,
    each: u64,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: u64,
    /// Only those who have some: so there are never more of them than shares.
    by_host: HashMap<IpAddr, u64>,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// All together have too much.
    All,
    /// This address has too much.
    Address,
}

/// A part of it, which goes back when this is dropped.
pub struct Share {
    quota: Arc<Quota>,
    host: IpAddr,
    amount: u64,
}

impl Quota {
    /// So much for all together, and so much for each address.
    pub fn new(all: u64, each: u64) -> Arc<Quota> {
        Arc::new(Quota { all, each, taken: Mutex::default() })
    }

    /// The most that one can ever have.
    pub fn most(&self) -> u64 {
        self.all.min(self.each)
    }

    /// Takes some, if it is there. An address that has too much is told so even when all together have too much.
    ///
    /// # Errors
    ///
    /// When there is not that much left, for this address or for all.
    pub fn take(self: &Arc<Quota>, address: IpAddr, amount: u64) -> Result<Share, Full> {
        let host = host_of(address);
        let mut taken = self.lock();
        let all = taken.all.saturating_add(amount);
        let each = taken.by_host.get(&host).copied().unwrap_or(0).saturating_add(amount);
        if each > self.each {
            return Err(Full::Address);
        }
        if all > self.all {
            return Err(Full::All);
        }
        taken.all = all;
        taken.by_host.insert(host, each);
        Ok(Share { quota: Arc::clone(self), host, amount })
    }

    fn give_back(&self, host: IpAddr, amount: u64) {
        let mut taken = self.lock();
        taken.all -= amount;
        if let Some(its) = taken.by_host.get_mut(&host) {
            *its -= amount;
            if *its == 0 {
                taken.by_host.remove(&host);
            }
        }
    }

    /// The sums are right at every moment, also after a panic elsewhere.
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Gives back all but so much.
    pub fn shrink(&mut self, to: u64) {
        let more = self.amount.saturating_sub(to);
        self.amount -= more;
        self.quota.give_back(self.host, more);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.quota.give_back(self.host, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_come_back_and_limits_hold() {
        let quota = Quota::new(10, 6);
        let [a, b] = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2])];
        let mut first = quota.take(a, 4).unwrap();
        assert_eq!(quota.take(a, 3).err(), Some(Full::Address));
        let second = quota.take(a, 2).unwrap();
        assert_eq!(quota.take(b, 5).err(), Some(Full::All));
        assert_eq!(quota.take(b, u64::MAX).err(), Some(Full::Address));
        first.shrink(1);
        first.shrink(3);
        let third = quota.take(b, 6).unwrap();
        assert_eq!(quota.take(a, 2).err(), Some(Full::All));
        drop((first, second, third));
        let taken = quota.lock();
        assert_eq!((taken.all, taken.by_host.len()), (0, 0));
    }

    #[test]
    fn nothing_leaves_no_trace() {
        let quota = Quota::new(10, 10);
        drop(quota.take(IpAddr::from([1, 2, 3, 4]), 0).unwrap());
        assert!(quota.lock().by_host.is_empty());
    }
}
