//! Databases that are downloaded: over several connections, from servers that are busy, break off, fold, or lie.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::running::{ENTRIES, Running, start, start_on};
use warpsmith_rms24::database::{Database, Description, SEGMENT_BYTES};
use warpsmith_rms24::remote::Remote;
use warpsmith_rms24::server::{Limits, Role};
use warpsmith_rms24::updates::{Keep, fold};
use warpsmith_rms24::{Choice, Error};

/// Some forty segments, the last of which is short.
const MANY: u64 = 1_000_003;

fn many(limits: Limits) -> Running {
    start_on(Choice::new(MANY, 40), Role::Library, limits, |server| server)
}

fn remote(address: SocketAddr) -> Remote {
    Remote::new(&format!("http://{address}")).unwrap()
}

/// All that is streamed, with how much of it came before an error.
fn download(remote: &Remote, description: &Description) -> (Vec<u8>, Result<(), Error>) {
    let mut bytes = Vec::new();
    let result = remote.entries(description, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    });
    (bytes, result)
}

/// The entries of a database, without what only fills its last blocks.
fn entries_of(database: &Database) -> Vec<u8> {
    let params = &database.description().params;
    let mut bytes = database.read_all().unwrap();
    bytes.truncate(params.entries() as usize * params.entry_size());
    bytes
}

/// Passes connections on to a server. What comes back is changed by `alter`, which has the number of the connection, the bytes
/// it passed before, and what comes; where it says false the connection ends.
fn between(
    target: SocketAddr,
    alter: impl Fn(usize, usize, &mut Vec<u8>) -> bool + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let alter = Arc::new(alter);
    std::thread::spawn(move || {
        for (i, near) in listener.incoming().enumerate() {
            let (mut near, mut far) = (near.unwrap(), TcpStream::connect(target).unwrap());
            let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            let alter = Arc::clone(&alter);
            std::thread::spawn(move || {
                let (mut buffer, mut passed) = (vec![0; 1 << 14], 0);
                while let Ok(length @ 1..) = far.read(&mut buffer) {
                    let mut bytes = buffer[..length].to_vec();
                    let goes_on = alter(i, passed, &mut bytes);
                    passed += length;
                    if near.write_all(&bytes).is_err() || !goes_on {
                        break;
                    }
                }
                let _ = (near.shutdown(Shutdown::Both), far.shutdown(Shutdown::Both));
            });
        }
    });
    address
}

/// With the limits as they are; where a host may have one connection; and where it may make few requests a second.
#[test]
fn a_download_has_every_segment_in_its_place() {
    let few = Limits { rate: 20.0, burst: 4.0, ..Limits::default() };
    for limits in [Limits::default(), Limits { address_connections: 1, ..Limits::default() }, few] {
        let server = many(limits);
        let base = server.live.base();
        let (bytes, result) = download(&remote(server.address), base.description());
        result.unwrap();
        assert!(bytes == entries_of(&base));
    }
}

/// A line on which every byte takes its time, and many can be on the way: connections are kept, and several are used at once.
#[test]
fn a_long_line_is_not_a_slow_one() {
    const ONE_WAY: Duration = Duration::from_millis(60);
    let server = many(Limits::default());
    let base = server.live.base();
    let (opened, at_once) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let address = long_line(server.address, ONE_WAY, Arc::clone(&opened), Arc::clone(&at_once));
    let (bytes, result) = download(&remote(address), base.description());
    result.unwrap();
    assert!(bytes == entries_of(&base));
    let (opened, at_once) = (opened.load(Ordering::SeqCst), at_once.load(Ordering::SeqCst));
    // Forty requests or so.
    assert!(opened <= 9 && at_once >= 2, "{opened} connections, {at_once} answers at once");
}

