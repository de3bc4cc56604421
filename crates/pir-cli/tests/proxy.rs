//! The proxy for wallets: real clients are answered as by a node, strangers are refused, and the server sees the same whatever is
//! asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use warpsmith_eth_state::ChainHead;
use warpsmith_eth_state::import::Synthetic;
use warpsmith_trials::programs::foreign;

use crate::harness::{BINARY, Desk, PATIENCE, Server, pir, signal, text};
use crate::network::Proxy as Recorder;

const CHAIN: u64 = 31337;
const BLOCK: u64 = 4711;

fn head(number: u64) -> ChainHead {
    ChainHead { chain_id: CHAIN, number, time: 0, hash: [number as u8; 32] }
}

/// The state that all tests here have.
fn synthetic() -> Synthetic {
    Synthetic::new(2000, 5).unwrap()
}

fn state(desk: &Desk) -> String {
    let (database, hash) = (desk.path("state.pir"), const_hex::encode(head(BLOCK).hash));
    let (chain, block) = (CHAIN.to_string(), BLOCK.to_string());
    let about = ["--chain-id", &chain, "--block-number", &block, "--block-hash", &hash];
    pir(&[&["build", &database, "--synthetic", "2000", "--seed", "5"], &about[..]].concat()).code(0);
    database
}

/// A proxy process.
pub(super) struct Running {
    pub(super) child: Child,
    address: String,
}

impl Running {
    fn start(server: &str, state: &str, more: &[&str]) -> Running {
        let (running, line) = Running::start_with(server, state, more);
        assert_eq!(
            (text(&line, "chain_id"), &line["block_number"]),
            (CHAIN.to_string().as_str(), &BLOCK.into())
        );
        running
    }

