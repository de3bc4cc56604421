//! Where the salt stands, how values are encoded, and mistakes with their places.

use super::*;

const CALLER: Address = [0xca; 20];

fn scope(salt: &AbiType, check: impl FnOnce(&Scope<'_>)) {
    let values = [
        ("owner", AbiType::Address, vec![0x0e; 20]),
        ("initializer", AbiType::Bytes, vec![1, 2, 3]),
        ("small", AbiType::Uint(96), vec![7; 12]),
        ("tag", AbiType::FixedBytes(4), vec![9; 4]),
    ];
    let values = values.into_iter().map(|(name, of, packed)| (name.to_owned(), (of, packed))).collect();
    check(&Scope { sender: CALLER, chain_id: 0x1234, this: [0xde; 20], salt, values: &values });
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Before the salt, after it, and whether that is hashed.
fn salt(of: &str, text: &str) -> Result<(String, String, bool), Mistake> {
    let of = AbiType::parse(of).expect("a type");
    let mut found = None;
    scope(&of, |scope| found = Some(Expression::parse(text).and_then(|read| read.salt(scope))));
    found.expect("evaluated").map(|content| match content {
        Content::Bytes(Message { before, after, .. }) => (hex(&before), hex(&after), false),
        Content::Hash(Message { before, after, .. }) => (hex(&before), hex(&after), true),
    })
}

fn bytes(text: &str) -> Result<String, Mistake> {
    let mut found = None;
    scope(&AbiType::FixedBytes(32), |scope| {
        found = Some(Expression::parse(text).and_then(|read| read.bytes(scope)));
    });
    found.expect("evaluated").map(|bytes| hex(&bytes))
}

#[test]
fn salts_stand_where_solidity_puts_them() {
    let (caller, zeros) = ("ca".repeat(20), |bytes: usize| "00".repeat(bytes));
    let chain = format!("{}1234", zeros(30));
    let caller_word = format!("{}{caller}", zeros(12));
    let initializer = hex(&keccak256(&[1, 2, 3]));
    for (of, text, before, after, is_hashed) in [
        ("bytes32", "salt", String::new(), String::new(), false),
        ("uint256", "bytes32(salt)", String::new(), String::new(), false),
        ("bytes32", "keccak256(salt)", String::new(), String::new(), true),
        ("bytes32", "keccak256(abi.encode(msg.sender, salt))", caller_word.clone(), String::new(), true),
        ("bytes32", "keccak256(abi.encodePacked(msg.sender, salt))", caller.clone(), String::new(), true),
        ("bytes32", "keccak256( abi.encode( salt ,msg.sender ) )", String::new(), caller_word.clone(), true),
        (
            "uint256",
            "keccak256(abi.encodePacked(keccak256(initializer), salt, block.chainid))",
            initializer,
            chain.clone(),
            true,
        ),
        (
            "bytes32",
            "keccak256(abi.encode(msg.sender, block.chainid, salt))",
            format!("{caller_word}{chain}"),
            String::new(),
            true,
        ),
        ("uint96", "keccak256(abi.encodePacked(tag, salt, tag))", "09".repeat(4), "09".repeat(4), true),
        ("uint96", "keccak256(abi.encode(salt))", zeros(20), String::new(), true),
        ("bytes12", "keccak256(abi.encode(salt))", String::new(), zeros(20), true),
        ("uint96", "bytes32(abi.encodePacked(msg.sender, salt))", caller.clone(), String::new(), false),
        ("uint96", "bytes32(uint256(salt))", zeros(20), String::new(), false),
        ("bytes12", "bytes32(salt)", String::new(), zeros(20), false),
        (
            "bytes32",
            "keccak256(abi.encode(hex\"aabb\", salt))",
            // An offset of two words, and the bytes behind the salt.
            format!("{}40", zeros(31)),
            format!("{}02aabb{}", zeros(31), zeros(30)),
            true,
        ),
        ("bytes32", "keccak256(abi.encodePacked(address(this), salt))", "de".repeat(20), String::new(), true),
    ] {
        assert_eq!(salt(of, text), Ok((before, after, is_hashed)), "{of} {text}");
    }
}

#[test]
fn code_is_encoded_as_solidity_encodes_it() {
    let owner = format!("{}{}", "00".repeat(12), "0e".repeat(20));
    assert_eq!(bytes("abi.encodePacked(initializer, uint256(uint160(owner)))"), Ok(format!("010203{owner}")));
    // initialize(address) has the selector c4d66de8.
    assert_eq!(
        bytes("abi.encodeWithSignature(\"initialize(address)\", owner)"),
        Ok(format!("c4d66de8{owner}"))
    );
    assert_eq!(
        bytes("abi.encode(owner, initializer, small, tag)"),
        Ok(format!(
            "{owner}{:064x}{:0>64}{:0<64}{:064x}010203{}",
            0x80,
            "07".repeat(12),
            "09".repeat(4),
            3,
            "00".repeat(29)
        ))
    );
    assert_eq!(
        bytes("abi.encodePacked(uint16(258), bytes4(0x01020304), hex\"\")"),
        Ok("010201020304".to_owned())
    );
    assert_eq!(
        bytes("abi.encodePacked(address(0x4e59b44847b379578588920cA78FbF26c0B4956C))"),
        Ok("4e59b44847b379578588920ca78fbf26c0b4956c".to_owned())
    );
}

#[test]
fn mistakes_have_a_place_and_a_reason() {
    for (text, at, says) in [
        ("", 0, "here must be a value, not its end"),
        ("keccak256(", 10, "not its end"),
        ("keccak256(salt", 14, "here must be ')'"),
        ("keccak256(salt))", 15, "ends before ')'"),
        ("keccak256(abi.encode(salt msg.sender))", 26, "here must be ',' or ')', not 'msg.sender'"),
        ("keccak256(salt + 1)", 15, "'+' is not known here"),
        ("sha256(salt)", 0, "'sha256(' is not known here"),
        ("keccak256(abi.encode(nonce, salt))", 21, "'nonce' is no constant and no input"),
        ("keccak256(abi.encode(5, salt))", 21, "what type has 5?"),
        ("keccak256(abi.encode(uint8(256), salt))", 27, "not below 2^8"),
        ("keccak256(abi.encode(hex\"abc\", salt))", 21, "even number"),
        ("keccak256(abi.encode(\"abc\", salt))", 21, "here must be a value"),
        ("keccak256(abi.encode(\"abc, salt))", 21, "quotes are not closed"),
        ("keccak256(abi.encode(salt, salt))", 10, "twice"),
        ("keccak256(keccak256(salt))", 0, "hashed within this already"),
        ("keccak256(abi.encode(keccak256(salt)))", 21, "hashed within this already"),
        ("keccak256(msg.sender)", 0, "not of address"),
        ("keccak256(abi.encode(msg.sender))", 0, "no salt in this"),
        ("msg.sender", 0, "has 32 bytes"),
        ("abi.encode(salt)", 0, "of type bytes"),
        ("bytes20(salt)", 0, "cannot be cast"),
        ("bytes32(abi.encodePacked(msg.sender, salt))", 0, "cannot be cast"),
        ("uint256(tag)", 0, "cannot be cast"),
        ("keccak256(abi.encodeWithSignature(\"f(address\", salt))", 34, "no signature"),
        (
            "keccak256(abi.encodeWithSignature(\"f(address,uint8)\", salt))",
            34,
            "takes 2 values, and here are 1",
        ),
        (&"keccak256(".repeat(40), 160, "more than 16"),
    ] {
        let Err(mistake) = salt("bytes32", text) else { panic!("{text} was taken") };
        assert!(mistake.why.contains(says), "{text}: {}", mistake.why);
        assert_eq!(mistake.at, at, "{text}: {}", mistake.why);
    }
    assert!(
        bytes("abi.encodePacked(initializer, salt)").is_err_and(|m| m.why.contains("changes with the salt"))
    );
    assert!(bytes("owner").is_err_and(|m| m.why.contains("of type address")));
}
