//! The walk that forms points, for targets that hash them: C + i*G and C - i*G, y included where it is wanted.
//!
//! With C = (c, yc), i*G = (t, y) and v = 1/(t - c), all inverses of a group from one inversion (Montgomery):
//!
//! ```text
//! plus:   m = (y - yc) v    x = m^2 - c - t    -y = m (x - c) + yc
//! minus:  m = (y + yc) v    x = m^2 - c - t     y = m (x - c) - yc
//! ```
//!
//! Each point stands for six keys: lambda times it has beta x, lambda^2 times it has beta^2 x = -(x + beta x), and
//! the opposite of each has -y. Cost a point: prefix product and its undoing 1.5 M, m 1 M + 1 S, y 1 M, beta x 1 M.
//!
//! A visitor that needs no y (a compressed key is x and a parity, and both parities are tried) saves its product.
//! One that scans a range wants the points themselves and nothing that goes with them: a point is then one key.

use super::exact;
use super::lanewise::Lanewise;
use super::place::Place;
use crate::Fe;
use crate::field::lanes::Lanes;
use crate::group;

/// Keys a point stands for: three images, two signs.
pub const KEYS_PER_POINT: u64 = 6;

/// What is done with the points of a walk.
pub trait Points {
    /// Whether it reads y; if not, [`Block::y`] means nothing.
    const Y: bool;

    /// Whether it reads the images and opposites of a point too; if not, only the first of [`Block::x`] and of
    /// [`Block::y`] is filled, and a point is one key.
    const RELATIVES: bool = true;

    /// Up to eight points.
    fn points(&mut self, block: &Block);
}

/// Where a point lies in its group.
#[derive(Clone, Copy)]
struct At {
    lane: u32,
    index: u32,
    minus: bool,
}

/// Where the points of a block lie.
#[derive(Clone, Copy)]
pub struct Places {
    at: [At; 8],
    step: u64,
}

impl Places {
    fn new(step: u64) -> Places {
        Places { at: [At { lane: 0, index: 0, minus: false }; 8], step }
    }

    /// Where the key of an image (0 to 2) and a sign of the i-th point lies.
    pub fn place(&self, point: usize, image: u8, negate: bool) -> Place {
        let At { lane, index, minus } = self.at[point];
        Place { lane, step: self.step, index, minus, orbit: 0, image, negate }
    }
}

/// Eight points side by side. Coordinates are canonical: below p, as four words, most significant first.
#[repr(align(64))]
pub struct Block {
    /// Of each image, each word, each point: x of the point times 1, lambda, lambda^2.
    pub x: [[[u64; 8]; 4]; 3],
    /// Of each sign, each word, each point: y of the point and of its opposite; the images have the same.
    pub y: [[[u64; 8]; 4]; 2],
    /// Bit i is set where there is an i-th point. The coordinates of others mean nothing.
    pub live: u8,
    /// Where they lie.
    pub places: Places,
}

impl Block {
    fn new(step: u64) -> Block {
        Block { x: [[[0; 8]; 4]; 3], y: [[[0; 8]; 4]; 2], live: 0, places: Places::new(step) }
    }

    /// Where the key of an image (0 to 2) and a sign of the i-th point lies.
    pub fn place(&self, point: usize, image: u8, negate: bool) -> Place {
        self.places.place(point, image, negate)
    }
}

/// Receiver of full blocks. Not generic, so that the walk is compiled once for each kind of lanes and not again for each visitor: a call a
/// block is nothing beside what is done with its points.
pub(super) type TakeBlock<'v> = dyn FnMut(&Block) + 'v;

/// A block being filled, with y or without, with relatives or without, and the receiver of full ones.
struct Filling<'v, const Y: bool, const RELATIVES: bool> {
    block: Block,
    /// Places taken.
    taken: usize,
    take_block: &'v mut TakeBlock<'v>,
    /// Points handed over.
    points: u64,
}

