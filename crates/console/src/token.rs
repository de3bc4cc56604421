//! The flag `--token-file`: a bearer token in a file.

use std::path::Path;

use warpsmith_files::{Token, read_secret};

use crate::exit::Failure;

/// Reads the bearer token of `--token-file` from a file that nobody else may read.
pub fn read_token(path: &Path) -> Result<Token, Failure> {
    let content =
        read_secret(path, Token::MOST_BYTES).map_err(|error| Failure::of("--token-file", &error))?;
    Token::new(&content).map_err(|error| Failure::Usage(format!("--token-file {}: {error}", path.display())))
}
