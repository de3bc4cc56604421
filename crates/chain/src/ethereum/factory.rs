//! Factories: contracts that create others from a salt, and what each does with the salt it is given.
//!
//! Knows the published rules of each factory and refuses a salt mask under which they would not hold. Knows no
//! hashing: what it finds is a [`Guard`] and a mask.

use super::{Address, encode};
use crate::{Guard, SaltMask};

/// A factory in common use.
#[derive(Debug)]
pub struct Factory {
    /// The word that selects it.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    /// Where it is on every chain that has it; none for a library, which is part of the deployer.
    pub address: Option<Address>,
    /// What to call with CREATE2, where it offers that.
    pub create2: Option<&'static str>,
    /// What to call for a contract behind a proxy (CREATE3), where it offers that.
    pub create3: Option<&'static str>,
    rule: Rule,
}

/// What becomes of a salt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Nothing.
    AsIs,
    /// Nothing, but its first 20 bytes must be the caller's address or zero.
    CallerOrZero,
    /// It is hashed behind the caller's address: keccak256(abi.encodePacked(caller, salt)).
    BehindCaller,
    /// The guard of CreateX.
    CreateX,
}

/// Keccak-256 of the code of the proxy that all factories here use: `67363d3d37363d34f03d5260086018f3` returns
/// `363d3d37363d34f0`, which creates a contract out of its call data. Solmate, Solady and CreateX have it, and
/// 0xSequence in its released form (its first versions, and copies of them in use, have longer proxies).
pub const PROXY_CODE_HASH: [u8; 32] = [
    0x21, 0xc3, 0x5d, 0xbe, 0x1b, 0x34, 0x4a, 0x24, 0x88, 0xcf, 0x33, 0x21, 0xd6, 0xce, 0x54, 0x2f, 0x8e,
    0x9f, 0x30, 0x55, 0x44, 0xff, 0x09, 0xe4, 0x99, 0x3a, 0x62, 0x31, 0x9a, 0x49, 0x7c, 0x1f,
];

/// Every factory known by name. The sources are the contracts' own repositories.
pub static FACTORIES: &[Factory] = &[
    Factory {
        name: "plain",
        summary: "any contract that gives the salt to CREATE2 unchanged",
        address: None,
        create2: Some("CREATE2"),
        create3: None,
        rule: Rule::AsIs,
    },
    Factory {
        name: "arachnid",
        summary: "deterministic deployment proxy, the default of Foundry",
        address: Some(address("4e59b44847b379578588920ca78fbf26c0b4956c")),
        create2: Some("call data: the salt, then the init code"),
        create3: None,
        rule: Rule::AsIs,
    },
    Factory {
        name: "0age",
        summary: "ImmutableCreate2Factory: the salt begins with the caller, or with 20 zero bytes",
        address: Some(address("0000000000ffe8b47b3e2130213b802212439497")),
        create2: Some("safeCreate2(bytes32,bytes)"),
        create3: None,
        rule: Rule::CallerOrZero,
    },
    Factory {
        name: "createx",
        summary: "CreateX, with its guarded salts",
        address: Some(address("ba5ed099633d3b313e4d5f7bdc1305d3c28ba5ed")),
        create2: Some("deployCreate2(bytes32,bytes)"),
        create3: Some("deployCreate3(bytes32,bytes)"),
        rule: Rule::CreateX,
    },
    Factory {
        name: "solmate",
        summary: "a contract with Solmate's CREATE3 library",
        address: None,
        create2: None,
        create3: Some("CREATE3.deploy(bytes32,bytes,uint256)"),
        rule: Rule::AsIs,
    },
    Factory {
        name: "solady",
        summary: "a contract with Solady's CREATE3 library",
        address: None,
        create2: None,
        create3: Some("CREATE3.deployDeterministic(bytes,bytes32)"),
        rule: Rule::AsIs,
    },
    Factory {
        name: "sequence",
        summary: "a contract with 0xSequence's Create3 library",
        address: None,
        create2: None,
        create3: Some("Create3.create3(bytes32,bytes)"),
        rule: Rule::AsIs,
    },
    Factory {
        name: "create3factory",
        summary: "ZeframLou's CREATE3Factory: the salt is hashed with the caller",
        address: Some(address("9fbb3df7c40da2e5a0de984ffe2ccb7c47cd0abf")),
        create2: None,
        create3: Some("deploy(bytes32,bytes)"),
        rule: Rule::BehindCaller,
    },
    Factory {
        name: "lifi",
        summary: "LI.FI's deployment of CREATE3Factory",
        address: Some(address("93fec2c00bfe902f733b57c5a6ceed7cd1384ae1")),
        create2: None,
        create3: Some("deploy(bytes32,bytes)"),
        rule: Rule::BehindCaller,
    },
];

