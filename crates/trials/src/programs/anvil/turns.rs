//! Requests to a node one after the other.
//!
//! Anvil 1.7.1 locks up for good where a block is traced while another is made: its trace takes the lock of the chain for reading,
//! and again within (`mined_geth_trace_transaction`, `replay_tx_with_inspector`), and who makes the block waits for it in between. With
//! six who trace it took 379 blocks; with one there was none in 18,000, and one in the runs of these tests before.

use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::programs::PATIENCE;

/// Who may ask a node, and where.
pub struct Turns {
    pub node: SocketAddr,
    turn: Arc<Mutex<()>>,
    door: OnceLock<SocketAddr>,
    handed_on: Arc<AtomicU64>,
}

impl Turns {
    pub fn new(node: SocketAddr) -> Turns {
        Turns { node, turn: Arc::default(), door: OnceLock::new(), handed_on: Arc::default() }
    }

    /// How many requests came in by the door and were answered.
    pub fn handed_on(&self) -> u64 {
        self.handed_on.load(Ordering::SeqCst)
    }

    /// The node is nobody else's until this is dropped.
    pub fn take(&self) -> MutexGuard<'_, ()> {
        // A test that failed in its turn says what is wrong by itself.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the node is asked by those who are to wait for their turns. The door stays open as long as this process runs; once the
    /// node is gone, nobody who comes is answered.
    pub fn door(&self) -> SocketAddr {
        *self.door.get_or_init(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let (address, node) = (listener.local_addr().unwrap(), self.node);
            let (turn, handed_on) = (Arc::clone(&self.turn), Arc::clone(&self.handed_on));
            std::thread::spawn(move || {
                for client in listener.incoming().map_while(Result::ok) {
                    let (turn, handed_on) = (Arc::clone(&turn), Arc::clone(&handed_on));
                    std::thread::spawn(move || hand_on(client, node, &turn, &handed_on));
                }
            });
            address
        })
    }
}

/// Hands on one request after the other of a connection, and their answers.
fn hand_on(client: TcpStream, node: SocketAddr, turn: &Mutex<()>, handed_on: &AtomicU64) -> Result<()> {
    let mut requests = BufReader::new(client.try_clone()?);
    let mut client = client;
    while let Some(body) = request(&mut requests)? {
        let answer = {
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            post(node, &body)?
        };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
        client.write_all(format!("{head} {}\r\n\r\n{answer}", answer.len()).as_bytes())?;
        handed_on.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}

/// The body of the next request, if there is one more.
fn request(from: &mut impl BufRead) -> Result<Option<String>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        assert!(!line.starts_with("transfer-encoding:"), "{line}");
        if line.is_empty() {
            let mut body = vec![0; length];
            from.read_exact(&mut body)?;
            return Ok(Some(String::from_utf8(body).expect("JSON")));
        }
    }
}

/// What the node answers to this.
pub fn post(node: SocketAddr, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(node)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length:";
    stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer of HTTP");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    Ok(body.to_owned())
}
