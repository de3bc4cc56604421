//! PTX that a release build carries, for machines with NVIDIA's driver and without its compiler.
//!
//! A build with `WARPSMITH_PTX` set to a folder embeds the folder's files `<hash>.ptx`, named by the hash of the text
//! they were compiled from (`build.rs`; `tools/release.sh` makes them). Any change of a kernel's text changes its
//! hash, so stale PTX is never found; it merely takes space, and the text it was for is compiled as ever.

use crate::pir::{self, HintTask, Part};
use crate::{Source, Spec, XTest, join, join_field, moves};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// PTX for this text, if this build carries it.
pub fn embedded(source: &Source) -> Option<&'static str> {
    EMBEDDED.iter().find(|(hash, _)| *hash == source.hash).map(|(_, ptx)| *ptx)
}

/// The texts a release compiles to PTX: what an NVIDIA card of any size runs that was not tuned.
pub fn shipped() -> Vec<Source> {
    let base = Spec { ptx: true, blocks: 5, ..Spec::default() };
    let sets = [true, false].map(|near| XTest::Set { near });
    let filters = (1..=4).map(|count| XTest::Range { count }).chain(sets);
    let mut sources: Vec<Source> = filters.map(|filter| join(&Spec { filter, ..base })).collect();
    sources.push(join_field(&Spec::field()));
    sources.push(moves::join());
    // Hints for entries of 33 to 40 bytes; the numbers of entries and blocks are no part of the text.
    let shape = HintTask { entry_size: 40, block_size: 1, blocks: 2, packed: true };
    sources.extend(Part::ALL.map(|part| pir::join(&shape, part, &part.on_card())));
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a release build every text must be there; in a plain build none is.
    #[test]
    fn a_release_build_carries_all_it_should() {
        let carried = shipped().iter().filter(|source| embedded(source).is_some()).count();
        match option_env!("WARPSMITH_PTX") {
            Some(folder) if !folder.is_empty() => {
                assert_eq!(carried, shipped().len(), "{folder} lacks some: run tools/release.sh again");
                assert!(EMBEDDED.iter().all(|(_, ptx)| ptx.contains(".entry ")));
            }
            _ => assert_eq!((carried, EMBEDDED.len()), (0, 0)),
        }
    }
}
