//! Origins: where a walk starts, and with its matches all that a search holds of secrets.
//!
//! An origin is 256 random bits r from the operating system, drawn by [`crate::origins`], one for each lane. Without a split key the walk starts at r*G and the
//! match's key follows from r. With one, it starts at P + r*G, P being the user's public key, and the result
//! is an offset that is worthless without the user's own secret.
//!
//! SEC: secret scalars are handled by libsecp256k1 alone, erased when dropped and never printed.

use secp256k1::{Parity, PublicKey, XOnlyPublicKey};
use warpsmith_chain::PublicPoint;
use warpsmith_curve::{Affine, Fe, Scalar};
use warpsmith_text::Shown;

pub use crate::secret::Secret;
use crate::secret::tweak;
use crate::split::Split;

/// A public key as our arithmetic takes it.
pub(crate) fn affine(key: &PublicKey) -> Affine {
    let point = public_point(key);
    Affine { x: Fe::from_be_bytes(&point.x), y: Fe::from_be_bytes(&point.y) }
}

/// A public key as targets take it.
///
/// ```
/// use warpsmith_engine::{Secret, public_point};
///
/// let public = Secret::random()?.public_key();
/// assert_eq!(public_point(&public).compressed(), public.serialize());
/// # Ok::<(), warpsmith_engine::Error>(())
/// ```
pub fn public_point(key: &PublicKey) -> PublicPoint {
    let bytes = key.serialize_uncompressed();
    let mut point = PublicPoint { x: [0; 32], y: [0; 32] };
    point.x.copy_from_slice(&bytes[1..33]);
    point.y.copy_from_slice(&bytes[33..]);
    point
}

/// The point of a key by libsecp256k1; none for 0.
pub(crate) fn point_of(key: Scalar) -> Option<Affine> {
    Secret::from_bytes(&key.to_be_bytes()).map(|secret| affine(&secret.public_key()))
}

/// Where a walk starts.
pub(crate) struct Origin {
    random: Secret,
    split: Option<PublicKey>,
}

/// What a place in a walk stands for.
pub(crate) enum Recovered {
    /// A private key.
    Key(Secret),
    /// A public key whose secret follows from the user's.
    Split {
        /// The result's public key.
        public: PublicKey,
        /// How its secret follows from the user's.
        split: Split,
    },
}

impl Recovered {
    /// The public key, whoever can make its secret.
    pub fn public_key(&self) -> PublicKey {
        match self {
            Recovered::Key(secret) => secret.public_key(),
            Recovered::Split { public, .. } => *public,
        }
    }
}

impl Origin {
    /// The origin of a random number, and of an owner's key if there is one.
    pub fn new(random: Secret, split: Option<PublicKey>) -> Origin {
        Origin { random, split }
    }

    /// The point the walk starts at; infinity, never met, only if r undoes the user's key.
    pub fn point(&self) -> Option<Affine> {
        let own = self.random.public_key();
        match &self.split {
            None => Some(affine(&own)),
            Some(user) => user.combine(&own).ok().map(|sum| affine(&sum)),
        }
    }

    /// The key `lambda^image * (origin + offset)`, or minus that.
    pub fn recover(&self, offset: Scalar, image: u8, negate: bool) -> Option<Recovered> {
        let Some(user) = &self.split else {
            return self.random.moved(offset, image, negate).map(Recovered::Key);
        };
        let offset = Scalar::from_be_bytes(self.random.as_bytes())?.add(offset);
        let public = user.add_exp_tweak(&tweak(offset)).ok()?;
        let public = public.mul_tweak(&tweak(Scalar::lambda_power(image))).ok()?;
        Some(Recovered::Split {
            public: if negate { public.negate() } else { public },
            split: Split { offset: offset.to_be_bytes(), endo: image, negate },
        })
    }
}

/// Why a text is no public key.
///
/// See [`parse_public_key`].
#[derive(Debug, thiserror::Error)]
#[error(
    "{given} is not a public key: {why}. Give 66 hex digits starting with 02 or 03 (compressed), 130 starting \
     with 04 (uncompressed), 64 digits (x coordinate), or an npub"
)]
pub struct PublicKeyError {
    given: String,
    why: String,
}

/// Reads a public key: compressed, uncompressed or x-only hex, or npub. An x-only key stands for the point
/// with even y, as in BIP-340.
///
/// ```
/// use warpsmith_engine::parse_public_key;
///
/// let x = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
/// assert_eq!(parse_public_key(x)?.serialize()[0], 2, "even y");
/// assert!(parse_public_key("79be").is_err());
/// # Ok::<(), warpsmith_engine::PublicKeyError>(())
/// ```
pub fn parse_public_key(text: &str) -> std::result::Result<PublicKey, PublicKeyError> {
    let given = text.trim();
    let fail = |why: String| PublicKeyError { given: format!("'{}'", Shown(given)), why };
    if given.to_ascii_lowercase().starts_with("nsec") {
        // SEC: not echoed.
        let why = "it is a secret key, which must never be given on a command line".to_owned();
        return Err(PublicKeyError { given: "nsec1...".to_owned(), why });
    }
    let bytes = if given.starts_with("npub1") {
        let npub = warpsmith_chain::find("npub").expect("npub is a target");
        npub.decode(given).map_err(|e| fail(e.to_string()))?.as_bytes().to_vec()
    } else {
        let digits = given.strip_prefix("0x").unwrap_or(given);
        if let Some(bad) = digits.chars().find(|c| !c.is_ascii_hexdigit()) {
            return Err(fail(format!("{bad:?} is not a hex digit")));
        }
        if ![64, 66, 128, 130].contains(&digits.len()) {
            return Err(fail(format!("it has {} hex digits", digits.len())));
        }
        let value = |i: usize| u8::from_str_radix(&digits[i..i + 2], 16);
        (0..digits.len()).step_by(2).filter_map(|i| value(i).ok()).collect()
    };
    let key = match bytes.len() {
        32 => {
            let mut x = [0; 32];
            x.copy_from_slice(&bytes);
            XOnlyPublicKey::from_byte_array(x).map(|k| k.public_key(Parity::Even))
        }
        // A bare pair of coordinates, as some Ethereum tools print it.
        64 => PublicKey::from_slice(&[&[4], bytes.as_slice()].concat()),
        _ => PublicKey::from_slice(&bytes),
    };
    key.map_err(|_| {
        let why = "no point of secp256k1 has these coordinates".to_owned();
        // SEC: 64 digits that are no x coordinate may be somebody's private key; they are not repeated.
        if bytes.len() == 32 {
            PublicKeyError { given: "the 64 hex digits given".to_owned(), why }
        } else {
            fail(why)
        }
    })
}
