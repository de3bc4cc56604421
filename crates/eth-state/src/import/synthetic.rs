//! A synthetic state: looks like Ethereum's, belongs to nobody, and is the same everywhere for the same seed.
//!
//! Every tenth account is a contract; a few contracts have most of the slots. Balances and nonces have long tails; many
//! slots hold small numbers or addresses. Each record is a function of the seed and its number, so a state of any size
//! takes no memory: ChaCha12, keyed with the seed, at the record's number.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use warpsmith_hash::chacha;
use warpsmith_rms24::table::Take;
use warpsmith_rms24::{Error, Result};

use super::turned;
use crate::record::{Account, Address, RECORD, account_record, slot_key, slot_record};

/// A synthetic state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synthetic {
    /// Accounts, the first of the records.
    pub accounts: u32,
    /// Storage slots, the records after them.
    pub slots: u32,
    /// Which of all such states.
    pub seed: u64,
}

/// One account in so many is a contract.
const CONTRACT: u32 = 10;

/// The numbers of a record, one after the other.
struct Stream {
    words: std::iter::Flatten<std::array::IntoIter<[u32; 16], 2>>,
}

impl Stream {
    fn new(seed: u64, record: u32) -> Stream {
        let key = [seed as u32, (seed >> 32) as u32, 0, 0, 0, 0, 0, 0];
        let words = [0, 1].map(|counter| chacha::words(&key, [counter, record, 0, 0]));
        Stream { words: words.into_iter().flatten() }
    }

    fn word(&mut self) -> u32 {
        self.words.next().expect("no record needs more than 32 words")
    }

    /// Fills with whole words; the length is a multiple of four.
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.chunks_exact_mut(4).for_each(|four| four.copy_from_slice(&self.word().to_le_bytes()));
        bytes
    }

    /// A number with a tail: every further one has half the chance.
    fn scale(&mut self, most: u32) -> u32 {
        (self.word() | 1 << most.min(31)).trailing_zeros()
    }
}

impl Synthetic {
    /// A state of so many records, of which a fifth are accounts, as in Ethereum's.
    ///
    /// # Errors
    ///
    /// When there are none, or 2^32 or more.
    pub fn new(records: u64, seed: u64) -> Result<Synthetic> {
        match u32::try_from(records) {
            Ok(records @ 1..) => {
                let accounts = (records / 5).max(1);
                Ok(Synthetic { accounts, slots: records - accounts, seed })
            }
            _ => Err(Error::params(format!("a state has 1 to {} records, not {records}", u32::MAX))),
        }
    }

    /// Accounts and slots.
    pub fn keys(&self) -> u64 {
        u64::from(self.accounts) + u64::from(self.slots)
    }

    fn codes(&self) -> u32 {
        1 + self.accounts / 100
    }

    /// An account and its address. The address comes first of its numbers, so that slots find it fast.
    pub fn account(&self, index: u32) -> (Address, Account) {
        let mut stream = Stream::new(self.seed, index);
        let address = stream.bytes();
        let is_contract = index.is_multiple_of(CONTRACT);
        let (is_empty, scale) = (stream.word().is_multiple_of(4), stream.scale(20));
        let account = Account {
            balance: if is_empty { 0 } else { u128::from(stream.word()) << (20 + 2 * scale) },
            nonce: if is_contract { 1 } else { stream.word() % (2 << stream.scale(20)) },
            code: if is_contract { 1 + stream.word() % self.codes() } else { 0 },
        };
        (address, account)
    }

    /// The key and the value of a slot.
    pub fn slot(&self, index: u32) -> (Vec<u8>, [u8; 32]) {
        let mut stream = Stream::new(self.seed, self.accounts + index);
        // Halve the choice again and again: the first contracts get most.
        let contracts = self.accounts.div_ceil(CONTRACT);
        let among = (contracts >> stream.scale(30)).max(1);
        let address = Stream::new(self.seed, stream.word() % among * CONTRACT).bytes();
        let mut number = [0; 32];
        if stream.word().is_multiple_of(4) {
            // A plain variable: a small number, made unlike all others by the index.
            number[28..].copy_from_slice(&index.to_be_bytes());
        } else {
            number = stream.bytes();
        }
        let mut value = [0; 32];
        match stream.word() % 4 {
            0 => value[28..].copy_from_slice(&stream.word().to_be_bytes()),
            1 => value[12..].copy_from_slice(&stream.bytes::<20>()),
            2 => value[16..].copy_from_slice(&stream.bytes::<16>()),
            _ => value = stream.bytes(),
        }
        (slot_key(&address, &number), value)
    }

    /// Hands over every key with its record, accounts first.
    ///
    /// # Errors
    ///
    /// When `take` fails.
    pub fn each(&self, take: &mut Take<'_>) -> Result<()> {
        for index in 0..self.accounts {
            let (address, account) = self.account(index);
            take(&address, &account_record(&address, &account))?;
        }
        for index in 0..self.slots {
            let (key, value) = self.slot(index);
            take(&key, &slot_record(&key, &value))?;
        }
        Ok(())
    }

    /// Writes the state as the files of the format.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let create = |name: &str| {
            let path = folder.join(name);
            Ok::<_, Error>(BufWriter::with_capacity(1 << 20, File::create(&path).map_err(Error::io(&path))?))
        };
        let (mut records, mut accounts) = (create("database.bin")?, create("account-mapping.bin")?);
        let (mut slots, mut codes) = (create("storage-mapping.bin")?, create("code_store.bin")?);
        let mut index = 0u32;
        self.each(&mut |key, record| {
            let (mapping, record) = match index < self.accounts {
                true => (&mut accounts, record.to_vec()),
                false => (&mut slots, turned(record)),
            };
            let written = records.write_all(&record).and_then(|()| mapping.write_all(key));
            written.and_then(|()| mapping.write_all(&index.to_le_bytes())).map_err(Error::io(folder))?;
            index += 1;
            Ok(())
        })?;
        let Synthetic { accounts: number, slots: of_slots, seed } = self;
        let metadata = format!(
            "{{\"schema_version\":3,\"entry_size_bytes\":{RECORD},\"accounts\":{number},\"storage_slots\":{of_slots},\"synthetic\":true,\"seed\":{seed}}}\n"
        );
        let mut end = || {
            codes.write_all(&self.codes().to_le_bytes())?;
            for code in 0..self.codes() {
                // Past the numbers of all records: they have none but zeros in the last word of the place.
                let key = [*seed as u32, (seed >> 32) as u32, 0, 0, 0, 0, 0, 0];
                let words = chacha::words(&key, [0, code, 0, 1]);
                words[..8].iter().try_for_each(|word| codes.write_all(&word.to_le_bytes()))?;
            }
            [&mut records, &mut accounts, &mut slots, &mut codes].into_iter().try_for_each(Write::flush)?;
            std::fs::write(folder.join("metadata.json"), &metadata)
        };
        end().map_err(Error::io(folder))
    }
}
