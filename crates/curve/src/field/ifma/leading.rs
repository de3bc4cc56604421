//! Leading bits of eight elements.

use core::arch::x86_64::*;

use super::{Fe8, MASK52};
use crate::field::leading::{BETA_OVER_P, Leading};
use crate::field::marks::{BITS, FIELDS, WITHIN};

/// The fraction beta/p in digits of 52 bits: digit j has weight 2^-52(j+1).
const BETA_DIGITS: [u64; 6] = {
    const M: u64 = MASK52 as u64;
    let [a, b, c, d, e] = BETA_OVER_P;
    [
        a >> 12,
        (a << 40 | b >> 24) & M,
        (b << 28 | c >> 36) & M,
        (c << 16 | d >> 48) & M,
        (d << 4 | e >> 60) & M,
        (e >> 8) & M,
    ]
};

/// The fraction of beta * x in its low 52 bits, less than 10 short; whole turns above.
#[inline(always)]
unsafe fn beta_fraction(x: &Fe8) -> __m512i {
    // SAFETY: AVX-512 IFMA is present where this is called.
    unsafe {
        let mut sum = _mm512_setzero_si512();
        for i in 0..5 {
            // What ends at weight 2^-52: low halves one digit on, high halves two on. The rest is left out.
            sum = _mm512_madd52lo_epu64(sum, x.0[i], _mm512_set1_epi64(BETA_DIGITS[i] as i64));
            sum = _mm512_madd52hi_epu64(sum, x.0[i], _mm512_set1_epi64(BETA_DIGITS[i + 1] as i64));
        }
        sum
    }
}

impl Leading for Fe8 {
    type Words = __m512i;
    type Tops = __m512i;
    /// By how much words are shifted to be numbers of entries, and where the fields of their marks begin.
    type Asker = [__m512i; 2];

    #[inline(always)]
    unsafe fn words(plus: Fe8, minus: Fe8) -> __m512i {
        // SAFETY: see the module `lanes`.
        unsafe {
            // Bits 16..48 of the top limb are the top 32 of 256; bit 48 is a whole turn and falls away.
            let plus = _mm512_srli_epi64::<16>(plus.check_tight().0[4]);
            let minus = _mm512_slli_epi64::<16>(minus.check_tight().0[4]);
            _mm512_mask_blend_epi32(0xaaaa, plus, minus)
        }
    }

    #[inline(always)]
    unsafe fn beta_words(plus: Fe8, minus: Fe8) -> __m512i {
        // SAFETY: see the module `lanes`.
        unsafe {
            let (p, m) = (beta_fraction(&plus), beta_fraction(&minus));
            _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64::<20>(p), _mm512_slli_epi64::<12>(m))
        }
    }

    #[inline(always)]
    unsafe fn tops(self) -> __m512i {
        // SAFETY: see the module `lanes`. The 16 bits below the top limb are left out.
        unsafe { _mm512_slli_epi64::<16>(self.0[4]) }
    }
    #[inline(always)]
    unsafe fn beta_tops(self) -> __m512i {
        // SAFETY: see the module `lanes`.
        unsafe { _mm512_slli_epi64::<12>(beta_fraction(&self)) }
    }
    #[inline(always)]
    unsafe fn tops_add(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see the module `lanes`.
        unsafe { _mm512_add_epi64(a, b) }
    }
    #[inline(always)]
    unsafe fn tops_lane(a: &__m512i, lane: usize) -> u64 {
        debug_assert!(lane < 8);
        // SAFETY: 64 bytes of plain integers. Only the one is read: they lie in memory, and a copy would be waited for.
        unsafe { *(&raw const *a).cast::<u64>().add(lane) }
    }
    #[inline(always)]
    unsafe fn tops_words(plus: __m512i, minus: __m512i) -> __m512i {
        // SAFETY: see the module `lanes`. The upper halves of minus stay, those of plus go below them.
        unsafe { _mm512_mask_shuffle_epi32::<0b11_11_01_01>(minus, 0x5555, plus) }
    }
    #[inline(always)]
    unsafe fn word_splat(word: u32) -> __m512i {
        // SAFETY: see the module `lanes`.
        unsafe { _mm512_set1_epi32(word as i32) }
    }
    #[inline(always)]
    unsafe fn word_add(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see the module `lanes`.
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn word_sub(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see the module `lanes`.
        unsafe { _mm512_sub_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn word_min(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see the module `lanes`.
        unsafe { _mm512_min_epu32(a, b) }
    }
    #[inline(always)]
    unsafe fn word_any_at_most(a: __m512i, limit: u32) -> bool {
        // SAFETY: see the module `lanes`.
        unsafe { _mm512_cmple_epu32_mask(a, _mm512_set1_epi32(limit as i32)) != 0 }
    }
    #[inline(always)]
    unsafe fn word_places() -> __m512i {
        // SAFETY: see the module `lanes`.
        unsafe { _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) }
    }
    #[inline(always)]
    unsafe fn word_load(from: *const u32) -> __m512i {
        // SAFETY: see the module `lanes`; the caller has that many.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    unsafe fn word_store(a: __m512i, to: *mut u32) {
        // SAFETY: see the module `lanes`; the caller gives room for a whole vector.
        unsafe { _mm512_storeu_si512(to.cast(), a) }
    }
    #[inline(always)]
    unsafe fn asker(log2: u32) -> [__m512i; 2] {
        let lowest = 32 - WITHIN - log2;
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
        a: __m512i,
        table: *const u32,
        [at, fields]: &[__m512i; 2],
        asking: u32,
    ) -> u32 {
        // SAFETY: see the module `lanes`; the table has an entry for every number.
        unsafe {
            // By a count in each place: one instruction, where a shift by a register's is two.
            let at = _mm512_srlv_epi32(a, *at);
            let (none, asking) = (_mm512_setzero_si512(), asking as u16);
            let entry = match STRIDE {
                1 => _mm512_mask_i32gather_epi32::<4>(none, asking, at, table.cast()),
                _ => _mm512_mask_i32gather_epi32::<8>(none, asking, at, table.cast()),
            };
            // Eight bits from where each field begins; a permutation of 64 bytes reads six of them.
            let six = _mm512_multishift_epi64_epi8(*fields, a);
            let marks = _mm512_permutexvar_epi8(six, _mm512_loadu_si512(BITS.as_ptr().cast()));
            _mm512_mask_testn_epi32_mask(asking, entry, marks) as u32
        }
    }
    #[inline(always)]
    unsafe fn word_append(a: __m512i, passed: u32, to: *mut u32) -> usize {
        // SAFETY: see the module `lanes`; the caller gives room for a whole vector.
        unsafe { _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi32(passed as u16, a)) }
        passed.count_ones() as usize
    }
    #[inline(always)]
    unsafe fn set_bit(mask: u64, n: u32) -> u32 {
        // SAFETY: see the module `lanes`; n is below 64.
        unsafe { _pdep_u64(1 << n, mask) }.trailing_zeros()
    }
    #[inline(always)]
    unsafe fn word(a: &__m512i, lane: usize, side: usize) -> u32 {
        // SAFETY: both are 64 bytes of plain integers.
        let words: [u32; 16] = unsafe { core::mem::transmute(*a) };
        words[lane * 2 + side]
    }
}
