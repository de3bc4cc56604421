//! What is refused, with a reason, and what of hashes, layouts and code is read.

use super::*;

#[test]
fn what_cannot_be_created_is_refused_with_a_reason() {
    let caller = [0xca; 20];
    let mask = |text: &str| Some(SaltMask::parse(&format!("{text:?<64}")).unwrap());
    let with = |caller, chain_id, mask| SaltRequest { caller, chain_id, mask, ..SaltRequest::default() };
    let create3 = |name: &str, request: &SaltRequest| {
        Deployment::create3(Factory::find(name).unwrap(), None, None, request).unwrap_err().to_string()
    };
    let create2 = |name: &str, request: &SaltRequest| {
        Deployment::create2(Factory::find(name).unwrap(), None, Some([1; 32]), request)
            .unwrap_err()
            .to_string()
    };
    let named = const_hex::encode(caller);
    let zeros = "0".repeat(40);
    let nothing = SaltRequest::default();
    for (message, says) in [
        (create3("arachnid", &nothing), "offers no CREATE3; those that do: createx, solmate"),
        (create2("solmate", &nothing), "offers no CREATE2; those that do: plain, arachnid"),
        (create3("solady", &nothing), "has no address of its own"),
        (create3("lifi", &nothing), "depend on the account that calls it"),
        (create2("arachnid", &with(None, Some(1), None)), "the same address on every chain"),
        (
            create2("0age", &with(Some(caller), None, mask(""))),
            "salts that begin with the caller's address, or with 20 zero",
        ),
        (
            create2("0age", &with(None, None, mask("00"))),
            "salts that begin with the caller's address, or with 20 zero",
        ),
        (create2("0age", &with(Some(caller), None, mask(&"ab".repeat(20)))), "or with 20 zero bytes"),
        (create3("createx", &with(Some(caller), None, mask(&named))), "only if its byte 21 is 00"),
        (
            create3("createx", &with(Some(caller), None, mask(&format!("{named}02")))),
            "only if its byte 21 is 00",
        ),
        (create3("createx", &with(None, None, mask(&format!("{zeros}ff")))), "only if its byte 21 is 00"),
        (create3("createx", &with(Some(caller), None, mask(&format!("{named}01")))), "depend on the chain"),
        (
            create2("createx", &with(Some(caller), Some(5), mask(&format!("{named}00")))),
            "does not look at the chain",
        ),
        (create2("createx", &with(None, Some(5), mask(""))), "does not look at the chain"),
        (create2("createx", &with(None, None, mask(&named))), "say who calls it"),
        (
            create2("createx", &with(None, None, mask(&zeros[..26]))),
            "some salts of this mask would begin with 0x0000",
        ),
        (create2("createx", &with(Some(caller), None, mask(&named[..38]))), "would begin with 0xcA"),
        // Twelve free bytes at the start, but eight of them count from zero on.
        (
            create2(
                "createx",
                &with(None, None, mask(&format!("{}{}{}", "0".repeat(16), "?".repeat(24), "1".repeat(24)))),
            ),
            "would begin with 0x0000",
        ),
    ] {
        assert!(message.contains(says), "{says}: {message}");
    }
    // Another account's address at the start is as good as any other bytes.
    let other = with(Some(caller), None, mask(&"ab".repeat(20)));
    let made = Deployment::create2(Factory::find("createx").unwrap(), None, Some([1; 32]), &other).unwrap();
    assert_eq!(made.salted().guard, Guard::prefixed(Vec::new()));
}

#[test]
fn masks_that_factories_choose() {
    let caller = [0xca; 20];
    let chosen = |name: &str, caller, chain_id| {
        let request = SaltRequest { caller, chain_id, ..SaltRequest::default() };
        Factory::find(name).unwrap().choose(&request).unwrap().mask.to_string()
    };
    let named = const_hex::encode(caller);
    let zeros = "0".repeat(40);
    let begins = |start: &str| format!("0x{start:?<64}");
    assert_eq!(chosen("plain", None, None), begins(""));
    assert_eq!(chosen("plain", Some(caller), None), begins(&named));
    assert_eq!(chosen("0age", None, None), begins(&zeros));
    assert_eq!(chosen("0age", Some(caller), None), begins(&named));
    assert_eq!(chosen("lifi", Some(caller), None), begins(""));
    assert_eq!(chosen("createx", None, None), begins(""));
    assert_eq!(chosen("createx", Some(caller), None), begins(&format!("{named}00")));
    assert_eq!(chosen("createx", Some(caller), Some(1)), begins(&format!("{named}01")));
    assert_eq!(chosen("createx", None, Some(1)), begins(&format!("{zeros}01")));
}

