//! Patterns that cannot be searched for end at once, and the message says what to do.

use warpsmith_chain::find;
use warpsmith_pattern::{Options, Reason, compile};

fn refusal(pattern: &str) -> String {
    match compile([pattern], find("npub").unwrap(), &Options::default()) {
        Ok(_) => panic!("'{pattern}' was accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn bad_patterns_say_why() {
    let long = "q".repeat(59);
    let halves = format!("{}..{}", "q".repeat(30), "q".repeat(29));
    let padding = format!("{}p", "q".repeat(51));
    let padding_backwards = format!("..p{}", "q".repeat(6));
    let whole = "0elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptq".to_string();
    let contains_nowhere = format!("..{whole}..");
    let cases: &[(&str, &[&str])] = &[
        ("", &["matches every key"]),
        ("npub1", &["'npub1'", "matches every key"]),
        ("?", &["matches every key"]),
        ("????", &["matches every key"]),
        ("?..??", &["matches every key"]),
        ("..?..", &["matches every key"]),
        ("//", &["matches every key"]),
        ("/.*/", &["matches every key"]),
        ("/c?/", &["matches every key"]),
        ("/./", &["matches every key"]),
        ("..", &["'..'", "cafe..babe (begins and ends with)"]),
        ("....", &["means nothing"]),
        ("......", &["means nothing"]),
        ("a..c..e", &["means nothing"]),
        ("..a..c..", &["means nothing"]),
        ("..a..c", &["means nothing"]),
        ("a..c..", &["means nothing"]),
        (
            "bob",
            &[
                "'b' (characters 1 and 3)",
                "'o' (character 2)",
                "Try '808'",
                "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
            ],
        ),
        ("npub1bob", &["'b' (characters 6 and 8)", "Try '808'"]),
        ("..bio", &["'b' (character 3)", "'i' (character 4)", "Try '..8l0'"]),
        ("..bio..", &["'b' (character 3)", "Try '..8l0..'"]),
        ("a..1", &["'1' (character 4)", "Try 'a..l'"]),
        ("CAFE", &["lower case", "Try 'cafe'"]),
        ("Bob", &["'B' (character 1)", "Try '808'"]),
        ("ca.fe", &["'.'", "for any one character write '?'", "Try 'ca?fe'"]),
        ("...cafe", &["'.'"]),
        ("ca fe", &["' ' (character 3)", "Try 'ca?fe'"]),
        ("caf\u{e9}", &["'é' (character 4)", "Try 'caf?'"]),
        ("caf\n", &["'caf\\n'", "'\\n' (character 4)"]),
        (&long, &["fixes 59 characters", "only 58 after npub1"]),
        (&halves, &["fixes 59 characters"]),
        (&padding, &["the 52nd character after npub1 is always q or s and never 'p'"]),
        (&padding_backwards, &["the 52nd character after npub1 is always q or s"]),
        (&whole, &["checksum"]),
        (&contains_nowhere, &["fits nowhere"]),
        ("/cafe", &["closing '/'"]),
        ("/", &["closing '/'"]),
        ("/(/", &["cannot be read", "unclosed group"]),
        ("/b/", &["no npub text matches"]),
        ("/^[io]/", &["no npub text matches"]),
        ("/.{59}/", &["no npub text matches", "58 characters after npub1"]),
        ("/^npub1cafe/", &["no npub text matches", "after npub1"]),
        ("/^.{51}p/", &["no npub text matches"]),
        ("/^.{57}$/", &["no npub text matches"]),
        ("/c^/", &["no npub text matches"]),
        ("/$c/", &["no npub text matches"]),
        (r"/c\bc/", &["no npub text matches"]),
        ("/C/", &["no npub text matches"]),
        ("/é/", &["no npub text matches"]),
        (r"/\w{58}{100}{100}{100}/", &["cannot be read"]),
    ];
    for (pattern, fragments) in cases {
        let message = refusal(pattern);
        for fragment in *fragments {
            assert!(message.contains(fragment), "'{pattern}' should say \"{fragment}\": {message}");
        }
    }
    assert!(refusal(&format!("/^{whole}$/")).contains("no npub text matches"));
}

/// Whatever is proposed is accepted, on every chain and under every option; what cannot be is not proposed.
#[test]
fn suggestions_can_be_searched_for() {
    let written = [
        "bob",
        "BIO",
        "..o1..",
        "i..B",
        "a-z",
        "bitcoin",
        "lave",
        "1lave",
        "LOVE",
        "^cafe",
        "cafe$",
        "^cafe$",
        "^ca.*fe$",
        "*cafe*",
        "ca*fe",
        "cafe,face",
        "cafe,bob",
        "ca[fe]",
        "cafe|face",
        "????-",
        "bc1qbob",
        "0xghost",
        "..O",
        "_",
    ];
    let mut proposed = 0;
    for chain in warpsmith_chain::CHAINS.iter() {
        for row in &chain.addresses {
            for (ignore_case, checksum) in [(false, false), (true, false), (false, true)] {
                let options = Options { ignore_case, checksum, low_bits: None };
                for pattern in written {
                    let Err(error) = compile([pattern], row.target.as_ref(), &options) else { continue };
                    let suggestions = match &error.reason {
                        Reason::Characters { suggestion, .. } => suggestion.iter().cloned().collect(),
                        Reason::Habit { instead, .. } => {
                            instead.iter().map(|(text, _)| text.clone()).collect()
                        }
                        _ => Vec::new(),
                    };
                    for suggestion in suggestions {
                        proposed += 1;
                        assert!(error.to_string().contains(&suggestion), "{error}");
                        compile(suggestion.split(' '), row.target.as_ref(), &options)
                            .unwrap_or_else(|refused| panic!("{} {pattern}: {refused}", chain.name));
                    }
                }
            }
        }
    }
    assert!(proposed > 100, "{proposed}");
    // A look-alike that stands where it cannot: position 52 of an npub is q or s.
    let error =
        compile([format!("{}b", "q".repeat(51))], find("npub").unwrap(), &Options::default()).unwrap_err();
    assert!(matches!(error.reason, Reason::Characters { suggestion: None, .. }), "{error}");
}

#[test]
fn habits_of_other_programs_are_told_what_to_write() {
    let cases: &[(&str, &[&str])] = &[
        ("cafe,face", &["separate patterns by spaces", "Try 'cafe face'"]),
        ("cafe,bob", &["separate patterns by spaces"]),
        ("^cafe", &["between slashes", "Try 'cafe' (begins with)"]),
        ("cafe$", &["Try '..cafe' (ends with)"]),
        ("^cafe$", &["Try 'cafe' (begins with) or '..cafe' (ends with)"]),
        ("^ca.*fe$", &["Try '/^ca.*fe$/' (is all of it)"]),
        ("^npub1cafe", &["Try 'npub1cafe'"]),
        ("cafe*", &["written '..'", "Try 'cafe'"]),
        ("ca[ef]e", &["regular expression", "Try '/^ca[ef]e/'"]),
    ];
    for (pattern, fragments) in cases {
        let message = refusal(pattern);
        for fragment in *fragments {
            assert!(message.contains(fragment), "'{pattern}' should say \"{fragment}\": {message}");
        }
    }
    assert!(!refusal("cafe,bob").contains("Try"));
}

#[test]
fn the_error_names_the_pattern_and_its_index() {
    let error = compile(["cafe", "..ace", "bob"], find("npub").unwrap(), &Options::default()).unwrap_err();
    assert_eq!((error.index, error.pattern.as_str()), (2, "bob"));
}

#[test]
fn a_secret_key_given_as_a_pattern_is_not_repeated() {
    let nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
    for given in [nsec.to_string(), nsec.to_uppercase(), format!(" {nsec}\n")] {
        let error = compile([&given], find("npub").unwrap(), &Options::default()).unwrap_err();
        assert_eq!(error.reason, Reason::Secret);
        let shown = format!("{error} {error:?}").to_lowercase();
        assert!(!shown.contains("vl029"), "{shown}");
    }
}

#[test]
fn long_patterns_are_shortened_in_messages() {
    assert!(refusal(&"b".repeat(10_000)).len() < 1000);
}

#[test]
fn what_looks_odd_but_is_possible_is_accepted() {
    let s_at_52 = format!("{}s", "q".repeat(51));
    let whole = "0elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg";
    let pasted = format!("npub1{whole}");
    for pattern in [
        "npub1cafe",
        "cafe..",
        "?afe",
        "c..e",
        "..?e",
        "..e?..",
        &s_at_52,
        whole,
        &pasted,
        "/(?i)CAFE/",
        "/^c.*e$/",
    ] {
        compile([pattern], find("npub").unwrap(), &Options::default())
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn ignore_case_reads_upper_case_as_lower() {
    let npub = find("npub").unwrap();
    let options = Options { ignore_case: true, ..Options::default() };
    let text = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg";
    for pattern in ["0ELF", "NPUB10elf", "..VJPTG", "0E..TG", "..JLMG..", "/^0ELF/"] {
        let patterns = compile([pattern], npub, &options).unwrap();
        assert_eq!(patterns.find(text), Some(0), "{pattern}");
        assert!(patterns.filter(1e-6).accepts(&npub.decode(text).unwrap().words()), "{pattern}");
    }
}
