//! What may happen between a client and its server: the client dies with a query on its way, the server is started again, TLS, a
//! stranger's certificate.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use warpsmith_trials::free_port;

use crate::harness::{BINARY, Desk, PATIENCE, Run, Server, assert_entries, pir, pir_with};

/// Passes requests on to a server, remembers the bodies of queries, and on wish lets them go unanswered.
pub(super) struct Proxy {
    pub(super) url: String,
    pub(super) holding: Arc<AtomicBool>,
    pub(super) queries: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Proxy {
    pub(super) fn before(server: &Server) -> Proxy {
        let (listener, target) = (TcpListener::bind("127.0.0.1:0").unwrap(), server.address());
        let url = format!("http://{}", listener.local_addr().unwrap());
        let proxy = Proxy { url, holding: Arc::default(), queries: Arc::default() };
        let (holding, queries) = (Arc::clone(&proxy.holding), Arc::clone(&proxy.queries));
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let Some((head, body)) = read_request(&mut reader) else { continue };
                if head.starts_with("POST /v1/query") {
                    queries.lock().unwrap().push(body.clone());
                    if holding.load(Ordering::SeqCst) {
                        held.push(stream);
                        continue;
                    }
                }
                let mut to = TcpStream::connect(target).unwrap();
                to.write_all(head.as_bytes()).unwrap();
                to.write_all(&body).unwrap();
                let _ = std::io::copy(&mut to, &mut stream);
            }
        });
        proxy
    }
}

/// One request, which asks for an answer that ends its connection: so whoever passes it on sees where the answer ends.
pub(super) fn read_request(from: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    from.read_exact(&mut body).ok()?;
    let head = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    Some((head, body))
}

