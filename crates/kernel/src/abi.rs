//! Layout of the buffers a kernel reads and writes, and the error bound of the top words.
//!
//! Mirrors `c/base/abi.h`; all sizes are in 32-bit words unless a name says otherwise. Numbers are held as limbs,
//! least significant word first.
//!
//! # The bound of a top word
//!
//! A key's x coordinate is tested through a computed word `w` that may differ from the true top word `W` of x.
//! Take everything as fractions of a turn (multiples of 1/p modulo 1), in units u = 2^-32.
//! x / p and x / 2^256 differ by less than 2^-190 u.
//!
//! A term v * tau (v < 2^256 + 2 * 2^256, tau / p by nine digits f1..f9) is computed as
//! sum v_i f_(i+1) 2^-32 + sum v_i f_(i+2) 2^-64, its last 32 bits cut off. Left out are, for i < 8, v_i times
//! the digits from f_(i+3) on: less than 1 u each, 8 u in all; the cut: less than 1 u; and v_8 <= 2 times the
//! digits from f_10 on: less than 2 u. So the true term minus the computed one lies in [0, 9) u for T2 (no v_8)
//! and [0, 11) u for T0 and T1; these take off tau itself by its first digit: (-1, 11) u.
//! The image by beta^2 is minus the sum of the other two: (-22, 2) u for T0 and T1, (-18, 0] u for T2.
//!
//! The images (j, p, q) of the three terms of a key are all equal or all distinct. Their sums:
//! equal, 0 or 1: (-2, 31); equal, 2: (-62, 4); distinct: within (-23, 22). All within (-62, 31) u,
//! hence W - w within -62..=30. The centre's own keys (one digit, cut) are well within.

/// What a true top word minus the computed one, modulo 2^32, is at least and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The difference is at least `-below`.
    pub below: u32,
    /// It is at most `above`.
    pub above: u32,
}

/// The bound of `W - w`.
pub const TOP: Bound = Bound { below: 62, above: 30 };

/// The same for the finer top words of a large set.
///
/// `walk_fine` takes tau off exactly, and adds the products with f_(i+3) by the top bytes of both factors, in 65536ths
/// and before the cut. Of these products there remain less than 8 * 511 / 65536 < 0.0624 u (bytes A, B stand for less
/// than (A + 1) (B + 1)), and next to nothing from the digits behind; the factor 65537 adds less than 2^-12 u too much
/// (the sum of bytes is below 2^19 + 2^12). v_8 counts f_10 by a number with the same top byte: 2^-8 u too much or too
/// little for each unit of v_8, which is at most 1 in T1 and 2 in T0. So before the cut the true term minus the computed
/// one lies within (-0.001, 0.063) for T2, (-0.005, 0.067) for T1 and (-0.009, 0.071) u for T0. The cut adds less than 1
/// to each. Images by beta^2: (-2.126, 0.002), (-2.134, 0.01) and (-2.142, 0.018).
///
/// Sums: equal, 0 or 1: (-0.02, 3.21); equal, 2: (-6.41, 0.03); distinct: within (-2.15, 2.15). All within
/// (-6.41, 3.21) u, hence W - w within -7..=3.
pub const FINE: Bound = Bound { below: 7, above: 3 };

/// Bounds in 32nds of a unit, which a second look at a key counts in, for keys of which no, one and every term is an image
/// by beta^2. What `TOP` says, by the sums above, is that of whole words.
pub const TOP_KEYS: [Bound; 3] = [
    Bound { below: 32 * 2, above: 32 * 30 },
    Bound { below: 32 * 23, above: 32 * 21 },
    Bound { below: 32 * 62, above: 32 * 3 },
];

/// The same for finer words with the five bits behind them: there the cut takes less than one 32nd of a term instead of
/// a unit, which leaves within (-0.001, 0.0943), (-0.005, 0.0983) and (-0.009, 0.1023) u, and of keys within
/// (-0.48, 9.44), (-6.75, 6.75) and (-18.88, 0.96) 32nds.
pub const FINE_KEYS: [Bound; 3] =
    [Bound { below: 1, above: 9 }, Bound { below: 7, above: 6 }, Bound { below: 19, above: 0 }];

/// Words of a table entry.
pub const TABLE_WORDS: usize = 60;
/// Most entries of a group: the index of a hit has 16 bits.
pub const GROUP_MAX: u32 = 65535;
/// Words before the first hit record: count, capacity, [`HITS_LOST`], [`HITS_BEST`].
pub const HITS_HEADER: usize = 4;
/// Where in the header a SCORE filter keeps the best score: the host writes the score to beat, the device raises it. With EACH it is the
/// score to reach, and stays.
pub const HITS_BEST: usize = 3;
/// Where the number of blocks stands whose survivors did not fit. Nothing of such a block was settled.
pub const HITS_LOST: usize = 2;
/// Words of a hit record.
pub const HIT_WORDS: usize = 4;
/// The code of a record that reports a fault instead of a hit.
pub const CODE_FAULT: u32 = u32::MAX;

