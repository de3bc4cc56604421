//! Contracts created from a salt: CREATE2 (EIP-1014), and CREATE3, where CREATE2 makes a proxy that makes the contract.
//!
//! Knows the chain of hashes. What a factory does with the salt first is in `factory`.

use std::ops::Range;

use super::abi::AbiType;
use super::account::create_message;
use super::address::{decode_digest, encode_digest};
use super::code::CodeSource;
use super::expression::{Content, Message, Mistake, Scope, Values, size};
use super::factory::{Argument, FACTORIES, Factory, GivenSalt, Refusal, SaltRequest};
use super::{Address, ENCODING, address_of, create, encode, keccak256};
use crate::text::hex::push_hex;
use crate::{Digest, Encoding, Error, Guard, Hashed, SaltMask, SaltTarget, Salted, Target};

/// The address of a contract that `deployer` creates with CREATE2.
pub fn create2(deployer: &Address, salt: &[u8; 32], code_hash: &[u8; 32]) -> Address {
    address_of(&keccak256(&create2_message(deployer, salt, code_hash)))
}

/// What CREATE2 hashes.
fn create2_message(deployer: &Address, salt: &[u8; 32], code_hash: &[u8; 32]) -> [u8; 85] {
    let mut message = [0xff; 85];
    message[1..21].copy_from_slice(deployer);
    message[21..53].copy_from_slice(salt);
    message[53..].copy_from_slice(code_hash);
    message
}

/// A contract that a factory creates from a salt yet to be found.
#[derive(Clone, Debug)]
pub struct Deployment {
    name: &'static str,
    factory: Factory,
    /// What to call of the factory.
    call: String,
    /// What becomes of the salt, as the rule has it.
    guard: String,
    request: SaltRequest,
    /// Constants and inputs of the rule, packed.
    values: Values,
    /// The code, where it follows from the rule.
    init_code: Option<Vec<u8>>,
    /// File with the code, if it does not follow from the rule.
    source: Option<CodeSource>,
    /// Which bytes of the 32 are what the factory takes as its salt.
    argument: Range<usize>,
    salted: Salted,
}

/// Every value on the way from a salt to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The salt as CREATE2 sees it.
    pub guarded: [u8; 32],
    /// What CREATE2 creates.
    pub first: Address,
    /// The result.
    pub address: Address,
}

impl Salted {
    /// From a salt to the address.
    pub fn steps(&self, salt: &[u8; 32]) -> Steps {
        let guarded = match &self.guard {
            Guard::None => *salt,
            Guard::Hashed(hashed) => keccak256(&hashed.message(salt)),
        };
        let first = create2(&self.deployer, &guarded, &self.code_hash);
        // A contract's nonce begins at 1 (EIP-161).
        let address = if self.create { create(&first, 1) } else { first };
        Steps { guarded, first, address }
    }
}

impl Deployment {
    /// What lies between a salt and its address besides CREATE2: whether the salt is hashed before, and whether a proxy creates.
    pub fn stages(&self) -> (bool, bool) {
        (self.salted.guard != Guard::None, self.salted.create)
    }
}

impl Deployment {
    /// A contract with this init code, created with CREATE2 by the factory, or by `deployer` in its place. Where the code follows from the
    /// factory's rule, none is given.
    pub fn create2(
        factory: &Factory,
        deployer: Option<Address>,
        code_hash: Option<[u8; 32]>,
        request: &SaltRequest,
    ) -> Result<Self, Refusal> {
        let call = factory.create2.as_ref();
        let call = call.ok_or_else(|| unsupported(factory, "CREATE2", |other| other.create2.is_some()))?;
        Self::new("create2", factory, call, deployer, code_hash, request)
    }

    /// Any contract, created by a proxy of the factory, or of `deployer` in its place. Another proxy than the usual one
    /// is told by the hash of its code.
    pub fn create3(
        factory: &Factory,
        deployer: Option<Address>,
        proxy_code_hash: Option<[u8; 32]>,
        request: &SaltRequest,
    ) -> Result<Self, Refusal> {
        let call = factory.create3.as_ref();
        let call = call.ok_or_else(|| unsupported(factory, "CREATE3", |other| other.create3.is_some()))?;
        let code_hash = proxy_code_hash.unwrap_or(factory.proxy_code_hash);
        Self::new("create3", factory, call, deployer, Some(code_hash), request)
    }