impl Factory {
    /// The factory with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        FACTORIES.iter().find(|factory| factory.name == name)
    }
}

/// What a person says about the salt and who uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaltRequest {
    /// The account that will call the factory.
    pub caller: Option<Address>,
    /// The one chain the result shall be for, where the factory can bind it to one.
    pub chain_id: Option<u64>,
    /// Which bytes of the salt are free; by default as many as the factory's rule leaves free.
    pub mask: Option<SaltMask>,
}

/// Something that cannot be created as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The factory does not do this.
    #[error("the factory {factory} offers no {wanted}; give one that does with --factory: {others}")]
    Unsupported {
        /// The factory.
        factory: &'static str,
        /// What is wanted of it.
        wanted: &'static str,
        /// Factories that offer it.
        others: String,
    },
    /// The contract that creates is not known.
    #[error("{factory} is part of another contract, so say its address with --deployer 0x..")]
    NoDeployer {
        /// The factory.
        factory: &'static str,
    },
    /// The result depends on the caller, who is not known.
    #[error(
        "{factory} makes the address depend on the account that calls it; give that with --salt-layout caller:0x.."
    )]
    NoCaller {
        /// The factory.
        factory: &'static str,
    },
    /// A chain was given to a factory that does not ask for it.
    #[error("{factory} makes the same address on every chain; leave --chain-id out")]
    NoChains {
        /// The factory.
        factory: &'static str,
    },
    /// The mask does not begin as the factory demands.
    #[error(
        "{factory} takes only salts that begin with {expected}; fix those bytes in --salt, or leave it out"
    )]
    Start {
        /// The factory.
        factory: &'static str,
        /// What they must begin with.
        expected: String,
    },
    /// The byte of CreateX that says whether the chain matters.
    #[error(
        "CreateX refuses a salt that begins with the caller or with 20 zero bytes unless its byte 21 is 00 (any chain) \
         or 01 (one chain); fix that byte in --salt"
    )]
    ChainByte,
    /// The chain byte is set without a chain.
    #[error(
        "byte 21 of --salt is 01, so CreateX makes the address depend on the chain; give its number with --chain-id"
    )]
    NoChain,
    /// A chain was given, but the salt does not bind to it.
    #[error(
        "with this --salt CreateX does not look at the chain; let it begin with the caller or 20 zero bytes and 01, or leave \
         --chain-id out"
    )]
    UnusedChain,
    /// The first 20 bytes look like an account.
    #[error(
        "--salt fixes the first 20 bytes, and CreateX treats salts that begin with the caller's address differently; say \
         who calls it with --salt-layout caller:0x.."
    )]
    WhoCalls,
    /// Some fillings of the mask would be treated differently from the others.
    #[error(
        "some salts of this --salt would begin with {account} and CreateX would treat those differently; fix the first 20 \
         bytes or leave more of them free"
    )]
    Ambiguous {
        /// The caller, or zero.
        account: String,
    },
}

