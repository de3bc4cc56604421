//! A job from the folder's owner's side: submit, wait for results, end.
//!
//! Whoever submits also coordinates: the first leads, others stand by and take over. What was found is read from the job's folder,
//! so that it does not matter who leads, and made into keys here.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::Client;
use warpsmith_text::json_mistake;

use super::connect::as_coordinator;
use super::home::Home;
use super::lead::{Service, open_jobs, serve};
use super::own::{NewMatches, OwnJob, add_jobs_of};
use super::status::Status;
use crate::coordinator::Policy;
use crate::duty::Found;
use crate::error::{Error, Result};
use crate::folder::{self, ASKED, ORDER, Wishes, order_text, read_order};
use crate::id::JobId;
use crate::job::{Descriptor, Liked, Sought};
use crate::scan::{MOST_HIDDEN, Order};

/// How long the coordinator is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// A server of one's own that does not answer in so long will not.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// What a job tells.
pub enum News {
    /// Results, made and verified here.
    Found(Vec<Found>),
    /// Something to know.
    Note(String),
    /// How everything stands, now and then.
    Status(Box<Status>),
}

/// How waiting for a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is over.
    Over,
    /// It was stopped here, and can be gone on with.
    Stopped,
    /// The time is over.
    TimeLimit,
}

/// Puts a job into the folder. One that was asked for before and is not over is gone on with.
pub fn submit(home: &Home, mut descriptor: Descriptor, wishes: &Wishes) -> Result<JobId> {
    if descriptor.text().len() > Descriptor::MOST_BYTES {
        return Err(Error::Usage(format!(
            "this job's text is longer than {} bytes, the most that is sent to workers; give fewer patterns",
            Descriptor::MOST_BYTES
        )));
    }
    while home.jobs().join(descriptor.id().to_string()).join("over").exists() {
        descriptor.round += 1;
    }
    folder::create(&home.jobs(), &descriptor, None, wishes)
}

/// Puts a scan into the folder whose workers are told neither its range nor its targets. One that was asked for before and is not
/// over is gone on with. Results answer with the public keys in `asked`, by the addresses they are found as.
pub fn submit_hidden(
    home: &Home,
    order: &Order,
    asked: &HashMap<String, String>,
    wishes: &Wishes,
) -> Result<JobId> {
    if order.addresses.len() > MOST_HIDDEN {
        return Err(Error::Usage(format!(
            "{} public keys are more than the {MOST_HIDDEN} that a scan can hide from its workers: scan for them in parts",
            order.addresses.len()
        )));
    }
    for (id, folder) in open_jobs(home)? {
        let path = folder.join(ORDER);
        if path.exists() && read_order(&path)? == *order {
            return Ok(id);
        }
    }
    let mut tag = [0; 16];
    warpsmith_entropy::fill(&mut tag)?;
    let descriptor = Descriptor {
        fleet: Descriptor::FORMAT,
        round: 0,
        sought: Sought::Hidden { tag: const_hex::encode(tag) },
        liked: Liked::Points,
        split: None,
    };
    let asked = serde_json::to_string(asked).expect("plain values");
    folder::create(&home.jobs(), &descriptor, [(ORDER, order_text(order)), (ASKED, asked)], wishes)
}

/// Coordinates, or stands by, and reports what is found until the job is over, and each second the status, with as many pages of
/// workers as are wanted.
pub fn wait(
    home: &Home,
    mut job: OwnJob,
    policy: Policy,
    time_limit: Option<Duration>,
    worker_pages: usize,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(News) -> Result<()>,
) -> Result<Ended> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Error::Network(format!("no threads: {error}")))?;
    let (notes, told) = crossbeam_channel::unbounded();
    let ended = Arc::new(AtomicBool::new(false));
    let service = Service {
        home: home.clone(),
        policy,
        stop: Arc::clone(&ended),
        note: Box::new(move |text| drop(notes.send(text))),
    };
    let serving = runtime.spawn(serve(Arc::new(service)));
    let (started, mut shown) = (Instant::now(), Instant::now());
    let outcome = loop {
        // First whether it is over, then what was found: so nothing is left out.
        let is_over = job.is_over();
        let NewMatches { found, damage } = job.take_new()?;
        if !found.is_empty() {
            tell(News::Found(found))?;
            job.remember()?;
        }
        for text in damage {
            tell(News::Note(text))?;
        }
        for note in told.try_iter() {
            tell(News::Note(note))?;
        }
        if is_over {
            break Ended::Over;
        }
        if stop.load(Ordering::Relaxed) {
            break Ended::Stopped;
        }
        if time_limit.is_some_and(|limit| started.elapsed() >= limit) {
            break Ended::TimeLimit;
        }
        if shown.elapsed() > Duration::from_secs(1) {
            shown = Instant::now();
            if let Ok(status) = runtime.block_on(ask_status(home, worker_pages)) {
                tell(News::Status(Box::new(status)))?;
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    ended.store(true, Ordering::Relaxed);
    let _ = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), serving).await });
    runtime.shutdown_background();
    Ok(outcome)
}

