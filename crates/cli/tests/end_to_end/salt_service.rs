//! The service for salts: what is asked is answered in time and holds, several share, and what cannot be done is refused with the reason.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{BINARY, signal, text, warpsmith, write_private};

struct Service {
    child: Child,
    address: SocketAddr,
    metrics: Option<SocketAddr>,
}

impl Service {
    fn start(more: &[&str]) -> Service {
        let mut command = Command::new(BINARY);
        command
            .args(["serve-salts", "--listen", "127.0.0.1:0", "--json", "--device", "cpu", "--threads", "1"])
            .args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(text(&line, "event"), "listening");
        let metrics = line.get("metrics").map(|_| text(&line, "metrics").parse().unwrap());
        Service { child, address: text(&line, "address").parse().unwrap(), metrics }
    }

    fn ask(&self, request: &Value) -> (u16, Value) {
        self.ask_with("Content-Type: application/json\r\n", &request.to_string())
    }

    fn ask_with(&self, headers: &str, body: &str) -> (u16, Value) {
        exchange(self.address, &self.request(headers, body))
    }

    fn request(&self, headers: &str, body: &str) -> String {
        let head = format!("POST /v1/salts HTTP/1.1\r\nHost: {}\r\n{headers}", self.address);
        format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    }

    /// Asks, and does not wait for the answer.
    fn hold(&self, request: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = self.request("Content-Type: application/json\r\n", &request.to_string());
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Waits until so many are searched for, and so many wait.
    fn wait_for(&self, wanted: (u64, u64)) {
        let get = format!("GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        loop {
            let (_, health) = exchange(self.address, &get);
            if (health["busy"].as_u64().unwrap(), health["waiting"].as_u64().unwrap()) == wanted {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request; the status, and the document that was answered.
fn exchange(address: SocketAddr, request: &str) -> (u16, Value) {
    let answer = raw(address, request);
    let status =
        answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{answer}"));
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // Who is refused half-way through a long request is told so all the same.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn hash() -> String {
    format!("0x{}", "5a".repeat(32))
}

/// The result as `verify` sees it.
#[track_caller]
fn assert_holds(result: &Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    std::fs::write(&path, result.to_string()).unwrap();
    warpsmith(&["verify", path.to_str().unwrap()]).code(0);
}

#[test]
fn requests_are_answered_with_salts_that_hold() {
    let service = Service::start(&["--metrics", "127.0.0.1:0"]);
    let caller = "0x1111111111111111111111111111111111111111";
    let requests = [
        json!({"factory": "arachnid", "init_code_hash": hash(), "patterns": ["ca"], "deadline_s": 60}),
        json!({"factory": "createx", "caller": caller, "init_code_hash": hash(), "patterns": ["..e"], "deadline_s": 60}),
        json!({"with": "create3", "factory": "createx", "caller": caller, "chain_id": 1, "patterns": ["a"], "deadline_s": 60}),
        json!({"deployer": caller, "init_code_hash": hash(), "hook_flags": "BEFORE_SWAP", "deadline_s": 60}),
        json!({"deployer": caller, "best": "letters", "min_score": 24, "patterns": ["/^b/"], "deadline_s": 60}),
        json!({"factory": "arachnid", "init_code_hash": hash(), "best": "leading-zeros", "score": 1, "deadline_s": 60}),
    ];
    for request in &requests {
        let (status, result) = service.ask(request);
        assert_eq!((status, text(&result, "event")), (200, "match"), "{request} {result}");
        assert!(text(&result, "salt").len() == 66, "{result}");
        assert_holds(&result);
    }
    // A factory of one's own, by its rule.
    let rule = format!(
        "name = \"ours\"\ndeployer = \"{caller}\"\ncreate2 = \"make(address,bytes32)\"\n\
         guard = \"keccak256(abi.encode(salt, owner))\"\n[inputs]\nowner = \"address\"\n"
    );
    let (status, result) = service.ask(&json!({
        "rule": rule, "inputs": {"owner": caller}, "init_code_hash": hash(), "patterns": ["b"], "deadline_s": 60
    }));
    assert_eq!((status, text(&result, "event")), (200, "match"), "{result}");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("rule.toml"), &rule).unwrap();
    std::fs::write(path("result.json"), result.to_string()).unwrap();
    warpsmith(&["verify", &path("result.json"), "--rule", &path("rule.toml")]).code(0);
    // The best in time is the answer, however good it is.
    let (status, result) = service
        .ask(&json!({"factory": "arachnid", "init_code_hash": hash(), "best": "zeros", "deadline_s": 15}));
    assert_eq!((status, text(&result, "event")), (200, "match"), "{result}");
    assert_holds(&result);
    // All salts of a mask were tried, and none fits.
    let mask = format!("0x{}??", "00".repeat(31));
    let none = json!({"factory": "arachnid", "init_code_hash": hash(), "salt": mask, "patterns": ["cafe"], "deadline_s": 60});
    let (status, result) = service.ask(&none);
    assert_eq!((status, &result["matches"], &result["tried"]), (200, &json!(0), &json!("256")), "{result}");
    let told = raw(
        service.metrics.expect("it was asked for"),
        "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    );
    assert!(told.contains("warpsmith_salts_requests_total{how=\"found\"} 8"), "{told}");
    assert!(told.contains("warpsmith_salts_requests_total{how=\"nothing\"} 1"), "{told}");
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason() {
    let service = Service::start(&["--longest", "20s"]);
    let usual =
        json!({"factory": "arachnid", "init_code_hash": hash(), "patterns": ["cafe"], "deadline_s": 5});
    let with = |name: &str, value: Value| {
        let mut request = usual.clone();
        request[name] = value;
        request
    };
    for (request, code, says) in [
        (with("patterns", json!(["cafecafecafecafe"])), 422, "one salt in 1.8"),
        (with("patterns", json!(["xyz"])), 400, "'x'"),
        (with("patterns", json!([])), 400, "patterns, hook_flags or best"),
        (with("factory", json!("nobody")), 400, "nobody"),
        (with("init_code_hash", json!("0x12")), 400, "64"),
        (with("deployer", json!("0x12")), 400, "deployer: the text has 4 characters"),
        (with("deadline_s", json!(21)), 400, "up to 20"),
        (with("deadline_s", json!(-1)), 400, "above 0"),
        (with("deadline_s", json!("soon")), 400, "expected"),
        (with("speed", json!(9)), 400, "there is no speed; expected one of "),
        (with("best", json!("zeroes")), 400, "there is no score"),
        (with("min_score", json!(3)), 400, "for best"),
        (with("hook_flags", json!("SWAP")), 400, "beforeSwap"),
        (with("with", json!("create4")), 400, "create2"),
        (
            json!({"factory": "arachnid", "with": "create2", "patterns": ["a"], "deadline_s": 1}),
            400,
            "init_code_hash",
        ),
        (json!([1]), 400, "expected"),
    ] {
        let (status, answer) = service.ask(&request);
        assert_eq!(
            (status, text(&answer, "event"), &answer["code"]),
            (code, "error", &json!(code)),
            "{request} {answer}"
        );
        assert!(text(&answer, "message").contains(says), "{request}: {answer}");
    }
    // The odds are told of what takes too long.
    let (_, answer) = service.ask(&with("patterns", json!(["cafecafecafecafe"])));
    assert_eq!(answer["difficulty"], "18446744073709552000");
    assert!(answer["p50_s"].as_f64() > Some(60.0) && answer["chance"].as_f64() < Some(0.01), "{answer}");
    let body = usual.to_string();
    let json = "Content-Type: application/json\r\n";
    for (headers, body, code) in [
        ("Content-Type: text/plain\r\n", body.as_str(), 415),
        ("", &body, 415),
        (json, &" ".repeat(300 << 10), 413),
        (json, "{", 400),
    ] {
        assert_refused(service.ask_with(headers, body), code);
    }
    // A page in a browser that calls this machine by a name of its own.
    let request = format!(
        "POST /v1/salts HTTP/1.1\r\nHost: evil.example:80\r\n{json}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    assert_refused(exchange(service.address, &request), 421);
    for (start, code) in
        [("GET /v1/salts", 405), ("POST /health", 405), ("GET /", 404), ("POST /v1/salt", 404)]
    {
        let request = format!("{start} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", service.address);
        assert_refused(exchange(service.address, &request), code);
        if code == 405 {
            assert!(raw(service.address, &request).to_lowercase().contains("\r\nallow: "));
        }
    }
}

/// A refusal is a JSON document with its status, which the page of the service explains.
#[track_caller]
fn assert_refused((status, answer): (u16, Value), code: u16) {
    assert_eq!(
        (status, text(&answer, "event"), &answer["code"]),
        (code, "error", &json!(code)),
        "{code}: {answer}"
    );
    assert!(!text(&answer, "message").is_empty());
    let page = include_str!("../../../../docs/salt-service.md");
    assert!(page.contains(&format!("\n| {code} | ")), "docs/salt-service.md does not explain {code}");
}

/// Regular expressions whose compilation takes a while: far longer than a millisecond.
fn costly() -> Value {
    let expression = |n: u32| format!("/([0-9a-f][{:x}-f]{{1,9}}){{12}}{}$/", n % 15, n % 10);
    let expressions: Vec<String> = (0..32).map(expression).collect();
    json!({"factory": "arachnid", "init_code_hash": hash(), "patterns": expressions, "deadline_s": 60})
}

fn threads_of(child: &Child) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", child.id())).map_or(0, Iterator::count)
}

/// Work for clients that hang up does not pile up: few compile at a time, whether anybody waits for them or not. And a
/// deadline holds while patterns are compiled.
#[test]
fn compilations_are_bounded_and_deadlines_hold() {
    let service = Service::start(&[]);
    let before = threads_of(&service.child);
    for _ in 0..40 {
        let stream = service.hold(&costly());
        std::thread::sleep(std::time::Duration::from_millis(10));
        drop(stream);
    }
    let most = (0..20).map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        threads_of(&service.child)
    });
    let most = most.max().unwrap_or_default();
    assert!(most <= before + 8, "{before} threads, and then {most}");
    let mut late = costly();
    late["deadline_s"] = json!(0.001);
    let (status, answer) = service.ask(&late);
    assert_refused((status, answer.clone()), 503);
    assert!(text(&answer, "message").contains("deadline"), "{answer}");
    // While others compile, and while a search goes on to its deadline: the answer comes soon after it.
    let held: Vec<TcpStream> = (0..4).map(|_| service.hold(&costly())).collect();
    let mut late = costly();
    late["deadline_s"] = json!(1);
    let zeros = json!({"factory": "arachnid", "init_code_hash": hash(), "best": "zeros", "deadline_s": 4});
    for request in [&late, &zeros] {
        let begin = Instant::now();
        let (status, answer) = service.ask(request);
        assert!([200, 422, 503].contains(&status), "{answer}");
        // Half a second is promised; what is above it is for a slow machine.
        let most = Duration::from_secs_f64(8.0 + request["deadline_s"].as_f64().unwrap());
        assert!(begin.elapsed() < most, "{request}: {:?}", begin.elapsed());
    }
    drop(held);
    let quick = json!({"factory": "arachnid", "init_code_hash": hash(), "patterns": ["c"], "deadline_s": 60});
    assert_eq!(service.ask(&quick).0, 200);
}

/// Connections that send half a request, or none, keep nobody out: the oldest of them make room.
#[test]
fn half_requests_make_room() {
    let service = Service::start(&["--metrics", "127.0.0.1:0"]);
    let metrics = service.metrics.expect("it was asked for");
    for (address, path) in [(service.address, "/health"), (metrics, "/metrics")] {
        let mut held: Vec<TcpStream> = (0..150)
            .map(|_| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(b"GET /hea").unwrap();
                stream
            })
            .collect();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        assert!(raw(address, &request).starts_with("HTTP/1.1 200"), "{path}");
        // The first was closed long before its time was over.
        held[0].set_read_timeout(Some(std::time::Duration::from_secs(300))).unwrap();
        let ended = held[0].read(&mut [0; 16]);
        assert!(
            !ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock),
            "{path}: it is open"
        );
    }
}

/// One place and one waiting: who comes third is turned away, who waits is served in turn, and who leaves makes room.
#[test]
fn places_are_bounded_and_those_who_leave_make_room() {
    let service = Service::start(&["--jobs", "1", "--queue", "1", "--longest", "1h"]);
    let long = json!({"factory": "arachnid", "init_code_hash": hash(), "best": "zeros", "deadline_s": 3000});
    let quick =
        json!({"factory": "arachnid", "init_code_hash": hash(), "patterns": ["c"], "deadline_s": 3000});
    let holder = service.hold(&long);
    service.wait_for((1, 0));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| service.ask(&quick));
        service.wait_for((1, 1));
        let (status, answer) = service.ask(&quick);
        assert_eq!((status, text(&answer, "event")), (429, "error"), "{answer}");
        // The first one leaves; the second has its turn.
        drop(holder);
        let (status, result) = waiting.join().unwrap();
        assert_eq!((status, text(&result, "event")), (200, "match"), "{result}");
    });
    service.wait_for((0, 0));
}