/// Passes connections on, each byte after a while. Counts them, and the most that were answered at the same time.
fn long_line(
    target: SocketAddr,
    one_way: Duration,
    opened: Arc<AtomicUsize>,
    at_once: Arc<AtomicUsize>,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let pass = move |mut from: TcpStream, mut to: TcpStream, each: Box<dyn Fn() + Send>| {
        let (send, receive) = channel::<(Instant, Vec<u8>)>();
        std::thread::spawn(move || {
            for (due, bytes) in receive {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                if to.write_all(&bytes).is_err() {
                    return;
                }
                each();
            }
            let _ = to.shutdown(Shutdown::Write);
        });
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                if send.send((Instant::now() + one_way, buffer[..length].to_vec())).is_err() {
                    return;
                }
            }
        });
    };
    std::thread::spawn(move || {
        // When each connection passed something last.
        let lately = Arc::new(Mutex::new(Vec::<Option<Instant>>::new()));
        for (i, near) in listener.incoming().enumerate() {
            let (near, far) = (near.unwrap(), TcpStream::connect(target).unwrap());
            opened.fetch_add(1, Ordering::SeqCst);
            lately.lock().unwrap().push(None);
            let (lately, at_once) = (Arc::clone(&lately), Arc::clone(&at_once));
            let each = Box::new(move || {
                let mut lately = lately.lock().unwrap();
                lately[i] = Some(Instant::now());
                let busy = lately.iter().flatten().filter(|last| last.elapsed() < 2 * one_way).count();
                at_once.fetch_max(busy, Ordering::SeqCst);
            });
            pass(near.try_clone().unwrap(), far.try_clone().unwrap(), Box::new(|| ()));
            pass(far, near, each);
        }
    });
    address
}

/// Connections that break off in the middle of a segment, again and again, and some that bring nothing.
#[test]
fn a_download_goes_on_where_it_broke_off() {
    let server = many(Limits::default());
    let base = server.live.base();
    let counted = Arc::new(AtomicUsize::new(0));
    let connections = Arc::clone(&counted);
    // The first is for the digests.
    let address = between(server.address, move |i, passed, bytes| {
        connections.fetch_max(i + 1, Ordering::SeqCst);
        if i % 3 == 2 {
            bytes.clear();
            return false;
        }
        i == 0 && passed < 2_000 || i > 0 && passed < 5 << 20
    });
    let (bytes, result) = download(&remote(address), base.description());
    result.unwrap();
    assert!(bytes == entries_of(&base));
    assert!(counted.load(Ordering::SeqCst) >= 8, "{counted:?}");
}

/// A proxy before the server says that nobody is there, as while that is started again.
#[test]
fn a_server_that_is_away_for_a_moment_is_waited_for() {
    let server = many(Limits::default());
    let base = server.live.base();
    let refused = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refused);
    let address = between(server.address, move |i, passed, bytes| {
        // The first is for the digests.
        if passed > 0 || !(1..5).contains(&i) {
            return true;
        }
        count.fetch_add(1, Ordering::SeqCst);
        *bytes = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n".to_vec();
        false
    });
    let (bytes, result) = download(&remote(address), base.description());
    result.unwrap();
    assert!(bytes == entries_of(&base));
    assert!(refused.load(Ordering::SeqCst) >= 1, "{refused:?}");
}

/// A byte that is changed on the way, in each of several places: nothing of its segment is handed over,
/// and nothing after it.
#[test]
fn a_changed_byte_ends_a_download_at_its_segment() {
    let server = many(Limits::default());
    let base = server.live.base();
    let whole = entries_of(&base);
    for place in [0, SEGMENT_BYTES, 17 * SEGMENT_BYTES + 5, whole.len() - 16] {
        // Found by what is there, wherever it is passed: entries of random bytes are like no other.
        let sign = whole[place..place + 16].to_vec();
        let address = between(server.address, move |_, _, bytes| {
            if let Some(at) = bytes.windows(16).position(|bytes| bytes == sign) {
                bytes[at] ^= 1;
            }
            true
        });
        let segment = place / SEGMENT_BYTES;
        let mut told = String::new();
        // Where the sixteen bytes came in two parts nothing was changed, and it is tried again.
        for _ in 0..50 {
            let (bytes, result) = download(&remote(address), base.description());
            assert!(bytes[..] == whole[..bytes.len()]);
            let Err(error) = result else { continue };
            // Some segments before it may have come with it.
            let before = segment * SEGMENT_BYTES;
            assert!((before.saturating_sub(32 * SEGMENT_BYTES)..=before).contains(&bytes.len()));
            told = error.to_string();
            break;
        }
        assert!(
            told.contains(&format!("segment {segment} of the blocks is not what its digest says")),
            "{told}"
        );
    }
}

