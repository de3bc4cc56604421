//! The fleet over NATS: who may say what to whom, and the loops of coordinator and worker.
//!
//! | subject | who | what |
//! |---|---|---|
//! | `req.get.W` | worker W asks | a lease, or what to do instead |
//! | `req.put.W` | worker W reports | the verdict, when the ledger is on disk |
//! | `hit.W` | worker W | a match, ahead of its report; stream `HIT` keeps it until the coordinator has it |
//! | `$KV.JOB.ID.N` | coordinator | the text of a job, in pieces |
//! | `$KV.LEAD.leader` | coordinators | who leads; its revision is the epoch |
//! | `co.*` | whoever has the folder | status and cancelling |
//!
//! A worker may publish to its own subjects alone, read texts of jobs, and listen to its own inbox alone.

pub mod connect;
pub mod home;
pub mod lead;
pub mod leader;
pub mod status;
pub mod submit;
pub mod work;
