//! Points become digests, sixteen at a time, and digests that a filter lets pass become survivors.

use warpsmith_chain::{Digest, Form};
use warpsmith_curve::Fe;
use warpsmith_curve::multiply::Eight;
use warpsmith_curve::walk::{Block, Places, Points};
use warpsmith_hash::hash160::Digest8;
use warpsmith_hash::keccak::Word8;
use warpsmith_hash::sha256::Tagged;
use warpsmith_hash::{Lanes, hash160, keccak};

use super::Cpu;
use crate::prefilter::MayHold;

/// Blocks of eight points that are tweaked together: they share inversions.
const TOGETHER: usize = 256;

/// Which keys points are.
pub(super) trait Window {
    /// What tells where eight points lie.
    type At: Copy;

    /// The offset of one of them in what is scanned, if it lies there.
    fn offset(&self, at: &Self::At, point: usize) -> Option<u64>;
}

/// Which keys eight points are. Their offsets in the stretch are worked out for survivors only.
#[derive(Clone, Copy)]
struct Keys<A> {
    live: u8,
    at: A,
}

/// Hashes points, sixteen at a time.
pub(super) struct Hashing<'w, A: Copy> {
    lanes: Lanes,
    forms: &'w [Form],
    filter: &'w dyn MayHold,
    window: &'w dyn Window<At = A>,
    x: [[Word8; 4]; 2],
    y: [[Word8; 4]; 2],
    /// None where a half holds no points.
    keys: [Option<Keys<A>>; 2],
    /// Halves that are filled.
    filled: usize,
    cpu: &'w Cpu,
    tagged: Tagged,
    /// Points to be tweaked together, and which keys they are.
    tweaked: Vec<Eight>,
    tweaked_keys: Vec<Keys<A>>,
    pub survivors: Vec<(u64, Form, Digest)>,
}

impl Points for Hashing<'_, Places> {
    const Y: bool = true;
    const RELATIVES: bool = false;

    fn points(&mut self, block: &Block) {
        self.eight(&block.x[0], &block.y[0], block.live, block.places);
    }
}

impl<'w, A: Copy> Hashing<'w, A> {
    pub fn new(
        cpu: &'w Cpu,
        forms: &'w [Form],
        filter: &'w dyn MayHold,
        window: &'w dyn Window<At = A>,
    ) -> Self {
        Hashing {
            lanes: cpu.hash_lanes(),
            forms,
            filter,
            window,
            x: [[[0; 8]; 4]; 2],
            y: [[[0; 8]; 4]; 2],
            keys: [None; 2],
            filled: 0,
            cpu,
            tagged: Tagged::new(b"TapTweak"),
            tweaked: Vec::new(),
            tweaked_keys: Vec::new(),
            survivors: Vec::new(),
        }
    }

    /// Takes eight points, of which those in `live` are some. Coordinates are canonical.
    pub fn eight(&mut self, x: &[Word8; 4], y: &[Word8; 4], live: u8, at: A) {
        let half = self.filled;
        (self.x[half], self.y[half]) = (*x, *y);
        self.keys[half] = Some(Keys { live, at });
        self.filled += 1;
        if self.filled == 2 {
            self.hash();
        }
    }

    /// Hashes what is left.
    pub fn flush(&mut self) {
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
    fn look(&mut self, form: Form, words: &[Word8], bytes: usize, keys: Option<Keys<A>>) {
        let Some(Keys { live, at }) = keys else { return };
        let passed = self.filter.may_hold_of(&words[0]) & live;
        if passed == 0 {
            return;
        }
        for lane in 0..8 {
            if passed >> lane & 1 == 1
                && let Some(offset) = self.window.offset(&at, lane)
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
