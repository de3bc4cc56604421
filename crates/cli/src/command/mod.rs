//! The commands that do not mine, a file each.

pub(crate) mod bench;
pub(crate) mod devices;
pub(crate) mod join;
pub(crate) mod manual;
pub(crate) mod selftest;
pub(crate) mod tune;
