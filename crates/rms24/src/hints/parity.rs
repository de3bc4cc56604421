//! Parities, fast: the database goes by once, a few blocks at a time, and every hint takes what it holds.
//!
//! Sixteen calls of the PRF run side by side: for B blocks and 16 / B groups of hints. Their words become numbers of
//! entries in a buffer of B blocks, all lanes at once and without a branch: where a hint does not hold a block, the number
//! is that of a zero entry at the buffer's end. Then each hint adds up B entries in a register. B is chosen so that the
//! blocks stay in the processor's second cache.

use super::{Hints, Skeleton};
use crate::error::{Error, Result};
use crate::params::{GROUP, Params};
use crate::prf::Prf;
use crate::wide::{Sum, Work, dispatch};

/// Bytes of the buffer that still count as resident in a core's own cache.
const RESIDENT: usize = 3 << 19;

/// Makes parities from a stream of the database.
pub struct Parities<'a> {
    prf: &'a Prf,
    params: &'a Params,
    threads: usize,
    hints: Hints,
    /// Regular hints in the order of their extras' blocks, and where each block's begin.
    by_extra: Vec<u32>,
    extras_start: Vec<u32>,
    buffer: Buffer,
    side_by_side: usize,
    /// Bytes of the database that have come, in the buffer and in all.
    filled: usize,
    seen: u64,
}

impl<'a> Parities<'a> {
    /// Parities for a skeleton.
    pub fn new(prf: &'a Prf, params: &'a Params, skeleton: Skeleton, threads: usize) -> Parities<'a> {
        let side_by_side = side_by_side(params);
        let size = params.entry_size();
        let (by_extra, extras_start) = sorted_by_block(&skeleton, params.blocks());
        let hints = Hints {
            parities: vec![0; skeleton.regular_len() * size],
            low: vec![0; skeleton.backups_len() * size],
            high: vec![0; skeleton.backups_len() * size],
            skeleton,
        };
        let buffer = Buffer::new(side_by_side * params.block_size() as usize, size);
        let threads = threads.max(1);
        Parities {
            prf,
            params,
            threads,
            hints,
            by_extra,
            extras_start,
            buffer,
            side_by_side,
            filled: 0,
            seen: 0,
        }
    }

    /// Takes the next bytes of the database.
    ///
    /// # Errors
    ///
    /// When they are more than the database has.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        let whole = self.params.entries() * self.params.entry_size() as u64;
        if bytes.len() as u64 > whole - self.seen {
            return Err(Error::format(
                "the stream of the database",
                format!("it is longer than {whole} bytes"),
            ));
        }
        let capacity = self.side_by_side * self.params.block_bytes();
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(capacity - self.filled));
            self.buffer.write(self.filled, now);
            self.filled += now.len();
            self.seen += now.len() as u64;
            if self.filled == capacity {
                self.absorb();
            }
            bytes = later;
        }
        Ok(())
    }

    /// The hints, once all of the database has come.
    ///
    /// # Errors
    ///
    /// When bytes are missing.
    pub fn finish(mut self) -> Result<Hints> {
        let whole = self.params.entries() * self.params.entry_size() as u64;
        if self.seen != whole {
            let reason = format!("it ended after {} of {whole} bytes", self.seen);
            return Err(Error::format("the stream of the database", reason));
        }
        // The entries that fill the last blocks are zeros. They add nothing, so blocks of them alone need no work.
        if self.filled > 0 {
            self.buffer.clear_from(self.filled);
            self.absorb();
        }
        self.hints.clear_invalid(self.params.entry_size());
        Ok(self.hints)
    }

    /// Adds what the buffer holds to all parities.
    fn absorb(&mut self) {
        let size = self.params.entry_size();
        let block_bytes = self.params.block_bytes() as u64;
        let first_block = ((self.seen - self.filled as u64) / block_bytes) as u32;
        self.filled = 0;
        let Skeleton { regular, backups, cutoffs, extras } = &self.hints.skeleton;
        let (of_regular, of_backups) = cutoffs.split_at(extras.len());
        let share = |hints: usize| hints.div_ceil(self.threads).next_multiple_of(GROUP as usize).max(16);
        let (regular_share, backup_share) = (share(of_regular.len()), share(of_backups.len()));
        let regular_shares = of_regular
            .chunks(regular_share)
            .zip(self.hints.parities.chunks_mut(regular_share * size))
            .zip((regular.start..).step_by(regular_share))
            .map(|((cutoffs, low), id)| Share { first: id / GROUP, cutoffs, low, high: None });
        let backup_shares = of_backups
            .chunks(backup_share)
            .zip(self.hints.low.chunks_mut(backup_share * size))
            .zip(self.hints.high.chunks_mut(backup_share * size))
            .zip((backups.start..).step_by(backup_share))
            .map(|(((cutoffs, low), high), id)| Share { first: id / GROUP, cutoffs, low, high: Some(high) });
        let (mut regular_shares, mut backup_shares) = (regular_shares.fuse(), backup_shares.fuse());
        let blocks = Blocks {
            prf: self.prf,
            buffer: &self.buffer,
            block_size: self.params.block_size(),
            first: first_block,
        };
        let side_by_side = self.side_by_side;
        std::thread::scope(|scope| {
            let mut own = [regular_shares.next(), backup_shares.next()];
            loop {
                let mut shares = [regular_shares.next(), backup_shares.next()];
                if shares.iter().all(Option::is_none) {
                    break;
                }
                scope.spawn(move || blocks.absorb(side_by_side, &mut shares));
            }
            blocks.absorb(side_by_side, &mut own);
        });
        self.add_extras(first_block);
    }

    /// Adds the extras that lie in the buffer.
    fn add_extras(&mut self, first_block: u32) {
        let size = self.params.entry_size();
        let last = (first_block + self.side_by_side as u32).min(self.params.blocks());
        for block in first_block..last {
            let (start, end) = (self.extras_start[block as usize], self.extras_start[block as usize + 1]);
            for &hint in &self.by_extra[start as usize..end as usize] {
                let offset = self.hints.skeleton.extras[hint as usize].offset;
                let entry = (block - first_block) * self.params.block_size() + offset;
                let parity = &mut self.hints.parities[hint as usize * size..][..size];
                for (sum, byte) in parity.iter_mut().zip(self.buffer.entry(entry as usize)) {
                    *sum ^= byte;
                }
            }
        }
    }
}

