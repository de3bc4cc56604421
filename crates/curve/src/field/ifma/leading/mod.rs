//! Leading bits of elements in registers: what both widths share. The rest is in `zmm` and `ymm`.

mod ymm;
mod zmm;

use super::{FOLD_260, Limbs, Register};

/// See [`Leading::product_tops`](crate::field::leading::Leading::product_tops): 48 bits and, above them, whole turns, the
/// sum that becomes the last limb of a product.
#[inline(always)]
unsafe fn product_tops<R: Register>(a: Limbs<R>, b: Limbs<R>, addend: R) -> R {
    // SAFETY: see the module `lanes`.
    unsafe {
        let (a, b) = (a.check_factor().0, b.check_factor().0);
        // With columns c0..c9 of the product as in `reduce`, c8 without what c7 hands on: at most 6 short, which
        // the fold makes less than 2^-12 of the sum's last bit.
        let c8 = R::splat(0).add_low(a[4], b[4]).add_high(a[3], b[4]).add_high(a[4], b[3]);
        let c9 = c8.down(52).add_high(a[4], b[4]);
        // c4 without what c3 and the addend's other limbs hand on: 4 low and 3 high parts and less than two more.
        let mut c4 = addend;
        for i in 0..5 {
            c4 = c4.add_low(a[i], b[4 - i]);
        }
        for i in 0..4 {
            c4 = c4.add_high(a[i], b[3 - i]);
        }
        // The fold of c5..c9; of that of c7 and below less than one reaches c4. What lies at 2^256 and above would
        // come back 222 bits further down.
        let fold = R::kept(FOLD_260);
        c4.add_low(c9, fold).add_high(c8, fold)
    }
}

/// The top 64 bits of one lane.
#[inline(always)]
unsafe fn tops_lane<R: Register>(tops: &R, lane: usize) -> u64 {
    debug_assert!(lane < R::N);
    // SAFETY: N plain integers. Only the one is read: they lie in memory, and a copy would be waited for.
    unsafe { *(&raw const *tops).cast::<u64>().add(lane) << 16 }
}

/// The word of one lane on one side.
#[inline(always)]
fn word<R: Register>(words: &R, lane: usize, side: usize) -> u32 {
    assert!(lane < R::N && side < 2);
    // SAFETY: twice N plain integers.
    unsafe { *(&raw const *words).cast::<u32>().add(lane * 2 + side) }
}
