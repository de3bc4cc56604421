//! Rules that people write: what they come to, by another implementation, and mistakes with their places.

use proptest::prelude::*;
use warpsmith_hash::keccak::keccak256 as hash;

use super::*;
use crate::ethereum::{Address, Deployment, SaltRequest, encode};
use crate::{Guard, SaltMask, SaltTarget};

const FACTORY: &str = "0x4e59b44847b379578588920cA78FbF26c0B4956C";

/// A token launcher of the kind that hashes the caller behind the salt.
const LAUNCHER: &str = r#"
name = "launcher"
deployer = "0x4e59b44847b379578588920cA78FbF26c0B4956C"
create2 = "launch(address,bytes32)"
arguments = ["admin", "salt"]
guard = "keccak256(abi.encode(salt, admin))"
init_code = "abi.encodePacked(token_code, abi.encode(admin, supply))"

[constants]
token_code = '''bytes 0x6080
                604052'''
supply = "uint256 100_000"
treasury = "address 0x00000000219ab540356cBB839Cbe05303d7705Fa"

[inputs]
admin = "address"
"#;

fn request(inputs: &[(&str, &str)]) -> SaltRequest {
    let inputs = inputs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    SaltRequest { inputs, ..SaltRequest::default() }
}

fn address(hash: [u8; 32]) -> Address {
    hash[12..].try_into().expect("twenty bytes")
}

fn word(bytes: &[u8]) -> Vec<u8> {
    [&vec![0; 32 - bytes.len()], bytes].concat()
}

