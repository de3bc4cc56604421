//! The account of a key, and the contracts that account creates with CREATE.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::address::{HEAD, decode_digest, encode_digest};
use super::{Address, ENCODING, address_of, encode, keccak256};
use crate::text::hex;
use crate::{
    AddressKind, Birthday, Chain, Digest, Encoding, EncryptedForm, Error, Form, KeyTarget, Listed,
    PublicPoint, Target,
};

/// The account of a key: Keccak-256 of x and y, its last 20 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account;

/// The contract that the account of a key creates with CREATE at a given nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    nonce: u64,
}

/// The nonce that no account reaches (EIP-2681 caps nonces below 2^64 - 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no account reaches nonce 18446744073709551615 (EIP-2681); the last that can create a contract is one less"
)]
pub struct ImpossibleNonce;

impl Contract {
    /// The contract created at this nonce.
    pub fn new(nonce: u64) -> Result<Self, ImpossibleNonce> {
        if nonce == u64::MAX { Err(ImpossibleNonce) } else { Ok(Self { nonce }) }
    }

    /// The account's nonce when it creates the contract.
    pub fn nonce(&self) -> u64 {
        self.nonce
    }
}

/// The address of the contract that `sender` creates with CREATE at `nonce`: Keccak-256 of the RLP of both.
pub fn create(sender: &Address, nonce: u64) -> Address {
    address_of(&keccak256(&create_message(sender, nonce)))
}

/// What CREATE hashes.
pub(super) fn create_message(sender: &Address, nonce: u64) -> Vec<u8> {
    let bytes = nonce.to_be_bytes();
    let significant = &bytes[nonce.leading_zeros() as usize / 8..];
    // A list of a string of 20 bytes and a number. A number below 128 but not 0 is its own encoding; others are
    // strings without leading zeros. At most 1 + 21 + 9 bytes, so lengths fit the first byte of each.
    let mut message = Vec::with_capacity(31);
    message.extend([0, 0x80 + 20]);
    message.extend(sender);
    if !(1..0x80).contains(&nonce) {
        message.push(0x80 + significant.len() as u8);
    }
    message.extend(significant);
    message[0] = 0xc0 + (message.len() - 1) as u8;
    message
}

/// The account of a point.
pub(crate) fn account_of(point: &PublicPoint) -> Address {
    address_of(&keccak256(&[point.x, point.y].concat()))
}

/// The chain's row.
pub(crate) fn chain() -> Chain {
    let kind = Some(AddressKind::ETHEREUM);
    Chain {
        name: "eth",
        title: "Ethereum",
        sought: "Ethereum account address".to_owned(),
        example: "cafe",
        shows: "the address and its private key in hex",
        coin: None,
        addresses: vec![Listed { target: Arc::new(Account), network: None, writing: None, kind }],
        of_address: None,
    }
}

impl Target for Account {
    fn name(&self) -> &'static str {
        "eth"
    }

    fn encoding(&self) -> &'static Encoding {
        &ENCODING
    }

    fn encode(&self, digest: &Digest) -> String {
        encode_digest(digest)
    }

    fn decode(&self, text: &str) -> Result<Digest, Error> {
        decode_digest(text)
    }
}

impl KeyTarget for Account {
    fn form(&self) -> Form {
        Form::Account
    }

    fn export(&self, secret: &[u8; 32]) -> Zeroizing<String> {
        // As wallets import it.
        hex::secret(HEAD, secret)
    }

    fn encrypted_form(&self) -> Option<EncryptedForm> {
        Some(EncryptedForm::Web3)
    }

    fn explain(
        &self,
        _: &PublicPoint,
        secret: Option<&[u8; 32]>,
        _: Birthday,
    ) -> Vec<(&'static str, Zeroizing<String>)> {
        secret.map(|_| ("use", Zeroizing::new(USE.to_owned()))).into_iter().collect()
    }
}

/// How to give a wallet the key, without a trace in a shell's history.
const USE: &str = "`cast wallet import NAME --interactive` asks for the private key and keeps it encrypted";

impl Target for Contract {
    fn name(&self) -> &'static str {
        // The command is the account's; results tell the two apart by their nonce.
        "eth"
    }

    fn encoding(&self) -> &'static Encoding {
        &ENCODING
    }

    fn encode(&self, digest: &Digest) -> String {
        encode_digest(digest)
    }

    fn decode(&self, text: &str) -> Result<Digest, Error> {
        decode_digest(text)
    }
}

impl KeyTarget for Contract {
    fn form(&self) -> Form {
        Form::Contract { nonce: self.nonce }
    }

    fn export(&self, secret: &[u8; 32]) -> Zeroizing<String> {
        // As wallets import it.
        hex::secret(HEAD, secret)
    }

    fn encrypted_form(&self) -> Option<EncryptedForm> {
        Some(EncryptedForm::Web3)
    }

    /// Who must send the transaction that creates the contract, and with which number.
    fn explain(
        &self,
        point: &PublicPoint,
        secret: Option<&[u8; 32]>,
        _: Birthday,
    ) -> Vec<(&'static str, Zeroizing<String>)> {
        let mut lines = vec![("sender", Zeroizing::new(encode(&account_of(point))))];
        if secret.is_some() {
            let what = format!(
                "{USE}; the contract is created by that account's transaction with nonce {}",
                self.nonce
            );
            lines.push(("use", Zeroizing::new(what)));
        }
        lines
    }
}
