//! Files that others have taken the place of, for those who are still reading them: a download is of one file to its end, and made of
//! many requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::database::Database;

/// A file that nobody asked for in so long is given up. A download asks for something every few seconds, or every minute over a slow line.
const UNWANTED: Duration = Duration::from_secs(600);
/// The most of them: each takes its room on the disk until it is given up.
const MOST: usize = 4;

/// The newest first.
#[derive(Default)]
pub(super) struct Former(Vec<File>);

struct File {
    database: Arc<Database>,
    wanted: Mutex<Instant>,
}

impl Former {
    /// One that was the present one until now.
    pub(super) fn add(&mut self, database: Arc<Database>, now: Instant) {
        self.0.insert(0, File { database, wanted: Mutex::new(now) });
        self.0.truncate(MOST);
        self.give_up(now);
    }

    /// Gives up what nobody reads any more. The newest stays until the next: somebody may just have begun with its head.
    pub(super) fn give_up(&mut self, now: Instant) {
        let mut number = 0;
        self.0.retain(|file| {
            number += 1;
            number == 1 || !file.is_unwanted(now)
        });
    }

    /// Whether there is one to give up.
    pub(super) fn is_too_long(&self, now: Instant) -> bool {
        self.0.iter().skip(1).any(|file| file.is_unwanted(now))
    }

    /// The one with this tag, which is wanted from now on.
    pub(super) fn get(&self, tag: &[u8], now: Instant) -> Option<Arc<Database>> {
        let file = self.0.iter().find(|file| file.database.description().tag().as_bytes() == tag)?;
        *file.wanted.lock().unwrap_or_else(PoisonError::into_inner) = now;
        Some(Arc::clone(&file.database))
    }
}

impl File {
    fn is_unwanted(&self, now: Instant) -> bool {
        let last = *self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        now.saturating_duration_since(last) > UNWANTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Builder;
    use crate::params::Choice;

    #[test]
    fn a_file_stays_as_long_as_it_is_read_and_a_few_at_most() {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<Arc<Database>> = (0..8u8)
            .map(|number| {
                let path = folder.path().join(number.to_string());
                let mut builder = Builder::new(&path, Choice::new(16, 8), 0, None).unwrap();
                builder.push(&[number; 128]).unwrap();
                builder.finish().unwrap();
                Arc::new(Database::open(&path).unwrap())
            })
            .collect();
        let tag = |number: usize| files[number].description().tag();
        let start = Instant::now();
        let (soon, late) = (start + UNWANTED / 2, start + UNWANTED * 5 / 4);
        let mut former = Former::default();
        for file in &files[..3] {
            former.add(Arc::clone(file), start);
        }
        let has = |former: &Former, at| {
            (0..8).filter(|number| former.get(tag(*number).as_bytes(), at).is_some()).collect::<Vec<_>>()
        };
        // The first goes on being read, the second is not.
        assert!(former.get(tag(0).as_bytes(), soon).is_some() && former.get(b"another", soon).is_none());
        assert!(!former.is_too_long(soon) && former.is_too_long(late));
        former.give_up(late);
        assert_eq!(has(&former, late), [0, 2]);
        assert!(!former.is_too_long(late));
        for file in &files[3..] {
            former.add(Arc::clone(file), late);
        }
        assert_eq!(has(&former, late), [4, 5, 6, 7]);
        former.give_up(late + 2 * UNWANTED);
        assert_eq!(has(&former, late), [7]);
    }
}
