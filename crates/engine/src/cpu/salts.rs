//! Salts on the processor, counted up and hashed eight at a time: for contracts made with CREATE2, and for those made
//! by a proxy made with CREATE2.

use std::sync::Arc;

use warpsmith_chain::{Guard, SaltMask, Salted};
use warpsmith_hash::Lanes;
use warpsmith_hash::keccak::{RATE, RATE_WORDS, Word8, one_block, one_block_address, padded};

use super::create::Create;
use super::digest_filter::{DigestFilter, Digests};
use super::{Cpu, for_a_moment};
use crate::prefilter::Sought;
use crate::space::Lease;
use crate::worker::{Batch, Fault, Numbering, Spot, Start, Worker};

/// Salts of a step: about a millisecond.
const STEP: u64 = 1 << 13;

/// CREATE2 hashes 0xff, the deployer and the salt, which begins here, and the code's hash.
const SALT: usize = 21;

/// A block of the hash for eight messages that differ in a salt.
struct Message {
    words: [Word8; RATE_WORDS],
    /// Where in the message each byte of the counter is, the least significant one first.
    counted: Vec<usize>,
}

impl Message {
    /// A message that ends within one block; of its salt, with this counter's mask, the bytes from `first` on begin at `salt`.
    fn new(message: &[u8], salt: usize, first: usize, mask: &SaltMask) -> Message {
        let block: [u8; RATE] = padded(message);
        let word = |i: usize| std::array::from_fn(|byte| block[8 * i + byte]);
        Message {
            words: std::array::from_fn(|i| [u64::from_le_bytes(word(i)); 8]),
            counted: mask.counted().map(|byte| salt + byte - first).collect(),
        }
    }

    /// Sets one byte of a message.
    fn set(&mut self, lane: usize, byte: usize, value: u8) {
        let word = &mut self.words[byte / 8][lane];
        let shift = 8 * (byte % 8);
        *word = *word & !(0xff << shift) | u64::from(value) << shift;
    }

    /// Sets the counter: those of the eight messages are `counter`, a multiple of eight, and the seven after it.
    fn count(&mut self, counter: u64, all: bool) {
        let bytes = counter.to_le_bytes();
        // Eight divides 256, so all but the last byte are the same for all, and change only when that is zero.
        let changed = if all || bytes[0] == 0 { self.counted.len() } else { 1 };
        for (byte, value) in bytes.into_iter().enumerate().take(changed) {
            for lane in 0..8 {
                let value = if byte == 0 { value | lane as u8 } else { value };
                self.set(lane, self.counted[byte], value);
            }
        }
    }
}

/// The salts of a lease that are left, and what is hashed of them.
struct Counting {
    /// What the counter changes: the guard's message, or CREATE2's where there is no guard.
    counted: Message,
    /// CREATE2's message where a guard makes its salt.
    guarded: Option<Message>,
    /// The next counter; none at the end.
    next: Option<u64>,
    last: u64,
    /// Whether all of the counter's bytes are yet to be set.
    fresh: bool,
}

impl Counting {
    fn new(salted: &Salted, lease: &Lease) -> Counting {
        let mask = &salted.salt;
        let salt = mask.fill(&lease.base, lease.first);
        let create2 = [&[0xff], &salted.deployer[..], &salt, &salted.code_hash].concat();
        let create2 = Message::new(&create2, SALT, 0, mask);
        let (counted, guarded) = match &salted.guard {
            Guard::None => (create2, None),
            Guard::Hashed(hashed) => {
                let (before, first) = (hashed.before.len(), hashed.salt.start);
                (Message::new(&hashed.message(&salt), before, first, mask), Some(create2))
            }
        };
        Counting { counted, guarded, next: Some(lease.first), last: lease.last, fresh: true }
    }

    /// What CREATE2 makes of eight salts.
    fn addresses(&mut self, lanes: Lanes, counter: u64) -> Digests {
        self.counted.count(counter, self.fresh);
        self.fresh = false;
        let Some(create2) = &mut self.guarded else { return one_block_address(lanes, &self.counted.words) };
        // The guard's digest goes where the salt was: from byte 21 on, five bytes into the third word.
        let salts = one_block(lanes, &self.counted.words);
        const LOW: u64 = (1 << 40) - 1;
        for lane in 0..8 {
            let words = &mut create2.words;
            words[2][lane] = words[2][lane] & LOW | salts[0][lane] << 40;
            for i in 0..3 {
                words[3 + i][lane] = salts[i][lane] >> 24 | salts[i + 1][lane] << 40;
            }
            words[6][lane] = words[6][lane] & !LOW | salts[3][lane] >> 24;
        }
        one_block_address(lanes, &create2.words)
    }
}

