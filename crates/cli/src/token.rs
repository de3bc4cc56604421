//! The word that a service asks its clients for, kept in a file.

use std::path::Path;

use warpsmith_pir::Token;

use crate::ending::Failure;

/// The token in a file that nobody else may read.
pub(crate) fn read_token(path: &Path) -> Result<Token, Failure> {
    let content = warpsmith_files::read_secret(path, Token::MOST_BYTES)
        .map_err(|error| Failure::of("--token-file", &error))?;
    Token::new(&content).map_err(|error| Failure::Usage(format!("--token-file {}: {error}", path.display())))
}
