//! In which order the keys of a range are taken: as they are, or in pieces shuffled by a seed.
//!
//! An order numbers the keys of a range by *positions*, which are the same numbers in another order: position p is
//! taken before position p + 1. So a scan always goes through positions from the first to the last, what it has covered
//! are a few intervals of positions in either order, and a resumed scan goes on as it would have.
//!
//! The shuffle is part of the map's format: the same seed must give the same order for ever. Its values are pinned by
//! tests.

use crate::interval::{Interval, U256};

/// The order of a range's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the first to the last.
    Sequential,
    /// In pieces of equal size, in the order of a permutation. The keys of a piece are taken from its first to its last;
    /// those beyond the last whole piece are taken last of all.
    Random {
        /// Which permutation.
        seed: u64,
        /// How many keys a piece has.
        piece: U256,
    },
}

/// The most pieces a range is cut into: their numbers fit 64 bits with room.
const MOST_PIECES_BITS: usize = 62;

/// What the size of pieces follows: how fast keys are tested, and what it costs to begin somewhere else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Keys that all devices together test in a second, roughly.
    pub rate: f64,
    /// Seconds that a device loses at the beginning of a piece, roughly.
    pub anew: f64,
}

impl Pace {
    /// A range has at least so many pieces, where it has enough keys and the time for it.
    const PIECES: f64 = 4096.0;
    /// A piece is at most so many seconds of work: after an hour a scan has been in 360 places.
    const LONGEST: f64 = 10.0;
    /// Beginning anew may cost so many seconds of a whole scan, or this share of it where that is more; up to twice that, since a
    /// piece is rounded down to a power of two.
    const COST: f64 = 5.0;
    const SHARE: f64 = 0.05;
    /// A piece has at least so many keys: a processor's walk computes thousands for one.
    const LEAST: f64 = 256.0;

    /// How many keys a piece of so many keys in all has. For a core of a processor (20 million keys a second, 2 ms) that is 256
    /// keys of 2^20, 2^18 of 2^30, and seven seconds of work from 2^40 on; for a large card (6 thousand million, 0.2 s) it is a
    /// 32nd part of all up to 2^38 keys, and six seconds from 2^48 on.
    fn piece(&self, keys: U256) -> U256 {
        let keys = keys.as_f64();
        let cost = (keys / self.rate * Self::SHARE).max(Self::COST);
        let pieces = (cost / self.anew).min(Self::PIECES);
        let piece = (keys / pieces).min(self.rate * Self::LONGEST).max(Self::LEAST);
        // Nothing has a speed at which ten seconds are more than 62 bits. A pace that is no number has the least piece.
        let piece = (piece.ceil() as u64).clamp(Self::LEAST as u64, 1 << MOST_PIECES_BITS);
        // A power of two: of a mask's candidates a card does such blocks.
        U256::ONE << piece.ilog2()
    }
}

impl Order {
    /// A random order of a range for devices of this pace: in at least 4096 pieces where that costs no more than it is worth, and
    /// in pieces of at most ten seconds.
    pub fn paced(range: &Interval, seed: u64, pace: &Pace) -> Self {
        Self::random(range, seed, pace.piece(range.count()))
    }

    /// A random order of a range in pieces of about so many keys: more where there would be too many pieces, fewer where
    /// the range is small.
    pub fn random(range: &Interval, seed: u64, piece: U256) -> Self {
        let count = range.count();
        let least = (count >> MOST_PIECES_BITS) + U256::ONE;
        Self::Random { seed, piece: piece.max(least).min(count) }
    }

    /// The word for it: sequential or random.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random { .. } => "random",
        }
    }

    /// Whether this order can be one of `range`.
    pub(crate) fn fits(&self, range: &Interval) -> bool {
        match *self {
            Self::Sequential => true,
            Self::Random { piece, .. } => {
                piece != U256::ZERO && piece <= range.count() && piece > range.count() >> MOST_PIECES_BITS
            }
        }
    }

    /// The keys at positions from the first of `positions` on, as far as they follow each other: all of them, or to the
    /// end of a piece. The second value is how many positions that are.
    pub(crate) fn keys_at(&self, range: &Interval, positions: &Interval) -> (Interval, U256) {
        self.run(range, positions, Shuffle::forward)
    }

    /// The positions of keys from the first of `keys` on, as far as they follow each other, and how many there are.
    pub(crate) fn positions_of(&self, range: &Interval, keys: &Interval) -> (Interval, U256) {
        self.run(range, keys, Shuffle::backward)
    }

    /// How many pieces an interval of positions or keys touches at most: what turning one into the other may yield.
    pub(crate) fn pieces_in(&self, interval: &Interval) -> U256 {
        match *self {
            Self::Sequential => U256::ONE,
            Self::Random { piece, .. } => interval.count() / piece + U256::new(2),
        }
    }

    fn run(&self, range: &Interval, from: &Interval, turn: fn(&Shuffle, u64) -> u64) -> (Interval, U256) {
        debug_assert!(range.covers(from));
        let Self::Random { seed, piece } = *self else { return (*from, from.count()) };
        let offset = from.first() - range.first();
        let (number, within) = (offset / piece, offset % piece);
        let pieces = range.count() / piece;
        let (start, room) = if number < pieces {
            // At most 2^62 pieces, see `fits`.
            let number = turn(&Shuffle::new(seed, pieces.as_u64()), number.as_u64());
            (range.first() + U256::from(number) * piece + within, piece - within)
        } else {
            // Beyond the last whole piece every key is its own position.
            (from.first(), from.count())
        };
        let count = room.min(from.count());
        (Interval::starting(start, count).expect("a run lies within the range"), count)
    }
}

