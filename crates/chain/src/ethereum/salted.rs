//! Contracts created from a salt: CREATE2 (EIP-1014), and CREATE3, where CREATE2 makes a proxy that makes the contract.
//!
//! Knows the chain of hashes. What a factory does with the salt first is in `factory`.

use super::address::{decode_digest, encode_digest};
use super::factory::{FACTORIES, Factory, PROXY_CODE_HASH, Refusal, SaltRequest};
use super::{Address, ENCODING, address_of, create, encode, keccak256};
use crate::text::hex::push_hex;
use crate::{Digest, Encoding, Error, Guard, SaltTarget, Salted, Target};

/// The address of a contract that `deployer` creates with CREATE2.
pub fn create2(deployer: &Address, salt: &[u8; 32], code_hash: &[u8; 32]) -> Address {
    let mut message = [0xff; 85];
    message[1..21].copy_from_slice(deployer);
    message[21..53].copy_from_slice(salt);
    message[53..].copy_from_slice(code_hash);
    address_of(&keccak256(&message))
}

/// A contract that a factory creates from a salt yet to be found.
#[derive(Clone, Debug)]
pub struct Deployment {
    name: &'static str,
    factory: &'static Factory,
    /// What to call of the factory.
    call: &'static str,
    request: SaltRequest,
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
            Guard::Prefixed(prefix) => keccak256(&[prefix, &salt[..]].concat()),
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
    /// A contract with this init code, created with CREATE2 by the factory, or by `deployer` in its place.
    pub fn create2(
        factory: &'static Factory,
        deployer: Option<Address>,
        code_hash: [u8; 32],
        request: &SaltRequest,
    ) -> Result<Self, Refusal> {
        let call = factory.create2.ok_or_else(|| unsupported(factory, "CREATE2", |other| other.create2))?;
        Self::new("create2", factory, call, deployer, code_hash, false, request)
    }

    /// Any contract, created by a proxy of the factory, or of `deployer` in its place. Another proxy than the usual one
    /// is told by the hash of its code.
    pub fn create3(
        factory: &'static Factory,
        deployer: Option<Address>,
        proxy_code_hash: Option<[u8; 32]>,
        request: &SaltRequest,
    ) -> Result<Self, Refusal> {
        let call = factory.create3.ok_or_else(|| unsupported(factory, "CREATE3", |other| other.create3))?;
        let code_hash = proxy_code_hash.unwrap_or(PROXY_CODE_HASH);
        Self::new("create3", factory, call, deployer, code_hash, true, request)
    }

    fn new(
        name: &'static str,
        factory: &'static Factory,
        call: &'static str,
        deployer: Option<Address>,
        code_hash: [u8; 32],
        create: bool,
        request: &SaltRequest,
    ) -> Result<Self, Refusal> {
        let deployer = deployer.or(factory.address).ok_or(Refusal::NoDeployer { factory: factory.name })?;
        let (salt, guard) = factory.salts(request)?;
        let salted = Salted { guard, deployer, code_hash, create, salt };
        Ok(Self { name, factory, call, request: *request, salted })
    }
}

impl Deployment {
    /// The line that creates the contract with Foundry's cast, with the creation code in a file, in hex; for a library, what the
    /// contract that has it must do.
    fn command(&self, salt: &[u8; 32]) -> String {
        let (deployer, salt) = (encode(&self.salted.deployer), hex(salt));
        if self.factory.address.is_none() {
            let with = if self.salted.create { "any creation code" } else { "that init code" };
            return format!("have {deployer} execute {} with the salt {salt} and {with}", self.call);
        }
        let arguments = match self.call.contains('(') {
            true => format!("'{}' {salt} $(cat code.hex)", self.call),
            // The deterministic deployment proxy takes the two in a row.
            false => format!("{salt}$(sed s/^0x// code.hex)"),
        };
        let from = self.request.caller.map_or(String::new(), |caller| format!(" --from {}", encode(&caller)));
        format!("cast send {deployer} {arguments}{from} --interactive --rpc-url URL")
    }

    /// What is to be known before the salt is used, where somebody else could use it first.
    pub fn caution(&self) -> Option<&'static str> {
        self.factory.is_open(&self.request, &self.salted.salt).then_some(match self.salted.create {
            true => {
                "anyone who sees the transaction with this salt can send it first, with other code: the address does not depend \
                 on the code. Give the account that will call the factory: --salt-layout caller:0x.."
            }
            false => {
                "anyone who sees the transaction with this salt can send it first: the contract has the same code then, and your own \
                 transaction fails. Give the account that will call the factory: --salt-layout caller:0x.."
            }
        })
    }
}

/// The error for a factory that does not do this, with those that do.
fn unsupported(
    factory: &Factory,
    wanted: &'static str,
    offers: fn(&Factory) -> Option<&'static str>,
) -> Refusal {
    let others: Vec<&str> =
        FACTORIES.iter().filter(|other| offers(other).is_some()).map(|other| other.name).collect();
    Refusal::Unsupported { factory: factory.name, wanted, others: others.join(", ") }
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
        let Salted { guard, deployer, code_hash, create, .. } = &self.salted;
        let steps = self.salted.steps(salt);
        let mut all = vec![
            ("salt", hex(salt)),
            ("factory", self.factory.name.to_owned()),
            ("call", self.call.to_owned()),
        ];
        all.extend(self.request.caller.map(|caller| ("caller", encode(&caller))));
        all.extend(self.request.chain_id.map(|chain| ("chain", chain.to_string())));
        if *guard != Guard::None {
            all.push(("guarded salt", hex(&steps.guarded)));
        }
        all.push(("deployer", encode(deployer)));
        all.push((if *create { "proxy code hash" } else { "init code hash" }, hex(code_hash)));
        if *create {
            all.push(("proxy", encode(&steps.first)));
        }
        all.push(("use", self.command(salt)));
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