/// Blocks that are worked on together.
fn side_by_side(params: &Params) -> usize {
    let block = params.block_size() as usize * stride_of(params.entry_size());
    // Blocks too large for any cache: the more side by side, the less the parities themselves travel.
    let fitting = [16, 8, 4].into_iter().find(|b| b * block <= RESIDENT);
    fitting.unwrap_or(if 16 * block <= 64 << 20 { 16 } else { 4 })
}

/// Bytes that [`Parities`] holds beside the hints.
pub(super) fn working_bytes(params: &Params, regular: u64) -> u64 {
    let entries = side_by_side(params) as u64 * u64::from(params.block_size()) + 1;
    let buffer = entries * stride_of(params.entry_size()) as u64 + 63;
    // The order of the extras, and where each block's begin (while they are sorted, twice).
    4 * regular + 8 * (u64::from(params.blocks()) + 1) + buffer
}

/// Bytes from one entry to the next in the buffer: never across the lines of a cache more often than needed.
fn stride_of(size: usize) -> usize {
    if size <= 64 { size.next_power_of_two() } else { size.next_multiple_of(64) }
}

/// Some blocks and a zero entry after them, entries at a stride that suits the cache.
struct Buffer {
    bytes: Vec<u8>,
    /// Where the first line begins.
    start: usize,
    entries: usize,
    stride: usize,
    size: usize,
}

impl Buffer {
    fn new(entries: usize, size: usize) -> Buffer {
        let stride = stride_of(size);
        let bytes = vec![0; (entries + 1) * stride + 63];
        let start = bytes.as_ptr().align_offset(64).min(63);
        Buffer { bytes, start, entries, stride, size }
    }

    /// Writes bytes of the entries, which stand without gaps outside, from byte `at` on.
    fn write(&mut self, mut at: usize, mut bytes: &[u8]) {
        debug_assert!(at + bytes.len() <= self.entries * self.size);
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.size - at % self.size));
            let to = self.start + at / self.size * self.stride + at % self.size;
            self.bytes[to..to + now.len()].copy_from_slice(now);
            at += now.len();
            bytes = later;
        }
    }

    /// Clears all from a byte on.
    fn clear_from(&mut self, at: usize) {
        self.bytes[self.start + at / self.size * self.stride + at % self.size..].fill(0);
    }

    fn entry(&self, number: usize) -> &[u8] {
        &self.bytes[self.start + number * self.stride..][..self.size]
    }

    /// The first entry; all of them, and the zero entry with the number `entries`, can be read from there.
    fn first(&self) -> *const u8 {
        self.bytes[self.start..][..(self.entries + 1) * self.stride].as_ptr()
    }
}

/// Regular hints sorted by the blocks of their extras (a counting sort), and where each block's begin.
fn sorted_by_block(skeleton: &Skeleton, blocks: u32) -> (Vec<u32>, Vec<u32>) {
    let mut start = vec![0u32; blocks as usize + 1];
    for extra in &skeleton.extras {
        start[extra.block as usize + 1] += 1;
    }
    for block in 0..blocks as usize {
        start[block + 1] += start[block];
    }
    let mut next = start.clone();
    let mut sorted = vec![0; skeleton.extras.len()];
    for (hint, extra) in skeleton.extras.iter().enumerate() {
        let place = &mut next[extra.block as usize];
        sorted[*place as usize] = hint as u32;
        *place += 1;
    }
    (sorted, start)
}

