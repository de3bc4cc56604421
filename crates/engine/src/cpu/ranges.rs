//! A stretch of a range on the processor: every key of it once, in every form that is wanted.
//!
//! Each lane of the walk takes groups that follow each other; the lanes' shares lie side by side. What the last lanes
//! compute beyond the stretch is thrown away. A group is never laid across 0 or n: at the upper end of the keys the
//! stretch is moved back and what was there before it thrown away instead.

use warpsmith_chain::{Digest, Form};
use warpsmith_curve::group::Point;
use warpsmith_curve::multiply::Eight;
use warpsmith_curve::walk::{Block, Places, Points, Walk};
use warpsmith_curve::{Affine, Fe, Scalar};
use warpsmith_hash::hash160::Digest8;
use warpsmith_hash::keccak::Word8;
use warpsmith_hash::sha256::Tagged;
use warpsmith_hash::{Lanes, hash160, keccak};

use super::Cpu;
use crate::prefilter::MayHold;
use crate::worker::Fault;
#[cfg(test)]
use crate::worker::ends::flipped;
use crate::worker::ends::{Must, Row, compare};
use crate::worker::scanner::{Scanner, Survivor, small};

/// Groups of one lane in a stretch: some hundredths of a second.
const GROUPS: u64 = 48;

/// Blocks of eight points that are tweaked together: they share inversions.
const TOGETHER: usize = 256;

/// Stretches a scanner is given at a time.
const STRETCHES: u64 = 2;

/// One thread's scanner.
pub(crate) struct CpuScanner<'a, S> {
    cpu: &'a Cpu,
    forms: &'a [Form],
    filter: &'a S,
    /// What keys are counted from.
    base: Point,
    /// What is still to be covered.
    first: Scalar,
    left: u64,
    /// A bit of a lane's centre to be turned over in the middle of the next stretch.
    #[cfg(test)]
    flip: std::cell::Cell<Option<(u32, u32)>>,
}

impl<S: MayHold> Scanner for CpuScanner<'_, S> {
    fn most(&self) -> u64 {
        STRETCHES * self.stretch()
    }

    fn seams(&self) -> Vec<u64> {
        vec![self.group(), 2 * self.group()]
    }

    fn count_from(&mut self, base: Affine) -> Result<(), Fault> {
        self.base = Some(base);
        Ok(())
    }

    fn begin(&mut self, first: Scalar, count: u64) -> Result<(), Fault> {
        (self.first, self.left) = (first, count);
        Ok(())
    }

    fn go_on(&mut self) -> Result<(u64, Vec<Survivor>), Fault> {
        let count = self.left.min(self.stretch());
        if count == 0 {
            return Ok((0, Vec::new()));
        }
        let survivors = self.cover(self.first, count)?;
        (self.first, self.left) = (self.first.add(Scalar::from_u64(count)), self.left - count);
        Ok((count, survivors))
    }

    #[cfg(test)]
    fn flip(&mut self, lane: u32, bit: u32) {
        self.flip.set(Some((lane, bit)));
    }
}

impl<'a, S: MayHold> CpuScanner<'a, S> {
    pub fn new(cpu: &'a Cpu, forms: &'a [Form], filter: &'a S) -> Self {
        CpuScanner {
            cpu,
            forms,
            filter,
            base: None,
            first: Scalar::ZERO,
            left: 0,
            #[cfg(test)]
            flip: Default::default(),
        }
    }

    /// The same, with keys that are counted from here.
    pub fn with_base(self, base: Point) -> Self {
        CpuScanner { base, ..self }
    }

    /// Covers all that is left.
    pub fn rest(&mut self) -> Result<Vec<Survivor>, Fault> {
        let mut survivors = Vec::new();
        while self.left > 0 {
            survivors.extend(self.go_on()?.1);
        }
        Ok(survivors)
    }

    /// The most keys a stretch can have.
    fn stretch(&self) -> u64 {
        self.lanes() * GROUPS * self.group()
    }

    fn lanes(&self) -> u64 {
        u64::from(self.cpu.numbering().lanes)
    }

    /// Keys of a group.
    fn group(&self) -> u64 {
        2 * u64::from(self.cpu.numbering().half) + 1
    }

