//! `--notify`: a command of the user's that is run for each result.
//!
//! SEC: it is told what may be shown to anybody, in its environment, and nothing else: what it does with that is not ours to know.
//! It runs beside the search, which never waits for it: when too many run already, the rest is passed over. What goes wrong is told
//! once.

use std::collections::VecDeque;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use warpsmith_console::stderr::warn;

use crate::record::Deliverable;

/// Commands that run at the same time, at most.
const MOST: usize = 16;

/// How long those that still run are waited for at the end of a search, to tell what went wrong.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Notifier {
    command: String,
    running: VecDeque<Child>,
    /// Whether something went wrong, and was told.
    told: bool,
}

impl Notifier {
    pub fn new(command: &str) -> Notifier {
        Notifier { command: command.to_owned(), running: VecDeque::new(), told: false }
    }

    /// Runs the command for a result.
    pub fn notify(&mut self, found: &Deliverable) {
        self.reap();
        if self.running.len() >= MOST {
            self.complain("it is slower than results are found, so it is not run for all of them");
            return;
        }
        let mut command = Command::new("sh");
        command.args(["-c", &self.command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        for (name, value) in found.public_parts() {
            command.env(format!("WARPSMITH_{name}"), value);
        }
        match command.spawn() {
            Ok(child) => self.running.push_back(child),
            Err(error) => self.complain(&format!("it cannot be run: {error}")),
        }
    }

    /// Looks after those that have ended.
    fn reap(&mut self) {
        for _ in 0..self.running.len() {
            let Some(mut child) = self.running.pop_front() else { return };
            match child.try_wait() {
                Ok(None) => self.running.push_back(child),
                Ok(Some(status)) if status.success() => {}
                Ok(Some(status)) => self.complain(&format!("it ended with {status}")),
                Err(error) => self.complain(&format!("it cannot be waited for: {error}")),
            }
        }
    }

    fn complain(&mut self, why: &str) {
        if !std::mem::replace(&mut self.told, true) {
            warn(&format!("--notify: {why}; the search goes on, and this is not told again"));
        }
    }
}

impl Drop for Notifier {
    /// What runs then is not ended: it is left to itself.
    fn drop(&mut self) {
        let until = Instant::now() + PATIENCE;
        self.reap();
        while !self.running.is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
            self.reap();
        }
    }
}
