//! Self-test of what makes hints: hints of random databases against the reference, and entries read with such hints.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use warpsmith_hash::Lanes;

use crate::client::Client;
use crate::database::Builder;
use crate::error::{Error, Result};
use crate::hints::make::{Make, Order, PIECE};
use crate::hints::{Hints, reference, unless_stopped};
use crate::params::{Choice, Params};
use crate::prf::{Key, Prf};
use crate::random::{self, Random};
use crate::updates::Live;
use crate::version::Version;

/// A case of the self-test that a device has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Passed {
    /// `hints`: all hints of a client are those of the reference. `queries`: entries read with such hints are right.
    pub case: &'static str,
    /// Entries of the database.
    pub entries: u64,
    /// Bytes of an entry.
    pub entry_size: usize,
    /// Hints compared, or entries read.
    pub checked: u64,
}

/// Entries, bytes of an entry and entries of a block: packed and unpacked blocks, a last block that is not full, entries of odd sizes.
const SHAPES: [(u64, u32, Option<u32>); 4] =
    [(500, 40, Some(16)), (1000, 33, Some(20)), (4096, 8, None), (3000, 264, Some(32))];

/// Queries of a case; the first and the last entry are among them.
const QUERIES: u64 = 24;

/// Tests what makes hints on `device`, which names it in errors, and reports each case that passes.
///
/// # Errors
///
/// [`Error::Wrong`] when hints or entries differ, [`Error::Stopped`] when `stop` is raised, and as for [`Make::hints`].
pub fn selftest(
    device: &str,
    make: &dyn Make,
    lanes: Lanes,
    stop: &AtomicBool,
    each: &mut dyn FnMut(Passed),
) -> Result<()> {
    for (entries, entry_size, block_size) in SHAPES {
        let choice = Choice { block_size, backups: Some(64), ..Choice::new(entries, entry_size) };
        let params = Params::new(choice)?;
        let mut database = vec![0; entries as usize * entry_size as usize];
        random::fill(&mut database)?;
        let key = Key::random()?;
        let (m, q) = (params.regular(), params.backups());
        let order = Order { params: &params, key: &key, regular: 0..m, backups: m..m + q, stop };
        let hints = make.hints(&order, &mut |push| database.chunks(PIECE).try_for_each(push))?;
        let passed = |case, checked| Passed { case, entries, entry_size: params.entry_size(), checked };
        compare(device, &params, &Prf::new(&key, &params, lanes), &database, &hints)?;
        each(passed("hints", m + q));
        unless_stopped(stop)?;
        read(device, &params, choice, key, &database, hints, lanes)?;
        each(passed("queries", QUERIES));
        unless_stopped(stop)?;
    }
    Ok(())
}

fn wrong(device: &str, what: String) -> Error {
    Error::Wrong { device: device.to_owned(), what }
}

/// Compares hints with the reference.
fn compare(device: &str, params: &Params, prf: &Prf, database: &[u8], hints: &Hints) -> Result<()> {
    let ids = hints.skeleton.regular.clone().chain(hints.skeleton.backups.clone());
    for (id, &cutoff) in ids.zip(&hints.skeleton.cutoffs) {
        if cutoff != reference::cutoff(prf, params.blocks(), id) {
            return Err(wrong(device, format!("the cutoff of hint {id}")));
        }
    }
    let expected = reference::hints(prf, &reference::Database::new(params, database), &hints.skeleton);
    if *hints != expected {
        return Err(wrong(device, "the parity of a hint".to_owned()));
    }
    Ok(())
}

/// Reads entries as a client of a server does, and compares them with the database.
fn read(
    device: &str,
    params: &Params,
    choice: Choice,
    key: Key,
    database: &[u8],
    hints: Hints,
    lanes: Lanes,
) -> Result<()> {
    let folder = Folder::new()?;
    let (file, state) = (folder.0.join("database"), folder.0.join("state"));
    let mut builder = Builder::new(&file, choice, 1, None)?;
    builder.push(database)?;
    builder.finish()?;
    let live = Live::open(&file, lanes, 0)?;
    let version = Version { database: live.base().description().lineage(), epoch: live.epoch() };
    let mut client = Client::create(&state, *params, version, key, hints, lanes)?;
    let last = params.entries() - 1;
    let mut random = Random::new();
    let mut indices = vec![0, last];
    while (indices.len() as u64) < QUERIES {
        indices.push(u64::from(random.below(last as u32)?));
    }
    for indices in indices.chunks(8) {
        let asked = client.ask(indices)?;
        let answers = live.answer(&asked.body, indices.len())?;
        for (&index, fetched) in indices.iter().zip(client.receive(&asked, &answers)?) {
            let at = index as usize * params.entry_size();
            if fetched?.entry != database[at..at + params.entry_size()] {
                return Err(wrong(device, format!("entry {index}, read with its hints,")));
            }
        }
    }
    Ok(())
}

/// A private folder for the files of a case, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder> {
        let mut name = [0; 8];
        random::fill(&mut name)?;
        let name = format!("warpsmith-selftest-{:016x}", u64::from_le_bytes(name));
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path).map_err(Error::io(Path::new(&path)))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hints::NEVER;
    use crate::hints::make::{Processor, Stream};
    use crate::hints::measure::Figures;

    const PROCESSOR: fn() -> Processor = || Processor { lanes: Lanes::detect(), threads: 1 };

    /// The processor, with one bit of the parities wrong.
    struct Faulty;

    impl Make for Faulty {
        fn hints(&self, order: &Order<'_>, stream: &mut Stream<'_>) -> Result<Hints> {
            let mut hints = PROCESSOR().hints(order, stream)?;
            *hints.parities.last_mut().expect("there are hints") ^= 1;
            Ok(hints)
        }

        fn memory(&self, params: &Params, regular: u64, pairs: u64) -> u64 {
            PROCESSOR().memory(params, regular, pairs)
        }

        fn measure(&self, params: &Params, samples: usize) -> Result<Figures> {
            PROCESSOR().measure(params, samples)
        }
    }

    #[test]
    fn every_case_passes_on_the_processor_and_none_with_a_wrong_bit() {
        let mut passed = Vec::new();
        selftest("cpu", &PROCESSOR(), Lanes::detect(), &NEVER, &mut |case| passed.push(case)).unwrap();
        assert_eq!(passed.len(), 2 * SHAPES.len());
        assert!(passed.iter().all(|case| case.checked > 0), "{passed:?}");
        let mut passed = 0;
        let error = selftest("cpu", &Faulty, Lanes::detect(), &NEVER, &mut |_| passed += 1).unwrap_err();
        assert!(matches!(error, Error::Wrong { .. }), "{error}");
        assert_eq!(passed, 0);
    }

    #[test]
    fn a_wrong_hint_is_seen_in_the_entry_read_with_it() {
        let choice = Choice { block_size: Some(16), backups: Some(64), ..Choice::new(500, 40) };
        let params = Params::new(choice).unwrap();
        let mut database = vec![0; 500 * 40];
        random::fill(&mut database).unwrap();
        let key = Key::random().unwrap();
        let (m, q) = (params.regular(), params.backups());
        let order = Order { params: &params, key: &key, regular: 0..m, backups: m..m + q, stop: &NEVER };
        let mut hints = PROCESSOR().hints(&order, &mut |push| push(&database)).unwrap();
        hints.parities.iter_mut().for_each(|byte| *byte ^= 1);
        let error = read("cpu", &params, choice, key, &database, hints, Lanes::detect()).unwrap_err();
        assert!(error.to_string().contains("entry"), "{error}");
    }
}
