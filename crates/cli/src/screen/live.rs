//! The thread that draws the live screen and listens to keys.

use std::fs::File;
use std::io::{PipeReader, PipeWriter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use std::os::fd::AsRawFd;

use warpsmith::devices::under_way;
use warpsmith::search::Pause;
use warpsmith_console::block::Looks;
use warpsmith_console::screen::FRAME_INTERVAL;
use warpsmith_console::times::Time;
use warpsmith_console::{signals, terminal};

use super::drawing::block;
use super::health;
use super::keys::{Key, Woken, wait};
use super::model::{Model, Mood};

/// What keys act on.
#[derive(Clone)]
pub(crate) struct Reins {
    pub interrupt: Arc<AtomicBool>,
    pub pause: Arc<Pause>,
}

impl Reins {
    fn mood(&self) -> Mood {
        match (self.interrupt.load(Ordering::Relaxed), self.pause.is_on()) {
            (true, _) => Mood::Stopping,
            (false, true) => Mood::Paused,
            (false, false) => Mood::Running,
        }
    }
}

/// The live screen, for as long as it lives.
pub(crate) struct Live {
    model: Arc<Mutex<Model>>,
    thread: Option<JoinHandle<()>>,
    /// Closed, it ends the thread.
    end: Option<PipeWriter>,
}

impl Live {
    /// None where there is no thread to be had: then it goes without.
    pub fn start(model: Model, reins: Reins) -> Option<Live> {
        // Their handlers restore the terminal. Where a signal cannot be handled, the command itself says so.
        let _ = signals::hold();
        let model = Arc::new(Mutex::new(model));
        let (ended, end) = std::io::pipe().ok()?;
        let shown = Arc::clone(&model);
        let run = move || show(&shown, &reins, &ended);
        let thread = Builder::new().name("screen".to_owned()).spawn(run).ok()?;
        health::watch(&model);
        Some(Live { model, thread: Some(thread), end: Some(end) })
    }

    /// What is known of the run.
    pub fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, for somebody else.
    pub fn shared(&self) -> Arc<Mutex<Model>> {
        Arc::clone(&self.model)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        terminal::clear();
    }
}

/// Gives the keyboard back at the end.
struct GivenBack;

impl Drop for GivenBack {
    fn drop(&mut self) {
        terminal::disable_keys();
    }
}

fn show(model: &Mutex<Model>, reins: &Reins, ended: &PipeReader) {
    let looks = Looks::of_stderr();
    let commanding = terminal::controlling();
    let keyboard = commanding.as_ref().filter(|_| terminal::may_take_keys());
    // Before the terminal is closed.
    let _given_back = GivenBack;
    loop {
        match wait(keyboard, ended, FRAME_INTERVAL) {
            Woken::End => return,
            Woken::Keys(keys) => keys.into_iter().for_each(|key| press(key, model, reins)),
            Woken::Time => {}
        }
        // In the background the terminal is somebody else's.
        let in_front = |terminal: &File| terminal::is_foreground(terminal.as_raw_fd());
        if commanding.as_ref().is_none_or(in_front) {
            let (columns, rows) = terminal::size();
            let view = {
                let model = model.lock().unwrap_or_else(PoisonError::into_inner);
                model.view(&Time::now(), reins.mood(), &under_way(), keyboard.is_some())
            };
            terminal::draw(block(&view, columns, rows, looks).rows(columns, looks));
        }
    }
}

fn press(key: Key, model: &Mutex<Model>, reins: &Reins) {
    match key {
        Key::Details => {
            let mut model = model.lock().unwrap_or_else(PoisonError::into_inner);
            model.details = !model.details;
        }
        Key::Pause => {
            if model.lock().unwrap_or_else(PoisonError::into_inner).can_pause {
                reins.pause.set(!reins.pause.is_on());
            }
        }
        // Twice ends it at once, as Ctrl-C does.
        Key::Stop => signals::request_stop(),
    }
}
