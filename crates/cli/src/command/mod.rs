//! The commands, a file each; what those that mine share is in `mining`.

pub(crate) mod bench;
pub(crate) mod chain;
pub(crate) mod cosmos;
pub(crate) mod db;
pub(crate) mod devices;
pub(crate) mod ethereum;
pub(crate) mod explain;
pub(crate) mod fleet;
pub(crate) mod join;
pub(crate) mod keygen;
pub(crate) mod map;
pub(crate) mod scan;
pub(crate) mod selftest;
pub(crate) mod serve_salts;
pub(crate) mod tune;
pub(crate) mod verify;
