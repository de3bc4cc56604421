//! A key that was looked for, as it is handed on.

use warpsmith_chain::{Birthday, Digest, KeyTarget, KeyType};
use warpsmith_store::Record;
use zeroize::Zeroizing;

use super::ScanTargets;
use crate::details::Details;
use crate::error::Result;
use crate::origin::{Secret, public_point};

/// A key that was looked for.
///
/// See [`scan`](crate::scan()).
pub struct Finding {
    /// The chain's name.
    pub target: &'static str,
    /// The type of the address.
    pub found_as: &'static KeyType,
    /// The address.
    pub address: String,
    /// What the source said it holds, in the smallest unit.
    pub amount: Option<u128>,
    /// The compressed public key.
    pub public_key: [u8; 33],
    secret: Secret,
    export: Zeroizing<String>,
    /// What else a person should know. SEC: the texts may hold the private key.
    pub details: Details,
    /// The same without the private key.
    pub public_details: Details,
    /// Where it was found.
    pub device: String,
    /// The line of a list of keys that it stands on, where it was given in one.
    pub line: Option<u64>,
    /// The public key that was asked for, as it was written, where that is not an address.
    pub asked: Option<String>,
    /// How its address is written and its key imported.
    as_target: &'static dyn KeyTarget,
}

/// SEC: shows nothing that holds a private key.
impl std::fmt::Debug for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finding")
            .field("address", &self.address)
            .field("as", &self.found_as)
            .finish_non_exhaustive()
    }
}

impl Finding {
    /// Returns what was asked for: the address, or the public key as it was written.
    pub fn answer(&self) -> &str {
        self.asked.as_deref().unwrap_or(&self.address)
    }

    /// The private key.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The private key as its users import it.
    pub fn export(&self) -> &str {
        &self.export
    }

    /// A key with this digest, as one of the types it is wanted as.
    pub(super) fn new(
        secret: &Secret,
        digest: &Digest,
        (found_as, record): (&'static KeyType, Record),
        device: &str,
    ) -> Finding {
        let (target, public) = (found_as.target(record.kind), secret.public_key());
        let point = public_point(&public);
        Finding {
            target: target.name(),
            found_as,
            address: target.encode(digest),
            amount: record.amount,
            public_key: public.serialize(),
            export: target.export(secret.as_bytes()),
            details: target.explain(&point, Some(secret.as_bytes()), Birthday::Unknown),
            public_details: target.explain(&point, None, Birthday::Unknown),
            secret: secret.clone(),
            device: device.to_owned(),
            line: None,
            asked: None,
            as_target: target,
        }
    }

    /// Has the details say from when on a wallet looks for payments. Without it that is the start of the chain: a key that was
    /// recovered may have been paid at any time.
    pub fn born(self, birthday: Birthday) -> Finding {
        let point = public_point(&self.secret.public_key());
        let details = self.as_target.explain(&point, Some(self.secret.as_bytes()), birthday);
        Finding { details, ..self }
    }
}

impl ScanTargets {
    /// All that a key is among the targets, by libsecp256k1 and the reference code; nothing if it is none of them. An error where the
    /// part of a database that would have it is damaged.
    pub fn findings(&self, secret: &Secret, device: &str) -> Result<Vec<Finding>> {
        let point = public_point(&secret.public_key());
        let (finder, mut found) = (self.finder(), Vec::new());
        for form in self.forms() {
            let digest = form.reference(&point);
            let wanted = finder.find(form, &digest)?;
            found.extend(wanted.into_iter().map(|wanted| Finding::new(secret, &digest, wanted, device)));
        }
        Ok(found)
    }
}
