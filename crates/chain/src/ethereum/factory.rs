//! Factories: contracts that create others from a salt, and what each does with the salt it is given.
//!
//! Chooses what a factory's rule does with the salts of a mask, and refuses a mask under which it would not do the same with all of them.
//! Knows no hashing: what it finds is a case of the rule, and a mask. Rules are read in `rule`; those of the factories in common use are
//! files beside it, read by the same code.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::abi::{AbiError, AbiType};
use super::expression::{Expression, Values, size};
use super::{Address, InputError, encode, parse_hash};
use crate::SaltMask;

/// A factory: what it does with a salt, and what to call.
#[derive(Clone, Debug)]
pub struct Factory {
    /// The word that selects it.
    pub name: String,
    /// One line for help texts.
    pub summary: String,
    /// Where it is on every chain that has it; none for a library, which is part of the deployer.
    pub address: Option<Address>,
    /// What to call with CREATE2, where it offers that.
    pub create2: Option<String>,
    /// What to call for a contract behind a proxy (CREATE3), where it offers that.
    pub create3: Option<String>,
    /// What the call is given, where that is known.
    pub(super) arguments: Option<Vec<Argument>>,
    /// Keccak-256 of the proxy's code.
    pub(super) proxy_code_hash: [u8; 32],
    /// The type of the salt.
    pub(super) salt: AbiType,
    /// What becomes of a salt, by how it begins: the first that fits.
    pub(super) cases: Vec<Case>,
    /// The code of the contract, where it follows from the rule.
    pub(super) init_code: Option<Expression>,
    /// Values that never change, packed.
    pub(super) constants: Values,
    /// Values that a person gives.
    pub(super) inputs: Vec<Input>,
    /// The rule as it is written.
    pub(super) text: String,
}

/// A value that a person gives.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub name: String,
    pub of: AbiType,
    /// Packed.
    pub default: Option<Vec<u8>>,
}

/// What a call is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    Salt,
    /// The creation code.
    Code,
    /// A constant or an input.
    Value(String),
}

/// What becomes of salts that begin in one way.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Whether they begin with the caller's address.
    pub by_sender: bool,
    /// The bytes they begin with, behind that.
    pub begins: Vec<u8>,
    pub outcome: Outcome,
    /// What to call, where that is not what the rule says for all.
    pub call: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// The salt that CREATE2 is given.
    Guard(Expression),
    /// The factory refuses them.
    Refused(String),
}

/// Keccak-256 of the code of the proxy that all factories here use: `67363d3d37363d34f03d5260086018f3` returns
/// `363d3d37363d34f0`, which creates a contract out of its call data. Solmate, Solady and CreateX have it, and
/// 0xSequence in its released form (its first versions, and copies of them in use, have longer proxies).
pub const PROXY_CODE_HASH: [u8; 32] = [
    0x21, 0xc3, 0x5d, 0xbe, 0x1b, 0x34, 0x4a, 0x24, 0x88, 0xcf, 0x33, 0x21, 0xd6, 0xce, 0x54, 0x2f, 0x8e,
    0x9f, 0x30, 0x55, 0x44, 0xff, 0x09, 0xe4, 0x99, 0x3a, 0x62, 0x31, 0x9a, 0x49, 0x7c, 0x1f,
];

/// The rules of factories in common use. The sources are the contracts' own repositories.
const BUILT_IN: &[&str] = &[
    include_str!("factories/plain.toml"),
    include_str!("factories/arachnid.toml"),
    include_str!("factories/0age.toml"),
    include_str!("factories/createx.toml"),
    include_str!("factories/solmate.toml"),
    include_str!("factories/solady.toml"),
    include_str!("factories/sequence.toml"),
    include_str!("factories/create3factory.toml"),
    include_str!("factories/lifi.toml"),
    include_str!("factories/safe-1.1.1.toml"),
    include_str!("factories/safe-1.3.0.toml"),
    include_str!("factories/safe-1.4.1.toml"),
    include_str!("factories/safe-1.5.0.toml"),
    include_str!("factories/simple-account-0.6.toml"),
    include_str!("factories/simple-account-0.7.toml"),
    include_str!("factories/simple-account-0.8.toml"),
];

