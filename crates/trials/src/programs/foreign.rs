//! Other people's programs, which must read what we write: under `target/foreign`, where `test.sh` installs them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The folder, if the programs are there; says so if not.
pub fn folder(program: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/foreign");
    let is_there = folder.join(program).exists();
    if !is_there {
        eprintln!(
            "SKIPPED: target/foreign/{program} is not installed, see test.sh: nobody else read what we wrote"
        );
    }
    is_there.then_some(folder)
}

/// What a program of ours in another language makes of a document: `None` where the language or its library is missing.
fn run(needs: &str, program: &Path, args: &[&str], script: &str, given: &Value) -> Option<Value> {
    let folder = folder(needs)?;
    let mut command = Command::new(program);
    command.args(args).arg(script).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("SKIPPED: {} does not start here", program.display());
        return None;
    };
    child.stdin.take().unwrap().write_all(given.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("the script prints JSON"))
}

/// What a script of node makes of `given`, an object; `show` prints its answer, and `library` must be installed.
pub fn node(library: &str, script: &str, given: &Value) -> Option<Value> {
    let script = format!(
        "const given = JSON.parse(require('fs').readFileSync(0)); const show = x => console.log(JSON.stringify(x)); \
         (async () => {{ {script} }})().catch(error => {{ console.error(error); process.exit(1) }})"
    );
    run(&format!("node_modules/{library}"), Path::new("node"), &["-e"], &script, given)
}

/// The same in Python.
pub fn python(script: &str, given: &Value) -> Option<Value> {
    let program = folder("venv/bin/python")?.join("venv/bin/python");
    let script = format!(
        "import json, sys; given = json.load(sys.stdin); show = lambda x: print(json.dumps(x))\n{script}"
    );
    run("venv/bin/python", &program, &["-c"], &script, given)
}
