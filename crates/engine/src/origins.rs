//! The origins of a search: one for each lane, drawn many at a time and retired one by one.
//!
//! [`Maker`] draws them and computes where their walks begin, by a table of multiples of G and additions that share
//! inversions. [`Origins`] is the ledger of one worker: the secret of each lane, and no more of them than lanes. A worker is
//! given the points alone.
//!
//! SEC: secrets are in locked memory and erased when they are dropped, which the ledger does with all it holds. On the way
//! to its point a number lies in a buffer that is overwritten, and on a stack that is.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use secp256k1::PublicKey;
use warpsmith_curve::multiply::{self, Eight, Multiples};
use warpsmith_curve::{Affine, Fe, Scalar};
use zeroize::Zeroize;

use crate::error::Result;
use crate::origin::{Origin, affine};
use crate::run::threads::spawn;
use crate::secret::{Secret, wiping_stack};
use crate::simd;

/// Fewer origins than this are multiplied one by one: the table takes longer than they do.
const FEW: usize = 256;

/// The table, made when it is first needed: it is the same for all searches.
static MULTIPLES: OnceLock<Multiples> = OnceLock::new();

/// Origins that are made by one thread before it looks for more.
const PIECE: usize = 8 * multiply::TOGETHER;

/// Makes origins for one search.
pub(crate) struct Maker {
    split: Option<PublicKey>,
}

/// An origin nobody walks from yet, and the point where a walk from it begins.
pub(crate) struct Spare {
    secret: Secret,
    pub point: Affine,
}

impl Maker {
    /// Origins of walks that begin at r*G, or with the key of an owner at that and r*G.
    pub fn new(split: Option<PublicKey>) -> Maker {
        Maker { split }
    }

    /// So many, on this thread.
    pub fn make(&self, count: usize) -> Result<Vec<Spare>> {
        let mut made = Vec::with_capacity(count);
        // More than once only if r undoes the owner's key, which nobody meets.
        while made.len() < count {
            let secrets = Secret::random_many(count - made.len())?;
            let points =
                if secrets.len() < FEW { self.one_by_one(&secrets) } else { self.together(&secrets) };
            let spares = secrets.into_iter().zip(points);
            made.extend(spares.filter_map(|(secret, point)| Some(Spare { secret, point: point? })));
        }
        Ok(made)
    }

    /// The ledger of so many lanes and where they begin, made on all cores.
    pub fn ledger(&self, lanes: usize) -> Result<(Origins, Vec<Affine>)> {
        let pieces = lanes.div_ceil(PIECE);
        let (made, failed) = (Mutex::new(Vec::with_capacity(lanes)), Mutex::new(None));
        let left = Mutex::new(lanes);
        let lock = |left: &Mutex<usize>| {
            let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
            let piece = (*left).min(PIECE);
            *left -= piece;
            piece
        };
        let work = || {
            while let piece @ 1.. = lock(&left) {
                match self.make(piece) {
                    Ok(spares) => made.lock().unwrap_or_else(PoisonError::into_inner).extend(spares),
                    Err(error) => *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error),
                }
            }
        };
        thread::scope(|scope| {
            let cores = thread::available_parallelism().map_or(1, usize::from);
            for _ in 1..pieces.min(cores) {
                // Without another thread this one does it all.
                spawn(scope, work, |_| ());
            }
            work();
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (held, points) = made.into_iter().map(|spare| (spare.secret, spare.point)).unzip();
        Ok((Origins { split: self.split, held }, points))
    }

    /// The points by libsecp256k1.
    fn one_by_one(&self, secrets: &[Secret]) -> Vec<Option<Affine>> {
        let point = |secret: &Secret| Origin::new(secret.clone(), self.split).point();
        secrets.iter().map(point).collect()
    }

    /// The points by our own additions: P + t*G, with P the owner's key and t the number, or P = G and t one less, so that
    /// no sum begins at infinity. What is wrong with one of them is noticed with the match, which libsecp256k1 computes.
    ///
    /// SEC: t is overwritten here. What the additions leave in memory they gave back are sums, of which the last are public, and
    /// the window they read last: three bits.
    fn together(&self, secrets: &[Secret]) -> Vec<Option<Affine>> {
        let (base, less) = match &self.split {
            Some(owner) => (affine(owner), 0),
            None => (Affine::G, 1),
        };
        sums_of(base, less, secrets.len(), secrets.iter().map(Secret::as_bytes))
    }
}

/// `base + (t - less) * G` for each of so many numbers t, none of them below `less`.
///
/// SEC: as for [`Maker::together`].
fn sums_of<'n>(
    base: Affine,
    less: u64,
    count: usize,
    numbers: impl Iterator<Item = &'n [u8; 32]>,
) -> Vec<Option<Affine>> {
    let multiples = MULTIPLES.get_or_init(|| Multiples::new(simd::detect()));
    let sums = added_up(multiples, base, less, count, numbers);
    (0..count).map(|at| point_of_sum(&sums, at)).collect()
}