/// Consecutive hints, whole groups: one thread's.
struct Share<'a> {
    first: u64,
    cutoffs: &'a [u32],
    low: &'a mut [u8],
    /// The upper halves of pairs; a regular hint has none.
    high: Option<&'a mut [u8]>,
}

/// The blocks in the buffer.
#[derive(Clone, Copy)]
struct Blocks<'a> {
    prf: &'a Prf,
    buffer: &'a Buffer,
    block_size: u32,
    first: u32,
}

impl Blocks<'_> {
    fn absorb(self, side_by_side: usize, shares: &mut [Option<Share<'_>>]) {
        for share in shares.iter_mut().flatten() {
            let lanes = self.prf.lanes();
            match side_by_side {
                16 => dispatch(lanes, Absorb::<16> { blocks: self, share }),
                8 => dispatch(lanes, Absorb::<8> { blocks: self, share }),
                _ => dispatch(lanes, Absorb::<4> { blocks: self, share }),
            }
        }
    }
}

/// One thread's work on `B` blocks.
struct Absorb<'a, 'b, const B: usize> {
    blocks: Blocks<'a>,
    share: &'a mut Share<'b>,
}

impl<const B: usize> Work for Absorb<'_, '_, B> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Sum>(self) {
        let Absorb { blocks: Blocks { prf, buffer, block_size, first }, share } = self;
        // The entry after the last block, which is zero.
        let zero = B as u32 * block_size;
        assert_eq!(buffer.entries, zero as usize);
        let (entries, stride, size) = (buffer.first(), buffer.stride, buffer.size);
        assert!(share.cutoffs.len().is_multiple_of(16) && share.low.len() == share.cutoffs.len() * size);
        let (side, mask) = (16 / B, prf.offset_mask());
        let (mut blocks, mut start) = ([0; 16], [0; 16]);
        for lane in 0..16 {
            blocks[lane] = first + (lane % B) as u32;
            start[lane] = (lane % B) as u32 * block_size;
        }
        for (step, cutoffs) in share.cutoffs.chunks(16 * side).enumerate() {
            let mut groups = [0; 16];
            for lane in 0..16 {
                groups[lane] = share.first + (step * side + lane / B) as u64;
            }
            let draw = prf.draw(&groups, &blocks);
            let (choices, offsets) = (draw.choices(), draw.offsets());
            // Numbers of entries for either half, zero's where the block belongs to the other.
            let (mut low, mut high) = ([[zero; 16]; 16], [[zero; 16]; 16]);
            let mut ties = false;
            for (g, cutoffs) in cutoffs.chunks_exact(16).enumerate() {
                for i in 0..16 {
                    let cutoff = cutoffs[i] >> 16;
                    for lane in g * B..(g + 1) * B {
                        let entry = start[lane] + (offsets[i][lane] & mask);
                        let choice = choices[i][lane] >> 16;
                        low[i][lane] = if choice < cutoff { entry } else { zero };
                        high[i][lane] = if choice < cutoff { zero } else { entry };
                        ties |= choice == cutoff;
                    }
                }
            }
            if ties {
                settle_ties::<B>(prf, cutoffs, &groups, &blocks, choices, &mut low, &mut high, zero);
            }
            for hint in 0..cutoffs.len() {
                let (g, i) = (hint / 16, hint % 16);
                let at = (step * side * 16 + hint) * size;
                // SAFETY: `at` is the place of one of the share's hints, whose parities have `size` bytes each; the
                // numbers lie below block_size * B, as offsets lie below block_size, or are `zero`, the last entry.
                unsafe {
                    S::add(
                        share.low[at..][..size].as_mut_ptr(),
                        entries,
                        &low[i][g * B..(g + 1) * B],
                        stride,
                        size,
                    );
                    if let Some(parities) = &mut share.high {
                        let numbers = &high[i][g * B..(g + 1) * B];
                        S::add(parities[at..][..size].as_mut_ptr(), entries, numbers, stride, size);
                    }
                }
            }
        }
    }
}

/// Moves the entries whose order's upper half equals the cutoff's to the half they belong to.
#[cold]
#[inline(never)]
#[expect(clippy::too_many_arguments, reason = "the inner loop's variables, out of its way")]
fn settle_ties<const B: usize>(
    prf: &Prf,
    cutoffs: &[u32],
    groups: &[u64; 16],
    blocks: &[u32; 16],
    choices: &[[u32; 16]; 16],
    low: &mut [[u32; 16]; 16],
    high: &mut [[u32; 16]; 16],
    zero: u32,
) {
    for (g, cutoffs) in cutoffs.chunks_exact(16).enumerate() {
        for (i, &cutoff) in cutoffs.iter().enumerate() {
            for lane in g * B..(g + 1) * B {
                if choices[i][lane] >> 16 != cutoff >> 16 {
                    continue;
                }
                let id = groups[lane] * GROUP + i as u64;
                if prf.low_order(id, blocks[lane]) < cutoff & 0xffff {
                    low[i][lane] = std::mem::replace(&mut high[i][lane], zero);
                }
            }
        }
    }
}
