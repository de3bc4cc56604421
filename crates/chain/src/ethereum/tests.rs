//! Vectors of the EIPs, deployments that are on the chain, and a second implementation to compare with: another
//! crate's Keccak, and RLP, EIP-55 and the rules of the factories written again from their specifications.

mod refusals;

use proptest::prelude::*;
use secp256k1::{PublicKey, SecretKey};
use serde::Deserialize;

use super::*;
use crate::{Digest, Error, Form, Guard, Hashed, KeyTarget, PublicPoint, SaltMask, SaltTarget, Target};

#[derive(Deserialize)]
struct Vectors {
    addresses: Vec<Text>,
    accounts: Vec<Key>,
    contracts: Vec<Created>,
    create2: Vec<Created2>,
    deployments: Vec<Deployed>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
struct Text {
    source: String,
    text: String,
}

#[derive(Deserialize)]
struct Key {
    source: String,
    secret: String,
    address: String,
}

#[derive(Deserialize)]
struct Created {
    source: String,
    sender: String,
    nonce: u64,
    address: String,
}

#[derive(Deserialize)]
struct Created2 {
    source: String,
    deployer: String,
    salt: String,
    init_code: String,
    address: String,
}

/// Something a factory made: with a code hash by CREATE2, without by CREATE3.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deployed {
    source: String,
    /// The chain it is on; none for what someone else only predicted.
    on: Option<String>,
    factory: String,
    /// Where the factory is, other than at its own address.
    deployer: Option<String>,
    caller: Option<String>,
    chain: Option<u64>,
    salt: String,
    code_hash: Option<String>,
    /// Where the proxy is another than the usual one.
    proxy_code_hash: Option<String>,
    /// The address between, where the source has it.
    proxy: Option<String>,
    address: String,
}

#[derive(Deserialize)]
struct Refused {
    text: String,
    says: String,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    const_hex::decode_to_array(hex).unwrap()
}

/// The oracle: what is below shares nothing with the code under test.
mod oracle {
    use warpsmith_hash::keccak::keccak256;

    pub fn keccak(parts: &[&[u8]]) -> [u8; 32] {
        keccak256(&parts.concat())
    }

    fn address(hash: [u8; 32]) -> [u8; 20] {
        hash[12..].try_into().unwrap()
    }

    /// The yellow paper's appendix B: a string, or a list of encoded items.
    fn rlp(bytes: &[u8], short: u8) -> Vec<u8> {
        if short == 0x80 && bytes.len() == 1 && bytes[0] < 0x80 {
            return bytes.to_vec();
        }
        assert!(bytes.len() < 56, "the long form does not occur");
        [&[short + bytes.len() as u8], bytes].concat()
    }

    pub fn create(sender: &[u8; 20], nonce: u64) -> [u8; 20] {
        // A number is the string of its bytes without leading zeros; zero is the empty string.
        let number: Vec<u8> = nonce.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
        address(keccak(&[&rlp(&[rlp(sender, 0x80), rlp(&number, 0x80)].concat(), 0xc0)]))
    }

    pub fn create2(deployer: &[u8; 20], salt: &[u8; 32], code_hash: &[u8; 32]) -> [u8; 20] {
        address(keccak(&[&[0xff], deployer, salt, code_hash]))
    }

    pub fn account(x: &[u8; 32], y: &[u8; 32]) -> [u8; 20] {
        address(keccak(&[x, y]))
    }

    /// EIP-55: a letter is in upper case when the digit at its place in the hash of the text is 8 or more.
    pub fn checksum(address: &[u8; 20]) -> String {
        let digits = const_hex::encode(address);
        let hash = const_hex::encode(keccak(&[digits.as_bytes()]));
        let cased = digits.chars().zip(hash.chars()).map(|(digit, hash)| match hash {
            '8'..='9' | 'a'..='f' => digit.to_ascii_uppercase(),
            _ => digit,
        });
        format!("0x{}", cased.collect::<String>())
    }
}

fn point(secret: &[u8; 32]) -> Option<PublicPoint> {
    let secret = SecretKey::from_secret_bytes(*secret).ok()?;
    let uncompressed = PublicKey::from_secret_key(&secret).serialize_uncompressed();
    let half = |from: usize| uncompressed[from..from + 32].try_into().unwrap();
    Some(PublicPoint { x: half(1), y: half(33) })
}

