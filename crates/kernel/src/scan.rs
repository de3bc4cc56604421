//! Buffers of the scan of a range (`c/walk/scan.h`): every key of a stretch, in one or more forms. One program walks and writes
//! points down, others test them.
//!
//! Centres, scratch and table lie as in [`points`]; entry 0 of the table is `lanes * (2 * group + 1) * G`, since a step moves
//! every lane past the keys of all. The filter buffer is that of [`digest_filter`], or [`fuse_words`]
//! and the fingerprints.

use crate::{Fragment, abi, digest_filter, fragment, points, taproot};

/// Words of a record.
pub const RECORD_WORDS: usize = 12;

/// Words before the fingerprints of a fuse filter.
pub const FUSE_HEADER: usize = 16;

/// What is made of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// The x coordinate.
    X = 0,
    /// HASH160 of the uncompressed key.
    Uncompressed = 1,
    /// HASH160 of the compressed key.
    Compressed = 2,
    /// HASH160 of the script that holds [`Form::Compressed`].
    Script = 3,
    /// The Ethereum account.
    Account = 4,
    /// The x coordinate of the taproot output of the key, by a program of its own.
    Taproot = 5,
}

impl Form {
    /// Every form.
    pub const ALL: [Form; 6] =
        [Form::X, Form::Uncompressed, Form::Compressed, Form::Script, Form::Account, Form::Taproot];

    /// Bytes of its digest.
    pub const fn bytes(self) -> usize {
        if matches!(self, Form::X | Form::Taproot) { 32 } else { 20 }
    }
}

/// Some forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Forms(u32);

impl Forms {
    /// These.
    pub fn of(forms: &[Form]) -> Forms {
        Forms(forms.iter().fold(0, |bits, form| bits | 1 << *form as u32))
    }

    /// Whether all of y is needed, or only whether it is odd.
    pub const fn need_y(self) -> bool {
        self.has(Form::Uncompressed) || self.has(Form::Account) || self.has(Form::Taproot)
    }

    /// Whether this is one of them.
    pub const fn has(self, form: Form) -> bool {
        self.0 >> form as u32 & 1 == 1
    }
}

/// What digests are tested by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanTest {
    /// Intervals of their top 64 bits, few or many.
    Top(digest_filter::DigestTest),
    /// A binary fuse filter of their top 64 bits.
    Fuse {
        /// Bits of a fingerprint, 8 or 16.
        bits: u32,
        /// Whether it has several parts.
        many: bool,
    },
}

/// The programs of a scan: what one writes down, the others test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanPart {
    /// `scan_walk`: the points of a step.
    Walk {
        /// Whether all of y is written down: [`Forms::need_y`].
        keep_y: bool,
    },
    /// `scan_test`: digests of those points. A scan may have several, each for some of the forms.
    Test {
        /// What becomes of a point.
        forms: Forms,
        /// What is tested.
        filter: ScanTest,
        /// Whether all of y was written down.
        keep_y: bool,
    },
    /// `scan_taproot`: taproot outputs of those points, y and all ([`taproot`]).
    Taproot {
        /// What is tested.
        filter: ScanTest,
        /// Bits of a digit of the tweak.
        bits: u32,
    },
}

impl ScanPart {
    pub(crate) const fn entry(self) -> &'static str {
        match self {
            ScanPart::Walk { .. } => "scan_walk",
            ScanPart::Test { .. } => "scan_test",
            ScanPart::Taproot { .. } => "scan_taproot",
        }
    }

    /// # Panics
    ///
    /// With forms that are not tested so, or that need a coordinate that is not there; with a filter that is none.
    pub(crate) fn fragments(self) -> Vec<Fragment> {
        let mut all = points::WRITTEN.to_vec();
        all.push(fragment!("scan.h", "walk/scan.h"));
        match self {
            ScanPart::Walk { .. } => all.push(fragment!("scan_walk.c", "entry/scan_walk.c")),
            ScanPart::Taproot { filter, .. } => {
                all.push(filter.fragment());
                all.extend(taproot::FRAGMENTS);
                all.push(fragment!("scan_taproot.c", "entry/scan_taproot.c"));
            }
            ScanPart::Test { forms, filter, keep_y } => {
                assert!(forms != Forms::default() && !forms.has(Form::Taproot), "not what is tested so");
                assert!(keep_y || !forms.need_y(), "forms that need y, and no y");
                all.push(filter.fragment());
                if [Form::Uncompressed, Form::Compressed, Form::Script].iter().any(|form| forms.has(*form)) {
                    all.extend(points::HASH160);
                }
                if forms.has(Form::Account) {
                    all.extend([fragment!("hash/keccak.h"), fragment!("hash/address.h")]);
                }
                all.push(fragment!("scan_test.c", "entry/scan_test.c"));
            }
        }
        all
    }

    pub(crate) fn defines(self) -> Vec<(&'static str, u32)> {
        let (walks, keep_y) = match self {
            ScanPart::Walk { keep_y } => (true, keep_y),
            ScanPart::Test { keep_y, .. } => (false, keep_y),
            ScanPart::Taproot { .. } => (false, true),
        };
        let mut defines = vec![("MESSAGE_SWAPPED", 0), ("WRITE_POINTS", walks.into())];
        defines.extend([("WRITE_IMAGES", 0), ("WRITE_Y", if keep_y { 2 } else { 1 })]);
        match self {
            ScanPart::Walk { .. } => {}
            ScanPart::Taproot { filter, bits } => {
                defines.extend(taproot::defines(bits));
                defines.extend(filter.defines());
            }
            ScanPart::Test { forms, filter, .. } => {
                let has = |form| forms.has(form).into();
                defines.extend([
                    ("SCAN_X", has(Form::X)),
                    ("SCAN_UNCOMPRESSED", has(Form::Uncompressed)),
                    ("SCAN_COMPRESSED", has(Form::Compressed)),
                    ("SCAN_SCRIPT", has(Form::Script)),
                    ("SCAN_ACCOUNT", has(Form::Account)),
                ]);
                defines.extend(filter.defines());
            }
        }
        defines
    }
}