/// Every factory known by name.
pub static FACTORIES: LazyLock<Vec<Factory>> = LazyLock::new(|| {
    let read = |text: &&str| Factory::read(text).unwrap_or_else(|error| panic!("{error} of {text}"));
    BUILT_IN.iter().map(read).collect()
});

impl Factory {
    /// The factory with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        FACTORIES.iter().find(|factory| factory.name == name)
    }

    /// The names of the values that a person gives, and their types.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &AbiType)> {
        self.inputs.iter().map(|input| (input.name.as_str(), &input.of))
    }

    /// Whether the contract's code follows from the rule.
    pub fn has_code(&self) -> bool {
        self.init_code.is_some()
    }

    /// The rule as it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads a salt: the 32 bytes that results have, or what the factory takes.
    pub fn parse_salt(&self, text: &str) -> Result<GivenSalt, InputError> {
        let is_number =
            matches!(self.salt, AbiType::Uint(_)) && text.bytes().all(|digit| digit.is_ascii_digit());
        if let (false, Ok(whole)) = (is_number, parse_hash(text)) {
            return Ok(GivenSalt { bytes: whole.to_vec() });
        }
        let packed = self.salt.packed(text).map_err(|error| InputError::Salt {
            text: text.to_owned(),
            of: self.salt.to_string(),
            why: match error {
                AbiError::Value { why, .. } => why,
                other => other.to_string(),
            },
        })?;
        Ok(GivenSalt { bytes: packed })
    }
}

/// A salt as it was given: 32 bytes, or the fewer that its factory takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenSalt {
    pub(super) bytes: Vec<u8>,
}

impl GivenSalt {
    /// All 32 bytes, where they were given.
    pub fn whole(&self) -> Option<[u8; 32]> {
        self.bytes.as_slice().try_into().ok()
    }
}

/// What a person says about the salt and who uses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaltRequest {
    /// The account that will call the factory.
    pub caller: Option<Address>,
    /// The one chain the result shall be for, where the factory can bind it to one.
    pub chain_id: Option<u64>,
    /// Which bytes of the salt are free; by default as many as the factory's rule leaves free.
    pub mask: Option<SaltMask>,
    /// What the rule asks for, by name.
    pub inputs: BTreeMap<String, String>,
}

