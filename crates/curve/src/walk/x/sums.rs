//! How a key's leading bits add up.
//!
//! A key is beta^j T0 + beta^p T1 + beta^q T2, and beta^2 = -1 - beta: its top is a sum of the six tops of its lane and
//! side, each taken once, minus once or not at all.

use crate::Fe;
use crate::field::leading::Leading;
use crate::walk::visit::Tops;

/// The factor of T0 for each (p, q), p * 3 + q: j = p - k with k = q - p, modulo 3.
pub(super) const fn image_of(p: usize, q: usize) -> usize {
    (2 * p + 3 - q) % 3
}

/// The powers of beta on T0, T1, T2 in a sum.
pub(super) const fn powers(sum: usize) -> [usize; 3] {
    let (p, q) = (sum / 3, sum % 3);
    [image_of(p, q), p, q]
}

/// The words of the nine keys from those of T0, T1, T2 times 1, beta, beta^2.
///
/// # Safety
/// As for all of [`Leading`].
#[inline(always)]
pub(super) unsafe fn sums<L: Leading>([t0, t1, t2]: &[[L::Words; 3]; 3]) -> [L::Words; 9] {
    let mut words = [t0[0]; 9];
    for p in 0..3 {
        for q in 0..3 {
            // SAFETY: the caller's.
            words[p * 3 + q] = unsafe { L::word_add(L::word_add(t1[p], t2[q]), t0[image_of(p, q)]) };
        }
    }
    words
}

/// The top 64 bits of x: 2^64 x/p rounded down, off by less than one.
pub(super) fn top64(x: Fe) -> u64 {
    x.to_words()[0]
}

/// The top 64 bits of the key in the given place of the words of a sum.
#[inline(always)]
pub(super) fn top<L: Leading>(sum: usize, place: usize, tops: &Tops<L>) -> u64 {
    let mut top = 0u64;
    for (power, [a, b]) in powers(sum).into_iter().zip(tops) {
        // SAFETY: tops exist only where their instruction set does.
        let (a, b) =
            unsafe { (L::tops_lane(&a[place % 2], place / 2), L::tops_lane(&b[place % 2], place / 2)) };
        top = top.wrapping_add([a, b, a.wrapping_add(b).wrapping_neg()][power]);
    }
    top
}
