//! Chains of plain accounts: an address is one digest in one writing, and a key is imported as hex digits.
//!
//! A chain of this kind is a form, a writing and a row of the table; it needs no code of its own.

use std::sync::Arc;

use zeroize::Zeroizing;

use crate::coin::looks_secret;
use crate::text::{Writing, hex};
use crate::{AddressKind, Birthday, Digest, Encoding, Error, Form, KeyTarget, Listed, PublicPoint, Target};

/// The accounts of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainAccount {
    /// The chain's name.
    pub chain: &'static str,
    /// What is computed of a key.
    pub form: Form,
    /// How that is written.
    pub writing: Writing,
    /// How a wallet is given the key.
    pub importing: &'static str,
}

impl PlainAccount {
    /// Its row of the table, kept in databases under this byte.
    pub fn listed(self, record: u8) -> Listed {
        let kind = Some(AddressKind::new(record));
        Listed { writing: Some(self.writing), target: Arc::new(self), network: None, kind }
    }
}

impl Target for PlainAccount {
    fn name(&self) -> &'static str {
        self.chain
    }

    fn encoding(&self) -> &'static Encoding {
        self.writing.encoding()
    }

    fn encode(&self, digest: &Digest) -> String {
        self.writing.encode(digest)
    }

    fn decode(&self, text: &str) -> Result<Digest, Error> {
        if let Some(given) = looks_secret(text) {
            return Err(Error::Secret { given, expected: "address" });
        }
        self.writing.decode(text)
    }
}

impl KeyTarget for PlainAccount {
    fn form(&self) -> Form {
        self.form
    }

    /// The secret key as 64 hex digits.
    fn export(&self, secret: &[u8; 32]) -> Zeroizing<String> {
        hex::secret("", secret)
    }

    fn explain(
        &self,
        _: &PublicPoint,
        secret: Option<&[u8; 32]>,
        _: Birthday,
    ) -> Vec<(&'static str, Zeroizing<String>)> {
        secret.map(|_| ("use", Zeroizing::new(self.importing.to_owned()))).into_iter().collect()
    }
}
