//! What lies between a key or a salt and its address.

use zeroize::Zeroizing;

/// What else a person should know of a result: names and texts, in the order of computation.
pub type Details = Vec<(&'static str, Zeroizing<String>)>;
