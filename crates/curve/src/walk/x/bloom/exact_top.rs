//! The top 64 bits of single keys, some at a time, and the third table's word on them.

use crate::Fe;
use crate::field::leading::Leading;
use crate::walk::visit::Tops;
use crate::walk::x::bits::Bits;
use crate::walk::x::sums::top;

/// Keys that are asked about at once.
pub(super) const TOGETHER: usize = 8;

/// Lanes of which single keys can ask the third table.
pub(crate) trait ExactTop: Leading {
    /// Which of the first `count` of some keys, at most [`TOGETHER`], the third table lets pass: bit i for key i.
    ///
    /// A key's number is 2N for each sum before its own and then its place; `slots` says of which entry it is.
    ///
    /// # Safety
    /// As for all of [`Leading`]; `slots` are below the number of entries in `tops`, and keys are 16 to a sum or fewer.
    #[inline(always)]
    unsafe fn near(
        keys: &[u8; TOGETHER],
        slots: &[u8; TOGETHER],
        count: usize,
        tops: &[Tops<Self>],
        bits: &Bits,
    ) -> u32 {
        let mut passed = 0;
        for i in 0..count.min(TOGETHER) {
            let (key, slot) = (keys[i] as usize, slots[i] as usize);
            let top = top::<Self>(key / (2 * Self::N), key % (2 * Self::N), &tops[slot]);
            passed |= u32::from(bits.near(top)) << i;
        }
        passed
    }
}

impl ExactTop for Fe {}

#[cfg(target_arch = "x86_64")]
mod ifma {
    use core::arch::x86_64::*;

    use super::{Bits, ExactTop, TOGETHER, Tops};
    use crate::field::bloom::{BITS, FIELDS, WITHIN};
    use crate::field::ifma::{Encoding, Fe4, Fe8};
    use crate::field::leading::SUMS;
    use crate::walk::x::sums::powers;

    /// One by one: of four lanes two keys pass between two pauses.
    impl<E: Encoding> ExactTop for Fe4<E> {}

    /// The powers of beta on T0, T1, T2 in every sum, two bits each.
    const POWERS: [u64; 3] = {
        let mut all = [0; 3];
        let mut at = 0;
        while at < 3 * SUMS {
            all[at % 3] |= (powers(at / 3)[at % 3] as u64) << (at / 3 * 2);
            at += 1;
        }
        all
    };

    /// Where the fields of a top's mark begin, in its 48 bits: the ten bits after 32.
    const BEGIN: u64 = {
        let mut begin = 0;
        let mut byte = 0;
        while byte < 4 {
            begin |= ((16 - WITHIN + FIELDS[byte]) as u64) << (8 * byte);
            byte += 1;
        }
        begin
    };

