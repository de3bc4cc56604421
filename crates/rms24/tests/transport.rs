//! Between a client and its server: connections that stay, connections that were closed meanwhile, and a SOCKS proxy.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::support::running::{Running, start};
use warpsmith_rms24::remote::Remote;
use warpsmith_rms24::server::{Limits, Role};

/// Passes bytes on to a server, and keeps all connections that came and all that was said on them.
pub struct Forwarder {
    pub address: SocketAddr,
    pub heard: Arc<Mutex<Vec<u8>>>,
    came: Arc<Mutex<Vec<TcpStream>>>,
}

/// A stream of which is kept what it gives.
struct Overheard(TcpStream, Arc<Mutex<Vec<u8>>>);

impl Read for Overheard {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.lock().unwrap().extend_from_slice(&buffer[..read]);
        Ok(read)
    }
}

impl Forwarder {
    /// `greet` speaks with whoever comes before the server does.
    pub fn before(server: &Running, greet: impl Fn(&mut TcpStream) + Send + 'static) -> Forwarder {
        let (listener, target) = (TcpListener::bind("127.0.0.1:0").unwrap(), server.address);
        let (address, came) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<TcpStream>>>::default());
        let (kept, heard) = (Arc::clone(&came), Arc::<Mutex<Vec<u8>>>::default());
        let hears = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                kept.lock().unwrap().push(stream.try_clone().unwrap());
                greet(&mut stream);
                let to = TcpStream::connect(target).unwrap();
                let asks = Overheard(stream.try_clone().unwrap(), Arc::clone(&hears));
                pass(asks, to.try_clone().unwrap());
                pass(to, stream);
            }
        });
        Forwarder { address, heard, came }
    }

    fn count(&self) -> usize {
        self.came.lock().unwrap().len()
    }

    /// Closes what is open.
    fn hang_up(&self) {
        self.came.lock().unwrap().iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }
}

fn pass(mut from: impl Read + Send + 'static, mut to: TcpStream) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// Offers, changes and batches of queries, and what came is right.
fn talk(server: &Running, remote: &Remote, client: &mut warpsmith_rms24::Client) {
    assert_eq!(remote.offer().unwrap().epoch, server.live.epoch());
    remote.synchronise(client).unwrap();
    for indices in [&[1, 2, 39_999][..], &[2], &[7; 20]] {
        let asked = client.ask(indices).unwrap();
        for (index, fetched) in indices.iter().zip(remote.fetch(client, &asked).unwrap()) {
            assert_eq!(fetched.unwrap().entry, server.live.entry(*index).unwrap());
        }
    }
}

#[test]
fn one_connection_serves_many_requests_and_another_takes_its_place() {
    let server = start(Role::Library, Limits::default());
    let mut client = server.client("state");
    let forwarder = Forwarder::before(&server, |_| ());
    let remote = Remote::new(&format!("http://{}", forwarder.address)).unwrap();
    talk(&server, &remote, &mut client);
    talk(&server, &remote.clone(), &mut client);
    assert_eq!(forwarder.count(), 1);
    // The server, or something on the way, closed it: that is not the caller's business.
    for closed in 2..5 {
        forwarder.hang_up();
        talk(&server, &remote, &mut client);
        assert_eq!(forwarder.count(), closed);
    }
    // Refusals leave it open too.
    let refused = remote.updates(client.params(), 99).unwrap_err().to_string();
    assert!(refused.contains("99"), "{refused}");
    talk(&server, &remote, &mut client);
    assert_eq!(forwarder.count(), 4);
}

#[test]
fn a_socks_proxy_gets_the_name_and_nothing_is_resolved_here() {
    let server = start(Role::Library, Limits::default());
    let mut client = server.client("state");
    let names = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&names);
    let tor = Forwarder::before(&server, move |stream| {
        let mut greeting = [0; 3];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(greeting, [5, 1, 0], "version 5, without a password");
        stream.write_all(&[5, 0]).unwrap();
        let mut head = [0; 5];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(head[..4], [5, 1, 0, 3], "connect to a name");
        let mut name = vec![0; usize::from(head[4]) + 2];
        stream.read_exact(&mut name).unwrap();
        let port = u16::from_be_bytes(name.split_off(name.len() - 2).try_into().unwrap());
        heard.lock().unwrap().push(format!("{}:{port}", String::from_utf8(name).unwrap()));
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
    });
    let remote = Remote::new("http://warpsmithlibrary.onion").unwrap();
    let remote = remote.through(&format!("socks5://{}", tor.address)).unwrap();
    talk(&server, &remote, &mut client);
    assert_eq!(*names.lock().unwrap(), ["warpsmithlibrary.onion:80"]);
    // A proxy that is not there, or is something else, is named.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for proxy in [nobody, server.address] {
        let remote = Remote::new("http://a.onion").unwrap().through(&format!("socks5://{proxy}")).unwrap();
        let told = remote.offer().unwrap_err().to_string();
        assert!(told.contains(&format!("through the proxy at {proxy}")), "{told}");
    }
}
