//! Every example runs to its end. They are parts of this program, so that four more need not be linked to be tested.

use std::error::Error;

#[path = "../examples/mine_create2.rs"]
mod mine_create2;
#[path = "../examples/mine_npub.rs"]
mod mine_npub;
#[path = "../examples/own_chain.rs"]
mod own_chain;
#[path = "../examples/scan_with_map.rs"]
mod scan_with_map;

#[test]
fn mine_an_npub() -> Result<(), Box<dyn Error>> {
    Ok(mine_npub::main()?)
}

#[test]
fn mine_a_salt() -> Result<(), Box<dyn Error>> {
    mine_create2::main()
}

#[test]
fn a_chain_of_your_own() -> Result<(), Box<dyn Error>> {
    Ok(own_chain::main()?)
}

#[test]
fn scan_with_a_map() -> Result<(), Box<dyn Error>> {
    scan_with_map::main()
}
