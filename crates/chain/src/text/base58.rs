//! Base58 with a checksum: the text of a number, and for the start of a text the numbers that begin so.
//!
//! An address is the number `version || hash || checksum` of 25 bytes in base 58, without leading zeros, after one `1`
//! for each leading zero byte. So texts have different lengths, and those that begin alike are a few ranges of numbers:
//! one for each count of digits. The checksum is the end of the number; a range of numbers is a range of hashes but for
//! the two at its ends, of which the checksum decides. Knows nothing of what the hash is of.

use zeroize::Zeroizing;

use super::number::Number;
use crate::Digest;
use crate::hash::sha256;

/// The characters of base58, by value.
pub const ALPHABET: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Bytes of the hash and of the checksum.
const HASH: usize = 20;
const CHECKSUM: usize = 4;
const BYTES: usize = 1 + HASH + CHECKSUM;

/// The most digits of a number of 25 bytes: 58^34 < 2^200 < 58^35.
const MOST_DIGITS: usize = 35;

/// Bits that follow the version.
const BODY_BITS: u32 = 8 * (HASH + CHECKSUM) as u32;

/// The text of 20 bytes under a version byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base58 {
    version: u8,
    /// 58^0 to 58^34.
    powers: Vec<Number>,
    /// The numbers with this version: with exactly so many leading zero bytes and so many digits, in ascending order.
    classes: Vec<Class>,
}

/// Numbers, version included, whose texts have the same count of leading ones and of digits after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Class {
    zeros: usize,
    digits: usize,
    first: Number,
    last: Number,
}

/// All numbers `hash || checksum`, 192 bits, from the one to the other: those whose texts have so many characters and
/// begin in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Characters of the text.
    pub length: usize,
    first: Number,
    last: Number,
}

impl Range {
    /// The share of all numbers, and so of all keys.
    pub fn share(&self) -> f64 {
        self.last.minus(&self.first).plus_one().to_f64() * (-f64::from(BODY_BITS)).exp2()
    }

    /// The first and the last hash that can have such a text. Each between them does.
    pub fn hashes(&self) -> [[u8; HASH]; 2] {
        [self.first, self.last].map(|number| {
            let bytes = number.to_bytes();
            std::array::from_fn(|i| bytes[32 - HASH - CHECKSUM + i])
        })
    }

    /// The top 64 bits of these hashes.
    pub fn top(&self) -> [u64; 2] {
        // Below 2^192, so the first word is zero and the second the hash's first eight bytes.
        [self.first.0[1], self.last.0[1]]
    }
}

impl Base58 {
    /// The texts with this version.
    pub fn new(version: u8) -> Self {
        let start = Number::from(version).shifted_left(BODY_BITS);
        let end = start.plus(&Number::below_bit(BODY_BITS));
        let last_with = |zeros: usize| Number::below_bit(8 * (BYTES - zeros) as u32);
        let powers = std::iter::successors(Some(Number::from(1)), |power| Some(power.times_58_plus(0)));
        let powers: Vec<Number> = powers.take(MOST_DIGITS).collect();
        let mut classes = Vec::new();
        for zeros in (0..BYTES).rev() {
            for digits in 1..=MOST_DIGITS {
                let power = powers[digits - 1];
                let first = power.max(start).max(last_with(zeros + 1).plus_one());
                let last = power.times_58_plus(0).minus_one().min(end).min(last_with(zeros));
                if first <= last {
                    classes.push(Class { zeros, digits, first, last });
                }
            }
        }
        Self { version, powers, classes }
    }

    /// The text of a digest of 20 bytes.
    pub fn text(&self, digest: &Digest) -> String {
        let mut text = String::new();
        push_checked(&mut text, &[&[self.version], digest.as_bytes()].concat());
        text
    }

