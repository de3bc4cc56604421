//! Programs of the workspace as people and scripts run them, for end-to-end tests.

pub mod anvil;
mod documents;
pub mod foreign;
mod inputs;
mod manual;
mod mistakes;
mod pages;
mod refusals;
mod run;
mod secrets;

pub use documents::check_documents;
pub use inputs::utxo_set;
pub use manual::check_manual;
pub use mistakes::{
    check_missing_files, check_unknown_devices, check_unknown_flags, commands, has, mistaken,
};
pub use pages::{bash, check_commands, check_flags, pages, path_with};
pub use refusals::check_refusals;
pub use run::{PATIENCE, Program, Run, assert_exact, decimal, signal, text, write_private};
pub use secrets::{SECRETS, check_secrets, flags};
