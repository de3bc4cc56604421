//! Joining: the owner of a public key makes the private key of what a miner found for it.

use warpsmith_chain::{Birthday, KeyTarget};
use warpsmith_curve::Scalar;
use warpsmith_text::Shown;
use zeroize::Zeroizing;

use crate::details::Details;
use crate::error::{Error, Result};
use crate::origin::{Secret, public_point};
use crate::split::Split;

/// A joined key, checked.
///
/// See [`Split`](crate::Split).
pub struct Joined {
    secret: Secret,
    export: Zeroizing<String>,
    /// The compressed public key.
    pub public_key: [u8; 33],
    /// The text it stands for.
    pub address: String,
    /// What lies between the key and the address, and how to use it. SEC: the texts may hold the private key.
    pub details: Details,
    /// The same without the private key.
    pub public_details: Details,
}

impl Joined {
    /// The final private key.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The private key as its users import it.
    pub fn export(&self) -> &str {
        &self.export
    }
}

/// Joins the user's own key with a split result and checks that the outcome is the address promised.
///
/// A public key given by its x coordinate alone stands for two secrets, k and n - k; the one that fits is
/// taken. Nothing is returned unless address and, where given, public key come out exactly.
///
/// The example of [`Split`](crate::Split) goes the whole way.
pub fn join(
    own: &Secret,
    split: &Split,
    target: &dyn KeyTarget,
    address: &str,
    public_key: Option<&[u8; 33]>,
) -> Result<Joined> {
    let offset = Scalar::from_be_bytes(&split.offset)
        .ok_or_else(|| Error::Join("the result's offset is not a number below the group order".to_owned()))?;
    if split.endo > 2 {
        return Err(Error::Join(format!("the result's endo is {}; it can be 0, 1 or 2", split.endo)));
    }
    for candidate in [own.clone(), own.negated()] {
        let Some(secret) = candidate.moved(offset, split.endo, split.negate) else { continue };
        let public = secret.public_key();
        let point = public_point(&public);
        let text = target.encode(&target.digest(&point));
        if text == address && public_key.is_none_or(|p| *p == public.serialize()) {
            // The address was known since it was mined, and may have been paid long before its key is joined.
            return Ok(Joined {
                public_key: public.serialize(),
                address: text,
                export: target.export(secret.as_bytes()),
                details: target.explain(&point, Some(secret.as_bytes()), Birthday::Unknown),
                public_details: target.explain(&point, None, Birthday::Unknown),
                secret,
            });
        }
    }
    Err(Error::Join(format!(
        "this secret key does not lead to {}: it is not the key whose public key was mined, or the result was altered; \
         nothing was written",
        Shown(address)
    )))
}
