//! For tests alone: how many random values to try, and where they come from; texts with something replaced; free ports.
//!
//! A test that compares with another implementation tries some thousands of values in every run, and the number it is meant for,
//! such as 10^7, with `WARPSMITH_LONG=1`. The values are new in every run. The seed is printed, so it is shown with a failure, and
//! `WARPSMITH_SEED` brings the same values back.

#[cfg(feature = "programs")]
pub mod programs;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Whether `WARPSMITH_LONG` asks for the whole number of trials.
pub fn is_long() -> bool {
    std::env::var_os("WARPSMITH_LONG").is_some_and(|value| value != "0" && !value.is_empty())
}

/// How many trials to make: `usual`, or with `WARPSMITH_LONG=1` the whole number.
pub fn count(usual: u64, whole: u64) -> u64 {
    if is_long() { whole } else { usual }
}

/// A port that was free a moment ago, never the same twice. It is below those that Linux gives to whoever asks for any, so that
/// nobody is given it before its server starts.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let base = 20_000 + (std::process::id() % 10_000) as u16;
    (0..2000)
        .map(|_| base + NEXT.fetch_add(1, Ordering::Relaxed) % 2000)
        .find(|port| TcpListener::bind(("0.0.0.0", *port)).is_ok())
        .expect("a free port")
}

/// A text with some of its characters replaced, each by any text.
pub fn replaced(text: &str, places: &[(usize, &str)]) -> String {
    let mut parts: Vec<String> = text.chars().map(String::from).collect();
    for (at, by) in places {
        (*by).clone_into(&mut parts[*at]);
    }
    parts.concat()
}

/// Numbers for tests, from a seed that is told. No secret may come from here.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A new seed, or that of `WARPSMITH_SEED`; printed with the name of what it is for.
    pub fn new(what: &str) -> Random {
        let seed = match std::env::var("WARPSMITH_SEED") {
            Ok(text) => text.parse().expect("WARPSMITH_SEED is a number below 2^64"),
            // The standard library's hash tables are seeded by the operating system.
            Err(_) => RandomState::new().build_hasher().finish(),
        };
        println!("{what}: WARPSMITH_SEED={seed}");
        Random(seed)
    }

    /// The same numbers in every run.
    pub fn from_seed(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number (splitmix64): all 64 bits are as good as each other.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ number >> 31
    }

    /// A number below `end`, which is small beside 2^64.
    pub fn below(&mut self, end: u64) -> u64 {
        self.word() % end
    }

    /// Bytes without pattern.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.word().to_le_bytes()[..chunk.len()]);
        }
    }

    /// 32 bytes without pattern.
    pub fn uniform(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.fill(&mut bytes);
        bytes
    }

    /// 32 bytes as an adversary of carries would choose them, big-endian: mostly without pattern, a quarter of them runs of equal
    /// bits, where limbs are empty or saturated and carries run far, one in sixteen next to 0, to 2^256, or to the order of
    /// secp256k1's field or group.
    pub fn number(&mut self) -> [u8; 32] {
        match self.word() & 15 {
            0 => return self.next_to_an_edge(),
            1..4 => {}
            _ => return self.uniform(),
        }
        let mut words = [0u64; 4];
        let mut at = 0;
        while at < 256 {
            let choice = self.word();
            // Runs of one bit up to 128, short ones as often as long ones.
            let length = 1 + (choice >> 8) % (1 << (choice >> 1 & 7));
            let end = (at + length as usize).min(256);
            if choice & 1 == 1 {
                (at..end).for_each(|bit| words[bit / 64] |= 1 << (bit % 64));
            }
            at = end;
        }
        big_endian(words)
    }

    fn next_to_an_edge(&mut self) -> [u8; 32] {
        let edge = [[0; 4], FIELD, GROUP][self.below(3) as usize];
        let (distance, below) = (self.below(5), self.word() & 1 == 1);
        let mut words = edge;
        // Beyond either end it goes on at the other.
        let mut carry = distance;
        for word in words.iter_mut().rev() {
            let (next, over) = if below { word.overflowing_sub(carry) } else { word.overflowing_add(carry) };
            (*word, carry) = (next, u64::from(over));
        }
        big_endian(words)
    }
}

/// secp256k1's p, most significant word first.
const FIELD: [u64; 4] = [u64::MAX, u64::MAX, u64::MAX, 0xffff_fffe_ffff_fc2f];
/// secp256k1's n.
const GROUP: [u64; 4] = [u64::MAX, 0xffff_ffff_ffff_fffe, 0xbaae_dce6_af48_a03b, 0xbfd2_5e8c_d036_4141];

fn big_endian(words: [u64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_brings_the_same_numbers_back_and_another_others() {
        let take = |seed| std::array::from_fn::<_, 9, _>(|_| Random::from_seed(seed).number());
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn numbers_are_of_both_kinds() {
        let mut random = Random::from_seed(1);
        let empty_limbs = |number: [u8; 32]| number.chunks(8).any(|limb| limb == [0; 8] || limb == [0xff; 8]);
        let numbers = (0..1000).filter(|_| empty_limbs(random.number())).count();
        assert!((50..300).contains(&numbers), "{numbers}");
        assert!((0..1000).all(|_| !empty_limbs(random.uniform())));
    }

    #[test]
    fn the_edges_and_what_lies_beside_them_come_soon() {
        let mut random = Random::from_seed(2);
        let numbers: Vec<[u8; 32]> = (0..4000).map(|_| random.number()).collect();
        let mut edges = vec![[0; 32], [0xff; 32]];
        for edge in [FIELD, GROUP] {
            for last in [edge[3] - 1, edge[3], edge[3] + 1] {
                edges.push(big_endian([edge[0], edge[1], edge[2], last]));
            }
        }
        assert!(edges.iter().all(|edge| numbers.contains(edge)));
    }
}