/// Something that cannot be created as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The factory does not do this.
    #[error("the factory {factory} offers no {wanted}; those that do: {others}")]
    Unsupported {
        /// The factory.
        factory: String,
        /// What is wanted of it.
        wanted: &'static str,
        /// Factories that offer it.
        others: String,
    },
    /// The contract that creates is not known.
    #[error("{factory} has no address of its own, and that of the contract which creates is missing")]
    NoDeployer {
        /// The factory.
        factory: String,
    },
    /// The result depends on the caller, who is not known.
    #[error("{factory} makes the address depend on the account that calls it, which is missing")]
    NoCaller {
        /// The factory.
        factory: String,
    },
    /// A chain was given to a factory that does not ask for it.
    #[error("{factory} makes the same address on every chain, so none can be chosen")]
    NoChains {
        /// The factory.
        factory: String,
    },
    /// The factory does not take such salts.
    #[error("{factory} refuses such a salt: {why}")]
    Refused {
        /// The factory.
        factory: String,
        /// What it takes.
        why: String,
    },
    /// The address depends on the chain, which is not known.
    #[error("with such salts {factory} makes the address depend on the chain, whose number is missing")]
    NoChain {
        /// The factory.
        factory: String,
    },
    /// A chain was given, but the salt does not bind to it.
    #[error("with this mask of salts {factory} does not look at the chain")]
    UnusedChain {
        /// The factory.
        factory: String,
    },
    /// The first 20 bytes look like an account.
    #[error(
        "the mask fixes the first 20 bytes of the salt, and {factory} treats salts that begin with the caller's address \
         differently; say who calls it"
    )]
    WhoCalls {
        /// The factory.
        factory: String,
    },
    /// Some fillings of the mask would be treated differently from the others.
    #[error(
        "some salts of this mask would begin with {start}, and {factory} would treat those differently; fix the first {bytes} \
         bytes or leave more of them free"
    )]
    Ambiguous {
        /// The factory.
        factory: String,
        /// What they would begin with.
        start: String,
        /// How many bytes that are.
        bytes: usize,
    },
    /// A mask that does not leave alone what is not the salt's.
    #[error(
        "{factory} takes a salt of type {of}, which is bytes {first} to {last} of the 32; write the others in the mask as they are: {mask}"
    )]
    OutsideSalt {
        /// The factory.
        factory: String,
        /// The salt's type.
        of: String,
        /// Its first byte, counted from 1.
        first: usize,
        /// Its last byte.
        last: usize,
        /// A mask that is possible.
        mask: String,
    },
    /// The code is not known.
    #[error("the code of the contract is part of its address, and neither it nor its hash is given")]
    NoCode,
    /// Code was given to a factory that has its own.
    #[error("{factory} creates code of its own, which follows from its inputs; no other can be given")]
    OwnCode {
        /// The factory.
        factory: String,
    },
    /// A value that the rule asks for is missing.
    #[error("{factory} needs {name}, written {example}{}", if .names.is_empty() { String::new() } else { format!(", where {} can stand for an address", .names) })]
    NoInput {
        /// The factory.
        factory: String,
        /// The value.
        name: String,
        /// How it is written.
        example: &'static str,
        /// Names that can stand for it.
        names: String,
    },
    /// A value that nobody asked for.
    #[error("{factory} has no input {name}; it has {known}")]
    UnknownInput {
        /// The factory.
        factory: String,
        /// The value.
        name: String,
        /// What there is.
        known: String,
    },
    /// A value that cannot be read.
    #[error("the input {name}: {why}")]
    BadInput {
        /// The value.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// Values that are not as long as the rule needs them.
    #[error("with these inputs the rule of {factory} does not hold: {why}")]
    Unfit {
        /// The factory.
        factory: String,
        /// What is wrong.
        why: String,
    },
    /// A message that devices do not hash.
    #[error(
        "{factory} hashes {bytes} bytes with the salt in them, and {most} is the most that is searched; hash long values before: \
         keccak256(..)"
    )]
    Long {
        /// The factory.
        factory: String,
        /// How many.
        bytes: usize,
        /// How many there may be.
        most: usize,
    },
}

/// A value that is not one of its input's type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ValueError {
    /// The name of a constant of another type.
    #[error("{name} is of type {known}, not {of}")]
    Type {
        /// The constant.
        name: String,
        /// Its type.
        known: AbiType,
        /// The type of the input.
        of: AbiType,
    },
    /// Not as the type is written.
    #[error(transparent)]
    Value(#[from] AbiError),
}

impl Case {
    /// What the salts begin with, if it is known who calls.
    fn start(&self, sender: Option<Address>) -> Option<Vec<u8>> {
        match (self.by_sender, sender) {
            (false, _) => Some(self.begins.clone()),
            (true, Some(sender)) => Some([&sender[..], &self.begins].concat()),
            (true, None) => None,
        }
    }

    /// How many bytes are told by how the salts begin.
    fn told(&self) -> usize {
        self.begins.len() + if self.by_sender { 20 } else { 0 }
    }

    fn guard(&self) -> Option<&Expression> {
        match &self.outcome {
            Outcome::Guard(guard) => Some(guard),
            Outcome::Refused(_) => None,
        }
    }

    fn uses_sender(&self) -> bool {
        self.by_sender || self.guard().is_some_and(Expression::uses_sender)
    }

    pub(super) fn uses_chain(&self) -> bool {
        self.guard().is_some_and(Expression::uses_chain)
    }
}

/// What a factory does with the salts of a request.
pub(super) struct Chosen<'a> {
    pub guard: &'a Expression,
    /// What to call, where that is not what the rule says for all.
    pub call: Option<&'a str>,
    /// Which bytes are free.
    pub mask: SaltMask,
    /// Who calls, given or named by the salt.
    pub sender: Option<Address>,
}

