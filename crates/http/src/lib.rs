//! What every HTTP listener of the project has in common: connection limits, timeouts, and quotas and queues by client.
//!
//! [`serve`] accepts connections within [`ConnectionLimits`] and hands their requests to a router, with the [`Peer`]
//! they came from. [`read_body`] reads a request's body within a size and a time. [`Quota`] and [`FairQueue`] divide
//! what is scarce between clients. Nothing here knows what is served.

mod body;
mod connection;
mod fair;
mod host;
pub mod open_files;
mod quota;

pub use body::{BODY_TIMEOUT, BodyError, read_body};
pub use connection::{ConnectionCounts, ConnectionLimits, serve};
pub use fair::{FairQueue, Permit, QueueError};
pub use host::{Peer, host_of};
pub use quota::{Full, Quota, Share};