impl<const Y: bool, const RELATIVES: bool> Filling<'_, Y, RELATIVES> {
    /// Adds the points of `L::N` lanes from `first` on, but for those in `skip`. `x` is loose, `y` are both signs,
    /// loose.
    #[inline(always)]
    unsafe fn lanes<L: Lanes>(&mut self, first: u32, skip: u32, index: u32, minus: bool, x: L, y: [L; 2]) {
        // SAFETY: the caller's.
        unsafe {
            L::wide_store(&x.wide(), &mut self.block.x[0], self.taken);
            if RELATIVES {
                let beta = x.mul(L::splat(&L::constant(Fe::BETA)));
                L::wide_store(&beta.wide(), &mut self.block.x[1], self.taken);
                L::wide_store(&x.add(beta).negate().wide(), &mut self.block.x[2], self.taken);
            }
            if Y {
                L::wide_store(&y[0].wide(), &mut self.block.y[0], self.taken);
                if RELATIVES {
                    L::wide_store(&y[1].wide(), &mut self.block.y[1], self.taken);
                }
            }
        }
        for lane in 0..L::N {
            self.block.places.at[self.taken + lane] = At { lane: first + lane as u32, index, minus };
        }
        self.take(L::N, !skip & ((1 << L::N) - 1));
    }

    /// Counts places as taken, `live` of them by points, and hands a full block over.
    #[inline(always)]
    fn take(&mut self, places: usize, live: u32) {
        self.block.live |= (live << self.taken) as u8;
        self.taken += places;
        if self.taken == 8 {
            self.hand_over();
        }
    }

    /// Hands over what there is.
    #[inline(always)]
    fn hand_over(&mut self) {
        if self.block.live != 0 {
            self.points += u64::from(self.block.live.count_ones());
            (self.take_block)(&self.block);
        }
        self.block.live = 0;
        self.taken = 0;
    }
}

impl<L: Lanes> Lanewise<'_, L> {
    /// Visits every point of one group in every lane and moves the centres on. Returns how many keys those were.
    ///
    /// # Safety
    /// As for all of [`Lanes`].
    #[inline(always)]
    pub(super) unsafe fn points<const Y: bool, const RELATIVES: bool>(
        &mut self,
        step: u64,
        take_block: &mut TakeBlock<'_>,
    ) -> u64 {
        let table = self.table;
        let mut filling =
            Filling::<Y, RELATIVES> { block: Block::new(step), taken: 0, take_block, points: 0 };
        // SAFETY: the caller's, throughout.
        unsafe {
            let (c, yc) = (self.x, self.y);
            let one = L::splat(&L::constant(Fe::ONE));
            let minus_yc = yc.negate().mul(one);
            // Two interleaved chains of products: one would wait for its own latency.
            let mut chain = [one, one];
            for (i, (entry, before)) in table.entries.iter().zip(&mut self.before).enumerate() {
                *before = chain[i & 1];
                chain[i & 1] = chain[i & 1].mul(c.add(L::splat(&entry.minus_t)));
            }
            let d_step = L::splat(&table.step_x).sub(c);
            let both = chain[0].mul(chain[1]);
            // A centre that meets an entry or its opposite has c = t: the product vanishes.
            let (inverse, skip) = self.invert(both.mul(d_step));
            let inv_step = inverse.mul(both);
            let rest = inverse.mul(d_step);
            let mut undo = [rest.mul(chain[1]), rest.mul(chain[0])];

            filling.lanes(0, skip, 0, false, c, [yc, minus_yc]);
            for (i, (entry, before)) in table.entries.iter().zip(&self.before).enumerate().rev() {
                let index = i as u32 + 1;
                let (minus_t, y) = (L::splat(&entry.minus_t), L::splat(&entry.y));
                let v = undo[i & 1].mul(*before); // 1 / (c - t)
                undo[i & 1] = undo[i & 1].mul(c.add(minus_t));

                let m = yc.sub(y).mul(v);
                let x = m.square().sub(c).add(minus_t);
                let opposite = if Y { m.mul_add(x.sub(c), yc) } else { yc };
                filling.lanes(0, skip, index, false, x, [opposite.negate(), opposite]);

                let m = yc.add(y).mul(v);
                let x = m.square().sub(c).add(minus_t);
                let opposite = if Y { m.mul_add(x.sub(c), yc) } else { yc };
                filling.lanes(0, skip, index, true, x, [opposite.negate(), opposite]);
            }

            for (lane, centre) in self.advance(inv_step, skip) {
                exact::points(&table.points, 0, centre, |index, minus, point| {
                    // The portable lane needs no instruction set.
                    filling.lanes::<Fe>(lane as u32, 0, index, minus, point.x, [point.y, point.y.negate()]);
                });
                self.place(lane, group::add(centre, Some(table.step)));
            }
        }
        filling.hand_over();
        filling.points * if RELATIVES { KEYS_PER_POINT } else { 1 }
    }
}