    /// The keys first, first + 1, .. of which the filter lets a form pass: `count` keys in all, at most
    /// [`Self::stretch`]. None of them is 0 or beyond n - 1.
    fn cover(&self, first: Scalar, count: u64) -> Result<Vec<Survivor>, Fault> {
        let (lanes, group) = (self.lanes(), self.group());
        assert!(0 < count && count <= self.stretch(), "a stretch has 1 to {} keys", self.stretch());
        let groups = count.div_ceil(lanes * group);
        let window = lanes * groups * group;
        // How many keys of the window lie before the stretch: as many as would lie beyond n - 1.
        let last = first.add(Scalar::from_u64(count - 1));
        let room = last.negate(); // n - last: the keys after it and one
        let beyond = window - count;
        let before = match small(room) {
            // Where a point's 0 lies among the keys is nobody's business, and nobody meets it.
            Some(room) if self.base.is_none() && room <= beyond => beyond - (room - 1),
            _ => 0,
        };
        let start = first.sub(Scalar::from_u64(before));
        let (first_centre, apart) =
            (start.add(Scalar::from_u64(group / 2)), Scalar::from_u64(groups * group));
        let row = Row { base: self.base, first: first_centre, apart };
        // Each lane ends where the next began: the last of these is where the last lane must end.
        let starts: Vec<Point> = (0..=lanes).map(|lane| row.lane(lane)).collect();
        let (begin, end) = (&starts[..lanes as usize], &starts[1..]);
        if begin.iter().any(Option::is_none) {
            return Err("a lane began at no key".to_owned());
        }
        let mut walk = Walk::new(self.cpu.table(), begin);
        let mut hashing = Hashing {
            lanes: self.cpu.hash_lanes(),
            forms: self.forms,
            filter: self.filter,
            window: KeyPlaces { groups, group, before, count },
            x: [[[0; 8]; 4]; 2],
            y: [[[0; 8]; 4]; 2],
            keys: [None; 2],
            filled: 0,
            cpu: self.cpu,
            tagged: Tagged::new(b"TapTweak"),
            tweaked: Vec::new(),
            tweaked_keys: Vec::new(),
            survivors: Vec::new(),
        };
        let mut walked = 0;
        for _ in 0..groups {
            #[cfg(test)]
            if let Some((lane, bit)) = self.flip.take() {
                let centre = walk.centres()[lane as usize].expect("not infinity");
                walk.put(lane as usize, Some(flipped(centre, bit)));
            }
            walked += walk.points(&mut hashing);
        }
        hashing.flush();
        compare(&walk.centres(), end)?;
        if walked != window {
            return Err(format!("{walked} keys were walked instead of {window}"));
        }
        let at = |(offset, form, digest)| Survivor { key: first.add(Scalar::from_u64(offset)), form, digest };
        Ok(hashing.survivors.into_iter().map(at).collect())
    }
}

/// How the places of a walk become keys.
struct KeyPlaces {
    /// Groups of a lane.
    groups: u64,
    /// Keys of a group.
    group: u64,
    /// Keys of the window before the stretch.
    before: u64,
    /// Keys of the stretch.
    count: u64,
}

impl KeyPlaces {
    /// The offset of a point in the stretch, if it lies there.
    fn offset(&self, places: &Places, point: usize) -> Option<u64> {
        let place = places.place(point, 0, false);
        let centre = (u64::from(place.lane) * self.groups + place.step) * self.group + self.group / 2;
        let index = u64::from(place.index);
        let at = if place.minus { centre - index } else { centre + index };
        at.checked_sub(self.before).filter(|&offset| offset < self.count)
    }
}

/// Which keys eight points are. Their offsets in the stretch are worked out for survivors only.
#[derive(Clone, Copy)]
struct Keys {
    live: u8,
    places: Places,
}

/// Hashes the points of a walk, sixteen at a time.
struct Hashing<'w, S> {
    lanes: Lanes,
    forms: &'w [Form],
    filter: &'w S,
    window: KeyPlaces,
    x: [[Word8; 4]; 2],
    y: [[Word8; 4]; 2],
    /// None where a half holds no points.
    keys: [Option<Keys>; 2],
    /// Halves that are filled.
    filled: usize,
    cpu: &'w Cpu,
    tagged: Tagged,
    /// Points to be tweaked together, and which keys they are.
    tweaked: Vec<Eight>,
    tweaked_keys: Vec<Keys>,
    survivors: Vec<(u64, Form, Digest)>,
}