impl Factory {
    /// The case of the rule that all salts of the request fall into, and the mask to count in.
    pub(super) fn choose(&self, request: &SaltRequest) -> Result<Chosen<'_>, Refusal> {
        let factory = self.name.clone();
        let binds = |case: &Case| case.uses_chain() || self.code_uses_chain();
        if request.chain_id.is_some() && !self.cases.iter().any(binds) {
            return Err(Refusal::NoChains { factory });
        }
        let (case, mask, sender) = match request.mask {
            Some(mask) => {
                let (case, sender) = self.case_of(&mask, request)?;
                (case, mask, sender)
            }
            None => {
                let usual = self.usual_case(request)?;
                let start = usual.start(request.caller).unwrap_or_default();
                let mask = self.usual_mask(usual, &start, request.caller);
                // What the contract will do with such salts: an earlier case may take them, or some of them.
                let (case, sender) = self.case_of(&mask, request)?;
                (case, mask, sender)
            }
        };
        let guard = match &case.outcome {
            Outcome::Guard(guard) => guard,
            Outcome::Refused(why) => return Err(Refusal::Refused { factory, why: why.clone() }),
        };
        match (binds(case), request.chain_id) {
            (true, None) => Err(Refusal::NoChain { factory }),
            (false, Some(_)) => Err(Refusal::UnusedChain { factory }),
            _ if (guard.uses_sender() || self.code_uses_sender()) && sender.is_none() => {
                Err(Refusal::NoCaller { factory })
            }
            _ => Ok(Chosen { guard, call: case.call.as_deref(), mask, sender }),
        }
    }

    fn code_uses_chain(&self) -> bool {
        self.init_code.as_ref().is_some_and(Expression::uses_chain)
    }

    fn code_uses_sender(&self) -> bool {
        self.init_code.as_ref().is_some_and(Expression::uses_sender)
    }

    /// Without a mask: the case that does what was said about caller and chain, and leaves the most of the salt free.
    fn usual_case(&self, request: &SaltRequest) -> Result<&Case, Refusal> {
        let factory = || self.name.clone();
        let usable = || {
            let is_bound = request.chain_id.is_some();
            let fits =
                move |case: &&Case| case.uses_chain() == is_bound || is_bound && self.code_uses_chain();
            self.cases.iter().filter(|case| case.guard().is_some()).filter(fits)
        };
        if usable().next().is_none() {
            return Err(Refusal::NoChain { factory: factory() });
        }
        let named = usable().filter(|case| case.uses_sender() == request.caller.is_some());
        match (named.min_by_key(|case| case.told()), request.caller) {
            (Some(case), _) => Ok(case),
            (None, Some(_)) => Ok(usable().min_by_key(|case| case.told()).expect("there is one")),
            (None, None) => Err(Refusal::NoCaller { factory: factory() }),
        }
    }

    fn usual_mask(&self, case: &Case, start: &[u8], caller: Option<Address>) -> SaltMask {
        // Who names a caller where the factory does nothing with it means the layout that contracts of this kind expect.
        let is_plain = !self.code_uses_sender()
            && size(&self.salt) == Some(32)
            && case.guard().is_some_and(|guard| !guard.hashes());
        match caller {
            Some(caller) if start.is_empty() && is_plain && !case.uses_sender() => {
                SaltMask::beginning(&caller)
            }
            _ => SaltMask::beginning(start),
        }
    }

    /// The case that all salts of a mask fall into, and who calls.
    fn case_of(&self, mask: &SaltMask, request: &SaltRequest) -> Result<(&Case, Option<Address>), Refusal> {
        let factory = || self.name.clone();
        let mut by_unknown = None;
        for case in &self.cases {
            let Some(start) = case.start(request.caller) else {
                by_unknown = by_unknown.or(Some(case));
                continue;
            };
            if mask.must_begin(&start) {
                let named: Option<Address> =
                    mask.is_fixed(0..20).then(|| std::array::from_fn(|byte| mask.fixed()[byte]));
                return match (by_unknown.filter(|_| start.is_empty()), named, &case.outcome) {
                    // Others are refused, so the caller is whom the salt names.
                    (Some(by_sender), Some(named), Outcome::Refused(_)) => Ok((by_sender, Some(named))),
                    (Some(_), Some(_), Outcome::Guard(_)) => Err(Refusal::WhoCalls { factory: factory() }),
                    _ => Ok((self.bound(case, request), request.caller)),
                };
            }
            // Where the free bytes hold eight random ones that do not count, none of the salts begins so but once in 2^64
            // searches.
            let is_random =
                |&byte: &usize| mask.free()[byte] && !mask.counted().any(|counted| counted == byte);
            if mask.can_begin(&start) && (0..start.len()).filter(is_random).count() < 8 {
                return Err(self.ambiguous(mask, request, case, &start));
            }
        }
        unreachable!("the last case takes every salt")
    }

    /// Of cases that begin alike the one that does what was said about the chain: it is another function of the contract.
    fn bound<'a>(&'a self, case: &'a Case, request: &SaltRequest) -> &'a Case {
        let alike = |other: &&Case| (other.by_sender, &other.begins) == (case.by_sender, &case.begins);
        let fits = |other: &&Case| other.uses_chain() == request.chain_id.is_some();
        self.cases.iter().filter(alike).find(fits).unwrap_or(case)
    }

    /// The error for a mask of which some salts begin so and others do not.
    fn ambiguous(&self, mask: &SaltMask, request: &SaltRequest, case: &Case, start: &[u8]) -> Refusal {
        let factory = self.name.clone();
        // What the factory refuses unless it goes on in one of the ways before.
        let whole = self.cases.iter().find_map(|other| match &other.outcome {
            Outcome::Refused(why) => {
                let start = other.start(request.caller).filter(|start| !start.is_empty())?;
                mask.must_begin(&start).then(|| why.clone())
            }
            Outcome::Guard(_) => None,
        });
        if let Some(why) = whole {
            return Refusal::Refused { factory, why };
        }
        let bytes: String = case.begins.iter().map(|byte| format!("{byte:02x}")).collect();
        let start_text = match request.caller.filter(|_| case.by_sender) {
            Some(caller) => format!("{}{bytes}", encode(&caller)),
            None => format!("0x{bytes}"),
        };
        Refusal::Ambiguous { factory, start: start_text, bytes: start.len() }
    }

    /// Whether it can hold others off, and salts of this mask do not make it. A library's contract decides by itself who may call it, and
    /// others hash the caller in.
    pub(super) fn is_open(&self, request: &SaltRequest, mask: &SaltMask) -> bool {
        let can_hold_off = self.cases.iter().any(|case| case.by_sender && case.guard().is_some());
        can_hold_off && !request.caller.is_some_and(|caller| mask.must_begin(&caller))
    }

    /// What names in the rule's expressions stand for.
    pub(super) fn values(&self, given: &BTreeMap<String, String>) -> Result<Values, Refusal> {
        if let Some(name) = given.keys().find(|name| !self.inputs.iter().any(|input| input.name == **name)) {
            let known: Vec<&str> = self.inputs().map(|(name, _)| name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Refusal::UnknownInput { factory: self.name.clone(), name: name.clone(), known });
        }
        let mut values = self.constants.clone();
        for Input { name, of, default } in &self.inputs {
            let alike = |(_, (other, _)): &(&String, &(AbiType, Vec<u8>))| other == of;
            let packed = match (given.get(name), default) {
                (Some(text), _) => {
                    let bad =
                        |error: ValueError| Refusal::BadInput { name: name.clone(), why: error.to_string() };
                    self.read_input(of, text).map_err(bad)?
                }
                (None, Some(default)) => default.clone(),
                (None, None) => {
                    let names = self.constants.iter().filter(alike).map(|(name, _)| name.as_str());
                    let names = if *of == AbiType::Address { names.collect() } else { Vec::new() };
                    return Err(Refusal::NoInput {
                        factory: self.name.clone(),
                        name: name.clone(),
                        example: if matches!(of, AbiType::Uint(_)) { "N" } else { "0x.." },
                        names: names.join(" or "),
                    });
                }
            };
            values.insert(name.clone(), (of.clone(), packed));
        }
        Ok(values)
    }

    /// The value of an input: as its type is written, or the name of a constant of that type.
    pub(super) fn read_input(&self, of: &AbiType, text: &str) -> Result<Vec<u8>, ValueError> {
        match self.constants.get(text.trim()) {
            Some((known, packed)) if known == of => Ok(packed.clone()),
            Some((known, _)) => {
                Err(ValueError::Type { name: text.trim().to_owned(), known: known.clone(), of: of.clone() })
            }
            None => Ok(of.packed(text)?),
        }
    }
}