impl Factory {
    /// The mask to count in and what the factory makes of each salt of it.
    pub(super) fn salts(&self, request: &SaltRequest) -> Result<(SaltMask, Guard), Refusal> {
        let SaltRequest { caller, chain_id, mask } = *request;
        let factory = self.name;
        if chain_id.is_some() && self.rule != Rule::CreateX {
            return Err(Refusal::NoChains { factory });
        }
        match self.rule {
            Rule::AsIs => {
                // Who asks for a caller means the layout that contracts of this kind expect.
                let default = caller.map_or(SaltMask::FREE, |caller| SaltMask::beginning(&caller));
                Ok((mask.unwrap_or(default), Guard::None))
            }
            Rule::CallerOrZero => {
                let start = caller.unwrap_or_default();
                let mask = mask.unwrap_or(SaltMask::beginning(&start));
                let fits = |start: &Address| mask.must_begin(start);
                let named = if caller.is_some() { fits(&start) } else { mask.is_fixed(0..20) };
                match named || fits(&Address::default()) {
                    true => Ok((mask, Guard::None)),
                    false => {
                        let expected =
                            caller.map_or("the caller's address".to_owned(), |caller| encode(&caller));
                        Err(Refusal::Start {
                            factory,
                            expected: format!("{expected}, or with 20 zero bytes"),
                        })
                    }
                }
            }
            Rule::BehindCaller => {
                let caller = caller.ok_or(Refusal::NoCaller { factory })?;
                Ok((mask.unwrap_or(SaltMask::FREE), Guard::Prefixed(caller.to_vec())))
            }
            Rule::CreateX => {
                let mask = mask.unwrap_or_else(|| {
                    let flag = u8::from(chain_id.is_some());
                    let start = |account: &Address| SaltMask::beginning(&[account, &[flag][..]].concat());
                    match caller {
                        Some(caller) => start(&caller),
                        None if chain_id.is_some() => start(&Address::default()),
                        None => SaltMask::FREE,
                    }
                });
                guard_of_createx(&mask, caller, chain_id).map(|guard| (mask, guard))
            }
        }
    }
}

impl Factory {
    /// Whether it can hold others off, and salts of this mask do not make it.
    pub(super) fn is_open(&self, request: &SaltRequest, mask: &SaltMask) -> bool {
        let is_callers = request.caller.is_some_and(|caller| mask.must_begin(&caller));
        match self.rule {
            Rule::CreateX | Rule::CallerOrZero => !is_callers,
            // A library's contract decides by itself who may call it; the others hash the caller in.
            Rule::AsIs | Rule::BehindCaller => false,
        }
    }
}

/// What CreateX makes of all salts of this mask: its `_guard` and `_parseSalt`, for the caller as `msg.sender`.
fn guard_of_createx(
    mask: &SaltMask,
    caller: Option<Address>,
    chain_id: Option<u64>,
) -> Result<Guard, Refusal> {
    const ZERO: Address = [0; 20];
    let word = |bytes: &[u8]| [&[0; 32][bytes.len()..], bytes].concat();
    let is_caller = caller.is_some_and(|caller| mask.must_begin(&caller));
    if is_caller || mask.must_begin(&ZERO) {
        let of_caller = if is_caller { word(&caller.unwrap_or_default()) } else { Vec::new() };
        return match (mask.byte(20), chain_id) {
            (Some(0), None) => Ok(Guard::Prefixed(of_caller)),
            (Some(0), Some(_)) => Err(Refusal::UnusedChain),
            (Some(1), Some(chain)) => Ok(Guard::Prefixed([of_caller, word(&chain.to_be_bytes())].concat())),
            (Some(1), None) => Err(Refusal::NoChain),
            _ => Err(Refusal::ChainByte),
        };
    }
    if chain_id.is_some() {
        return Err(Refusal::UnusedChain);
    }
    if mask.is_fixed(0..20) && caller.is_none() {
        return Err(Refusal::WhoCalls);
    }
    for account in [Some(ZERO), caller].into_iter().flatten() {
        // Where the free bytes hold eight random ones that do not count, none of the salts begins with the account
        // but once in 2^64 searches.
        let random =
            (0..20).filter(|&byte| mask.free()[byte] && !mask.counted().any(|counted| counted == byte));
        if mask.can_begin(&account) && random.count() < 8 {
            return Err(Refusal::Ambiguous { account: encode(&account) });
        }
    }
    Ok(Guard::Prefixed(Vec::new()))
}

/// An address written in the source.
const fn address(hex: &str) -> Address {
    const fn digit(byte: u8) -> u8 {
        match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => panic!("an address in the source has digits in lower case only"),
        }
    }
    let hex = hex.as_bytes();
    assert!(hex.len() == 40);
    let mut bytes = [0; 20];
    let mut i = 0;
    while i < 20 {
        bytes[i] = digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]);
        i += 1;
    }
    bytes
}