/// Words of the table: entry 0 is the step point, entry i is i * G.
pub const fn table_words(group: u32) -> usize {
    (group as usize + 1) * TABLE_WORDS
}

/// Words of the centres; word w of lane l at `w * lanes + l`, x first.
pub const fn centres_words(lanes: u32) -> usize {
    16 * lanes as usize
}

/// Words of the scratch buffer. The device alone reads and writes it.
pub const fn scratch_words(group: u32, lanes: u32) -> usize {
    8 * group as usize * lanes as usize
}

/// Words of a hit buffer with room for `capacity` records.
pub const fn hits_words(capacity: u32) -> usize {
    HITS_HEADER + HIT_WORDS * capacity as usize
}

/// Words of the points of a SET filter: [`point_words`] of i * G for i = 1, 2, ...
pub const fn points_words(group: u32) -> usize {
    32 * group as usize
}

/// The words of a point of a SET filter.
pub fn point_words(t: &[u32; 8], beta_t: &[u32; 8], beta2_t: &[u32; 8], y: &[u32; 8]) -> [u32; 32] {
    let mut words = [0; 32];
    for (slot, number) in [t, beta_t, beta2_t, y].into_iter().enumerate() {
        words[8 * slot..][..8].copy_from_slice(number);
    }
    words
}

/// Words of the log of centres of a SET filter.
pub const fn log_words(lanes: u32, steps: u32) -> usize {
    24 * lanes as usize * steps as usize
}

/// Words of the lists of `blocks` blocks of a SET filter, each with places for `capacity` survivors of a step, as many for
/// each of its lanes, and for `room` candidates of a launch.
pub const fn lists_words(blocks: u32, capacity: u32, room: u32) -> usize {
    blocks as usize * 4 * (2 * capacity as usize + 1 + room as usize)
}

/// Keys a lane tests in one step: 18 an entry, and the centre with its images.
pub const fn keys_per_step(group: u32) -> u64 {
    18 * group as u64 + 3
}

/// What the first and last words a filter wants become on the device: `(first, width)` for a RANGE filter,
/// which accepts `w` when `w - first <= width` modulo 2^32.
pub fn widen(first: u32, last: u32) -> (u32, u32) {
    let width = (last.wrapping_sub(first)).saturating_add(TOP.above + TOP.below);
    (first.wrapping_sub(TOP.above), width)
}

/// The buffer of a RANGE filter for up to four inclusive intervals of the top 64 bits: as many of the top word.
pub fn range_words(intervals: &[(u64, u64)]) -> Vec<u32> {
    let widened = intervals.iter().map(|&(first, last)| widen((first >> 32) as u32, (last >> 32) as u32));
    widened.flat_map(|(first, width)| [first, width]).collect()
}

/// The first ten 32-bit digits of a / p after the point, for a below p: d with
/// 0 <= a * 2^320 / p - d < 1 + 2^-122.
pub fn digits(a: &[u32; 8]) -> [u32; 10] {
    // a / p = (a + a K / p) / 2^256 with K = 2^32 + 977, and a K / p is a K / 2^256 up to 2^-189: the cut is
    // that of the floor, but for this excess. The device computes the same, and the bound above has room for
    // it (a limb is at most 2^32 - 1, which makes "less than 1 u" less than 1 - 2^-32).
    let mut product = [0u32; 10];
    let mut sum = 0u64;
    for i in 0..10 {
        if i < 8 {
            sum += u64::from(a[i]) * 977;
        }
        if (1..9).contains(&i) {
            sum += u64::from(a[i - 1]);
        }
        product[i] = sum as u32;
        sum >>= 32;
    }
    let mut digits = [0; 10];
    digits[8] = product[7];
    digits[9] = product[6];
    sum = 0;
    for i in 0..8 {
        sum += u64::from(a[i]) + if i < 2 { u64::from(product[i + 8]) } else { 0 };
        digits[7 - i] = sum as u32;
        sum >>= 32;
    }
    digits
}

/// The coordinates a table entry is made of, all below p.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// y of i * G.
    pub y: [u32; 8],
    /// x of i * G.
    pub t: [u32; 8],
    /// beta * t.
    pub beta_t: [u32; 8],
    /// t^2.
    pub square: [u32; 8],
    /// beta * t^2.
    pub beta_square: [u32; 8],
    /// t^3.
    pub cube: [u32; 8],
}

impl Entry {
    /// The words of the entry.
    pub fn words(&self) -> [u32; TABLE_WORDS] {
        let mut words = [0; TABLE_WORDS];
        words[..8].copy_from_slice(&self.cube);
        words[8..16].copy_from_slice(&self.y);
        for (slot, tau) in [&self.t, &self.beta_t, &self.square, &self.beta_square].into_iter().enumerate() {
            let digits = digits(tau);
            words[16 + 9 * slot..25 + 9 * slot].copy_from_slice(&digits[..9]);
            for (word, digits) in digits[2..].chunks_exact(4).enumerate() {
                words[52 + 2 * slot + word] =
                    u32::from_le_bytes(std::array::from_fn(|i| (digits[i] >> 24) as u8));
            }
        }
        words
    }
}

