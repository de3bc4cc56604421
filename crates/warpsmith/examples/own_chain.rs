//! A chain of your own: addresses that no crate of this workspace knows, searched on every device.
//!
//!     cargo run --release -p warpsmith --example own_chain
//!
//! Zebra, a chain that does not exist, writes the account of a key (as Ethereum computes it) in bech32 after `zeb1`. What is
//! computed of a key must be one of the forms that devices know; how it is written is up to the chain.

use std::sync::LazyLock;

use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};
use warpsmith::chain::ethereum::Account;
use warpsmith::chain::text::bech32::linear;
use warpsmith::chain::{Digest, Encoding, Error, Form, KeyTarget, Target};
use warpsmith::{Devices, mine};
use zeroize::Zeroizing;

/// Addresses of the chain Zebra.
struct Zebra;

const HEAD: Hrp = Hrp::parse_unchecked("zeb");

/// How bits become text: patterns, odds and filters follow from it.
static ENCODING: LazyLock<Encoding> = LazyLock::new(|| Encoding::Linear(linear("zeb1", 20)));

impl Target for Zebra {
    fn name(&self) -> &'static str {
        "zebra"
    }

    fn encoding(&self) -> &'static Encoding {
        &ENCODING
    }

    /// Another implementation than the encoding above, so that each tests the other.
    fn encode(&self, digest: &Digest) -> String {
        bech32::encode::<Bech32>(HEAD, digest.as_bytes()).expect("20 bytes fit")
    }

    fn decode(&self, text: &str) -> Result<Digest, Error> {
        let read = CheckedHrpstring::new::<Bech32>(text).map_err(|_| Error::Checksum)?;
        let bytes: Vec<u8> = read.byte_iter().collect();
        match (read.hrp() == HEAD, bytes.len()) {
            (true, 20) => Ok(Digest::new(&bytes)),
            (true, _) => Err(Error::Length { given: text.len(), wanted: 42, expected: "account of Zebra" }),
            (false, _) => Err(Error::Prefix { given: None, expected: "zeb1" }),
        }
    }
}

impl KeyTarget for Zebra {
    /// One of those that devices can compute. Its reference checks every key that a device finds.
    fn form(&self) -> Form {
        Form::Account
    }

    fn export(&self, secret: &[u8; 32]) -> Zeroizing<String> {
        Account.export(secret)
    }
}

pub(crate) fn main() -> warpsmith::Result<()> {
    for found in mine(Zebra, ["cafe", "..zzz"]).on(Devices::auto()?).into_iter().take(2) {
        let found = found?;
        println!("{} by the pattern {}", found.address, found.pattern().unwrap_or("-"));
        assert!(found.address.starts_with("zeb1cafe") || found.address.ends_with("zzz"));
    }
    Ok(())
}
