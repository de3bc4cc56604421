//! Bodies of requests, within a size and a time.

use std::fmt;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use tokio::time::timeout;

/// Time for a request's body to arrive, counted from its head.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is longer than so many bytes, or broke off.
    TooLarge(usize),
    /// It did not arrive within this time.
    Timeout(Duration),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::TooLarge(most) => write!(f, "a request may have at most {most} bytes"),
            BodyError::Timeout(time) => write!(f, "the request did not arrive within {time:?}"),
        }
    }
}

impl std::error::Error for BodyError {}

/// Reads the whole body of a request: at most `most` bytes, within `time`.
///
/// # Errors
///
/// When it is longer, or does not arrive in time.
pub async fn read_body(body: Body, most: usize, time: Duration) -> Result<Bytes, BodyError> {
    let announced = hyper::body::Body::size_hint(&body).lower();
    if announced > most as u64 {
        return Err(BodyError::TooLarge(most));
    }
    match timeout(time, to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => Err(BodyError::TooLarge(most)),
        Err(_) => Err(BodyError::Timeout(time)),
    }
}
