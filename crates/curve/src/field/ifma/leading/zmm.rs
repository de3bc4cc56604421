//! Leading bits of eight elements.

use core::arch::x86_64::*;

use super::{product_tops, tops_lane, word};
use crate::field::bloom::{BITS, FIELDS, after};
use crate::field::ifma::{Fe8, Register, Zmm};
use crate::field::leading::{Leading, Listed, SUMS};

/// The numbers of all keys of an entry.
static KEYS: [u8; 16 * SUMS] = {
    let mut keys = [0; 16 * SUMS];
    let mut key = 0;
    while key < keys.len() {
        keys[key] = key as u8;
        key += 1;
    }
    keys
};

/// The answers of an entry's sums in masks, joined as they come: so few registers hold them that none has to be stored.
/// Stored one by one and read together they would have to reach the cache first.
#[derive(Clone, Copy, Default)]
pub struct Answers {
    /// Of the sum that has no other half yet, and in the end of the last.
    single: u16,
    /// Of the two before it.
    pair: u32,
    /// Of the first four sums and the next four.
    fours: (u64, u64),
}

/// Joins two masks: as instructions, since the compiler takes the intrinsics for shifts of numbers and makes many of each.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn join_words(low: u16, high: u16) -> u32 {
    let both;
    // SAFETY: the caller's instruction set; nothing but registers.
    unsafe {
        core::arch::asm!("kunpckwd {0}, {1}, {2}", out(kreg) both, in(kreg) high, in(kreg) low,
            options(nomem, nostack, preserves_flags))
    }
    both
}

/// The same for twice as many.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn join_pairs(low: u32, high: u32) -> u64 {
    let both;
    // SAFETY: as above.
    unsafe {
        core::arch::asm!("kunpckdq {0}, {1}, {2}", out(kreg) both, in(kreg) high, in(kreg) low,
            options(nomem, nostack, preserves_flags))
    }
    both
}

/// The same answers, formed before what the program does next. Left alone the compiler forms them where they are looked at,
/// and keeps two vectors for each until then.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn answered(mut answers: __mmask16) -> __mmask16 {
    // SAFETY: no instruction at all; the register comes back as it went in.
    unsafe { core::arch::asm!("/* {0} */", inout(kreg) answers, options(nomem, nostack, preserves_flags)) }
    answers
}

/// The places of sixteen from one on, below 256; none from the sixteenth.
#[inline(always)]
unsafe fn places_from(first: u32) -> u16 {
    // SAFETY: BMI2 is present where this is called.
    unsafe { !_bzhi_u32(0xffff, first) as u16 }
}

impl Leading for Fe8 {
    type Words = Zmm;
    type Tops = Zmm;
    /// By how much words are shifted to be numbers of entries, and where the fields of their marks begin.
    type Asker = [__m512i; 2];
    type Answers = Answers;

    const FIRST: usize = 16;

