//! Texts of one length: sets of characters, and how likely each is at a position.

/// A set of characters, one bit each. There are at most 64.
pub(crate) type Set = u64;

/// Texts of one length.
#[derive(Clone)]
pub(crate) struct Length {
    /// The share of keys with such a text.
    pub share: f64,
    /// For each position the characters it can hold.
    pub allowed: Vec<Set>,
    /// For the first positions, where not all of these are equally likely, the chance of each character.
    pub chances: Vec<Vec<f64>>,
}