/// The same, eight by eight, with a table of one's own.
fn added_up<'n>(
    multiples: &Multiples,
    base: Affine,
    less: u64,
    count: usize,
    numbers: impl Iterator<Item = &'n [u8; 32]>,
) -> Vec<Eight> {
    let (x, y) = (base.x.to_words().map(|word| [word; 8]), base.y.to_words().map(|word| [word; 8]));
    let mut sums = vec![Eight { x, y, t: [[0; 8]; 4], live: 0xff }; count.div_ceil(8)];
    wiping_stack(|| {
        for (at, number) in numbers.enumerate() {
            let (words, _) = number.as_chunks();
            let mut borrow = less;
            // From the lowest word up; nothing is left to borrow at the end.
            for (word, bytes) in sums[at / 8].t.iter_mut().zip(words).rev() {
                let (value, under) = u64::from_be_bytes(*bytes).overflowing_sub(borrow);
                (word[at % 8], borrow) = (value, u64::from(under));
            }
        }
        multiples.add_points(&mut sums);
    });
    for sum in &mut sums {
        sum.t.zeroize();
    }
    sums
}

/// The points of some private keys, all of them from 1 to n - 1, eight by eight; what fills the last eight up is not live.
pub(crate) fn sums_of_keys(multiples: &Multiples, keys: &[[u8; 32]]) -> Vec<Eight> {
    let mut sums = added_up(multiples, Affine::G, 1, keys.len(), keys.iter());
    if let Some(last) = sums.last_mut()
        && !keys.len().is_multiple_of(8)
    {
        last.live &= (1 << (keys.len() % 8)) - 1;
    }
    sums
}

/// Half of a number modulo n.
pub(crate) fn half_of(number: Scalar) -> Scalar {
    multiply::half_of(number)
}

/// The points of some private keys; none where a number is no key.
pub(crate) fn points_of(keys: &[[u8; 32]]) -> Vec<Option<Affine>> {
    if keys.len() < FEW {
        let point = |key: &[u8; 32]| Secret::from_bytes(key).map(|secret| affine(&secret.public_key()));
        return keys.iter().map(point).collect();
    }
    // What is no key is put aside: the additions are for numbers from 1 to n - 1.
    let last = Scalar::ONE.negate().to_be_bytes();
    let is_key = |key: &[u8; 32]| *key != [0; 32] && *key <= last;
    let mut one = [0; 32];
    one[31] = 1;
    let sums = sums_of(Affine::G, 1, keys.len(), keys.iter().map(|key| if is_key(key) { key } else { &one }));
    sums.into_iter().zip(keys).map(|(sum, key)| sum.filter(|_| is_key(key))).collect()
}

/// One of the points that were added up eight by eight; none where it is infinity.
fn point_of_sum(sums: &[Eight], at: usize) -> Option<Affine> {
    let (sum, lane) = (&sums[at / 8], at % 8);
    let coordinate = |words: &[[u64; 8]; 4]| Fe::from_words(&words.map(|word| word[lane]));
    (sum.live >> lane & 1 == 1).then(|| Affine { x: coordinate(&sum.x), y: coordinate(&sum.y) })
}

/// `base + way * G` for each way, by our own additions. For public numbers: the time depends on them.
pub(crate) fn moved_by(base: Affine, ways: &[Scalar]) -> Vec<Option<Affine>> {
    let numbers: Vec<[u8; 32]> = ways.iter().map(|way| way.to_be_bytes()).collect();
    sums_of(base, 0, numbers.len(), numbers.iter())
}

/// The origins of one worker's lanes.
pub(crate) struct Origins {
    split: Option<PublicKey>,
    held: Vec<Secret>,
}

impl Origins {
    /// A copy of a lane's origin, which stays in use: for what is looked at and never shown. None if there is no such lane.
    pub fn of(&self, lane: u32) -> Option<Origin> {
        self.held.get(lane as usize).map(|secret| Origin::new(secret.clone(), self.split))
    }

