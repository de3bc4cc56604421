//! Which entries a client, a server or a hint maker speaks of.

/// Which database, and which version of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The database's identity.
    pub database: [u8; 32],
    /// The epoch.
    pub epoch: u64,
}