    /// The same of any chain, and what it says.
    pub(super) fn start_with(server: &str, state: &str, more: &[&str]) -> (Running, Value) {
        let mut command = Command::new(BINARY);
        command.args(["proxy", "--listen", "127.0.0.1:0", "--server", server, "--state", state, "--json"]);
        let mut child = command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let Ok(line) = serde_json::from_str::<Value>(&line) else {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{line}: {said}");
        };
        assert_eq!((text(&line, "event"), text(&line, "role")), ("listening", "proxy"));
        (Running { child, address: text(&line, "address").to_owned() }, line)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Status, head and body of the answer to a request with these lines.
    fn exchange(&self, start: &str, lines: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let request =
            format!("{start} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n{lines}\r\n{body}");
        // What is refused may be closed before all of it was sent.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase(), body.to_owned())
    }

    pub(super) fn post(&self, body: &str) -> String {
        let lines = "Host: 127.0.0.1\r\nContent-Type: application/json\r\n";
        let (status, head, answer) = self.exchange("POST /", lines, body);
        assert!(status == 200 && head.contains("content-type: application/json"), "{head} {answer}");
        answer
    }

    /// What comes of a call: the result, or the error.
    pub(super) fn call(&self, method: &str, params: Value) -> Result<Value, (i64, String)> {
        let call = json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": params});
        let answer: Value = serde_json::from_str(&self.post(&call.to_string())).unwrap();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&"2.0".into(), &"x".into()), "{answer}");
        match answer.get("error") {
            None => Ok(answer["result"].clone()),
            Some(error) => Err((error["code"].as_i64().unwrap(), text(error, "message").to_owned())),
        }
    }

    pub(super) fn stop(mut self) -> String {
        signal(&self.child, "INT");
        assert_eq!(self.child.wait().unwrap().code(), Some(130));
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hex(bytes: &[u8]) -> String {
    format!("0x{}", const_hex::encode(bytes))
}

#[test]
fn a_wallet_is_answered_as_by_a_node_and_the_server_always_sees_the_same() {
    let desk = Desk::new();
    let database = state(&desk);
    let about = pir(&["info", &database, "--json"]).code(0).json().remove(0);
    assert_eq!(
        (text(&about, "chain_id"), &about["block_number"]),
        (CHAIN.to_string().as_str(), &BLOCK.into())
    );
    let server = Server::start(&database, &[]);
    let (mine, synthetic) = (desk.path("mine.state"), synthetic());
    server.hint(&mine, &["--queries", "2000"]).code(0);
    let recorder = Recorder::before(&server);
    let proxy = Running::start(&recorder.url, &mine, &["--round", "2"]);
    // What is public takes no look-up.
    assert_eq!(proxy.call("eth_chainId", json!([])), Ok("0x7a69".into()));
    assert_eq!(proxy.call("net_version", Value::Null), Ok("31337".into()));
    assert_eq!(proxy.call("eth_blockNumber", json!([])), Ok("0x1267".into()));
    assert_eq!(proxy.call("eth_accounts", json!([])), Ok(json!([])));
    assert!(recorder.queries.lock().unwrap().is_empty());
    let (person, of_person) =
        (1..).map(|i| synthetic.account(i)).find(|(_, a)| a.code == 0 && a.nonce > 0).unwrap();
    let (contract, _) = (0..).map(|i| synthetic.account(i)).find(|(_, account)| account.code > 0).unwrap();
    let (slot, value) = synthetic.slot(3);
    let (who, what) = (hex(&slot[..20]), hex(&slot[20..]));
    let latest = |address: &[u8]| json!([hex(address), "latest"]);
    let balance = format!("{:#x}", of_person.balance);
    let asked: [(&str, Value, Result<Value, &str>); 12] = [
        ("eth_getBalance", latest(&person), Ok(balance.clone().into())),
        ("eth_getBalance", json!([hex(&person)]), Ok(balance.clone().into())),
        ("eth_getBalance", json!([hex(&person), "0x1267"]), Ok(balance.clone().into())),
        ("eth_getBalance", json!([hex(&person), {"blockHash": hex(&head(BLOCK).hash)}]), Ok(balance.into())),
        ("eth_getBalance", latest(&[0xab; 20]), Ok("0x0".into())),
        (
            "eth_getTransactionCount",
            json!([hex(&person), "pending"]),
            Ok(format!("{:#x}", of_person.nonce).into()),
        ),
        ("eth_getTransactionCount", latest(&[0xab; 20]), Ok("0x0".into())),
        ("eth_getStorageAt", json!([who, what, "latest"]), Ok(hex(&value).into())),
        ("eth_getStorageAt", json!([who, "0x0", "latest"]), Ok(hex(&[0; 32]).into())),
        ("eth_getCode", latest(&person), Ok("0x".into())),
        ("eth_getCode", latest(&[0xab; 20]), Ok("0x".into())),
        ("eth_getCode", latest(&contract), Err("has no code")),
    ];
    for (number, (method, params, expected)) in asked.iter().enumerate() {
        let answer = proxy.call(method, params.clone());
        match (expected, &answer) {
            (Ok(expected), Ok(answer)) => assert_eq!(answer, expected, "{method} {params}"),
            (Err(why), Err((-32000, message))) => assert!(message.contains(why), "{message}"),
            _ => panic!("{method} {params}: {answer:?}"),
        }
        // One round for each, of whatever method, found or not.
        assert_eq!(recorder.queries.lock().unwrap().len(), number + 1, "{method} {params}");
    }
    // A batch in its order: three look-ups are two rounds of two.
    let one = |id: u64, method: &str, params: &Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let (first, eighth) = (&asked[0], &asked[7]);
    let batch = json!([
        one(1, first.0, &first.1),
        one(2, "eth_chainId", &json!([])),
        one(3, "eth_call", &json!([])),
        {"jsonrpc": "2.0", "method": first.0, "params": first.1},
        one(4, eighth.0, &eighth.1),
        one(5, first.0, &first.1),
    ]);
    let answers: Value = serde_json::from_str(&proxy.post(&batch.to_string())).unwrap();
    let answers = answers.as_array().unwrap();
    let ids: Vec<u64> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5]);
    assert_eq!(Ok(&answers[0]["result"]), first.2.as_ref());
    assert_eq!((&answers[1]["result"], &answers[2]["error"]["code"]), (&"0x7a69".into(), &(-32601).into()));
    assert_eq!(
        (Ok(&answers[3]["result"]), &answers[4]["result"]),
        (eighth.2.as_ref(), &answers[0]["result"])
    );
    let queries = recorder.queries.lock().unwrap().clone();
    assert_eq!(queries.len(), asked.len() + 2);
    let params = pir(&["info", &database, "--json"]).code(0).json().remove(0);
    let each = params["client"]["query_bytes"].as_u64().unwrap() as usize;
    for body in &queries {
        // A head, and two look-ups of three places.
        assert_eq!(body.len(), 16 + 2 * 3 * each);
        assert_eq!(body[12..16], [6, 0, 0, 0]);
    }
    // Other blocks, and what makes no sense, are refused without a look-up.
    for (method, params, code, why) in [
        ("eth_getBalance", json!([hex(&person), "0x1"]), -32000, "block 4711 alone"),
        ("eth_getBalance", json!([hex(&person), "finalized"]), -32000, "block 4711 alone"),
        ("eth_getBalance", json!([hex(&person), "newest"]), -32602, "\"latest\""),
        ("eth_getBalance", json!(["0x12", "latest"]), -32602, "40 hex digits"),
        ("eth_getBalance", json!([]), -32602, "an address and a block"),
        ("eth_getStorageAt", json!([who, "latest"]), -32602, "a slot"),
        ("eth_getBalance", json!({"a": 1}), -32602, "a list"),
        ("eth_sendRawTransaction", json!(["0x00"]), -32601, "--fallback"),
    ] {
        let (got, message) = proxy.call(method, params).unwrap_err();
        assert!(got == code && message.contains(why), "{method}: {got} {message}");
    }
    assert_eq!(recorder.queries.lock().unwrap().len(), queries.len());
    // An epoch brings another block.
    let [(_, numbers), (_, hash)] = head(BLOCK + 1).records();
    let place = hex(&ChainHead::keys()[0][..20]);
    let changes = format!(
        "{} 99,7,0\n{place}:0 {}\n{place}:1 {}\n",
        hex(&person),
        const_hex::encode(&numbers[..32]),
        const_hex::encode(&hash[..32])
    );
    pir(&["update", &database, &desk.write("changes", changes)]).code(0);
    let begin = Instant::now();
    while proxy.call("eth_blockNumber", json!([])) != Ok("0x1268".into()) {
        assert!(begin.elapsed() < PATIENCE, "the new block was not seen");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(proxy.call("eth_getBalance", latest(&person)), Ok("0x63".into()));
    assert_eq!(proxy.call("eth_getTransactionCount", json!([hex(&person), "0x1268"])), Ok("0x7".into()));
    assert!(proxy.call("eth_getBalance", json!([hex(&person), "0x1267"])).is_err());
    let said = proxy.stop();
    assert!(said.contains("block 4712") && said.contains("queries remain"), "{said}");
    // Nothing of what was asked is told anywhere.
    assert!(!said.contains(&hex(&person)[2..]), "{said}");
}

