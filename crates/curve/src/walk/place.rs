//! Where keys lie in a walk, and how many there are.

use crate::{Fe, Scalar};

/// Where a key lies in a walk. The key itself is lambda^image * (origin of its lane + offset), or minus that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The parallel walker.
    pub lane: u32,
    /// The group of that walker.
    pub step: u64,
    /// The table entry; 0 is the centre itself.
    pub index: u32,
    /// Whether the entry is subtracted.
    pub minus: bool,
    /// The power of lambda on the entry.
    pub orbit: u8,
    /// The power of lambda on the sum.
    pub image: u8,
    /// Whether the key is the negative of that: another text where y counts, the same where only x does.
    pub negate: bool,
}

impl Place {
    /// What is added to the scalar of its lane's first point before the image: the centre's way plus or minus
    /// lambda^orbit * index. `half` is the number of table entries.
    pub fn offset(&self, half: u32) -> Scalar {
        let centre = Scalar::from_u128(self.step as u128 * (2 * half as u128 + 1));
        let entry = Scalar::lambda_power(self.orbit).mul(Scalar::from_u64(self.index as u64));
        if self.minus { centre.sub(entry) } else { centre.add(entry) }
    }
}

/// A key that passed the sieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Where it lies.
    pub place: Place,
    /// Its x coordinate, where the sieve formed it.
    pub x: Option<Fe>,
}

/// Keys tested with one table entry: six points, three images each.
pub const KEYS_PER_ENTRY: u64 = 18;
/// Keys tested at a centre: three images.
pub const KEYS_PER_CENTRE: u64 = 3;
