//! What a server gives to one request, to one address and to all: memory, work, and to whom it makes hints.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::running::{ENTRIES, Reply, Running, exchange, get, post, start, start_with};
use warpsmith_files::Token;
use warpsmith_hash::Lanes;
use warpsmith_rms24::hints::Hints;
use warpsmith_rms24::hints::make::{Make, Order, Processor, Stream};
use warpsmith_rms24::hints::measure::Figures;
use warpsmith_rms24::server::{Limits, Role};
use warpsmith_rms24::two_server::{self, Request};
use warpsmith_rms24::{Choice, Error, Key, Params, Result};

/// Counts what is allocated, and remembers the most there was at once.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does all the work; the counters only watch.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::SeqCst) + layout.size();
        MOST.fetch_max(now, Ordering::SeqCst);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Tests here run one after the other: one of them counts memory.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn processor() -> Processor {
    Processor { lanes: Lanes::detect(), threads: 2 }
}

fn hint_maker() -> Role {
    Role::HintMaker(Arc::new(processor()))
}

/// A request for so many pairs alone.
fn pairs(server: &Running, pairs: u64) -> Request {
    Request {
        key: Key::random().unwrap(),
        lambda: 80,
        regular: false,
        first: server.live.params().regular(),
        pairs,
    }
}

/// What a server says, as text.
fn said(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body).into_owned()
}

/// Waits until something is so, as long as it takes on a slow machine.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..30_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never happened: {what}");
}

/// The figure that requests are judged by is what they take: never less, and not much more.
#[test]
fn memory_is_known_beforehand() {
    let _alone = alone();
    let server = start(Role::Library, Limits::default());
    let make = processor();
    assert!(!server.live.is_in_memory());
    // Read from the file, a few segments come on top of what the same takes from memory.
    let reading = server.live.reading_bytes() as usize;
    for (lambda, regular, pairs) in
        [(80, true, 16), (80, false, 40_000), (10, true, 2000), (300, true, 80_000)]
    {
        let params = Params::new(Choice { lambda, ..server.live.params().choice() }).unwrap();
        let key = Key::random().unwrap();
        let request = Request { key, lambda, regular, first: params.regular(), pairs };
        let expected = request.memory(&server.live, &make).unwrap() as usize;
        let before = NOW.load(Ordering::SeqCst);
        MOST.store(before, Ordering::SeqCst);
        let (epoch, hints) = request.fulfil(&server.live, &make, &AtomicBool::new(false)).unwrap();
        let body = two_server::body(epoch, &hints);
        let taken = MOST.load(Ordering::SeqCst) - before;
        // Threads and the like take some kilobytes.
        let spare = 64 << 10;
        assert!(taken <= expected + spare, "{taken} bytes, and {expected} were expected");
        assert!(expected <= taken + reading + spare, "{taken} bytes, and {expected} were expected");
        assert_eq!(body.len() as u64, request.answer_bytes(&server.live.params()).unwrap());
    }
}

/// Sixty bytes that would make a hint maker reserve gigabytes are refused before it allocates anything for them.
#[test]
fn one_request_cannot_take_all_memory() {
    let _alone = alone();
    let limits =
        Limits { memory: 64 << 20, request_memory: 16 << 20, address_memory: 32 << 20, ..Limits::default() };
    let server = start(hint_maker(), limits);
    MOST.store(NOW.load(Ordering::SeqCst), Ordering::SeqCst);
    let before = NOW.load(Ordering::SeqCst);
    for many in [1 << 32, 1 << 40, 1 << 20] {
        let greedy = pairs(&server, many);
        let mut reply = post(server.address, "/v1/hints", &greedy.to_bytes());
        if many == 1 << 40 {
            // That is more work than allowed, too.
            assert_eq!(reply.status, 413);
            continue;
        }
        assert_eq!(reply.status, 413, "{}", said(&reply));
        let text = said(&reply);
        assert!(text.contains("one request may take 16777216"), "{text}");
        reply.body.clear();
    }
    let taken = MOST.load(Ordering::SeqCst) - before;
    assert!(taken < 1 << 20, "{taken} bytes were taken to refuse");
    // What is within the limit is made.
    let modest = pairs(&server, 1600);
    assert_eq!(post(server.address, "/v1/hints", &modest.to_bytes()).status, 200);
}

/// Makes nothing, until it is let go or stopped; tells how many it is at.
#[derive(Default)]
struct Waiting {
    begun: AtomicUsize,
    stopped: AtomicUsize,
    go: AtomicBool,
}

