//! The fleet with a real nats-server: kills, misuse of the server, speed, and the commands from end to end.
//!
//! Without a nats-server on the PATH these are skipped, and say so. `WARPSMITH_LONG=1` takes the whole numbers.

mod harness;
mod jobs;
mod members;
mod page;
mod replies;
mod restarts;
mod scan;
mod speed;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use harness::{Running, fleet, runtime, server, text, warpsmith};
use warpsmith::fleet::id::JobId;
use warpsmith::fleet::job::{Descriptor, Search, Task};
use warpsmith::fleet::ledger::look;
use warpsmith::fleet::net::connect::{as_coordinator, as_worker};
use warpsmith::fleet::net::home::{Home, Invitation};
use warpsmith::fleet::wire::{Answer, Ask, Ready, Report, VERSION, Verdict};
use warpsmith::search::{Covered, Unit, UnitRunner, check_spots};
use warpsmith_trials::{Random, count};

/// A coordinator that leads a job without end.
fn coordinator(home: &Home, pattern: &str) -> Running {
    let folder = home.folder().to_str().expect("text");
    let mut command = warpsmith(&[
        "fleet",
        "submit",
        folder,
        "--unit-time",
        "500ms",
        "npub",
        pattern,
        "--count",
        "0",
        "--quiet",
    ]);
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(home.folder().join("co.log"))
        .expect("a log");
    Running(command.stdout(Stdio::null()).stderr(log).spawn().expect("the binary starts"))
}

