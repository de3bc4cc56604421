//! Names of jobs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a job: SHA-256 of its text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub [u8; 32]);

/// A text that names no job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a job is named by 64 hex digits")]
pub struct JobIdError;

impl JobId {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first twelve digits, which is what people are shown.
    pub fn short(&self) -> String {
        const_hex::encode(&self.0[..6])
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&const_hex::encode(self.0))
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobId({})", self.short())
    }
}

impl FromStr for JobId {
    type Err = JobIdError;

    fn from_str(text: &str) -> Result<JobId, JobIdError> {
        let mut bytes = [0; 32];
        const_hex::decode_to_slice(text, &mut bytes).map_err(|_| JobIdError)?;
        Ok(JobId(bytes))
    }
}

impl Serialize for JobId {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<JobId, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
