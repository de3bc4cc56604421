//! The field of integers modulo p = 2^256 - 2^32 - 977, one element at a time, in portable Rust.
//!
//! An element is *weak*: any 256-bit value stands for its residue, so p..2^256-1 are second names of
//! 0..2^32+976. Every operation takes weak operands and returns a weak result; only [`Fe::canonical`],
//! [`Fe::to_be_bytes`] and comparisons look at the residue itself. All of it is variable time: search sees
//! public points only, secret scalars never come here.

pub(crate) mod bloom;
pub mod chains;
pub mod dispatch;
#[cfg(target_arch = "x86_64")]
pub mod ifma;
mod inverse;
pub mod lanes;
pub mod leading;
pub mod term;

/// 2^256 mod p.
const FOLD: u64 = 0x1_0000_03d1;

/// The limbs of p, least significant first.
const P: [u64; 4] = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];

/// A field element: four 64-bit limbs, least significant first, weak (see the module).
#[derive(Clone, Copy, Debug)]
pub struct Fe(pub(crate) [u64; 4]);

/// `acc + a * b + carry` as (low, high): at most (2^64-1)^2 + 2*(2^64-1) = 2^128 - 1, so nothing is lost.
#[inline(always)]
const fn mac(acc: u64, a: u64, b: u64, carry: u64) -> (u64, u64) {
    let t = acc as u128 + a as u128 * b as u128 + carry as u128;
    (t as u64, (t >> 64) as u64)
}

impl Fe {
    /// The additive identity.
    pub const ZERO: Fe = Fe([0; 4]);
    /// The multiplicative identity.
    pub const ONE: Fe = Fe([1, 0, 0, 0]);
    /// A primitive cube root of unity: (beta*x, y) is the endomorphism's image of (x, y).
    pub const BETA: Fe =
        Fe([0xc139_6c28_7195_01ee, 0x9cf0_4975_12f5_8995, 0x6e64_479e_ac34_34e9, 0x7ae9_6a2b_657c_0710]);

    /// A small integer.
    pub const fn from_u64(value: u64) -> Fe {
        Fe([value, 0, 0, 0])
    }

    /// The value of big-endian bytes, taken modulo p.
    pub fn from_be_bytes(bytes: &[u8; 32]) -> Fe {
        let limb = |i: usize| {
            let mut b = [0; 8];
            b.copy_from_slice(&bytes[i..i + 8]);
            u64::from_be_bytes(b)
        };
        Fe([limb(24), limb(16), limb(8), limb(0)])
    }

    /// The canonical residue as big-endian bytes.
    pub fn to_be_bytes(self) -> [u8; 32] {
        let words = self.to_words();
        let mut out = [0; 32];
        for (chunk, word) in out.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        out
    }

    /// The canonical residue as four words, most significant first: the order in which filters read digests.
    #[inline]
    pub fn to_words(self) -> [u64; 4] {
        let [a, b, c, d] = self.canonical().0;
        [d, c, b, a]
    }

    /// The value of four words, most significant first, taken modulo p.
    pub const fn from_words(words: &[u64; 4]) -> Fe {
        let [d, c, b, a] = *words;
        Fe([a, b, c, d])
    }

    /// The same residue in 0..p. One subtraction is enough, since 2^256 < 2p.
    #[inline]
    pub const fn canonical(self) -> Fe {
        // v >= p exactly when v + FOLD carries out of 256 bits, and then v - p is what remains.
        let (l0, carry) = self.0[0].overflowing_add(FOLD);
        let (l1, carry) = self.0[1].overflowing_add(carry as u64);
        let (l2, carry) = self.0[2].overflowing_add(carry as u64);
        let (l3, carry) = self.0[3].overflowing_add(carry as u64);
        if carry { Fe([l0, l1, l2, l3]) } else { self }
    }

    /// Whether the residue is zero: 0 or its second name p.
    #[inline]
    pub const fn is_zero(self) -> bool {
        let l = self.0;
        (l[0] | l[1] | l[2] | l[3]) == 0 || (l[0] == P[0] && l[1] == P[1] && l[2] == P[2] && l[3] == P[3])
    }

    /// Whether the canonical residue is odd.
    #[inline]
    pub const fn is_odd(self) -> bool {
        self.canonical().0[0] & 1 == 1
    }

