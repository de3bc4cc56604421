//! Device source text and its memory layout.
//!
//! One text for CUDA (NVRTC), OpenCL C 1.2 and host C11: [`join`] puts the fragments of `c/` together under
//! the defines of a [`Spec`]. [`abi`] says how the buffers look. This crate knows no vendor API, no key and
//! no pattern.

pub mod abi;
mod embedded;
pub mod set;

pub use embedded::{embedded, shipped};

/// Where the table of multiples of G lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// Constant memory: on CUDA the symbol `search_table`, on OpenCL a `__constant` argument. At most 64 KiB.
    Constant,
    /// A read-only global buffer, an argument everywhere.
    Global,
}

/// What the device tests; changes the code's shape, while the values travel in the filter buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Filter {
    /// Up to four intervals of the top word.
    Range {
        /// How many, 1 to 4.
        count: u32,
    },
    /// Many intervals: a bitmap, then a list of 64-bit intervals ([`set`]).
    Set,
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

/// All that changes the code's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Whether the compiler takes PTX assembly (NVRTC, NVIDIA's OpenCL).
    pub ptx: bool,
    /// Table entries of a group; `18 * group + 3` keys a step. At most [`abi::GROUP_MAX`].
    pub group: u32,
    /// Lanes of a block, a power of two.
    pub block: u32,
    /// Blocks a multiprocessor should hold: bounds the registers of a lane on CUDA.
    pub blocks: u32,
    /// Where the table lies.
    pub table: Table,
    /// Whether a block shares one inversion through shared memory, or each lane does its own.
    pub shared_inversion: bool,
    /// Whether multiplication gathers products by weight and counts carries, or goes by rows with carry-ins.
    pub count_carries: bool,
    /// Whether the two signs of an entry are unrolled: more parallel work, more registers and code.
    pub unroll_signs: bool,
    /// What is tested.
    pub filter: Filter,
    /// Whether what passes is tested again on 64 bits before it is reported. A set always is.
    pub wide: bool,
    /// Whether helper functions are inlined: faster, where the compiler gets through it in bearable time.
    pub inline: bool,
    /// How far the search goes.
    pub stage: Stage,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            ptx: true,
            group: 256,
            block: 128,
            blocks: 4,
            table: Table::Constant,
            shared_inversion: true,
            count_carries: false,
            unroll_signs: false,
            filter: Filter::Range { count: 1 },
            wide: true,
            inline: true,
            stage: Stage::Whole,
        }
    }
}

impl Spec {
    /// The shape in which the field is timed on a card: as many lanes as the registers of one chain allow.
    pub fn field() -> Spec {
        Spec { block: 128, blocks: 8, ..Spec::default() }
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

/// Joins the fragments of the search under the defines of `spec`.
///
/// # Panics
///
/// When `spec` asks for what no text can give: a block that is no power of two, no group or one past
/// [`abi::GROUP_MAX`], a constant table past 64 KiB, no interval or more than four.
pub fn join(spec: &Spec) -> Source {
    assert!(spec.block.is_power_of_two(), "a block of {} lanes is no power of two", spec.block);
    assert!((1..=abi::GROUP_MAX).contains(&spec.group), "no group of {} entries", spec.group);
    let table_bytes = abi::table_words(spec.group) * 4;
    assert!(spec.table == Table::Global || table_bytes <= 65536, "a constant table of {table_bytes} bytes");
    let (filter, ranges) = match spec.filter {
        Filter::Range { count } => {
            assert!((1..=4).contains(&count), "no filter of {count} intervals");
            (("filter/range.h", include_str!("../c/filter/range.h")), count)
        }
        Filter::Set => (("filter/set.h", include_str!("../c/filter/set.h")), 0),
    };
    let stage = match spec.stage {
        Stage::Walk => 0,
        Stage::Words => 1,
        Stage::Whole => 2,
    };
    let defines = [
        ("TABLE_CONSTANT", (spec.table == Table::Constant).into()),
        ("INVERT_SHARED", spec.shared_inversion.into()),
        ("RANGES", ranges),
        ("FILTER_WIDE", (spec.wide || spec.filter == Filter::Set).into()),
        ("STAGE", stage),
    ];
    let mut text = head(spec, spec.group, &defines);
    text += &format!("#define SIGN_LOOP {}\n", if spec.unroll_signs { "UNROLL" } else { "ROLLED" });
    finish(text, &[filter, ("search.c", include_str!("../c/search.c"))])
}

/// Joins the program that tests and times the field by itself: its entry points are `field_check` and `field_bench`.
/// Of `spec` only the capabilities count, the block and how multiplication is done.
pub fn join_field(spec: &Spec) -> Source {
    assert!(spec.block.is_power_of_two(), "a block of {} lanes is no power of two", spec.block);
    let text = head(spec, 1, &[("TABLE_CONSTANT", 0), ("INVERT_SHARED", 0)]);
    finish(text, &[("field_bench.c", include_str!("../c/field_bench.c"))])
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
    common.iter().chain(own).map(|(name, value)| format!("#define {name} {value}\n")).collect()
}

/// The fragments every program has, then its own.
fn finish(mut text: String, own: &[(&str, &str)]) -> Source {
    let common = [
        ("platform.h", include_str!("../c/platform.h")),
        ("abi.h", include_str!("../c/abi.h")),
        ("limbs.h", include_str!("../c/limbs.h")),
        ("field.h", include_str!("../c/field.h")),
        ("walk.h", include_str!("../c/walk.h")),
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
