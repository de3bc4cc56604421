//! What a miner hands to the owner of a public key.

/// How the final key follows from the user's: `(-1)^negate * lambda^endo * (key + offset)` modulo n.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use warpsmith_chain::nostr::Npub;
/// use warpsmith_engine::{Devices, Event, Job, Secret, Subject, Wanted, join, run};
/// use warpsmith_pattern::{Options, compile};
///
/// let own = Secret::random()?;
/// let patterns = compile(["q"], &Npub, &Options::default())?;
/// let job = Job { split: Some(own.public_key()), count: Some(1), ..Job::new(Subject::Key(&Npub), Wanted::Patterns(&patterns)) };
/// let mut found = Vec::new();
/// run(&job, &Devices::cpu()?, &AtomicBool::new(false), &mut |event| {
///     if let Event::Found(matches) = event {
///         found.extend(matches);
///     }
///     Ok(())
/// })?;
/// let joined = join(&own, found[0].split().unwrap(), &Npub, &found[0].address, None)?;
/// assert_eq!(joined.address, found[0].address);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Big-endian.
    pub offset: [u8; 32],
    /// The power of lambda, 0 to 2.
    pub endo: u8,
    /// Whether the result is negated.
    pub negate: bool,
}
