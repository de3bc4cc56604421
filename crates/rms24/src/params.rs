//! The shape of a database and of a client's hints, and every figure that follows from it.
//!
//! Notation as in the paper (Ren, Mughees, Sun, "Simple and Practical Amortized Sublinear PIR using Dummy Subsets", CCS
//! 2024, ePrint 2023/1072): n entries stand in c blocks of w; lambda multiplies the block size to the number of hints.

use crate::error::{Error, Result};

/// The sizes an entry may have, in bytes.
pub const ENTRY_SIZES: std::ops::RangeInclusive<u32> = 8..=4096;

/// Hint ids come in groups of this many: the words of one call of the PRF.
pub const GROUP: u64 = 16;

/// The largest block whose choices and offsets share a word of the PRF.
pub const PACKED_BLOCK: u32 = 1 << 16;

/// What a person chooses; the rest follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Entries.
    pub entries: u64,
    /// Bytes an entry.
    pub entry_size: u32,
    /// Hints for each offset of a block. The chance that a query finds none is below e^(-lambda/2).
    pub lambda: u32,
    /// Entries a block; without it the power of two next to the square root of n, at most 65,536.
    pub block_size: Option<u32>,
    /// Backup pairs, which are the queries until the next offline phase; without it half the regular hints.
    pub backups: Option<u64>,
}

impl Choice {
    /// The usual choice for such a database: lambda 80.
    pub fn new(entries: u64, entry_size: u32) -> Choice {
        Choice { entries, entry_size, lambda: 80, block_size: None, backups: None }
    }
}

/// The shape of a database and of a client's hints. It is public: server and client agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    entries: u64,
    entry_size: u32,
    lambda: u32,
    block_size: u32,
    blocks: u32,
    regular: u64,
    backups: u64,
}

impl Params {
    /// The parameters that follow from a choice.
    ///
    /// # Errors
    ///
    /// When a number is out of range; the message says which and what is possible.
    pub fn new(choice: Choice) -> Result<Params> {
        let Choice { entries, entry_size, lambda, .. } = choice;
        if entries == 0 {
            return Err(Error::params("a database needs at least one entry"));
        }
        if !ENTRY_SIZES.contains(&entry_size) {
            return Err(Error::params(format!("an entry has 8 to 4096 bytes, not {entry_size}")));
        }
        if !(1..=1 << 20).contains(&lambda) {
            return Err(Error::params(format!("lambda is 1 to 1048576, not {lambda}")));
        }
        let block_size = choice.block_size.unwrap_or_else(|| usual_block_size(entries));
        if !(1..=1 << 28).contains(&block_size) {
            return Err(Error::params(format!("a block has 1 to 268435456 entries, not {block_size}")));
        }
        // Even, so that half of the blocks can be chosen; at least two follow from that.
        let blocks = entries.div_ceil(block_size.into()).next_multiple_of(2);
        let blocks = u32::try_from(blocks).ok().filter(|&c| c <= 1 << 30).ok_or_else(|| {
            Error::params(format!(
                "{entries} entries make too many blocks of {block_size}; choose larger blocks"
            ))
        })?;
        // Whole groups, so that a call of the PRF serves regular hints or backups and never both.
        let regular = (u64::from(lambda) * u64::from(block_size)).next_multiple_of(GROUP);
        if regular > 1 << 32 {
            return Err(Error::params(format!(
                "{regular} hints are more than 2^32; choose a smaller lambda or block"
            )));
        }
        let backups = match choice.backups {
            None => (regular / 2).next_multiple_of(GROUP),
            Some(q) if q <= 1 << 40 => q.next_multiple_of(GROUP),
            Some(q) => return Err(Error::params(format!("{q} backup pairs are more than 2^40"))),
        };
        Ok(Params { entries, entry_size, lambda, block_size, blocks, regular, backups })
    }

    /// Entries, n, without those that only fill the last block or blocks.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Bytes an entry, E.
    pub fn entry_size(&self) -> usize {
        self.entry_size as usize
    }

