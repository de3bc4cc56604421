//! The programs of private retrieval (`c/pir/`): hints on a device.
//!
//! Three texts make up the offline phase: the cutoffs, the parities (once for regular hints, once for pairs), and the rest:
//! ties, extras, upper halves, and the database in the layout that parities read.

use crate::{Fragment, Source, fnv1a_128, fragment};

/// Orders that one bin of the cutoffs' window can hold.
pub const BIN_ROOM: u32 = 64;
/// The most bins of the window.
pub const BINS: u32 = 128;
/// Words before the ties: count, capacity, and whether any were lost.
pub const TIES_HEADER: u64 = 4;
/// Words before the hints left open by the cutoffs: count and capacity.
pub const OPEN_HEADER: u64 = 2;

/// The database and the function, as far as the programs see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HintTask {
    /// Bytes an entry.
    pub entry_size: u32,
    /// Entries a block.
    pub block_size: u32,
    /// Blocks, an even number.
    pub blocks: u32,
    /// Whether choice and offset share a word of the PRF.
    pub packed: bool,
}

impl HintTask {
    fn entry_words(&self) -> u32 {
        self.entry_size.div_ceil(4)
    }

    /// Words of entries that a pass adds up; wider entries take several passes, each with a column of them.
    ///
    /// Ten words are an entry of forty bytes, and eighty registers of a lane that has sixteen hints by halves.
    pub fn column_words(&self) -> u32 {
        match self.entry_words() {
            ..=2 => 2,
            3..=4 => 4,
            9..=10 => 10,
            _ => 8,
        }
    }

    /// Passes for a whole entry.
    pub fn columns(&self) -> u32 {
        self.entry_words().div_ceil(self.column_words())
    }

    /// Words from one sum to the next.
    pub fn row(&self) -> u32 {
        self.columns() * self.column_words()
    }

    /// Words from one entry to the next in the device's copy of the database: quads stay aligned.
    pub fn stride(&self) -> u32 {
        if self.column_words() == 10 { 12 } else { self.row() }
    }

    /// Words of a block of the database.
    pub fn block_words(&self) -> u64 {
        u64::from(self.block_size) * u64::from(self.stride())
    }
}

/// How a text is compiled and launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Launch {
    /// Lanes of a block, a power of two from 32 on.
    pub block: u32,
    /// Blocks a multiprocessor should hold: bounds the registers of a lane on CUDA.
    pub blocks: u32,
    /// Whether all is inlined and unrolled: for cards. OpenCL on a processor takes minutes to compile that.
    pub inline: bool,
}

/// Which text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// `pir_cutoffs`.
    Cutoffs,
    /// `pir_parities` of regular hints.
    Regular,
    /// `pir_parities` of pairs.
    Pairs,
    /// `pir_ties`, `pir_extras`, `pir_halves`, `pir_spread`, `pir_make_up`.
    Rest,
}

impl Part {
    /// All texts.
    pub const ALL: [Part; 4] = [Part::Cutoffs, Part::Regular, Part::Pairs, Part::Rest];

    /// Hints of which a lane has its share of the parities.
    fn held(self) -> u32 {
        if self == Part::Pairs { 8 } else { 16 }
    }

    /// How the text is launched on a card: measured on an H200, and no worse than others elsewhere as far as is known.
    /// Parities take all lanes that 128 registers leave room for.
    pub fn on_card(self) -> Launch {
        let (block, blocks) = match self {
            Part::Cutoffs => (512, 2),
            Part::Regular | Part::Pairs => (128, 4),
            Part::Rest => (256, 4),
        };
        Launch { block, blocks, inline: true }
    }

    /// Lanes that have the sixteen hints of a group, and blocks that they do in one step. A launch goes through whole
    /// steps.
    pub fn team(self) -> u32 {
        RECORD * 16 / self.held()
    }
}

/// Lanes that read an entry together.
const RECORD: u32 = 2;

/// Joins the fragments of a text.
///
/// # Panics
///
/// When the block of lanes is no power of two, or less than 32.
pub fn join(shape: &HintTask, part: Part, launch: &Launch) -> Source {
    assert!(launch.block.is_power_of_two() && launch.block >= 32, "no block of {} lanes", launch.block);
    let defines = [
        ("INLINE_HELPERS", launch.inline.into()),
        ("BLOCK", launch.block),
        ("BLOCKS", launch.blocks),
        ("TABLE_CONSTANT", 0),
        ("PACKED", shape.packed.into()),
        ("STRIDE", shape.stride()),
        ("ROW", shape.row()),
        ("RECORD", RECORD),
        ("LANE_WORDS", shape.column_words() / RECORD),
        ("HELD", part.held()),
        ("PAIRS", (part == Part::Pairs).into()),
        ("BINS", BINS),
        ("BIN_ROOM", BIN_ROOM),
    ];
    let mut text: String = defines.iter().map(|(name, value)| format!("#define {name} {value}u\n")).collect();
    let common: [Fragment; 4] = [
        fragment!("platform.h", "base/platform.h"),
        fragment!("hash/chacha.h"),
        fragment!("pir/prf.h"),
        fragment!("pir/ties.h"),
    ];
    let own: &[Fragment] = match part {
        Part::Cutoffs => &[fragment!("pir/cutoffs.c")],
        Part::Regular | Part::Pairs => &[fragment!("pir/parities.c")],
        Part::Rest => &[fragment!("pir/mend.c"), fragment!("pir/database.c")],
    };
    for (name, fragment) in common.iter().chain(own) {
        if *name == "hash/chacha.h" && !launch.inline {
            text += "#undef UNROLL\n#define UNROLL ROLLED\n";
        }
        text += &format!("#line 1 \"{name}\"\n{fragment}");
    }
    Source { hash: fnv1a_128(text.as_bytes()), text }
}
