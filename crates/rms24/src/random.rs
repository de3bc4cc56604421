//! Random numbers, all from the operating system.

use crate::error::{Error, Result};

/// Fills the bytes at random.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<()> {
    warpsmith_entropy::fill(bytes)
        .map_err(|error| Error::Io { path: "the system's random numbers".into(), source: error.into() })
}

/// Random numbers, fetched a page at a time.
pub(crate) struct Random {
    page: Box<[u8; 4096]>,
    used: usize,
}

impl Random {
    pub(crate) fn new() -> Random {
        Random { page: Box::new([0; 4096]), used: 4096 }
    }

    fn next(&mut self) -> Result<u32> {
        if self.used == self.page.len() {
            fill(&mut self.page[..])?;
            self.used = 0;
        }
        let bytes = &mut self.page[self.used..self.used + 4];
        let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        // SEC: what was given away does not stay in memory.
        bytes.fill(0);
        self.used += 4;
        Ok(word)
    }

    /// A fair coin.
    pub(crate) fn coin(&mut self) -> Result<bool> {
        Ok(self.next()? >> 31 == 1)
    }

    /// A uniform number below `bound`, which is not 0. Lemire's method (ACM TOMACS 29, 2019): a product's upper half,
    /// drawn again where the lower half falls into the part that would be counted once too often.
    pub(crate) fn below(&mut self, bound: u32) -> Result<u32> {
        let excess = bound.wrapping_neg() % bound;
        loop {
            let product = u64::from(self.next()?) * u64::from(bound);
            if product as u32 >= excess {
                return Ok((product >> 32) as u32);
            }
        }
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.page[..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_uniform_and_below_the_bound() {
        let mut random = Random::new();
        for bound in [1, 2, 3, 7, 10] {
            let mut counts = vec![0f64; bound as usize];
            let draws = 20_000.0;
            for _ in 0..20_000 {
                counts[random.below(bound).unwrap() as usize] += 1.0;
            }
            let expected = draws / f64::from(bound);
            for count in counts {
                // Six standard deviations.
                assert!((count - expected).abs() < 6.0 * expected.sqrt() + 1.0, "{count} of {expected}");
            }
        }
        let heads = (0..20_000).filter(|_| random.coin().unwrap()).count();
        assert!((9_500..10_500).contains(&heads), "{heads}");
        assert!((0..100).any(|_| random.below(u32::MAX).unwrap() > u32::MAX / 2));
    }
}
