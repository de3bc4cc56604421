//! For tests alone: what is done with arbitrary bytes. `fuzz/` gives these functions to libFuzzer, and a test gives them all
//! inputs that are kept in `fuzz/`.
//!
//! Each takes any bytes. It panics where the program would be wrong: on a panic of its own, on a refusal without a reason, on what
//! was read and does not read back as the same.

mod files;
mod fleet;
mod keys;
mod messages;
mod text;

pub use files::{address_file, pir_files, store_files, utxo_set};
pub use fleet::{fleet_files, fleet_messages};
pub use keys::key_stores;
pub use messages::{pir_messages, split_result};
pub use text::{address_decode, bech32_decode, bitcoin_decode, pattern_parse, scan_text};

/// A function to give bytes to, by the name of its fuzz target.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("address_decode", address_decode),
    ("address_file", address_file),
    ("bech32_decode", bech32_decode),
    ("bitcoin_decode", bitcoin_decode),
    ("fleet_files", fleet_files),
    ("fleet_messages", fleet_messages),
    ("key_stores", key_stores),
    ("pattern_parse", pattern_parse),
    ("pir_files", pir_files),
    ("pir_messages", pir_messages),
    ("scan_text", scan_text),
    ("split_result", split_result),
    ("store_files", store_files),
    ("utxo_set", utxo_set),
];

/// Panics unless a refusal gives its reason, in text that no terminal takes for a command.
fn assert_told(error: impl std::fmt::Display) {
    let text = error.to_string();
    assert!(!text.is_empty(), "refused without a reason");
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "a terminal would obey: {text:?}");
}