/// The words of entry 0, the step point (2 * group + 1) * G.
pub fn step_entry(x: &[u32; 8], y: &[u32; 8]) -> [u32; TABLE_WORDS] {
    let mut words = [0; TABLE_WORDS];
    words[..8].copy_from_slice(x);
    words[8..16].copy_from_slice(y);
    words
}

/// A record of the hit buffer. With the lane's centre c0 * G at the launch's start, the key is
/// `lambda^image * (c0 + step * (2 * group + 1) + sign * lambda^orbit * index)`, in the orbit walk up to its sign,
/// in the point walk (where orbit is 0) its negative if `negate` says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hit {
    /// The lane.
    pub lane: u32,
    /// The step within the launch.
    pub step: u32,
    /// The table entry, or 0 for the centre itself.
    pub index: u32,
    /// Whether the entry was taken off the centre instead of added.
    pub minus: bool,
    /// The power of lambda on the table point, 0 to 2.
    pub orbit: u32,
    /// The power of lambda on the sum, 0 to 2.
    pub image: u32,
    /// Whether the key is the negative of that.
    pub negate: bool,
    /// Whether the device could not form the key's digest: the host has to look whether it is wanted.
    pub open: bool,
    /// The top word the device tested: of x (computed, see above), or of the digest; with a SCORE filter the score.
    pub top: u32,
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The device says maybe.
    Hit(Hit),
    /// The lane's group held two equal points. Nothing of this step and the later ones of the launch was
    /// tested on this lane, and its centre is that of the step: give it a new one.
    Fault {
        /// The lane.
        lane: u32,
        /// The step within the launch.
        step: u32,
    },
}

impl Record {
    /// Reads a record.
    pub fn read(words: [u32; HIT_WORDS]) -> Self {
        let [lane, step, code, top] = words;
        if code == CODE_FAULT {
            return Self::Fault { lane, step };
        }
        Self::Hit(Hit {
            lane,
            step,
            index: code & 0xffff,
            minus: code >> 16 & 1 == 1,
            orbit: code >> 17 & 3,
            image: code >> 19 & 3,
            negate: code >> 21 & 1 == 1,
            open: code >> 22 & 1 == 1,
            top,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widened_range_holds_every_word_within_the_bound() {
        for (first, last) in [(0, 0), (5, 9), (u32::MAX, u32::MAX), (0, u32::MAX), (1 << 31, (1 << 31) + 7)] {
            let (low, width) = widen(first, last);
            for truth in [first, last] {
                for w in [truth.wrapping_sub(TOP.above), truth, truth.wrapping_add(TOP.below)] {
                    assert!(w.wrapping_sub(low) <= width);
                }
            }
        }
    }

    /// The bounds of the three kinds of keys, in units of so many parts, from those of T0, T1 and T2, both excluded.
    fn bounds(terms: [(i64, i64); 3], unit: i64) -> [Bound; 3] {
        let mut found = [Bound { below: 0, above: 0 }; 3];
        for (p, q) in (0..9).map(|key| (key / 3, key % 3)) {
            let images = [(6 - p - q) % 3, p, q];
            let (mut low, mut high) = (0, 0);
            for ((from, to), image) in terms.into_iter().zip(images) {
                (low, high) =
                    if image == 2 { (low - 2 * to, high - 2 * from) } else { (low + from, high + to) };
            }
            let squares = images.iter().filter(|&&image| image == 2).count();
            let bound = &mut found[squares.min(2)];
            // The largest whole number that is not above a real one between low and high.
            bound.below = bound.below.max((-low.div_euclid(unit)) as u32);
            bound.above = bound.above.max(((high - 1).div_euclid(unit)) as u32);
        }
        found
    }

    /// The bound of any key.
    fn any(bounds: [Bound; 3]) -> Bound {
        let most = |of: fn(Bound) -> u32| bounds.map(of).into_iter().max().expect("three");
        Bound { below: most(|b| b.below), above: most(|b| b.above) }
    }

    #[test]
    fn bounds_of_keys_follow_from_those_of_terms() {
        // In thousandths of a unit.
        let top = bounds([(-1000, 11_000), (-1000, 11_000), (0, 9000)], 1000);
        assert_eq!(any(top), TOP);
        assert_eq!(
            top.map(|Bound { below, above }| Bound { below: 32 * below, above: 32 * above }),
            TOP_KEYS
        );
        let terms = [(-9, 71), (-5, 67), (-1, 63)];
        assert_eq!(any(bounds(terms.map(|(from, to)| (from, to + 1000)), 1000)), FINE);
        // In thousandths of a 32nd.
        assert_eq!(bounds(terms.map(|(from, to)| (32 * from, 32 * to + 1000)), 1000), FINE_KEYS);
    }
}
