//! Hints of private retrieval by the commands, with a real server and real workers.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::harness::{Running, fleet, lines, text, warpsmith, worker, worker_with};

const SIZE: usize = 32;
const ENTRIES: usize = 5000;

fn entry(index: usize) -> Vec<u8> {
    (0..SIZE).map(|at| (index * 17 + at * 5 + index / 256) as u8).collect()
}

/// Two workers that have the database make the hints, one that has not goes without; the state they make reads the entries it is asked
/// for, and what a fleet does not do is told before anything starts.
#[test]
fn a_fleet_makes_the_hints_of_a_state() {
    let Some((folder, mut home)) = fleet() else { return };
    let at = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (raw, database, state) = (at("entries.bin"), at("db.pir"), at("my.state"));
    std::fs::write(&raw, (0..ENTRIES).flat_map(entry).collect::<Vec<u8>>()).expect("written");
    let built = warpsmith(&["pir", "build", &database, &raw, "--entry-size", "32"]).output().expect("runs");
    assert!(built.status.success(), "{}", text(&built));
    let path = home.folder().to_str().expect("text").to_owned();
    let _workers = [
        worker_with(folder.path(), &mut home, "one", &["--database", &database]),
        worker_with(folder.path(), &mut home, "two", &["--database", &database]),
        worker(folder.path(), &mut home, "without"),
    ];
    let hint = ["fleet", "submit", &path, "--local", "--unit-time", "1s", "pir", "hint", "--json"];
    let submit = |more: &[&str]| warpsmith(&[&hint[..], more].concat()).output().expect("runs");
    let usual = ["--database", &database, "--state", &state];
    let refused = submit(&usual);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("--workers-may-learn-queries"), "{}", text(&refused));
    let own = [&usual[..], &["--workers-may-learn-queries"]].concat();
    let refused = submit(&[&own[..], &["--device", "cpu"]].concat());
    assert!(text(&refused).contains("fleet work"), "{}", text(&refused));
    assert!(std::fs::read_dir(home.jobs()).expect("there").next().is_none(), "nothing began");
    let made = submit(&[&own[..], &["--queries", "64"]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made));
    let line = lines(&made).into_iter().find(|line| line["event"] == "hints").expect("hints");
    assert_eq!((line["remaining"].as_u64(), line["device"].as_str()), (Some(64), Some("fleet")), "{line}");
    // Nothing may be there.
    assert_eq!(submit(&own).status.code(), Some(4), "the state is there");
    let listen = ["pir", "serve", &database, "--listen", "127.0.0.1:0"];
    let mut server = Running(warpsmith(&listen).stderr(Stdio::piped()).spawn().expect("starts"));
    let url = BufReader::new(server.0.stderr.take().expect("a pipe"))
        .lines()
        .map(|line| line.expect("text"))
        .find_map(|line| line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned))
        .expect("an address");
    let wanted = [0, 1, 4711, 4999, 255, 256];
    let indices: Vec<String> = wanted.iter().map(|index| index.to_string()).collect();
    let mut get = warpsmith(&["pir", "get", "--server", &url, "--state", &state, "--json"]);
    let got = get.args(&indices).output().expect("runs");
    assert_eq!(got.status.code(), Some(0), "{}", text(&got));
    let values: Vec<String> =
        lines(&got).iter().filter_map(|line| line["value"].as_str().map(str::to_owned)).collect();
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(values, wanted.map(|index| hex(entry(index))));
    // The key of the hints is with the server and in no file of its own; the descriptor, which all may read, has none.
    let job = std::fs::read_dir(home.jobs()).expect("there").next().expect("a job").expect("read").path();
    let descriptor = std::fs::read_to_string(job.join("job.json")).expect("read");
    assert!(!descriptor.contains("key"), "{descriptor}");
    assert!(
        std::fs::read_dir(job.join("hints")).expect("a folder").next().is_none(),
        "what a state holds is gone"
    );
}
