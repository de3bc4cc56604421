//! Who leads: one coordinator at a time, by a key that lasts ten seconds unless it is renewed.

use std::time::Duration;

use async_nats::jetstream::{self, Context, kv, stream};

use crate::error::{Error, Result};
use crate::job::JobId;

/// How long a leader that is not heard of stays one.
pub const LASTS: Duration = Duration::from_secs(10);
/// How often it says that it is there.
pub const RENEWED: Duration = Duration::from_secs(3);

const KEY: &str = "leader";
/// Bytes of a job's text in one message.
const PIECE: usize = 32 << 10;

fn network(what: &str) -> impl FnOnce(String) -> Error {
    move |error| Error::Network(format!("{what}: {error}"))
}

/// What the server keeps for a fleet.
#[derive(Clone)]
pub struct Stores {
    context: Context,
    lead: kv::Store,
}

impl Stores {
    /// Makes what is not there. A bucket is made as the stream it is, since old servers answer the usual request otherwise.
    pub async fn open(client: &async_nats::Client) -> Result<Stores> {
        let context = jetstream::new(client.clone());
        let bucket = |name: &str, history, max_age| stream::Config {
            name: format!("KV_{name}"),
            subjects: vec![format!("$KV.{name}.>")],
            max_messages_per_subject: history,
            max_age,
            discard: stream::DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            ..stream::Config::default()
        };
        let hits = stream::Config {
            name: "HIT".to_owned(),
            subjects: vec!["hit.>".to_owned()],
            max_message_size: 4096,
            max_bytes: 256 << 20,
            discard: stream::DiscardPolicy::New,
            duplicate_window: Duration::from_secs(120),
            deny_delete: true,
            deny_purge: true,
            ..stream::Config::default()
        };
        for config in [bucket("JOB", 8, Duration::ZERO), bucket("LEAD", 1, LASTS), hits] {
            let made = context.get_or_create_stream(config).await;
            made.map_err(|error| network("the server keeps nothing for the fleet")(error.to_string()))?;
        }
        let lead = context.get_key_value("LEAD").await;
        let lead =
            lead.map_err(|error| network("the server has no place for a leader")(error.to_string()))?;
        Ok(Stores { context, lead })
    }

    /// Becomes the leader, if there is none: the revision, which is the epoch.
    ///
    /// One that ran on this machine and has ended is replaced at once; of others it is known after [`LASTS`].
    pub async fn try_lead(&self, name: &str) -> Option<u64> {
        if let Ok(revision) = self.lead.create(KEY, name.to_owned().into()).await {
            return Some(revision);
        }
        let entry = self.lead.entry(KEY).await.ok().flatten()?;
        let before = std::str::from_utf8(&entry.value).ok()?;
        if !has_ended_here(before) {
            return None;
        }
        // Of several who saw that, one has the right revision.
        self.lead.update(KEY, name.to_owned().into(), entry.revision).await.ok()
    }

    /// Stays the leader; the next revision. An error if it is one no longer, or if that cannot be found out.
    pub async fn renew(&self, name: &str, revision: u64) -> Result<u64> {
        let renewed =
            tokio::time::timeout(RENEWED, self.lead.update(KEY, name.to_owned().into(), revision)).await;
        match renewed {
            Ok(Ok(revision)) => Ok(revision),
            Ok(Err(error)) => Err(network("leading ended")(error.to_string())),
            Err(_) => Err(Error::Network("the server does not answer".to_owned())),
        }
    }

    /// Makes room for another.
    pub async fn resign(&self) {
        let _ = tokio::time::timeout(RENEWED, self.lead.purge(KEY)).await;
    }

    /// Puts the text of a job where workers read it.
    pub async fn publish(&self, id: JobId, text: &str) -> Result<()> {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(PIECE).collect();
        for (at, piece) in pieces.iter().enumerate() {
            let payload = [format!("{}\n", pieces.len()).as_bytes(), piece].concat();
            let sent = self.context.publish(job_subject(id, at), payload.into()).await;
            let sent = sent.map_err(|error| network("the job's text was not taken")(error.to_string()))?;
            sent.await.map_err(|error| network("the job's text was not kept")(error.to_string()))?;
        }
        Ok(())
    }

    /// The matches that workers sent, for one coordinator after the other.
    pub async fn hits(&self) -> Result<jetstream::consumer::pull::Stream> {
        let failed = |error: String| network("matches cannot be read")(error);
        let stream = self.context.get_stream("HIT").await.map_err(|error| failed(error.to_string()))?;
        let config = jetstream::consumer::pull::Config {
            durable_name: Some("co".to_owned()),
            ack_wait: Duration::from_secs(30),
            ..Default::default()
        };
        let consumer = stream.get_or_create_consumer("co", config).await;
        let consumer = consumer.map_err(|error| failed(error.to_string()))?;
        consumer.messages().await.map_err(|error| failed(error.to_string()))
    }
}

/// The name of this process: which machine since when, and its number.
pub fn own_name() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{} {}", boot.trim(), std::process::id())
}

/// Whether a process of that name ran on this machine, and runs no longer.
fn has_ended_here(name: &str) -> bool {
    let own = own_name();
    let (Some((boot, pid)), Some((own_boot, _))) = (name.split_once(' '), own.split_once(' ')) else {
        return false;
    };
    let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    let here = !boot.is_empty() && boot == own_boot && is_number;
    // One that was killed stays in the list until its parent looks.
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    here && match state {
        Ok(text) => text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')),
        Err(_) => true,
    }
}

fn job_subject(id: JobId, piece: usize) -> String {
    format!("$KV.JOB.{id}.{piece}")
}

/// The text of a job, as a worker reads it; none if it is not there yet.
pub async fn fetch(client: &async_nats::Client, id: JobId) -> Result<Option<String>> {
    let (mut text, mut at, mut pieces) = (Vec::new(), 0, 1);
    while at < pieces {
        let subject = format!("$JS.API.DIRECT.GET.KV_JOB.{}", job_subject(id, at));
        let got = client.request(subject, "".into()).await;
        let got = got.map_err(|error| network("the job's text cannot be read")(error.to_string()))?;
        let Some(split) = got.payload.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let count = std::str::from_utf8(&got.payload[..split]).ok().and_then(|count| count.parse().ok());
        let Some(count) = count.filter(|count| (1..=1024).contains(count)) else { return Ok(None) };
        pieces = count;
        text.extend_from_slice(&got.payload[split + 1..]);
        at += 1;
    }
    Ok(String::from_utf8(text).ok())
}
