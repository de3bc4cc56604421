//! Which block of which chain a state is of. It stands in the table itself, so that it changes with
//! the entries, epoch by epoch, and needs nothing that older files, servers and clients do not
//! know.
//!
//! ```text
//! slots of the address "warpsmith chain head" (its 20 letters; whoever had its key could break Keccak-256)
//!   0   chain id u64, number u64, time u64 (seconds since 1970), zeros [8]        numbers with the most significant byte first
//!   1   hash of the block [32]
//! ```

use std::fmt;
use std::str::FromStr;

use crate::record::{Address, RECORD, find_slot, slot_key, slot_record};

/// The address whose slots tell of the block.
const ADDRESS: Address = *b"warpsmith chain head";

/// A block of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainHead {
    /// Which chain: 1 is Ethereum's own.
    pub chain_id: u64,
    /// The block's number.
    pub number: u64,
    /// When it was made, in seconds since 1970.
    pub time: u64,
    /// Its hash.
    pub hash: [u8; 32],
}

impl ChainHead {
    /// The keys of its two records.
    pub fn keys() -> [Vec<u8>; 2] {
        [0, 1].map(|number| {
            let mut slot = [0; 32];
            slot[31] = number;
            slot_key(&ADDRESS, &slot)
        })
    }

    /// Its records, each with its key.
    pub fn records(&self) -> [(Vec<u8>, [u8; RECORD]); 2] {
        let mut numbers = [0; 32];
        for (to, number) in numbers.chunks_exact_mut(8).zip([self.chain_id, self.number, self.time]) {
            to.copy_from_slice(&number.to_be_bytes());
        }
        let [first, second] = ChainHead::keys();
        let (numbers, hash) = (slot_record(&first, &numbers), slot_record(&second, &self.hash));
        [(first, numbers), (second, hash)]
    }

    /// What the records at all places of the two keys say; none where the state does not tell.
    pub fn find(records: [&[Vec<u8>]; 2]) -> Option<ChainHead> {
        let [first, second] = ChainHead::keys();
        let numbers = find_slot(&first, records[0])?;
        let number = |at: usize| u64::from_be_bytes(*numbers[at..].first_chunk().expect("32 bytes"));
        let hash = find_slot(&second, records[1])?;
        Some(ChainHead { chain_id: number(0), number: number(8), time: number(16), hash })
    }
}

/// As a server tells it in the header of an answer: see
/// [`RecordLayout::head`](warpsmith_rms24::keyword::RecordLayout::head).
impl fmt::Display for ChainHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChainHead { chain_id, number, time, hash } = self;
        write!(f, "{chain_id} {number} {time} 0x")?;
        hash.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for ChainHead {
    type Err = ();

    fn from_str(text: &str) -> Result<ChainHead, ()> {
        let words: Vec<&str> = text.split(' ').collect();
        let [chain_id, number, time, hash] = words[..] else { return Err(()) };
        let digits =
            hash.strip_prefix("0x").filter(|digits| digits.len() == 64 && digits.is_ascii()).ok_or(())?;
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&digits[at..at + 2], 16).map_err(drop)?;
        }
        let number_of = |word: &str| word.parse().map_err(drop);
        Ok(ChainHead {
            chain_id: number_of(chain_id)?,
            number: number_of(number)?,
            time: number_of(time)?,
            hash: bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_from_records_and_from_text() {
        let hash = std::array::from_fn(|i| 0xf0 ^ i as u8);
        for number in [0, 1, 23_876_768, u64::MAX] {
            let head = ChainHead { chain_id: 1, number, time: 1_700_000_000, hash };
            let [(_, first), (_, second)] = head.records();
            let other = vec![vec![7; RECORD], vec![0; RECORD]];
            let with = |record: [u8; RECORD]| [&other[..], &[record.to_vec()]].concat();
            assert_eq!(ChainHead::find([&with(first), &with(second)]), Some(head));
            assert_eq!(ChainHead::find([&with(first), &other]), None);
            assert_eq!(head.to_string().parse(), Ok(head));
        }
        let zeros = "0".repeat(64);
        for wrong in [
            "",
            "1 2 3",
            "1 2 3 0x12",
            &format!("1 2 3 {zeros}"),
            &format!("1 -2 3 0x{zeros}"),
            &format!("1 2 3 0x{}", "ä".repeat(32)),
        ] {
            assert_eq!(wrong.parse::<ChainHead>(), Err(()), "{wrong}");
        }
    }
}
