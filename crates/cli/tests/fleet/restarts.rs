//! Coordinators of one folder through restarts of the server, and where the server listens.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use warpsmith::fleet::net::connect::as_worker;
use warpsmith::fleet::net::home::Home;
use warpsmith::fleet::net::status::Status;
use warpsmith::fleet::net::submit::{reload, status};
use warpsmith::fleet::wire::{Answer, Ask, VERSION};

use crate::coordinator;
use crate::harness::{fleet, runtime, server, text, warpsmith};

/// Asks for the status until a coordinator of this epoch or a later one answers, and returns its epoch.
fn epoch_from(home: &Home, epoch: u64) -> u64 {
    let begin = Instant::now();
    loop {
        match status(home) {
            Ok(Status { epoch: Some(leading), .. }) if leading >= epoch => return leading,
            other => assert!(begin.elapsed() < Duration::from_secs(300), "{other:?}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Three `fleet submit` of one folder, a server that is restarted, a worker that is removed, and one invitation that is used twice: the
/// first leads on, the others stand by and say nothing, and each takes over when the one before is killed.
#[test]
fn coordinators_outlive_the_server() {
    let Some((_folder, mut home)) = fleet() else { return };
    let (one, _) = (home.invite("one").expect("invited"), home.invite("two").expect("invited"));
    let mut server_process = server(&home);
    // It listens where it was told, not on every address of this machine.
    let port: u16 = home.server().rsplit_once(':').expect("a port").1.parse().expect("a number");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    assert!(TcpStream::connect(("127.0.0.2", port)).is_err(), "it listens beyond what it was told");
    let mut first = coordinator(&home, "qqqqqqqqqq");
    let epoch = epoch_from(&home, 0);
    let mut others = [coordinator(&home, "qqqqqqqqqq"), coordinator(&home, "qqqqqqqqqq")];
    server_process.kill();
    let log_path = home.folder().join("co.log");
    let log = || std::fs::read_to_string(&log_path).expect("a log");
    let wait_for_log = |part: &str| {
        let begin = Instant::now();
        while !log().contains(part) {
            assert!(begin.elapsed() < Duration::from_secs(300), "{part}: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait_for_log("was lost; reconnecting");
    server_process = server(&home);
    home.remove("two").expect("known");
    assert!(reload(&home), "the server is here");
    let (device, unable, holding) = ("cpu".to_owned(), Vec::new(), Vec::new());
    let ask = Ask { version: VERSION, slot: 0, device, ready: None, unable, holding, busy: false };
    let ask = serde_json::to_vec(&ask).expect("plain");
    runtime().block_on(async {
        // A server that reads its configuration again turns newcomers away for a moment.
        let connect = async || {
            let begin = Instant::now();
            loop {
                match as_worker(&one).await {
                    Ok(client) => break client,
                    Err(error) => assert!(begin.elapsed() < Duration::from_secs(300), "{error}"),
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        for client in [connect().await, connect().await] {
            let begin = Instant::now();
            loop {
                let asked = client.request("req.get.1", ask.clone().into()).await;
                if let Ok(Answer::Prepare { .. }) = asked
                    .map_err(drop)
                    .and_then(|message| serde_json::from_slice(&message.payload).map_err(drop))
                {
                    break;
                }
                assert!(begin.elapsed() < Duration::from_secs(300), "nobody answers");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    });
    assert_eq!(epoch_from(&home, 0), epoch, "the first leads on");
    wait_for_log(" again");
    first.kill();
    let next = epoch_from(&home, epoch + 1);
    assert_eq!(next, epoch + 1);
    // Whichever of the two leads now: when both are gone nobody does.
    others[0].kill();
    assert!(epoch_from(&home, 0) <= epoch + 2);
    others[1].kill();
    assert!(status(&home).expect("the folder is here").unreachable.is_some());
    drop(server_process);
    for riddle in ["revision", "10071", "leading", "error code"] {
        assert!(!log().contains(riddle), "{}", log());
    }
}

/// `fleet init` listens on loopback unless it is told an address, and says which.
#[test]
fn init_says_where_the_server_listens() {
    let folder = tempfile::tempdir().expect("a folder");
    let init = |name: &str, more: &[&str]| {
        let path = folder.path().join(name);
        let made = warpsmith(&[&["fleet", "init", path.to_str().expect("text")], more].concat())
            .output()
            .expect("runs");
        let config = std::fs::read_to_string(path.join("server/nats-server.conf")).unwrap_or_default();
        (made.status.code(), text(&made), config)
    };
    let (code, said, config) = init("plain", &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        config.contains("listen: \"127.0.0.1:4222\"\n") && said.contains("only this machine"),
        "{said}{config}"
    );
    let (code, said, config) = init("open", &["--listen", "0.0.0.0:4222", "--address", "203.0.113.7:4222"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        config.contains("listen: \"0.0.0.0:4222\"\n") && said.contains("other machines can connect"),
        "{said}"
    );
    assert!(said.contains("203.0.113.7:4222"), "{said}");
    let (code, said, config) = init("nowhere", &["--listen", "0.0.0.0:4222"]);
    assert_eq!((code, config.as_str()), (Some(2), ""), "{said}");
    assert!(said.contains("--address"), "{said}");
}
