//! A server under load: many connections at once, and queries at a pace that does not wait for the answers.
//!
//! Queries are those of clients in every respect a server can see: random ones, a fresh draw of a balanced mask and uniform offsets. Each is
//! due at a time that was fixed before; what it took is counted from there to the last byte of its answer, so that a server that
//! stands still is charged with all that had to wait for it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, StatusCode, header};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::error::{Error, Result};
use crate::params::Params;
use crate::random::Random;
use crate::updates::Live;
use crate::wire::{HEAD_BYTES, Query, queries_body};

/// Queries that are drawn beforehand, and then sent in turn.
const DRAWN: usize = 512;
/// Connections that are opened at the same time.
const OPENING: usize = 128;
/// What is not answered by then has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a server is put to.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Connections, all open before the first query and kept to the end.
    pub connections: usize,
    /// Queries a second, of all connections together.
    pub rate: f64,
    /// For how long.
    pub time: Duration,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Connections that were opened.
    pub connections: usize,
    /// How long it took to open them.
    pub opening: Duration,
    /// From the first query that was due to the last answer.
    pub elapsed: Duration,
    /// How long each answer took from when its query was due, the shortest first.
    pub answered: Vec<Duration>,
    /// Refusals, by status.
    pub refused: BTreeMap<u16, u64>,
    /// Queries without an answer: connections that broke or could not be opened again, and what took longer than half a minute.
    pub failed: u64,
    /// Answers that are not what the database says, or what the server said before to the same query.
    pub wrong: u64,
}

impl Figures {
    /// The time within which so large a part of the answers came, as 0.99.
    pub fn within(&self, part: f64) -> Option<Duration> {
        let last = self.answered.len().checked_sub(1)?;
        let at = (self.answered.len() as f64 * part).ceil() as usize;
        Some(self.answered[at.saturating_sub(1).min(last)])
    }

    /// How many queries were due.
    pub fn asked(&self) -> u64 {
        self.answered.len() as u64 + self.refused.values().sum::<u64>() + self.failed + self.wrong
    }

    fn add(&mut self, other: Figures) {
        self.answered.extend(other.answered);
        other
            .refused
            .into_iter()
            .for_each(|(status, count)| *self.refused.entry(status).or_default() += count);
        self.failed += other.failed;
        self.wrong += other.wrong;
    }
}

/// A query, and its answer once that is known.
struct Question {
    body: Bytes,
    answer: OnceLock<Bytes>,
}

/// Queries of one epoch, and what is answered to them.
pub struct Questions {
    all: Vec<Question>,
    longest: usize,
}

impl Questions {
    /// Draws queries. With the database itself their answers are known beforehand; without it the first answer to each is what later ones
    /// are compared with.
    ///
    /// # Errors
    ///
    /// When there are no random numbers, or the database does not have the epoch.
    pub fn draw(params: &Params, epoch: u64, database: Option<&Live>) -> Result<Questions> {
        let mut random = Random::new();
        let mut all = Vec::with_capacity(DRAWN);
        for _ in 0..DRAWN {
            let body = queries_body(params, epoch, &[Query::random(params, &mut random)?]);
            let answer = OnceLock::new();
            if let Some(live) = database {
                let _ = answer.set(live.answer(&body, 1)?.into());
            }
            all.push(Question { body: body.into(), answer });
        }
        Ok(Questions { all, longest: HEAD_BYTES + params.answer_bytes() })
    }
}

/// Puts a server to it: `address` is where it listens, `host` what it is called.
///
/// # Errors
///
/// When this machine gives no threads, or not one connection can be opened.
pub fn run(address: SocketAddr, host: &str, questions: Questions, plan: Plan) -> Result<Figures> {
    let failed = |source| Error::Io { path: "the network".into(), source };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    let target = Arc::new(Target {
        address,
        host: host.to_owned(),
        questions,
        plan,
        opening: Semaphore::new(OPENING),
    });
    runtime.block_on(target.run()).map_err(failed)
}

struct Target {
    address: SocketAddr,
    host: String,
    questions: Questions,
    plan: Plan,
    opening: Semaphore,
}

/// What one query came to.
enum Outcome {
    Answered,
    Refused(u16),
    Failed,
    Wrong,
}

