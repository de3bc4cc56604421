//! A server in this process, and plain requests to it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use warpsmith_hash::Lanes;
use warpsmith_rms24::database::{Builder, Description, SEGMENT_BYTES};
use warpsmith_rms24::hints::{self, measure::pseudorandom};
use warpsmith_rms24::server::{Limits, Role, Server};
use warpsmith_rms24::updates::Live;
use warpsmith_rms24::{Choice, Client, Params, Version};

/// A server on a port of its own; ends with the value.
pub struct Running {
    pub address: SocketAddr,
    pub metrics: SocketAddr,
    pub live: Arc<Live>,
    pub folder: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

pub const ENTRIES: u64 = 40_000;

/// A server on any address of this machine.
pub fn start(role: Role, limits: Limits) -> Running {
    start_with(role, limits, |server| server)
}

/// The same, with something more.
pub fn start_with(role: Role, limits: Limits, with: impl FnOnce(Server) -> Server) -> Running {
    start_on(Choice::new(ENTRIES, 40), role, limits, with)
}

/// The same for a database of another shape.
pub fn start_on(choice: Choice, role: Role, limits: Limits, with: impl FnOnce(Server) -> Server) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let mut builder = Builder::new(&path, choice, 0, None).unwrap();
    let bytes = builder.params().entries() as usize * builder.params().entry_size();
    builder.push(&pseudorandom(bytes)).unwrap();
    builder.finish().unwrap();
    let live = Arc::new(Live::open(&path, Lanes::detect(), 10_000).unwrap());
    let (stop, stopped) = oneshot::channel();
    let (say, address) = std::sync::mpsc::channel();
    let watchers = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let metrics = watchers.local_addr().unwrap();
    let server = with(Server::new(live.clone(), role, limits)).with_metrics(watchers);
    let thread = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
            say.send(listener.local_addr().unwrap().port()).unwrap();
            server.serve(listener, async { drop(stopped.await) }).await.unwrap();
        });
    });
    let address = SocketAddr::from(([127, 0, 0, 1], address.recv().unwrap()));
    Running { address, metrics, live, folder, stop: Some(stop), thread: Some(thread) }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            drop(self.stop.take());
            thread.join().expect("the server ended well");
        }
    }
}

impl Running {
    /// Ends it, and says how long that took.
    pub fn end(mut self) -> Duration {
        let begin = Instant::now();
        drop(self.stop.take());
        self.thread.take().unwrap().join().expect("the server ended well");
        begin.elapsed()
    }
}

/// An answer.
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// Sends bytes and reads until the connection ends.
pub fn exchange(address: SocketAddr, request: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    // A server that refuses a body may close before it has read it all; its reply can be read all the same.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes)
}

pub fn parse(bytes: &[u8]) -> Reply {
    let end =
        bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or_else(|| panic!("no reply in {bytes:?}"));
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head, body: bytes[end + 4..].to_vec() }
}

pub fn get(address: SocketAddr, path: &str, headers: &str) -> Reply {
    exchange(
        address,
        format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n").as_bytes(),
    )
}

pub fn post(address: SocketAddr, path: &str, body: &[u8]) -> Reply {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    exchange(address, &[head.as_bytes(), body].concat())
}

impl Running {
    /// The offline phase over the network, in pieces, each from where the last one broke off.
    pub fn client(&self, name: &str) -> Client {
        let info = get(self.address, "/v1/info", "");
        assert_eq!(info.status, 200);
        assert!(info.head.contains("warpsmith-epoch: 0"), "{}", info.head);
        let description = Description::read("info", &info.body).unwrap();
        let digests = get(self.address, "/v1/digests", "").body;
        assert_eq!(description.identity_of(&digests), description.identity);
        let params =
            Params::new(Choice { backups: Some(200), lambda: 40, ..description.params.choice() }).unwrap();
        let (mut blocks, whole) = (Vec::new(), description.data_bytes() as usize);
        while blocks.len() < whole {
            let range = format!("Range: bytes={}-{}\r\n", blocks.len(), blocks.len() + 700_000);
            let part = get(self.address, "/v1/blocks", &range);
            assert_eq!(part.status, 206);
            let end = (blocks.len() + 700_000).min(whole - 1);
            assert!(
                part.head.contains(&format!("content-range: bytes {}-{end}/{whole}", blocks.len())),
                "{}",
                part.head
            );
            blocks.extend_from_slice(&part.body);
        }
        assert_eq!(blocks, self.live.base().read_all().unwrap());
        for (segment, digest) in blocks.chunks(SEGMENT_BYTES).zip(digests.chunks(32)) {
            assert_eq!(warpsmith_hash::sha256::sha256(segment), *digest);
        }
        let entries = &blocks[..ENTRIES as usize * 40];
        let (key, hints) = hints::offline(&params, Lanes::detect(), 1, |push| push(entries)).unwrap();
        let version = Version { database: description.identity, epoch: description.epoch };
        let path = self.folder.path().join(name);
        Client::create(&path, params, version, key, hints, Lanes::detect()).unwrap()
    }

    pub fn fetch(&self, client: &mut Client, indices: &[u64]) {
        let asked = client.ask(indices).unwrap();
        let reply = post(self.address, "/v1/query", &asked.body);
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
        for (index, result) in indices.iter().zip(client.receive(&asked, &reply.body).unwrap()) {
            assert_eq!(result.unwrap().entry, self.live.entry(*index).unwrap());
        }
    }
}
