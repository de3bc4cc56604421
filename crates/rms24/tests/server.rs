//! The server over real connections: the whole protocol, both HTTP versions, both roles; and under requests that are
//! malformed, oversized, slow or many, it stays up and answers the good ones.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::running::{ENTRIES, exchange, get, parse, post, start};
use warpsmith_hash::Lanes;
use warpsmith_rms24::database::Description;
use warpsmith_rms24::hints;
use warpsmith_rms24::hints::make::Processor;
use warpsmith_rms24::remote::{Offer, Remote};
use warpsmith_rms24::server::{Limits, Role, Server};
use warpsmith_rms24::two_server::{self, Request};
use warpsmith_rms24::updates::Live;
use warpsmith_rms24::wire::read_updates;
use warpsmith_rms24::{Choice, Client, Error, Key, Params, Version};

#[test]
fn the_whole_protocol() {
    let server = start(Role::Library, Limits { updates_bytes: 500, ..Limits::default() });
    let mut client = server.client("state");
    server.fetch(&mut client, &[0]);
    server.fetch(&mut client, &[ENTRIES - 1, 5, 5, 20_000]);
    // Twenty epochs, of which an answer holds a few.
    for epoch in 0..20u8 {
        let values: Vec<_> = (0..3).map(|i| (u64::from(epoch) * 7 % 11 + i, vec![epoch; 40])).collect();
        let update = server.live.difference(&values).unwrap();
        server.live.update(update).unwrap();
    }
    let mut requests = 0;
    while client.version().epoch < 20 {
        let reply = get(server.address, &format!("/v1/updates/{}", client.version().epoch), "");
        assert_eq!(reply.status, 200);
        for update in read_updates(client.params(), &reply.body).unwrap() {
            client.update(&update).unwrap();
        }
        requests += 1;
    }
    assert!((3..20).contains(&requests), "{requests}");
    server.fetch(&mut client, &[0, 5, 10, 12, 13, 14]);
    assert_eq!(get(server.address, "/v1/updates/21", "").status, 409);
    assert_eq!(get(server.address, "/v1/updates/x", "").status, 400);
    assert_eq!(get(server.address, "/v1/blocks", "Range: bytes=99999999-\r\n").status, 416);
    // Another database's tag: the whole is sent.
    let other = get(server.address, "/v1/blocks", "Range: bytes=0-9\r\nIf-Range: \"00\"\r\n");
    assert_eq!(
        (other.status, other.body.len()),
        (200, server.live.base().description().data_bytes() as usize)
    );
    assert_eq!(get(server.address, "/health", "").body, b"ok\n");
    assert_eq!(get(server.address, "/metrics", "").status, 404);
    let metrics = String::from_utf8(get(server.metrics, "/metrics", "").body).unwrap();
    for line in [
        "warpsmith_pir_queries_total 11",
        "warpsmith_pir_epoch 20",
        "warpsmith_pir_refused_total{reason=\"Epoch\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

/// All of it again as programs do it.
#[test]
fn a_remote_client() {
    let server = start(Role::Library, Limits { updates_bytes: 300, ..Limits::default() });
    let remote = Remote::new(&format!("http://{}", server.address)).unwrap();
    let Offer { description, epoch, batch, head, .. } = remote.offer().unwrap();
    assert_eq!((&description, epoch, batch, head), (server.live.base().description(), 0, 64, None));
    let params =
        Params::new(Choice { lambda: 40, backups: Some(64), ..description.params.choice() }).unwrap();
    let (key, hints) =
        hints::offline(&params, Lanes::detect(), 1, |push| remote.entries(&description, push)).unwrap();
    let version = Version { database: description.identity, epoch };
    let path = server.folder.path().join("state");
    let mut client = Client::create(&path, params, version, key, hints, Lanes::detect()).unwrap();
    for epoch in 1..10u8 {
        let values: Vec<_> = (0..4).map(|i| (i * 10_000 + u64::from(epoch), vec![epoch; 40])).collect();
        server.live.update(server.live.difference(&values).unwrap()).unwrap();
    }
    remote.synchronise(&mut client).unwrap();
    assert_eq!(client.version().epoch, 9);
    for index in [0, 5, 10_005, 39_999] {
        let asked = client.ask(&[index, 5]).unwrap();
        let mut results = remote.fetch(&mut client, &asked).unwrap().into_iter();
        assert_eq!(results.next().unwrap().unwrap().entry, server.live.entry(index).unwrap());
        assert_eq!(results.next().unwrap().unwrap().entry, server.live.entry(5).unwrap());
    }
    // A client that comes later gets the entries with all changes.
    let mut bytes = Vec::new();
    let mut push = |part: &[u8]| {
        bytes.extend_from_slice(part);
        Ok(())
    };
    assert_eq!(remote.newest_entries(&description, &mut push).unwrap(), 9);
    let mut newest = Vec::new();
    let mut take = |part: &[u8]| {
        newest.extend_from_slice(part);
        Ok(())
    };
    server.live.with_entries(|epoch, entries| {
        assert_eq!(epoch, 9);
        entries.stream(&mut take).unwrap();
    });
    assert!(bytes == newest);
    // What the server refuses is said; a database that is not the one described is noticed.
    assert!(matches!(remote.updates(client.params(), 99), Err(Error::Mismatch(_))));
    let other = Description { epoch: 1, ..description };
    assert!(matches!(remote.entries(&other, &mut |_| Ok(())), Err(Error::Remote { .. })));
}

/// An epoch that is too long for the memory of an answer is so for those who need it, and for nobody else.
#[test]
fn one_long_epoch_is_in_nobodys_way_who_has_it() {
    let memory = 100_000;
    let limits = Limits { memory, request_memory: memory, address_memory: memory, ..Limits::default() };
    let server = start(Role::Library, limits);
    for (epoch, changes) in [(1u8, 3), (2, 3000), (3, 3)] {
        let values: Vec<_> = (0..changes).map(|index| (index, vec![epoch; 40])).collect();
        server.live.update(server.live.difference(&values).unwrap()).unwrap();
    }
    let status = |epoch| get(server.address, &format!("/v1/updates/{epoch}"), "").status;
    assert_eq!((status(1), status(2), status(3), status(4)), (413, 200, 200, 409));
    // The first alone is short, but both are asked for.
    assert_eq!(status(0), 413);
    // A client makes new hints then, as if it were gone.
    let remote = Remote::new(&format!("http://{}", server.address)).unwrap();
    let params = server.live.params();
    assert!(matches!(remote.updates(&params, 1), Err(Error::Mismatch(_))));
    assert_eq!(remote.updates(&params, 2).unwrap().len(), 1);
}

#[test]
fn http_2_on_the_same_port() {
    let server = start(Role::Library, Limits::default());
    let mut client = server.client("state");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        // Several queries on one connection.
        for index in [1, 2, 39_999] {
            let asked = client.ask(&[index]).unwrap();
            let request = http::Request::post("http://x/v1/query").body(()).unwrap();
            let (response, mut body) = sender.send_request(request, false).unwrap();
            body.send_data(asked.body.clone().into(), true).unwrap();
            let response = response.await.unwrap();
            assert_eq!((response.status().as_u16(), response.version()), (200, http::Version::HTTP_2));
            let (mut body, mut bytes) = (response.into_body(), Vec::new());
            while let Some(part) = body.data().await {
                let part = part.unwrap();
                let _ = body.flow_control().release_capacity(part.len());
                bytes.extend_from_slice(&part);
            }
            let fetched = client.receive(&asked, &bytes).unwrap().remove(0).unwrap();
            assert_eq!(fetched.entry, server.live.entry(index).unwrap());
        }
    });
}

