//! Bearer tokens that services require of their clients.

use std::fmt;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Error for a text that is no bearer token. It does not repeat the text.
#[derive(Debug, thiserror::Error)]
#[error("token: {0}")]
pub struct TokenError(String);

/// A bearer token (RFC 6750): whoever has it may use the service. `Debug` does not show it.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// The most bytes of a file with one, ends of lines among them.
    pub const MOST_BYTES: u64 = 1024;
    /// How long one is.
    const LENGTHS: std::ops::RangeInclusive<usize> = 16..=512;

    /// The token in a file's content: one word, which may be followed by the end of its line.
    ///
    /// # Errors
    ///
    /// When it is too short, too long, or has a character that cannot travel. The error does not repeat it.
    pub fn new(content: &[u8]) -> Result<Token, TokenError> {
        let wrong = |reason: &str| {
            Err(TokenError(format!(
                "{reason}; it is one line of 16 to 512 letters, digits and - . _ ~ + / =, such as `openssl rand -hex 32` gives"
            )))
        };
        let word = content.strip_suffix(b"\n").unwrap_or(content);
        let word = word.strip_suffix(b"\r").unwrap_or(word);
        if !Token::LENGTHS.contains(&word.len()) {
            return wrong(&format!("it has {} characters", word.len()));
        }
        if !word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte)) {
            return wrong("it has a character that may not be in one");
        }
        let text = std::str::from_utf8(word).expect("ASCII was checked");
        Ok(Token(Zeroizing::new(text.to_owned())))
    }

    /// The token itself, to be sent.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether a request's `Authorization` holds this token.
    ///
    /// SEC: digests are compared, so that the time tells nothing about the token: whoever guesses cannot choose a digest.
    pub fn is_in(&self, authorization: &[u8]) -> bool {
        let Some((scheme, given)) = authorization.split_at_checked(7) else { return false };
        scheme.eq_ignore_ascii_case(b"Bearer ") && Sha256::digest(given) == Sha256::digest(self.0.as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: &str = "abcDEF0123456789-._~+/=";

    #[test]
    fn tokens_are_one_word_and_never_repeated() {
        for end in ["", "\n", "\r\n"] {
            assert_eq!(Token::new(format!("{WORD}{end}").as_bytes()).unwrap().expose(), WORD);
        }
        for wrong in
            ["", "short", "with a blank in it", "line-one-is-long\nline-two", "\u{1b}[31mred-and-long-enough"]
        {
            let error = Token::new(wrong.as_bytes()).unwrap_err().to_string();
            assert!(wrong.is_empty() || !error.contains(wrong), "{error}");
            assert!(error.contains("16 to 512"), "{error}");
        }
        assert!(Token::new(&[b'a'; 513]).is_err() && Token::new(&[b'a'; 512]).is_ok());
        assert!(!format!("{:?}", Token::new(WORD.as_bytes()).unwrap()).contains(WORD));
    }

    #[test]
    fn the_same_token_and_no_other() {
        let token = Token::new(WORD.as_bytes()).unwrap();
        for right in [format!("Bearer {WORD}"), format!("bearer {WORD}")] {
            assert!(token.is_in(right.as_bytes()), "{right}");
        }
        for wrong in ["", "Bearer ", "Bearer", &format!("Bearer {WORD}x"), &format!("Basic {WORD}"), WORD] {
            assert!(!token.is_in(wrong.as_bytes()), "{wrong}");
        }
    }
}
