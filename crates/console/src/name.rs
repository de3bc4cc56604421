//! The program's name, for messages that mention its commands.

use std::sync::OnceLock;

static NAME: OnceLock<&'static str> = OnceLock::new();

/// Sets the program's name, before its command line is built. The first call counts.
pub(crate) fn set(name: &'static str) {
    NAME.get_or_init(|| name);
}

/// Returns the program's name, as `warpsmith`.
pub fn program_name() -> &'static str {
    NAME.get().copied().unwrap_or("warpsmith")
}
