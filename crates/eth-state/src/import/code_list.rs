//! The list of code hashes of a folder: `code_store.bin`.

use std::path::{Path, PathBuf};

use warpsmith_rms24::{Error, Result};

use crate::record::code_id;

/// The hashes of the codes of a folder's contracts, which their records have by number:
/// `code_store.bin`.
pub struct CodeList {
    path: PathBuf,
    hashes: Vec<u8>,
}

impl CodeList {
    /// Reads the list of a folder.
    ///
    /// # Errors
    ///
    /// When it is missing, or not as long as it says.
    pub fn open(folder: &Path) -> Result<CodeList> {
        let path = folder.join("code_store.bin");
        let mut hashes = std::fs::read(&path).map_err(Error::io(&path))?;
        let count = hashes.first_chunk().map(|count| u64::from(u32::from_le_bytes(*count)));
        if count.map(|count| 4 + 32 * count) != Some(hashes.len() as u64) {
            let reason = "it is not a number of hashes and as many hashes of 32 bytes";
            return Err(Error::format(path.display().to_string(), reason));
        }
        hashes.drain(..4);
        Ok(CodeList { path, hashes })
    }

    /// The hash of the code that the record of an account names, if it has one.
    ///
    /// # Errors
    ///
    /// When the list is too short for its number.
    pub fn of(&self, account: &[u8]) -> Result<Option<[u8; 32]>> {
        let number = code_id(account) as usize;
        // The first code has the number 1.
        let Some(at) = number.checked_sub(1) else { return Ok(None) };
        let hash = self.hashes.get(32 * at..).and_then(<[u8]>::first_chunk);
        hash.copied().map(Some).ok_or_else(|| {
            let reason = format!("an account has code {number}, and there are {}", self.hashes.len() / 32);
            Error::format(self.path.display().to_string(), reason)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Account, account_record};

    #[test]
    fn numbers_of_codes_begin_with_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("code_store.bin");
        let list = [&2u32.to_le_bytes()[..], &[0xaa; 32], &[0xbb; 32]].concat();
        std::fs::write(&path, &list).unwrap();
        let codes = CodeList::open(folder.path()).unwrap();
        let of = |code| codes.of(&account_record(&[1; 20], &Account { balance: 1, nonce: 2, code }));
        assert_eq!(
            (of(0).unwrap(), of(1).unwrap(), of(2).unwrap()),
            (None, Some([0xaa; 32]), Some([0xbb; 32]))
        );
        assert!(of(3).unwrap_err().to_string().contains("code 3, and there are 2"));
        for wrong in [&list[..67], &list[..36], &[], &[2]] {
            std::fs::write(&path, wrong).unwrap();
            assert!(CodeList::open(folder.path()).is_err());
        }
    }
}
