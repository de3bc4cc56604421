//! Buffers of the point walk (`c/walk/written.h`): whole points, hashed or not. One program walks and writes points down, another
//! tests them; taproot has one program for both.
//!
//! Centres and hits lie as in [`abi`]. A key is `lambda^image * (centre +- index)` or its negative.

use crate::{Fragment, abi, fragment, taproot};

/// Words of a table entry: x, then y, least significant word first. Entry 0 is the step point, entry i is i * G.
pub const TABLE_WORDS: usize = 16;

/// HASH160 and what it is made of.
pub(crate) const HASH160: [Fragment; 3] =
    [fragment!("hash/sha256.h"), fragment!("hash/ripemd160.h"), fragment!("hash/hash160.h")];

/// What programs that write points down or read them have.
pub(crate) const WRITTEN: [Fragment; 3] = [
    fragment!("points.h", "walk/points.h"),
    fragment!("hasty.h", "field/lazy_carry.h"),
    fragment!("written.h", "walk/written.h"),
];

/// What the filter sees of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Digest {
    /// The x coordinate, 8 words. y is not computed, so a point has three keys, each up to its sign.
    X,
    /// The Ethereum account, 5 words.
    Account,
    /// The contract which that account creates at the nonce of [`create_words`], 5 words.
    Contract,
    /// RIPEMD-160 of SHA-256 of the compressed key, 5 words. y is not computed: of a key and its negative, which
    /// [`abi::Hit::negate`] tells apart otherwise, it says here whether it is the one whose y is odd.
    Hash160,
    /// The same of the script that holds such a hash, 5 words; `negate` as for [`Digest::Hash160`].
    ScriptHash160,
    /// RIPEMD-160 of SHA-256 of the uncompressed key, 5 words.
    Hash160Uncompressed,
    /// The x coordinate of the taproot output of the key, 8 words, by a program of its own ([`taproot`]). Three keys, each
    /// up to its sign.
    Taproot {
        /// Bits of a digit of the tweak.
        bits: u32,
    },
}

impl Digest {
    /// Keys of a point: three images, and where y or its parity counts two signs.
    pub const fn keys(self) -> u64 {
        match self {
            Self::X | Self::Taproot { .. } => 3,
            _ => 6,
        }
    }

    /// Words of the digest.
    pub const fn words(self) -> usize {
        match self {
            Self::X | Self::Taproot { .. } => 8,
            _ => 5,
        }
    }

    /// Whether [`abi::Hit::negate`] says that the key's y is odd, instead of that the key is the negative.
    pub const fn tells_parity(self) -> bool {
        matches!(self, Self::Hash160 | Self::ScriptHash160)
    }

    pub(crate) fn fragments(self) -> Vec<Fragment> {
        let own = match self {
            Self::X => vec![fragment!("digest/x.h")],
            Self::Account | Self::Contract => {
                vec![fragment!("hash/keccak.h"), fragment!("hash/address.h"), fragment!("digest/account.h")]
            }
            Self::Hash160 | Self::ScriptHash160 | Self::Hash160Uncompressed => {
                HASH160.into_iter().chain([fragment!("digest/hash160.h")]).collect()
            }
            Self::Taproot { .. } => taproot::FRAGMENTS.to_vec(),
        };
        if let Self::Taproot { .. } = self {
            let walk = vec![
                fragment!("points.h", "walk/points.h"),
                fragment!("one_by_one.h", "walk/one_by_one.h"),
                fragment!("filter/score.h"),
                fragment!("filter/digest.h"),
            ];
            return [walk, own, vec![fragment!("taproot.c", "entry/taproot.c")]].concat();
        }
        let test = vec![fragment!("points_test.c", "entry/points_test.c")];
        [WRITTEN.to_vec(), vec![fragment!("filter/score.h"), fragment!("filter/digest.h")], own, test]
            .concat()
    }

