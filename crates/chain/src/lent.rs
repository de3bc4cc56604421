//! A target that is lent is a target, so that one of a list can be searched as one of its own type can.
//!
//! Every method is passed on, also those with a default: the lint holds that.

use zeroize::Zeroizing;

use crate::{Birthday, Digest, Encoding, EncryptedForm, Error, Form, KeyTarget, PublicPoint, Target};

#[warn(clippy::missing_trait_methods)]
impl<T: Target + ?Sized> Target for &T {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn variant(&self) -> Option<&'static str> {
        (**self).variant()
    }

    fn encoding(&self) -> &'static Encoding {
        (**self).encoding()
    }

    fn encode(&self, digest: &Digest) -> String {
        (**self).encode(digest)
    }

    fn decode(&self, text: &str) -> Result<Digest, Error> {
        (**self).decode(text)
    }
}

#[warn(clippy::missing_trait_methods)]
impl<T: KeyTarget + ?Sized> KeyTarget for &T {
    fn form(&self) -> Form {
        (**self).form()
    }

    fn digest(&self, point: &PublicPoint) -> Digest {
        (**self).digest(point)
    }

    fn export(&self, secret: &[u8; 32]) -> Zeroizing<String> {
        (**self).export(secret)
    }

    fn encrypted_form(&self) -> Option<EncryptedForm> {
        (**self).encrypted_form()
    }

    fn explain(
        &self,
        point: &PublicPoint,
        secret: Option<&[u8; 32]>,
        birthday: Birthday,
    ) -> Vec<(&'static str, Zeroizing<String>)> {
        (**self).explain(point, secret, birthday)
    }
}
