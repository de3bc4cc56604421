//! Why a text is not what it should be.
//!
//! SEC: none of these messages repeats the text: it may be a secret key pasted in the wrong place. At most one
//! character is shown, and only one that cannot be part of a key.

/// A text that could not be decoded. Positions count characters from 1, head included.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A secret key where a public one belongs.
    #[error(
        "this is a SECRET key ({given}), where a public key ({expected}) is expected; it is not repeated here. \
         Give the {expected} that belongs to it, and treat the secret as exposed if this input is kept anywhere"
    )]
    Secret {
        /// What gave it away.
        given: &'static str,
        /// What is wanted.
        expected: &'static str,
    },
    /// Another kind of text.
    #[error("expected a text that begins with {expected}{}", given.as_ref().map_or(String::new(), |given| format!("; this begins with {given}")))]
    Prefix {
        /// How the text begins, where that is known to begin another kind of text.
        given: Option<String>,
        /// How it should.
        expected: &'static str,
    },
    /// Upper and lower case in one text.
    #[error(
        "the text mixes upper and lower case, which bech32 forbids: write it all in lower case, as it was given out"
    )]
    MixedCase,
    /// A character the encoding does not have.
    #[error(
        "character {position} is {character:?}, which cannot occur there: after {head} come only the characters \
         {alphabet}. Check the text against its source"
    )]
    Character {
        /// The character.
        character: char,
        /// Its position.
        position: usize,
        /// What every text begins with.
        head: &'static str,
        /// The characters that can occur.
        alphabet: &'static str,
    },
    /// Too short or too long.
    #[error(
        "the text has {given} characters, but an {expected} has {wanted}: some were {} in copying",
        if given < wanted { "lost" } else { "added" }
    )]
    Length {
        /// How many characters there are.
        given: usize,
        /// How many there must be.
        wanted: usize,
        /// What the text should be.
        expected: &'static str,
    },
    /// Too short or too long for a text that has several lengths.
    #[error(
        "the text has {given} characters, but an address has {least} to {most}: some were lost or added in copying"
    )]
    Lengths {
        /// How many characters there are.
        given: usize,
        /// The fewest there can be.
        least: usize,
        /// The most there can be.
        most: usize,
    },
    /// The checksum does not fit.
    #[error(
        "the checksum does not fit, so at least one character is wrong: check the text against its source"
    )]
    Checksum,
    /// Coordinates of no point.
    #[error(
        "no point of secp256k1 has these coordinates, so it is no public key: check the text against its source"
    )]
    NoPoint,
    /// The case of the letters does not fit.
    #[error(
        "upper and lower case are a checksum here (EIP-55), and it does not fit from character {position} on, so at \
         least one character is wrong: check the text against its source"
    )]
    CaseChecksum {
        /// The position of the first letter in the wrong case.
        position: usize,
    },
    /// The bits that fill up the last data character are not zero.
    #[error(
        "character {position} carries data bits beyond the last byte, which must be zero: no correct program wrote \
         this text"
    )]
    Padding {
        /// The position of the last data character.
        position: usize,
    },
}