    /// Hints for each offset.
    pub fn lambda(&self) -> u32 {
        self.lambda
    }

    /// Entries a block, w.
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Blocks, c: even. The entries from n on are zeros, and as real as the others.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Regular hints, M: lambda * w, rounded up to whole groups.
    pub fn regular(&self) -> u64 {
        self.regular
    }

    /// Backup pairs, Q: queries until the next offline phase.
    pub fn backups(&self) -> u64 {
        self.backups
    }

    /// The same shape with another number of backup pairs.
    ///
    /// # Errors
    ///
    /// As for [`Params::new`].
    pub fn with_backups(&self, backups: u64) -> Result<Params> {
        Params::new(Choice { backups: Some(backups), ..self.choice() })
    }

    /// A choice these parameters follow from.
    pub fn choice(&self) -> Choice {
        Choice {
            entries: self.entries,
            entry_size: self.entry_size,
            lambda: self.lambda,
            block_size: Some(self.block_size),
            backups: Some(self.backups),
        }
    }

    /// Whether a choice and an offset share a word of the PRF.
    pub fn is_packed(&self) -> bool {
        self.block_size.is_power_of_two() && self.block_size <= PACKED_BLOCK
    }

    /// Bits of an offset in a query.
    pub fn offset_bits(&self) -> u32 {
        self.block_size.next_power_of_two().trailing_zeros()
    }

    /// Bytes a block.
    pub fn block_bytes(&self) -> usize {
        self.block_size as usize * self.entry_size()
    }

    /// The block and the offset of an entry.
    ///
    /// # Errors
    ///
    /// When there is no such entry.
    pub fn place(&self, index: u64) -> Result<Place> {
        if index >= self.entries {
            return Err(Error::Index { index, entries: self.entries });
        }
        let w = u64::from(self.block_size);
        Ok(Place { block: (index / w) as u32, offset: (index % w) as u32 })
    }

    /// Bytes of one query: a bit a block and an offset for every second one, all lengths fixed by the parameters.
    pub fn query_bytes(&self) -> usize {
        self.mask_bytes() + self.offsets_bytes()
    }

    /// Bytes of a query's bits.
    pub fn mask_bytes(&self) -> usize {
        (self.blocks as usize).div_ceil(8)
    }

    /// Bytes of a query's offsets.
    pub fn offsets_bytes(&self) -> usize {
        (self.blocks as usize / 2 * self.offset_bits() as usize).div_ceil(8)
    }

    /// Bytes of one answer: two parities.
    pub fn answer_bytes(&self) -> usize {
        2 * self.entry_size()
    }

    /// Bytes of a client's hints: tag, cutoff, extra and parity of a slot; cutoff and two parities of a pair.
    pub fn storage_bytes(&self) -> u64 {
        let e = u64::from(self.entry_size);
        self.regular * (20 + e) + self.backups * (12 + 2 * e)
    }

    /// Refuses hints that take more memory than a machine has.
    ///
    /// # Errors
    ///
    /// When they do; the error says for what shape, how much it is and how much there is.
    pub fn check_memory(&self, needed: u64, machine: u64) -> Result<()> {
        if needed <= machine {
            return Ok(());
        }
        let what = format!(
            "a client of {} entries of {} bytes in {} blocks, with {} hints and {} backup pairs,",
            self.entries, self.entry_size, self.blocks, self.regular, self.backups
        );
        let advice =
            "choose fewer queries or a smaller lambda, if that is what was claimed by a server you trust";
        Err(Error::Memory { what, needed, machine, advice })
    }

    /// (hint, block) pairs of one offline phase.
    pub fn pairs(&self) -> u64 {
        (self.regular + self.backups) * u64::from(self.blocks)
    }

    /// Entries read in one offline phase: half the blocks of a regular hint, and its extra; all blocks of a pair.
    pub fn gathers(&self) -> u64 {
        let c = u64::from(self.blocks);
        self.regular * (c / 2 + 1) + self.backups * c
    }

