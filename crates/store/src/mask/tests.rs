use std::collections::BTreeSet;

use warpsmith_chain::coin::decode_wif;
use warpsmith_chain::nostr;
use warpsmith_trials::replaced as with;

use super::*;

/// Every key that a text can be, by putting characters in one by one and having the whole text read: nothing here knows how
/// the mask does it.
fn by_hand(text: &str, missing: usize, alphabet: &str) -> BTreeSet<[u8; 32]> {
    let mut texts = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let choices: Vec<char> = match character {
            '?' => alphabet.chars().collect(),
            '[' => characters.by_ref().take_while(|c| *c != ']').collect(),
            other => vec![other],
        };
        texts = texts.iter().flat_map(|text| choices.iter().map(move |c| format!("{text}{c}"))).collect();
    }
    for _ in 0..missing {
        let put = |text: &String| {
            let text = text.clone();
            (0..=text.len()).flat_map(move |at| {
                let text = text.clone();
                alphabet
                    .chars()
                    .map(move |c| format!("{}{c}{}", &text[..at], &text[at..]))
                    .collect::<Vec<_>>()
            })
        };
        texts = texts.iter().flat_map(put).collect::<BTreeSet<_>>().into_iter().collect();
    }
    let read = |text: &String| match text.len() {
        63 => nostr::decode_secret(text).ok().map(|key| *key),
        51 | 52 => decode_wif(text).ok().map(|wif| *wif.secret),
        _ => {
            let number = U256::from_str_radix(text, 16).ok()?;
            (number != U256::ZERO && number < key_order()).then(|| number.to_be_bytes())
        }
    };
    texts.iter().filter_map(read).collect()
}

/// All keys of a mask, by their candidates; each must come once.
fn all(mask: &KeyMask) -> BTreeSet<[u8; 32]> {
    let count = mask.count().as_u64();
    let keys: Vec<[u8; 32]> = match mask.texts() {
        Some(texts) => {
            let mut keys = Vec::new();
            texts.visit(0, count, &mut |_, key| keys.push(*key));
            keys
        }
        None => (0..count).filter_map(|at| mask.key_at(U256::from(at))).collect(),
    };
    let distinct: BTreeSet<[u8; 32]> = keys.iter().copied().collect();
    assert_eq!(distinct.len(), keys.len(), "each once");
    distinct
}

const HEX: &str = "0123456789abcdef";
const BASE58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BECH32: &str = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";

// BIP-178's and NIP-19's own examples, and the key 1.
const COMPRESSED: &str = "KwdMAjGmerYanjeui5SHS7JkmpZvVipYvB2LJGU1ZxJwYvP98617";
const UNCOMPRESSED: &str = "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ";
const NOSTR: &str = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
const ONE: &str = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn";

#[test]
fn every_mask_of_a_text_stands_for_the_keys_it_can_be() {
    let cases: Vec<(String, usize, &str)> = vec![
        (with(COMPRESSED, &[(51, "?"), (50, "?")]), 0, BASE58),
        (with(COMPRESSED, &[(0, "?"), (20, "?")]), 0, BASE58),
        (with(COMPRESSED, &[(10, "[Yy7]"), (11, "[aA4]"), (30, "?")]), 0, BASE58),
        (with(UNCOMPRESSED, &[(5, "?"), (49, "?")]), 0, BASE58),
        (with(UNCOMPRESSED, &[(0, "[59]"), (50, "?")]), 0, BASE58),
        (with(ONE, &[(51, "?")]), 0, BASE58),
        // One missing: first, middle, in a pair of equal characters, last; and two.
        (COMPRESSED[1..].to_owned(), 1, BASE58),
        (with(COMPRESSED, &[(25, "")]), 1, BASE58),
        (COMPRESSED[..51].to_owned(), 1, BASE58),
        (with(UNCOMPRESSED, &[(17, ""), (18, "[BbD]")]), 1, BASE58),
        (with(NOSTR, &[(62, "?"), (5, "?")]), 0, BECH32),
        (with(NOSTR, &[(56, "?"), (57, "?"), (30, "[8bf]")]), 0, BECH32),
    ];
    for (text, missing, alphabet) in cases {
        let mask = KeyMask::parse(&text, missing).expect("a mask");
        let (found, expected) = (all(&mask), by_hand(&text, missing, alphabet));
        assert_eq!(found, expected, "{text}");
        assert!(!found.is_empty(), "the right one: {text}");
    }
}

