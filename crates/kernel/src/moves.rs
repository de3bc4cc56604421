//! The program that puts lanes elsewhere between two launches of a walk (`c/entry/moves.c`).

use crate::{Fragment, Source, fnv1a_128, fragment};

/// The name of the entry point: `centres, moves, lanes, count`.
pub const ENTRY: &str = "moves_place";
/// Words of a centre, each of which a thread puts into place.
pub const WORDS: usize = 16;
/// Words of a move: the lane and its new centre, x first, least significant first.
pub const MOVE_WORDS: usize = 1 + WORDS;
/// Threads of a block.
pub const BLOCK: u32 = 64;

/// The text: one for all walks and devices.
pub fn join() -> Source {
    let defines = [
        ("INLINE_HELPERS", 1),
        ("BLOCK", BLOCK),
        ("BLOCKS", 1),
        ("TABLE_CONSTANT", 0),
        ("CENTRE_WORDS", WORDS as u32),
    ];
    let mut text: String = defines.iter().map(|(name, value)| format!("#define {name} {value}u\n")).collect();
    let fragments: [Fragment; 2] =
        [fragment!("platform.h", "base/platform.h"), fragment!("moves.c", "entry/moves.c")];
    for (name, fragment) in fragments {
        text += &format!("#line 1 \"{name}\"\n{fragment}");
    }
    Source { hash: fnv1a_128(text.as_bytes()), text }
}