#[test]
fn addresses_encode_and_decode_in_any_case_that_is_allowed() {
    for Text { source, text } in vectors().addresses {
        let address = bytes(&text);
        assert_eq!(encode(&address), text, "{source}");
        let body = &text[2..];
        for text in [text.clone(), format!("0x{}", body.to_lowercase()), format!("0X{}", body.to_uppercase())]
        {
            assert_eq!(decode(&text), Ok(address), "{source}: {text}");
        }
    }
}

#[test]
fn every_letter_in_the_wrong_case_is_noticed() {
    let right = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    for (index, character) in right.char_indices().skip(2).filter(|(_, c)| c.is_ascii_alphabetic()) {
        let flipped = match character.is_ascii_uppercase() {
            true => character.to_ascii_lowercase(),
            false => character.to_ascii_uppercase(),
        };
        let wrong = format!("{}{flipped}{}", &right[..index], &right[index + 1..]);
        assert_eq!(decode(&wrong), Err(Error::CaseChecksum { position: index + 1 }), "{wrong}");
    }
}

#[test]
fn refused_texts_say_why_and_are_not_repeated() {
    for Refused { text, says } in vectors().refused {
        let message = Account.decode(&text).unwrap_err().to_string();
        assert!(message.contains(&says), "{text}: {message}");
        assert!(text.len() < 8 || !message.contains(&text[4..]), "{text}: {message}");
    }
}

#[test]
fn accounts_of_known_keys() {
    for Key { source, secret, address } in vectors().accounts {
        let digest = Account.digest(&point(&bytes(&secret)).unwrap());
        assert_eq!(Account.encode(&digest), address, "{source}");
        assert_eq!(Account.decode(&address), Ok(digest), "{source}");
        assert_eq!(*Account.export(&bytes(&secret)), format!("0x{secret}"), "{source}");
    }
}

/// Where the encoding of a nonce changes its form, and around it.
const NONCES: [u64; 18] = [
    0,
    1,
    2,
    126,
    127,
    128,
    255,
    256,
    0xffff,
    0x1_0000,
    0xff_ffff,
    1 << 24,
    u32::MAX as u64,
    1 << 32,
    1 << 40,
    1 << 56,
    u64::MAX - 2,
    u64::MAX - 1,
];

