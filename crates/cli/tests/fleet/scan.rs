//! Ranges by the commands, with a real server and real workers.

use crate::harness::{fleet, lines, text, warpsmith, worker};

/// A range by the commands: what a single machine finds, two workers find, open and hidden; and what a fleet does not do is told
/// before anything starts.
#[test]
fn a_range_is_scanned_by_a_fleet() {
    let Some((folder, mut home)) = fleet() else { return };
    let path = home.folder().to_str().expect("text").to_owned();
    let _workers = [worker(folder.path(), &mut home, "one"), worker(folder.path(), &mut home, "two")];
    // The address of key 1, and one that no key of the range has.
    let known = "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH\n1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2\n";
    let addresses = folder.path().join("addresses.txt");
    std::fs::write(&addresses, known).expect("written");
    let addresses = addresses.to_str().expect("text");
    let alone =
        warpsmith(&["scan", "--range", "1:80000", "--targets", addresses, "--json", "--device", "cpu"]);
    let alone = lines(&{ alone }.output().expect("runs"));
    let scan =
        ["fleet", "submit", &path, "--local", "--unit-time", "1s", "scan", "--range", "1:80000", "--json"];
    let submit = |more: &[&str]| warpsmith(&[&scan[..], more].concat()).output().expect("runs");
    let refused = submit(&["--targets", addresses]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("--workers-may-learn-keys"), "{}", text(&refused));
    assert!(std::fs::read_dir(home.jobs()).expect("there").next().is_none(), "nothing began");
    let found = submit(&["--targets", addresses, "--workers-may-learn-keys"]);
    assert_eq!(found.status.code(), Some(0), "{}", text(&found));
    let keys = |lines: &[serde_json::Value]| {
        let of = |line: &serde_json::Value| {
            let field = |name: &str| line[name].as_str().map(str::to_owned);
            field("secret_key").map(|key| (key, field("address"), field("type"), field("export")))
        };
        let mut keys: Vec<_> = lines.iter().filter_map(of).collect();
        keys.sort();
        keys
    };
    assert!(!keys(&alone).is_empty(), "the machine alone finds something");
    assert_eq!(keys(&lines(&found)), keys(&alone));
    let done = lines(&found).pop().expect("a last line");
    assert_eq!((done["event"].as_str(), done["covered"].as_str()), (Some("done"), Some("524288")));
    // By public keys: nothing of it is on the server or at the workers.
    let secret = "000000000000000000000000000000000000000000000000000000000000beef";
    let point = {
        let key = secp256k1::SecretKey::from_secret_bytes(bytes_of(secret)).expect("a key");
        secp256k1::PublicKey::from_secret_key(&key).to_string()
    };
    let hidden = submit(&["--public-key", &point]);
    assert_eq!(hidden.status.code(), Some(0), "{}", text(&hidden));
    assert_eq!(lines(&hidden)[0]["secret_key"].as_str(), Some(secret), "{}", text(&hidden));
    // Again by `result`, and in the status: what was asked for.
    assert_eq!(lines(&hidden)[0]["address"].as_str(), Some(point.as_str()), "{}", text(&hidden));
    let jobs = std::fs::read_dir(home.jobs()).expect("there").flatten();
    let mut hidden_jobs = jobs.filter(|job| job.path().join("scan.json").exists());
    let job = hidden_jobs.next().expect("a hidden one").file_name().into_string().expect("text");
    let again = warpsmith(&["fleet", "result", &path, &job, "--json"]).output().expect("runs");
    for field in ["address", "type", "secret_key", "export"] {
        assert_eq!(lines(&again)[0][field], lines(&hidden)[0][field], "{}", text(&again));
    }
    let listed = lines(&warpsmith(&["fleet", "status", &path, "--json"]).output().expect("runs")).remove(0);
    let status = listed["jobs"].as_array().expect("jobs").iter().find(|status| status["id"] == *job);
    assert_eq!(status.expect("listed")["found"][0]["address"].as_str(), Some(point.as_str()), "{listed}");
    let mut looked = 0;
    for at in [home.folder().join("server"), folder.path().join("spool-one"), folder.path().join("spool-two")]
    {
        let mut stack = vec![at];
        while let Some(at) = stack.pop() {
            for entry in std::fs::read_dir(&at).into_iter().flatten().flatten().map(|entry| entry.path()) {
                if entry.is_dir() {
                    stack.push(entry);
                    continue;
                }
                looked += 1;
                // A worker may just have given it another name, or done with it.
                let Ok(bytes) = std::fs::read(&entry) else { continue };
                let bytes = String::from_utf8_lossy(&bytes).into_owned();
                // The key with its zeros, or as a number of its own: its four digits alone are in much that is random.
                let is_told =
                    [&point[2..], "00000000beef", "\"beef\""].iter().any(|text| bytes.contains(text));
                assert!(!is_told, "{}", entry.display());
            }
        }
    }
    assert!(looked > 3, "there is something to look at");
    for (more, says) in [
        (&["--targets", addresses, "--map", "x.map"][..], "--map"),
        (&["--targets", addresses, "--random"], "--random"),
        (&["--targets", addresses, "--device", "cpu"], "fleet work"),
        (&["--database", "x.db"], "--targets"),
    ] {
        let refused = submit(more);
        assert_eq!(refused.status.code(), Some(2), "{more:?}: {}", text(&refused));
        assert!(text(&refused).contains(says), "{more:?}: {}", text(&refused));
    }
}

fn bytes_of(text: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).expect("text"), 16).expect("hex");
    }
    bytes
}
