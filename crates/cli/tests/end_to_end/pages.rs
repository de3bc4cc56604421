//! The commands in the README and in `docs/` are run as they stand there.

use std::fs;
use std::path::Path;

use warpsmith::chain::ethereum::FACTORIES;
use warpsmith_trials::programs::{bash, check_commands, check_flags, pages, path_with};

use crate::harness::PROGRAM;

/// What the pages take for granted.
fn furnish(folder: &Path) {
    let file = |name: &str, content: &[u8]| fs::write(folder.join(name), content).unwrap();
    file("words.txt", b"cafe\nace\nqqq\n..zz\n");
    file("token.hex", b"0x600160005500");
    file("mine.txt", b"1M92tSqNmQLYw33fuBvjmeadirh1ysMBxK\n");
    let made = bash(folder, &path_with(&PROGRAM, folder), "warpsmith npub q --output keys.txt");
    assert_eq!(made.code, Some(0), "{made:?}");
}

#[test]
fn commands_do_what_the_pages_say() {
    let run = check_commands(&PROGRAM, furnish);
    assert!(run > 20, "{run}");
}

#[test]
fn commands_that_cannot_be_run_here_have_flags_that_there_are() {
    let read = check_flags(&PROGRAM, "npub cafe");
    assert!(read > 30, "{read}");
}

/// A factory's contract has no key, so nothing that names it as the caller can ever be sent.
#[test]
fn callers_in_the_pages_are_accounts_that_can_sign() {
    let factories: Vec<String> =
        FACTORIES.iter().filter_map(|factory| factory.address).map(const_hex::encode_prefixed).collect();
    let mut callers = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for (_, rest) in text.match_indices("caller:0x").map(|(at, _)| text.split_at(at + "caller:".len())) {
            let caller: String = rest.chars().take(42).collect::<String>().to_lowercase();
            assert!(!factories.contains(&caller), "{}: {caller}", page.display());
            callers +=
                usize::from(caller.len() == 42 && caller[2..].bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }
    assert!(callers > 0, "README has one");
}
