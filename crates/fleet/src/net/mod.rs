//! The fleet over NATS: who may say what to whom, and the loops of coordinator and worker.
//!
//! | subject | who | what |
//! |---|---|---|
//! | `req.get.W` | worker W asks | a lease, or what to do instead |
//! | `req.job.W` | worker W asks | a part of a job's text |
//! | `req.put.W` | worker W reports | the verdict, when the ledger is on disk |
//! | `co.*` | whoever has the folder | status and cancelling |
//!
//! A worker may publish to its own subjects alone, and listen to its own inbox alone. The server keeps nothing: jobs, ledgers,
//! results, and which coordinator leads are in the folder. So there is no store that a message could change, and whatever reply
//! subject a worker names, only the coordinator answers it, and only to that worker's inbox.

pub mod connect;
pub mod home;
pub mod lead;
pub mod leader;
pub mod own;
pub mod status;
pub mod submit;
mod text;
pub mod work;
