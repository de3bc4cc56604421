//! That a coordinator's books do not grow with what was done. Alone in its process, whose memory is looked at.

use warpsmith_fleet::id::JobId;
use warpsmith_fleet::leases::{Held, Holder, Leases};
use warpsmith_fleet::ledger::{Ledger, RECORD, look};

const JOB: JobId = JobId([3; 32]);

/// A million units of two hundred devices, done out of order: neither ledger nor leases grow.
#[test]
fn memory_is_flat() {
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger");
    let mut ledger = Ledger::open(&path, JOB, 1).expect("made");
    ledger.keep_at_most(1 << 16);
    let mut leases = Leases::default();
    let mut longest = 0;
    let mut before = 0;
    for unit in 1..=1_000_000u64 {
        let holder = Some(Holder { worker: (unit % 200) as u32, slot: 0 });
        leases.give(unit, Held { holder, count: 1, until: std::time::Duration::ZERO, candidates: 1.0 });
        // The one of 200 before comes back, odd ones before even ones.
        if let Some(done) = (unit ^ 1).checked_sub(200).filter(|done| *done > 0) {
            leases.release(done, 1);
            assert!(ledger.done((done % 200) as u32, done, 1, 1));
        }
        if unit % 10_000 == 0 {
            ledger.sync().expect("synced");
            longest = longest.max(std::fs::metadata(&path).expect("there").len());
        }
        if unit == 100_000 {
            before = resident();
        }
    }
    assert!(leases.len() <= 202 && ledger.standing().intervals().count() <= 3);
    // The file neither: as many records as it may have, and those of one writing.
    assert!(longest <= ((1 << 16) + 10_000 + 10) * RECORD as u64, "{longest} bytes");
    let before_end = (ledger.standing().units, ledger.standing().keys);
    assert_eq!(before_end, (999_800, 999_800));
    let read = look(&path, JOB).expect("read");
    assert_eq!((read.units, read.keys, read.damage.stretches), (999_800, 999_800, 0));
    let grown = resident().saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes");
}