/// Asks the coordinator, and waits no longer than ten seconds.
async fn request(
    home: &Home,
    client: &Client,
    subject: &'static str,
    payload: String,
) -> Result<bytes::Bytes> {
    let late = || Error::Network(format!("the fleet's server at {} does not answer", home.server()));
    let asked = tokio::time::timeout(PATIENCE, client.request(subject, payload.into()));
    let answer = asked.await.map_err(|_| late())?;
    let nobody = || Error::Network("no coordinator answers: `warpsmith fleet submit` starts one".to_owned());
    Ok(answer.map_err(|_| nobody())?.payload)
}

/// A connection for a question or two.
async fn connect(home: &Home) -> Result<Client> {
    let late = || Error::Network(format!("the fleet's server at {} does not answer", home.server()));
    tokio::time::timeout(PATIENCE, as_coordinator(home)).await.map_err(|_| late())?
}

/// Asks the coordinator for jobs and sums, and for at most so many pages of workers.
async fn ask_status(home: &Home, worker_pages: usize) -> Result<Status> {
    let client = connect(home).await?;
    let page = async |page: usize| -> Result<Status> {
        let answer = request(home, &client, "co.status", page.to_string()).await?;
        serde_json::from_slice(&answer).map_err(|error| {
            let why = json_mistake(&error.to_string());
            Error::Network(format!(
                "the coordinator's answer cannot be read, it may be of another version: {why}"
            ))
        })
    };
    let mut status = page(0).await?;
    for at in 1..=worker_pages {
        let more = page(at).await?;
        let is_last = !more.is_full();
        status.workers.extend(more.workers);
        if is_last {
            break;
        }
    }
    Ok(status)
}

fn blocking<T>(what: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Error::Network(format!("no threads: {error}")))?.block_on(what)
}

/// The status of a fleet: of its open jobs and its workers as the coordinator reports them, of all other jobs as the folder has
/// them. Without a coordinator the folder's jobs are all there is.
pub fn status(home: &Home) -> Result<Status> {
    let mut status = match blocking(ask_status(home, usize::MAX)) {
        Err(Error::Network(why)) => Status { unreachable: Some(why), ..Status::default() },
        asked => asked?,
    };
    add_jobs_of(&mut status, home)?;
    Ok(status)
}

/// Ends a job: at once if a coordinator is there, else when there is one.
pub fn cancel(home: &Home, id: JobId) -> Result<()> {
    let folder = home.jobs().join(id.to_string());
    let path = folder.join("cancelled");
    std::fs::write(&path, "").map_err(Error::io(&path))?;
    let told = async { request(home, &connect(home).await?, "co.cancel", id.to_string()).await };
    if blocking(told).is_err() {
        // Nobody leads it: it is over by this.
        let over = folder.join("over");
        std::fs::write(&over, "").map_err(Error::io(&over))?;
    }
    Ok(())
}

/// Has a process end when this one does, even if that is killed.
fn end_with_us(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt as _;
        // SAFETY: between fork and exec one system call is made, which takes no memory and no lock.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            });
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// A nats-server of ours, which ends with us, and with the thread that started it.
pub struct LocalServer(Child);

impl LocalServer {
    /// Starts the one on the PATH, for a trial on one machine.
    pub fn start(home: &Home) -> Result<LocalServer> {
        let log = home.folder().join("server/log");
        let mut command = Command::new("nats-server");
        command.arg("-c").arg(home.config()).arg("-l").arg(&log);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        end_with_us(&mut command);
        let child = command.spawn();
        let child = child.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::NoServer,
            _ => Error::Network(format!("nats-server cannot be started: {error}")),
        })?;
        let mut server = LocalServer(child);
        let begin = Instant::now();
        while begin.elapsed() < STARTS_WITHIN {
            if blocking(async { as_coordinator(home).await.map(drop) }).is_ok() {
                return Ok(server);
            }
            if server.0.try_wait().ok().flatten().is_some() {
                return Err(Error::Network(format!("nats-server ended at once; {} says why", log.display())));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(Error::Network(format!("nats-server does not answer; {} may say why", log.display())))
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Has a server on this machine read its configuration again; whether there is one.
pub fn reload(home: &Home) -> bool {
    let pid = std::fs::read_to_string(home.pid_file()).ok().and_then(|text| text.trim().parse::<i32>().ok());
    // Only a process by that name: the number may be somebody else's by now.
    let is_server = |pid: &i32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "nats-server"
    };
    // SAFETY: sends a signal, by which nats-server reads its configuration again.
    pid.filter(is_server).is_some_and(|pid| unsafe { libc::kill(pid, libc::SIGHUP) } == 0)
}