impl Make for Waiting {
    fn hints(&self, order: &Order<'_>, stream: &mut Stream<'_>) -> Result<Hints> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        while !self.go.load(Ordering::SeqCst) {
            if order.stop.load(Ordering::SeqCst) {
                self.stopped.fetch_add(1, Ordering::SeqCst);
                return Err(Error::Stopped);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        processor().hints(order, stream)
    }

    fn memory(&self, params: &Params, regular: u64, pairs: u64) -> u64 {
        processor().memory(params, regular, pairs)
    }

    fn measure(&self, _: &Params, _: usize) -> Result<Figures> {
        unreachable!("nobody measures it")
    }
}

/// Sends a request for hints from an address of this machine, and does not wait for the answer.
fn begin(server: &Running, from: [u8; 4], request: &Request) -> TcpStream {
    let mut stream = connect(server.address, from);
    let body = request.to_bytes();
    let head = format!(
        "POST /v1/hints HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body[..]].concat()).unwrap();
    stream
}

/// A connection from another address of this machine.
fn connect(to: SocketAddr, from: [u8; 4]) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        let stream = socket.connect(to).await.unwrap().into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream
    })
}

fn status(mut stream: TcpStream) -> (u16, String) {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
}

/// The sum over requests under way is what counts: who does not fit beside them comes again.
#[test]
fn requests_share_the_memory() {
    let _alone = alone();
    let waiting = Arc::new(Waiting::default());
    let request_memory = {
        let server = start(Role::Library, Limits::default());
        pairs(&server, 1600).memory(&server.live, &processor()).unwrap()
    };
    // Two fit, of one address or of two; three do not.
    let limits = Limits {
        memory: request_memory * 5 / 2,
        request_memory,
        address_memory: request_memory * 3 / 2,
        address_hints: 2,
        ..Limits::default()
    };
    let server = start(Role::HintMaker(waiting.clone()), limits);
    let request = pairs(&server, 1600);
    let one = begin(&server, [127, 0, 0, 1], &request);
    wait_until("the first is at work", || waiting.begun.load(Ordering::SeqCst) == 1);
    let (code, text) = status(begin(&server, [127, 0, 0, 1], &request));
    assert!(code == 503 && text.contains("retry-after: 1") && text.contains("this address"), "{text}");
    let two = begin(&server, [127, 0, 0, 2], &request);
    wait_until("the second is at work", || waiting.begun.load(Ordering::SeqCst) == 2);
    let (code, text) = status(begin(&server, [127, 0, 0, 3], &request));
    assert!(code == 503 && text.contains("retry-after: 1") && text.contains("no memory is left"), "{text}");
    waiting.go.store(true, Ordering::SeqCst);
    assert_eq!((status(one).0, status(two).0), (200, 200));
    // All of it is there again.
    for _ in 0..4 {
        assert_eq!(post(server.address, "/v1/hints", &request.to_bytes()).status, 200);
    }
}

#[test]
fn an_address_has_its_hints_made_one_after_the_other() {
    let _alone = alone();
    let waiting = Arc::new(Waiting::default());
    let server = start(Role::HintMaker(waiting.clone()), Limits::default());
    let request = pairs(&server, 16);
    let one = begin(&server, [127, 0, 0, 1], &request);
    wait_until("it is at work", || waiting.begun.load(Ordering::SeqCst) == 1);
    let (code, text) = status(begin(&server, [127, 0, 0, 1], &request));
    assert!(code == 429 && text.contains("retry-after"), "{text}");
    let other = begin(&server, [127, 0, 0, 9], &request);
    wait_until("the other is at work", || waiting.begun.load(Ordering::SeqCst) == 2);
    waiting.go.store(true, Ordering::SeqCst);
    assert_eq!((status(one).0, status(other).0), (200, 200));
}