    /// Adds `carry * 2^256`, `carry` being 0 or 1, back in as `carry * FOLD`.
    #[inline(always)]
    const fn fold_bit(l: [u64; 4], carry: bool) -> Fe {
        let (l0, c) = l[0].overflowing_add(if carry { FOLD } else { 0 });
        let (l1, c) = l[1].overflowing_add(c as u64);
        let (l2, c) = l[2].overflowing_add(c as u64);
        let (l3, c) = l[3].overflowing_add(c as u64);
        // A second carry leaves a value below FOLD, so adding FOLD once more ends it within the low limb pair.
        let (l0, c) = l0.overflowing_add(if c { FOLD } else { 0 });
        Fe([l0, l1.wrapping_add(c as u64), l2, l3])
    }

    /// The sum.
    #[inline]
    pub const fn add(self, other: Fe) -> Fe {
        let (a, b) = (self.0, other.0);
        let (l0, c) = a[0].overflowing_add(b[0]);
        let (l1, c) = carrying_add(a[1], b[1], c);
        let (l2, c) = carrying_add(a[2], b[2], c);
        let (l3, c) = carrying_add(a[3], b[3], c);
        Fe::fold_bit([l0, l1, l2, l3], c)
    }

    /// The difference.
    #[inline]
    pub const fn sub(self, other: Fe) -> Fe {
        let (a, b) = (self.0, other.0);
        let (l0, c) = a[0].overflowing_sub(b[0]);
        let (l1, c) = borrowing_sub(a[1], b[1], c);
        let (l2, c) = borrowing_sub(a[2], b[2], c);
        let (l3, c) = borrowing_sub(a[3], b[3], c);
        // A borrow stands for -2^256 = -FOLD mod p. Taking FOLD off can borrow once more only from a value
        // below FOLD, whose upper limbs then read all ones; taking it off again cannot.
        let (l0, c) = l0.overflowing_sub(if c { FOLD } else { 0 });
        let (l1, c) = l1.overflowing_sub(c as u64);
        let (l2, c) = l2.overflowing_sub(c as u64);
        let (l3, c) = l3.overflowing_sub(c as u64);
        let (l0, c) = l0.overflowing_sub(if c { FOLD } else { 0 });
        Fe([l0, l1.wrapping_sub(c as u64), l2, l3])
    }

    /// The additive inverse.
    #[inline]
    pub const fn negate(self) -> Fe {
        Fe::ZERO.sub(self)
    }

    /// Takes a 512-bit value, least significant limb first, to 256 bits: 4 + 1 products.
    #[inline(always)]
    const fn reduce(t: [u64; 8]) -> Fe {
        // low + high * FOLD: below 2^256 + 2^256 * 2^33, so the fifth limb stays below 2^34.
        let (l0, c) = mac(t[0], t[4], FOLD, 0);
        let (l1, c) = mac(t[1], t[5], FOLD, c);
        let (l2, c) = mac(t[2], t[6], FOLD, c);
        let (l3, c) = mac(t[3], t[7], FOLD, c);
        // c * FOLD < 2^67: two limbs.
        let (l0, c) = mac(l0, c, FOLD, 0);
        let (l1, c) = l1.overflowing_add(c);
        let (l2, c) = l2.overflowing_add(c as u64);
        let (l3, c) = l3.overflowing_add(c as u64);
        // After a carry the value is below 2^67, so one more FOLD ends within two limbs.
        let (l0, c) = l0.overflowing_add(if c { FOLD } else { 0 });
        Fe([l0, l1.wrapping_add(c as u64), l2, l3])
    }

    /// The product: 16 + 5 limb products.
    #[inline]
    pub const fn mul(self, other: Fe) -> Fe {
        self.mul_add(other, Fe::ZERO)
    }

    /// `self * other + addend`, reduced once: below 2^512, since (2^256 - 1)^2 + 2^256 - 1 is.
    #[inline(always)]
    pub(crate) const fn mul_add(self, other: Fe, addend: Fe) -> Fe {
        let (a, b) = (self.0, other.0);
        let d = addend.0;
        let mut t = [d[0], d[1], d[2], d[3], 0, 0, 0, 0];
        let mut i = 0;
        while i < 4 {
            let mut carry;
            (t[i], carry) = mac(t[i], a[i], b[0], 0);
            (t[i + 1], carry) = mac(t[i + 1], a[i], b[1], carry);
            (t[i + 2], carry) = mac(t[i + 2], a[i], b[2], carry);
            (t[i + 3], carry) = mac(t[i + 3], a[i], b[3], carry);
            t[i + 4] = carry;
            i += 1;
        }
        Fe::reduce(t)
    }

