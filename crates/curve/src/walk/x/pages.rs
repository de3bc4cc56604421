//! Memory for large tables that are read at random: whole huge pages where the system has them, so that a
//! read costs no walk of the page table.

use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::slice;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// The size of a huge page on the systems that are asked for one (x86-64, and AArch64 with pages of 4 KiB).
const HUGE: usize = 1 << 21;

/// Tables from this size on get huge pages: a smaller one would waste more than three quarters of a page.
const LARGE: usize = 1 << 19;

/// A fixed number of values, at least a cache line aligned.
pub(super) struct Pages<T: Copy> {
    start: NonNull<T>,
    len: usize,
    layout: Layout,
}

// SAFETY: it owns its values as a box would.
unsafe impl<T: Copy + Send> Send for Pages<T> {}
// SAFETY: as above; shared access only reads.
unsafe impl<T: Copy + Sync> Sync for Pages<T> {}

impl<T: Copy> Pages<T> {
    /// `len` copies of a value; at least one.
    pub fn new(value: T, len: usize) -> Pages<T> {
        Pages::from_fn(len, |_| value)
    }

    /// `len` values, at least one, by their numbers.
    fn from_fn(len: usize, value: impl Fn(usize) -> T) -> Pages<T> {
        assert!(len > 0 && size_of::<T>() > 0, "a table has some size");
        let bytes = len.checked_mul(size_of::<T>()).expect("a table fits memory");
        let align = if bytes >= LARGE { HUGE } else { 64 };
        let layout = Layout::from_size_align(bytes, align.max(align_of::<T>()))
            .map(|l| l.pad_to_align())
            .expect("a table fits memory");
        // SAFETY: the layout has a size.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }.cast::<T>()) else {
            handle_alloc_error(layout)
        };
        #[cfg(target_os = "linux")]
        if align == HUGE {
            // Before the first touch, which is what makes the pages. Advice only: without it the table is slower.
            // SAFETY: the memory is ours, whole huge pages, and the advice does not change what it holds.
            unsafe { libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
        }
        for i in 0..len {
            // SAFETY: below `len`, which the layout has room for.
            unsafe { start.add(i).write(value(i)) };
        }
        Pages { start, len, layout }
    }
}

impl<T: Copy> Clone for Pages<T> {
    fn clone(&self) -> Pages<T> {
        Pages::from_fn(self.len, |i| self[i])
    }
}

impl<T: Copy> Drop for Pages<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this very layout, and the values need no drop.
        unsafe { dealloc(self.start.as_ptr().cast(), self.layout) }
    }
}

impl<T: Copy> Deref for Pages<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values were written when it was made.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for Pages<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and this borrow is the only one.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_filled_aligned_and_writable() {
        for len in [1, 15, 16, 17, LARGE / 4 - 1, LARGE / 4, LARGE / 4 + 1, HUGE / 4 + 3] {
            let mut pages = Pages::new(7u32, len);
            assert_eq!(pages.len(), len);
            assert_eq!(pages.as_ptr() as usize % 64, 0);
            if len * 4 >= LARGE {
                assert_eq!(pages.as_ptr() as usize % HUGE, 0);
            }
            assert!(pages.iter().all(|&v| v == 7));
            pages[len - 1] = 8;
            assert_eq!(pages.iter().filter(|&&v| v == 8).count(), 1);
        }
    }
}