/// Several at once: what takes little is answered beside what takes all the time there is.
#[test]
fn several_share_the_devices() {
    let service = Service::start(&["--jobs", "3", "--longest", "1h"]);
    let long = json!({"factory": "arachnid", "init_code_hash": hash(), "best": "zeros", "deadline_s": 3000});
    let held = [service.hold(&long), service.hold(&long)];
    service.wait_for((2, 0));
    let quick =
        json!({"factory": "arachnid", "init_code_hash": hash(), "patterns": ["c"], "deadline_s": 3000});
    for _ in 0..5 {
        let (status, result) = service.ask(&quick);
        assert_eq!((status, text(&result, "event")), (200, "match"), "{result}");
    }
    service.wait_for((2, 0));
    drop(held);
    service.wait_for((0, 0));
}

#[test]
fn a_token_is_asked_for_and_a_signal_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    write_private(&token, "0123456789abcdef0123456789abcdef\n");
    let mut service = Service::start(&["--token-file", token.to_str().unwrap()]);
    let request =
        json!({"factory": "arachnid", "init_code_hash": hash(), "patterns": ["c"], "deadline_s": 60});
    assert_eq!(service.ask(&request).0, 401);
    let json = "Content-Type: application/json\r\n";
    let with = |token: &str| {
        service.ask_with(&format!("{json}Authorization: Bearer {token}\r\n"), &request.to_string())
    };
    assert_eq!(with("0123456789abcdef0123456789abcdee").0, 401);
    assert_eq!(with("0123456789abcdef0123456789abcdef").0, 200);
    // A search under way is answered with what it has.
    let long = json!({"factory": "arachnid", "init_code_hash": hash(), "best": "zeros", "deadline_s": 60});
    let headers = format!("{json}Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n");
    let (status, _) = std::thread::scope(|scope| {
        let asked = scope.spawn(|| service.ask_with(&headers, &long.to_string()));
        service.wait_for((1, 0));
        signal(&service.child, "INT");
        asked.join().unwrap()
    });
    assert_eq!(status, 200);
    assert_eq!(service.child.wait().unwrap().code(), Some(130));
    let refused = warpsmith(&["serve-salts", "--listen", "0.0.0.0:0", "--device", "cpu"]).code(2);
    refused.says(&["other machines", "--token-file"]);
}
