//! The page of `fleet watch --listen`, and metrics: what they answer, whom they refuse, and that a browser shows it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::harness::{Running, fleet, server, text, warpsmith, worker};

/// What is answered to a request with these headers, head and all.
fn ask(address: &str, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(300))).expect("set");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

/// Starts a command that says where it listens; the first line of its stdout or stderr that has an address, and the process.
fn listening(mut command: Command, on_stderr: bool) -> (Running, String) {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let out: Box<dyn std::io::Read + Send> = if on_stderr {
        Box::new(child.stderr.take().expect("piped"))
    } else {
        Box::new(child.stdout.take().expect("piped"))
    };
    let mut lines = BufReader::new(out).lines();
    let line =
        lines.by_ref().map_while(Result::ok).find(|line| line.contains("http://")).expect("it says where");
    // Nobody waits for what else it says.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address");
    (Running(child), address.to_owned())
}

/// A picture of the page, and what its script made of it; none without a browser.
fn browse(url: &str, picture: &Path, size: &str, dark: bool) -> Option<String> {
    let profile = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--virtual-time-budget=15000",
        "--timeout=300000",
    ]);
    command.arg(format!("--user-data-dir={}", profile.path().display())).arg(format!("--window-size={size}"));
    if dark {
        command.arg("--blink-settings=preferredColorScheme=0");
    }
    let shown =
        command.arg(format!("--screenshot={}", picture.display())).arg("--dump-dom").arg(url).output();
    match shown {
        Ok(shown) => Some(String::from_utf8_lossy(&shown.stdout).into_owned()),
        Err(_) => {
            eprintln!("SKIPPED: there is no chromium on the PATH (apt install chromium)");
            None
        }
    }
}