impl Target {
    async fn run(self: Arc<Target>) -> std::io::Result<Figures> {
        let began = Instant::now();
        let (go, start) = watch::channel(None::<Instant>);
        let (opened, mut waiting) = tokio::sync::mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for number in 0..self.plan.connections {
            let (target, start, opened) = (Arc::clone(&self), start.clone(), opened.clone());
            tasks.spawn(async move {
                let connection = target.open().await;
                let _ = opened.send(connection.as_ref().err().map(ToString::to_string));
                // Who waits for all of these waits for the last sender to go.
                drop(opened);
                target.converse(number, connection.ok(), start).await
            });
        }
        drop(opened);
        let (mut figures, mut why) = (Figures::default(), None);
        while let Some(failed) = waiting.recv().await {
            figures.connections += usize::from(failed.is_none());
            why = failed.or(why);
        }
        figures.opening = began.elapsed();
        if figures.connections == 0 {
            tasks.abort_all();
            return Err(std::io::Error::other(why.unwrap_or_else(|| "there is no connection".to_owned())));
        }
        let start = Instant::now();
        let _ = go.send(Some(start));
        while let Some(done) = tasks.join_next().await {
            figures.add(done.map_err(std::io::Error::other)?);
        }
        figures.elapsed = start.elapsed();
        figures.answered.sort_unstable();
        Ok(figures)
    }

    async fn open(&self) -> std::io::Result<SendRequest<Body>> {
        let _turn = self.opening.acquire().await.map_err(std::io::Error::other)?;
        let opening = async {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) =
                handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
            // It ends with the sender, or when the server closes it.
            tokio::spawn(connection);
            Ok(sender)
        };
        timeout(PATIENCE, opening).await.map_err(|_| std::io::Error::from(std::io::ErrorKind::TimedOut))?
    }

    /// One connection's queries: every so many-th of all.
    async fn converse(
        &self,
        number: usize,
        mut connection: Option<SendRequest<Body>>,
        mut start: watch::Receiver<Option<Instant>>,
    ) -> Figures {
        let mut figures = Figures::default();
        let Ok(start) = start.wait_for(Option::is_some).await.map(|start| start.expect("it was waited for"))
        else {
            return figures;
        };
        for turn in (number..).step_by(self.plan.connections) {
            let after = Duration::from_secs_f64(turn as f64 / self.plan.rate);
            if after >= self.plan.time {
                break;
            }
            sleep_until(start + after).await;
            let question = &self.questions.all[turn % self.questions.all.len()];
            let outcome = timeout(PATIENCE, self.ask(&mut connection, question)).await;
            match outcome.unwrap_or(Outcome::Failed) {
                Outcome::Answered => figures.answered.push((start + after).elapsed()),
                Outcome::Refused(status) => *figures.refused.entry(status).or_default() += 1,
                Outcome::Wrong => figures.wrong += 1,
                Outcome::Failed => {
                    figures.failed += 1;
                    connection = None;
                }
            }
        }
        figures
    }

    async fn ask(&self, connection: &mut Option<SendRequest<Body>>, question: &Question) -> Outcome {
        if connection.as_ref().is_none_or(SendRequest::is_closed) {
            *connection = self.open().await.ok();
        }
        let Some(sender) = connection else { return Outcome::Failed };
        let request = Request::post("/v1/query")
            .header(header::HOST, &self.host)
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .body(Body::from(question.body.clone()));
        let Ok(request) = request else { return Outcome::Failed };
        let Ok(answer) = sender.send_request(request).await else { return Outcome::Failed };
        let status = answer.status();
        let Ok(bytes) = to_bytes(Body::new(answer.into_body()), self.questions.longest.max(4096)).await
        else {
            return Outcome::Failed;
        };
        match status {
            StatusCode::OK if *question.answer.get_or_init(|| bytes.clone()) == bytes => Outcome::Answered,
            StatusCode::OK => Outcome::Wrong,
            status => Outcome::Refused(status.as_u16()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_answers() {
        let ms = Duration::from_millis;
        let figures = Figures { answered: (1..=1000).map(ms).collect(), ..Figures::default() };
        let within = |part| figures.within(part).unwrap();
        assert_eq!(
            (within(0.0), within(0.5), within(0.99), within(1.0)),
            (ms(1), ms(500), ms(990), ms(1000))
        );
        assert_eq!(Figures { answered: vec![ms(7)], ..Figures::default() }.within(0.999), Some(ms(7)));
        assert_eq!(Figures::default().within(0.5), None);
    }
}
