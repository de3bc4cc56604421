//! How many requests an address may make.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use warpsmith_http::host_of;

/// Addresses that are remembered; when there are more, those that have their whole allowance again are forgotten.
const REMEMBERED: usize = 10_000;

/// An allowance for each address, which fills up again with time.
pub(super) struct Rates {
    rate: f64,
    burst: f64,
    known: Mutex<Known>,
}

struct Known {
    addresses: HashMap<IpAddr, Allowance>,
    /// When those with their whole allowance were last forgotten: not more than once a second, as it looks at all.
    swept: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Allowance {
    left: f64,
    at: Instant,
}

impl Rates {
    pub(super) fn new(rate: f64, burst: f64) -> Rates {
        Rates { rate, burst, known: Mutex::new(Known { addresses: HashMap::new(), swept: None }) }
    }

    /// Takes one request from the allowance of an address; says whether there was one.
    pub(super) fn take(&self, address: IpAddr, now: Instant) -> bool {
        let address = host_of(address);
        let filled =
            |a: &Allowance| (a.left + now.duration_since(a.at).as_secs_f64() * self.rate).min(self.burst);
        let mut known = self.known.lock().expect("nothing panics while it is locked");
        let Known { addresses, swept } = &mut *known;
        if addresses.len() >= REMEMBERED && !addresses.contains_key(&address) {
            if swept.is_none_or(|last| now.duration_since(last) >= Duration::from_secs(1)) {
                addresses.retain(|_, allowance| filled(allowance) < self.burst);
                *swept = Some(now);
            }
            if addresses.len() >= REMEMBERED {
                return false;
            }
        }
        let allowance = addresses.entry(address).or_insert(Allowance { left: self.burst, at: now });
        let left = filled(allowance);
        let allowed = left >= 1.0;
        *allowance = Allowance { left: if allowed { left - 1.0 } else { left }, at: now };
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowances_are_used_up_and_come_back() {
        let rates = Rates::new(10.0, 3.0);
        let start = Instant::now();
        let [a, b] = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2])];
        let taken = |address, at| (0..10).filter(|_| rates.take(address, at)).count();
        assert_eq!((taken(a, start), taken(b, start)), (3, 3));
        assert_eq!(taken(a, start + Duration::from_millis(210)), 2);
        assert_eq!(taken(a, start + Duration::from_secs(9)), 3);
    }

    #[test]
    fn a_flood_of_addresses_takes_no_more_room() {
        let rates = Rates::new(1.0, 2.0);
        let start = Instant::now();
        for i in 0..30_000u32 {
            rates.take(IpAddr::from(i.to_be_bytes()), start);
        }
        assert_eq!(rates.known.lock().unwrap().addresses.len(), REMEMBERED);
        assert!(!rates.take(IpAddr::from([9, 9, 9, 9]), start));
        assert!(rates.take(IpAddr::from([9, 9, 9, 9]), start + Duration::from_secs(5)));
    }
}