    fn new(
        name: &'static str,
        factory: &Factory,
        call: &str,
        deployer: Option<Address>,
        code_hash: Option<[u8; 32]>,
        request: &SaltRequest,
    ) -> Result<Self, Refusal> {
        let own = || factory.name.clone();
        let deployer = deployer.or(factory.address).ok_or_else(|| Refusal::NoDeployer { factory: own() })?;
        let values = factory.values(&request.inputs)?;
        let chosen = factory.choose(request)?;
        let scope = Scope {
            sender: chosen.sender.unwrap_or_default(),
            chain_id: request.chain_id.unwrap_or_default(),
            this: deployer,
            salt: &factory.salt,
            values: &values,
        };
        // Of what was tried when the rule was read only lengths can be others now.
        let unfit = |mistake: Mistake| Refusal::Unfit { factory: own(), why: mistake.why };
        let init_code = factory.init_code.as_ref().map(|code| code.bytes(&scope)).transpose();
        let init_code = init_code.map_err(unfit)?;
        let code_hash = match (&init_code, code_hash) {
            (Some(_), Some(_)) => return Err(Refusal::OwnCode { factory: own() }),
            (Some(code), None) => keccak256(code),
            (None, given) => given.ok_or(Refusal::NoCode)?,
        };
        let taken = size(&factory.salt).unwrap_or(32);
        let (guard, argument, around) = match chosen.guard.salt(&scope).map_err(unfit)? {
            Content::Hash(message) => {
                let bytes = message.len(taken);
                if bytes > Hashed::MOST {
                    return Err(Refusal::Long { factory: own(), bytes, most: Hashed::MOST });
                }
                // As the ABI has it: numbers at the end of 32 bytes, bytes at the start.
                let salt =
                    if matches!(factory.salt, AbiType::FixedBytes(_)) { 0..taken } else { 32 - taken..32 };
                let Message { before, after, .. } = message;
                (Guard::Hashed(Hashed { before, salt: salt.clone(), after }), salt, [0; 32])
            }
            Content::Bytes(Message { before, after, .. }) => {
                let argument = before.len()..before.len() + taken;
                let whole = [&before[..], &vec![0; taken], &after].concat();
                (Guard::None, argument, whole.try_into().expect("a salt of 32 bytes"))
            }
        };
        let salt = within(factory, &argument, &around, request.mask, chosen.mask)?;
        let salted = Salted { guard, deployer, code_hash, create: name == "create3", salt };
        Ok(Self {
            name,
            call: chosen.call.unwrap_or(call).to_owned(),
            guard: chosen.guard.text.clone(),
            factory: factory.clone(),
            request: request.clone(),
            values,
            init_code,
            source: None,
            argument,
            salted,
        })
    }
}

/// The mask of a salt that may be shorter than the 32 bytes around it.
fn within(
    factory: &Factory,
    argument: &Range<usize>,
    around: &[u8; 32],
    given: Option<SaltMask>,
    chosen: SaltMask,
) -> Result<SaltMask, Refusal> {
    if argument.len() == 32 {
        return Ok(chosen);
    }
    let possible = SaltMask::within(around, argument.clone());
    let Some(mask) = given else { return Ok(possible) };
    let outside = (0..32).filter(|byte| !argument.contains(byte));
    match outside.into_iter().all(|byte| mask.byte(byte) == Some(around[byte])) {
        true => Ok(mask),
        false => Err(Refusal::OutsideSalt {
            factory: factory.name.clone(),
            of: factory.salt.to_string(),
            first: argument.start + 1,
            last: argument.end,
            mask: possible.to_string(),
        }),
    }
}

impl Deployment {
    /// What the factory is given for a salt: its own bytes where it takes fewer than 32, as a number where it takes one.
    fn argument(&self, salt: &[u8; 32]) -> String {
        let own = &salt[self.argument.clone()];
        match self.factory.salt {
            AbiType::Uint(bits) if bits < 256 => decimal(own),
            _ => hex(own),
        }
    }

    /// The 32 bytes of a salt that was given, as results have them.
    pub fn place(&self, given: &GivenSalt) -> [u8; 32] {
        given.whole().unwrap_or_else(|| {
            let mut salt = *self.salted.salt.fixed();
            salt[self.argument.clone()].copy_from_slice(&given.bytes);
            salt
        })
    }

    /// Has lines that create the contract name the file with its code.
    pub fn with_source(self, source: Option<CodeSource>) -> Self {
        Self { source, ..self }
    }

    /// Whether a line is the one that creates the contract, whatever file it takes the code from.
    pub fn is_command(&self, salt: &[u8; 32], line: &str) -> bool {
        let write = |source: &CodeSource| self.command(salt, Some(source));
        line == self.command(salt, None) || CodeSource::find(line, write).is_some()
    }

    /// The line that creates the contract with Foundry's cast, with the creation code in a file; or, if the
    /// arguments of the call are not known, what the contract must do.
    fn command(&self, salt: &[u8; 32], source: Option<&CodeSource>) -> String {
        let (deployer, salt) = (encode(&self.salted.deployer), self.argument(salt));
        let Some(arguments) = &self.factory.arguments else {
            let with = match (self.salted.create, &self.init_code) {
                (true, _) => " and any creation code",
                (false, None) => " and that init code",
                (false, Some(_)) => "",
            };
            return format!("have {deployer} execute {} with the salt {salt}{with}", self.call);
        };
        let unknown = CodeSource::unknown();
        let code = source.unwrap_or(&unknown);
        let has_code = !self.call.contains('(') || arguments.contains(&Argument::Code);
        let arguments = match self.call.contains('(') {
            true => {
                let value = |one: &Argument| match one {
                    Argument::Salt => salt.clone(),
                    Argument::Code => code.prefixed(),
                    Argument::Value(name) => self.written(name),
                };
                let all: Vec<String> = arguments.iter().map(value).collect();
                format!("'{}' {}", self.call, all.join(" "))
            }
            // The deterministic deployment proxy takes the two in a row.
            false => format!("{salt}{}", code.bare()),
        };
        let from = self.request.caller.map_or(String::new(), |caller| format!(" --from {}", encode(&caller)));
        let note = match source {
            None if has_code => ", where FILE holds the creation code in hex",
            _ => "",
        };
        format!("cast send {deployer} {arguments}{from} --interactive --rpc-url URL{note}")
    }

