//! The bearer token of a service, kept in a file.

use std::path::Path;

use warpsmith_console::exit::Failure;
use warpsmith_console::secret_file;
use warpsmith_pir::Token;

/// Reads the token from a file that nobody else may read.
pub(crate) fn read_token(path: &Path) -> Result<Token, Failure> {
    let content = secret_file::read("--token-file", path, Token::MOST_BYTES)?;
    Token::new(&content).map_err(|error| Failure::Usage(format!("--token-file {}: {error}", path.display())))
}
