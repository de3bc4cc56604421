//! Search secp256k1 keys by the look of their public form.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use std::time::Duration;
//! use warpsmith::{Devices, Event, Job, Options, Selector, Subject, Wanted, chain, compile, run};
//!
//! let npub = chain::find("npub").unwrap();
//! let patterns = compile(["qq"], npub, &Options::default())?;
//! let devices = Devices::open(&[Selector::Cpu(None)], Some(1))?;
//! let job = Job {
//!     subject: Subject::Key(npub),
//!     wanted: Wanted::Patterns(&patterns),
//!     split: None,
//!     count: Some(1),
//!     time_limit: None,
//!     interval: Duration::from_secs(1),
//! };
//! let outcome = run(&job, &devices, &AtomicBool::new(false), &mut |event| {
//!     if let Event::Match(found) = event {
//!         assert!(found.address.starts_with("npub1qq"));
//!     }
//!     Ok(())
//! })?;
//! assert_eq!(outcome.matches, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use warpsmith_chain as chain;
pub use warpsmith_curve as curve;
pub use warpsmith_engine::*;
pub use warpsmith_pattern as pattern;
pub use warpsmith_pattern::{Options, Patterns, compile};
pub use warpsmith_pir as pir;
pub use warpsmith_store as store;
