//! New hints while a wallet asks: nobody waits for them where those there are do, and where they do not it is said.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use serde_json::json;
use warpsmith_eth_state::import::Synthetic;

use crate::harness::{Desk, PATIENCE, Server, pir, signal};
use crate::network::read_request;
use crate::proxy::Running;

/// Passes requests on to a server; those for its blocks only while it is open, so that new hints take as long as a test wants.
struct Gate {
    url: String,
    open: Arc<AtomicBool>,
}

impl Gate {
    fn before(server: &Server) -> Gate {
        let (listener, target) = (TcpListener::bind("127.0.0.1:0").unwrap(), server.address());
        let gate = Gate { url: format!("http://{}", listener.local_addr().unwrap()), open: Arc::default() };
        let open = Arc::clone(&gate.open);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, open) = (stream.unwrap(), Arc::clone(&open));
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let Some((head, body)) = read_request(&mut reader) else { return };
                    while head.starts_with("GET /v1/blocks") && !open.load(Ordering::SeqCst) {
                        std::thread::sleep(std::time::Duration::from_millis(20));
                    }
                    let mut to = TcpStream::connect(target).unwrap();
                    to.write_all(head.as_bytes()).unwrap();
                    to.write_all(&body).unwrap();
                    let _ = std::io::copy(&mut to, &mut stream);
                });
            }
        });
        gate
    }

    fn set(&self, open: bool) {
        self.open.store(open, Ordering::SeqCst);
    }
}

/// What a proxy says, line by line.
fn lines_of(proxy: &mut Running) -> Receiver<String> {
    let said = BufReader::new(proxy.child.stderr.take().unwrap());
    let (send, told) = channel();
    std::thread::spawn(move || said.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    told
}

#[track_caller]
fn wait_for(told: &Receiver<String>, part: &str) {
    let mut lines = std::iter::from_fn(|| told.recv_timeout(PATIENCE).ok());
    assert!(lines.any(|line| line.contains(part)), "nothing says: {part}");
}

/// A state of 480 queries, 40 rounds, that is asked for 105: new hints are begun before the old are used up, and while they are made all
/// is answered.
#[test]
fn hints_are_made_before_they_are_used_up() {
    let desk = Desk::new();
    let (database, path) = (desk.path("state.pir"), desk.path("my.state"));
    let head = ["--chain-id", "31337", "--block-number", "4711", "--block-hash", &"11".repeat(32)];
    pir(&[&["build", &database, "--synthetic", "2000", "--seed", "5"], &head[..]].concat()).code(0);
    let server = Server::start(&database, &[]);
    server.hint(&path, &["--queries", "480"]).code(0);
    let (gate, synthetic) = (Gate::before(&server), Synthetic::new(2000, 5).unwrap());
    let (mut proxy, _) = Running::start_with(&gate.url, &path, &[]);
    let told = lines_of(&mut proxy);
    let mut asked = 0;
    let mut ask = |times: u32| {
        for number in asked..asked + times {
            let (address, account) = synthetic.account(number);
            let address = format!("0x{}", const_hex::encode(address));
            let balance = proxy.call("eth_getBalance", json!([address, "latest"]));
            assert_eq!(balance, Ok(format!("{:#x}", account.balance).into()), "{number}");
        }
        asked += times;
    };
    for _ in 0..3 {
        gate.set(false);
        // Three quarters of what there is, and a little more.
        ask(31);
        wait_for(&told, "new hints are made meanwhile");
        ask(4);
        gate.set(true);
        wait_for(&told, "new hints are in use");
    }
    signal(&proxy.child, "INT");
    assert_eq!(proxy.child.wait().unwrap().code(), Some(130));
    let about = pir(&["info", &path, "--json"]).code(0).json().remove(0);
    assert!(about["remaining"].as_u64() > Some(360), "{about}");
}

/// The table grows, and with the hints there are nothing can be looked up any more: who asks is told so while new ones are made, what needs
/// no look-up is answered, and afterwards everything is.
#[test]
fn while_a_grown_table_has_no_hints_it_is_said() {
    let desk = Desk::new();
    let (database, path) = (desk.path("state.pir"), desk.path("my.state"));
    let head = ["--chain-id", "31337", "--block-number", "7", "--block-hash", &"11".repeat(32)];
    pir(&[&["build", &database, "--synthetic", "60", "--names"], &head[..]].concat()).code(0);
    let server = Server::start(&database, &[]);
    server.hint(&path, &["--queries", "960"]).code(0);
    let gate = Gate::before(&server);
    let (mut proxy, _) = Running::start_with(&gate.url, &path, &[]);
    let told = lines_of(&mut proxy);
    let address = |i: u32| format!("0x{i:040x}");
    let balance = |i: u32| proxy.call("eth_getBalance", json!([address(i), "latest"]));
    assert_eq!(balance(5), Ok("0x0".into()));
    let changes: String = (1..200u32).map(|i| format!("{} {i},1,0\n", address(i))).collect();
    pir(&["update", &database, &desk.write("accounts", changes)]).code(0).says(&["larger table"]);
    wait_for(&told, "new hints are made meanwhile");
    let (_, reason) = balance(5).unwrap_err();
    assert!(reason.contains("larger table") && reason.contains("ask again"), "{reason}");
    assert_eq!(proxy.call("eth_chainId", json!([])), Ok("0x7a69".into()));
    gate.set(true);
    wait_for(&told, "new hints are in use");
    for i in [1, 5, 199] {
        assert_eq!(balance(i), Ok(format!("{i:#x}").into()));
    }
    assert_eq!(balance(200), Ok("0x0".into()));
    assert_eq!(proxy.call("eth_chainId", json!([])), Ok("0x7a69".into()));
    drop(proxy);
}

/// An estimate times what comes, and waits for that: a server that takes its time to begin is not a person who ends it.
#[test]
fn an_estimate_waits_for_the_first_bytes() {
    let desk = Desk::new();
    let (database, _) = desk.flat("data.pir", 200_000);
    let server = Server::start(&database, &[]);
    let (gate, path) = (Gate::before(&server), desk.path("state"));
    let open = Arc::clone(&gate.open);
    // Longer than what is timed.
    let opens = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(3));
        open.store(true, Ordering::SeqCst);
    });
    pir(&["hint", "--server", &gate.url, "--state", &path, "--estimate", "--device", "cpu"]).code(0);
    opens.join().unwrap();
}