    impl ExactTop for Fe8 {
        /// All at once, and without a branch: how many there are nobody can guess, and a wrong guess would throw away
        /// what the processor has begun of the next entry.
        #[inline(always)]
        unsafe fn near(
            keys: &[u8; TOGETHER],
            slots: &[u8; TOGETHER],
            count: usize,
            tops: &[Tops<Fe8>],
            bits: &Bits,
        ) -> u32 {
            // SAFETY: see the module `lanes`. A slot is 12 vectors of eight, so all that is gathered lies in `tops`; the
            // table has an entry for every number that the shift leaves.
            unsafe {
                let keys = _mm512_cvtepu8_epi64(_mm_loadl_epi64(keys.as_ptr().cast()));
                let slots = _mm512_cvtepu8_epi64(_mm_loadl_epi64(slots.as_ptr().cast()));
                let asking = _bzhi_u32(0xff, count as u32) as u8;
                // Lane place / 2 of vector place % 2.
                let vector = _mm512_slli_epi64::<3>(_mm512_and_si512(keys, _mm512_set1_epi64(1)));
                let lane = _mm512_and_si512(_mm512_srli_epi64::<1>(keys), _mm512_set1_epi64(7));
                let slot = _mm512_mul_epu32(slots, _mm512_set1_epi64(96));
                let at = _mm512_add_epi64(slot, _mm512_add_epi64(vector, lane));
                let twice_sum = _mm512_slli_epi64::<1>(_mm512_srli_epi64::<4>(keys));
                let zero = _mm512_setzero_si512();
                let mut top = zero;
                for (term, powers) in POWERS.into_iter().enumerate() {
                    let power = _mm512_srlv_epi64(_mm512_set1_epi64(powers as i64), twice_sum);
                    let (first, second) = (
                        _mm512_mask_test_epi64_mask(asking, power, _mm512_set1_epi64(1)),
                        _mm512_mask_test_epi64_mask(asking, power, _mm512_set1_epi64(2)),
                    );
                    // Times 1, times beta, or minus both. Only what counts is read: the rest would push other things
                    // out of the first-level cache.
                    let from = tops.as_ptr().cast::<i64>().add(32 * term);
                    let a = _mm512_mask_i64gather_epi64::<8>(zero, asking & !first, at, from);
                    let b = _mm512_mask_i64gather_epi64::<8>(zero, first | second, at, from.add(16));
                    let sum = _mm512_add_epi64(a, b);
                    top = _mm512_add_epi64(top, _mm512_mask_sub_epi64(sum, second, zero, sum));
                }
                let third = bits.third();
                let entry = _mm512_srlv_epi64(
                    _mm512_slli_epi64::<16>(top),
                    _mm512_set1_epi64(64 - i64::from(third.log2)),
                );
                let entry = _mm512_mask_i64gather_epi32::<8>(
                    _mm256_setzero_si256(),
                    asking,
                    entry,
                    third.table.cast(),
                );
                let six = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(BEGIN as i64), top);
                let marks = _mm512_permutexvar_epi8(six, _mm512_loadu_si512(BITS.as_ptr().cast()));
                let marks = _mm512_cvtepi64_epi32(marks);
                u32::from(_mm256_mask_testn_epi32_mask(asking, entry, marks))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use warpsmith_simd::{Simd, compile_for};

    use super::*;
    use crate::field::leading::SUMS;
    use crate::random::random;
    use crate::walk::Range;

    /// Every key of entries whose tops are any numbers, in every place of the list, with every count: the answer is what
    /// the table says of the key's own top, and of no key past the last.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn eight_keys_ask_as_each_of_them_would() {
        use crate::field::ifma::Fe8;
        compile_for! { avx512ifma
            unsafe fn check(bits: &Bits, state: &mut u64) -> u32 {
                let numbers: Vec<[[[[u64; 8]; 2]; 2]; 3]> = (0..16)
                    .map(|_| {
                        [(); 3].map(|()| [(); 2].map(|()| [(); 2].map(|()| [(); 8].map(|()| random(state)))))
                    })
                    .collect();
                // SAFETY: both are 96 numbers of 64 bits.
                let tops: Vec<Tops<Fe8>> = numbers.iter().map(|n| unsafe { core::mem::transmute(*n) }).collect();
                let mut all = 0;
                for round in 0..16 * SUMS * 9 {
                    let keys: [u8; TOGETHER] = core::array::from_fn(|i| {
                        ((round / 9 + i * (random(state) >> 8) as usize % 999) % (16 * SUMS)) as u8
                    });
                    let slots: [u8; TOGETHER] = core::array::from_fn(|_| (random(state) % 16) as u8);
                    let mut want = 0;
                    for i in 0..round % 9 {
                        let (sum, place) = (keys[i] as usize / 16, keys[i] as usize % 16);
                        want |= u32::from(bits.near(top::<Fe8>(sum, place, &tops[slots[i] as usize]))) << i;
                    }
                    // SAFETY: the caller checked the instruction set.
                    let got = unsafe { Fe8::near(&keys, &slots, round % 9, &tops, bits) };
                    assert_eq!(got, want, "{keys:?} of {slots:?}, {} of them", round % 9);
                    all += got.count_ones();
                }
                all
            }
        }
        if !Simd::Avx512Ifma.is_available() {
            eprintln!("SKIPPED: this machine has no AVX-512 IFMA");
            return;
        }
        let mut state = 9;
        // So many ranges that some keys pass and some do not, in tables of several sizes.
        for count in [40, 400, 4000] {
            let mut firsts: Vec<u64> = (0..count).map(|_| random(&mut state) >> 44 << 44).collect();
            firsts.sort_unstable();
            firsts.dedup();
            let ranges: Vec<Range> =
                firsts.into_iter().map(|first| Range { first, last: first | ((1 << 40) - 1) }).collect();
            // SAFETY: just checked.
            let passed = unsafe { check(&Bits::new(&ranges, 5), &mut state) };
            assert!((50..5000).contains(&passed), "{passed} of 5184 passed");
        }
    }
}
