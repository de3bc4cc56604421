//! A Nostr key whose public form begins as you like.
//!
//!     cargo run --release -p warpsmith --example mine_npub

use warpsmith::{Devices, mine, npub};

pub(crate) fn main() -> warpsmith::Result<()> {
    let found = mine(npub(), ["cafe"]).on(Devices::auto()?).first()?;
    println!("{}", found.address);
    println!("{}", found.export().expect("without a split key every match has a private key"));
    Ok(())
}
