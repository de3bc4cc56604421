//! Commands in the README and in `docs/` are run as they stand there.
//!
//! Blocks of `sh`, and the lines of `console` that begin with `$`, are run in order, each page in a folder of its own. What needs a
//! card, a server, another program or hours has a comment before it that readers do not see, `<!-- flags only: WHY -->`: of that only
//! the flags are read. A block with commands of `warpsmith-pir` has none of `warpsmith`, and is that program's.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::tempdir;

use super::{PATIENCE, Program, Run, write_private};

/// A block of commands.
#[derive(Debug)]
struct Block {
    line: usize,
    flags_only: bool,
    script: String,
}

/// The README and the pages of `docs/`.
pub fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|page| page.unwrap().path());
    let mut pages: Vec<PathBuf> =
        docs.filter(|page| page.extension().is_some_and(|end| end == "md")).collect();
    pages.sort();
    pages.insert(0, root.join("README.md"));
    pages
}

/// The blocks of a page. No command may stand in a block that is not looked at.
fn blocks(page: &str) -> Vec<Block> {
    let (mut all, mut open, mut before) = (Vec::new(), None::<(String, Block)>, "");
    for (at, line) in page.lines().enumerate() {
        let bare = line.trim_start();
        match (bare.strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                let flags_only = before.trim_start().starts_with("<!-- flags only: ");
                open = Some((language.to_owned(), Block { line: at + 1, flags_only, script: String::new() }));
            }
            (Some(_), Some(_)) => {
                let (language, block) = open.take().unwrap();
                if ["sh", "console"].contains(&language.as_str()) {
                    all.push(block);
                }
            }
            (None, Some((language, block))) => {
                let command = match language.as_str() {
                    "sh" => Some(bare),
                    "console" => bare.strip_prefix("$ "),
                    "" => {
                        assert!(
                            !bare.starts_with("warpsmith ")
                                && !bare.starts_with("warpsmith-pir ")
                                && !bare.starts_with("$ "),
                            "line {}: {bare}",
                            at + 1
                        );
                        None
                    }
                    _ => None,
                };
                block.script.extend(command.into_iter().flat_map(|command| [command, "\n"]));
            }
            (None, None) => {}
        }
        if !line.trim().is_empty() {
            before = line;
        }
    }
    all
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    // A process that another test starts has the file open for writing until it becomes its program.
    let is_busy = || {
        let tried = std::process::Command::new(path).arg("true").stdout(std::process::Stdio::null()).status();
        tried.is_err_and(|error| error.kind() == std::io::ErrorKind::ExecutableFileBusy)
    };
    while is_busy() {
        std::thread::yield_now();
    }
}

/// Runs a script as a reader would paste it.
pub fn bash(folder: &Path, path: &str, script: &str) -> Run {
    let mut command = assert_cmd::Command::new("/bin/bash");
    command.args(["-c", &format!("umask 077\nset -e -o pipefail\n{script}\nwait\n")]).current_dir(folder);
    command.env("PATH", path).env("HOME", folder).env("XDG_CONFIG_HOME", folder.join("config"));
    command.env("WARPSMITH_DEVICE", "cpu").timeout(PATIENCE);
    command.output().expect("bash starts").into()
}

/// The blocks of a page that are a program's.
fn blocks_of(program: &Program, page: &Path) -> Vec<Block> {
    let all = blocks(&fs::read_to_string(page).unwrap());
    let is_of_pir = |block: &Block| {
        let (pir, other) = (block.script.contains("warpsmith-pir "), block.script.contains("warpsmith "));
        assert!(!(pir && other), "{}, line {}: commands of both programs", page.display(), block.line);
        pir
    };
    all.into_iter().filter(|block| is_of_pir(block) == (program.name == "warpsmith-pir")).collect()
}

/// The usual programs, and ours.
pub fn path_with(program: &Program, folder: &Path) -> String {
    let own = folder.join("bin");
    if !own.exists() {
        fs::create_dir(&own).unwrap();
        symlink(program.binary, own.join(program.name)).unwrap();
    }
    format!("{}:{}", own.display(), std::env::var("PATH").unwrap())
}

/// Runs the commands of the pages that are the program's. `furnish` makes what the pages take for granted. Returns how many blocks were run.
pub fn check_commands(program: &Program, furnish: fn(&Path)) -> usize {
    let mut run = 0;
    for page in pages() {
        let folder = tempdir().unwrap();
        let blocks = blocks_of(program, &page);
        if blocks.iter().all(|block| block.flags_only) {
            continue;
        }
        furnish(folder.path());
        for block in blocks.iter().filter(|block| !block.flags_only) {
            let ended = bash(folder.path(), &path_with(program, folder.path()), &block.script);
            assert_eq!(ended.code, Some(0), "{}, line {}: {ended:?}", page.display(), block.line);
            run += 1;
        }
    }
    run
}

/// Has the program read the flags of the commands of the pages that cannot be run: what stands for it reads the flags it is given and does nothing; other programs that are not there do nothing either.
/// `example` is a command of the program. Returns how many commands were read.
pub fn check_flags(program: &Program, example: &str) -> usize {
    let folder = tempdir().unwrap();
    let (own, calls, wrong) =
        (folder.path().join("bin"), folder.path().join("calls"), folder.path().join("wrong"));
    fs::create_dir(&own).unwrap();
    write_private(&calls, "");
    write_private(&wrong, "");
    let stand_in = format!(
        "#!/bin/sh\necho \"$*\" >> {calls}\n{binary} \"$@\" --help > /dev/null 2>&1 || echo \"$*\" >> {wrong}\necho x\n",
        binary = program.binary,
        calls = calls.display(),
        wrong = wrong.display()
    );
    executable(&own.join(program.name), &stand_in);
    executable(&own.join("srun"), "#!/bin/sh\nexec \"$@\"\n");
    write_private(&calls, "");
    write_private(&wrong, "");
    let nothing_else = "command_not_found_handle() { return 0; }";
    let read =
        |script: &str| bash(folder.path(), own.to_str().unwrap(), &format!("{nothing_else}\n{script}"));
    read(&format!("{} {example} --nonsense", program.name));
    assert_eq!(
        fs::read_to_string(&wrong).unwrap(),
        format!("{example} --nonsense\n"),
        "a wrong flag is noticed"
    );
    write_private(&wrong, "");
    for page in pages() {
        for block in blocks_of(program, &page).iter().filter(|block| block.flags_only) {
            let ended = read(&block.script);
            let wrong = fs::read_to_string(&wrong).unwrap();
            assert_eq!(wrong, "", "{}, line {}", page.display(), block.line);
            assert_eq!(ended.code, Some(0), "{}, line {}: {ended:?}", page.display(), block.line);
        }
    }
    fs::read_to_string(&calls).unwrap().lines().count()
}
