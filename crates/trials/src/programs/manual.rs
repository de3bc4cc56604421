//! Manual pages and completions.

use tempfile::tempdir;

use super::Program;

/// What `--help` says of a command and its parts, so that nothing is known of them but what it lists.
fn commands_and_flags(program: &Program, words: &[&str], found: &mut Vec<(String, Vec<String>)>) {
    let help = program.run(&[words, &["--help"]].concat(), b"").code(0).stdout;
    let flags =
        help.lines().filter_map(|line| line.trim_start().strip_prefix("--").map(|_| line.trim_start()));
    let flags = flags.chain(help.lines().filter_map(|line| line.split_once(", --").map(|(_, rest)| rest)));
    let name = |flag: &str| {
        let flag = flag.trim_start_matches("--");
        flag.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect::<String>()
    };
    found.push((words.join("-"), flags.map(name).collect()));
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return };
    for line in list.lines().take_while(|line| !line.trim().is_empty()) {
        let part = line.split_whitespace().next().unwrap();
        // Lines that go on are indented further.
        if line.starts_with("  ") && !line.starts_with("   ") && part != "help" {
            commands_and_flags(program, &[words, &[part]].concat(), found);
        }
    }
}

/// Checks that every command has a manual page with all its flags, and completions. Returns the commands' names, with hyphens.
pub fn check_manual(program: &Program) -> Vec<String> {
    let folder = tempdir().unwrap();
    let pages = folder.path().join("man/man1");
    program.run(&["man", "--folder", pages.to_str().unwrap()], b"").code(0);
    let mut all = Vec::new();
    commands_and_flags(program, &[], &mut all);
    let shells =
        ["bash", "zsh", "fish"].map(|shell| program.run(&["completions", shell], b"").code(0).stdout);
    for (name, flags) in &all {
        let file = if name.is_empty() {
            format!("{}.1", program.name)
        } else {
            format!("{}-{name}.1", program.name)
        };
        let page =
            std::fs::read_to_string(pages.join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        // As roff writes it.
        let page = page.replace("\\-", "-");
        // What makes the script of fish goes two words deep: of `fleet submit scan` it knows `fleet submit`.
        let known = if name.matches('-').count() < 2 { &shells[..] } else { &shells[..2] };
        for flag in flags {
            assert!(page.contains(&format!("--{flag}")), "{file} lacks --{flag}");
            for script in known {
                assert!(script.contains(flag.as_str()), "completions lack --{flag} of {name}");
            }
        }
    }
    assert_eq!(std::fs::read_dir(&pages).unwrap().count(), all.len(), "as many pages as commands");
    all.into_iter().map(|(name, _)| name).collect()
}
