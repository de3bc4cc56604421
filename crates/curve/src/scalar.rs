//! Integers modulo n, the order of the group: the offsets at which keys lie from an origin.
//!
//! Variable time, for public offsets. Private keys are added and multiplied by libsecp256k1, not here.

use std::fmt;

/// The limbs of n, least significant first.
const N: [u64; 4] =
    [0xbfd2_5e8c_d036_4141, 0xbaae_dce6_af48_a03b, 0xffff_ffff_ffff_fffe, 0xffff_ffff_ffff_ffff];
/// 2^256 - n, a 129-bit number.
const FOLD: [u64; 3] = [0x402d_a173_2fc9_bebf, 0x4551_2319_50b7_5fc4, 1];

/// An integer modulo n, always in 0..n: four limbs, least significant first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scalar([u64; 4]);

/// `a - b` and whether it borrowed.
const fn sub(a: [u64; 4], b: [u64; 4]) -> ([u64; 4], bool) {
    let mut out = [0; 4];
    let mut borrow = false;
    let mut i = 0;
    while i < 4 {
        let (d, b1) = a[i].overflowing_sub(b[i]);
        let (d, b2) = d.overflowing_sub(borrow as u64);
        out[i] = d;
        borrow = b1 | b2;
        i += 1;
    }
    (out, borrow)
}

impl Scalar {
    /// Zero.
    pub const ZERO: Scalar = Scalar([0; 4]);
    /// One.
    pub const ONE: Scalar = Scalar([1, 0, 0, 0]);
    /// The cube root of unity that belongs to [`crate::Fe::BETA`]: lambda * (x, y) = (beta * x, y).
    pub const LAMBDA: Scalar =
        Scalar([0xdf02_967c_1b23_bd72, 0x122e_22ea_2081_6678, 0xa526_1c02_8812_645a, 0x5363_ad4c_c05c_30e0]);

    /// A small integer.
    pub const fn from_u64(value: u64) -> Scalar {
        Scalar([value, 0, 0, 0])
    }

    /// A 128-bit integer.
    pub const fn from_u128(value: u128) -> Scalar {
        Scalar([value as u64, (value >> 64) as u64, 0, 0])
    }

    /// The value of big-endian bytes; none if it is n or more.
    pub fn from_be_bytes(bytes: &[u8; 32]) -> Option<Scalar> {
        let mut limbs = [0; 4];
        for (limb, chunk) in limbs.iter_mut().rev().zip(bytes.chunks_exact(8)) {
            let mut b = [0; 8];
            b.copy_from_slice(chunk);
            *limb = u64::from_be_bytes(b);
        }
        sub(limbs, N).1.then_some(Scalar(limbs))
    }

    /// Big-endian bytes.
    pub fn to_be_bytes(self) -> [u8; 32] {
        let mut out = [0; 32];
        for (chunk, limb) in out.chunks_exact_mut(8).zip(self.0.iter().rev()) {
            chunk.copy_from_slice(&limb.to_be_bytes());
        }
        out
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self == Scalar::ZERO
    }

    /// The sum.
    #[expect(clippy::should_implement_trait, reason = "named like its field twin")]
    pub fn add(self, other: Scalar) -> Scalar {
        let mut limbs = [0; 4];
        let mut carry = 0u128;
        for (i, limb) in limbs.iter_mut().enumerate() {
            let t = self.0[i] as u128 + other.0[i] as u128 + carry;
            *limb = t as u64;
            carry = t >> 64;
        }
        let (less, borrow) = sub(limbs, N);
        // Below 2n: one subtraction of n, due when the sum passed 2^256 or reaches n.
        Scalar(if carry == 1 || !borrow { less } else { limbs })
    }

    /// The additive inverse.
    pub fn negate(self) -> Scalar {
        if self.is_zero() { self } else { Scalar(sub(N, self.0).0) }
    }

    /// The difference.
    #[expect(clippy::should_implement_trait, reason = "named like its field twin")]
    pub fn sub(self, other: Scalar) -> Scalar {
        self.add(other.negate())
    }

    /// The product.
    #[expect(clippy::should_implement_trait, reason = "named like its field twin")]
    pub fn mul(self, other: Scalar) -> Scalar {
        let mut wide = [0u64; 8];
        multiply_into(&mut wide, &self.0, &other.0);
        // high * 2^256 + low = high * FOLD + low; high shrinks from 256 to 130, 3 and 0 bits.
        while wide[4..].iter().any(|&l| l != 0) {
            let high = [wide[4], wide[5], wide[6], wide[7]];
            let mut next = [wide[0], wide[1], wide[2], wide[3], 0, 0, 0, 0];
            multiply_into(&mut next, &high, &FOLD);
            wide = next;
        }
        let low = [wide[0], wide[1], wide[2], wide[3]];
        let (less, borrow) = sub(low, N);
        Scalar(if borrow { low } else { less })
    }

    /// lambda to the power `exponent`, which counts modulo 3.
    pub fn lambda_power(exponent: u8) -> Scalar {
        match exponent % 3 {
            0 => Scalar::ONE,
            1 => Scalar::LAMBDA,
            // 1 + lambda + lambda^2 = 0.
            _ => Scalar::ONE.add(Scalar::LAMBDA).negate(),
        }
    }

    /// The bits, most significant first.
    pub(crate) fn bits(self) -> impl Iterator<Item = bool> {
        self.0.into_iter().rev().flat_map(|limb| (0..64).rev().map(move |i| limb >> i & 1 == 1))
    }
}

/// `acc += a * b`, which must fit.
fn multiply_into(acc: &mut [u64; 8], a: &[u64], b: &[u64]) {
    for (i, &x) in a.iter().enumerate() {
        let mut carry = 0u128;
        for k in i..8 {
            let y = b.get(k - i).copied().unwrap_or(0);
            let t = acc[k] as u128 + x as u128 * y as u128 + carry;
            acc[k] = t as u64;
            carry = t >> 64;
        }
        debug_assert!(carry == 0);
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scalar(")?;
        for byte in self.to_be_bytes() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}
