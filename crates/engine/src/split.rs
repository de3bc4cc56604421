//! What a miner hands to the owner of a public key.

/// How the final key follows from the user's: `(-1)^negate * lambda^endo * (key + offset)` modulo n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Big-endian.
    pub offset: [u8; 32],
    /// The power of lambda, 0 to 2.
    pub endo: u8,
    /// Whether the result is negated.
    pub negate: bool,
}
