//! Files with a secret, such as a bearer token.

use std::path::Path;

use zeroize::Zeroizing;

use crate::exit::Failure;

/// Reads a secret of at most `max_bytes` from a file that nobody else may read; `flag` names the option for messages.
pub fn read(flag: &str, path: &Path, max_bytes: u64) -> Result<Zeroizing<Vec<u8>>, Failure> {
    warpsmith_files::read_secret(path, max_bytes).map_err(|error| Failure::of(flag, &error))
}
