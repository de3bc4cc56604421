//! What an application tells of its records ([`Layout::Records`](super::Layout::Records)).

/// Tells whose the records of a table are, and what they are the state of.
///
/// Records have a format of their own and do not carry the names of their keys, so this crate can
/// neither find a key among the entries of its places nor change it without this.
pub trait RecordLayout: Send + Sync {
    /// Whether a record is that of a key.
    fn belongs_to(&self, key: &[u8], record: &[u8]) -> bool;

    /// Keys of the records that tell the head: what all entries of an epoch are the state of. None
    /// where records do not tell it.
    fn head_keys(&self) -> Vec<Vec<u8>>;

    /// Reads the head, from the records at all places of each of these keys. It is a line of
    /// visible ASCII characters and spaces, which servers hand to clients as it is; none where the
    /// records do not tell it.
    fn head(&self, records: &[Vec<Vec<u8>>]) -> Option<String>;
}
