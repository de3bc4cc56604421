//! What lies between a key or a salt and its address.

use zeroize::Zeroizing;

/// What else a person should know of a result: names and texts, in the order of computation.
///
/// ```
/// use warpsmith_engine::Details;
///
/// let details: Details = vec![("type", "p2wpkh".to_owned().into())];
/// assert!(details.iter().any(|(name, text)| *name == "type" && text.as_str() == "p2wpkh"));
/// ```
pub type Details = Vec<(&'static str, Zeroizing<String>)>;
