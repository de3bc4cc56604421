//! What a fleet costs: cycles of lease and report, parted by process; connections; the search as a worker beside the same search
//! alone. Measurements, for docs/measurements/fleet.md.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use warpsmith::fleet::net::connect::as_worker;
use warpsmith::fleet::net::home::Invitation;

use crate::harness::{Running, fleet, runtime, server, warpsmith, worker};
use crate::{Shared, coordinator, simulated, the_job};

/// Seconds of the processor that a process has had, all its threads together.
fn cpu_seconds(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = text.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    // SAFETY: asks for a number.
    (ticks(11) + ticks(12)) / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64
}

/// Bytes of memory a process has.
fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// Cycles of lease and report a second, with TLS and permissions and every report on disk before its answer; and what a cycle takes
/// of a core in the server, in the coordinator, and in those who play the workers. The rate is what this machine does with all three at
/// once; the shares say what one core bears of each.
#[test]
#[ignore = "a measurement: cargo test --workspace --test fleet how_many -- --ignored --nocapture"]
fn how_many_cycles_a_second() {
    let Some((_folder, mut home)) = fleet() else { return };
    let invitations: Vec<Invitation> =
        (0..256).map(|n| home.invite(&format!("w{n}")).expect("invited")).collect();
    let server = server(&home);
    let leader = coordinator(&home, "qqqqqqqqqq");
    let (job, _, task) = the_job(&home);
    let (done, stop) = (Mutex::default(), AtomicBool::new(false));
    let (answered, counted) = (AtomicU64::new(0), AtomicU64::new(0));
    let shared = Arc::new(Shared { task, job, done, answered, counted, stop, half: 4, rate: 150.0 });
    let runtime = runtime();
    for invitation in invitations {
        runtime.spawn(simulated(Arc::clone(&shared), invitation, Arc::default()));
    }
    // Until all are in good standing: 32 units each.
    let units = || shared.answered.load(Ordering::Relaxed);
    while units() < 256 * 48 {
        std::thread::sleep(Duration::from_millis(100));
    }
    let pids = [server.0.id(), leader.0.id(), std::process::id()];
    let times = || pids.map(cpu_seconds);
    let (before, at, started) = (units(), times(), Instant::now());
    std::thread::sleep(Duration::from_secs(20));
    let (cycles, after) = ((units() - before) as f64, times());
    println!("{:.0} cycles a second on this machine as it is", cycles / started.elapsed().as_secs_f64());
    for (n, name) in ["server", "coordinator", "workers"].iter().enumerate() {
        let each = (after[n] - at[n]) / cycles;
        println!("{name}: {:.3} ms of a core a cycle, {:.0} a second of one core", each * 1e3, 1.0 / each);
    }
    shared.stop.store(true, Ordering::Relaxed);
}

/// What a connection takes of the server's memory, idle and with TLS.
#[test]
#[ignore = "a measurement: cargo test --workspace --test fleet how_much -- --ignored --nocapture"]
fn how_much_a_connection_takes() {
    let Some((_folder, mut home)) = fleet() else { return };
    let server = server(&home);
    let many = 1000;
    let invitations: Vec<Invitation> =
        (0..many).map(|n| home.invite(&format!("w{n}")).expect("invited")).collect();
    assert!(warpsmith::fleet::net::submit::reload(&home), "the server is here");
    let before = resident(server.0.id());
    runtime().block_on(async {
        let join = async |invitation: &Invitation| loop {
            match as_worker(invitation).await {
                Ok(client) => break client,
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        let started = Instant::now();
        let mut clients = Vec::new();
        for some in invitations.chunks(50) {
            clients.extend(futures_util::future::join_all(some.iter().map(join)).await);
        }
        println!("{many} have joined in {:.1?}", started.elapsed());
        tokio::time::sleep(Duration::from_secs(2)).await;
        let each = resident(server.0.id()).saturating_sub(before) / many;
        println!("{} connections: {:.1} kB each in the server", clients.len(), each as f64 / 1e3);
    });
}

/// Keys a second of processor time, of a search alone.
fn alone(time: Duration) -> f64 {
    let mut search = warpsmith(&[
        "npub",
        "qqqqqqqqqqqq",
        "--device",
        "cpu",
        "--threads",
        "1",
        "--json",
        "--progress",
        "json",
    ]);
    let search = search.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut search = Running(search.spawn().expect("starts"));
    let lines = BufReader::new(search.0.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let (mut first, started) = (None, Instant::now());
    for line in lines.filter_map(|line| serde_json::from_str::<serde_json::Value>(&line).ok()) {
        let now = (
            line["tried"].as_str().and_then(|tried| tried.parse::<f64>().ok()).expect("decimal text"),
            cpu_seconds(search.0.id()),
        );
        let (tried, cpu) = *first.get_or_insert(now);
        if started.elapsed() > time {
            return (now.0 - tried) / (now.1 - cpu);
        }
    }
    panic!("it ended")
}

/// The same search alone and as a worker, in turn, by processor time: on a machine that others use the clock says nothing.
#[test]
#[ignore = "a measurement: cargo test --workspace --test fleet as_fast -- --ignored --nocapture"]
fn as_fast_as_alone() {
    let Some((folder, mut home)) = fleet() else { return };
    let _server = server(&home);
    let path = home.folder().to_str().expect("text").to_owned();
    let worker = worker(folder.path(), &mut home, "one");
    assert!(warpsmith::fleet::net::submit::reload(&home), "the server is here");
    let mut submit =
        warpsmith(&["fleet", "submit", &path, "--unit-time", "10s", "npub", "qqqqqqqqqqqq", "--quiet"]);
    let _leader = Running(submit.stderr(Stdio::null()).spawn().expect("starts"));
    let status = || warpsmith::fleet::net::submit::status(&home);
    let tried = || status().ok().and_then(|status| status.jobs.first().map(|job| job.tried)).unwrap_or(0.0);
    while tried() == 0.0 {
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut ratios = Vec::new();
    for turn in 0..5 {
        // Whole units, from the end of one to the end of another.
        let mut at = tried();
        while tried() == at {
            std::thread::sleep(Duration::from_millis(20));
        }
        at = tried();
        let cpu = cpu_seconds(worker.0.id());
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(20) || tried() == at {
            std::thread::sleep(Duration::from_millis(20));
        }
        let last = tried();
        while tried() == last {
            std::thread::sleep(Duration::from_millis(20));
        }
        let as_worker = (tried() - at) / (cpu_seconds(worker.0.id()) - cpu);
        let alone = alone(Duration::from_secs(20));
        println!("turn {turn}: {as_worker:.4e} a second of its processor as a worker, {alone:.4e} alone");
        ratios.push(as_worker / alone);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median of five: {:.4}", ratios[2]);
}
