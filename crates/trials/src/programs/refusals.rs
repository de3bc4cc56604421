//! Values that flags refuse.

use clap::{Arg, Command};

/// What parsers of Rust say, and no message of a program may.
const RAW: [&str; 8] = [
    "is not in",
    "invalid digit",
    "number too",
    "cannot parse",
    "invalid float",
    "line 1 column",
    "expected ident",
    "invalid socket",
];

/// Gives unlikely values to every flag of a command line and checks that refusals are in words of the program's own. Returns how many
/// values were refused.
pub fn check_refusals(command: &Command) -> usize {
    let mut refused = 0;
    for argument in command.get_arguments().filter(|argument| argument.get_action().takes_values()) {
        let parser = argument.get_value_parser().clone();
        let one = Arg::new("x").long("x").value_parser(parser).allow_hyphen_values(true);
        let alone = Command::new("t").arg(one);
        for value in ["", "x", "-1", "1.5", "{", "99999999999999999999"] {
            let Err(error) = alone.clone().try_get_matches_from(["t", "--x", value]) else {
                continue;
            };
            refused += 1;
            let said = error.to_string();
            let raw = RAW.iter().find(|raw| said.contains(*raw));
            let flag = argument.get_id();
            assert_eq!(raw, None, "{} --{flag} {value:?}: {said}", command.get_name());
        }
    }
    refused + command.get_subcommands().map(check_refusals).sum::<usize>()
}