/// By the clock: rounds leave with nothing in them, none leaves because something is asked, and all that wait are answered in the end.
#[test]
fn rounds_by_the_clock_leave_whether_anything_is_asked_or_not() {
    let desk = Desk::new();
    let server = Server::start(&state(&desk), &[]);
    let (mine, synthetic) = (desk.path("mine.state"), synthetic());
    server.hint(&mine, &["--queries", "4000"]).code(0);
    let recorder = Recorder::before(&server);
    let (every, begin) = (Duration::from_millis(400), Instant::now());
    let proxy = Running::start(&recorder.url, &mine, &["--round", "1", "--every", "400ms"]);
    let count = || recorder.queries.lock().unwrap().len();
    while count() < 3 {
        assert!(begin.elapsed() < PATIENCE, "no round left");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Eight at once, which have a round each.
    std::thread::scope(|scope| {
        for number in 1..9 {
            let (proxy, synthetic) = (&proxy, &synthetic);
            scope.spawn(move || {
                let (address, account) = synthetic.account(number);
                let balance = proxy.call("eth_getBalance", json!([hex(&address), "latest"]));
                assert_eq!(balance, Ok(format!("{:#x}", account.balance).into()));
            });
        }
    });
    // One at the beginning, and one at each beat since: however busy this machine is, there are no more than that.
    let (rounds, beats) = (count(), begin.elapsed().as_millis() / every.as_millis());
    assert!(rounds >= 3 + 8 - 1 && rounds as u128 <= beats + 1, "{rounds} rounds in {beats} beats");
    drop(proxy);
    let queries = recorder.queries.lock().unwrap();
    assert!(queries.iter().all(|body| body.len() == queries[0].len()));
}

#[test]
fn strangers_are_refused() {
    let desk = Desk::new();
    let server = Server::start(&state(&desk), &[]);
    let mine = desk.path("mine.state");
    server.hint(&mine, &["--queries", "200"]).code(0);
    let page = "https://wallet.example.org";
    let proxy = Running::start(&server.url, &mine, &["--allow-origin", page]);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;
    let json = "Content-Type: application/json\r\n";
    let big = format!("[\"{}\"]", "x".repeat(2 << 20));
    for (start, lines, body, status) in [
        ("POST /", format!("Host: localhost:8545\r\n{json}"), call, 200),
        ("POST /", format!("Host: [::1]:8545\r\n{json}"), call, 200),
        ("POST /", format!("Host: 127.0.0.1\r\nOrigin: {page}\r\n{json}"), call, 200),
        ("OPTIONS /", format!("Host: 127.0.0.1\r\nOrigin: {page}\r\n"), "", 204),
        // A name that leads here, a page of somebody else, one from a file, a form.
        ("POST /", format!("Host: evil.example.org\r\n{json}"), call, 421),
        ("POST /", format!("Host: 127.0.0.1\r\nOrigin: https://evil.example.org\r\n{json}"), call, 403),
        ("POST /", format!("Host: 127.0.0.1\r\nOrigin: null\r\n{json}"), call, 403),
        ("OPTIONS /", "Host: 127.0.0.1\r\nOrigin: https://evil.example.org\r\n".to_owned(), "", 403),
        ("POST /", "Host: 127.0.0.1\r\nContent-Type: text/plain\r\n".to_owned(), call, 415),
        ("POST /", "Host: 127.0.0.1\r\n".to_owned(), call, 415),
        ("GET /", "Host: 127.0.0.1\r\n".to_owned(), "", 405),
        ("PUT /", format!("Host: 127.0.0.1\r\n{json}"), call, 405),
        ("POST /v1/query", format!("Host: 127.0.0.1\r\n{json}"), call, 404),
        ("POST /", format!("Host: 127.0.0.1\r\n{json}"), &big, 413),
    ] {
        let (got, head, answer) = proxy.exchange(start, &lines, body);
        assert_eq!(got, status, "{start} {lines}: {head} {answer}");
        let allows = format!("access-control-allow-origin: {page}");
        assert_eq!(head.contains("access-control-allow-origin"), lines.contains(page), "{head}");
        assert_eq!(head.contains(&allows), lines.contains(page), "{head}");
    }
    for (body, code) in [
        ("", -32700),
        ("{\"jsonrpc\":", -32700),
        ("[]", -32600),
        ("17", -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"eth_chainId\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"eth_chainId\"}", -32600),
        (&format!("[{}]", [call; 101].join(",")), -32600),
    ] {
        let answer: Value = serde_json::from_str(&proxy.post(body)).unwrap();
        assert_eq!(answer["error"]["code"], code, "{body}: {answer}");
    }
    let lines = format!("Host: 127.0.0.1\r\n{json}");
    assert_eq!(proxy.exchange("POST /", &lines, r#"{"jsonrpc":"2.0","method":"eth_chainId"}"#).0, 204);
    // Half requests, by their heads and by their bodies, keep nobody out: the oldest make room.
    let halves = [
        "POST / HTTP/1.1\r\nHo",
        "",
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n{",
    ];
    let mut held: Vec<TcpStream> = (0..150)
        .map(|i| {
            let mut stream = TcpStream::connect(&proxy.address).unwrap();
            let _ = stream.write_all(halves[i % 3].as_bytes());
            stream
        })
        .collect();
    // Who is here stays here, and still answers.
    assert_eq!(proxy.call("eth_chainId", json!([])), Ok("0x7a69".into()));
    held[0].set_read_timeout(Some(PATIENCE)).unwrap();
    let ended = held[0].read(&mut [0; 16]);
    assert!(!ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "it is still open");
    drop(held);
    let said = proxy.stop();
    assert!(!said.contains("panicked"), "{said}");
    // What cannot be is refused before anything is asked.
    let refused = |more: &[&str], code: i32, says: &[&str]| {
        let args = ["proxy", "--listen", "127.0.0.1:0", "--server", &server.url, "--state", &mine];
        pir(&[&args[..], more].concat()).code(code).says(says);
    };
    refused(&["--round", "22"], 2, &["66 queries", "at most 21"]);
    refused(&["--fallback", "http://127.0.0.1:1"], 2, &["--allow"]);
    refused(&["--fallback", "http://127.0.0.1:1", "--allow", "eth_getBalance"], 2, &["answered privately"]);
    refused(&["--fallback", "http://127.0.0.1:1", "--allow", "a b"], 2, &["separated by commas"]);
    refused(&["--every", "1ms"], 2, &["100ms"]);
    refused(&["--proxy", "http://127.0.0.1:1"], 2, &["socks5://HOST:PORT"]);
    let (flat, _) = desk.flat("flat.pir", 1000);
    let (other, flat_state) = (Server::start(&flat, &[]), desk.path("flat.state"));
    other.hint(&flat_state, &["--queries", "16"]).code(0);
    pir(&["proxy", "--listen", "127.0.0.1:0", "--server", &other.url, "--state", &flat_state])
        .code(2)
        .says(&["no state of Ethereum"]);
}

/// What is allowed goes to the node as it is, and nothing else does.
#[test]
fn a_node_gets_what_is_allowed_and_nothing_else() {
    let desk = Desk::new();
    let server = Server::start(&state(&desk), &[]);
    let mine = desk.path("mine.state");
    server.hint(&mine, &["--queries", "200"]).code(0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let node = format!("http://{}/v3/a-key-of-mine", listener.local_addr().unwrap());
    let heard: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let hears = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let Some((head, body)) = super::network::read_request(&mut reader) else { continue };
            let call: Value = serde_json::from_slice(&body).unwrap();
            let answer = match text(&call, "method") {
                "eth_gasPrice" => json!({"jsonrpc": "2.0", "id": call["id"], "result": "0x3b9aca00"}),
                _ => json!({"jsonrpc": "2.0", "id": call["id"],
                    "error": {"code": 3, "message": "execution reverted", "data": "0x08c379a0"}}),
            };
            hears.lock().unwrap().push((head.lines().next().unwrap().to_owned(), call));
            let answer = answer.to_string();
            let head =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", answer.len());
            let _ = stream.write_all(format!("{head}{answer}").as_bytes());
        }
    });
    let proxy =
        Running::start(&server.url, &mine, &["--fallback", &node, "--allow", "eth_gasPrice,eth_call"]);
    assert_eq!(proxy.call("eth_gasPrice", json!([])), Ok("0x3b9aca00".into()));
    assert_eq!(
        proxy.call("eth_call", json!([{"to": "0x1"}, "latest"])),
        Err((3, "execution reverted".to_owned()))
    );
    let call = r#"{"jsonrpc":"2.0","id":77,"method":"eth_call","params":[]}"#;
    let answer: Value = serde_json::from_str(&proxy.post(call)).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["data"]), (&77.into(), &"0x08c379a0".into()));
    let (address, account) = synthetic().account(1);
    let balance = proxy.call("eth_getBalance", json!([hex(&address), "latest"]));
    assert_eq!(balance, Ok(format!("{:#x}", account.balance).into()));
    assert_eq!(proxy.call("eth_estimateGas", json!([])).unwrap_err().0, -32601);
    assert_eq!(proxy.call("eth_chainId", json!([])), Ok("0x7a69".into()));
    let said = proxy.stop();
    assert!(said.contains("eth_gasPrice, eth_call go to --fallback as they are"), "{said}");
    assert!(!said.contains("a-key-of-mine"), "{said}");
    let heard = heard.lock().unwrap();
    let methods: Vec<&str> = heard.iter().map(|(_, call)| text(call, "method")).collect();
    assert_eq!(methods, ["eth_gasPrice", "eth_call", "eth_call"]);
    assert!(heard.iter().all(|(line, call)| line.starts_with("POST /v3/a-key-of-mine ") && call["id"] == 1));
}

