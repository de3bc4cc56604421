//! Blocked Bloom filters: how a table remembers words.
//!
//! The leading bits of a word choose an entry of 32 bits, the block, and ten bits of it a *mark*: one bit in each byte of the entry.
//! An entry keeps the bits that no mark set in it has, so a word whose mark meets none of them passes, in one test for all
//! four. The bit in a byte depends on six of the ten bits, at an offset of its own: a byte permutation finds all four at
//! once. Words side by side mostly share bits, which keeps cheap what reaches over the border of two marks.
//!
//! Entries lie some bytes apart, the *stride*. With a stride of one byte they overlap: each byte belongs to four entries,
//! and the marks spread more evenly than over entries of their own, some of which have many marks and let most words pass.
//! Some of them lie across two cache lines, which takes a little time.

/// Bits of a word that choose a mark.
pub(crate) const WITHIN: u32 = 10;

/// How many of these come after the bits that choose the entry. Where entries overlap, eight: the first two of the ten
/// are the last two of the others, so that as many bits of a word matter to as many bytes of table.
pub(crate) const fn after(stride: usize) -> u32 {
    if stride == 1 { WITHIN - 2 } else { WITHIN }
}

/// For each byte of an entry, from where on, counted from the lowest of the ten, six bits choose the bit of it.
pub(crate) const FIELDS: [u32; 4] = [0, 3, 4, 2];

/// The bit chosen by six bits. Among 2^20 words with eight bits of table each 4.9 % of all words pass where entries
/// overlap, and 6.4 % where they do not: the best of some hundred choices for the first, and a fiftieth off the best for
/// the second.
pub(crate) const BITS: [u8; 64] = {
    let mut bits = [0; 64];
    let mut six = 0;
    while six < 64 {
        bits[six] = 1 << ((six * 17 % 64 / 8) ^ (six % 8));
        six += 1;
    }
    bits
};

/// The mark for each value of the ten bits.
pub(crate) static MARKS: [u32; 1 << WITHIN] = {
    let mut marks = [0; 1 << WITHIN];
    let mut ten = 0;
    while ten < 1 << WITHIN {
        let mut byte = 0;
        while byte < 4 {
            marks[ten] |= (BITS[ten >> FIELDS[byte] & 63] as u32) << (8 * byte);
            byte += 1;
        }
        ten += 1;
    }
    marks
};

/// A byte of an entry without marks.
pub(crate) const EMPTY: u8 = u8::MAX;

/// The mark chosen by the low ten bits.
#[inline(always)]
pub(crate) fn mark(ten: u32) -> u32 {
    MARKS[(ten & ((1 << WITHIN) - 1)) as usize]
}

/// Sets a mark in an entry.
#[inline(always)]
pub(crate) fn set(entry: &mut [u8; 4], ten: u32) {
    *entry = (u32::from_le_bytes(*entry) & !mark(ten)).to_le_bytes();
}

/// Whether an entry lets the mark of ten bits pass.
#[inline(always)]
pub(crate) fn holds(entry: [u8; 4], ten: u32) -> bool {
    u32::from_le_bytes(entry) & mark(ten) == 0
}

/// A table of 2^log2 entries, `STRIDE` bytes apart.
#[derive(Clone, Copy)]
pub(crate) struct Marked<const STRIDE: usize> {
    /// Where it begins.
    pub table: *const u8,
    /// Its size: 2 to 24 where entries overlap, 1 to 22 elsewhere.
    pub log2: u32,
}

impl<const STRIDE: usize> Marked<STRIDE> {
    /// Whether its entry lets a word pass.
    ///
    /// # Safety
    /// The table must have all its entries.
    #[inline(always)]
    pub unsafe fn holds(self, word: u32) -> bool {
        // SAFETY: the caller's; an entry of bytes needs no alignment.
        let entry =
            unsafe { *self.table.add((word >> (32 - self.log2)) as usize * STRIDE).cast::<[u8; 4]>() };
        holds(entry, word >> (32 - after(STRIDE) - self.log2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::dispatch::{Job, test_all};
    use crate::field::leading::Leading;
    use crate::random::random;

    #[test]
    fn a_mark_has_one_bit_in_each_byte_and_few_share_it() {
        let mut marks: Vec<u32> = (0..1 << WITHIN).map(mark).collect();
        for mark in &marks {
            assert!(mark.to_le_bytes().iter().all(|byte| byte.count_ones() == 1), "{mark:x}");
        }
        marks.sort_unstable();
        marks.dedup();
        assert!(marks.len() > 850, "only {} marks of 1024", marks.len());
    }

    /// What passes, by the definition: all four bits of the mark were set.
    fn expected(table: &[u8], stride: usize, log2: u32, word: u32) -> bool {
        let lowest = if stride == 1 { 24 - log2 } else { 22 - log2 };
        let (entry, ten) = ((word >> (32 - log2)) as usize, word >> lowest & 1023);
        (0..4).all(|i| table[entry * stride + i] & BITS[(ten >> FIELDS[i] & 63) as usize] == 0)
    }

    /// Words next to each other and far apart ask tables of every size, all of them, some and none.
    #[inline(always)]
    unsafe fn ask<L: Leading, const STRIDE: usize>() {
        let mut state = 3;
        for log2 in if STRIDE == 1 { 2..=24 } else { 1..=22 } {
            let mut table = vec![EMPTY; (STRIDE << log2) + 3];
            for at in 0..1 << log2 {
                let entry = &mut table[at * STRIDE..][..4];
                let entry = <&mut [u8; 4]>::try_from(entry).expect("four bytes");
                // Most entries get some marks, and some all.
                for _ in 0..random(&mut state) as usize % if STRIDE == 1 { 3 } else { 8 } {
                    set(entry, random(&mut state) as u32);
                }
                if random(&mut state).is_multiple_of(32) {
                    *entry = [0; 4];
                }
            }
            for round in 0..64 {
                let mut words = [0; 16];
                for (i, word) in words.iter_mut().enumerate() {
                    *word = match round % 4 {
                        0 => u32::MAX.wrapping_add(i as u32),
                        1 => random(&mut state) as u32 & !15 | i as u32,
                        _ => random(&mut state) as u32,
                    };
                }
                let asking = if round % 3 == 0 { u32::MAX } else { random(&mut state) as u32 };
                let mut want = 0;
                for i in (0..2 * L::N).filter(|i| asking >> i & 1 == 1) {
                    want |= u32::from(expected(&table, STRIDE, log2, words[i])) << i;
                }
                // SAFETY: the caller's; the table has all entries.
                let got = unsafe {
                    let words = L::word_load(words.as_ptr());
                    L::word_ask::<STRIDE>(words, table.as_ptr(), &L::asker::<STRIDE>(log2), asking)
                };
                assert_eq!(got, want, "2^{log2} entries, {STRIDE} bytes apart, {words:x?}");
            }
        }
    }

    struct Ask;

    impl Job for Ask {
        type Output = ();

        #[inline(always)]
        unsafe fn run<L: Leading>(self) {
            // SAFETY: the caller's.
            unsafe {
                ask::<L, 1>();
                ask::<L, 4>();
                ask::<L, 8>();
            }
        }
    }

    #[test]
    fn words_ask_as_defined() {
        test_all(|| Ask);
    }
}