/// A permutation of the numbers below `size`: a Feistel network on an even number of bits, walked on until it is back
/// below `size` (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). Both ways take four turns of the
/// network at most on average, since its domain is less than four times `size`. Not a secret one.
struct Shuffle {
    size: u64,
    half_bits: u32,
    keys: [u64; Self::ROUNDS],
}

impl Shuffle {
    const ROUNDS: usize = 6;

    fn new(seed: u64, size: u64) -> Self {
        let bits = 64 - size.saturating_sub(1).leading_zeros();
        let half_bits = bits.div_ceil(2).max(1);
        let keys = std::array::from_fn(|round| mix(seed.wrapping_add(round as u64 + 1)));
        Self { size, half_bits, keys }
    }

    fn forward(&self, number: u64) -> u64 {
        self.walk(number, |mut left, mut right| {
            for key in self.keys {
                (left, right) = (right, left ^ self.round(right, key));
            }
            (left, right)
        })
    }

    fn backward(&self, number: u64) -> u64 {
        self.walk(number, |mut left, mut right| {
            for key in self.keys.iter().rev() {
                (left, right) = (right ^ self.round(left, *key), left);
            }
            (left, right)
        })
    }

    fn round(&self, half: u64, key: u64) -> u64 {
        mix(half ^ key) >> (64 - self.half_bits)
    }