#[test]
fn contracts_of_known_accounts_and_at_every_edge_of_the_nonce() {
    for Created { source, sender, nonce, address } in vectors().contracts {
        assert_eq!(encode(&create(&bytes(&sender), nonce)), address, "{source}");
    }
    let sender: Address = bytes("f39fd6e51aad88f6f4ce6ab8827279cfffb92266");
    let secret = bytes("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
    for nonce in NONCES {
        let expected = oracle::create(&sender, nonce);
        assert_eq!(create(&sender, nonce), expected, "{nonce}");
        let contract = Contract::new(nonce).unwrap();
        assert_eq!(contract.digest(&point(&secret).unwrap()).as_bytes(), expected, "{nonce}");
        assert_eq!((contract.form(), contract.nonce()), (Form::Contract { nonce }, nonce));
    }
    assert_eq!(Contract::new(u64::MAX), Err(ImpossibleNonce));
}

#[test]
fn create2_of_the_eip_and_the_hash_of_init_code() {
    for Created2 { source, deployer, salt, init_code, address } in vectors().create2 {
        let hash = keccak256(&read_init_code(init_code.as_bytes()).unwrap());
        assert_eq!(encode(&create2(&bytes(&deployer), &bytes(&salt), &hash)), address, "{source}");
        let plain = Factory::find("plain").unwrap();
        let made =
            Deployment::create2(plain, Some(bytes(&deployer)), Some(hash), &SaltRequest::default()).unwrap();
        assert_eq!(made.encode(&made.digest(&bytes(&salt))), address, "{source}");
        assert_eq!((made.name(), made.salted().salt), ("create2", SaltMask::FREE));
    }
}

#[test]
fn the_proxy_code_has_the_hash_written_down() {
    assert_eq!(keccak256(&const_hex::decode("67363d3d37363d34f03d5260086018f3").unwrap()), PROXY_CODE_HASH);
}

#[test]
fn known_deployments_come_out_of_their_factories() {
    for known in vectors().deployments {
        let source = known.source;
        let factory = Factory::find(&known.factory).unwrap();
        let deployer = known.deployer.map(|deployer| decode(&deployer).unwrap());
        let hash = |text: String| parse_hash(&text).unwrap();
        let request = SaltRequest {
            caller: known.caller.map(|caller| decode(&caller).unwrap()),
            chain_id: known.chain,
            ..SaltRequest::default()
        };
        let made = match known.code_hash {
            Some(code_hash) => Deployment::create2(factory, deployer, Some(hash(code_hash)), &request),
            None => Deployment::create3(factory, deployer, known.proxy_code_hash.map(hash), &request),
        };
        let made = made.unwrap_or_else(|refusal| panic!("{source}: {refusal}"));
        let salt = bytes(&known.salt);
        assert!(made.salted().salt.can_begin(&salt), "{source}: a search would not come to this salt");
        assert_eq!(made.encode(&made.digest(&salt)), known.address, "{source}");
        let explained = made.explain(&salt);
        assert_eq!(explained.first(), Some(&("salt", known.salt)), "{source}");
        assert_eq!(explained.last(), Some(&("address", known.address)), "{source}");
        if let Some(proxy) = known.proxy {
            assert!(explained.contains(&("proxy", proxy)), "{source}: {explained:?}");
        }
    }
}

/// What a factory offers and no contract is known for that was made with it and published with its salt.
const NOT_DEPLOYED: [(&str, &str); 8] = [
    // Another miner's predictions stand in.
    ("createx", "CREATE2"),
    // The code that is on the chains creates on a local one, in the tests of the command line.
    ("safe-1.1.1", "CREATE2"),
    ("safe-1.3.0", "CREATE2"),
    ("safe-1.4.1", "CREATE2"),
    ("safe-1.5.0", "CREATE2"),
    ("simple-account-0.6", "CREATE2"),
    ("simple-account-0.7", "CREATE2"),
    ("simple-account-0.8", "CREATE2"),
];

/// A factory cannot be added, nor offer more, without an example from a chain.
#[test]
fn every_factory_has_a_known_deployment() {
    let all = vectors().deployments;
    let opcode = |known: &Deployed| if known.code_hash.is_some() { "CREATE2" } else { "CREATE3" };
    for factory in FACTORIES.iter() {
        for (offer, wanted) in [(&factory.create2, "CREATE2"), (&factory.create3, "CREATE3")] {
            let deployed = all
                .iter()
                .any(|known| known.on.is_some() && known.factory == factory.name && opcode(known) == wanted);
            let expected = offer.is_some() && !NOT_DEPLOYED.contains(&(factory.name.as_str(), wanted));
            assert_eq!(deployed, expected, "{} with {wanted}", factory.name);
        }
    }
    // CreateX with every kind of guard.
    for (caller, chain) in [(false, false), (false, true), (true, false), (true, true)] {
        let guarded = |known: &&Deployed| (known.caller.is_some(), known.chain.is_some()) == (caller, chain);
        let count = all.iter().filter(|known| known.factory == "createx").filter(guarded).count();
        assert!(count > 0, "no salt for createx with a caller {caller} and a chain {chain}");
    }
}

/// What the chain computes for a call of the factory by `caller`: the guards as their contracts have them, then the
/// oracle's CREATE2 and CREATE. `None` where the contract reverts.
fn on_chain(
    factory: &str,
    deployer: [u8; 20],
    caller: [u8; 20],
    chain: Option<u64>,
    salt: [u8; 32],
    code_hash: [u8; 32],
    by_proxy: bool,
) -> Option<[u8; 20]> {
    let hash = oracle::keccak;
    // As the ABI pads numbers and addresses.
    let word = |bytes: &[u8]| -> [u8; 32] { [&[0; 32][bytes.len()..], bytes].concat().try_into().unwrap() };
    let guarded = match factory {
        "createx" => match (salt[..20] == caller, salt[..20] == [0; 20], salt[20]) {
            (true, _, 1) => hash(&[&word(&caller), &word(&chain.unwrap_or(7).to_be_bytes()), &salt]),
            (true, _, 0) => hash(&[&word(&caller), &salt]),
            (true, ..) => return None,
            (_, true, 1) => hash(&[&word(&chain.unwrap_or(7).to_be_bytes()), &salt]),
            (_, true, 2..) => return None,
            _ => hash(&[&salt]),
        },
        "create3factory" | "lifi" => hash(&[&caller, &salt]),
        safe if safe.starts_with("safe-") => match chain {
            Some(chain) => hash(&[&hash(&[INITIALIZER]), &salt, &word(&chain.to_be_bytes())]),
            None => hash(&[&hash(&[INITIALIZER]), &salt]),
        },
        "0age" if salt[..20] != caller && salt[..20] != [0; 20] => return None,
        _ => salt,
    };
    let first = oracle::create2(&deployer, &guarded, &code_hash);
    Some(if by_proxy { oracle::create(&first, 1) } else { first })
}

const INITIALIZER: &[u8] = &[0xb6, 0x3e, 0x80, 0x0d];

/// Something for each value that a factory's rule asks for.
fn inputs_of(factory: &Factory) -> std::collections::BTreeMap<String, String> {
    let value = |of: &AbiType| match of {
        AbiType::Bytes => format!("0x{}", const_hex::encode(INITIALIZER)),
        _ => "0x00000000219ab540356cBB839Cbe05303d7705Fa".to_owned(),
    };
    factory.inputs().map(|(name, of)| (name.to_owned(), value(of))).collect()
}

/// What wallets are proxies of, and the hash of the proxy's creation code as npm's packages have it.
#[test]
fn wallets_have_the_code_of_their_packages() {
    let address = bytes::<20>("00000000219ab540356cbb839cbe05303d7705fa");
    let word = [&[0; 12][..], &address].concat();
    for (name, size, code_hash) in [
        ("safe-1.1.1", 487, "644465437a14401c490a7b508aaf3ef54b0cead3975b00677b8a7fb2c86a86fd"),
        ("safe-1.3.0", 486, "44425997c3cd3b9f0cd37ae80e154b1bfc14d921d252ee5368c53f1ccb5c932b"),
        ("safe-1.4.1", 486, "1856e0ee08399d74e0ea0b03adca210aeade6f748969ac023cdcb4dd62dcaf5f"),
        ("safe-1.5.0", 438, "941b3e88811b2f33b8e26783c7407d2e978404581a21c9f07abf2cad9cb87e12"),
        ("simple-account-0.6", 1985, "2ef949a1ea043e392e2f802f6c9ec056aff8e49b896b4888b937c948d1f9f9fe"),
        ("simple-account-0.7", 1047, "fc0448e00d75d29e6e7a453d8bc553c6f5a89cc048d8b45606eadf8158c5febc"),
        ("simple-account-0.8", 680, "54c4f1416e8a5d49bacc9bbed20b8baa3e9e904e15b2000b9d3ea9d1ce6a4c94"),
    ] {
        let factory = Factory::find(name).unwrap();
        let request = SaltRequest { inputs: inputs_of(factory), ..SaltRequest::default() };
        let made = Deployment::create2(factory, None, None, &request).unwrap();
        let trace = made.trace(&[7; 32]);
        let line = |name: &str| trace.iter().find(|(known, _)| *known == name).unwrap().1.clone();
        let code = const_hex::decode(line("init code")).unwrap();
        assert_eq!(oracle::keccak(&[&code[..size]]), bytes::<32>(code_hash), "{name}");
        assert_eq!(line("init code hash"), format!("0x{}", const_hex::encode(oracle::keccak(&[&code]))));
        let expected = match name.starts_with("safe") {
            true => word.clone(),
            // The first contract of the factory, and a call of initialize(address) behind its offset and length.
            false => {
                let implementation = oracle::create(&factory.address.unwrap(), 1);
                let number = |value: u8| [vec![0; 31], vec![value]].concat();
                let call = [&[0xc4, 0xd6, 0x6d, 0xe8][..], &word, &[0; 28]].concat();
                [&[0; 12][..], &implementation, &number(64), &number(36), &call].concat()
            }
        };
        assert_eq!(code[size..], expected, "{name}");
    }
    // As its own getAddress(0x0000..05Fa, 7) says on a local chain.
    for (name, address) in [
        ("simple-account-0.6", "0xFb7ab8361e9B354d096F0683cbd658E8B5A18240"),
        ("simple-account-0.7", "0x71eF4a56374de384CDD56216B59880e53e45e449"),
        ("simple-account-0.8", "0xFdD1d37df00eEf5c30674d29c5e23AC278E2d890"),
    ] {
        let factory = Factory::find(name).unwrap();
        let request = SaltRequest { inputs: inputs_of(factory), ..SaltRequest::default() };
        let made = Deployment::create2(factory, None, None, &request).unwrap();
        let salt = made.place(&factory.parse_salt("7").unwrap());
        assert_eq!(made.encode(&made.digest(&salt)), address, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn text_agrees_with_the_oracle(address: [u8; 20]) {
        let text = encode(&address);
        prop_assert_eq!(&text, &oracle::checksum(&address));
        prop_assert_eq!(decode(&text), Ok(address));
        let Encoding::Linear(encoding) = Account.encoding() else { panic!("hex is linear") };
        prop_assert_eq!(encoding.text(&Digest::new(&address)), text.to_ascii_lowercase());
    }

    #[test]
    fn what_decodes_encodes_to_the_same_text_but_for_case(text in "0[xX][a-fA-F0-9]{38,42}|\\PC{0,50}") {
        if let Ok(digest) = Account.decode(&text) {
            prop_assert_eq!(Account.encode(&digest).to_lowercase(), text.to_lowercase());
        }
    }

    #[test]
    fn keys_agree_with_the_oracle(secret: [u8; 32], nonce in prop_oneof![any::<u64>(), 0u64..300]) {
        let Some(point) = point(&secret) else { return Ok(()) };
        let account = oracle::account(&point.x, &point.y);
        prop_assert_eq!(Account.digest(&point), Digest::new(&account));
        let Ok(contract) = Contract::new(nonce) else { return Ok(()) };
        prop_assert_eq!(contract.digest(&point), Digest::new(&oracle::create(&account, nonce)));
    }

    /// Every salt a mask gives, passed to the factory, leads to the address that was promised.
    #[test]
    fn what_is_printed_is_what_the_chain_computes(
        factory in 0..FACTORIES.len(), deployer: [u8; 20], caller: [u8; 20], with_caller: bool, chain: Option<u64>,
        code_hash: [u8; 32], by_proxy: bool, proxy: Option<[u8; 32]>, start in 0..5u8, flag in prop::option::of(0..3u8),
        free: [bool; 32], fixed: [u8; 32], base: [u8; 32], counter: u64
    ) {
        let factory = &FACTORIES[factory];
        // Masks that begin in every way the rules tell apart; without a mask the factory chooses.
        let start: Option<Vec<u8>> = match start {
            0 => None,
            1 => Some(caller.to_vec()),
            2 => Some(vec![0; 20]),
            3 => Some(vec![0; 15]),
            _ => Some(Vec::new()),
        };
        let mask = start.map(|mut start| {
            if start.len() == 20 {
                start.extend(flag);
            }
            let byte = |i: usize| match start.get(i) {
                Some(byte) => format!("{byte:02x}"),
                None if free[i] || i == 31 => "??".to_owned(),
                None => format!("{:02x}", fixed[i]),
            };
            SaltMask::parse(&(0..32).map(byte).collect::<String>()).unwrap()
        });
        let inputs = inputs_of(factory);
        let request = SaltRequest { caller: with_caller.then_some(caller), chain_id: chain, mask, inputs };
        let given = factory.address.is_none().then_some(deployer);
        let given_code = (!factory.has_code()).then_some(code_hash);
        let made = match by_proxy {
            true => Deployment::create3(factory, given, proxy, &request),
            false => Deployment::create2(factory, given, given_code, &request),
        };
        let Ok(made) = made else { return Ok(()) };
        // Code that follows from a rule is compared elsewhere.
        let code_hash = if factory.has_code() { made.salted().code_hash } else { code_hash };
        let salt = made.salted().salt.fill(&base, counter);
        let code_hash = if by_proxy { proxy.unwrap_or(PROXY_CODE_HASH) } else { code_hash };
        let deployer = factory.address.unwrap_or(deployer);
        // Where no caller is named, anyone may call; for the factory that demands one, whom the salt names.
        let anyone = if factory.name == "0age" { salt[..20].try_into().unwrap() } else { [0x5a; 20] };
        let sender = if with_caller { caller } else { anyone };
        let expected = on_chain(&factory.name, deployer, sender, chain, salt, code_hash, by_proxy);
        prop_assert_eq!(Some(Digest::new(&expected.unwrap_or_default())), expected.map(|_| made.digest(&salt)));
        let explained = made.explain(&salt);
        let line = |name: &str| explained.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone());
        prop_assert_eq!(line("salt"), Some(format!("0x{}", const_hex::encode(salt))));
        prop_assert_eq!(line("address"), expected.map(|address| encode(&address)));
        prop_assert_eq!(line("proxy").is_some(), by_proxy);
        if let Some(proxy) = line("proxy") {
            prop_assert_eq!(Some(create(&decode(&proxy).unwrap(), 1)), expected);
        }
        if let Guard::Hashed(hashed) = &made.salted().guard {
            prop_assert!(hashed.message(&salt).len() <= Hashed::MOST);
        }
    }
}