    /// The program that writes points down for the one that makes these digests.
    ///
    /// # Panics
    ///
    /// For taproot, whose program walks by itself.
    pub(crate) fn walk_fragments(self) -> Vec<Fragment> {
        assert!(!matches!(self, Self::Taproot { .. }), "taproot walks by itself");
        [WRITTEN.to_vec(), vec![fragment!("points_walk.c", "entry/points_walk.c")]].concat()
    }

    /// The name of the entry point.
    pub(crate) const fn entry(self) -> &'static str {
        match self {
            Self::Taproot { .. } => "taproot_walk",
            _ => "points_test",
        }
    }

    /// Whether all of y is needed.
    const fn needs_y(self) -> bool {
        matches!(self, Self::Account | Self::Contract | Self::Hash160Uncompressed)
    }

    /// Bytes that are written down of a point. Where all that is done with x is to test it, images are made by who tests.
    pub const fn written_bytes(self) -> u64 {
        match self {
            Self::X => 32,
            _ => 32 * (3 + if self.needs_y() { 2 } else { 0 }),
        }
    }

    /// Defines of how points are written down, for who writes them or who reads them.
    pub(crate) fn written(self, write: bool) -> Vec<(&'static str, u32)> {
        let keccak = matches!(self, Self::Account | Self::Contract);
        vec![
            ("MESSAGE_SWAPPED", keccak.into()),
            ("WRITE_POINTS", write.into()),
            ("WRITE_IMAGES", (self != Self::X).into()),
            ("WRITE_Y", if self.needs_y() { 2 } else { 0 }),
        ]
    }

    pub(crate) fn defines(self) -> Vec<(&'static str, u32)> {
        let mut defines = vec![
            ("DIGEST_WORDS", self.words() as u32),
            ("DIGEST_CREATE", (self == Self::Contract).into()),
            ("DIGEST_SCRIPT", (self == Self::ScriptHash160).into()),
            ("DIGEST_WHOLE", (self == Self::Hash160Uncompressed).into()),
            ("POINT_SIGNS", self.keys() as u32 / 3),
        ];
        defines.extend(match self {
            Self::Taproot { bits } => taproot::defines(bits),
            _ => self.written(false),
        });
        defines
    }
}

/// Keys a lane tests in one step: those of the centre and of two points an entry.
pub const fn keys_per_step(digest: Digest, group: u32) -> u64 {
    digest.keys() * (2 * group as u64 + 1)
}

/// Words of the scratch buffer: prefix products, and four elements a lane keeps. The device alone uses it.
pub const fn scratch_words(group: u32, lanes: u32) -> usize {
    abi::scratch_words(group + 4, lanes)
}

/// The words of a table entry.
pub fn entry(x: &[u32; 8], y: &[u32; 8]) -> [u32; TABLE_WORDS] {
    std::array::from_fn(|i| if i < 8 { x[i] } else { y[i - 8] })
}

/// The params buffer of [`Digest::Contract`], and four words other digests ignore: what stands around the account in
/// `rlp([account, nonce])`, with the first byte of Keccak's padding behind it.
///
/// The list has a head byte 0xc0 + length; the account is a string of 20 bytes, head 0x94; a nonce below 0x80
/// is its own byte, but 0 the empty string 0x80; a larger one its bytes without leading zeros behind 0x80 + length.
pub fn create_words(nonce: u64) -> [u32; 4] {
    let bytes = nonce.to_be_bytes();
    let bytes = &bytes[(nonce.leading_zeros() / 8) as usize..];
    let mut tail = match bytes {
        [byte @ 1..=0x7f] => vec![*byte],
        bytes => [&[0x80 + bytes.len() as u8], bytes].concat(),
    };
    let length = 21 + tail.len() as u32;
    tail.push(0x01);
    tail.resize(10, 0);
    let word = |i: usize| u32::from_le_bytes(std::array::from_fn(|b| tail[i + b]));
    let first = u32::from(tail[0]) << 16 | u32::from(tail[1]) << 24;
    [0x9400 | (0xc0 + length), first, word(2), word(6)]
}