    /// A constant or an input as people write it.
    fn written(&self, name: &str) -> String {
        match self.values.get(name) {
            Some((AbiType::Address, packed)) => {
                packed.as_slice().try_into().map_or_else(|_| hex(packed), |address: &Address| encode(address))
            }
            Some((AbiType::Uint(_), packed)) => decimal(packed),
            Some((_, packed)) => hex(packed),
            None => String::new(),
        }
    }

    /// All inputs as they are given on a command line, with spaces between them; none where there are none.
    fn inputs(&self) -> Option<String> {
        let all: Vec<String> =
            self.factory.inputs().map(|(name, _)| format!("{name}={}", self.written(name))).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }

    /// What is to be known before the salt is used, where somebody else could use it first.
    pub fn caution(&self) -> Option<&'static str> {
        self.factory.is_open(&self.request, &self.salted.salt).then_some(match self.salted.create {
            true => {
                "anyone who sees the transaction with this salt can send it first, with other code: the address does not depend \
                 on the code. Give the account that will call the factory"
            }
            false => {
                "anyone who sees the transaction with this salt can send it first: the contract has the same code then, and your own \
                 transaction fails. Give the account that will call the factory"
            }
        })
    }
}

/// The error for a factory that does not do this, with those that do.
fn unsupported(factory: &Factory, wanted: &'static str, offers: fn(&Factory) -> bool) -> Refusal {
    let others: Vec<&str> =
        FACTORIES.iter().filter(|other| offers(other)).map(|other| other.name.as_str()).collect();
    Refusal::Unsupported { factory: factory.name.clone(), wanted, others: others.join(", ") }
}

impl Target for Deployment {
    fn name(&self) -> &'static str {
        self.name
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

impl SaltTarget for Deployment {
    fn salted(&self) -> &Salted {
        &self.salted
    }

    fn digest(&self, salt: &[u8; 32]) -> Digest {
        Digest::new(&self.salted.steps(salt).address)
    }

    fn explain(&self, salt: &[u8; 32]) -> Vec<(&'static str, String)> {
        self.trace(salt).into_iter().filter(|(name, _)| !ONLY_TRACED.contains(name)).collect()
    }
}

/// What a result does not tell of the way: it follows from the rest by the factory's rule.
const ONLY_TRACED: [&str; 5] = ["guard", "guard message", "init code", "create2 message", "create message"];

impl Deployment {
    /// Every value on the way from a salt to the address, the bytes of every message that is hashed among them.
    pub fn trace(&self, salt: &[u8; 32]) -> Vec<(&'static str, String)> {
        let Salted { guard, deployer, code_hash, create, .. } = &self.salted;
        let steps = self.salted.steps(salt);
        let mut all =
            vec![("salt", hex(salt)), ("factory", self.factory.name.clone()), ("call", self.call.clone())];
        if self.argument.len() < 32 {
            all.push(("salt argument", self.argument(salt)));
        }
        all.extend(self.request.caller.map(|caller| ("caller", encode(&caller))));
        all.extend(self.request.chain_id.map(|chain| ("chain", chain.to_string())));
        all.extend(self.inputs().map(|inputs| ("inputs", inputs)));
        if let Guard::Hashed(hashed) = guard {
            all.push(("guard", self.guard.clone()));
            all.push(("guard message", hex(&hashed.message(salt))));
            all.push(("guarded salt", hex(&steps.guarded)));
        }
        all.push(("deployer", encode(deployer)));
        all.extend(self.init_code.as_ref().map(|code| ("init code", hex(code))));
        all.push((if *create { "proxy code hash" } else { "init code hash" }, hex(code_hash)));
        all.push(("create2 message", hex(&create2_message(deployer, &steps.guarded, code_hash))));
        if *create {
            all.push(("proxy", encode(&steps.first)));
            all.push(("create message", hex(&create_message(&steps.first, 1))));
        }
        all.push(("use", self.command(salt, self.source.as_ref())));
        all.push(("address", encode(&steps.address)));
        all
    }
}

/// Bytes as `0x` and hex digits.
fn hex(bytes: &[u8]) -> String {
    let mut text = "0x".to_owned();
    push_hex(&mut text, bytes);
    text
}

/// A number of any size, in decimal digits.
fn decimal(bytes: &[u8]) -> String {
    let mut digits = vec![0u8];
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            let value = u32::from(*digit) * 256 + carry;
            (*digit, carry) = ((value % 10) as u8, value / 10);
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
    }
    digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect()
}