/// Who takes the entries says no: the error comes back, and no thread stays behind to wait for a server.
#[test]
fn a_download_ends_when_nobody_wants_it() {
    let server = many(Limits::default());
    for after in [0, 3, 20] {
        let mut taken = 0;
        let result = remote(server.address).entries(server.live.base().description(), &mut |_| {
            taken += 1;
            if taken > after { Err(Error::Mismatch("enough".to_owned())) } else { Ok(()) }
        });
        assert!(result.unwrap_err().to_string().contains("enough"));
        assert_eq!(taken, after + 1);
    }
}

/// Who streams a file has it to its end, whatever is folded meanwhile; and who asks for the present one gets that.
#[test]
fn a_download_goes_on_across_a_fold() {
    let server = start(Role::Library, Limits::default());
    let path = server.folder.path().join("data");
    let remote = remote(server.address);
    let fold_one = |byte: u8| {
        let update = server.live.difference(&[(3, vec![byte; 40]), (ENTRIES - 1, vec![byte; 40])]).unwrap();
        server.live.update(update).unwrap();
        fold(&path, Keep::default(), &mut |_| Ok(())).unwrap();
        server.live.refresh().unwrap();
    };
    let streamed = |description: &Description| {
        let (bytes, result) = download(&remote, description);
        result.map(|()| bytes)
    };
    let (first, old) = (remote.offer().unwrap().description, server.live.base());
    fold_one(1);
    let second = remote.offer().unwrap();
    assert_eq!((second.description.epoch, second.description.lineage()), (1, first.identity));
    assert_ne!(second.description.identity, first.identity);
    let whole = ENTRIES as usize * 40;
    assert_eq!(streamed(&first).unwrap(), old.read_all().unwrap()[..whole]);
    let new = streamed(&second.description).unwrap();
    assert_eq!(new, server.live.base().read_all().unwrap()[..whole]);
    assert_eq!((&new[3 * 40..4 * 40], &new[whole - 40..]), (&[1; 40][..], &[1; 40][..]));
    // Who reads it goes on however many folds there are; four files are kept, and of one before them it is said.
    fold_one(2);
    assert_eq!(streamed(&first).unwrap(), old.read_all().unwrap()[..whole]);
    assert_eq!(streamed(&second.description).unwrap(), new);
    (3..6).for_each(fold_one);
    let told = streamed(&first).unwrap_err().to_string();
    assert!(told.contains("412") && told.contains("folded"), "{told}");
    assert_eq!(streamed(&second.description).unwrap(), new);
    let (newest, mut count) = (remote.offer().unwrap().description, 0);
    let epoch = remote
        .newest_entries(&newest, &mut |part| {
            count += part.len();
            Ok(())
        })
        .unwrap();
    assert_eq!((epoch, count), (5, whole));
}

/// Bytes a second from a server in this process, compared with their digests and handed over.
#[test]
#[ignore = "a measurement: cargo test --workspace --test network how_fast -- --ignored --nocapture"]
fn how_fast_a_download_is() {
    let entries = std::env::var("ENTRIES").map_or(25_000_000, |text| text.parse().unwrap());
    let server = start_on(Choice::new(entries, 40), Role::Library, Limits::default(), |server| server);
    let remote = remote(server.address);
    for _ in 0..5 {
        let (begin, mut bytes) = (Instant::now(), 0);
        let push = &mut |part: &[u8]| {
            bytes += part.len();
            Ok(())
        };
        remote.entries(server.live.base().description(), push).unwrap();
        println!("{:.2} GB/s", bytes as f64 / begin.elapsed().as_secs_f64() / 1e9);
    }
}
