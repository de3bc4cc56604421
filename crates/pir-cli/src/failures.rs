//! Conversion of library errors to failures of commands.

use std::error::Error as StdError;

use warpsmith_console::exit::{Failure, causes};
use warpsmith_console::program_name;
use warpsmith_eth_state as eth_state;
use warpsmith_rms24 as rms24;
use warpsmith_store as store;

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

impl IntoFailure for rms24::Error {
    fn into_failure(self) -> Failure {
        match self {
            rms24::Error::Params(_) | rms24::Error::Index { .. } => Failure::Usage(self.to_string()),
            rms24::Error::Stopped => Failure::Interrupted,
            rms24::Error::Device(_) => {
                Failure::Device(format!("{self}\nthe processor can make them too: --device cpu"))
            }
            rms24::Error::Wrong { .. } => Failure::Device(self.to_string()),
            rms24::Error::Format { .. } => Failure::Malformed(self.to_string()),
            other => Failure::of("", &other),
        }
    }
}

impl IntoFailure for eth_state::Error {
    fn into_failure(self) -> Failure {
        match self {
            eth_state::Error::Retrieval(error) => error.into_failure(),
            other => Failure::of("", &other),
        }
    }
}

impl IntoFailure for warpsmith_device::Error {
    fn into_failure(self) -> Failure {
        Failure::Device(format!(
            "{self}\n`{} devices` lists what this machine has; --device cpu always works",
            program_name()
        ))
    }
}
