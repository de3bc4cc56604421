//! What can be counted of an address: features, each a number by bit tricks on whole words.
//!
//! Knows digests of 20 bytes as filters read them, forty hex digits in two words and a half. A device may count the same in its own way;
//! this is what it is tested against, and tests hold it against a plain count on the text.

use crate::interval::Words;

/// Digits of an address.
pub(crate) const DIGITS: u32 = 40;

/// A number that every address has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feature {
    /// Zero bytes at the start.
    LeadingZeros,
    /// Zero bytes anywhere.
    Zeros,
    /// Hex digits at the start that are this one, 0 to 15.
    Leading(u8),
    /// Hex digits anywhere that are this one, 0 to 15.
    Count(u8),
    /// Digits that are those of a text.
    Like(Likeness),
    /// Digits that are letters, a to f.
    Letters,
    /// Digits that are decimal, 0 to 9.
    Digits,
    /// Pairs of equal digits at the start: 11, then 22, and so on.
    Pairs,
    /// The longest run of one digit, anywhere.
    Run,
    /// Digits on either side of the middle that mirror each other, counted outwards from there.
    Mirrored,
    /// Uniswap's formula for the address of its v4 contracts.
    Uniswap,
}

/// Forty digits of which some are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Likeness {
    /// Four set bits for each digit that is compared.
    pub mask: [u64; 3],
    /// What it is compared with; zero outside the mask.
    pub value: [u64; 3],
}

/// The digits that are part of an address in each of its words.
const WHOLE: [u64; 3] = [u64::MAX, u64::MAX, 0xffff_ffff_0000_0000];
/// The lowest bit of every digit.
const LOWEST: u64 = 0x1111_1111_1111_1111;

impl Feature {
    /// The feature of a digest of 20 bytes.
    #[inline(always)]
    pub fn of_words(self, digest: &Words) -> u32 {
        let d = [digest[0], digest[1], digest[2]];
        match self {
            Self::LeadingZeros => zero_bits(d) / 8,
            Self::Leading(digit) => {
                let repeated = LOWEST * u64::from(digit);
                zero_bits(d.map(|word| word ^ repeated)) / 4
            }
            Self::Zeros => {
                // Zero where both digits of a byte are.
                let pairs = |word: u64| word & word >> 4 & 0x0101_0101_0101_0101;
                tally([0, 1, 2].map(|i| pairs(zero_digits(d[i]) & WHOLE[i])))
            }
            Self::Count(digit) => {
                let repeated = LOWEST * u64::from(digit);
                tally([0, 1, 2].map(|i| zero_digits(d[i] ^ repeated) & WHOLE[i]))
            }
            Self::Like(Likeness { mask, value }) => {
                tally([0, 1, 2].map(|i| zero_digits(d[i] ^ value[i]) & mask[i]))
            }
            Self::Letters => tally(d.map(letters)),
            Self::Digits => DIGITS - tally(d.map(letters)),
            Self::Pairs => {
                let unlike = |word: u64| (word ^ word >> 4) & 0x0f0f_0f0f_0f0f_0f0f;
                zero_bits(d.map(unlike)) / 8
            }
            Self::Run => run(d),
            Self::Mirrored => mirrored(d),
            Self::Uniswap => uniswap(d),
        }
    }

    /// The most there is.
    pub fn max(self) -> u32 {
        match self {
            Self::LeadingZeros | Self::Zeros | Self::Pairs | Self::Mirrored => DIGITS / 2,
            Self::Leading(_) | Self::Count(_) | Self::Letters | Self::Digits | Self::Run => DIGITS,
            Self::Like(Likeness { mask, .. }) => mask.iter().map(|word| word.count_ones()).sum::<u32>() / 4,
            // 36 zeros and four fours: ten each, sixty for exactly four, twenty for the last four, one for each.
            Self::Uniswap => 444,
        }
    }
}

