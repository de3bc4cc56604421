//! The program's name, for messages that mention its commands.

use std::sync::OnceLock;

static NAME: OnceLock<String> = OnceLock::new();

/// Sets the program's name; the first call counts.
pub(crate) fn set(name: &str) {
    NAME.get_or_init(|| name.to_owned());
}

/// Returns the program's name, as `warpsmith`.
pub fn program_name() -> &'static str {
    NAME.get().map_or("warpsmith", String::as_str)
}
