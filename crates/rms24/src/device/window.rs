//! Where the middle of c orders is looked for.
//!
//! The share of orders below a bound x (of 2^32) has the standard deviation 1 / (2 sqrt c) around x = 1/2, so the middle
//! lies within k / (2 sqrt c) of the half but for a normal tail beyond k. The window has five of them to either side: of ten
//! million hints six lie outside. Its bins hold 16 orders on average, or more where that would be too many bins.

use warpsmith_kernel::pir::BINS;

/// Standard deviations to either side.
const DEVIATIONS: f64 = 5.0;
/// Orders a bin should hold: a quarter of its room.
const PER_BIN: f64 = 16.0;

/// The window of the cutoffs' kernel: `bins` bins, 2^shift wide, half of them below 2^31.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub shift: u32,
    pub bins: u32,
}

impl Window {
    pub fn new(blocks: u32) -> Window {
        let all = (1u64 << 32) as f64;
        let c = f64::from(blocks);
        let width = (DEVIATIONS / c.sqrt()).min(1.0) * all;
        let few = (PER_BIN * all / c).log2().floor();
        let enough = (width / f64::from(BINS)).log2().ceil();
        // Whole upper halves, 2^16, for packed orders; no more than all of 2^32.
        let shift = few.max(enough).clamp(16.0, 25.0) as u32;
        let half = (width / 2.0 / f64::from(1 << shift)).ceil() as u32;
        Window { shift, bins: 2 * half.clamp(1, BINS / 2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_lies_around_the_middle_and_is_wide_enough() {
        for c in
            (2..3000).step_by(2).chain([4096, 27_988, 55_974, 70_002, 111_944, 1 << 20, 1 << 24, 1 << 30])
        {
            let Window { shift, bins } = Window::new(c);
            assert!(
                (2..=BINS).contains(&bins) && bins.is_multiple_of(2) && (16..=25).contains(&shift),
                "{c}"
            );
            let half = u64::from(bins / 2) << shift;
            assert!(half <= 1 << 31);
            // Five deviations to either side, or everything, or as many bins as there are.
            let wanted = (2.5 / f64::from(c).sqrt() * 2f64.powi(32)) as u64;
            assert!(half >= wanted.min(1 << 31) || bins == BINS, "{c}");
        }
    }
}
