//! The same mistake is answered alike by every command: the exit code, what to do about it, and a document where those were asked for.

use std::collections::BTreeSet;
use std::fs;

use tempfile::tempdir;

use super::{Program, Run, text};

/// Every command with its manual page, in the words to call it by.
pub fn commands(program: &Program) -> Vec<(Vec<String>, String)> {
    let folder = tempdir().unwrap();
    program.run(&["man", "--folder", folder.path().to_str().unwrap()], b"").code(0);
    let pages = fs::read_dir(folder.path()).unwrap().map(|page| page.unwrap().path());
    let pages: BTreeSet<_> = pages.collect();
    let named = pages.iter().map(|path| {
        let page = fs::read_to_string(path).unwrap();
        // A name may have a hyphen, as the file's has between its words.
        let name = page.split(".SH SYNOPSIS\n\\fB").nth(1).and_then(|rest| rest.split("\\fR").next());
        // Where something stands between the words of the name, the synopsis has it so, and not in bold.
        let name = name.map(|name| name.replace("\\-", "-")).unwrap_or_else(|| {
            let start = format!(".SH SYNOPSIS\n{} ", program.name.replace('-', "\\-"));
            assert!(page.contains(&start), "{path:?} has no synopsis");
            let stem = path.file_stem().unwrap().to_str().unwrap();
            format!("{}{}", program.name, stem[program.name.len()..].replace('-', " "))
        });
        (name.split_whitespace().skip(1).map(str::to_owned).collect(), page)
    });
    // What has commands of its own does nothing by itself, but for searches that can be explained.
    named.filter(|(_, page)| !page.contains(".SH SUBCOMMANDS") || has(page, "--device")).collect()
}

/// Whether a page names a flag.
pub fn has(page: &str, flag: &str) -> bool {
    page.contains(&format!("\\fB{}\\fR", flag.replace('-', "\\-")))
}

/// Runs it, with `--json` where the command has that; then what went wrong is also the last document.
#[track_caller]
pub fn mistaken(program: &Program, words: &[&str], page: &str, code: i32) -> Run {
    let args = if has(page, "--json") { [words, &["--json"]].concat() } else { words.to_vec() };
    let run = program.run(&args, b"").code(code);
    assert!(run.stderr.starts_with("error: "), "{args:?}: {run:?}");
    assert!(!run.stderr.contains("panicked"), "{run:?}");
    if has(page, "--json") {
        let documents = run.documents();
        let [line] = &documents[..] else { panic!("{args:?}: {run:?}") };
        assert_eq!((text(line, "event"), line["code"].as_i64()), ("error", Some(code.into())), "{run:?}");
        let message = text(line, "message");
        let first = message.lines().next().unwrap_or_default();
        assert!(!first.is_empty() && run.stderr.contains(first), "{args:?}: {run:?}");
    } else {
        assert_eq!(run.stdout, "", "{args:?}");
    }
    run
}

/// Gives every command a flag that does not exist. Returns how many commands there are.
pub fn check_unknown_flags(program: &Program) -> usize {
    let all = commands(program);
    for (words, page) in &all {
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["--nonsense"]).collect();
        mistaken(program, &words, page, 2).says(&["--nonsense", "--help"]);
    }
    all.len()
}

/// Gives every command that has devices one that does not exist. Returns how many these are.
pub fn check_unknown_devices(program: &Program) -> usize {
    let mut tested = 0;
    let list = format!("{} devices", program.name);
    for (words, page) in commands(program).iter().filter(|(_, page)| has(page, "--device")) {
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["--device", "gpu"]).collect();
        mistaken(program, &words, page, 2).says(&["'gpu' is no device", "cuda", &list]);
        tested += 1;
    }
    tested
}

/// Runs command lines with files that are missing: `NONE` is a file that is not there, `FILE` one that is, with nothing in it of use,
/// `NEW` a name for what is made. Each must be refused with the file's name, and every command that `reads_nothing` does not hold for
/// must have a line.
pub fn check_missing_files(program: &Program, lines: &[(&str, Vec<&str>)], reads_nothing: fn(&str) -> bool) {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (none, file) = (path("none"), path("file"));
    fs::write(&file, "").unwrap();
    let all = commands(program);
    for (at, (name, args)) in lines.iter().enumerate() {
        let new = path(&format!("new-{at}"));
        let args: Vec<String> = name
            .split(' ')
            .chain(args.iter().copied())
            .map(|word| match word {
                "FILE" => file.clone(),
                "NEW" => new.clone(),
                word => word.replace("NONE", &none),
            })
            .collect();
        let (_, page) = all.iter().find(|(words, _)| words.join(" ") == *name).expect(name);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        mistaken(program, &args, page, 2).says(&[&none]);
        assert!(!fs::exists(&new).unwrap(), "{args:?} leaves nothing");
    }
    for (words, _) in &all {
        let name = words.join(" ");
        assert!(
            reads_nothing(&name) || lines.iter().any(|(known, _)| *known == name),
            "{name} is not tested"
        );
    }
}