/// Without a salt of the user's own, too, an earlier guard may take some of the salts that are chosen for a later one: no address of those
/// would be right.
#[test]
fn salts_that_an_earlier_guard_takes_are_not_counted_in() {
    let rule = |first: &str, begins: &str| {
        format!(
            "name = \"mine\"\ndeployer = \"0x4e59b44847b379578588920cA78FbF26c0B4956C\"\n\
             create2 = \"make(bytes32,bytes)\"\narguments = [\"salt\", \"code\"]\n\
             [[guards]]\nbegins = [{begins}]\nguard = \"{first}\"\n[[guards]]\nguard = \"salt\"\n"
        )
    };
    let choose = |text: &str, request: &SaltRequest| {
        let factory = Factory::read(text).unwrap_or_else(|error| panic!("{error}"));
        factory.choose(request).map(|chosen| chosen.mask.to_string()).map_err(|error| error.to_string())
    };
    let nothing = SaltRequest::default();
    let open = rule("keccak256(salt)", "\"0x01\"");
    assert!(choose(&open, &nothing).unwrap_err().contains("begin"), "{:?}", choose(&open, &nothing));
    // A caller that the salt names, where the first guard wants a chain that was not given.
    let bound = rule("keccak256(abi.encode(msg.sender,block.chainid,salt))", "\"msg.sender\"");
    let named = SaltRequest { caller: Some([0xca; 20]), ..SaltRequest::default() };
    assert!(choose(&bound, &named).is_err());
    assert_eq!(choose(&bound, &nothing), Ok(format!("0x{}", "?".repeat(64))));
}

#[test]
fn types_without_end_are_refused() {
    for text in [format!("uint8{}", "[]".repeat(50_000)), "(".repeat(50_000) + &")".repeat(50_000)] {
        let error = AbiType::parse(&text).unwrap_err().to_string();
        assert!(error.len() < 200, "{} characters", error.len());
    }
    assert!(AbiType::parse(&format!("uint8{}", "[2]".repeat(200))).is_ok());
}

#[test]
fn hashes_layouts_and_init_code_are_read_or_refused() {
    let hash = "bc36789e7a1e281436464229828f817d6612f7b477d66591ff96a9e064bcc98a";
    for text in [hash.to_owned(), format!("0x{hash}"), hash.to_uppercase()] {
        assert_eq!(parse_hash(&text), Ok(bytes(hash)));
    }
    for (text, says) in [
        ("", "this has 0 characters"),
        (&hash[..63], "this has 63 characters"),
        (&hash.replace('b', "g"), "64 characters, not all of them hex"),
        (&format!("{hash}00"), "this has 66 characters"),
    ] {
        let message = parse_hash(text).unwrap_err().to_string();
        assert!(message.contains(says), "{message}");
    }

    let vitalik = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045";
    assert_eq!(parse_layout(&format!("caller:{vitalik}")), Ok(bytes(vitalik)));
    assert_eq!(parse_layout(vitalik), Err(InputError::Layout));
    assert!(matches!(parse_layout("caller:0x12"), Err(InputError::Caller(Error::Length { .. }))));

    let code = [0x60, 0x80, 0x60, 0x40, 0x52];
    let expected = Ok(code.to_vec());
    for file in
        [&code[..], b"6080604052", b"0x6080604052\n", b"  0x6080604052 \r\n", b"\xef\xbb\xbf0x6080604052\n"]
    {
        assert_eq!(read_init_code(file), expected);
    }
    assert_eq!(read_init_code(b"0x"), Ok(Vec::new()));
    for (file, says) in [
        (&b""[..], "it is empty"),
        (b" \n", "it is empty"),
        (b"0x608060405", "odd number of hex digits (9)"),
        (b"{\"bytecode\":\"0x60\"}", "character 1"),
        (b"0x6080__$1234$__", "character 5"),
        (b"6080 6040", "character 5"),
        (b"\xff\xfe6\x000\x00", "UTF-16"),
        (b"\xfe\xff\x006\x000", "UTF-16"),
    ] {
        let message = read_init_code(file).unwrap_err().to_string();
        assert!(message.contains(says), "{message}");
    }
}
