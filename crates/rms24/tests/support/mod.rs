//! What several tests need: a database with its server side, and a client.

#![allow(dead_code, reason = "no test needs all of it")]

#[cfg(feature = "server")]
pub mod running;

use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use warpsmith_hash::Lanes;
use warpsmith_rms24::database::{Builder, Database};
use warpsmith_rms24::hints::measure::pseudorandom;
use warpsmith_rms24::hints::{self, Hints};
use warpsmith_rms24::updates::Live;
use warpsmith_rms24::{Choice, Client, Key, Params, Version};

/// Small random numbers that a failed test can repeat.
pub struct Dice(u64);

impl Dice {
    /// Prints its seed.
    pub fn new() -> Dice {
        let seed = u64::from_le_bytes(*Key::random().unwrap().expose().first_chunk().unwrap());
        println!("seed {seed}");
        Dice(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

/// A database, its server side, and a folder for the files of both sides.
pub struct Bench {
    pub folder: TempDir,
    pub live: Live,
    pub params: Params,
}

impl Bench {
    pub fn new(choice: Choice) -> Bench {
        Bench::in_folder(tempfile::tempdir().unwrap(), choice)
    }

    pub fn in_folder(folder: TempDir, choice: Choice) -> Bench {
        let path = folder.path().join("data");
        let params = Params::new(choice).unwrap();
        let mut builder = Builder::new(&path, choice, 5, None).unwrap();
        builder.push(&pseudorandom(params.entries() as usize * params.entry_size())).unwrap();
        builder.finish().unwrap();
        let live = Live::open(&path, Lanes::detect(), 100_000).unwrap();
        Bench { folder, live, params }
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The offline phase, from the database's file.
    pub fn client(&self) -> Client {
        let (key, hints) = offline(&self.live.base(), &self.params);
        Client::create(&self.state(), self.params, self.version(), key, hints, Lanes::detect()).unwrap()
    }

    pub fn version(&self) -> Version {
        let base = self.live.base();
        Version { database: base.description().lineage(), epoch: base.description().epoch }
    }

    /// Asks, answers, and checks every entry.
    pub fn fetch(&self, client: &mut Client, indices: &[u64]) {
        let asked = client.ask(indices).unwrap();
        let answers = self.live.answer(&asked.body, 1000).unwrap();
        for (index, result) in indices.iter().zip(client.receive(&asked, &answers).unwrap()) {
            assert_eq!(result.unwrap().entry, self.live.entry(*index).unwrap(), "entry {index}");
        }
    }
}

/// A folder in memory where there is one: for tests that write thousands of files, of which none need survive.
pub fn fast_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub fn open(path: &Path) -> Client {
    Client::open(path, Lanes::detect()).unwrap()
}

/// Writes a file in place: emptied first, as `std::fs::write` does it, some file systems wait for the disk.
pub fn put(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
    let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.write_all_at(bytes.as_ref(), 0)?;
    file.set_len(bytes.as_ref().len() as u64)
}

/// The bytes with one bit of one of them flipped.
pub fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1 << (at % 8);
    bytes
}

/// Fresh hints for the file of a database.
pub fn offline(database: &Database, params: &Params) -> (Key, Hints) {
    let blocks = database.read_all().unwrap();
    let entries = &blocks[..params.entries() as usize * params.entry_size()];
    hints::offline(params, Lanes::detect(), 1, |push| push(entries)).unwrap()
}