/// The work for a sender who left is dropped, over either version of HTTP, and his place is free.
#[test]
fn nothing_is_made_for_those_who_left() {
    let _alone = alone();
    let waiting = Arc::new(Waiting::default());
    let limits = Limits { working: 1, ..Limits::default() };
    let server = start(Role::HintMaker(waiting.clone()), limits);
    let request = pairs(&server, 16);
    let leaving = begin(&server, [127, 0, 0, 1], &request);
    wait_until("it is at work", || waiting.begun.load(Ordering::SeqCst) == 1);
    drop(leaving);
    wait_until("the work is dropped", || waiting.stopped.load(Ordering::SeqCst) == 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let taken_back = async {
        let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
        let connection = tokio::spawn(async move { drop(connection.await) });
        let mut ask = || {
            let head = http::Request::post("http://x/v1/hints").body(()).unwrap();
            let (response, mut body) = sender.send_request(head, false).unwrap();
            body.send_data(request.to_bytes().to_vec().into(), true).unwrap();
            (response, body)
        };
        let mut asked = ask();
        while waiting.begun.load(Ordering::SeqCst) < 2 {
            // The place is free a moment after the work was dropped: until then he is refused.
            if tokio::time::timeout(Duration::from_millis(5), &mut asked.0).await.is_ok() {
                asked = ask();
            }
        }
        // He takes this one request back, and stays.
        drop(asked);
        while waiting.stopped.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        connection.abort();
    };
    let in_time = async { tokio::time::timeout(Duration::from_secs(300), taken_back).await };
    runtime.block_on(in_time).expect("the work is dropped");
    waiting.go.store(true, Ordering::SeqCst);
    wait_until("there is a place again", || {
        post(server.address, "/v1/hints", &request.to_bytes()).status == 200
    });
}

/// What makes hints looks at the flag: in the cutoffs, and while the database goes by.
#[test]
fn makers_stop_half_way() {
    let _alone = alone();
    let params = Params::new(Choice::new(ENTRIES, 40)).unwrap();
    let (key, stop) = (Key::random().unwrap(), AtomicBool::new(true));
    let order =
        Order { params: &params, key: &key, regular: 0..params.regular(), backups: 0..0, stop: &stop };
    let early = processor().hints(&order, &mut |_| panic!("the stream was opened"));
    assert!(matches!(early, Err(Error::Stopped)));
    stop.store(false, Ordering::SeqCst);
    let order = Order { regular: 0..16, ..order };
    let mut pieces = 0;
    let late = processor().hints(&order, &mut |push| {
        vec![0; ENTRIES as usize * 40].chunks(1000).try_for_each(|piece| {
            pieces += 1;
            stop.store(pieces == 3, Ordering::SeqCst);
            push(piece)
        })
    });
    assert!(matches!(late, Err(Error::Stopped)) && pieces == 3, "{pieces}");
}

#[test]
fn hints_for_those_who_have_the_token() {
    let _alone = alone();
    let word = "0123456789abcdef-its-own";
    let token = Token::new(word.as_bytes()).unwrap();
    let server = start_with(hint_maker(), Limits::default(), |server| server.with_token(token.clone()));
    let request = pairs(&server, 16);
    let ask = |authorization: &str| {
        let body = request.to_bytes();
        let head = format!(
            "POST /v1/hints HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{authorization}Content-Length: {}\r\n\r\n",
            body.len()
        );
        exchange(server.address, &[head.as_bytes(), &body[..]].concat())
    };
    for wrong in [
        "",
        "Authorization: Bearer 0123456789abcdef-its-owm\r\n",
        "Authorization: Basic 0123456789abcdef-its-own\r\n",
    ] {
        let reply = ask(wrong);
        assert!(
            reply.status == 401 && reply.head.contains("www-authenticate: bearer"),
            "{wrong}: {}",
            reply.head
        );
        assert!(!said(&reply).contains("0123456789abcdef"));
    }
    assert_eq!(ask(&format!("Authorization: Bearer {word}\r\n")).status, 200);
    let remote = warpsmith_rms24::remote::Remote::new(&format!("http://{}", server.address)).unwrap();
    let refused = remote.hints(&request, &server.live.params()).unwrap_err().to_string();
    assert!(refused.contains("401") && refused.contains("--token-file"), "{refused}");
    remote.with_token(token).hints(&request, &server.live.params()).unwrap();
    // What everybody may know needs none.
    assert_eq!(get(server.address, "/v1/info", "").status, 200);
    assert_eq!(get(server.address, "/v1/updates/0", "").status, 200);
}

/// Answers that nobody takes hold no more memory than one address may have.
#[test]
fn answers_that_wait_to_be_taken_count() {
    let _alone = alone();
    let updates_bytes = 1 << 20;
    let limits = Limits { memory: 16 << 20, address_memory: 4 << 20, updates_bytes, ..Limits::default() };
    let server = start(Role::Library, limits);
    let values: Vec<_> = (0..20_000u64).map(|i| (i, vec![7; 40])).collect();
    server.live.update(server.live.difference(&values).unwrap()).unwrap();
    let length = 8 + 24 + 20_000 * 48;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (statuses, keep) = runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        let (mut statuses, mut bodies) = (Vec::new(), Vec::new());
        for _ in 0..10 {
            let head = http::Request::get("http://x/v1/updates/0").body(()).unwrap();
            let response = sender.send_request(head, true).unwrap().0.await.unwrap();
            statuses.push(response.status().as_u16());
            bodies.push(response.into_body());
        }
        (statuses, (sender, bodies))
    });
    let served = statuses.iter().filter(|status| **status == 200).count();
    assert!(served >= 1 && served * length <= 4 << 20, "{statuses:?}");
    assert!(statuses[served..].iter().all(|status| *status == 503), "{statuses:?}");
    // Somebody else is served meanwhile, and he too once he has left.
    let mut other = connect(server.address, [127, 0, 0, 5]);
    other.write_all(b"GET /v1/updates/0 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(status(other).0, 200);
    drop((keep, runtime));
    wait_until("the memory is free", || get(server.address, "/v1/updates/0", "").status == 200);
}