/// A server that is silent, and one that is gone: calls are told so soon, and not after a minute or many attempts. A transaction that a
/// node took before it hung up is not sent to it again.
#[test]
fn what_does_not_answer_is_told_soon() {
    let desk = Desk::new();
    let server = Server::start(&state(&desk), &[]);
    let mine = desk.path("mine.state");
    server.hint(&mine, &["--queries", "200"]).code(0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let node = format!("http://{}", listener.local_addr().unwrap());
    let heard: Arc<Mutex<usize>> = Arc::default();
    let hears = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            *hears.lock().unwrap() += usize::from(super::network::read_request(&mut reader).is_some());
        }
    });
    let recorder = Recorder::before(&server);
    let allowed = ["--fallback", &node, "--allow", "eth_sendRawTransaction,eth_sendTransaction"];
    let proxy = Running::start(&recorder.url, &mine, &allowed);
    for (number, method) in ["eth_sendRawTransaction", "eth_sendTransaction"].iter().enumerate() {
        let (code, message) = proxy.call(method, json!(["0x00"])).unwrap_err();
        assert!(code == -32000 && message.contains("may have arrived"), "{code} {message}");
        assert_eq!(*heard.lock().unwrap(), number + 1);
    }
    let (address, account) = synthetic().account(1);
    let balance = || proxy.call("eth_getBalance", json!([hex(&address), "latest"]));
    assert_eq!(balance(), Ok(format!("{:#x}", account.balance).into()));
    let told_soon = |says: &str| {
        let begin = Instant::now();
        let (code, message) = balance().unwrap_err();
        assert!(code == -32000 && message.contains(says), "{code} {message}");
        // Five seconds, on a machine that is busy.
        assert!(begin.elapsed() < Duration::from_secs(15), "{:?}: {message}", begin.elapsed());
    };
    recorder.holding.store(true, Ordering::SeqCst);
    told_soon("has not answered for");
    drop(proxy);
    let proxy = Running::start(&server.url, &mine, &[]);
    let balance = || proxy.call("eth_getBalance", json!([hex(&address), "latest"]));
    assert_eq!(balance(), Ok(format!("{:#x}", account.balance).into()));
    drop(server);
    for _ in 0..3 {
        let begin = Instant::now();
        let (code, message) = balance().unwrap_err();
        assert!(code == -32000 && message.to_lowercase().contains("refused"), "{code} {message}");
        assert!(begin.elapsed() < Duration::from_secs(15), "{:?}: {message}", begin.elapsed());
    }
}

