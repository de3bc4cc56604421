//! What a server claims to have, before anything is allocated by it.

use crate::database::Description;
use crate::hints;
use crate::params::{Choice, Params};

/// Whether a database that a server describes can be one, and one that this machine can have hints for; else what is wrong.
/// Nothing is allocated by what the server says before this.
pub(super) fn believable(description: &Description, machine: u64) -> std::result::Result<(), String> {
    let params = &description.params;
    let claim = || {
        let (entries, size, blocks) = (params.entries(), params.entry_size(), params.blocks());
        format!("it claims {entries} entries of {size} bytes in {blocks} blocks")
    };
    if let Some(table) = description.keyword.as_ref().filter(|table| table.entries > params.entries()) {
        return Err(format!("{}, and a table of {} entries in them", claim(), table.entries));
    }
    // The fewest hints there can be, one thread to make them, the digests of all segments, and one query as it is made.
    let least = Params::new(Choice { lambda: 1, backups: Some(1), ..params.choice() })
        .map_err(|error| error.to_string())?;
    let hints = hints::making_bytes(&least, least.regular(), least.backups(), 1);
    let digests = 32 * description.segments();
    let needed = hints.saturating_add(digests).saturating_add(8 * u64::from(params.blocks()));
    if needed > machine {
        return Err(format!(
            "{}; to read it takes at least {needed} bytes of memory, and this machine gives {machine}",
            claim()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_can_hold_is_not_believed() {
        let description = |entries, block_size| Description {
            params: Params::new(Choice { block_size: Some(block_size), ..Choice::new(entries, 40) }).unwrap(),
            epoch: 0,
            keyword: None,
            identity: [0; 32],
            origin: None,
            predecessors: Vec::new(),
        };
        let gigabytes = |count: u64| count << 30;
        assert_eq!(believable(&description(1 << 31, 1 << 16), gigabytes(4)), Ok(()));
        for (entries, block_size) in [(1 << 40, 1 << 10), (1 << 44, 1 << 20), (1 << 30, 1)] {
            let why = believable(&description(entries, block_size), gigabytes(16)).unwrap_err();
            assert!(
                why.contains(&format!("{entries} entries of 40 bytes")) && why.contains("17179869184"),
                "{why}"
            );
        }
    }
}
