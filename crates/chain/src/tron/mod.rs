//! Tron: the account of Ethereum, written in base58 under version 0x41. Vectors are in `vectors.json`.

use crate::text::Writing;
use crate::{Chain, Form, PlainAccount};

/// Tron accounts.
pub const TRON: PlainAccount = PlainAccount {
    chain: "tron",
    form: Form::Account,
    writing: Writing::Base58 { version: 0x41, head: "T" },
    importing: "TronLink imports it as a private key, these 64 hex digits (import a wallet, private key)",
};

/// The chain's row.
pub(crate) fn chain() -> Chain {
    Chain {
        name: TRON.chain,
        title: "Tron",
        sought: "Tron account address".to_owned(),
        example: "TCafe",
        shows: "the address and its private key in hex",
        coin: None,
        addresses: vec![TRON.listed(0x07)],
        of_address: None,
    }
}

#[cfg(test)]
mod tests;