impl<S: MayHold> Points for Hashing<'_, S> {
    const Y: bool = true;
    const RELATIVES: bool = false;

    fn points(&mut self, block: &Block) {
        let half = self.filled;
        (self.x[half], self.y[half]) = (block.x[0], block.y[0]);
        self.keys[half] = Some(Keys { live: block.live, places: block.places });
        self.filled += 1;
        if self.filled == 2 {
            self.hash();
        }
    }
}

impl<S: MayHold> Hashing<'_, S> {
    /// Hashes what is left.
    fn flush(&mut self) {
        if self.filled > 0 {
            self.hash();
        }
        self.tweak();
    }

    fn hash(&mut self) {
        if self.filled == 1 {
            self.keys[1] = None;
        }
        self.filled = 0;
        let odd = self.y.each_ref().map(|y| (0..8).fold(0, |odd, i| odd | ((y[3][i] & 1) as u8) << i));
        let mut compressed: Option<[Digest8; 2]> = None;
        for &form in self.forms {
            let mut hash_compressed =
                || *compressed.get_or_insert_with(|| hash160::compressed_keys(self.lanes, &self.x, odd));
            let digests = match form {
                Form::X => {
                    let (x, keys) = (self.x, self.keys);
                    for (x, keys) in x.iter().zip(keys) {
                        self.look(form, x, 32, keys);
                    }
                    continue;
                }
                Form::Taproot => {
                    self.collect_for_tweak();
                    continue;
                }
                Form::Hash160 => hash_compressed(),
                Form::ScriptHash160 => hash160::witness_scripts(self.lanes, &hash_compressed()),
                Form::Hash160Uncompressed => hash160::uncompressed_keys(self.lanes, &self.x, &self.y),
                Form::Contract { .. } => unreachable!("a scan refuses this form at its start"),
                Form::Account => std::array::from_fn(|half| {
                    keccak::address_of_points(self.lanes, &self.x[half], &self.y[half])
                }),
            };
            let keys = self.keys;
            for (digests, keys) in digests.iter().zip(keys) {
                self.look(form, digests, 20, keys);
            }
        }
    }

    /// Sets points aside until there are enough to be tweaked together.
    fn collect_for_tweak(&mut self) {
        let tweaks = self.tagged.of_32_bytes(self.lanes, [&self.x[0], &self.x[1]]);
        for (half, t) in tweaks.into_iter().enumerate() {
            if let Some(keys) = self.keys[half] {
                let (x, y) = (self.x[half], even(&self.y[half]));
                self.tweaked.push(Eight { x, y, t, live: keys.live });
                self.tweaked_keys.push(keys);
            }
        }
        if self.tweaked.len() >= TOGETHER {
            self.tweak();
        }
    }

    /// Tweaks what was set aside and looks at it.
    fn tweak(&mut self) {
        let (mut sums, keys) = (std::mem::take(&mut self.tweaked), std::mem::take(&mut self.tweaked_keys));
        if sums.is_empty() {
            return;
        }
        self.cpu.multiples().add_to(&mut sums);
        for (sum, keys) in sums.iter().zip(&keys) {
            // A sum that is infinity is no output key.
            self.look(Form::Taproot, &sum.x, 32, Some(Keys { live: sum.live, ..*keys }));
        }
    }

    /// Notes the digests the filter lets pass. Words are most significant byte first.
    #[inline]
    fn look(&mut self, form: Form, words: &[Word8], bytes: usize, keys: Option<Keys>) {
        let Some(Keys { live, places }) = keys else { return };
        for lane in 0..8 {
            if self.filter.may_hold(words[0][lane])
                && live >> lane & 1 == 1
                && let Some(offset) = self.window.offset(&places, lane)
            {
                let mut digest = [0; 32];
                for (to, word) in digest.chunks_exact_mut(8).zip(words) {
                    to.copy_from_slice(&word[lane].to_be_bytes());
                }
                self.survivors.push((offset, form, Digest::new(&digest[..bytes])));
            }
        }
    }
}

/// Of each y and its opposite the even one.
fn even(y: &[Word8; 4]) -> [Word8; 4] {
    let mut even = *y;
    for lane in (0..8).filter(|&lane| y[3][lane] & 1 == 1) {
        let words = std::array::from_fn(|word| y[word][lane]);
        let opposite = Fe::from_words(&words).negate().canonical().to_words();
        for (word, value) in even.iter_mut().zip(opposite) {
            word[lane] = value;
        }
    }
    even
}

#[cfg(test)]
mod tests;