/// Zero bits at the start of an address.
#[inline(always)]
fn zero_bits(d: [u64; 3]) -> u32 {
    let word = d.iter().position(|&word| word != 0).unwrap_or(3);
    let bits = d.get(word).map_or(0, |word| word.leading_zeros());
    (64 * word as u32 + bits).min(4 * DIGITS)
}

/// The lowest bit of each digit that is zero.
#[inline(always)]
fn zero_digits(mut word: u64) -> u64 {
    word |= word >> 2;
    word |= word >> 1;
    !word & LOWEST
}

/// The lowest bit of each digit above nine: the highest bit is set, and one of the two in the middle.
#[inline(always)]
fn letters(word: u64) -> u64 {
    word >> 3 & (word >> 2 | word >> 1) & LOWEST
}

/// How many of the lowest bits of digits are set, by sums that become vectors where several digests are looked at: three a digit,
/// six a byte, and the product adds up eight bytes in the last, 40 at most.
#[inline(always)]
fn tally(flags: [u64; 3]) -> u32 {
    const HALVES: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let sum = flags[0] + flags[1] + flags[2];
    let bytes = (sum & HALVES) + (sum >> 4 & HALVES);
    (bytes.wrapping_mul(0x0101_0101_0101_0101) >> 56) as u32
}

/// The lowest bits of sixteen digits, side by side.
#[inline(always)]
fn gathered(mut flags: u64) -> u64 {
    flags = (flags | flags >> 3) & 0x0303_0303_0303_0303;
    flags = (flags | flags >> 6) & 0x000f_000f_000f_000f;
    flags = (flags | flags >> 12) & 0x0000_00ff_0000_00ff;
    (flags | flags >> 24) & 0xffff
}

#[inline(always)]
fn run(d: [u64; 3]) -> u32 {
    // Each digit beside the next one; the last has none.
    let next = [d[0] << 4 | d[1] >> 60, d[1] << 4 | d[2] >> 60, d[2] << 4];
    let same = |i: usize| zero_digits(d[i] ^ next[i]);
    let last = same(2) & 0x1111_1110_0000_0000;
    let mut same = gathered(same(0)) << 24 | gathered(same(1)) << 8 | gathered(last) >> 8;
    let mut longest = 1;
    while same != 0 {
        same &= same << 1;
        longest += 1;
    }
    longest
}

#[inline(always)]
fn mirrored(d: [u64; 3]) -> u32 {
    // Twenty digits on either side of the middle; the second side turned round.
    let first = u128::from(d[0]) << 16 | u128::from(d[1] >> 48);
    let second = u128::from(d[1] & 0xffff_ffff_ffff) << 32 | u128::from(d[2] >> 32);
    let bytes = second.swap_bytes();
    let low = u128::from(0x0f0f_0f0f_0f0f_0f0f_u64) << 64 | u128::from(0x0f0f_0f0f_0f0f_0f0f_u64);
    let turned = ((bytes & low) << 4 | bytes >> 4 & low) >> 48;
    ((first ^ turned).trailing_zeros() / 4).min(DIGITS / 2)
}

/// `VanityAddressLib.score` of Uniswap's v4-periphery: nothing unless the first digit that is not zero is a four; ten for each zero before it;
/// forty for four fours there, and twenty more if the next is none; twenty if the last four digits are fours; one for each four.
#[inline(always)]
fn uniswap(d: [u64; 3]) -> u32 {
    let zeros = zero_bits(d) / 4;
    let at = zeros as usize / 16;
    let Some(&word) = d.get(at) else { return 0 };
    let shift = 4 * (zeros % 16);
    let next = d.get(at + 1).copied().unwrap_or(0);
    let window = word << shift | next.checked_shr(64 - shift).unwrap_or(0);
    let fours = (window ^ (4 * LOWEST)).leading_zeros() / 4;
    let start = match fours {
        0 => return 0,
        1..=3 => 0,
        4 => 60,
        _ => 40,
    };
    let end = if d[2] >> 32 & 0xffff == 0x4444 { 20 } else { 0 };
    10 * zeros + start + end + Feature::Count(4).of_words(&[d[0], d[1], d[2], 0])
}
