//! Work compiled once for each instruction set, and the one operation that is written for each: adding up entries.

use warpsmith_simd::{Lanes, Simd, compile_for};

/// Work that is compiled for each instruction set as one piece. `run` and all it calls in its loops must be
/// `inline(always)`, and no closure among it: a closure does not inherit the instruction set.
pub(crate) trait Work {
    type Output;

    /// Does it.
    ///
    /// # Safety
    /// The instruction set of `S` must be present.
    unsafe fn run<S: Sum>(self) -> Self::Output;
}

/// Adds up entries, without carry.
pub(crate) trait Sum {
    /// Adds to the `size` bytes of `sum` the entries of that size with the numbers `at`, which stand `stride` bytes apart
    /// from `from` on.
    ///
    /// # Safety
    /// All of these bytes must be there to be read, the gaps between entries and after the last one too, and those of `sum`
    /// to be written; and the instruction set.
    unsafe fn add(sum: *mut u8, from: *const u8, at: &[u32], stride: usize, size: usize);
}

/// Does the work with the instruction set of `lanes`.
pub(crate) fn dispatch<W: Work>(lanes: Lanes, work: W) -> W::Output {
    compile_for! { avx2
        unsafe fn avx2<W: Work>(work: W) -> W::Output {
            // SAFETY: the caller checked the instruction set.
            unsafe { work.run::<Words>() }
        }
    }
    compile_for! { avx512
        unsafe fn avx512<W: Work>(work: W) -> W::Output {
            // SAFETY: the caller checked the instruction set.
            unsafe { work.run::<x86::Masked>() }
        }
    }
    // SAFETY: `Lanes` exists only for an instruction set this machine has.
    unsafe {
        match lanes.simd() {
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 | Simd::Avx512Ifma => avx512(work),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 | Simd::AvxIfma => avx2(work),
            _ => work.run::<Words>(),
        }
    }
}

/// Sums in words of eight bytes, as many at a time as the compiler likes to put in a register.
pub(crate) struct Words;

impl Sum for Words {
    #[inline(always)]
    unsafe fn add(sum: *mut u8, from: *const u8, at: &[u32], stride: usize, size: usize) {
        /// Adds up `N` words of each entry.
        ///
        /// # Safety
        /// As for [`Sum::add`], `N` words from each entry's start on.
        #[inline(always)]
        unsafe fn piece<const N: usize>(sum: *mut u8, from: *const u8, at: &[u32], stride: usize) {
            // SAFETY: the caller's; the reads and writes are unaligned ones.
            unsafe {
                let sum: *mut [u64; N] = sum.cast();
                let mut words = sum.read_unaligned();
                for &entry in at {
                    let other: [u64; N] =
                        from.add(entry as usize * stride).cast::<[u64; N]>().read_unaligned();
                    for i in 0..N {
                        words[i] ^= other[i];
                    }
                }
                sum.write_unaligned(words);
            }
        }
        let mut done = 0;
        // SAFETY: the caller's; `done` and what is added then stay below `size`.
        unsafe {
            while size - done >= 64 {
                piece::<8>(sum.add(done), from.add(done), at, stride);
                done += 64;
            }
            let (sum, from) = (sum.add(done), from.add(done));
            match (size - done) / 8 {
                0 => {}
                1 => piece::<1>(sum, from, at, stride),
                2 => piece::<2>(sum, from, at, stride),
                3 => piece::<3>(sum, from, at, stride),
                4 => piece::<4>(sum, from, at, stride),
                5 => piece::<5>(sum, from, at, stride),
                6 => piece::<6>(sum, from, at, stride),
                _ => piece::<7>(sum, from, at, stride),
            }
            let rest = (size - done) % 8;
            for byte in size - done - rest..size - done {
                for &entry in at {
                    *sum.add(byte) ^= *from.add(entry as usize * stride + byte);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::*;

    use super::Sum;

    /// Sums in registers of 512 bits, the last one masked to the entry's end.
    pub(crate) struct Masked;

    impl Sum for Masked {
        #[inline(always)]
        unsafe fn add(sum: *mut u8, from: *const u8, at: &[u32], stride: usize, size: usize) {
            let mut done = 0;
            while done < size {
                let mask = u64::MAX >> (64 - (size - done).min(64));
                // SAFETY: the caller's; a masked load or store touches the bytes of its mask only, a whole load those of
                // one entry and of the gap after it.
                unsafe {
                    let sum = sum.add(done).cast::<i8>();
                    let from = from.add(done);
                    let mut words = _mm512_maskz_loadu_epi8(mask, sum);
                    // Room to the next entry: a whole load costs less, and what it brings too much is not stored.
                    if done + 64 <= stride {
                        for &entry in at {
                            let other = _mm512_loadu_si512(from.add(entry as usize * stride).cast());
                            words = _mm512_xor_si512(words, other);
                        }
                    } else {
                        for &entry in at {
                            let other =
                                _mm512_maskz_loadu_epi8(mask, from.add(entry as usize * stride).cast());
                            words = _mm512_xor_si512(words, other);
                        }
                    }
                    _mm512_mask_storeu_epi8(sum, mask, words);
                }
                done += 64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct AddUp<'a> {
        sum: &'a mut [u8],
        from: &'a [u8],
        at: &'a [u32],
        stride: usize,
        size: usize,
    }

    impl Work for AddUp<'_> {
        type Output = ();
        #[inline(always)]
        unsafe fn run<S: Sum>(self) {
            // SAFETY: the test gives whole entries.
            unsafe { S::add(self.sum.as_mut_ptr(), self.from.as_ptr(), self.at, self.stride, self.size) }
        }
    }

    #[test]
    fn every_size_adds_up_and_touches_nothing_else() {
        for simd in Simd::available(&warpsmith_hash::SETS) {
            for size in (8..=200).chain([1000, 4095, 4096]) {
                let stride = size + size % 5;
                let from: Vec<u8> = (0..20 * stride).map(|i| (i * i % 251) as u8).collect();
                let at = [0, 19, 7, 7, 3, 12];
                let mut sum: Vec<u8> = (0..size + 64).map(|i| i as u8).collect();
                let mut expected = sum.clone();
                for entry in at {
                    for i in 0..size {
                        expected[i] ^= from[entry as usize * stride + i];
                    }
                }
                dispatch(Lanes::new(simd), AddUp { sum: &mut sum, from: &from, at: &at, stride, size });
                assert_eq!(sum, expected, "{simd}, {size} bytes");
            }
        }
    }
}