    /// Takes a lane's origin out of use and puts a spare one in its place. None if there is no such lane.
    pub fn retire(&mut self, lane: u32, spare: Spare) -> Option<Origin> {
        let held = self.held.get_mut(lane as usize)?;
        Some(Origin::new(std::mem::replace(held, spare.secret), self.split))
    }

    /// Origins that are known in advance: for tests, whose keys nobody uses.
    #[cfg(test)]
    pub fn known(held: Vec<Secret>) -> Origins {
        Origins { split: None, held }
    }

    /// How many it holds: as many as there are lanes.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Each point is that of its number by libsecp256k1, with an owner's key or without, a few at a time or many, and no
    /// number comes twice.
    #[test]
    fn origins_lie_where_their_numbers_say() {
        let owner = Secret::random().expect("random").public_key();
        for split in [None, Some(owner)] {
            let maker = Maker::new(split);
            let mut seen = HashSet::new();
            for count in [0, 1, 7, FEW - 1, FEW, FEW + 5] {
                let made = maker.make(count).expect("made");
                assert_eq!(made.len(), count);
                for Spare { secret, point } in made {
                    assert!(seen.insert(*secret.as_bytes()));
                    assert_eq!(Origin::new(secret, split).point(), Some(point));
                }
            }
            let lanes = 2 * PIECE + 3;
            let (origins, points) = maker.ledger(lanes).expect("made");
            assert_eq!((origins.len(), points.len()), (lanes, lanes));
            for lane in (0..lanes).step_by(97).chain([PIECE - 1, PIECE, lanes - 1]) {
                let origin = origins.of(lane as u32).expect("a lane");
                assert_eq!(origin.point(), Some(points[lane]), "lane {lane}");
            }
            assert!(origins.of(lanes as u32).is_none());
        }
    }

    /// What the origins of a card take of this machine.
    #[test]
    #[ignore = "a measurement: cargo test --release -p warpsmith-engine --lib how_long -- --ignored --nocapture"]
    fn how_long_origins_take() {
        for lanes in [64, 84_480] {
            let started = std::time::Instant::now();
            let maker = Maker::new(None);
            let (origins, _) = maker.ledger(lanes).expect("made");
            let with_table = started.elapsed();
            drop(origins);
            let started = std::time::Instant::now();
            let (origins, _) = maker.ledger(lanes).expect("made");
            let without = started.elapsed();
            let started = std::time::Instant::now();
            drop(origins);
            println!(
                "{lanes} origins: {with_table:?} with the table, {without:?} without; erased in {:?}",
                started.elapsed()
            );
        }
        let (maker, started) = (Maker::new(None), std::time::Instant::now());
        drop(maker.make(MEASURED).expect("made"));
        println!("{MEASURED} spares by one thread, with the table: {:?}", started.elapsed());
    }

    const MEASURED: usize = 1024;

    /// The borrow runs through all words.
    #[test]
    fn numbers_that_end_in_zeros_lose_one_rightly() {
        let mut bytes = [[0; 32]; 4];
        for (n, bytes) in bytes.iter_mut().enumerate() {
            bytes[8 * n + 7] = 1;
        }
        let few = bytes.iter().map(|bytes| Secret::from_bytes(bytes).expect("a key"));
        let secrets: Vec<Secret> = few.cycle().take(FEW).collect();
        let maker = Maker::new(None);
        assert_eq!(maker.together(&secrets), maker.one_by_one(&secrets));
    }

    /// A ledger never holds more than its lanes: what is retired is gone from it, and erased once its owner is done.
    #[test]
    fn a_ledger_is_bounded_and_retired_origins_are_erased() {
        let maker = Maker::new(None);
        let (mut origins, points) = maker.ledger(3).expect("made");
        let (slot, first) = (origins.held[1].as_bytes() as *const [u8; 32], *origins.held[1].as_bytes());
        for n in 0..1000 {
            let spare = maker.make(1).expect("made").pop().expect("one");
            let (point, before) = (spare.point, origins.of(1).expect("a lane").point());
            let retired = origins.retire(1, spare).expect("a lane");
            assert_eq!(retired.point(), before);
            assert!(n > 0 || before == Some(points[1]));
            assert_eq!(origins.of(1).expect("a lane").point(), Some(point));
            assert_eq!(origins.len(), 3);
            if n == 0 {
                drop(retired);
                // SAFETY: the memory of secrets is mapped for the life of the process. It may be somebody else's by now.
                let left = unsafe { std::ptr::read_volatile(slot) };
                assert_ne!(left, first, "erased");
            }
        }
        let spare = maker.make(1).expect("made").pop().expect("one");
        assert!(origins.retire(3, spare).is_none(), "no such lane");
    }
}
