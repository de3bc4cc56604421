//! Conversion of library errors to failures of commands.

use std::error::Error as StdError;

use warpsmith::{fleet, search, store};
use warpsmith_console::exit::{Failure, causes};

use crate::advice;

/// Errors of libraries that commands fail with.
pub(crate) trait IntoFailure {
    fn into_failure(self) -> Failure;
}

/// Conversion of a result's error to a failure.
pub(crate) trait OrFail<T> {
    /// Converts the error, if there is one, to the failure for it.
    fn or_fail(self) -> Result<T, Failure>;
}

impl<T, E: IntoFailure> OrFail<T> for Result<T, E> {
    fn or_fail(self) -> Result<T, Failure> {
        self.map_err(IntoFailure::into_failure)
    }
}

/// Returns the failure for an error about an input, as [`Failure::of`] does. A list of addresses that cannot be read as one is wrong
/// usage, too.
pub(crate) fn failure_of(about: &str, error: &(dyn StdError + 'static)) -> Failure {
    match Failure::of(about, error) {
        Failure::Other(text) if is_bad_list(error) => Failure::Usage(text),
        failure => failure,
    }
}

/// Returns whether an error is that of a malformed list of addresses.
fn is_bad_list(error: &(dyn StdError + 'static)) -> bool {
    causes(error).filter_map(|cause| cause.downcast_ref::<store::Error>()).any(|cause| {
        matches!(
            cause,
            store::Error::BadLine(_) | store::Error::NotLines { .. } | store::Error::NoAddress { .. }
        )
    })
}

impl IntoFailure for warpsmith::Error {
    fn into_failure(self) -> Failure {
        match self {
            warpsmith::Error::Search(error) => error.into_failure(),
            warpsmith::Error::Pattern(_) | warpsmith::Error::Range(_) => Failure::Usage(self.to_string()),
            other => failure_of("", &other),
        }
    }
}

impl IntoFailure for search::Error {
    fn into_failure(self) -> Failure {
        match self {
            search::Error::NoDevice(_) => Failure::Device(format!(
                "{self}\n`warpsmith devices` lists what this machine has; --device cpu always works"
            )),
            search::Error::SelfTest { .. } => Failure::Device(format!(
                "{self}\nnothing this device says can be trusted; try another one with --device, and \
                 `warpsmith selftest` for the details"
            )),
            search::Error::Scan(text) => Failure::Usage(text),
            search::Error::DevicesLost { .. } => Failure::Device(self.to_string()),
            // Our own sinks fail with a `Failure`, which passes through the engine unchanged.
            search::Error::Sink(inner) => match inner.downcast::<Failure>() {
                Ok(failure) => *failure,
                Err(inner) => Failure::Other(inner.to_string()),
            },
            other => Failure::Other(other.to_string()),
        }
    }
}

impl IntoFailure for fleet::Error {
    fn into_failure(self) -> Failure {
        if let Some(text) = advice::of_fleet(&self) {
            return Failure::Usage(text);
        }
        match self {
            fleet::Error::Engine(error) => error.into_failure(),
            other => failure_of("", &other),
        }
    }
}
