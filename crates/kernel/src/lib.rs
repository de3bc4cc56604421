//! Device source text and its memory layout.
//!
//! One text for CUDA (NVRTC), OpenCL C 1.2 and host C11: [`join`] puts the fragments of `c/` together under
//! the defines of a [`Spec`]. [`abi`] says how the buffers look. This crate knows no vendor API, no key and
//! no pattern.

pub mod abi;
pub mod digest_filter;
mod embedded;
pub mod moves;
pub mod pir;
pub mod points;
pub mod salts;
pub mod scan;
pub mod set;
pub mod taproot;

pub use embedded::{embedded, shipped};

/// Where the table of multiples of G lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TablePlace {
    /// Constant memory: on CUDA the symbol `search_table`, on OpenCL a `__constant` argument. At most 64 KiB.
    Constant,
    /// A read-only global buffer, an argument everywhere.
    Global,
}

/// What the device tests; changes the code's shape, while the values travel in the filter buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XTest {
    /// Up to four intervals of the top word.
    Range {
        /// How many, 1 to 4.
        count: u32,
    },
    /// Many intervals ([`set`]): a bitmap in the walk, and a second kernel that settles what survives it.
    Set {
        /// Whether the bitmap is small enough for shared memory ([`set::NEAR_BITS`]).
        near: bool,
    },
}

/// How far the search goes: for telling what its parts cost. Only a whole one finds keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Walks, and folds each product into a word that the filter sees.
    Walk,
    /// Also computes the top words, and folds those.
    Words,
    /// Everything.
    Whole,
}

/// What a search walks over, and what it makes of each candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// Keys by their x coordinate alone, 18 an entry of the table: `search_walk`, tested by [`Spec::filter`].
    Orbit,
    /// Writes down whole points: `points_walk` ([`points`]).
    PointsWalk {
        /// What will become of them.
        digest: points::Digest,
    },
    /// Keys by their whole point: `points_test`, or for taproot `taproot_walk` ([`points`]).
    Points {
        /// What becomes of a point.
        digest: points::Digest,
        /// What is tested.
        filter: digest_filter::DigestTest,
    },
    /// Every key of a range: `scan_walk`, `scan_test` or `scan_taproot` ([`scan`]).
    Scan(scan::ScanPart),
    /// Salts of CREATE2 and CREATE3: `salts_walk` ([`salts`]).
    Salts {
        /// What becomes of a salt.
        stages: salts::Stages,
        /// What is tested.
        filter: digest_filter::DigestTest,
    },
}

impl Program {
    /// The name of the entry point.
    pub const fn entry(&self) -> &'static str {
        match self {
            Self::Orbit => "search_walk",
            Self::PointsWalk { .. } => "points_walk",
            Self::Points { digest, .. } => digest.entry(),
            Self::Scan(part) => part.entry(),
            Self::Salts { .. } => "salts_walk",
        }
    }

    /// Words of a table entry; 0 without a table.
    const fn entry_words(&self) -> usize {
        match self {
            Self::Orbit => abi::TABLE_WORDS,
            Self::PointsWalk { .. }
            | Self::Points { digest: points::Digest::Taproot { .. }, .. }
            | Self::Scan(scan::ScanPart::Walk { .. }) => points::TABLE_WORDS,
            Self::Points { .. } | Self::Scan(_) | Self::Salts { .. } => 0,
        }
    }
}

/// All that changes the code's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// What is searched.
    pub program: Program,
    /// Whether the compiler takes PTX assembly (NVRTC, NVIDIA's OpenCL).
    pub ptx: bool,
    /// Table entries of a group, at most [`abi::GROUP_MAX`]; the orbit walk has `18 * group + 3` keys a step.
    pub group: u32,
    /// Lanes of a block, a power of two.
    pub block: u32,
    /// Blocks a multiprocessor should hold: bounds the registers of a lane on CUDA.
    pub blocks: u32,
    /// Where the table lies.
    pub table: TablePlace,
    /// Whether a block shares one inversion through shared memory, or each lane does its own.
    pub shared_inversion: bool,
    /// Whether multiplication gathers products by weight and counts carries, or goes by rows with carry-ins.
    pub count_carries: bool,
    /// Orbit walk and scan: whether the two signs of an entry are unrolled: more parallel work, more registers and code.
    pub unroll_signs: bool,
    /// Orbit walk: what is tested.
    pub filter: XTest,
    /// Whether helper functions are inlined: faster, where the compiler gets through it in bearable time.
    pub inline: bool,
    /// Orbit walk: how far the search goes.
    pub stage: Stage,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            program: Program::Orbit,
            ptx: true,
            group: 256,
            block: 128,
            blocks: 4,
            table: TablePlace::Constant,
            shared_inversion: true,
            count_carries: false,
            unroll_signs: false,
            filter: XTest::Range { count: 1 },
            inline: true,
            stage: Stage::Whole,
        }
    }
}