fn line(deployment: &Deployment, salt: &[u8; 32], name: &str) -> Option<String> {
    deployment.explain(salt).into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

#[test]
fn a_launcher_of_ones_own_is_what_its_contract_would_compute() {
    let factory = Factory::parse(LAUNCHER).expect("a rule");
    let admin = [0xad; 20];
    let made =
        Deployment::create2(&factory, None, None, &request(&[("admin", &encode(&admin))])).expect("complete");
    let salt: [u8; 32] = std::array::from_fn(|i| 3 * i as u8);
    let guarded = hash(&[&salt[..], &word(&admin)].concat());
    let code = hash(
        &[&[0x60, 0x80, 0x60, 0x40, 0x52][..], &word(&admin), &word(&100_000u64.to_be_bytes())].concat(),
    );
    let deployer = const_hex::decode(FACTORY).expect("hex");
    let expected = address(hash(&[&[0xff], &deployer[..], &guarded, &code].concat()));
    assert_eq!(line(&made, &salt, "address"), Some(encode(&expected)));
    let text = |bytes: &[u8]| format!("0x{}", const_hex::encode(bytes));
    assert_eq!(line(&made, &salt, "guarded salt"), Some(text(&guarded)));
    assert_eq!(line(&made, &salt, "init code hash"), Some(text(&code)));
    assert_eq!(line(&made, &salt, "inputs"), Some(format!("admin={}", encode(&admin))));
    let command =
        format!("cast send {FACTORY} 'launch(address,bytes32)' {} {} ", encode(&admin), text(&salt));
    assert!(line(&made, &salt, "use").is_some_and(|used| used.starts_with(&command)));
    // A constant by its name.
    let named =
        Deployment::create2(&factory, None, None, &request(&[("admin", "treasury")])).expect("complete");
    assert_eq!(
        line(&named, &salt, "inputs"),
        Some("admin=0x00000000219ab540356cBB839Cbe05303d7705Fa".to_owned())
    );

    let refused = |code: Option<[u8; 32]>, given: &[(&str, &str)]| {
        Deployment::create2(&factory, None, code, &request(given)).expect_err("refused").to_string()
    };
    assert!(
        refused(None, &[])
            .contains("launcher needs admin, written 0x.., where treasury can stand for an address")
    );
    assert!(refused(None, &[("admin", "0x12")]).starts_with("the input admin: '0x12' is no address"));
    assert!(refused(None, &[("admin", "supply")]).contains("supply is of type uint256, not address"));
    assert!(refused(None, &[("owner", FACTORY)]).contains("launcher has no input owner; it has admin"));
    assert!(refused(Some([1; 32]), &[("admin", FACTORY)]).contains("creates code of its own"));
    let create3 =
        Deployment::create3(&factory, None, None, &request(&[("admin", FACTORY)])).expect_err("no CREATE3");
    assert!(create3.to_string().contains("launcher offers no CREATE3"));
}

/// Salts shorter than CREATE2's: what is searched is those bytes, and the call is given those alone.
#[test]
fn salts_of_other_types_are_filled_up_as_solidity_does() {
    let rule = |salt: &str, guard: &str| {
        let guard = if guard.is_empty() { String::new() } else { format!("guard = \"{guard}\"\n") };
        let text = format!(
            "name = \"own\"\ndeployer = \"{FACTORY}\"\ncreate2 = \"make({salt},bytes)\"\narguments = [\"salt\", \"code\"]\n\
             salt = \"{salt}\"\n{guard}"
        );
        Factory::parse(&text).unwrap_or_else(|error| panic!("{salt} {guard}: {error}"))
    };
    let caller = [0xca; 20];
    let (zeros, free) = (|bytes: usize| "00".repeat(bytes), |bytes: usize| "??".repeat(bytes));
    type Guarded = fn(&[u8; 32], &Address) -> [u8; 32];
    let cases: [(&str, &str, String, Guarded); 6] = [
        ("uint96", "", format!("0x{}{}", zeros(20), free(12)), |salt, _| *salt),
        ("bytes12", "", format!("0x{}{}", free(12), zeros(20)), |salt, _| *salt),
        (
            "uint96",
            "bytes32(abi.encodePacked(msg.sender, salt))",
            format!("0x{}{}", "ca".repeat(20), free(12)),
            |salt, _| *salt,
        ),
        (
            "uint96",
            "keccak256(abi.encodePacked(msg.sender, salt))",
            format!("0x{}{}", zeros(20), free(12)),
            |salt, caller| hash(&[&caller[..], &salt[20..]].concat()),
        ),
        (
            "bytes12",
            "keccak256(abi.encodePacked(salt, msg.sender))",
            format!("0x{}{}", free(12), zeros(20)),
            |salt, caller| hash(&[&salt[..12], caller].concat()),
        ),
        (
            "uint64",
            "keccak256(abi.encode(msg.sender, salt))",
            format!("0x{}{}", zeros(24), free(8)),
            |salt, caller| hash(&[word(caller), salt.to_vec()].concat()),
        ),
    ];
    for (of, guard, mask, expected) in cases {
        let factory = rule(of, guard);
        let needs_caller = guard.contains("sender");
        let with =
            |mask| SaltRequest { caller: needs_caller.then_some(caller), mask, ..SaltRequest::default() };
        let made = Deployment::create2(&factory, None, Some([5; 32]), &with(None)).expect("possible");
        assert_eq!(made.salted().salt.to_string(), mask, "{of} {guard}");
        let salt = made.salted().salt.fill(&[0x77; 32], 258);
        assert_eq!(made.salted().steps(&salt).guarded, expected(&salt, &caller), "{of} {guard}");
        let argument = line(&made, &salt, "salt argument").expect("a short salt");
        match of {
            "bytes12" => assert_eq!(argument, format!("0x77777777{:016x}", 258)),
            "uint64" => assert_eq!(argument, "258"),
            _ => assert_eq!(argument, (0x7777_7777_u128 << 64 | 258).to_string()),
        }
        assert!(line(&made, &salt, "use").is_some_and(|used| used.contains(&format!("' {argument} $(cat"))));
        // A mask must leave alone what is not the salt's.
        let given = SaltMask::parse(&mask).expect("a mask");
        assert!(Deployment::create2(&factory, None, Some([5; 32]), &with(Some(given))).is_ok());
        let refused = Deployment::create2(&factory, None, Some([5; 32]), &with(Some(SaltMask::FREE)))
            .expect_err("too much");
        assert!(
            refused.to_string().contains(&format!("takes a salt of type {of}, which is bytes ")),
            "{refused}"
        );
        assert!(refused.to_string().ends_with(&mask), "{refused}");
    }
}

#[test]
fn two_functions_of_a_contract_are_told_apart_by_the_chain() {
    let text = format!(
        "name = \"two\"\ndeployer = \"{FACTORY}\"\ncreate2 = \"here(bytes32)\"\n\
         [[guards]]\nguard = \"keccak256(abi.encode(salt))\"\n\
         [[guards]]\nguard = \"keccak256(abi.encode(salt, block.chainid))\"\ncall = \"onlyHere(bytes32)\"\n"
    );
    let factory = Factory::parse(&text).expect("a rule");
    let mask = SaltMask::parse(&format!("0x{}??", "01".repeat(31))).expect("a mask");
    for mask in [None, Some(mask)] {
        for (chain_id, call, after) in
            [(None, "here(bytes32)", Vec::new()), (Some(5), "onlyHere(bytes32)", word(&[5]))]
        {
            let request = SaltRequest { chain_id, mask, ..SaltRequest::default() };
            let made = Deployment::create2(&factory, None, Some([1; 32]), &request).expect("possible");
            assert_eq!(line(&made, &[1; 32], "call").as_deref(), Some(call));
            let hashed = Hashed { before: Vec::new(), salt: 0..32, after };
            assert_eq!(made.salted().guard, Guard::Hashed(hashed));
        }
    }
}

#[test]
fn mistakes_in_a_rule_have_line_column_and_reason() {
    let head = format!("name = \"own\"\ndeployer = \"{FACTORY}\"\ncreate2 = \"make(bytes32)\"\n");
    let long = format!("guard = \"keccak256(abi.encode({}salt))\"", "msg.sender, ".repeat(4));
    let cases: &[(&str, usize, usize, &str)] = &[
        ("colour = \"red\"", 4, 1, "there is no colour; expected one of name"),
        ("guard = keccak256(salt)", 4, 9, ""),
        ("guard = 5", 4, 9, "expected text in quotes"),
        ("guard = \"keccak256(abi.encode(sender, salt))\"", 4, 31, "'sender' is no constant and no input"),
        ("guard = 'keccak256(salt'", 4, 24, "here must be ')'"),
        ("guard = \"keccak256(abi.encode(msg.sender))\"", 4, 10, "no salt in this"),
        (&long, 4, 10, "160 bytes are hashed here"),
        ("salt = \"string\"", 4, 8, "a salt is bytes32, uint256, or shorter"),
        ("salt = \"uint7\"", 4, 8, "a salt is bytes32"),
        ("init_code = \"salt\"", 4, 14, "of type bytes32; code is bytes"),
        ("proxy_code_hash = \"0x00\"", 4, 19, "only CREATE3 has a proxy"),
        ("arguments = [\"code\"]", 4, 13, "the salt is not among"),
        ("arguments = [\"salt\", \"nonce\"]", 4, 22, "'nonce' is no constant"),
        ("arguments = [\"salt\", \"code\"]", 3, 11, "takes 1 arguments, and arguments has 2"),
        ("[constants]\na = \"address\"", 5, 5, "a type and a value"),
        ("[constants]\na = \"address 0x12\"", 5, 5, "'0x12' is no address"),
        ("[constants]\na = \"string x\"", 5, 5, "'string' is no type that is known here"),
        ("[constants]\nsalt = \"uint256 1\"", 5, 1, "'salt' means something by itself"),
        ("[constants]\nuint8 = \"uint256 1\"", 5, 1, "means something by itself"),
        ("[constants]\n\"a b\" = \"uint256 1\"", 5, 1, "begins with a letter"),
        ("[inputs]\nowner = \"address\"", 5, 1, "the input 'owner' is used nowhere"),
        ("[constants]\na = \"uint8 1\"\n[inputs]\na = \"uint8\"", 7, 1, "'a' is a constant already"),
        ("[[guards]]\nbegins = [\"msg.sender\"]\nguard = \"salt\"", 4, 1, "all other salts"),
        (
            "[[guards]]\nguard = \"salt\"\n[[guards]]\nbegins = [\"0x00\"]\nguard = \"salt\"",
            6,
            1,
            "never comes to this",
        ),
        ("[[guards]]\nguard = \"salt\"\nrefused = \"no\"", 4, 1, "has a guard"),
        (
            "[[guards]]\nbegins = [\"0x00\", \"msg.sender\"]\nguard = \"salt\"",
            5,
            19,
            "msg.sender stands first",
        ),
        ("[[guards]]\nbegins = [\"zero\"]\nguard = \"salt\"", 5, 11, "or with bytes"),
        ("guard = \"salt\"\n[[guards]]\nguard = \"salt\"", 4, 9, "not both"),
    ];
    for (tail, line, column, says) in cases {
        let error = Factory::parse(&format!("{head}{tail}\n")).expect_err(tail);
        assert!(error.why.contains(says), "{tail}: {error}");
        assert_eq!((error.line, error.column), (*line, *column), "{tail}: {error}");
    }
    for (text, line, column, says) in [
        ("", 1, 1, "name is missing"),
        ("name = \"Own\"\ncreate2 = \"x\"", 1, 8, "a-z"),
        ("\nname = \"createx\"\ncreate2 = \"x\"", 2, 8, "createx is the name of a factory that is built in"),
        ("name = \"own\"", 1, 8, "say what is called"),
        ("name = \"own\"\ncreate2 = \"x'; rm -rf /\"", 2, 11, "a call is a signature"),
        ("name = \"own\"\ncreate2 = \"make(byte)\"", 2, 11, "is no signature"),
        (
            "name = \"own\"\ndeployer = \"0x4e59b44847b379578588920cA78FbF26c0B4956c\"\ncreate2 = \"x\"",
            2,
            12,
            "",
        ),
        ("name = \"own\"\ncreate3 = \"x\"\ninit_code = 'hex\"60\"'", 3, 13, "leave it out"),
    ] {
        let error = Factory::parse(text).expect_err(text);
        assert!(error.why.contains(says), "{text}: {error}");
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
    }
    let long = format!("{head}#{}", "x".repeat(Factory::LONGEST_RULE));
    assert!(Factory::parse(&long).expect_err("long").why.contains("at most 65536 bytes"));
    // One message becomes too long only with what is given.
    let open =
        format!("{head}guard = \"keccak256(abi.encodePacked(blob, salt))\"\n[inputs]\nblob = \"bytes\"\n");
    let factory = Factory::parse(&open).expect("short so far");
    let blob = |bytes: usize| request(&[("blob", &format!("0x{}", "ab".repeat(bytes)))]);
    assert!(Deployment::create2(&factory, None, Some([1; 32]), &blob(103)).is_ok());
    let refused =
        Deployment::create2(&factory, None, Some([1; 32]), &blob(104)).expect_err("too long").to_string();
    assert!(refused.contains("hashes 136 bytes") && refused.contains("135 is the most"), "{refused}");
}

#[test]
fn built_in_rules_are_read_back_from_their_own_text() {
    for factory in crate::ethereum::FACTORIES.iter() {
        let again = Factory::read(factory.text()).expect("a rule");
        assert_eq!((&again.name, &again.summary), (&factory.name, &factory.summary));
        assert!(Factory::parse(factory.text()).is_err_and(|error| error.why.contains("built in")));
    }
}

proptest! {
    /// Whatever is in a file, it is read or refused with a place that is in it.
    #[test]
    fn any_text_is_read_or_refused(cut in 0usize..600, with in "\\PC{0,12}", keep: bool) {
        let cut = (0..=cut.min(LAUNCHER.len())).rev().find(|at| LAUNCHER.is_char_boundary(*at)).unwrap_or(0);
        let rest = if keep { &LAUNCHER[cut..] } else { "" };
        let text = format!("{}{with}{rest}", &LAUNCHER[..cut]);
        if let Err(error) = Factory::parse(&text) {
            prop_assert!(!error.why.is_empty());
            prop_assert!(error.line <= text.lines().count() + 1, "{}", error);
        }
    }
}
