//! A salt that puts a contract at an address you like, with the deterministic deployment proxy that every chain has.
//!
//!     cargo run --release -p warpsmith --example mine_create2

use std::error::Error;

use warpsmith::chain::ethereum::{self, Deployment, Factory, SaltRequest};
use warpsmith::{Devices, mine_salts};

/// The creation code, with constructor arguments behind it: here one that deploys a contract of a single byte.
const INIT_CODE: [u8; 10] = [0x60, 0x01, 0x60, 0x00, 0x53, 0x60, 0x01, 0x60, 0x00, 0xf3];

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let factory = Factory::find("arachnid").ok_or("a factory that is built in")?;
    let code_hash = ethereum::keccak256(&INIT_CODE);
    let contract = Deployment::create2(factory, None, Some(code_hash), &SaltRequest::default())?;
    let found = mine_salts(contract, ["cafe"]).on(Devices::auto()?).first()?;
    let salt = found.salt().ok_or("a search for salts finds salts")?;
    println!("{} with the salt {salt:02x?}", found.address);

    // EIP-1014: the last 20 bytes of keccak256(0xff, deployer, salt, keccak256(init code)).
    let deployer = factory.address.ok_or("it has one address on every chain")?;
    let hash = ethereum::keccak256(&[&[0xff][..], &deployer, salt, &code_hash].concat());
    assert_eq!(ethereum::decode(&found.address)?, hash[12..]);
    Ok(())
}
