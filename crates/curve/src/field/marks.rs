//! Marks: how a table of 32-bit entries remembers words.
//!
//! The leading bits of a word choose an entry, the ten bits after those a *mark*: one bit in each byte of the entry. An
//! entry keeps the bits that no mark set in it has, so a word whose mark meets none of them passes, in one test for all
//! four. The bit in a byte depends on six of the ten bits, at an offset of its own: a byte permutation finds all four at
//! once. Words side by side mostly share bits, which keeps cheap what reaches over the border of two marks.

/// Bits of a word after those that choose the entry, which choose its mark.
pub(crate) const WITHIN: u32 = 10;

/// For each byte of an entry, from where on, counted from the lowest of the ten, six bits choose the bit of it.
pub(crate) const FIELDS: [u32; 4] = [4, 3, 1, 0];

/// The bit chosen by six bits. Among 2^20 words with eight bits of table each 6.3 % of all words pass; the best of some
/// thousand other choices saves a fiftieth of that.
pub(crate) const BITS: [u8; 64] = {
    let mut bits = [0; 64];
    let mut six = 0;
    while six < 64 {
        bits[six] = 1 << ((six * 21 % 64 / 8) ^ (six % 8));
        six += 1;
    }
    bits
};

/// The mark for each value of the ten bits.
static MARKS: [u32; 1 << WITHIN] = {
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

/// An entry without marks.
pub(crate) const EMPTY: u32 = u32::MAX;

/// The mark chosen by the low ten bits.
#[inline(always)]
pub(crate) fn mark(ten: u32) -> u32 {
    MARKS[(ten & ((1 << WITHIN) - 1)) as usize]
}

/// Whether an entry lets a mark pass.
#[inline(always)]
pub(crate) fn holds(entry: u32, mark: u32) -> bool {
    entry & mark == 0
}

/// A table of 2^log2 entries, 1 to 22: each the first of some words.
#[derive(Clone, Copy)]
pub(crate) struct Marked {
    /// Where it begins.
    pub table: *const u32,
    /// Its size.
    pub log2: u32,
}

impl Marked {
    /// Whether its entry lets a word pass.
    ///
    /// # Safety
    /// The table must have all its entries, each of `STRIDE` words.
    #[inline(always)]
    pub unsafe fn holds<const STRIDE: usize>(self, word: u32) -> bool {
        // SAFETY: the caller's.
        let entry = unsafe { *self.table.add((word >> (32 - self.log2)) as usize * STRIDE) };
        holds(entry, mark(word >> (32 - WITHIN - self.log2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fe;
    use crate::field::leading::Leading;

    fn random(state: &mut u64) -> u32 {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 32) as u32
    }

    #[test]
    fn a_mark_has_one_bit_in_each_byte_and_few_share_it() {
        let mut marks: Vec<u32> = (0..1 << WITHIN).map(mark).collect();
        for mark in &marks {
            assert!(mark.to_le_bytes().iter().all(|byte| byte.count_ones() == 1), "{mark:x}");
        }
        marks.sort_unstable();
        marks.dedup();
        assert!(marks.len() > 900, "only {} marks of 1024", marks.len());
    }

    /// What passes, by the definition: all four bits of the mark were set.
    fn expected(table: &[u32], stride: usize, log2: u32, word: u32) -> bool {
        let (entry, ten) = (word >> (32 - log2), word >> (22 - log2) & 1023);
        let byte = |i: usize| 1u32 << (8 * i) << BITS[(ten >> FIELDS[i] & 63) as usize].trailing_zeros();
        (0..4).all(|i| table[entry as usize * stride] & byte(i) == 0)
    }

    /// Words next to each other and far apart ask tables of every size, all of them, some and none.
    #[inline(always)]
    unsafe fn ask<L: Leading, const STRIDE: usize>() {
        let mut state = 3;
        for log2 in 1..=22 {
            let mut table = vec![EMPTY; STRIDE << log2];
            for entry in &mut table {
                // Most entries get some marks, and some all.
                for _ in 0..random(&mut state) % 8 {
                    *entry &= !mark(random(&mut state));
                }
                if random(&mut state).is_multiple_of(16) {
                    *entry = 0;
                }
            }
            for round in 0..64 {
                let mut words = [0; 16];
                for (i, word) in words.iter_mut().enumerate() {
                    *word = match round % 4 {
                        0 => u32::MAX.wrapping_add(i as u32),
                        1 => random(&mut state) & !15 | i as u32,
                        _ => random(&mut state),
                    };
                }
                let asking = if round % 3 == 0 { u32::MAX } else { random(&mut state) };
                let mut want = 0;
                for i in (0..2 * L::N).filter(|i| asking >> i & 1 == 1) {
                    want |= u32::from(expected(&table, STRIDE, log2, words[i])) << i;
                }
                // SAFETY: the caller's; the table has all entries.
                let got = unsafe {
                    let words = L::word_load(words.as_ptr());
                    L::word_ask::<STRIDE>(words, table.as_ptr(), &L::asker(log2), asking)
                };
                assert_eq!(got, want, "2^{log2} entries of {STRIDE}, {words:x?}");
            }
        }
        for _ in 0..1000 {
            let mask = u64::from(random(&mut state)) << 32 | u64::from(random(&mut state));
            let bits: Vec<u32> = (0..64).filter(|i| mask >> i & 1 == 1).collect();
            for (n, &bit) in bits.iter().enumerate() {
                // SAFETY: the caller's.
                assert_eq!(unsafe { L::set_bit(mask, n as u32) }, bit, "bit {n} of {mask:x}");
            }
        }
    }

    #[test]
    fn portable_words_ask_as_defined() {
        // SAFETY: the portable lane needs no instruction set.
        unsafe {
            ask::<Fe, 1>();
            ask::<Fe, 2>();
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn ifma_words_ask_as_defined() {
        #[target_feature(
            enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,avx512vpopcntdq,bmi2"
        )]
        unsafe fn both() {
            // SAFETY: the caller checked the instruction set.
            unsafe {
                ask::<crate::field::ifma::Fe8, 1>();
                ask::<crate::field::ifma::Fe8, 2>();
            }
        }
        if !crate::platform::Simd::Avx512Ifma.is_available() {
            eprintln!("SKIPPED: this machine has no AVX-512 IFMA");
            return;
        }
        // SAFETY: just checked.
        unsafe { both() }
    }
}