/// A scan under way, its page and its metrics. A name that is not this machine's is refused, no header is missing, and nothing
/// that is told is a secret.
#[test]
fn the_page_shows_a_fleet() {
    let Some((folder, mut home)) = fleet() else { return };
    let path = home.folder().to_str().expect("text").to_owned();
    let _worker = worker(folder.path(), &mut home, "rig-1");
    home.set_price("rig-1", 0.4).expect("known");
    let addresses = folder.path().join("addresses.txt");
    // Key 1, and one that nobody finds.
    std::fs::write(&addresses, "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH\n1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2\n")
        .expect("written");
    let keys = folder.path().join("keys.txt");
    let mut submit = warpsmith(&[
        "fleet",
        "submit",
        &path,
        "--local",
        "--unit-time",
        "500ms",
        "scan",
        "--range",
        "1:2^36",
    ]);
    submit
        .args(["--workers-may-learn-keys", "--metrics", "127.0.0.1:0", "--output"])
        .arg(&keys)
        .arg("--targets")
        .arg(&addresses);
    let (_leader, metrics) = listening(submit, true);
    let (_watcher, page) = listening(
        warpsmith(&["fleet", "watch", &path, "--every", "500ms", "--listen", "127.0.0.1:0"]),
        false,
    );
    let status = || ask(&page, "/status.json", &page);
    for _ in 0..3000 {
        if status().contains("1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH\",\"seconds") {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let told = status();
    assert!(told.contains("\"name\":\"rig-1\"") && told.contains("\"cells\":["), "{told}");
    let head = ask(&page, "/", &page);
    for header in [
        "content-security-policy: default-src 'none'; style-src 'sha256-",
        "x-content-type-options: nosniff",
        "x-frame-options: deny",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(head.to_lowercase().contains(header), "{header} is not in\n{}", &head[..head.len().min(900)]);
    }
    for host in ["example.org", "example.org:80", ""] {
        assert!(ask(&page, "/status.json", host).starts_with("HTTP/1.1 421"), "{host}");
    }
    assert!(ask(&page, "/other", &page).starts_with("HTTP/1.1 404"));
    // The leader counts by looks of its own, perhaps later than the page.
    let names = [
        "warpsmith_tried_total{job=",
        "warpsmith_covered_ratio{job=",
        "warpsmith_units_total{job=",
        "warpsmith_runner_rate{by=\"rig-1\"}",
        "# EOF",
    ];
    let mut numbers = String::new();
    for _ in 0..3000 {
        numbers = ask(&metrics, "/metrics", &metrics);
        if names.iter().all(|name| numbers.contains(name)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    for name in names {
        assert!(numbers.contains(name), "{name} is not in\n{numbers}");
    }
    // The key that was found is in its file and nowhere here.
    let export = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn";
    // Whoever submitted writes it, perhaps later than the page shows it.
    let kept = || std::fs::read_to_string(&keys).unwrap_or_default();
    for _ in 0..3000 {
        if kept().contains(export) {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(kept().contains(export), "{}", kept());
    assert!([&told, &head, &numbers].iter().all(|text| !text.contains(export)));
    // By a browser: wide and narrow, light and dark.
    let pictures =
        std::env::var_os("WARPSMITH_PICTURES").map_or_else(|| folder.path().to_owned(), Into::into);
    for (name, size, dark) in
        [("wide", "1200,900", false), ("narrow", "390,1100", false), ("dark", "1200,900", true)]
    {
        let picture = pictures.join(format!("{name}.png"));
        let Some(shown) = browse(&format!("http://{page}/"), &picture, size, dark) else { return };
        for part in [
            "rig-1",
            "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH",
            "coordinator up for",
            "class=\"map\"",
            "scan of 1:1000000000",
        ] {
            assert!(shown.contains(part), "{name}: {part} is not in\n{shown}");
        }
        assert!(
            std::fs::metadata(&picture).is_ok_and(|picture| picture.len() > 5000),
            "{name} has a picture"
        );
    }
}

/// Only this machine is shown a page, and an address that cannot be had is told.
#[test]
fn pages_are_for_this_machine_alone() {
    let Some((_folder, home)) = fleet() else { return };
    let path = home.folder().to_str().expect("text");
    for (listen, code, says) in
        [("0.0.0.0:0", 2, "ssh -L"), ("127.0.0.1:x", 2, "--listen"), ("203.0.113.7:80", 4, "--listen")]
    {
        let refused = warpsmith(&["fleet", "watch", path, "--listen", listen]).output().expect("runs");
        assert_eq!(refused.status.code(), Some(code), "{listen}: {}", text(&refused));
        assert!(text(&refused).contains(says), "{listen}: {}", text(&refused));
    }
}

/// The same names for a search and a scan on one machine.
#[test]
fn searches_tell_metrics() {
    let mut search =
        warpsmith(&["npub", "qqqqqqqqqqqq", "--device", "cpu", "--threads", "1", "--metrics", "127.0.0.1:0"]);
    search.env("NO_COLOR", "1");
    let (_search, address) = listening(search, true);
    for _ in 0..3000 {
        let numbers = ask(&address, "/metrics", "localhost");
        if numbers.contains("warpsmith_tried_total{job=\"npub\"}")
            && numbers.contains("warpsmith_runner_rate{by=\"cpu\"}")
        {
            assert!(
                numbers.contains("warpsmith_elapsed_seconds")
                    && numbers.contains("application/openmetrics-text")
            );
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("nothing was told within a minute");
}

/// Connections that send half a request, or none, keep nobody out of the page: the oldest of them make room.
#[test]
fn half_requests_make_room_at_the_page() {
    let Some((_folder, home)) = fleet() else { return };
    let path = home.folder().to_str().expect("text").to_owned();
    let _server = server(&home);
    let watch = warpsmith(&["fleet", "watch", &path, "--listen", "127.0.0.1:0"]);
    let (_watcher, page) = listening(watch, false);
    let held: Vec<TcpStream> = (0..150)
        .map(|_| {
            let mut stream = TcpStream::connect(&page).expect("it listens");
            stream.write_all(b"GET /sta").expect("sent");
            stream
        })
        .collect();
    assert!(ask(&page, "/", &page).starts_with("HTTP/1.1 200"));
    drop(held);
}
