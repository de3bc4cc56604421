//! Search secp256k1 keys by the look of their public form, and scan ranges of keys.
//!
//! ```
//! use warpsmith::{Devices, mine, npub};
//!
//! let found = mine(npub(), ["qq"]).on(Devices::auto()?).first()?;
//! println!("{} {}", found.address, found.export().expect("a whole key"));
//! # Ok::<(), warpsmith::Error>(())
//! ```
//!
//! [`mine`] and [`scan`](fn@scan) are the two things this library does. Each gives a description to which wishes are
//! added, and begins when its results are asked for. The programs in `crates/warpsmith/examples` show them whole, and how to
//! search addresses of a chain of your own.
//!
//! What they are made of is in modules for programs that need more say: [`search`], [`mod@scan`],
//! [`devices`], [`keys`], [`proof`] and the crates [`chain`], [`keystore`], [`pattern`], [`store`]
//! and [`curve`]; `fleet` is for searches on many machines.

mod background;
mod error;
mod mine;
pub mod scan;

pub use background::{Note, Running};
pub use error::{Error, Result};
pub use mine::{Matches, Mine, mine, mine_best, mine_salts};
pub use scan::scan;
pub use warpsmith_chain as chain;
use warpsmith_chain::KeyTarget;
use warpsmith_chain::coin::{AddressType, BITCOIN};
pub use warpsmith_curve as curve;
pub use warpsmith_engine::{Devices, Match, Solution};
#[cfg(feature = "fleet")]
pub use warpsmith_fleet as fleet;
pub use warpsmith_keystore as keystore;
pub use warpsmith_pattern as pattern;
pub use warpsmith_store as store;

/// Nostr public keys: `npub1...`.
///
/// ```
/// use warpsmith::npub;
/// use warpsmith::pattern::{Options, compile};
///
/// let patterns = compile(["cafe"], &npub(), &Options::default())?;
/// assert_eq!(patterns.odds(), 2f64.powi(-20));
/// # Ok::<(), warpsmith::Error>(())
/// ```
pub fn npub() -> impl KeyTarget + 'static {
    chain::nostr::Npub
}

/// Ethereum accounts: `0x...`.
///
/// ```
/// use warpsmith::{Devices, eth, mine};
///
/// let found = mine(eth(), ["ca"]).on(Devices::cpu()?).first()?;
/// assert!(found.address.to_lowercase().starts_with("0xca"));
/// # Ok::<(), warpsmith::Error>(())
/// ```
pub fn eth() -> impl KeyTarget + 'static {
    chain::ethereum::Account
}

/// Bitcoin addresses of this type, on the main network: `1...`, `3...`, `bc1q...` or `bc1p...`.
///
/// ```
/// use warpsmith::chain::coin::AddressType;
/// use warpsmith::{Devices, btc, mine};
///
/// let found = mine(btc(AddressType::P2wpkh), ["bc1qc"]).on(Devices::cpu()?).first()?;
/// assert!(found.address.starts_with("bc1qc"));
/// # Ok::<(), warpsmith::Error>(())
/// ```
pub fn btc(address_type: AddressType) -> impl KeyTarget + 'static {
    BITCOIN.main(address_type)
}

/// Devices: what this machine has, which of it is used, and how.
///
/// ```
/// use warpsmith::devices::{Devices, Selector, survey};
///
/// for found in survey().found {
///     println!("{}: {}", found.id, found.description);
/// }
/// let two_threads = Devices::open(&["cpu".parse::<Selector>()?], Some(2))?;
/// assert_eq!(two_threads.describe().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod devices {
    pub use warpsmith_engine::{
        Api, CardOptions, Compiled, Devices, FilterRoom, Found, Inline, Inspection, Preparing, Runner,
        Selector, Simd, Survey, TuneFor, Tuned, TunedPrograms, UnderWay, drivers_are_busy, inspect, survey,
        tune, under_way,
    };
}

/// Private and public keys, and split keys.
///
/// ```
/// use warpsmith::keys::{Secret, join};
/// use warpsmith::{Devices, mine, npub};
///
/// // The owner gives a public key away, and whoever mines learns no private key.
/// let own = Secret::random()?;
/// let found = mine(npub(), ["qq"]).on(Devices::cpu()?).split_key(own.public_key()).first()?;
/// assert!(found.secret().is_none());
/// // The owner makes the key of it.
/// let joined = join(&own, found.split().unwrap(), &npub(), &found.address, found.public_key())?;
/// assert_eq!(joined.address, found.address);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod keys {
    pub use warpsmith_engine::{
        Joined, PublicKey, PublicKeyError, Secret, Split, join, parse_public_key, public_point, wiping_stack,
    };
}

/// A search in all its parts: what [`mine`] is made of.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use warpsmith::pattern::{Options, compile};
/// use warpsmith::search::{Ended, Event, Job, Subject, Wanted, run};
/// use warpsmith::{Devices, npub};
///
/// let npub = npub();
/// let patterns = compile(["qq"], &npub, &Options::default())?;
/// let job = Job { count: Some(1), ..Job::new(Subject::Key(&npub), Wanted::Patterns(&patterns)) };
/// let outcome = run(&job, &Devices::cpu()?, &AtomicBool::new(false), &mut |event| {
///     if let Event::Found(found) = event {
///         assert!(found.iter().all(|found| found.address.starts_with("npub1qq")));
///     }
///     Ok(())
/// })?;
/// assert_eq!((outcome.ended, outcome.matches), (Ended::Count, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod search {
    pub use warpsmith_engine::{
        Covered, Details, Ended, Error, Event, Job, KeyUnit, Match, Outcome, Outfit, Pause, Progress,
        RangeRunner, RangeStart, RangeUnit, Result, SaltUnit, Show, Solution, Subject, Unit, UnitOrigin,
        UnitRunner, Wanted, Why, check_spots, run, settle, time_to,
    };
}

/// Self-tests and measurements: that devices compute rightly, and how fast.
///
/// ```
/// use warpsmith::Devices;
/// use warpsmith::proof::bench_field;
///
/// for bench in bench_field(&Devices::cpu()?, 0.01)? {
///     println!("{} {}: {:.0} per second", bench.device, bench.op, bench.rate);
///     assert!(bench.verified > 0);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod proof {
    pub use warpsmith_engine::{
        BASELINE_DESCRIPTION, Bench, BenchOptions, Detail, FieldBench, Part, Profile, Sample, ScanBench,
        ScanOf, SelfTest, bench, bench_field, bench_scan, distinct_samples, quick_rate, samples, selftest,
        selftest_cases, selftest_scans,
    };
}