pub(super) struct SaltsWorker {
    lanes: Lanes,
    salted: Salted,
    /// Where the digest is the first contract of the proxy CREATE2 makes: a contract's nonces begin at 1.
    create: Option<Create>,
    filter: DigestFilter,
    counting: Option<Counting>,
}

impl SaltsWorker {
    pub fn new(cpu: &Cpu, salted: &Salted, sought: Arc<Sought>) -> Self {
        SaltsWorker {
            lanes: Lanes::new(cpu.simd),
            salted: salted.clone(),
            create: salted.create.then(|| Create::new(1)),
            filter: DigestFilter::new(sought, cpu.simd),
            counting: None,
        }
    }
}

impl Worker for SaltsWorker {
    fn numbering(&self) -> Option<Numbering> {
        None
    }

    fn start(&mut self, start: Start<'_>) -> Result<(), Fault> {
        let Start::Salts(lease) = start else { return Err("salts are counted, not walked".to_owned()) };
        self.counting = Some(Counting::new(&self.salted, &lease));
        Ok(())
    }

    fn run(&mut self) -> Result<Batch, Fault> {
        for_a_moment(|| self.step())
    }

    fn step(&mut self) -> Result<Batch, Fault> {
        let counting = self.counting.as_mut().ok_or("a worker was run before it was given salts")?;
        let mut batch = Batch::default();
        while let Some(next) = counting.next.filter(|_| batch.tried < STEP) {
            // A lease may begin and end within eight.
            let first = next & !7;
            let last = counting.last.min(first | 7);
            let live = u8::MAX << (next - first) & u8::MAX >> (7 - (last - first));
            let mut digests = counting.addresses(self.lanes, first);
            if let Some(create) = &self.create {
                digests = create.addresses(self.lanes, &digests);
            }
            self.filter.look(&digests, live, |lane| Spot::Salt(first + lane as u64), &mut batch.hits);
            batch.tried += last - next + 1;
            counting.next = (last < counting.last).then(|| last + 1);
        }
        batch.done = counting.next.is_none();
        Ok(batch)
    }

