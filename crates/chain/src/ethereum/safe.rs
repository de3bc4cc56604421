//! Safe wallets by their owners: the call of `setup` that a proxy factory of Safe is given as `initializer`.
//!
//! The address depends on every byte of that call, so it is what Safe's own tools send: no module, no payment, and the fallback
//! handler of the version, without which a wallet takes no ERC-721 token and checks no signature for others (ERC-1271).

use std::collections::{BTreeMap, BTreeSet};

use super::abi::{AbiType, encode_arguments};
use super::{Address, Factory, encode, keccak256};

/// The parameters of `setup` since 1.1.1.
const PARAMETERS: &str = "(address[],uint256,address,bytes,address,address,uint256,address)";

/// The versions: the factory's name, the singleton in common use by its name in the rule, and the fallback handler
/// (@safe-global/safe-deployments, `default_callback_handler.json` and `compatibility_fallback_handler.json`).
const VERSIONS: [(&str, &str, &str); 4] = [
    ("safe-1.1.1", "GnosisSafe", "0xd5D82B6aDDc9027B22dCA772Aa68D5d74cdBdF44"),
    ("safe-1.3.0", "GnosisSafeL2", "0xf48f2B2d2a534e402487b3ee7C18c33Aec0Fe5e4"),
    ("safe-1.4.1", "SafeL2", "0xfd0732Dc9E303f09fCEf3a7388Ad10A83459Ec99"),
    ("safe-1.5.0", "SafeL2", "0x3EfCBb83A4A7AfcB4F68D501E2c2203a38be77f4"),
];

/// The fallback handler of 1.3.0 beside singletons for chains that require EIP-155.
const HANDLER_EIP155: &str = "0x017062a1dE2FE6b99BE3d9d37841FeD19F573804";

/// Owners that no Safe can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SafeError {
    /// Nobody owns it.
    #[error("a Safe has one owner or more")]
    NoOwner,
    /// An address that the contract refuses as an owner.
    #[error("{0} cannot own a Safe, which refuses this address; give that of an account or a contract")]
    Reserved(String),
    /// One owner more than once.
    #[error("{0} was given twice; a Safe has each owner once")]
    Twice(String),
    /// More signatures than owners, none, or not said.
    #[error(
        "expected a threshold from 1 to {owners}, the signatures of {owners} owners that a transaction needs"
    )]
    Threshold {
        /// How many owners there are.
        owners: usize,
    },
    /// A factory of something else.
    #[error("{factory} makes no Safe; expected {known}{}", if *.has_owner { ", or its own input owner" } else { "" })]
    Factory {
        /// The factory.
        factory: String,
        /// Factories that make one.
        known: String,
        /// Whether its rule has an input of that name.
        has_owner: bool,
    },
    /// The call is given already.
    #[error("owners and the input initializer say the same; give one of them")]
    Initializer,
}

fn known() -> String {
    warpsmith_text::any_of(&VERSIONS.map(|(name, ..)| name))
}

/// Who owns a Safe, and how many of them must sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafeOwners {
    owners: Vec<Address>,
    threshold: u64,
}

impl SafeOwners {
    /// The factory that is meant where none is named.
    pub const USUAL_FACTORY: &str = "safe-1.4.1";

    /// Checks owners as the contract does. A single owner needs no threshold.
    pub fn new(owners: Vec<Address>, threshold: Option<u64>) -> Result<SafeOwners, SafeError> {
        let mut seen = BTreeSet::new();
        for owner in &owners {
            // Zero, and the head of the contract's list of owners.
            if owner[..19] == [0; 19] && owner[19] <= 1 {
                return Err(SafeError::Reserved(encode(owner)));
            }
            if !seen.insert(owner) {
                return Err(SafeError::Twice(encode(owner)));
            }
        }
        let bad = SafeError::Threshold { owners: owners.len() };
        let threshold = match (owners.len(), threshold) {
            (0, _) => return Err(SafeError::NoOwner),
            (1, None) => 1,
            (count, Some(given)) if (1..=count as u64).contains(&given) => given,
            _ => return Err(bad),
        };
        Ok(SafeOwners { owners, threshold })
    }

