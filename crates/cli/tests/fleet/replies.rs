//! Reply subjects: a worker names any for the answer to what it publishes, and nothing but its own inbox is ever answered.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use warpsmith::fleet::net::connect::{as_coordinator, as_worker};
use warpsmith::fleet::net::submit::status;
use warpsmith::fleet::wire::{Ask, VERSION};

use crate::harness::{fleet, runtime, server};
use crate::{coordinator, the_job};

/// Every subject that a worker may publish to, or ever might, with every kind of reply subject: streams, consumers, acks, keys,
/// leader, jobs, the coordinator's own subjects, other workers' subjects and inboxes. Whoever owns the server hears every message there
/// is; none comes of it but answers to the worker's own inbox, and the coordinator leads on.
#[test]
fn reply_subjects_change_nothing() {
    let Some((_folder, mut home)) = fleet() else { return };
    let one = home.invite("one").expect("invited");
    home.invite("two").expect("invited");
    let _server = server(&home);
    let _coordinator = coordinator(&home, "qqqqqqqqqq");
    let (job, folder, _) = the_job(&home);
    let runtime = runtime();
    let begin = Instant::now();
    let before = loop {
        match status(&home) {
            Ok(status) if status.epoch.is_some() => break status,
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
        assert!(begin.elapsed() < Duration::from_secs(300), "no coordinator answers");
    };
    let (device, unable, holding) = ("cpu".to_owned(), Vec::new(), Vec::new());
    let ask = Ask { version: VERSION, slot: 0, device, ready: None, unable, holding, busy: false };
    let ask = serde_json::to_string(&ask).expect("plain values");
    let text = format!(r#"{{"job":"{job}","part":0}}"#);
    let job_key = format!("$KV.JOB.{job}.0");
    let direct = format!("$JS.API.DIRECT.GET.KV_JOB.{job_key}");
    let subjects = [
        ("req.get.1", ask.as_str()),
        ("req.job.1", text.as_str()),
        ("req.put.1", "{}"),
        ("hit.1", "{}"),
        (direct.as_str(), ""),
        ("$JS.API.DIRECT.GET.KV_JOB.$KV.JOB.none.0", ""),
    ];
    let replies = [
        "$JS.API.STREAM.CREATE.X",
        "$JS.API.STREAM.UPDATE.KV_LEAD",
        "$JS.API.STREAM.DELETE.HIT",
        "$JS.API.STREAM.DELETE.KV_JOB",
        "$JS.API.STREAM.DELETE.KV_LEAD",
        "$JS.API.STREAM.PURGE.KV_JOB",
        "$JS.API.STREAM.MSG.DELETE.KV_JOB",
        "$JS.API.CONSUMER.CREATE.HIT",
        "$JS.API.CONSUMER.DURABLE.CREATE.HIT.co",
        "$JS.API.CONSUMER.DELETE.HIT.co",
        "$JS.API.CONSUMER.MSG.NEXT.HIT.co",
        "$JS.ACK.HIT.co.1.1.1.1.0",
        "$KV.LEAD.leader",
        job_key.as_str(),
        "$SYS.REQ.SERVER.PING",
        "co.cancel",
        "co.status",
        "hit.2",
        "req.get.2",
        "req.put.2",
        "req.job.2",
        "_INBOX_2.x",
        "_INBOX_co.x",
        "_INBOX_11.x",
        "_INBOX_1",
        "_INBOX.x",
    ];
    runtime.block_on(async {
        let owner = as_coordinator(&home).await.expect("connected");
        let mut heard = owner.subscribe(">").await.expect("all");
        owner.flush().await.expect("sent");
        let worker = as_worker(&one).await.expect("connected");
        let mut inbox = worker.subscribe("_INBOX_1.x").await.expect("its own");
        for reply in replies {
            for (subject, payload) in subjects {
                let payload = payload.to_owned();
                worker
                    .publish_with_reply(subject.to_owned(), reply.to_owned(), payload.into())
                    .await
                    .expect("sent");
            }
        }
        // Requests are answered in turn: when these are, the others would have been.
        for subject in ["req.get.1", "req.job.1"] {
            let payload = if subject == "req.get.1" { ask.clone() } else { text.clone() };
            worker.publish_with_reply(subject, "_INBOX_1.x", payload.into()).await.expect("sent");
            worker.flush().await.expect("sent");
            let answer = tokio::time::timeout(Duration::from_secs(120), inbox.next()).await;
            let answer = answer.expect("answered").expect("a message");
            let says = if subject == "req.get.1" { "prepare" } else { "patterns" };
            assert!(String::from_utf8_lossy(&answer.payload).contains(says), "{answer:?}");
        }
        owner.publish("last", "".into()).await.expect("sent");
        owner.flush().await.expect("sent");
        let mut seen = BTreeSet::new();
        while let Ok(Some(message)) = tokio::time::timeout(Duration::from_secs(60), heard.next()).await {
            if message.subject.as_str() == "last" {
                break;
            }
            seen.insert(message.subject.to_string());
        }
        // `fleet submit` asks how it goes, and is answered to an inbox that nobody can guess.
        seen.retain(|subject| {
            let is_own = subject.starts_with("_INBOX_co.") && subject != "_INBOX_co.x";
            !is_own && subject != "co.status"
        });
        let expected = ["_INBOX_1.x", "req.get.1", "req.job.1", "req.put.1"];
        assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        // The server has no store that a message could change.
        drop(heard);
        owner.flush().await.expect("sent");
        assert!(owner.request("$JS.API.INFO", "".into()).await.is_err(), "JetStream answers");
    });
    let after = status(&home).expect("the coordinator answers");
    assert_eq!((after.epoch, after.jobs.len()), (before.epoch, 1), "it leads on");
    assert!(!folder.join("cancelled").exists() && !folder.join("over").exists());
    let worker = after.workers.iter().find(|worker| worker.id == 1).expect("it was heard of");
    assert_eq!(worker.trust, "honest");
    assert!(after.workers.iter().all(|worker| worker.id == 1), "nobody spoke for another");
}