#[test]
fn a_client_that_is_killed_sends_the_same_query_again() {
    let desk = Desk::new();
    let (database, bytes) = desk.flat("data.pir", 1000);
    let server = Server::start(&database, &[]);
    let state = desk.path("state");
    server.hint(&state, &["--queries", "100"]).code(0);
    let proxy = Proxy::before(&server);
    let get = |wanted: &[&str]| {
        pir(&[&["get", "--server", &proxy.url, "--state", &state, "--json"], wanted].concat())
    };
    for round in 0..4usize {
        proxy.holding.store(true, Ordering::SeqCst);
        let before = proxy.queries.lock().unwrap().len();
        let mut command = Command::new(BINARY);
        command.args(["get", "--server", &proxy.url, "--state", &state, "5", "6"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        while proxy.queries.lock().unwrap().len() == before {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Nobody else can use the state meanwhile.
        if round == 0 {
            get(&["5"]).code(4).says(&["in use by another process"]);
        }
        child.kill().unwrap();
        assert!(child.wait_with_output().unwrap().stdout.is_empty());
        let about = pir(&["info", &state, "--json"]).code(0).json().remove(0);
        assert_eq!((&about["waiting"], &about["made"]), (&2.into(), &(5 * round as u64 + 2).into()));
        proxy.holding.store(false, Ordering::SeqCst);
        if round == 2 {
            // An epoch begins before the client comes back: the server answers as of the old one.
            pir_with(&["update", &database, "-"], format!("999 {}\n", "ee".repeat(24)).as_bytes()).code(0);
            server.wait_for_epoch(1);
        }
        let run = get(&["5", "900", "6"]).says(&["2 queries of an interrupted run were sent again"]);
        assert_entries(run, &[5, 900, 6], &bytes);
        let queries = proxy.queries.lock().unwrap();
        assert_eq!(queries.len(), before + 3);
        assert_eq!(queries[before], queries[before + 1], "the same bytes");
        assert_ne!(queries[before], queries[before + 2]);
    }
}

/// A server that is told to end, while clients are at work and somebody has sent half of a request, and started again at once: whoever
/// asks meanwhile waits for it, and reads what is there.
#[test]
fn a_restart_harms_nobody() {
    let desk = Desk::new();
    let (database, bytes) = desk.flat("data.pir", 1000);
    // On a port that nobody is given by chance while the server is away. Clients of one address ask it all the time.
    let address = format!("127.0.0.1:{}", free_port());
    let start = || Server::listen(&database, &address, &["--rate", "100000"]);
    let mut server = start();
    let url = server.url.clone();
    let states: Vec<String> = (0..3).map(|n| desk.path(&format!("{n}.state"))).collect();
    for state in &states {
        server.hint(state, &["--queries", "4000"]).code(0);
    }
    for _ in 0..3 {
        let (answered, answers) = mpsc::channel();
        let (under_way, is_back) = (AtomicUsize::new(0), AtomicBool::new(false));
        server = std::thread::scope(|scope| {
            for state in &states {
                let (answered, url, bytes) = (answered.clone(), &url, &bytes);
                let (under_way, is_back) = (&under_way, &is_back);
                scope.spawn(move || {
                    for turn in 0.. {
                        // The last asks the server that was started again.
                        let is_last = is_back.load(Ordering::SeqCst);
                        let wanted = [turn % 1000, 999, 17 * turn % 1000];
                        let [a, b, c] = wanted.map(|index: usize| index.to_string());
                        under_way.fetch_add(1, Ordering::SeqCst);
                        let run = pir(&["get", "--server", url, "--state", state, "--json", &a, &b, &c]);
                        under_way.fetch_sub(1, Ordering::SeqCst);
                        assert_entries(run, &wanted, bytes);
                        answered.send(()).unwrap();
                        if is_last {
                            break;
                        }
                    }
                });
            }
            drop(answered);
            // Whatever fails from here on, the clients end too: their server is gone.
            for _ in 0..2 * states.len() {
                answers.recv().expect("somebody is answered");
            }
            let mut half = TcpStream::connect(server.address()).unwrap();
            half.write_all(b"GET /v1/info HTTP/1.1\r\nHost").unwrap();
            // Connections are taken in the order in which they come: with one after it answered, that one is in.
            server.wait_for_epoch(0);
            let (code, said) = server.stop("TERM");
            assert_eq!(code, Some(130), "{said}");
            assert!(under_way.load(Ordering::SeqCst) > 0, "nobody was at work while the server was away");
            let server = start();
            is_back.store(true, Ordering::SeqCst);
            server
        });
    }
}

/// Ends TLS before a server, as a proxy does, with the certificate of the tests.
fn tls_before(server: &Server) -> u16 {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let (listener, target) = (TcpListener::bind("0.0.0.0:0").unwrap(), server.address());
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut tls = BufReader::new(rustls::StreamOwned::new(connection, stream.unwrap()));
            let Some((head, body)) = read_request(&mut tls) else { continue };
            let mut to = TcpStream::connect(target).unwrap();
            to.write_all(&[head.as_bytes(), &body].concat()).unwrap();
            let _ = std::io::copy(&mut to, tls.get_mut());
        }
    });
    port
}

#[test]
fn servers_behind_tls_are_reached_and_strangers_are_not() {
    let desk = Desk::new();
    let (database, bytes) = desk.flat("data.pir", 1000);
    let server = Server::start(&database, &[]);
    let port = tls_before(&server);
    let (state, trusted) = (desk.path("state"), desk.write("cert.pem", include_bytes!("tls/cert.pem")));
    let run = |host: &str, trusted: &str, args: &[&str]| -> Run {
        let mut command = assert_cmd::Command::new(BINARY);
        let url = format!("https://{host}:{port}");
        command.env("SSL_CERT_FILE", trusted).env_remove("SSL_CERT_DIR").args([args[0], "--server", &url]);
        command.args(["--state", &state, "--json"]).args(&args[1..]).timeout(PATIENCE);
        command.output().unwrap().into()
    };
    run("localhost", &trusted, &["hint", "--device", "cpu", "--queries", "16"]).code(0);
    assert_entries(run("127.0.0.1", &trusted, &["get", "999", "3"]), &[999, 3], &bytes);
    // A name the certificate does not have, and nobody to trust.
    run("127.0.0.2", &trusted, &["get", "3"]).code(4).says(&["certificate"]);
    run("localhost", &desk.write("none.pem", ""), &["get", "3"]).code(4).says(&["SSL_CERT_FILE"]);
}