    /// Returns the call of `setup` with this fallback handler.
    pub fn initializer(&self, fallback_handler: &str) -> Vec<u8> {
        let zero = encode(&[0; 20]);
        let owners: Vec<String> = self.owners.iter().map(encode).collect();
        let values = [
            format!("[{}]", owners.join(",")),
            self.threshold.to_string(),
            zero.clone(),
            "0x".to_owned(),
            fallback_handler.to_owned(),
            zero.clone(),
            "0".to_owned(),
            zero,
        ];
        let Ok(AbiType::Tuple(types)) = AbiType::parse(PARAMETERS) else { unreachable!("a tuple") };
        let arguments = encode_arguments(&types, &values).expect("values of these types");
        [&keccak256(format!("setup{PARAMETERS}").as_bytes())[..4], &arguments].concat()
    }

    /// Adds what the rule of a Safe's factory asks for: the initializer, and the singleton in common use where none is given.
    pub fn add_inputs(
        &self,
        factory: &Factory,
        inputs: &mut BTreeMap<String, String>,
    ) -> Result<(), SafeError> {
        let Some((_, usual, handler)) = VERSIONS.iter().find(|(name, ..)| *name == factory.name) else {
            let has_owner = factory.inputs().any(|(name, _)| name == "owner");
            return Err(SafeError::Factory { factory: factory.name.clone(), known: known(), has_owner });
        };
        let singleton = inputs.entry("singleton".to_owned()).or_insert_with(|| (*usual).to_owned());
        let handler = if singleton.ends_with("_eip155") { HANDLER_EIP155 } else { handler };
        let call: String = self.initializer(handler).iter().map(|byte| format!("{byte:02x}")).collect();
        match inputs.insert("initializer".to_owned(), format!("0x{call}")) {
            None => Ok(()),
            Some(_) => Err(SafeError::Initializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(last: &[u8], threshold: Option<u64>) -> Result<SafeOwners, SafeError> {
        let address = |byte: &u8| std::array::from_fn(|at| if at == 19 { *byte } else { 0 });
        SafeOwners::new(last.iter().map(address).collect(), threshold)
    }

    #[test]
    fn the_initializer_is_the_call_of_setup() {
        let call = owners(&[0xaa, 0xbb], Some(2)).unwrap().initializer(VERSIONS[2].2);
        let words = [
            "0000000000000000000000000000000000000000000000000000000000000100",
            "0000000000000000000000000000000000000000000000000000000000000002",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0000000000000000000000000000000000000000000000000000000000000160",
            "000000000000000000000000fd0732dc9e303f09fcef3a7388ad10a83459ec99",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0000000000000000000000000000000000000000000000000000000000000002",
            "00000000000000000000000000000000000000000000000000000000000000aa",
            "00000000000000000000000000000000000000000000000000000000000000bb",
            "0000000000000000000000000000000000000000000000000000000000000000",
        ];
        let written: String = call.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(written, format!("b63e800d{}", words.concat()));
    }

    #[test]
    fn owners_are_refused_as_the_contract_refuses_them() {
        assert!(owners(&[7], None).is_ok() && owners(&[7, 8], Some(1)).is_ok());
        assert_eq!(owners(&[], None), Err(SafeError::NoOwner));
        for (last, threshold) in [(&[7][..], Some(0)), (&[7], Some(2)), (&[7, 8], None), (&[7, 8], Some(3))] {
            let wrong = owners(last, threshold).unwrap_err();
            assert_eq!(wrong, SafeError::Threshold { owners: last.len() });
        }
        assert!(matches!(owners(&[7, 7], Some(1)), Err(SafeError::Twice(_))));
        assert!(matches!(owners(&[0], None), Err(SafeError::Reserved(_))));
        assert!(matches!(owners(&[1], None), Err(SafeError::Reserved(_))));
    }

    #[test]
    fn every_safe_takes_owners_and_nothing_else_does() {
        let one = owners(&[7], None).unwrap();
        for factory in super::super::FACTORIES.iter() {
            let mut inputs = BTreeMap::new();
            let added = one.add_inputs(factory, &mut inputs);
            assert_eq!(added.is_ok(), factory.name.starts_with("safe-"), "{}", factory.name);
            assert!(added.is_err() || factory.values(&inputs).is_ok(), "{}", factory.name);
        }
        let safe = Factory::find(SafeOwners::USUAL_FACTORY).unwrap();
        let mut given = BTreeMap::from([("initializer".to_owned(), "0x".to_owned())]);
        assert_eq!(one.add_inputs(safe, &mut given), Err(SafeError::Initializer));
        let mut given = BTreeMap::from([("singleton".to_owned(), "GnosisSafe_eip155".to_owned())]);
        one.add_inputs(Factory::find("safe-1.3.0").unwrap(), &mut given).unwrap();
        assert!(given["initializer"].contains(&HANDLER_EIP155[2..].to_lowercase()), "{given:?}");
    }
}
