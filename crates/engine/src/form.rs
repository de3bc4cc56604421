//! What is made of a key and compared with targets. One address type needs one form; P2PKH and P2WPKH share theirs.

use warpsmith_chain::bitcoin::{AddressType, Bitcoin};
use warpsmith_chain::ethereum::Account;
use warpsmith_chain::{Digest, KeyTarget, PublicPoint, Recipe};

/// What is made of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// HASH160 of the compressed key.
    Compressed,
    /// HASH160 of the uncompressed key.
    Uncompressed,
    /// HASH160 of the witness program of the compressed key.
    Script,
    /// The Ethereum account.
    Account,
    /// The x coordinate.
    X,
    /// The x coordinate after the tweak of taproot.
    Taproot,
}

impl Form {
    /// All of them, cheapest first.
    pub const ALL: [Form; 6] =
        [Form::X, Form::Compressed, Form::Uncompressed, Form::Script, Form::Account, Form::Taproot];

    /// The form whose digests targets of this recipe have.
    pub fn of(recipe: &Recipe) -> Option<Form> {
        match recipe {
            Recipe::Hash160 { compressed: true } => Some(Form::Compressed),
            Recipe::Hash160 { compressed: false } => Some(Form::Uncompressed),
            Recipe::ScriptHash160 => Some(Form::Script),
            Recipe::Account => Some(Form::Account),
            Recipe::X => Some(Form::X),
            Recipe::Taproot => Some(Form::Taproot),
            _ => None,
        }
    }

    /// The digest of a point by the reference code.
    pub fn digest(self, point: &PublicPoint) -> Digest {
        let bitcoin = |address_type| Bitcoin::main(address_type).digest(point);
        match self {
            Form::Compressed => bitcoin(AddressType::P2pkh),
            Form::Uncompressed => bitcoin(AddressType::P2pkhUncompressed),
            Form::Script => bitcoin(AddressType::P2sh),
            Form::Account => Account.digest(point),
            Form::X => bitcoin(AddressType::Rawtr),
            Form::Taproot => bitcoin(AddressType::P2tr),
        }
    }
}