impl Spec {
    /// The shape in which the field is timed on a card: as many lanes as the registers of one chain allow (H200:
    /// 102.7 G mul/s with 12 blocks a multiprocessor, 99.6 with 8).
    pub fn field() -> Spec {
        Spec { block: 128, blocks: 12, ..Spec::default() }
    }
}

/// A text ready for a compiler.
#[derive(Clone, Debug)]
pub struct Source {
    /// The joined text.
    pub text: String,
    /// FNV-1a, 128 bits, of the text: the same on every machine, fit for a cache key (with compiler and options).
    pub hash: u128,
}

/// A part of the text: its name in compiler messages, and its content.
type Fragment = (&'static str, &'static str);

/// A fragment of `c/`: its name in compilers' messages, and its path, where that is another. The name is part of the joined
/// text, whose hash names cached programs and shipped PTX, so it stays when a file moves.
macro_rules! fragment {
    ($path:literal) => {
        fragment!($path, $path)
    };
    ($name:literal, $path:literal) => {
        ($name, include_str!(concat!("../c/", $path)))
    };
}
use fragment;

/// Constant memory of a card, and what of it the table leaves to other constants.
const CONSTANT_BYTES: usize = 65536;
const OTHER_CONSTANTS: usize = 256;

/// Joins the fragments of a search under the defines of `spec`.
///
/// # Panics
///
/// When `spec` asks for what no text can give: a block that is no power of two, no group or one past
/// [`abi::GROUP_MAX`], a constant table past 64 KiB, no interval or more than four, a filter without parts.
pub fn join(spec: &Spec) -> Source {
    assert!(spec.block.is_power_of_two(), "a block of {} lanes is no power of two", spec.block);
    assert!((1..=abi::GROUP_MAX).contains(&spec.group), "no group of {} entries", spec.group);
    let entry_words = spec.program.entry_words();
    let table_bytes = (spec.group as usize + 1) * entry_words * 4;
    let constant = spec.table == TablePlace::Constant && entry_words > 0;
    let fits = table_bytes <= CONSTANT_BYTES - OTHER_CONSTANTS;
    assert!(!constant || fits, "a constant table of {table_bytes} bytes");
    let mut defines = vec![
        ("TABLE_CONSTANT", constant.into()),
        ("TABLE_QUADS", entry_words as u32 / 4),
        ("INVERT_SHARED", spec.shared_inversion.into()),
    ];
    let fragments = match spec.program {
        Program::Orbit => return join_orbit(spec, defines),
        Program::PointsWalk { digest } => {
            defines.extend(digest.written(true));
            digest.walk_fragments()
        }
        Program::Points { digest, filter } => {
            defines.extend(digest.defines().into_iter().chain(filter.defines()));
            digest.fragments()
        }
        Program::Scan(part) => {
            defines.extend(part.defines());
            part.fragments()
        }
        Program::Salts { stages, filter } => {
            defines.extend(stages.defines().into_iter().chain(filter.defines()));
            let hashes = [fragment!("hash/keccak.h"), fragment!("hash/address.h")];
            let test = [fragment!("filter/score.h"), fragment!("filter/digest.h")];
            [&hashes[..], &test, &[fragment!("salts.c", "entry/salts.c")]].concat()
        }
    };
    finish(head(spec, spec.group, &defines), &fragments)
}

