//! A worker's thread, and what it and the collector tell each other.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use crossbeam_channel::{Receiver, RecvError, Sender, TryRecvError};

use super::sift::Sift;
use super::steady::Track;
use crate::worker::{Fault, Hit, Start, Worker};

/// What a worker tells the collector.
pub(super) enum Message {
    Report {
        worker: usize,
        hits: Vec<Hit>,
        done: bool,
        /// Whether the worker went on from its spare start and waits for no answer.
        moved_on: bool,
    },
    Lost {
        worker: usize,
        fault: Fault,
    },
}

/// What the collector answers.
pub(super) enum Answer {
    GoOn,
    StartOver(Start),
    /// No answer to a report: where to go on after the next likely match.
    Spare(Start),
}

/// Answers a worker may not have read: one, and a spare start.
pub(super) const UNREAD: usize = 2;

/// A worker, and how it hears of the collector.
pub(super) struct WorkerThread<'d> {
    pub worker: Box<dyn Worker + 'd>,
    pub answers: Receiver<Answer>,
    /// Whether most of what it hits matches.
    pub exact: bool,
}

/// Where a worker counts, and what it looks at itself.
pub(super) struct Tally<'t> {
    pub started: Instant,
    pub counter: &'t AtomicU64,
    pub track: &'t Track,
    pub sift: &'t Sift<'t>,
}

/// A worker's thread: search, count, report, obey.
pub(super) fn work(
    id: usize,
    WorkerThread { mut worker, answers, exact }: WorkerThread<'_>,
    sender: Sender<Message>,
    tally: Tally<'_>,
    best: &AtomicU32,
    stop: &AtomicBool,
) {
    let (mut beaten, mut spare) = (0, None);
    // Of what was counted, what no check of its walk has confirmed: it does not count any more once the worker is lost.
    let mut unproved = 0;
    let faulty = |fault, unproved| {
        tally.counter.fetch_sub(unproved, Ordering::Relaxed);
        drop(sender.send(Message::Lost { worker: id, fault }));
    };
    while !stop.load(Ordering::Relaxed) {
        match answers.try_recv() {
            Ok(Answer::Spare(start)) => spare = Some(start),
            Ok(Answer::GoOn | Answer::StartOver(_)) => unreachable!("nobody asked"),
            Err(TryRecvError::Empty) => {}
            // Nobody listens any more: what it reported last was wrong.
            Err(TryRecvError::Disconnected) => return,
        }
        let best = best.load(Ordering::Relaxed);
        if best > beaten {
            beaten = best;
            if let Err(fault) = worker.raise(best + 1) {
                return faulty(fault, unproved);
            }
        }
        let mut batch = match worker.run() {
            Ok(batch) => batch,
            Err(fault) => return faulty(fault, unproved),
        };
        unproved = worker.unproved();
        let tried = tally.counter.fetch_add(batch.tried, Ordering::Relaxed) + batch.tried;
        tally.track.note(tally.started, Instant::now(), tried);
        let likely = tally.sift.sift(&mut batch.hits, exact);
        if batch.hits.is_empty() && !batch.done {
            continue;
        }
        let next = if likely { spare.take() } else { None };
        let report =
            Message::Report { worker: id, hits: batch.hits, done: batch.done, moved_on: next.is_some() };
        if sender.send(report).is_err() {
            return;
        }
        let next = match next {
            Some(_) => next,
            None => match verdict(&answers, &mut spare) {
                Ok(next) => next,
                Err(RecvError) => return,
            },
        };
        if let Some(start) = next
            && let Err(fault) = worker.start(&start)
        {
            return faulty(fault, unproved);
        }
    }
}

/// Waits for the answer to a report: where to start over, if so.
fn verdict(
    answers: &Receiver<Answer>,
    spare: &mut Option<Start>,
) -> std::result::Result<Option<Start>, RecvError> {
    loop {
        match answers.recv()? {
            Answer::GoOn => return Ok(None),
            Answer::StartOver(start) => return Ok(Some(start)),
            Answer::Spare(start) => *spare = Some(start),
        }
    }
}
