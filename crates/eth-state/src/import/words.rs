//! Ethereum's state as words of 32 bytes, in the older format of Plinko's extractors.
//!
//! ```text
//! database.bin          accounts first, three words each: nonce, balance, hash of the code; then a word for each slot: its value
//! account-mapping.bin   address [20], index u32
//! storage-mapping.bin   address [20], slot [32], index u32; may be missing where there are no slots
//! ```
//!
//! Numbers are little-endian, slots' values too. The index of an account is that of its first word, or the number of the account: some
//! extractors write the one, some the other, and the largest index tells which.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use warpsmith_rms24::table::Take;
use warpsmith_rms24::{Error, Result};

use super::whole;
use crate::code::{code_hash, code_hash_record, code_number};
use crate::record::{Account, Address, account_record, slot_record, u32_at};

const WORD: u64 = 32;

/// Files in the format above.
pub struct WordFolder {
    words: File,
    path: PathBuf,
    accounts: PathBuf,
    slots: PathBuf,
    account_count: u64,
    slot_count: u64,
    /// Words of the index of an account.
    step: u64,
}

impl WordFolder {
    /// Whether the database of a folder has as many words as its mappings say, and not as many records of 40 bytes.
    pub fn is_at(folder: &Path) -> bool {
        let length = |name: &str| std::fs::metadata(folder.join(name)).map_or(0, |facts| facts.len());
        let (accounts, slots) = (length("account-mapping.bin") / 24, length("storage-mapping.bin") / 56);
        let bytes = length("database.bin");
        accounts > 0 && bytes == WORD * (3 * accounts + slots) && bytes != 40 * (accounts + slots)
    }

    /// Opens the files of a folder, and reads the indices of its accounts.
    ///
    /// # Errors
    ///
    /// When one is missing, or they do not fit each other.
    pub fn open(folder: &Path) -> Result<WordFolder> {
        let path = folder.join("database.bin");
        let words = File::open(&path).map_err(Error::io(&path))?;
        let bytes = words.metadata().map_err(Error::io(&path))?.len();
        let (accounts, slots) = (folder.join("account-mapping.bin"), folder.join("storage-mapping.bin"));
        let length = |path: &Path| std::fs::metadata(path).map(|facts| facts.len());
        let account_count = whole(&accounts, length(&accounts).map_err(Error::io(&accounts))?, 24)?;
        let slot_count = match length(&slots) {
            Ok(length) => whole(&slots, length, 56)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(Error::io(&slots)(error)),
        };
        let expected = WORD * (3 * account_count + slot_count);
        if bytes != expected {
            let reason = format!(
                "{bytes} bytes, and three words of 32 bytes for each of {account_count} accounts and one for each of {slot_count} \
                 slots are {expected}"
            );
            return Err(Error::format(path.display().to_string(), reason));
        }
        let mut folder = WordFolder { words, path, accounts, slots, account_count, slot_count, step: 1 };
        let mut largest = 0;
        folder.each_line(&folder.accounts, account_count, 20, &mut |_, index| {
            largest = largest.max(index);
            Ok(())
        })?;
        folder.step = match account_count.saturating_sub(1) {
            last if largest == 3 * last => 1,
            last if largest == last => 3,
            last => {
                let reason = format!(
                    "the largest index of {account_count} accounts is {largest}; it must be {} or {last}",
                    3 * last
                );
                return Err(Error::format(folder.accounts.display().to_string(), reason));
            }
        };
        Ok(folder)
    }

    fn each_line(
        &self,
        path: &Path,
        count: u64,
        key_bytes: usize,
        take: &mut dyn FnMut(&[u8], u64) -> Result<()>,
    ) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let mut file = BufReader::with_capacity(1 << 20, File::open(path).map_err(Error::io(path))?);
        let mut line = vec![0; key_bytes + 4];
        for _ in 0..count {
            file.read_exact(&mut line).map_err(Error::io(path))?;
            take(&line[..key_bytes], u32_at(&line, key_bytes).into())?;
        }
        Ok(())
    }

    /// Words from this one on; all accounts stand before all slots.
    fn words<const N: usize>(&self, at: u64, within: std::ops::Range<u64>) -> Result<[u8; N]> {
        let words = N as u64 / WORD;
        if at < within.start || at + words > within.end {
            let reason = format!("word {at} is none of those from {} to {}", within.start, within.end);
            return Err(Error::format(self.path.display().to_string(), reason));
        }
        let mut bytes = [0; N];
        self.words.read_exact_at(&mut bytes, WORD * at).map_err(Error::io(&self.path))?;
        Ok(bytes)
    }

    /// Hands over every key with its record, as [`Folder::each`](super::Folder::each) does; those that tell the hashes of codes too.
    /// Values of slots are turned, so that they are as a node says them.
    ///
    /// # Errors
    ///
    /// When an index or a number is impossible, a file cannot be read, or `take` fails.
    pub fn each(&self, take: &mut Take<'_>) -> Result<()> {
        let slots_from = 3 * self.account_count;
        let nobody = code_hash(&[]);
        self.each_line(&self.accounts, self.account_count, 20, &mut |key, index| {
            let address: &Address = key.try_into().expect("twenty bytes");
            let words = self.words::<96>(index * self.step, 0..slots_from)?;
            let wrong = |what: &str| {
                Error::format(self.path.display().to_string(), format!("word {}: {what}", index * self.step))
            };
            if words[4..32].iter().chain(&words[48..64]).any(|byte| *byte != 0) {
                return Err(wrong(
                    "a nonce has more than 32 bits, or a balance more than 128; is this the format?",
                ));
            }
            let hash: [u8; 32] = *words.last_chunk().expect("96 bytes");
            let has_code = hash != [0; 32] && hash != nobody;
            let account = Account {
                balance: u128::from_le_bytes(*words[32..].first_chunk().expect("64 bytes")),
                nonce: u32_at(&words, 0),
                code: if has_code { code_number(&hash) } else { 0 },
            };
            take(key, &account_record(address, &account))?;
            match has_code {
                true => {
                    let (key, record) = code_hash_record(address, &hash);
                    take(&key, &record)
                }
                false => Ok(()),
            }
        })?;
        self.each_line(&self.slots, self.slot_count, 52, &mut |key, index| {
            let mut value = self.words::<32>(index, slots_from..slots_from + self.slot_count)?;
            value.reverse();
            take(key, &slot_record(key, &value))
        })
    }
}