    /// The numbers whose texts begin with these characters, by value and in ascending order of numbers. Ranges do not
    /// overlap; none is empty, so none at all means that no text begins so.
    pub fn ranges(&self, prefix: &[u8]) -> Vec<Range> {
        let zeros = prefix.iter().take_while(|&&digit| digit == 0).count();
        let digits = &prefix[zeros..];
        if digits.is_empty() {
            // At least so many zero bytes.
            let classes = self.classes.iter().filter(|class| class.zeros >= zeros);
            return classes.map(|class| self.range(class, class.first, class.last)).collect();
        }
        // After the zeros come these digits and then any: for each count of digits an interval.
        let fits = |class: &&Class| class.zeros == zeros && class.digits >= digits.len();
        let mut classes = self.classes.iter().filter(fits).peekable();
        if classes.peek().is_none() {
            return Vec::new();
        }
        let fixed = digits.iter().fold(Number::from(0), |number, &digit| number.times_58_plus(digit));
        let of_class = |class: &Class| {
            let open = self.powers[class.digits - digits.len()];
            let start = fixed.times(&open);
            let (first, last) = (start.max(class.first), start.plus(&open).minus_one().min(class.last));
            (first <= last).then(|| self.range(class, first, last))
        };
        classes.filter_map(of_class).collect()
    }

    /// The share of keys whose texts begin with these characters.
    pub fn share(&self, prefix: &[u8]) -> f64 {
        self.ranges(prefix).iter().map(Range::share).sum()
    }

    /// Whether some text begins with these characters. Where so many are fixed that a few hashes are left at most, each
    /// is looked at: the checksum may be another.
    pub fn is_possible(&self, prefix: &[u8]) -> bool {
        let fits = |range: Range| {
            let [first, last] = range.hashes();
            let between = Number::of_hash(&last).minus(&Number::of_hash(&first));
            let ends_decide = between <= Number::from(1);
            let begins = |hash: [u8; HASH]| {
                let text = self.text(&Digest::new(&hash));
                prefix
                    .iter()
                    .map(|&value| ALPHABET.as_bytes()[usize::from(value)])
                    .eq(text.bytes().take(prefix.len()))
            };
            !ends_decide || begins(first) || begins(last)
        };
        self.ranges(prefix).into_iter().any(fits)
    }

    /// Every length a text can have with the share of keys that have it, the longest first.
    pub fn lengths(&self) -> Vec<(usize, f64)> {
        let mut lengths: Vec<(usize, f64)> = Vec::new();
        for range in self.ranges(&[]) {
            match lengths.iter_mut().find(|(length, _)| *length == range.length) {
                Some((_, share)) => *share += range.share(),
                None => lengths.push((range.length, range.share())),
            }
        }
        lengths.sort_unstable_by_key(|(length, _)| std::cmp::Reverse(*length));
        lengths
    }

    /// The shortest start of this digest's text that at most one key in 2^bits has.
    pub fn start(&self, digest: &Digest, bits: f64) -> String {
        let text = self.text(digest);
        let values: Vec<u8> = text.bytes().filter_map(value).collect();
        let is_rare = |length: &usize| self.share(&values[..*length]) <= (-bits).exp2();
        let length = (1..text.len()).find(is_rare).unwrap_or(text.len());
        text[..length].to_owned()
    }

    /// Numbers of a class without their version.
    fn range(&self, class: &Class, first: Number, last: Number) -> Range {
        let version = Number::from(self.version).shifted_left(BODY_BITS);
        let length = class.zeros + class.digits;
        Range { length, first: first.minus(&version), last: last.minus(&version) }
    }
}