fn join_orbit(spec: &Spec, mut defines: Vec<(&str, u32)>) -> Source {
    let (filter, ranges) = match spec.filter {
        XTest::Range { count } => {
            assert!((1..=4).contains(&count), "no filter of {count} intervals");
            (fragment!("filter/range.h"), count)
        }
        XTest::Set { .. } => (fragment!("filter/set.h"), 0),
    };
    let stage = match spec.stage {
        Stage::Walk => 0,
        Stage::Words => 1,
        Stage::Whole => 2,
    };
    let is_set = matches!(spec.filter, XTest::Set { .. });
    assert!(!is_set || spec.stage == Stage::Whole, "a set is searched as a whole");
    defines.extend([
        ("RANGES", ranges),
        ("FILTER_SET", is_set.into()),
        ("SET_NEAR", (spec.filter == XTest::Set { near: true }).into()),
        ("FILTER_FINE", (spec.filter == XTest::Set { near: false }).into()),
        ("STAGE", stage),
    ]);
    let mut text = head(spec, spec.group, &defines);
    if let XTest::Set { near } = spec.filter {
        let bounds = if near { abi::TOP_KEYS } else { abi::FINE_KEYS };
        for (name, abi::Bound { below, above }) in ["NONE", "ONE", "ALL"].into_iter().zip(bounds) {
            text += &format!("#define BELOW_{name} {below}u\n#define ABOVE_{name} {above}u\n");
        }
        let fragments = [
            filter,
            fragment!("sift.h", "filter/sift.h"),
            fragment!("search.c", "entry/orbit_walk.c"),
            fragment!("settle.c", "entry/settle.c"),
        ];
        return finish(text, &fragments);
    }
    finish(text, &[filter, fragment!("search.c", "entry/orbit_walk.c")])
}

/// Joins the program that tests and times the field by itself: its entry points are `field_check` and `field_bench`.
/// Of `spec` only the capabilities count, the block and how multiplication is done.
pub fn join_field(spec: &Spec) -> Source {
    assert!(spec.block.is_power_of_two(), "a block of {} lanes is no power of two", spec.block);
    let quads = abi::TABLE_WORDS as u32 / 4;
    let text = head(spec, 1, &[("TABLE_CONSTANT", 0), ("TABLE_QUADS", quads), ("INVERT_SHARED", 0)]);
    finish(
        text,
        &[fragment!("hasty.h", "field/lazy_carry.h"), fragment!("field_bench.c", "entry/field_bench.c")],
    )
}

/// The defines: those every program has, then its own.
fn head(spec: &Spec, group: u32, own: &[(&str, u32)]) -> String {
    let common = [
        ("HAS_PTX", spec.ptx.into()),
        ("INLINE_HELPERS", spec.inline.into()),
        ("GROUP", group),
        ("BLOCK", spec.block),
        ("BLOCKS", spec.blocks),
        ("COUNT_CARRIES", spec.count_carries.into()),
    ];
    let defines = common.iter().chain(own).map(|(name, value)| format!("#define {name} {value}\n"));
    let signs = if spec.unroll_signs { "UNROLL" } else { "ROLLED" };
    defines.chain([format!("#define SIGN_LOOP {signs}\n")]).collect()
}

/// The fragments every program has, then its own.
fn finish(mut text: String, own: &[Fragment]) -> Source {
    let common = [
        fragment!("platform.h", "base/platform.h"),
        fragment!("abi.h", "base/abi.h"),
        fragment!("search.h", "base/hits.h"),
        fragment!("limbs.h", "field/limbs.h"),
        fragment!("products.h", "field/products.h"),
        fragment!("field.h", "field/field.h"),
        fragment!("walk.h", "walk/orbit.h"),
    ];
    for (name, fragment) in common.iter().chain(own) {
        text += &format!("#line 1 \"{name}\"\n{fragment}");
    }
    Source { hash: fnv1a_128(text.as_bytes()), text }
}

/// FNV-1a with 128 bits: a content hash without a dependency, stable across versions and machines.
fn fnv1a_128(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, &byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_fnv1a_128() {
        // Vectors of the FNV draft.
        assert_eq!(fnv1a_128(b""), 0x6c62272e07bb014262b821756295c58d);
        assert_eq!(fnv1a_128(b"a"), 0xd228cb696f1a8caf78912b704e4a8964);
    }

    #[test]
    fn each_spec_has_its_own_hash() {
        let one = join(&Spec::default());
        let two = join(&Spec { group: 128, ..Spec::default() });
        assert_ne!(one.hash, two.hash);
        assert_eq!(one.hash, join(&Spec::default()).hash);
    }

    #[test]
    #[should_panic(expected = "constant table")]
    fn constant_table_past_its_memory_is_refused() {
        join(&Spec { group: 512, ..Spec::default() });
    }
}
