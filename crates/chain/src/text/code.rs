//! Texts of symbols of five bits that end with a linear checksum: which sum of digest bits each bit of a text is.

use super::BitSum;

/// Bits in a symbol.
pub(super) const WIDTH: usize = 5;

/// The symbols of a digest of `bits` bits after so many zero bits, filled up with zeros, and of so many symbols of checksum.
///
/// The checksum of all-zero data is the constant part, and flipping one digest bit changes the checksum by the same bits
/// whatever the rest is. So 1 + `bits` evaluations give all the masks. `checksum` takes the data symbols; the first symbol of
/// the checksum is the most significant of what it returns.
pub(super) fn symbols(
    zeros: usize,
    bits: usize,
    checks: usize,
    checksum: impl Fn(&[u8]) -> u64,
) -> Vec<Vec<BitSum>> {
    debug_assert!(bits <= 256);
    let data = (zeros + bits).div_ceil(WIDTH);
    let mut values = vec![0; data];
    let constant = checksum(&values);
    let mut masks = vec![[0; 4]; checks * WIDTH];
    let is_set = |sum: u64, row: usize| sum >> (checks * WIDTH - 1 - row) & 1 == 1;
    for bit in 0..bits {
        let at = zeros + bit;
        let flip = 1 << (WIDTH - 1 - at % WIDTH);
        values[at / WIDTH] ^= flip;
        let change = checksum(&values) ^ constant;
        values[at / WIDTH] ^= flip;
        for (row, mask) in masks.iter_mut().enumerate() {
            if is_set(change, row) {
                set(mask, bit);
            }
        }
    }
    let data_bit = |at: usize| {
        let mut mask = [0; 4];
        // Bits before and past the digest are constant zero.
        if let Some(bit) = at.checked_sub(zeros).filter(|bit| *bit < bits) {
            set(&mut mask, bit);
        }
        BitSum { mask, constant: false }
    };
    let check_bit = |(row, mask): (usize, &[u64; 4])| BitSum { mask: *mask, constant: is_set(constant, row) };
    let all: Vec<BitSum> =
        (0..data * WIDTH).map(data_bit).chain(masks.iter().enumerate().map(check_bit)).collect();
    all.chunks(WIDTH).map(<[BitSum]>::to_vec).collect()
}

/// Sets bit `bit`, counted from the most significant bit of word 0.
fn set(mask: &mut [u64; 4], bit: usize) {
    mask[bit / 64] |= 1 << (63 - bit % 64);
}
