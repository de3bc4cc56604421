//! Nothing that may be a secret is repeated, whatever it was given for.

use warpsmith_trials::programs::{check_secrets, flags};

use crate::harness::PROGRAM;

/// What a command needs besides, to come as far as it can with a text in one place.
fn rest(command: &[String]) -> &'static [&'static str] {
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    match command[..] {
        ["build"] => &["data.pir", "no-such-input"],
        ["get"] => &["3"],
        ["bench"] => &["--entries", "1000", "--device", "cuda:99"],
        ["selftest"] => &["--device", "cuda:99"],
        _ => &["no-such-file"],
    }
}

#[test]
fn no_argument_of_any_command_is_repeated_if_it_may_be_a_secret() {
    let flags = flags(&PROGRAM);
    assert!(flags.contains(&(vec!["hint".to_owned()], "--state".to_owned())), "{flags:?}");
    assert!(flags.len() > 40, "{}", flags.len());
    check_secrets(&PROGRAM, rest, Vec::new());
}