    fn raise(&mut self, at_least: u32) -> Result<(), Fault> {
        self.filter.raise(at_least);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd;
    use crate::worker::Hit;
    use sha3::Digest as _;
    use std::collections::BTreeMap;
    use warpsmith_chain::{Digest, Hashed};
    use warpsmith_pattern::{Filter, Interval};

    fn keccak256(bytes: &[u8]) -> [u8; 32] {
        sha3::Keccak256::digest(bytes).into()
    }

    /// The recipe as it is written down, one salt at a time, with the `sha3` crate.
    fn reference(salted: &Salted, salt: [u8; 32]) -> Digest {
        let last20 = |hash: [u8; 32]| -> [u8; 20] { hash[12..].try_into().expect("twenty bytes") };
        let salt = match &salted.guard {
            Guard::None => salt,
            Guard::Hashed(Hashed { before, salt: own, after }) => {
                keccak256(&[&before[..], &salt[own.start..own.end], after].concat())
            }
        };
        let address = last20(keccak256(&[&[0xff], &salted.deployer[..], &salt, &salted.code_hash].concat()));
        let first = || last20(keccak256(&[&[0xd6, 0x94], &address[..], &[0x01]].concat()));
        Digest::new(&if salted.create { first() } else { address })
    }

    fn everything() -> Arc<Sought> {
        let filter = Filter { top: vec![Interval { first: 0, last: u64::MAX }], ..Filter::default() };
        Arc::new(Sought::new(&filter))
    }

    /// Every salt of a lease: each once, each digest right.
    fn check(salted: &Salted, lease: Lease) {
        for simd in simd::available() {
            let mut worker = SaltsWorker::new(&Cpu::new(simd, 1), salted, everything());
            worker.start(Start::Salts(lease)).expect("started");
            let (mut seen, mut tried) = (BTreeMap::new(), 0);
            loop {
                let batch = worker.step().expect("salts");
                tried += batch.tried;
                for Hit { spot, digest, .. } in batch.hits {
                    assert_eq!(seen.insert(spot, digest), None, "{spot:?} twice");
                }
                if batch.done {
                    break;
                }
            }
            assert_eq!(u128::from(tried), u128::from(lease.last) - u128::from(lease.first) + 1);
            assert_eq!(seen.len() as u64, tried);
            for counter in lease.first..=lease.last {
                let expected = reference(salted, salted.salt.fill(&lease.base, counter));
                assert_eq!(
                    seen.get(&Spot::Salt(counter)),
                    Some(&Some(expected)),
                    "{simd} {counter} {salted:?}"
                );
            }
            let after = worker.step().expect("nothing is left");
            assert!(after.done && after.tried == 0 && after.hits.is_empty());
        }
    }

    #[test]
    fn every_salt_of_a_lease_has_the_digest_of_its_recipe() {
        let base: [u8; 32] = std::array::from_fn(|i| 0x40 ^ (7 * i as u8));
        let masks = [
            SaltMask::FREE,
            SaltMask::beginning(&[0xab; 20]),
            SaltMask::parse(&format!("0x??11??{}??22", "00".repeat(27))).expect("a mask"),
            SaltMask::parse(&format!("0x{}{}", "??".repeat(9), "77".repeat(23))).expect("a mask"),
        ];
        // No guard; a factory's; the longest there are; lengths around a word; something behind the salt.
        let mut guards = vec![Guard::None];
        let lengths =
            [(0, 0), (7, 0), (8, 0), (32, 0), (103, 0), (0, 32), (20, 1), (0, 103), (32, 32), (51, 52)];
        guards.extend(lengths.map(|(before, after)| {
            let (before, after) = ((0..before).collect(), (0x80..0x80 + after).collect());
            Guard::Hashed(Hashed { before, salt: 0..32, after })
        }));
        for (i, mask) in masks.into_iter().enumerate() {
            for guard in &guards {
                for create in [false, true] {
                    let salted = Salted {
                        guard: guard.clone(),
                        deployer: std::array::from_fn(|byte| 0xd0 + byte as u8),
                        code_hash: std::array::from_fn(|byte| 0xc0 ^ byte as u8),
                        create,
                        salt: mask,
                    };
                    // Around a carry into the second and the third byte, beginning and ending within eight.
                    let first = [0xf3, 0xfffd, 0xff_ff01, 0][i];
                    check(&salted, Lease { base, first, last: first + 37 });
                }
            }
        }
    }

    /// A factory that takes fewer bytes than CREATE2 does, of either kind.
    #[test]
    fn a_part_of_the_salt_is_hashed_where_the_factory_takes_no_more() {
        let base = [0x5a; 32];
        for (own, before, after) in
            [(20..32, 20, 0), (20..32, 0, 123), (0..12, 3, 7), (31..32, 134, 0), (0..8, 0, 0)]
        {
            let hashed = Hashed { before: vec![0xbe; before], salt: own.clone(), after: vec![0xaf; after] };
            let salted = Salted {
                guard: Guard::Hashed(hashed),
                deployer: [0x33; 20],
                code_hash: [0x44; 32],
                create: false,
                salt: SaltMask::within(&[0; 32], own.clone()),
            };
            let first = if own.len() > 1 { 0xfff0 } else { 0 };
            check(&salted, Lease { base, first, last: first + 40 });
        }
    }

    #[test]
    fn leases_of_one_salt_of_many_steps_and_up_to_the_last_counter() {
        let salted = Salted {
            guard: Guard::None,
            deployer: [0x11; 20],
            code_hash: [0x22; 32],
            create: false,
            salt: SaltMask::FREE,
        };
        let base = [0x5a; 32];
        check(&salted, Lease { base, first: 5, last: 5 });
        check(&salted, Lease { base, first: 8, last: 15 });
        check(&salted, Lease { base, first: u64::MAX - 19, last: u64::MAX - 1 });
        check(&salted, Lease { base, first: 3, last: 3 * STEP });
        let one = SaltMask::beginning(&[9; 31]);
        check(&Salted { salt: one, ..salted }, Lease { base, first: 0, last: 255 });
    }

    #[test]
    fn the_last_counter_of_all_is_reached() {
        let salted = Salted {
            guard: Guard::None,
            deployer: [1; 20],
            code_hash: [2; 32],
            create: true,
            salt: SaltMask::FREE,
        };
        let mut worker = SaltsWorker::new(&Cpu::new(simd::detect(), 1), &salted, everything());
        let lease = Lease { base: [3; 32], first: u64::MAX - 9, last: u64::MAX };
        worker.start(Start::Salts(lease)).expect("started");
        let batch = worker.step().expect("salts");
        assert!(batch.done);
        assert_eq!((batch.tried, batch.hits.len()), (10, 10));
        let expected = reference(&salted, salted.salt.fill(&lease.base, u64::MAX));
        let last = batch.hits.iter().find(|hit| hit.spot == Spot::Salt(u64::MAX)).expect("the last");
        assert_eq!(last.digest, Some(expected));
    }
}
