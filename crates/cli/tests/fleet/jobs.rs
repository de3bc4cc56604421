//! Every kind of search by a fleet, with the flags it has on one machine: what comes home holds, by `verify`, and as it was asked for.

use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{fleet, lines, server, text, warpsmith, worker};

#[test]
fn every_kind_of_search_comes_home() {
    let Some((folder, mut home)) = fleet() else { return };
    let path = home.folder().to_str().expect("text").to_owned();
    // Invited before the server reads who may come in.
    let _worker = worker(folder.path(), &mut home, "one");
    let _server = server(&home);
    let password = folder.path().join("password");
    std::fs::write(&password, "correct horse\n").expect("written");
    std::fs::set_permissions(&password, std::fs::Permissions::from_mode(0o600)).expect("set");
    let password = password.to_str().expect("text");
    let caller = "caller:0x4e59b44847b379578588920cA78FbF26c0B4956C";
    let hash = "0x2b6f6b8c1d4e5f60718293a4b5c6d7e8f90112233445566778899aabbccddeef";
    let searches: [(&str, &[&str]); 7] = [
        ("best", &["eth", "--leading-zeros", "--score", "1"]),
        ("create2", &["create2", "ca", "--factory", "arachnid", "--init-code-hash", hash]),
        ("create3", &["create3", "ca", "--factory", "createx", "--salt-layout", caller]),
        (
            "best salt",
            &["create3", "--leading-zeros", "--score", "1", "--factory", "createx", "--salt-layout", caller],
        ),
        ("contract", &["eth", "ab", "--contract", "--nonce", "3"]),
        ("bitcoin", &["btc", "1a", "1b", "--count", "2"]),
        ("encrypted", &["npub", "c", "--encrypt", "--password-file", password]),
    ];
    for (name, search) in searches {
        let keys = folder.path().join(format!("{name}.json"));
        let keys = keys.to_str().expect("text");
        let mut command = warpsmith(&["fleet", "submit", &path]);
        let submitted = command.args(search).args(["--json", "--output", keys]).output().expect("runs");
        assert!(submitted.status.success(), "{name}: {}", text(&submitted));
        let last = lines(&submitted).pop().expect("a last line");
        assert_eq!(last["event"], "done", "{name}");
        let kept = std::fs::read_to_string(keys).expect("there");
        assert!(
            !kept.is_empty() && kept.lines().count() as u64 == last["matches"].as_u64().expect("a number")
        );
        let mut verify = warpsmith(&["verify", keys]);
        if name == "encrypted" {
            assert!(kept.contains("ncryptsec1") && !kept.contains("secret_key"), "{kept}");
            verify.args(["--password-file", password]);
        }
        let verified = verify.output().expect("runs");
        assert!(verified.status.success(), "{name}: {}{kept}", text(&verified));
    }
}

/// A fleet prints what one machine prints: files of code by name, a line for each improvement, and progress for programs.
#[test]
fn a_fleet_prints_what_one_machine_does() {
    let Some((folder, mut home)) = fleet() else { return };
    let path = home.folder().to_str().expect("text").to_owned();
    let _worker = worker(folder.path(), &mut home, "one");
    let _server = server(&home);
    let name = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let submit = |more: &[&str]| {
        let submitted = warpsmith(&[&["fleet", "submit", &path], more].concat()).output().expect("runs");
        assert!(submitted.status.code().is_some_and(|code| code < 2), "{more:?}: {}", text(&submitted));
        submitted
    };
    let (code, salts, argument) = (name("token.hex"), name("salts"), format!("0x{:064x}", 1));
    std::fs::write(&code, "0x6001600155\n").expect("written");
    let code = ["--init-code", &code, "--constructor-args", &argument, "--output", &salts];
    submit(&[&["create2", "c", "--factory", "arachnid"][..], &code].concat());
    let files = std::fs::read_dir(folder.path()).expect("there").flatten();
    let files: Vec<_> = files.filter_map(|file| file.file_name().into_string().ok()).collect();
    let written = files.iter().find(|file| file.starts_with("salts.") && file.ends_with(".hex"));
    let written = written.unwrap_or_else(|| panic!("{files:?}"));
    let kept = std::fs::read_to_string(&salts).expect("there");
    let used = kept.lines().find(|line| line.starts_with("use ")).expect("a line");
    assert!(used.contains(&name(written)), "{used}");
    let verified = warpsmith(&["verify", &salts]).output().expect("runs");
    assert!(verified.status.success(), "{}", text(&verified));

    let best = submit(&["eth", "--leading-zeros", "--score", "1", "--quiet"]);
    let shown = String::from_utf8_lossy(&best.stdout);
    let (short, last) = shown.split_once("\n\n").expect("lines, and the best");
    assert!(short.lines().all(|line| line.starts_with("score ") && line.contains("  secret 0x")), "{shown}");
    assert_eq!(last.lines().filter(|line| line.starts_with("address ")).count(), 1, "{shown}");

    let endless = ["npub", "qqqqqqqqqqqqqqqq", "--time-limit", "4s", "-j", "-q", "--progress", "json"];
    let documents = lines(&submit(&endless));
    let progress = documents.iter().find(|line| line["event"] == "progress").expect("progress");
    assert!(progress["units"].is_u64() && progress["workers"].is_u64(), "{progress}");
}
