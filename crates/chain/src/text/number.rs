//! Numbers of 256 bits, as far as ranges of base58 need them. Nothing here is secret.

/// A number, most significant word first, so that the derived order is that of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(pub [u64; 4]);

const WORDS_FROM_LOWEST: [usize; 4] = [3, 2, 1, 0];

impl From<u8> for Number {
    fn from(value: u8) -> Self {
        Self([0, 0, 0, u64::from(value)])
    }
}

impl Number {
    /// The number of 20 bytes.
    pub fn of_hash(hash: &[u8; 20]) -> Self {
        let mut bytes = [0; 32];
        bytes[12..].copy_from_slice(hash);
        let (words, _) = bytes.as_chunks();
        Self(std::array::from_fn(|i| u64::from_be_bytes(words[i])))
    }

    /// `58 * self + digit`; what is beyond 256 bits is lost, and callers stay below 58^36 < 2^211.
    pub fn times_58_plus(self, digit: u8) -> Self {
        let mut carry = u128::from(digit);
        let mut words = self.0;
        for i in WORDS_FROM_LOWEST {
            let value = u128::from(words[i]) * 58 + carry;
            words[i] = value as u64;
            carry = value >> 64;
        }
        debug_assert_eq!(carry, 0);
        Self(words)
    }

    /// The product, for factors whose product has at most 256 bits.
    pub fn times(&self, other: &Self) -> Self {
        let mut words = [0; 4];
        for i in WORDS_FROM_LOWEST {
            let mut carry = 0;
            // Word i counts 2^(64 * (3 - i)), so the products of i and j meet in word i + j - 3.
            for j in (3 - i..4).rev() {
                let at = i + j - 3;
                let value = u128::from(self.0[i]) * u128::from(other.0[j]) + u128::from(words[at]) + carry;
                words[at] = value as u64;
                carry = value >> 64;
            }
            debug_assert_eq!(carry, 0);
        }
        Self(words)
    }

    pub fn plus(&self, other: &Self) -> Self {
        let mut carry = false;
        let mut words = [0; 4];
        for i in WORDS_FROM_LOWEST {
            let (sum, over) = self.0[i].overflowing_add(other.0[i]);
            let (sum, more) = sum.overflowing_add(u64::from(carry));
            (words[i], carry) = (sum, over || more);
        }
        debug_assert!(!carry);
        Self(words)
    }

    /// `self - other`, which is not larger.
    pub fn minus(&self, other: &Self) -> Self {
        let mut borrow = false;
        let mut words = [0; 4];
        for i in WORDS_FROM_LOWEST {
            let (difference, under) = self.0[i].overflowing_sub(other.0[i]);
            let (difference, more) = difference.overflowing_sub(u64::from(borrow));
            (words[i], borrow) = (difference, under || more);
        }
        debug_assert!(!borrow);
        Self(words)
    }

    pub fn plus_one(&self) -> Self {
        self.plus(&Self::from(1))
    }

    pub fn minus_one(&self) -> Self {
        self.minus(&Self::from(1))
    }

    /// `self * 2^bits` for a number that then has at most 256 bits, by whole words.
    pub fn shifted_left(&self, bits: u32) -> Self {
        debug_assert_eq!(bits % 64, 0);
        let words = (bits / 64) as usize;
        Self(std::array::from_fn(|i| self.0.get(i + words).copied().unwrap_or(0)))
    }

    /// `2^bits - 1`, for at most 255 bits.
    pub fn below_bit(bits: u32) -> Self {
        let in_word = |i: usize| {
            let bits = bits.saturating_sub(64 * (3 - i) as u32).min(64);
            u64::MAX.checked_shr(64 - bits).unwrap_or(0)
        };
        Self(std::array::from_fn(in_word))
    }

    /// Rounded to 53 bits.
    pub fn to_f64(self) -> f64 {
        self.0.iter().fold(0.0, |value, &word| value * 64f64.exp2() + word as f64)
    }

    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (to, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wide(value: u128) -> Number {
        Number([0, 0, (value >> 64) as u64, value as u64])
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_wide_integers(a in 0..u128::MAX >> 8, b in 0..u128::MAX >> 8, digit in 0u8..58) {
            prop_assert_eq!(wide(a).plus(&wide(b)), wide(a + b));
            prop_assert_eq!(wide(a.max(b)).minus(&wide(a.min(b))), wide(a.max(b) - a.min(b)));
            prop_assert_eq!(wide(a).times_58_plus(digit), wide(a * 58 + u128::from(digit)));
            let (low, high) = (a as u64, b as u64);
            prop_assert_eq!(wide(low.into()).times(&wide(high.into())), wide(u128::from(low) * u128::from(high)));
            // (a * 2^64) * b, by words that meet elsewhere.
            let shifted = Number([0, (a >> 64) as u64, a as u64, 0]);
            let product = shifted.times(&wide(high.into()));
            prop_assert_eq!(product.0[3], 0);
            prop_assert_eq!(&wide(a).times(&wide(high.into())).0[1..], &product.0[..3]);
            prop_assert_eq!(wide(a).times(&wide(58)), wide(a * 58));
            prop_assert_eq!(wide(a).cmp(&wide(b)), a.cmp(&b));
            prop_assert!((wide(a).to_f64() - a as f64).abs() <= a as f64 * 1e-15);
        }
    }

    #[test]
    fn powers_and_carries_cross_words() {
        for bits in 0..=255u32 {
            let below = Number::below_bit(bits);
            let ones: u32 = below.0.iter().map(|word| word.count_ones()).sum();
            assert_eq!(ones, bits);
            let power = below.plus_one();
            assert_eq!(power.minus_one(), below);
            assert_eq!(power.0.iter().map(|word| word.count_ones()).sum::<u32>(), 1);
        }
        assert_eq!(Number::from(7).shifted_left(192), Number([7, 0, 0, 0]));
        assert_eq!(Number([1, 2, 3, 4]).to_bytes()[7..16], [1, 0, 0, 0, 0, 0, 0, 0, 2]);
    }
}
