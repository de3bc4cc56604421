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
//! `verify` recomputes results and keys, [`estimate`] says how long a search takes, [`each`] finds one result of every pattern, and
//! `salts` schedules requests of many clients.
//!
//! What they are made of is in modules for programs that need more say: [`search`], [`mod@scan`],
//! [`devices`], [`keys`], [`proof`], [`chain`], [`pattern`], [`store`] and [`curve`]; `keystore` and `fleet`
//! (searches on many machines) are features, as `cuda` and `opencl` are. All of them are on by default.

mod background;
pub mod each;
mod error;
pub mod estimate;
#[cfg(feature = "keystore")]
mod key_text;
mod mine;
#[cfg(feature = "salts")]
pub mod salts;
pub mod scan;
#[cfg(feature = "keystore")]
pub mod verify;

pub use background::{Note, Running};
pub use error::{Error, Result};
pub use mine::{Matches, Mine, mine, mine_best, mine_salts};
pub use scan::scan;
use warpsmith_chain::KeyTarget;
use warpsmith_chain::coin::{AddressType, BITCOIN};
pub use warpsmith_engine::{Devices, Match, Solution};

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
    warpsmith_chain::nostr::Npub
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
    #[cfg(feature = "keystore")]
    pub use crate::key_text::{
        EncryptedKey, KeyText, KeyTextError, bip38_address, decode_secret, parse_secret,
    };
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

/// Chains: what they make of a public key or a salt, and the texts of it.
pub mod chain {
    pub use warpsmith_chain::{
        AddressKind, Birthday, CHAINS, Chain, Digest, Encoding, EncryptedForm, Error, Form, KeyTarget,
        KeyType, Linear, MaskError, PlainAccount, PublicPoint, SaltMask, SaltTarget, TYPES, Target,
        TypeError, find,
    };

    /// Bitcoin and coins of its kind.
    pub mod coin {
        pub use warpsmith_chain::coin::{
            AddressType, BITCOIN, Coin, CoinAddress, Inference, Network, Refusal, decode_wif,
        };
    }

    /// Cosmos and chains of its kind.
    pub mod cosmos {
        pub use warpsmith_chain::cosmos::{HUB, cosmos};
    }

    /// Ethereum: accounts, contracts, factories.
    pub mod ethereum {
        pub use warpsmith_chain::ethereum::{
            AbiError, AbiType, Account, Address, BYTE_ORDER_MARK, CodeForm, CodeSource, Contract, Deployment,
            FACTORIES, Factory, GivenSalt, ImpossibleNonce, InputError, Refusal, RuleError, SafeError,
            SafeOwners, SaltRequest, decode, encode, encode_arguments, keccak256, parse_hash, parse_layout,
            read_init_code,
        };
    }

    /// Nostr.
    pub mod nostr {
        pub use warpsmith_chain::nostr::decode_secret;
    }

    /// Encodings of texts, for chains of one's own.
    pub mod text {
        /// Bech32.
        pub mod bech32 {
            pub use warpsmith_chain::text::bech32::linear;
        }
    }
}

/// Arithmetic of secp256k1 on public points. None of it runs in constant time: it is not for private keys.
pub mod curve {
    pub use warpsmith_curve::{Affine, Fe, Scalar};

    /// Points.
    pub mod group {
        pub use warpsmith_curve::group::{Point, add_all, multiply};
    }

    /// Walks over consecutive points.
    pub mod walk {
        pub use warpsmith_curve::walk::Place;
    }
}

/// Searches on many machines that nobody has to trust.
#[cfg(feature = "fleet")]
pub mod fleet {
    pub use warpsmith_fleet::{Error, Result};

    /// Coordination of workers.
    pub mod coordinator {
        pub use warpsmith_fleet::coordinator::Policy;
    }

    /// Results of a job.
    pub mod duty {
        pub use warpsmith_fleet::duty::Found;
    }

    /// Folders of jobs.
    pub mod folder {
        pub use warpsmith_fleet::folder::{Wishes, read_found};
    }

    /// Names of jobs.
    pub mod id {
        pub use warpsmith_fleet::id::JobId;
    }

    /// Jobs as workers get them.
    pub mod job {
        pub use warpsmith_fleet::job::{AnyTarget, Descriptor, Liked, Search, Sought, Task};
    }

    /// Journals of what is done.
    pub mod ledger {
        pub use warpsmith_fleet::ledger::look;
    }

    /// The fleet over NATS.
    pub mod net {
        /// Connections to the server.
        pub mod connect {
            pub use warpsmith_fleet::net::connect::{as_coordinator, as_worker};
        }

        /// The folder of a fleet, and invitations to it.
        pub mod home {
            pub use warpsmith_fleet::net::home::{Home, Invitation};
        }

        /// Jobs of a folder, and their results.
        pub mod own {
            pub use warpsmith_fleet::net::own::{NewMatches, OwnJob, find};
        }

        /// Status of jobs and workers.
        pub mod status {
            pub use warpsmith_fleet::net::status::{JobStatus, Status};
        }

        /// Submitting jobs and waiting for them.
        pub mod submit {
            pub use warpsmith_fleet::net::submit::{
                Ended, LocalServer, News, cancel, reload, status, submit, submit_hidden, wait,
            };
        }

        /// Work of an invited machine.
        pub mod work {
            pub use warpsmith_fleet::net::work::{Told, work};
        }
    }

    /// Scans of a fleet.
    pub mod scan {
        pub use warpsmith_fleet::scan::{Order, ScanTask};
    }

    /// Messages of workers and the coordinator.
    pub mod wire {
        pub use warpsmith_fleet::wire::{Answer, Ask, Lease, Ready, Report, VERSION, Verdict, Work};
    }
}

/// Private keys under a password or for a recipient.
#[cfg(feature = "keystore")]
pub mod keystore {
    pub use warpsmith_keystore::{Error, KeySecurity, Password};

    /// age.
    pub mod age {
        pub use warpsmith_keystore::age::{Recipient, encrypt};
    }

    /// BIP-38.
    pub mod bip38 {
        pub use warpsmith_keystore::bip38::{Sealed, encrypt, read};
    }

    /// NIP-49.
    pub mod nip49 {
        pub use warpsmith_keystore::nip49::{KeySecurity, LOG_N, Sealed, decrypt, encrypt, read};
    }

    /// Web3 keystores.
    pub mod web3 {
        pub use warpsmith_keystore::web3::{LOG_N, Sealed, encrypt, file_name, is_keystore, read};
    }
}

/// Patterns, odds and scores.
pub mod pattern {
    pub use warpsmith_pattern::{
        Error, Feature, KINDS, LowBits, MOST_PARTS, Options, Part, Patterns, Ranking, Reason, SCORES, Score,
        ScoreKind, compile, compile_possible,
    };
}

/// Maps of scans, address databases and masks of keys.
pub mod store {
    pub use warpsmith_store::{
        About, BadLine, Block, BuildOptions, Built, Database, Databases, Difference, Differences, Error,
        Filter, Gaps, Interval, IntervalSet, KeyMask, Line, Map, MapFile, MaskError, MergeError, Order, Pace,
        Progress, RangeError, Reader, Record, Report, ScriptCoins, Snapshot, Source, Stage, Stretch,
        TargetList, Targets, U256, Width, address_column, parse_range, read_blocks, read_line,
    };
}
