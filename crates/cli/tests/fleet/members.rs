//! Who was put out stays out, and a message that is too large is no message.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};
use warpsmith::fleet::job::Descriptor;
use warpsmith::fleet::net::connect::{as_coordinator, as_worker};
use warpsmith::fleet::net::home::Invitation;
use warpsmith::fleet::net::submit::status;
use warpsmith::fleet::wire::{Answer, Ask, Lease, Ready, VERSION, Work};

use crate::harness::{Running, Said, fleet, runtime, server, text, warpsmith, worker};
use crate::{coordinator, the_job};

/// `fleet remove`: the connection ends, the key opens nothing, and what the worker had is another's at once.
#[test]
fn who_is_put_out_stays_out() {
    let Some((_folder, mut home)) = fleet() else { return };
    let (one, two) = (home.invite("one").expect("invited"), home.invite("two").expect("invited"));
    let _server = server(&home);
    let path = home.folder().to_str().expect("text").to_owned();
    let mut submit =
        warpsmith(&["fleet", "submit", &path, "--unit-time", "600s", "npub", "qqqqqqqqqq", "--quiet"]);
    let _leader = Running(submit.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts"));
    let (job, ..) = the_job(&home);
    let ask = |slot| {
        let ready = Ready { job, half: 16, grain: 1, rate: 200.0 };
        let (device, unable, holding) = ("cpu".to_owned(), Vec::new(), Vec::new());
        serde_json::to_vec(&Ask {
            version: VERSION,
            slot,
            device,
            ready: Some(ready),
            unable,
            holding,
            busy: false,
        })
        .expect("plain")
    };
    runtime().block_on(async {
        let (first, second) = (as_worker(&one).await.expect("in"), as_worker(&two).await.expect("in"));
        let lease = async |client: &async_nats::Client, id: u32, slot: u16| {
            for _ in 0..600 {
                let asked = client.request(format!("req.get.{id}"), ask(slot).into()).await;
                if let Some(Answer::Lease(lease)) =
                    asked.ok().and_then(|a| serde_json::from_slice(&a.payload).ok())
                {
                    return lease.unit;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            panic!("no lease")
        };
        let unit = lease(&first, 1, 0).await;
        let unknown = warpsmith(&["fleet", "remove", &path, "three"]).output().expect("runs");
        assert_eq!(unknown.status.code(), Some(2), "{}", text(&unknown));
        let removed = warpsmith(&["fleet", "remove", &path, "one"]).output().expect("runs");
        assert!(removed.status.success(), "{}", text(&removed));
        // Its connection ends, and another is refused.
        for n in 0.. {
            let is_out = !matches!(first.connection_state(), async_nats::connection::State::Connected);
            if is_out && as_worker(&one).await.is_err() {
                break;
            }
            assert!(n < 600, "it is still let in");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // The coordinator has heard of it, and the next who asks has its unit; by itself the lease would last half an hour.
        let home = Arc::new(home);
        let trust = async |id: u32| {
            let home = Arc::clone(&home);
            let known = tokio::task::spawn_blocking(move || status(&home)).await.expect("ends").ok();
            known
                .and_then(|known| known.workers.into_iter().find(|worker| worker.id == id))
                .map(|worker| worker.trust)
        };
        for n in 0.. {
            if trust(1).await.as_deref() == Some("removed") {
                break;
            }
            assert!(n < 600, "the coordinator does not know");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(lease(&second, 2, 0).await, unit);
        assert_eq!(trust(2).await.as_deref(), Some("honest"));
    });
}

/// The example of `fleet --help` as written: the invitation is a private file that `fleet work` takes. A worker that finds no
/// server says that nothing listens there, once, and no word of its key.
#[test]
fn the_example_of_the_help_works() {
    let help = warpsmith(&["fleet", "--help"]).output().expect("runs");
    let help = text(&help);
    let example: Vec<&str> = help.lines().filter(|line| line.starts_with("  warpsmith fleet ")).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_warpsmith")).parent().expect("a folder");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let port = warpsmith_trials::free_port();
    let shell = |line: &str| {
        let mut command = std::process::Command::new("sh");
        command.arg("-c").arg(line).current_dir(folder.path()).env("PATH", &path).stdin(Stdio::null());
        command
    };
    // On a port of its own: others may have the usual one.
    let first = example[0].replace("init trial", &format!("init trial --listen 127.0.0.1:{port}"));
    let made = shell(&first).output().expect("runs");
    assert!(made.status.success(), "{first}: {}", text(&made));
    let file = folder.path().join("me.invitation");
    let mode = std::fs::metadata(&file).expect("written").permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    // Not over what is there; and then no worker is invited.
    let before = std::fs::read(&file).expect("there");
    let again = shell("warpsmith fleet invite trial two --output me.invitation").output().expect("runs");
    assert_eq!(again.status.code(), Some(2), "{}", text(&again));
    assert!(text(&again).contains("no worker was invited"), "{}", text(&again));
    assert_eq!(std::fs::read(&file).expect("there"), before);
    let two = shell("warpsmith fleet invite trial two --output two.invitation").output().expect("runs");
    assert_eq!(
        (two.status.code(), two.stdout.as_slice()),
        (Some(0), &b"two.invitation\n"[..]),
        "{}",
        text(&two)
    );
    let line =
        format!("exec {} --device cpu --threads 1 --spool spool", example[1].trim().trim_end_matches('&'));
    let mut work = shell(&line).stderr(Stdio::piped()).spawn().expect("starts");
    let said = Said::by(&mut work);
    let _worker = Running(work);
    let told = said.wait_for(&["connection refused"]);
    assert!(told.contains("Nothing listens there") && !told.contains("key"), "{told}");
}

/// A worker says when nobody leads, when it loses the server, when it is back, and when its key is accepted no longer.
#[test]
fn workers_report_their_connection() {
    let Some((folder, mut home)) = fleet() else { return };
    let invitation = folder.path().join("invitation");
    std::fs::write(&invitation, home.invite("rig").expect("invited").text().as_bytes()).expect("written");
    std::fs::set_permissions(&invitation, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("set");
    let mut running = server(&home);
    let mut work = warpsmith(&["fleet", "work", "--device", "cpu", "--threads", "1"]);
    work.arg(&invitation).arg("--spool").arg(folder.path().join("spool"));
    let mut work = work.stderr(Stdio::piped()).spawn().expect("starts");
    let said = Said::by(&mut work);
    let _worker = Running(work);
    let wait_for = |parts: &[&str]| drop(said.wait_for(parts));
    // It is connected where it has a job.
    wait_for(&["rig of the fleet"]);
    wait_for(&["no coordinator answers"]);
    let _coordinator = coordinator(&home, "qqqqqqqqqq");
    wait_for(&["candidates a second"]);
    running.kill();
    wait_for(&["is lost"]);
    running = server(&home);
    wait_for(&["is restored"]);
    let removed = warpsmith(&["fleet", "remove", home.folder().to_str().expect("text"), "rig"]).output();
    assert!(removed.expect("runs").status.success());
    // By the server that does not let it in any more, or by the coordinator before that.
    wait_for(&["removed from the fleet", "put out of the fleet"]);
    drop(running);
}

/// A job of a few keys, submitted while the only worker is at a long unit of another job: the worker is called to it. The first
/// `submit` is interrupted, and says how it ended.
#[test]
fn a_new_job_does_not_wait_for_an_old_unit() {
    let Some((folder, mut home)) = fleet() else { return };
    let path = home.folder().to_str().expect("text").to_owned();
    let _worker = worker(folder.path(), &mut home, "one");
    let _server = server(&home);
    let submit = |more: &[&str]| {
        let mut command = warpsmith(&["fleet", "submit", &path, "--unit-time", "900s"]);
        command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("starts")
    };
    let first = submit(&["npub", "qqqqqqqqqq"]);
    for n in 0.. {
        let status = status(&home).expect("read");
        if status.jobs.first().is_some_and(|job| job.leased > 0) && status.claimed > 0.0 {
            break;
        }
        assert!(n < 3000, "no unit was given");
        std::thread::sleep(Duration::from_millis(100));
    }
    // SAFETY: interrupts a process of this test.
    unsafe { libc::kill(first.id() as i32, libc::SIGINT) };
    let first = first.wait_with_output().expect("ends");
    assert_eq!(first.status.code(), Some(130), "{}", text(&first));
    for part in
        ["odds      1 in", "interrupted: no match (the chance of one was", "stays open: the same command"]
    {
        assert!(text(&first).contains(part), "{part}: {}", text(&first));
    }
    let addresses = folder.path().join("addresses.txt");
    std::fs::write(&addresses, "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2\n").expect("written");
    let addresses = addresses.to_str().expect("text");
    let second = submit(&[
        "scan",
        "--range",
        "1:ffff",
        "--targets",
        addresses,
        "--workers-may-learn-keys",
        "--time-limit",
        "600s",
    ]);
    let second = second.wait_with_output().expect("ends");
    assert!(text(&second).contains("the whole range is covered"), "{}", text(&second));
}

/// Takes any certificate: here it is the server that must not be fooled.
#[derive(Debug)]
struct Any;

impl ServerCertVerifier for Any {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// A connection that speaks the server's protocol by hand, since libraries refuse to send what is too large.
fn by_hand(invitation: &Invitation) -> StreamOwned<ClientConnection, TcpStream> {
    let mut stream = TcpStream::connect(&invitation.server).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(300))).expect("set");
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("it says who it is");
        line.push(byte[0]);
    }
    let about: serde_json::Value = serde_json::from_slice(&line["INFO ".len()..]).expect("JSON");
    assert_eq!(about["max_payload"], 65536);
    let nonce = about["nonce"].as_str().expect("a nonce");
    let pair = nkeys::KeyPair::from_seed(&invitation.seed).expect("a key");
    let signature = pair.sign(nonce.as_bytes()).expect("signed");
    use base64::Engine as _;
    let signature = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(signature);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Any))
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream =
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).expect("a connection"), stream);
    let hello = serde_json::json!({"verbose": true, "pedantic": false, "nkey": pair.public_key(), "sig": signature,
        "lang": "test", "version": "1", "protocol": 1});
    stream.write_all(format!("CONNECT {hello}\r\n").as_bytes()).expect("sent");
    stream
}