/// A character missing in the data of an nsec, whose head is whole.
#[test]
fn what_is_missing_in_an_nsec_is_found() {
    let key = *nostr::decode_secret(NOSTR).expect("valid");
    for at in [5, 6, 31, 62] {
        let mask = KeyMask::parse(&with(NOSTR, &[(at, "")]), 1).expect("a mask");
        assert!(all(&mask).contains(&key), "{at}");
    }
    let mask = KeyMask::parse(&with(NOSTR, &[(20, ""), (41, "")]), 2).expect("a mask");
    let mut found = Vec::new();
    mask.texts().expect("texts").visit(0, mask.count().as_u64(), &mut |_, found_key| found.push(*found_key));
    assert_eq!(found.iter().filter(|found| **found == key).count(), 1);
}

#[test]
fn every_mask_of_digits_stands_for_the_keys_it_can_be() {
    let some = "6cfe83c1d97b40a2e5f1088ab3c7d45e9f20116a3b4c5d6e7f8091a2b3c4d5e6";
    let last = format!("{:x}", key_order() - U256::ONE);
    for (text, missing) in [
        (with(some, &[(63, "?"), (0, "?")]), 0),
        (with(some, &[(4, "?"), (5, "?"), (6, "?")]), 0),
        (with(some, &[(10, "[08]"), (20, "?"), (30, "[19a]"), (40, "[02468ace]")]), 0),
        (with(some, &[(1, "[ce]"), (2, "[3]"), (62, "[0f]")]), 0),
        // Candidates that are 0, n and beyond.
        (with(&"0".repeat(64), &[(62, "?"), (63, "?")]), 0),
        (with(&last, &[(62, "?"), (63, "?")]), 0),
        (some[1..].to_owned(), 1),
        (with(some, &[(22, ""), (23, "")]), 2),
        (with(some, &[(22, ""), (23, "?")]), 1),
    ] {
        let mask = KeyMask::parse(&text, missing).expect("a mask");
        assert_eq!(all(&mask), by_hand(&text, missing, HEX), "{text}");
    }
    let upper = KeyMask::parse(&with(&some.to_uppercase(), &[(9, "?")]), 0).expect("a mask");
    let lower = KeyMask::parse(&format!("0x{}", with(some, &[(9, "?")])), 0).expect("a mask");
    assert_eq!((upper.digest(), all(&upper)), (lower.digest(), all(&lower)));
}

/// The order of digits is what a walk relies on: bits add their weights, whatever lies above.
#[test]
fn low_bits_of_a_candidate_add_their_weights() {
    let text = with(&"1".repeat(64), &[(3, "?"), (17, "[4c]"), (40, "[159]"), (63, "?")]);
    let mask = KeyMask::parse(&text, 0).expect("a mask");
    let digits = mask.digits().expect("digits");
    assert_eq!((digits.weights().len(), digits.count().as_u64()), (9, 3 * 512));
    for candidate in 0..digits.count().as_u64() {
        let lowest = digits.number_at(U256::from(candidate & !511));
        let added = (0..9).filter(|bit| candidate >> bit & 1 == 1).map(|bit| digits.weights()[bit]);
        assert_eq!(digits.number_at(U256::from(candidate)), added.fold(lowest, |sum, weight| sum + weight));
    }
    assert!(digits.weights().windows(2).all(|pair| pair[0] < pair[1]));
}

/// Parts of the candidates are as all of them.
#[test]
fn any_stretch_of_candidates_has_its_keys() {
    let mask = KeyMask::parse(&with(&COMPRESSED[..51], &[(50, "?")]), 1).expect("a mask");
    let texts = mask.texts().expect("texts");
    let mut whole = Vec::new();
    texts.visit(0, mask.count().as_u64(), &mut |at, key| whole.push((at, *key)));
    assert!(!whole.is_empty());
    for step in [997, 58, 3364] {
        let (mut parts, mut at) = (Vec::new(), 0);
        while at < texts.count() {
            texts.visit(at, step, &mut |at, key| parts.push((at, *key)));
            at += u128::from(step);
        }
        assert_eq!(parts, whole, "{step}");
    }
    for (at, key) in whole {
        assert_eq!(mask.key_at(U256::from(at)), Some(key));
    }
}