    /// The square: 10 + 5 limb products.
    #[inline]
    pub const fn square(self) -> Fe {
        let a = self.0;
        // The six products of different limbs, below 2^511 together, so doubling them cannot overflow.
        let (t1, c) = mac(0, a[0], a[1], 0);
        let (t2, c) = mac(0, a[0], a[2], c);
        let (t3, t4) = mac(0, a[0], a[3], c);
        let (t3, c) = mac(t3, a[1], a[2], 0);
        let (t4, t5) = mac(t4, a[1], a[3], c);
        let (t5, t6) = mac(t5, a[2], a[3], 0);
        let t7 = t6 >> 63;
        let t6 = t6 << 1 | t5 >> 63;
        let t5 = t5 << 1 | t4 >> 63;
        let t4 = t4 << 1 | t3 >> 63;
        let t3 = t3 << 1 | t2 >> 63;
        let t2 = t2 << 1 | t1 >> 63;
        let t1 = t1 << 1;
        // The four squares on the diagonal, two limbs each.
        let (t0, c) = mac(0, a[0], a[0], 0);
        let (t1, c) = t1.overflowing_add(c);
        let (t2, h) = mac(t2, a[1], a[1], c as u64);
        let (t3, c) = t3.overflowing_add(h);
        let (t4, h) = mac(t4, a[2], a[2], c as u64);
        let (t5, c) = t5.overflowing_add(h);
        let (t6, h) = mac(t6, a[3], a[3], c as u64);
        Fe::reduce([t0, t1, t2, t3, t4, t5, t6, t7 + h])
    }

    /// `self` squared `n` times.
    #[inline]
    fn square_times(mut self, n: u32) -> Fe {
        for _ in 0..n {
            self = self.square();
        }
        self
    }

    /// The inverse, zero for zero.
    pub fn invert(self) -> Fe {
        inverse::inverse(self)
    }

    /// A square root, where there is one: the power (p+1)/4, since p = 3 mod 4.
    pub fn sqrt(self) -> Option<Fe> {
        // (p+1)/4 = 2^254 - 2^30 - 244: 223 ones, a zero, 22 ones, 00001100.
        let x2 = self.square().mul(self);
        let x3 = x2.square().mul(self);
        let x6 = x3.square_times(3).mul(x3);
        let x9 = x6.square_times(3).mul(x3);
        let x11 = x9.square_times(2).mul(x2);
        let x22 = x11.square_times(11).mul(x11);
        let x44 = x22.square_times(22).mul(x22);
        let x88 = x44.square_times(44).mul(x44);
        let x176 = x88.square_times(88).mul(x88);
        let x220 = x176.square_times(44).mul(x44);
        let x223 = x220.square_times(3).mul(x3);
        let root = x223.square_times(23).mul(x22).square_times(6).mul(x2).square_times(2);
        (root.square() == self).then_some(root)
    }

    /// Inverts every element of a slice with one inversion and three products each; zeros stay zero.
    pub fn invert_all(values: &mut [Fe]) {
        let mut before = Vec::with_capacity(values.len());
        let mut product = Fe::ONE;
        for &v in values.iter() {
            before.push(product);
            if !v.is_zero() {
                product = product.mul(v);
            }
        }
        let mut inverse = product.invert();
        for (v, before) in values.iter_mut().zip(before).rev() {
            if !v.is_zero() {
                let own = inverse.mul(before);
                inverse = inverse.mul(*v);
                *v = own;
            }
        }
    }
}

#[inline(always)]
const fn carrying_add(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let (s, c1) = a.overflowing_add(b);
    let (s, c2) = s.overflowing_add(carry as u64);
    (s, c1 | c2)
}

#[inline(always)]
const fn borrowing_sub(a: u64, b: u64, borrow: bool) -> (u64, bool) {
    let (s, c1) = a.overflowing_sub(b);
    let (s, c2) = s.overflowing_sub(borrow as u64);
    (s, c1 | c2)
}

impl PartialEq for Fe {
    fn eq(&self, other: &Fe) -> bool {
        self.canonical().0 == other.canonical().0
    }
}

impl Eq for Fe {}