/// Reads until the text is there, or the connection ends.
fn read_until(stream: &mut impl std::io::Read, wanted: &str) -> String {
    let (mut all, mut buffer) = (String::new(), [0; 4096]);
    while !all.contains(wanted) {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(read) => all += &String::from_utf8_lossy(&buffer[..read]),
        }
    }
    all
}

/// A message that the coordinator's library cannot read costs it the connection, and nothing else: it connects again and leads on.
#[test]
fn unreadable_messages_cost_a_connection() {
    let Some((_folder, mut home)) = fleet() else { return };
    let one = home.invite("one").expect("invited");
    let _server = server(&home);
    let _coordinator = coordinator(&home, "qqqqqqqqqq");
    let epoch = || status(&home).expect("the folder is here").epoch;
    let log = || std::fs::read_to_string(home.folder().join("co.log")).expect("a log");
    let wait_until = |what: &str, is_so: &dyn Fn() -> bool| {
        let begin = std::time::Instant::now();
        while !is_so() {
            assert!(begin.elapsed() < Duration::from_secs(300), "{what}: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait_until("nobody leads", &|| epoch().is_some());
    let before = epoch();
    let mut stream = by_hand(&one);
    assert!(read_until(&mut stream, "+OK").contains("+OK"), "it is let in");
    stream.write_all(b"PUB req.get.1 \xff 2\r\n{}\r\n").expect("sent");
    wait_until("it was read", &|| log().contains("was lost; reconnecting"));
    wait_until("it does not come back", &|| epoch().is_some());
    assert_eq!(epoch(), before, "it leads on");
}

/// T10: ten megabytes in one message. The server ends that connection, the coordinator never hears of it, and others go on.
#[test]
fn ten_megabytes_are_refused() {
    let Some((_folder, mut home)) = fleet() else { return };
    let (one, two) = (home.invite("one").expect("invited"), home.invite("two").expect("invited"));
    let _server = server(&home);
    runtime().block_on(async {
        let owner = as_coordinator(&home).await.expect("in");
        let mut heard = owner.subscribe("req.>").await.expect("all");
        owner.flush().await.expect("sent");
        let told = tokio::task::spawn_blocking(move || {
            let mut stream = by_hand(&one);
            assert!(read_until(&mut stream, "+OK").contains("+OK"), "it is let in");
            // One that fits arrives, so that it is the size that is refused.
            stream.write_all(b"PUB req.put.1 5\r\nhello\r\n").expect("sent");
            let size = 10 << 20;
            let mut sent = stream.write_all(format!("PUB req.put.1 {size}\r\n").as_bytes());
            for _ in 0..size / 65536 {
                sent = sent.and_then(|()| stream.write_all(&[b'x'; 65536]));
            }
            let told = read_until(&mut stream, "Maximum Payload");
            // It is over, whether the rest could be sent or not.
            let mut rest = [0; 16];
            assert!(matches!(stream.read(&mut rest), Ok(0) | Err(_)), "the connection ends");
            (told, sent.is_ok())
        });
        let (told, _) = told.await.expect("ends");
        let client = as_worker(&two).await.expect("in");
        client.publish("req.put.2", "after".into()).await.expect("sent");
        client.flush().await.expect("sent");
        use futures_util::StreamExt as _;
        let mut seen = Vec::new();
        while let Ok(Some(message)) = tokio::time::timeout(Duration::from_secs(30), heard.next()).await {
            seen.push((message.subject.to_string(), message.payload.len()));
            if message.subject.as_str() == "req.put.2" {
                break;
            }
        }
        assert_eq!(seen, [("req.put.1".to_owned(), 5), ("req.put.2".to_owned(), 5)]);
        assert!(told.contains("Maximum Payload") || told.is_empty(), "{told}");
    });
}

/// Whoever runs the server makes leases up: floods of shares, candidates that are none of the job's, units of years. A real worker
/// refuses each, says so, and asks on.
#[test]
fn made_up_leases_end_nothing() {
    let Some((folder, mut home)) = fleet() else { return };
    let text = r#"{"fleet":1,"round":0,"sought":{"kind":"key","chain":"npub"},"liked":{"by":"patterns","patterns":["qqqqqqqqqq"],"ignore_case":false,"checksum":false}}"#;
    let job = serde_json::from_str::<Descriptor>(text).expect("a job").id();
    let invitation = folder.path().join("invitation");
    std::fs::write(&invitation, home.invite("rig").expect("invited").text().as_bytes()).expect("written");
    std::fs::set_permissions(&invitation, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("set");
    let _server = server(&home);
    let mut work = warpsmith(&["fleet", "work", "--device", "cpu", "--threads", "1"]);
    work.arg(&invitation).arg("--spool").arg(folder.path().join("spool"));
    let mut work = work.stderr(Stdio::piped()).spawn().expect("starts");
    let said = Said::by(&mut work);
    let mut worker = Running(work);
    let lease = |ready: &Ready, number: u64| {
        let point = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798".to_owned();
        let (bits, orbits, steps) = match number {
            0 => (1, 3, 64 * ready.grain),
            1 => (11, 2, ready.grain),
            _ => (50, 3, 1 << 40),
        };
        let work = Work::Keys { point, half: ready.half, orbits, signs: false, steps };
        let (unit, ms, token) = (1 + number, u64::MAX, "00".repeat(16));
        Lease { job, unit, count: 1, epoch: 1, worker: 1, slot: 0, bits, beat: 0, ms, work, token }
    };
    runtime().block_on(async {
        use futures_util::StreamExt as _;
        let owner = as_coordinator(&home).await.expect("in");
        let mut requests = owner.subscribe("req.>").await.expect("all");
        owner.flush().await.expect("sent");
        let mut given = 0;
        while given < 6 {
            let message = tokio::time::timeout(Duration::from_secs(300), requests.next()).await;
            let message = message.expect("it asks on").expect("a message");
            let Some(reply) = message.reply else { continue };
            let answer = if message.subject.as_str() == "req.job.1" {
                format!("1\n{text}").into_bytes()
            } else {
                let ask: Ask = serde_json::from_slice(&message.payload).expect("a device asks for work");
                let answer = match ask.ready {
                    None => Answer::Prepare { job },
                    Some(_) if ask.busy || !ask.holding.is_empty() => Answer::Wait { ms: 100 },
                    Some(ready) => {
                        given += 1;
                        Answer::Lease(Box::new(lease(&ready, given % 3)))
                    }
                };
                serde_json::to_vec(&answer).expect("plain")
            };
            owner.publish(reply, answer.into()).await.expect("sent");
        }
    });
    for unit in [2, 3, 1] {
        said.wait_for(&[&format!("unit {unit} is not done")]);
    }
    assert!(worker.0.try_wait().expect("asked").is_none(), "it goes on");
}