#[test]
fn what_is_no_mask_is_refused_with_what_is_allowed() {
    let refusal = |text: &str, missing| KeyMask::parse(text, missing).expect_err("no mask");
    let length = |given, missing, like| MaskError::Length { given, missing, like };
    let hex = "?".repeat(8) + &"a".repeat(56);
    assert!(KeyMask::parse(&hex, 0).is_ok());
    for (text, missing, error) in [
        ("abc?", 0, length(4, 0, None)),
        (&hex[1..], 0, length(63, 0, Some(("hexadecimal key", 64)))),
        (&hex[1..], 2, length(65, 2, Some(("hexadecimal key", 64)))),
        (&NOSTR[..62], 0, length(62, 0, Some(("nsec", 63)))),
        (&COMPRESSED[..51], 0, length(51, 0, Some(("compressed WIF key", 52)))),
        (&with(&COMPRESSED[..50], &[(9, "?")]), 0, length(50, 0, Some(("compressed WIF key", 52)))),
        (&format!("{UNCOMPRESSED}?"), 0, length(52, 0, Some(("uncompressed WIF key", 51)))),
        (
            &with(COMPRESSED, &[(0, "z"), (1, "?")]),
            0,
            MaskError::Empty("no WIF key begins with its first character"),
        ),
        (&with(&hex, &[(63, "[")]), 0, MaskError::Brackets(64)),
        (&with(&hex, &[(20, "]")]), 0, MaskError::Brackets(21)),
        (&with(&hex, &[(20, "[]")]), 0, MaskError::Brackets(21)),
        (&with(&hex, &[(20, "[a-]")]), 0, MaskError::Brackets(21)),
        (&"a".repeat(64), 0, MaskError::Known),
        (&hex, 5, MaskError::Missing(5)),
        (&"?".repeat(64), 0, MaskError::Many(248)),
        (&"?".repeat(52), 0, MaskError::Many(120)),
        (&format!("{}?", "f".repeat(63)), 0, MaskError::Empty("all that it can be is beyond the last key")),
    ] {
        assert_eq!(refusal(text, missing), error, "{text}");
    }
    for text in [with(&hex, &[(20, "g")]), with(COMPRESSED, &[(1, "?"), (20, "l")])] {
        let error = refusal(&text, 0);
        assert!(matches!(error, MaskError::Character { at: 21, .. }), "{error}");
    }
    for (text, missing, says) in [
        (&COMPRESSED[..51], 0, "1 character is missing. Write ? where it belongs, or say how many are"),
        (&COMPRESSED[..49], 1, "2 characters are missing. Write ? where they belong, or say how many are"),
        (&hex[3..], 0, "3 characters are missing"),
    ] {
        let error = refusal(text, missing).to_string();
        assert!(error.contains(says), "{error}");
    }
    // Of those that look alike, what is no character of such texts is left out.
    assert!(KeyMask::parse(&with(COMPRESSED, &[(20, "[il1]")]), 0).is_ok_and(|mask| mask.count() == 2));
    assert!(KeyMask::parse(&with(NOSTR, &[(20, "[b8]"), (21, "?")]), 0).is_ok_and(|mask| mask.count() == 32));
    // Nothing of a key is told.
    assert_eq!(
        format!("{:?}", KeyMask::parse(&hex, 0)),
        "Ok(KeyMask(hexadecimal key, 4294967296 candidates))"
    );
}

/// A text with a checksum tells of which addresses it is the key.
#[test]
fn a_text_tells_the_type_of_its_address() {
    let type_of = |text: &str, missing| {
        let mask = KeyMask::parse(text, missing).expect("a mask");
        mask.address_type().map(|(known, kind)| (known.name.as_str(), kind))
    };
    assert_eq!(type_of(&with(COMPRESSED, &[(9, "?")]), 0), Some(("p2pkh", AddressKind::P2PKH)));
    assert_eq!(type_of(&COMPRESSED[1..], 1), Some(("p2pkh", AddressKind::P2PKH)));
    assert_eq!(
        type_of(&with(UNCOMPRESSED, &[(9, "?")]), 0),
        Some(("p2pkh-uncompressed", AddressKind::P2PKH))
    );
    assert_eq!(type_of(&with(NOSTR, &[(9, "?")]), 0), Some(("npub", AddressKind::NPUB)));
    let litecoin = type_of(&with(COMPRESSED, &[(0, "T"), (9, "?")]), 0);
    assert!(litecoin.is_some_and(|(name, _)| name == "ltc-p2pkh"), "{litecoin:?}");
    let test = type_of(&with(COMPRESSED, &[(0, "c"), (9, "?")]), 0);
    assert!(test.is_some_and(|(name, kind)| name == "p2pkh" && kind != AddressKind::P2PKH), "{test:?}");
    assert_eq!(type_of(&format!("??{}", "a".repeat(62)), 0), None);
}
