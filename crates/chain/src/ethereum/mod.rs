//! Ethereum addresses: of accounts, of contracts an account creates, and of contracts a factory creates from a salt.
//!
//! All of them are the last 20 bytes of a Keccak-256 hash and are written alike (EIP-55). What is hashed differs and
//! has a file each. Vectors are in `vectors.json`.

mod abi;
mod account;
mod address;
mod code;
mod expression;
mod factory;
mod input;
mod rule;
mod safe;
mod salted;

pub use abi::{AbiError, AbiType, encode_arguments};
pub use account::{Account, Contract, ImpossibleNonce, create};
pub(crate) use account::{account_of, chain};
pub(crate) use address::HEAD;
pub use address::{decode, encode};
pub use code::{CodeForm, CodeSource};
pub use factory::{FACTORIES, Factory, GivenSalt, PROXY_CODE_HASH, Refusal, SaltRequest};
pub use input::{BYTE_ORDER_MARK, InputError, parse_hash, parse_layout, read_init_code};
pub use rule::RuleError;
pub use safe::{SafeError, SafeOwners};
pub use salted::{Deployment, Steps, create2};

use std::sync::LazyLock;

use sha3::{Digest as _, Keccak256};

use crate::Encoding;

/// An address as bytes.
pub type Address = [u8; 20];

static ENCODING: LazyLock<Encoding> =
    LazyLock::new(|| Encoding::Linear(crate::text::hex::linear("0x", 20, true)));

/// Keccak-256 as Ethereum uses it: the padding of the competition, not of FIPS 202.
///
/// By the `sha3` crate on purpose: this is the code that decides about a device's hits, and it shares nothing with
/// theirs.
pub fn keccak256(bytes: &[u8]) -> [u8; 32] {
    Keccak256::digest(bytes).into()
}

/// The address in a hash: its last 20 bytes.
fn address_of(hash: &[u8; 32]) -> Address {
    std::array::from_fn(|i| hash[12 + i])
}

#[cfg(test)]
mod tests;