/// Programs that people have: cast, ethers, viem.
#[test]
fn wallets_of_others_take_it_for_a_node() {
    let desk = Desk::new();
    let server = Server::start(&state(&desk), &[]);
    let mine = desk.path("mine.state");
    server.hint(&mine, &["--queries", "1000"]).code(0);
    let proxy = Running::start(&server.url, &mine, &[]);
    let synthetic = synthetic();
    let (address, account) =
        (1..).map(|i| synthetic.account(i)).find(|(_, a)| a.code == 0 && a.nonce > 0).unwrap();
    let (slot, value) = synthetic.slot(3);
    let given = json!({"url": proxy.url(), "address": hex(&address), "contract": hex(&slot[..20]), "slot": hex(&slot[20..])});
    let expected = json!({
        "chain": CHAIN, "block": BLOCK, "balance": account.balance.to_string(), "nonce": account.nonce,
        "code": "0x", "storage": hex(&value),
    });
    let ethers = r"
        const { JsonRpcProvider } = require('ethers');
        const p = new JsonRpcProvider(given.url);
        const chain = Number((await p.getNetwork()).chainId), block = await p.getBlockNumber();
        const [balance, nonce, code, storage] = await Promise.all([
            p.getBalance(given.address), p.getTransactionCount(given.address), p.getCode(given.address),
            p.getStorage(given.contract, given.slot)]);
        show({ chain, block, balance: balance.toString(), nonce, code, storage });
        p.destroy();";
    let viem = r"
        const { createPublicClient, http } = require('viem');
        const c = createPublicClient({ transport: http(given.url, { batch: true }) });
        const [chain, block, balance, nonce, code, storage] = await Promise.all([
            c.getChainId(), c.getBlockNumber(), c.getBalance(given), c.getTransactionCount(given), c.getCode(given),
            c.getStorageAt({ address: given.contract, slot: given.slot })]);
        show({ chain, block: Number(block), balance: balance.toString(), nonce, code: code ?? '0x', storage });";
    for (library, script) in [("ethers", ethers), ("viem", viem)] {
        if let Some(answer) = foreign::node(library, script, &given) {
            assert_eq!(answer, expected, "{library}");
        }
    }
    let Some(folder) = foreign::folder("node_modules/.bin/cast") else { return };
    let cast = |args: &[&str]| {
        let mut command = Command::new(folder.join("node_modules/.bin/cast"));
        let output = command.args(args).args(["--rpc-url", &proxy.url()]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let address = text(&given, "address");
    assert_eq!(cast(&["chain-id"]), CHAIN.to_string());
    assert_eq!(cast(&["block-number"]), BLOCK.to_string());
    assert_eq!(cast(&["balance", address]), account.balance.to_string());
    assert_eq!(cast(&["nonce", address]), account.nonce.to_string());
    assert_eq!(cast(&["code", address]), "0x");
    let (contract, slot) = (text(&given, "contract"), text(&given, "slot"));
    assert_eq!(cast(&["rpc", "eth_getStorageAt", contract, slot, "latest"]), format!("\"{}\"", hex(&value)));
}