/// The value of each byte as a character, 255 for those that are none.
const VALUES: [u8; 256] = {
    let mut values = [u8::MAX; 256];
    let mut value = 0;
    while value < ALPHABET.len() {
        values[ALPHABET.as_bytes()[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// The value of a character.
pub fn value(character: u8) -> Option<u8> {
    let value = VALUES[usize::from(character)];
    (value != u8::MAX).then_some(value)
}

/// Version and hash of an address: of a text of 25 bytes, as many leading ones as zero bytes, whose checksum fits. For
/// millions of addresses: five times faster than [`bytes`], which takes texts of any length.
pub fn address_payload(text: &str) -> Option<[u8; 1 + HASH]> {
    if text.len() > MOST_DIGITS {
        return None;
    }
    let mut number = Number::from(0);
    for character in text.bytes() {
        number = number.times_58_plus(value(character)?);
    }
    // 58^35 < 2^206, so the number may have a byte too many.
    let bytes = number.to_bytes();
    let (above, bytes) = bytes.split_at(32 - BYTES);
    let ones = text.bytes().take_while(|&character| character == ALPHABET.as_bytes()[0]).count();
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    if above.iter().any(|&byte| byte != 0) || ones != zeros {
        return None;
    }
    checked_payload(bytes)?.try_into().ok()
}

/// Appends the base58 of `payload` and its checksum, the first four bytes of SHA-256 of SHA-256.
///
/// SEC: `payload` may be a secret key. Everything in between is erased; `text` should have its capacity from the start.
pub fn push_checked(text: &mut String, payload: &[u8]) {
    let mut bytes = Zeroizing::new(Vec::with_capacity(payload.len() + CHECKSUM));
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&checksum(payload));
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    // Long division by 58^5, five digits a pass, from the least significant on: a limb and the rest before it are below
    // 2^62, and a quotient fits a limb again.
    const DIGITS: usize = 5;
    const POWER: u64 = 58u64.pow(DIGITS as u32);
    let mut limbs = Zeroizing::new(Vec::with_capacity(bytes.len().div_ceil(4)));
    limbs.extend(
        bytes.rchunks(4).rev().map(|bytes| bytes.iter().fold(0, |limb, &b| limb << 8 | u32::from(b))),
    );
    let mut digits = Zeroizing::new(Vec::with_capacity(2 * bytes.len() + DIGITS));
    let mut start = 0;
    while start < limbs.len() {
        let mut rest = 0;
        for limb in &mut limbs[start..] {
            let value = rest << 32 | u64::from(*limb);
            *limb = (value / POWER) as u32;
            rest = value % POWER;
        }
        for _ in 0..DIGITS {
            digits.push((rest % 58) as u8);
            rest /= 58;
        }
        start += limbs[start..].iter().take_while(|&&limb| limb == 0).count();
    }
    // The last pass may have brought zeros in front.
    let significant = digits.iter().rposition(|&digit| digit != 0).map_or(0, |last| last + 1);
    digits.truncate(significant);
    let all = std::iter::repeat_n(&0, zeros).chain(digits.iter().rev());
    text.extend(all.map(|&digit| char::from(ALPHABET.as_bytes()[usize::from(digit)])));
}

/// The bytes of a base58 text, checksum included, `None` when it has other characters or too many bytes. At most 128
/// characters are read.
pub fn bytes(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    const MOST: usize = 128;
    if text.len() > MOST {
        return None;
    }
    let zeros = text.bytes().take_while(|&character| character == ALPHABET.as_bytes()[0]).count();
    // Least significant byte first.
    let mut number = Zeroizing::new(Vec::with_capacity(MOST));
    for character in text.bytes() {
        let mut carry = u32::from(value(character)?);
        for byte in number.iter_mut() {
            let value = u32::from(*byte) * 58 + carry;
            *byte = value as u8;
            carry = value >> 8;
        }
        if carry > 0 {
            number.push(carry as u8);
        }
    }
    number.extend(std::iter::repeat_n(0, zeros));
    number.reverse();
    Some(number)
}

/// The payload of a base58 text whose checksum fits.
pub fn checked_payload(bytes: &[u8]) -> Option<&[u8]> {
    let (payload, sum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM)?)?;
    (sum == checksum(payload)).then_some(payload)
}

fn checksum(payload: &[u8]) -> [u8; CHECKSUM] {
    let sum = sha256(&sha256(payload));
    std::array::from_fn(|i| sum[i])
}

#[cfg(test)]
#[path = "base58_tests.rs"]
mod tests;