impl ScanTest {
    /// # Panics
    ///
    /// With terms or a score, or a fuse filter of any other width.
    fn fragment(self) -> Fragment {
        match self {
            ScanTest::Top(shape) => {
                assert!(!shape.terms && shape.score.is_none(), "a scan tests the top of digests only");
                fragment!("filter/digest.h")
            }
            ScanTest::Fuse { bits, .. } => {
                assert!([8, 16].contains(&bits), "no fuse filter of {bits} bits");
                fragment!("filter/fuse.h")
            }
        }
    }

    fn defines(self) -> Vec<(&'static str, u32)> {
        match self {
            ScanTest::Top(shape) => shape.defines(),
            ScanTest::Fuse { bits, many } => vec![("FUSE_BITS", bits), ("FUSE_MANY", many.into())],
        }
    }
}

/// Bytes of the points of a lane.
pub const fn points_bytes(group: u32, keep_y: bool) -> u64 {
    (2 * group as u64 + 1) * if keep_y { 64 } else { 36 }
}

/// A part of a fuse filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FusePart {
    /// Where its fingerprints begin, in words after the header.
    pub first: u32,
    /// Added to a key before it is mixed.
    pub seed: u64,
    /// Fingerprints of a segment, a power of two.
    pub segment_length: u32,
    /// Fingerprints of all segments but the last two.
    pub segment_count_length: u32,
}

/// The words before the fingerprints of a fuse filter with these parts, one at least. `many` of the program says whether there
/// are several.
pub fn fuse_words(parts: &[FusePart]) -> Vec<u32> {
    let header = |part: &FusePart| {
        let mut words = [0; FUSE_HEADER];
        words[..6].copy_from_slice(&[
            part.seed as u32,
            (part.seed >> 32) as u32,
            part.segment_length,
            part.segment_count_length,
            part.first,
            parts.len() as u32,
        ]);
        words
    };
    let after = if parts.len() > 1 { parts } else { &[] };
    parts[..1].iter().chain(after).flat_map(header).collect()
}

/// Words of a hit buffer with room for `capacity` records.
pub const fn hits_words(capacity: u32) -> usize {
    abi::HITS_HEADER + RECORD_WORDS * capacity as usize
}

/// A key that passed: with the first centre c0 of step 0 it is `c0 + (step * lanes + lane) * (2 * group + 1)` plus or
/// minus the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Passed {
    /// The lane.
    pub lane: u32,
    /// The step, as the host numbers them.
    pub step: u32,
    /// The table entry, or 0 for the centre itself.
    pub index: u32,
    /// Whether the entry was taken off the centre instead of added.
    pub minus: bool,
    /// In which form.
    pub form: Form,
    /// Whether the device could not form the digest: the host has to look whether it is wanted.
    pub open: bool,
    /// The digest in that form, most significant word first, zeros behind.
    pub digest: [u32; 8],
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanRecord {
    /// A key passed.
    Passed(Passed),
    /// The lane's group held two equal points. What was tested of it in this step means nothing, and its centre is
    /// still that of the step.
    Fault {
        /// The lane.
        lane: u32,
        /// The step, as the host numbers them.
        step: u32,
    },
}

impl ScanRecord {
    /// Reads a record; none if it is of no known form.
    pub fn read(words: &[u32; RECORD_WORDS]) -> Option<ScanRecord> {
        let [lane, step, code, form, digest @ ..] = *words;
        if code == abi::CODE_FAULT {
            return Some(ScanRecord::Fault { lane, step });
        }
        let form = Form::ALL.into_iter().find(|known| *known as u32 == form)?;
        let (index, minus, open) = (code & 0xffff, code >> 16 & 1 == 1, code >> 22 & 1 == 1);
        Some(ScanRecord::Passed(Passed { lane, step, index, minus, form, open, digest }))
    }
}