    #[inline(always)]
    unsafe fn tops(self) -> Zmm {
        // SAFETY: see the module `lanes`.
        unsafe { self.check_tight().0[4] }
    }
    #[inline(always)]
    unsafe fn product_tops(self, factor: Fe8, addend: Zmm) -> Zmm {
        // SAFETY: see the module `lanes`.
        unsafe { product_tops(self, factor, addend) }
    }
    #[inline(always)]
    unsafe fn tops_add(a: Zmm, b: Zmm) -> Zmm {
        // SAFETY: see the module `lanes`.
        unsafe { a.add(b) }
    }
    #[inline(always)]
    unsafe fn tops_lane(a: &Zmm, lane: usize) -> u64 {
        // SAFETY: see the module `lanes`.
        unsafe { tops_lane(a, lane) }
    }
    #[inline(always)]
    unsafe fn tops_words(Zmm(plus): Zmm, Zmm(minus): Zmm) -> Zmm {
        // SAFETY: see the module `lanes`; VBMI is present.
        unsafe {
            // Bits 16..48 of minus go to the upper half, and below them those of plus, eight bits at a time.
            let from = _mm512_set1_epi64(0x2820_1810);
            let minus = _mm512_slli_epi64::<16>(minus);
            Zmm(_mm512_mask_multishift_epi64_epi8(minus, 0x0f0f_0f0f_0f0f_0f0f, from, plus))
        }
    }
    #[inline(always)]
    unsafe fn word_splat(word: u32) -> Zmm {
        // SAFETY: see the module `lanes`.
        unsafe { Zmm(_mm512_set1_epi32(word as i32)) }
    }
    #[inline(always)]
    unsafe fn word_add(a: Zmm, b: Zmm) -> Zmm {
        // SAFETY: see the module `lanes`.
        unsafe { Zmm(_mm512_add_epi32(a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn word_sub(a: Zmm, b: Zmm) -> Zmm {
        // SAFETY: see the module `lanes`.
        unsafe { Zmm(_mm512_sub_epi32(a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn word_min(a: Zmm, b: Zmm) -> Zmm {
        // SAFETY: see the module `lanes`.
        unsafe { Zmm(_mm512_min_epu32(a.0, b.0)) }
    }
    #[inline(always)]
    unsafe fn word_any_at_most(a: Zmm, limit: u32) -> bool {
        // SAFETY: see the module `lanes`.
        unsafe { _mm512_cmple_epu32_mask(a.0, _mm512_set1_epi32(limit as i32)) != 0 }
    }
    #[inline(always)]
    unsafe fn word_load(from: *const u32) -> Zmm {
        // SAFETY: see the module `lanes`; the caller has that many.
        unsafe { Zmm(_mm512_loadu_si512(from.cast())) }
    }
    #[inline(always)]
    unsafe fn asker<const STRIDE: usize>(log2: u32) -> [__m512i; 2] {
        let lowest = 32 - after(STRIDE) - log2;
        let mut fields = 0;
        for byte in 0..8 {
            // The minus side lies in the upper half of 64 bits.
            fields |= u64::from(lowest + FIELDS[byte % 4] + 32 * (byte as u32 / 4)) << (8 * byte);
        }
        // SAFETY: see the module `lanes`.
        unsafe { [_mm512_set1_epi32(32 - log2 as i32), _mm512_set1_epi64(fields as i64)] }
    }
    #[inline(always)]
    unsafe fn word_ask<const STRIDE: usize>(
        Zmm(a): Zmm,
        table: *const u8,
        [at, fields]: &[__m512i; 2],
        asking: u32,
    ) -> u32 {
        // SAFETY: see the module `lanes`; the table has an entry for every number.
        unsafe {
            // By a count in each place: one instruction, where a shift by a register's is two.
            let at = _mm512_srlv_epi32(a, *at);
            let (none, asking) = (_mm512_setzero_si512(), asking as u16);
            let entry = match STRIDE {
                1 => _mm512_mask_i32gather_epi32::<1>(none, asking, at, table.cast()),
                4 => _mm512_mask_i32gather_epi32::<4>(none, asking, at, table.cast()),
                _ => _mm512_mask_i32gather_epi32::<8>(none, asking, at, table.cast()),
            };
            // Eight bits from where each field begins; a permutation of 64 bytes reads six of them.
            let six = _mm512_multishift_epi64_epi8(*fields, a);
            let marks = _mm512_permutexvar_epi8(six, _mm512_loadu_si512(BITS.as_ptr().cast()));
            u32::from(answered(_mm512_mask_testn_epi32_mask(asking, entry, marks)))
        }
    }
    #[inline(always)]
    unsafe fn answer(mut to: Answers, sum: usize, passed: u32) -> Answers {
        let passed = passed as u16;
        // SAFETY: see the module `lanes`.
        unsafe {
            match sum {
                1 | 5 => to.pair = join_words(to.single, passed),
                3 => to.fours.0 = join_pairs(to.pair, join_words(to.single, passed)),
                7 => to.fours.1 = join_pairs(to.pair, join_words(to.single, passed)),
                _ => to.single = passed,
            }
        }
        to
    }
    #[inline(always)]
    unsafe fn word_first(
        words: &[Zmm; SUMS + 1],
        passed: Answers,
        keys: &mut [u8; 16],
        found: &mut [u32; 16],
    ) -> u32 {
        // SAFETY: see the module `lanes`; all that is read and written is as large as the registers.
        unsafe {
            // The numbers of the keys that passed, of four sums, four more and the last, packed.
            let Answers { single: last_sum, fours: (four, four_more), .. } = passed;
            let first = _mm512_maskz_compress_epi8(four, _mm512_loadu_si512(KEYS.as_ptr().cast()));
            let next =
                _mm512_maskz_compress_epi8(four_more, _mm512_loadu_si512(KEYS.as_ptr().add(64).cast()));
            let none = _mm_set1_epi8((16 * SUMS) as u8 as i8);
            let last = _mm_mask_compress_epi8(none, last_sum, _mm_loadu_si128(KEYS.as_ptr().add(128).cast()));
            // One after another: after as many as there are before, the next ones.
            let before_next = four.count_ones();
            let before_last = before_next + four_more.count_ones();
            let all = _mm512_castsi512_si128(first);
            let all = _mm_mask_expand_epi8(all, places_from(before_next), _mm512_castsi512_si128(next));
            let all = _mm_mask_expand_epi8(all, places_from(before_last), last);
            _mm_storeu_si128(keys.as_mut_ptr().cast(), all);
            let of = _mm512_i32gather_epi32::<4>(_mm512_cvtepu8_epi32(all), words.as_ptr().cast());
            _mm512_storeu_si512(found.as_mut_ptr().cast(), of);
            before_last + last_sum.count_ones()
        }
    }
    #[inline(always)]
    unsafe fn key_append(list: &mut Listed, listed: usize, keys: &[u8; 16], held: u32, slot: u8) {
        // SAFETY: see the module `lanes`; all that is read and written is as large as the registers.
        unsafe {
            let (to_keys, to_slots) = (list.keys.as_mut_ptr().cast(), list.slots.as_mut_ptr().cast());
            let held = _mm_maskz_compress_epi8(held as u16, _mm_loadu_si128(keys.as_ptr().cast()));
            // The places after those that are taken; none if all are.
            let after = !_bzhi_u64(u64::MAX, listed as u32);
            let (all_keys, all_slots) = (_mm512_load_si512(to_keys), _mm512_load_si512(to_slots));
            let held = _mm512_mask_expand_epi8(all_keys, after, _mm512_castsi128_si512(held));
            _mm512_store_si512(to_keys, held);
            _mm512_store_si512(to_slots, _mm512_mask_set1_epi8(all_slots, after, slot as i8));
        }
    }
    #[inline(always)]
    unsafe fn word(a: &Zmm, lane: usize, side: usize) -> u32 {
        word(a, lane, side)
    }
}