    /// The binary logarithm of the chance that a query finds no hint: (1 - q)^M, where a hint holds an entry with
    /// q = (c/2 + 1) / (c w).
    pub fn log2_miss(&self) -> f64 {
        let c = f64::from(self.blocks);
        let q = (c / 2.0 + 1.0) / (c * f64::from(self.block_size));
        // Blocks of one entry and two of them: every hint holds every entry.
        if q >= 1.0 { f64::NEG_INFINITY } else { self.regular as f64 * (-q).ln_1p() / std::f64::consts::LN_2 }
    }
}

/// The power of two w with n/2 <= w^2 < 2n, at most 65,536.
fn usual_block_size(entries: u64) -> u32 {
    let mut w: u32 = 1;
    while w < PACKED_BLOCK && u64::from(w) * u64::from(w) < entries.div_ceil(2) {
        w *= 2;
    }
    w
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its block.
    pub block: u32,
    /// Its place in the block.
    pub offset: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_geometry() {
        let p = Params::new(Choice { block_size: Some(42_826), ..Choice::new(1_834_095_877, 40) }).unwrap();
        assert_eq!((p.blocks(), p.regular(), p.backups()), (42_828, 3_426_080, 1_713_040));
        assert!(!p.is_packed());
        assert_eq!(p.offset_bits(), 16);
        // 147 G gathers and -57.7 bits, as counted by hand from the paper.
        assert!((146e9..148e9).contains(&(p.gathers() as f64)));
        assert!((-57.8..-57.6).contains(&p.log2_miss()), "{}", p.log2_miss());
        let usual = Params::new(Choice::new(1_834_095_877, 40)).unwrap();
        assert_eq!((usual.block_size(), usual.blocks()), (32_768, 55_974));
    }

    #[test]
    fn a_query_at_two_to_the_24() {
        let p = Params::new(Choice::new(1 << 24, 40)).unwrap();
        assert_eq!((p.block_size(), p.blocks()), (4096, 4096));
        assert_eq!(p.query_bytes(), 512 + 2048 * 12 / 8);
        assert_eq!(p.answer_bytes(), 80);
    }

    #[test]
    fn blocks_are_even_and_hold_all_entries() {
        for entries in (1..300).chain([1023, 1024, 1025, 65_535, 65_537, 1 << 32, (1 << 32) + 1]) {
            for block_size in [None, Some(1), Some(3), Some(64)] {
                let choice = Choice { block_size, lambda: 3, ..Choice::new(entries, 8) };
                let Ok(p) = Params::new(choice) else {
                    assert!(entries > 1 << 30, "{choice:?}");
                    continue;
                };
                let (c, w) = (u64::from(p.blocks()), u64::from(p.block_size()));
                assert!(c % 2 == 0 && c >= 2 && c * w >= entries, "{p:?}");
                assert!((c - 2) * w < entries, "more than one block too many: {p:?}");
                assert_eq!((p.regular() % GROUP, p.backups() % GROUP), (0, 0));
                assert!(p.regular() >= 3 * w && p.regular() < 3 * w + GROUP);
                let last = p.place(entries - 1).unwrap();
                assert_eq!(u64::from(last.block) * w + u64::from(last.offset), entries - 1);
                assert!(p.place(entries).is_err());
                assert_eq!(Params::new(p.choice()).unwrap(), p);
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let good = Choice::new(100, 40);
        assert!(Params::new(good).is_ok());
        for bad in [
            Choice { entries: 0, ..good },
            Choice { entry_size: 7, ..good },
            Choice { entry_size: 4097, ..good },
            Choice { lambda: 0, ..good },
            Choice { block_size: Some(0), ..good },
            Choice { block_size: Some(1), entries: 1 << 40, ..good },
            Choice { backups: Some(u64::MAX), ..good },
        ] {
            assert!(Params::new(bad).is_err(), "{bad:?}");
        }
    }
}