#[test]
fn malformed_and_oversized_requests() {
    let server = start(Role::Library, Limits { batch: 4, ..Limits::default() });
    let mut client = server.client("state");
    let good = client.ask(&[1]).unwrap().body;
    let query = |body: &[u8]| post(server.address, "/v1/query", body).status;
    assert_eq!(query(&good), 200);
    let with = |at: usize, bits: u8| {
        let mut bad = good.clone();
        bad[at] ^= bits;
        bad
    };
    // Magic, epoch, count, mask.
    for (bad, status) in [(with(0, 1), 400), (with(4, 7), 409), (with(12, 2), 400), (with(16, 1), 400)] {
        assert_eq!(query(&bad), status);
    }
    assert_eq!(query(b""), 400);
    assert_eq!(query(&good[..good.len() - 1]), 400);
    assert_eq!(query(&vec![0; 1 << 20]), 413);
    // More queries than allowed, each of them good.
    let many = [&good[..12], &[5, 0, 0, 0], &good[16..].repeat(5)].concat();
    assert_eq!(query(&many), 413);
    // No announced length, and no end.
    let mut endless =
        b"POST /v1/query HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            .to_vec();
    for _ in 0..100 {
        endless.extend_from_slice(b"1000\r\n");
        endless.extend_from_slice(&[0; 4096]);
        endless.extend_from_slice(b"\r\n");
    }
    assert_eq!(exchange(server.address, &endless).status, 413);
    // No HTTP at all.
    for garbage in [
        &b"\x00\xff\x00\xff\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff",
    ] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "a".repeat(1 << 20));
    let mut stream = TcpStream::connect(server.address).unwrap();
    let _ = stream.write_all(long.as_bytes());
    let _ = stream.read_to_end(&mut Vec::new());
    assert_eq!(get(server.address, "/v1/hints", "").status, 404);
    assert_eq!(post(server.address, "/v1/hints", b"").status, 404);
    assert_eq!(get(server.address, "/v1/query", "").status, 405);
    // And the query that was sent first still can be answered.
    let asked = client.resend().unwrap();
    let reply = post(server.address, "/v1/query", &asked.body);
    assert_eq!(
        client.receive(&asked, &reply.body).unwrap().remove(0).unwrap().entry,
        server.live.entry(1).unwrap()
    );
}