    fn walk(&self, number: u64, network: impl Fn(u64, u64) -> (u64, u64)) -> u64 {
        debug_assert!(number < self.size);
        let mask = (1 << self.half_bits) - 1;
        let mut number = number;
        loop {
            let (left, right) = network(number >> self.half_bits, number & mask);
            number = left << self.half_bits | right;
            if number < self.size {
                return number;
            }
        }
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood, 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_shuffle_visits_each_number_once_and_turns_back() {
        for size in (1..70).chain([255, 256, 257, 1000, 4096, 4097]) {
            for seed in [0, 1, u64::MAX] {
                let shuffle = Shuffle::new(seed, size);
                let mut seen = vec![false; size as usize];
                for number in 0..size {
                    let image = shuffle.forward(number);
                    assert!(!std::mem::replace(&mut seen[image as usize], true));
                    assert_eq!(shuffle.backward(image), number);
                }
            }
        }
        let large = Shuffle::new(5, (1 << 62) - 3);
        for number in (0..1000).chain((1 << 62) - 1000..(1 << 62) - 3) {
            assert_eq!(large.backward(large.forward(number)), number);
        }
    }

    /// The order belongs to the format of maps: if this fails, maps already written would resume wrongly. The values are
    /// those of the same description written in another language.
    #[test]
    fn the_shuffle_is_what_it_always_was() {
        let order =
            |seed, size| (0..8).map(|number| Shuffle::new(seed, size).forward(number)).collect::<Vec<_>>();
        assert_eq!(order(0, 8), PINNED_SMALL);
        assert_eq!(order(0x0123_4567_89ab_cdef, 1 << 40), PINNED_LARGE);
    }
    const PINNED_SMALL: [u64; 8] = [5, 4, 0, 1, 2, 3, 6, 7];
    const PINNED_LARGE: [u64; 8] = [
        0xba_5b39_5a19,
        0x20_59ec_0ded,
        0xcb_9e82_04db,
        0xfd_dcc4_3d4c,
        0x41_033e_afaf,
        0x1c_311a_cee5,
        0xea_adff_9ca9,
        0x99_8d7d_a331,
    ];

    /// Neighbours end far apart, and different seeds give different orders.
    #[test]
    fn the_shuffle_looks_random() {
        let size = 1u64 << 32;
        let (one, other) = (Shuffle::new(1, size), Shuffle::new(2, size));
        let distance = |a: u64, b: u64| a.abs_diff(b) as f64 / size as f64;
        let mean = (0..10_000).map(|n| distance(one.forward(n), one.forward(n + 1))).sum::<f64>() / 1e4;
        // Two random points of [0, 1] are 1/3 apart on average, with a deviation of 0.236 / 100 here.
        assert!((mean - 1.0 / 3.0).abs() < 0.02, "{mean}");
        assert!((0..10_000).filter(|&n| one.forward(n) == other.forward(n)).count() < 3);
    }

    proptest! {
        /// Any range, any piece: positions and keys are one to one, run by run.
        #[test]
        fn positions_and_keys_are_one_to_one(
            base in any::<[u128; 2]>(), count in 1u64..400, seed in any::<u64>(), piece in 1u64..500,
        ) {
            let first = U256(base).max(U256::ONE).min(U256::MAX - U256::new(400));
            let range = Interval::starting(first, U256::from(count)).unwrap();
            let order = Order::random(&range, seed, U256::from(piece));
            prop_assert!(order.fits(&range));
            let mut seen = vec![0u32; count as usize];
            let mut rest = Some(range);
            while let Some(positions) = rest {
                let (keys, taken) = order.keys_at(&range, &positions);
                prop_assert_eq!(keys.count(), taken);
                prop_assert!(range.covers(&keys));
                let (back, same) = order.positions_of(&range, &keys);
                prop_assert_eq!((back.first(), same), (positions.first(), taken));
                for key in 0..taken.as_u64() {
                    seen[(keys.first() - range.first()).as_usize() + key as usize] += 1;
                }
                rest = Interval::new(positions.first() + taken, range.last());
            }
            prop_assert!(seen.iter().all(|&times| times == 1));
        }
    }

    /// Pieces for a core, for a large card, and for speeds that nothing has.
    #[test]
    fn pieces_follow_the_range_and_the_speed() {
        let core = Pace { rate: 2e7, anew: 0.002 };
        let card = Pace { rate: 6e9, anew: 0.2 };
        let of = |pace: &Pace, bits: u32| {
            let keys = U256::ONE << bits;
            (keys.as_f64() / pace.piece(keys).as_f64(), pace.piece(keys).as_f64() / pace.rate)
        };
        for pace in [core, card] {
            for bits in 9..255 {
                let (pieces, seconds) = of(&pace, bits);
                let lost = pieces * pace.anew;
                let whole = (U256::ONE << bits).as_f64() / pace.rate;
                assert!(pieces > 1.9 && seconds <= 10.001, "{bits}: {pieces}, {seconds}");
                assert!(lost <= 10.001 || lost <= whole / 10.0 * 1.001, "{bits}: {lost} of {whole}");
                assert!(lost > 4.0 || pieces >= 4095.0 || bits < 20, "{bits}: {pieces}");
            }
        }
        assert_eq!(core.piece(U256::ONE << 20), U256::new(256));
        assert_eq!(core.piece(U256::ONE << 30), U256::ONE << 18);
        assert_eq!(core.piece(U256::ONE << 40), U256::ONE << 27);
        assert_eq!(core.piece(U256::new(100)), U256::new(256), "all at once");
        assert!(of(&card, 36).0 == 32.0 && of(&card, 52).1 > 5.0);
        for rate in [0.0, f64::NAN, f64::INFINITY, 1e-300] {
            for anew in [0.0, f64::NAN, f64::INFINITY] {
                for count in [1u128, 5000, u128::MAX] {
                    let range = Interval::new(U256::ONE, U256::new(count)).unwrap();
                    assert!(Order::paced(&range, 1, &Pace { rate, anew }).fits(&range), "{rate} {anew}");
                }
            }
        }
    }

    /// A twentieth of a range of 2^20 keys in random order lies in every tenth of it.
    #[test]
    fn a_small_range_is_random_too() {
        let range = Interval::starting(U256::new(0x1234_5678), U256::ONE << 20).unwrap();
        for seed in 0..20 {
            let order = Order::paced(&range, seed, &Pace { rate: 1e8, anew: 0.002 });
            let (mut rest, mut tenths) = (range, [false; 10]);
            while rest.first() - range.first() < U256::ONE << 16 {
                let (keys, taken) = order.keys_at(&range, &rest);
                let tenth = (keys.first() - range.first()) * U256::new(10) / U256::new(1 << 20);
                tenths[tenth.as_usize()] = true;
                rest = Interval::new(rest.first() + taken, range.last()).unwrap();
            }
            assert_eq!(tenths, [true; 10], "{seed}");
        }
    }

    #[test]
    fn huge_ranges_have_pieces_in_plenty_but_not_too_many() {
        let range = Interval::new(U256::ONE, U256::MAX).unwrap();
        let order = Order::random(&range, 7, U256::ONE);
        assert!(order.fits(&range));
        let (keys, taken) = order.keys_at(&range, &range);
        assert!(range.covers(&keys) && taken > U256::ONE << 193);
        let small = Interval::new(U256::new(5), U256::new(5)).unwrap();
        assert!(Order::random(&small, 7, U256::new(1000)).fits(&small));
        assert!(!Order::Random { seed: 1, piece: U256::ZERO }.fits(&small));
        assert!(!Order::Random { seed: 1, piece: U256::new(2) }.fits(&small));
        assert!(!Order::Random { seed: 1, piece: U256::new(9) }.fits(&range));
    }
}