/// The one job of a folder, once it is there.
fn the_job(home: &Home) -> (JobId, PathBuf, Box<Search>) {
    for _ in 0..6000 {
        let mut entries = std::fs::read_dir(home.jobs()).expect("there").flatten();
        if let Some(entry) = entries.next()
            && let Ok(text) = std::fs::read_to_string(entry.path().join("job.json"))
            && entry.path().join("ledger").exists()
        {
            let id: JobId = entry.file_name().to_str().expect("text").parse().expect("a name");
            let task = Descriptor::read(&text, &id).expect("itself").open().expect("possible");
            let Task::Search(search) = task else { panic!("a scan") };
            return (id, entry.path(), search);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("no job");
}

/// How a simulated worker does units: all spots by the reference arithmetic. Small units, but true ones.
fn reference(task: &Search, unit: &Unit, bits: u32) -> Covered {
    let Unit::Keys(keys) = unit else { panic!("keys") };
    let mut covered = Covered::default();
    // As spots are written: step, index, sign, orbit, image, sign of the key.
    let spots = (0..keys.steps).flat_map(|step| {
        let entries =
            (0..=u64::from(keys.half)).flat_map(|index| (0..8).map(move |entry| index << 3 | entry));
        entries.flat_map(move |entry| (0..3).map(move |image| step << 17 | entry << 3 | image << 1))
    });
    let spots: Vec<u64> = spots.filter(|spot| unit.part(*spot).is_some()).collect();
    for (spot, digest) in spots.iter().zip(check_spots(unit, task.subject(), &spots)) {
        let Some(digest) = digest else { continue };
        if digest.words()[0].leading_zeros() >= bits {
            covered.shares.push(*spot);
        }
        // Texts of these begin with npub1qq.
        if digest.words()[0] >> 54 > 0 {
            continue;
        }
        let text = task.subject().target().encode(&digest);
        if let warpsmith::search::Wanted::Patterns(patterns) = task.wanted()
            && patterns.find(&text).is_some()
            && covered.matches.len() < UnitRunner::MOST_MATCHES
        {
            covered.matches.push(*spot);
        }
    }
    covered
}

/// What all simulated workers share.
struct Shared {
    task: Box<Search>,
    job: JobId,
    /// Units that were done, and whether they hold a match.
    done: Mutex<HashMap<u64, bool>>,
    /// Reports that were answered, and those of them that counted.
    answered: AtomicU64,
    counted: AtomicU64,
    stop: AtomicBool,
    half: u32,
    rate: f64,
}

/// A worker as a task: asks, works, reports until it is answered, also after it was killed and begins anew.
async fn simulated(shared: Arc<Shared>, invitation: Invitation, spool: Arc<Mutex<Option<Report>>>) {
    let client = loop {
        match as_worker(&invitation).await {
            Ok(client) => break client,
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    };
    let request = async |subject: &str, payload: Vec<u8>| {
        let subject = format!("{subject}.{}", invitation.id);
        let asked =
            tokio::time::timeout(Duration::from_secs(5), client.request(subject, payload.into())).await;
        asked.ok().and_then(Result::ok).map(|message| message.payload)
    };
    let ready = Ready { job: shared.job, half: shared.half, grain: 1, rate: shared.rate };
    let ask = Ask {
        version: VERSION,
        slot: 0,
        device: "test".into(),
        ready: Some(ready),
        unable: Vec::new(),
        holding: Vec::new(),
        busy: false,
    };
    let ask = serde_json::to_vec(&ask).expect("plain");
    while !shared.stop.load(Ordering::Relaxed) {
        let waiting = spool.lock().expect("whole").clone();
        if let Some(report) = waiting {
            match request("req.put", serde_json::to_vec(&report).expect("plain")).await {
                Some(answer) => {
                    let verdict: Verdict = serde_json::from_slice(&answer).expect("a verdict");
                    // Two honest units in a million have so few shares; they are done again.
                    let is_unlucky = matches!(&verdict, Verdict::Refused { why } if why.contains("its shares are too few"));
                    assert!(is_unlucky || !matches!(verdict, Verdict::Refused { .. }), "{verdict:?}");
                    shared.answered.fetch_add(1, Ordering::Relaxed);
                    if verdict == Verdict::Counted {
                        shared.counted.fetch_add(1, Ordering::Relaxed);
                    }
                    *spool.lock().expect("whole") = None;
                }
                None => tokio::time::sleep(Duration::from_millis(100)).await,
            }
            continue;
        }
        let answer = request("req.get", ask.clone()).await;
        match answer.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            Some(Answer::Lease(lease)) => {
                let unit = lease.work.unit().expect("a unit");
                let covered = reference(&shared.task, &unit, lease.bits);
                shared.done.lock().expect("whole").insert(lease.unit, !covered.matches.is_empty());
                let report =
                    Report { lease: *lease, shares: covered.shares, matches: covered.matches, ms: 1 };
                *spool.lock().expect("whole") = Some(report);
            }
            Some(Answer::Refused { why }) => panic!("an honest worker is refused: {why}"),
            _ => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

fn found_units(folder: &Path) -> Vec<u64> {
    let file = warpsmith::fleet::folder::read_found(&folder.join("found.jsonl")).expect("read");
    assert!(file.damage.is_empty(), "{:?}", file.damage);
    file.records.iter().map(|(_, found)| found.lease.unit).collect()
}

/// T9: workers, server and coordinator are killed over and over. Nothing is lost, everything counts once, every match is found.
#[test]
fn kills_lose_nothing() {
    let Some((_folder, mut home)) = fleet() else { return };
    let (workers, units) = (count(40, 200) as usize, count(400, 3000));
    let (kills, server_kills, coordinator_kills) = (count(20, 100), count(2, 10), count(4, 20));
    let invitations: Vec<Invitation> =
        (0..workers).map(|n| home.invite(&format!("w{n}")).expect("invited")).collect();
    let mut server_process = server(&home);
    let mut leader = coordinator(&home, "qq");
    let (job, folder, task) = the_job(&home);
    let shared = Arc::new(Shared {
        task,
        job,
        done: Mutex::default(),
        answered: AtomicU64::new(0),
        counted: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        // One group has more keys than a match takes on average, so that every unit is one group, however fast its worker is.
        half: 64,
        rate: 200.0,
    });
    let (runtime, mut random) = (runtime(), Random::new("kills_lose_nothing"));
    let spools: Vec<_> = (0..workers).map(|_| Arc::new(Mutex::new(None))).collect();
    let start = |n: usize| {
        runtime.spawn(simulated(Arc::clone(&shared), invitations[n].clone(), Arc::clone(&spools[n])))
    };
    let mut tasks: Vec<_> = (0..workers).map(start).collect();
    let done = || look(&folder.join("ledger"), job).map_or(0, |standing| standing.units);
    let events = kills + server_kills + coordinator_kills;
    let mut schedule: Vec<u8> =
        [vec![0; kills as usize], vec![1; server_kills as usize], vec![2; coordinator_kills as usize]]
            .concat();
    for at in (1..schedule.len()).rev() {
        schedule.swap(at, random.below(at as u64 + 1) as usize);
    }
    let (started, patience) = (Instant::now(), Duration::from_secs(1500));
    for (at, event) in (1..).zip(&schedule) {
        // Evenly over the units.
        while done() < units * at / (events + 1) {
            assert!(started.elapsed() < patience, "{} units after {patience:?}", done());
            std::thread::sleep(Duration::from_millis(20));
        }
        match event {
            0 => {
                let n = random.below(workers as u64) as usize;
                tasks[n].abort();
                tasks[n] = start(n);
            }
            1 => {
                server_process.kill();
                server_process = server(&home);
            }
            _ => {
                leader.kill();
                leader = coordinator(&home, "qq");
            }
        }
    }
    while done() < units {
        assert!(started.elapsed() < patience, "{} units after {patience:?}", done());
        std::thread::sleep(Duration::from_millis(20));
    }
    shared.stop.store(true, Ordering::Relaxed);
    for task in tasks {
        runtime
            .block_on(async { tokio::time::timeout(Duration::from_secs(60), task).await })
            .expect("ends")
            .expect("whole");
    }
    leader.kill();
    let standing = look(&folder.join("ledger"), job).expect("read");
    let keys = u128::from(3 * (2 * 64 * 3 + 1) as u32);
    assert_eq!(
        (standing.damage.stretches, standing.keys),
        (0, u128::from(standing.units) * keys),
        "each counted once"
    );
    // What a worker heard counts is on disk; the other way round an answer may have been lost with a kill.
    assert!(shared.counted.load(Ordering::Relaxed) <= standing.units);
    let worked = shared.done.lock().expect("whole").clone();
    let found = found_units(&folder);
    for (first, last) in standing.intervals() {
        for unit in first..=last {
            let holds = worked.get(&unit).unwrap_or_else(|| panic!("unit {unit} was done by nobody"));
            assert_eq!(found.iter().filter(|at| **at == unit).count(), usize::from(*holds), "unit {unit}");
        }
    }
    println!(
        "{} units, {} with matches, {workers} workers, {kills} + {server_kills} + {coordinator_kills} kills in {:.0?}",
        standing.units,
        found.len(),
        started.elapsed()
    );
}

/// T20: a worker can neither speak for another nor hear what another is told, nor touch what the server keeps.
#[test]
fn workers_cannot_misuse_the_server() {
    let Some((_folder, mut home)) = fleet() else { return };
    let (one, two) = (home.invite("one").expect("invited"), home.invite("two").expect("invited"));
    let _server = server(&home);
    runtime().block_on(async {
        let owner = as_coordinator(&home).await.expect("connected");
        let mut heard = owner.subscribe(">").await.expect("all");
        owner.flush().await.expect("sent");
        let worker = as_worker(&one).await.expect("connected");
        let mut listening = Vec::new();
        for subject in ["_INBOX.>", "_INBOX_2.>", ">", "req.>", "hit.>", "$KV.>", "_INBOX_co.>"] {
            listening.push((subject, worker.subscribe(subject).await.expect("asked for")));
        }
        let mut own = worker.subscribe("_INBOX_1.x").await.expect("asked for");
        worker.flush().await.expect("sent");
        for subject in [
            "req.get.2",
            "req.put.2",
            "req.job.2",
            "hit.1",
            "co.status",
            "co.cancel",
            "_INBOX_2.x",
            "_INBOX_co.x",
            "$KV.JOB.a.0",
            "$KV.LEAD.leader",
            "$JS.API.STREAM.DELETE.HIT",
            "$JS.API.STREAM.PURGE.HIT",
            "$JS.API.STREAM.CREATE.X",
            "$JS.API.CONSUMER.DURABLE.CREATE.HIT.co",
            "$JS.API.CONSUMER.MSG.NEXT.HIT.co",
            "$JS.ACK.HIT.co.1.1.1.1.0",
            "$JS.API.DIRECT.GET.KV_LEAD.$KV.LEAD.leader",
            "$JS.API.DIRECT.GET.KV_JOB.$KV.JOB.a.0",
        ] {
            worker.publish(subject, "misuse".into()).await.expect("sent");
        }
        worker.publish("req.get.1", "own".into()).await.expect("sent");
        worker.flush().await.expect("sent");
        let mut seen = Vec::new();
        while let Ok(Some(message)) = tokio::time::timeout(Duration::from_secs(60), heard.next()).await {
            let is_last = message.subject.as_str() == "req.get.1";
            seen.push(message.subject.to_string());
            if is_last {
                break;
            }
        }
        assert_eq!(seen, ["req.get.1"], "nothing else came through");
        let second = as_worker(&two).await.expect("connected");
        second.publish("req.get.2", "hello".into()).await.expect("sent");
        second.flush().await.expect("sent");
        for subject in ["_INBOX.y", "_INBOX_2.x", "_INBOX_co.x", "req.get.2", "_INBOX_1.x"] {
            owner.publish(subject, "private".into()).await.expect("sent");
        }
        owner.flush().await.expect("sent");
        let own = tokio::time::timeout(Duration::from_secs(30), own.next())
            .await
            .expect("its own")
            .expect("a message");
        assert_eq!(own.payload.as_ref(), b"private");
        for (subject, mut messages) in listening {
            let other = tokio::time::timeout(Duration::from_millis(50), messages.next()).await;
            // A subscription that is refused ends, or stays silent.
            assert!(!matches!(other, Ok(Some(_))), "{subject} was heard");
        }
        // Another certificate than the invitation's, and another key than an invited one.
        let wrong = Invitation { fingerprint: "00".repeat(32), ..one.clone() };
        assert!(as_worker(&wrong).await.is_err());
        let other =
            Home::init(&home.folder().join("other"), "127.0.0.1:1").and_then(|mut other| other.invite("x"));
        let stranger = Invitation { seed: other.expect("invited").seed, ..one };
        assert!(as_worker(&stranger).await.is_err());
    });
}

/// The commands, as a person types them: the key comes home, to the file alone, and no other file or line has it.
#[test]
fn a_trial_on_one_machine() {
    let Some((folder, home)) = fleet() else { return };
    let path = home.folder().to_str().expect("text");
    let file = folder.path().join("invitation");
    let invited = warpsmith(&["fleet", "invite", path, "me", "--output"]).arg(&file).output().expect("runs");
    assert!(invited.status.success(), "{}", text(&invited));
    let spool = folder.path().join("spool");
    let mut work = warpsmith(&[
        "fleet",
        "work",
        file.to_str().expect("text"),
        "--device",
        "cpu",
        "--threads",
        "1",
        "--spool",
    ]);
    // As on a machine that has no certificates of authorities: a fleet needs none.
    work.env("SSL_CERT_FILE", folder.path().join("none")).env_remove("SSL_CERT_DIR");
    let _worker = Running(work.arg(&spool).stderr(Stdio::null()).spawn().expect("starts"));
    let keys = folder.path().join("keys.json");
    let mut submit =
        warpsmith(&["fleet", "submit", path, "--local", "npub", "ca", "--count", "3", "--json", "--output"]);
    let submitted = submit.arg(&keys).output().expect("runs");
    assert!(submitted.status.success(), "{}", text(&submitted));
    let told: Vec<serde_json::Value> = submitted
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let events: Vec<&str> = told.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(events, ["match", "match", "match", "done"], "{}", text(&submitted));
    // Odds before, and a summary after it.
    for part in ["odds      1 in", "done: 3 matches", " tried ("] {
        assert!(text(&submitted).contains(part), "{part}: {}", text(&submitted));
    }
    let kept = std::fs::read_to_string(&keys).expect("there");
    let secrets: Vec<String> = kept
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|line| line["secret_key"].as_str().expect("a key").to_owned())
        .collect();
    assert_eq!(secrets.len(), 3);
    let verified = warpsmith(&["verify", keys.to_str().expect("text")]).output().expect("runs");
    assert!(verified.status.success(), "{}", text(&verified));
    // T14: nowhere else.
    let mut stack = vec![home.folder().to_owned(), spool];
    while let Some(at) = stack.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if entry.is_dir() {
                stack.push(entry);
            } else {
                // A worker may just have given it another name, or done with it.
                let Ok(bytes) = std::fs::read(&entry) else { continue };
                let bytes = String::from_utf8_lossy(&bytes).into_owned();
                assert!(secrets.iter().all(|secret| !bytes.contains(secret)), "{}", entry.display());
            }
        }
    }
    assert!(secrets.iter().all(|secret| !text(&submitted).contains(secret)));
    // Again, by `result`.
    let job = the_job(&home).0.to_string();
    let again = warpsmith(&["fleet", "result", path, &job[..8], "--json"]).output().expect("runs");
    assert!(secrets.iter().all(|secret| text(&again).contains(secret)), "{}", again.status);
    // Encrypted, with a word about the password.
    let password = folder.path().join("password");
    std::fs::write(&password, "hunter2\n").expect("written");
    std::fs::set_permissions(&password, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("set");
    let mut again = warpsmith(&["fleet", "result", path, &job[..8], "--encrypt", "--password-file"]);
    let again = again.arg(&password).output().expect("runs");
    assert!(again.status.success() && text(&again).contains("password is weak"), "{}", text(&again));
    assert!(secrets.iter().all(|secret| !text(&again).contains(secret)), "{}", text(&again));
    // A match that is damaged is named with its line, and all others are printed.
    let found = home.jobs().join(&job).join("found.jsonl");
    let whole = std::fs::read_to_string(&found).expect("there");
    let line = 1 + whole.lines().position(|line| !line.is_empty()).expect("a match");
    std::fs::write(&found, whole.replacen("\"spot\":", "\"sqot\":", 1)).expect("written");
    let again = warpsmith(&["fleet", "result", path, &job[..8], "--json"]).output().expect("runs");
    assert_eq!(again.status.code(), Some(4), "{}", text(&again));
    assert!(text(&again).contains(&format!("line {line}: ")), "{}", text(&again));
    assert_eq!(secrets.iter().filter(|secret| text(&again).contains(*secret)).count(), 2, "{}", text(&again));
    std::fs::write(&found, whole).expect("written");
    // The job is listed without server and coordinator, as a document.
    let listed = warpsmith(&["fleet", "status", path, "--json"]).output().expect("runs");
    let status = harness::lines(&listed).remove(0);
    assert_eq!(status["jobs"][0]["id"].as_str(), Some(job.as_str()), "{}", text(&listed));
    assert_eq!((&status["jobs"][0]["over"], &status["jobs"][0]["matches"]), (&true.into(), &3.into()));
    assert_eq!(status["jobs"][0]["job"]["liked"]["patterns"][0], "ca");
    assert!(status["unreachable"].as_str().is_some_and(|why| why.contains("connection refused")), "{status}");
    let listed = warpsmith(&["fleet", "status", path]).output().expect("runs");
    assert!(listed.status.success() && text(&listed).contains("npub ca, over"), "{}", text(&listed));
    // Mistakes are told before anything is done.
    let (code, unwritten) = (folder.path().join("code.hex"), folder.path().join("unwritten.hex"));
    std::fs::write(&code, "0x6001600155\n").expect("written");
    let of_code = [
        "--factory",
        "arachnid",
        "--init-code",
        code.to_str().expect("text"),
        "--init-code-out",
        unwritten.to_str().expect("text"),
    ];
    let nowhere = [&["fleet", "submit", "nowhere", "create2", "c"][..], &of_code].concat();
    let devices = [&["fleet", "submit", path, "create2", "c", "--device", "cpu"][..], &of_code].concat();
    for (args, code, says) in [
        (&nowhere[..], 2, "fleet init"),
        (&devices, 2, "fleet work"),
        (&["fleet", "submit", path, "npub", "bad!"], 2, "!"),
        (&["fleet", "submit", path, "npub", "cafe", "--device", "cpu"], 2, "fleet work"),
        (&["fleet", "submit", path, "eth", "--zeros"], 2, "--leading-zeros"),
        (&["fleet", "submit", "nowhere", "npub", "cafe"], 2, "fleet init"),
        (&["fleet", "work", "no such file"], 2, "invitation"),
        (&["fleet", "work", "warpsmith-fleet-1.eyJzZXJ2ZXIi"], 2, "incomplete"),
        (&["fleet", "result", path, "zz"], 2, "no job"),
        (&["fleet", "init", path], 2, "already"),
    ] {
        let refused = warpsmith(args).output().expect("runs");
        assert_eq!(refused.status.code(), Some(code), "{args:?}: {}", text(&refused));
        assert!(text(&refused).contains(says), "{args:?}: {}", text(&refused));
    }
    assert!(!unwritten.exists());
}