#[test]
fn slow_requests_end_and_others_do_not_wait_for_them() {
    let limits = Limits {
        request_time: Duration::from_secs(3),
        idle: Duration::from_secs(5),
        address_connections: 200,
        ..Limits::default()
    };
    let server = start(Role::Library, limits);
    let mut client = server.client("state");
    let begun = Instant::now();
    let mut slow: Vec<TcpStream> = [
        "",
        "P",
        "GET /v1/info HTT",
        "POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nWPQ1",
    ]
    .iter()
    .cycle()
    .take(80)
    .map(|start| {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(start.as_bytes()).unwrap();
        stream
    })
    .collect();
    server.fetch(&mut client, &[1, 2, 3]);
    for (i, stream) in slow.iter_mut().enumerate() {
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let mut bytes = Vec::new();
        let end = stream.read_to_end(&mut bytes);
        assert!(
            !matches!(&end, Err(e) if e.kind() == std::io::ErrorKind::WouldBlock),
            "connection {i} stays open"
        );
        if i % 4 == 3 && end.is_ok() {
            assert_eq!(parse(&bytes).status, 408);
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
    server.fetch(&mut client, &[4]);
}

#[test]
fn many_clients_at_once() {
    let server = start(Role::Library, Limits { rate: 1e6, burst: 1e6, ..Limits::default() });
    let clients: Vec<Client> = (0..6).map(|i| server.client(&format!("state{i}"))).collect();
    std::thread::scope(|scope| {
        for (i, mut client) in clients.into_iter().enumerate() {
            let server = &server;
            scope.spawn(move || {
                for round in 0..15 {
                    server.fetch(&mut client, &[round * 31 + i as u64, 77]);
                }
            });
        }
    });
}

#[test]
fn an_address_that_asks_too_often_is_told_so() {
    let server = start(Role::Library, Limits { rate: 0.01, burst: 5.0, ..Limits::default() });
    let statuses: Vec<u16> = (0..8).map(|_| get(server.address, "/v1/info", "").status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429, 429]);
    // Whoever watches the server is not limited.
    assert_eq!(get(server.address, "/health", "").status, 200);
}

/// A server on threads of its own: sees what another process appends, and ends when it is told to.
#[test]
fn updates_of_another_process_are_served() {
    let server = start(Role::Library, Limits::default());
    let open = || Live::open(&server.folder.path().join("data"), Lanes::detect(), 1000).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let remote = Remote::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let (stop, seen) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let second = Server::new(Arc::new(open()), Role::Library, Limits::default());
        let running = scope.spawn(|| {
            let news = |news: warpsmith_rms24::Result<usize>| {
                seen.fetch_add(news.unwrap(), Ordering::SeqCst);
            };
            second.run(listener, &stop, &news)
        });
        assert_eq!(remote.offer().unwrap().epoch, 0);
        let operator = open();
        operator.update(operator.difference(&[(7, vec![7; 40])]).unwrap()).unwrap();
        let begin = Instant::now();
        while remote.offer().unwrap().epoch == 0 {
            assert!(begin.elapsed() < Duration::from_secs(300), "the update was not seen");
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::SeqCst);
        running.join().unwrap().unwrap();
    });
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}

#[test]
fn two_servers() {
    let library = start(Role::Library, Limits::default());
    let make = Processor { lanes: Lanes::detect(), threads: 2 };
    let maker = start(Role::HintMaker(Arc::new(make)), Limits { hint_pairs: 1 << 30, ..Limits::default() });
    // Both hold the same database.
    assert_eq!(library.live.base().description(), maker.live.base().description());
    let params =
        Params::new(Choice { lambda: 60, backups: Some(16), ..library.live.params().choice() }).unwrap();
    let request = Request {
        key: Key::random().unwrap(),
        lambda: 60,
        regular: true,
        first: params.regular(),
        pairs: 16,
    };
    let reply = post(maker.address, "/v1/hints", &request.to_bytes());
    assert_eq!(reply.status, 200);
    let (epoch, hints) = two_server::read(&params, &reply.body).unwrap();
    let version = Version { database: library.live.base().description().identity, epoch };
    let path = library.folder.path().join("state");
    let mut client =
        Client::create(&path, params, version, request.key.clone(), hints, Lanes::detect()).unwrap();
    for round in 0..4 {
        library.fetch(&mut client, &[round, 39_999, 39_999]);
        let (first, key) = client.next_pair();
        let more = Request { key: key.clone(), regular: false, first, ..request.clone() };
        client.top_up(&post(maker.address, "/v1/hints", &more.to_bytes()).body).unwrap();
    }
    library.fetch(&mut client, &[7; 50]);
    // The hint maker answers no queries and streams nothing; and does no more than it may.
    assert_eq!(post(maker.address, "/v1/query", b"").status, 404);
    assert_eq!(get(maker.address, "/v1/blocks", "").status, 404);
    let greedy = Request { lambda: 100_000, first: 1 << 50, ..request.clone() };
    assert_eq!(post(maker.address, "/v1/hints", &greedy.to_bytes()).status, 413);
    let early = Request { first: 0, ..request };
    assert_eq!(post(maker.address, "/v1/hints", &early.to_bytes()).status, 409);
}
