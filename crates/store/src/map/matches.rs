//! What was found, by address and time. SEC: never a key: where that went is its owner's affair.

use std::collections::BTreeMap;

use super::Map;

/// The most that are listed by address: a database of which a range is full would make the map grow without end.
pub(super) const MOST: usize = 10_000;

/// The longest address there is has some ninety characters.
const MOST_CHARACTERS: usize = 128;

/// What a job has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matches {
    /// When each address was found first, in seconds since 1970.
    pub listed: BTreeMap<String, u64>,
    /// How many more there were. Nobody knows which, so that one that is found again counts again.
    pub unlisted: u64,
}

impl Matches {
    fn note(&mut self, address: &str, now: u64) {
        if let Some(found) = self.listed.get_mut(address) {
            *found = now.min(*found);
        } else if self.listed.len() < MOST {
            self.listed.insert(address.to_owned(), now);
        } else {
            self.unlisted = self.unlisted.saturating_add(1);
        }
    }

    /// Adds those of another map of the job. Of what neither lists, nobody knows how much is the same: there is at least as much as
    /// in one of them.
    pub fn join(&mut self, other: &Self) {
        self.unlisted = self.unlisted.max(other.unlisted);
        other.listed.iter().for_each(|(address, found)| self.note(address, *found));
    }
}

/// Whether this can be an address: one word.
pub(super) fn is_address(text: &str) -> bool {
    (1..=MOST_CHARACTERS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl Map {
    /// Notes that an address was found, at a time in seconds since 1970. Its key was delivered before, and the batch it lies in is
    /// completed after, so that a map never says covered what it does not say found. The first 10,000 are listed, the others counted.
    ///
    /// # Panics
    ///
    /// When it is no word.
    pub fn note_match(&mut self, address: &str, now: u64) {
        assert!(is_address(address), "an address is a word");
        self.matches.note(address, now);
    }

    /// The addresses that were found and when, in seconds since 1970, in alphabetical order.
    pub fn matches(&self) -> impl ExactSizeIterator<Item = (&str, u64)> {
        self.matches.listed.iter().map(|(address, found)| (address.as_str(), *found))
    }

    /// How many were found besides those that are listed; one that was found again counts again.
    pub fn unlisted_matches(&self) -> u64 {
        self.matches.unlisted
    }
}

#[cfg(test)]
mod tests {
    use crate::map::tests::{job, lines_of, number, read_lines};
    use crate::map::{Map, Planner, text};
    use crate::order::Order;
    use crate::{Error, U256};

    fn found(map: &Map) -> Vec<(&str, u64)> {
        map.matches().collect()
    }

    #[test]
    fn what_was_found_is_remembered_by_address_and_first_time() {
        let mut map = Map::new(job(number(5), 100), Order::Sequential);
        map.note_match("bc1second", 20);
        map.note_match("1First", 30);
        map.note_match("bc1second", 40);
        map.complete(&Planner::new(&map).next(number(7)).unwrap(), 41);
        let written = text::write(&map);
        assert!(written.contains("\nmatch 1First 30\nmatch bc1second 20\ncovered 5:b\n"), "{written}");
        let read = text::read("m".as_ref(), written.as_bytes()).unwrap();
        assert_eq!(found(&read), [("1First", 30), ("bc1second", 20)]);
        assert_eq!((read.covered(), read.unlisted_matches()), (number(7), 0));
        assert_eq!(text::write(&read), written);
    }

    #[test]
    fn a_flood_of_matches_is_counted() {
        let mut map = Map::new(job(number(5), 100), Order::Sequential);
        for n in 0..10_003 {
            map.note_match(&format!("address{n}"), n);
        }
        map.note_match("address7", 99);
        assert_eq!((map.matches().len(), map.unlisted_matches()), (10_000, 3));
        let written = text::write(&map);
        assert!(written.contains("\nunlisted 3\n"));
        assert_eq!(text::read("m".as_ref(), written.as_bytes()).unwrap(), map);
        let mut other = Map::new(job(number(5), 100), Order::Sequential);
        other.note_match("another", 5);
        other.note_match("address7", 5);
        let joined = Map::merge(&[map.clone(), other]).unwrap().unwrap();
        assert_eq!((joined.matches().len(), joined.unlisted_matches()), (10_000, 4));
        assert_eq!(joined.matches().find(|(address, _)| *address == "address7"), Some(("address7", 5)));
        // A copy adds nothing.
        let same = Map::merge(&[map.clone(), map.clone()]).unwrap().unwrap();
        assert_eq!((same.matches().len(), same.unlisted_matches()), (10_000, 3));
        // Nor can a hand make it longer.
        let long = lines_of(&map).replace("unlisted", "match zzz 5\nunlisted");
        assert!(matches!(read_lines(&long), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn matches_that_no_version_wrote_are_refused() {
        let mut map = Map::new(job(number(5), 100), Order::Sequential);
        map.note_match("1First", 30);
        let body = lines_of(&map);
        assert!(read_lines(&body).is_ok());
        for (from, to) in [
            ("1First 30", "1First"),
            ("1First 30", "1First 30 40"),
            ("1First 30", "1First -30"),
            ("1First 30", " 30"),
            ("1First 30", "1First\u{e9} 30"),
            ("1First 30", "1First 30\nmatch 1First 30"),
            ("1First 30", "1First 30\nmatch 0 30"),
            ("1First 30", "1First 30\nunlisted 0"),
            ("1First 30", "1First 30\nunlisted 1"),
        ] {
            let wrong = body.replacen(from, to, 1);
            assert_ne!(wrong, body);
            assert!(matches!(read_lines(&wrong), Err(Error::Corrupt { .. })), "{to}");
        }
    }

    #[test]
    fn another_order_keeps_what_was_found() {
        let mut map = Map::new(job(number(5), 100), Order::Sequential);
        map.note_match("1First", 30);
        let random = map.with_order(Order::random(&map.job().range(), 5, U256::new(9))).unwrap();
        assert_eq!(found(&random), [("1First", 30)]);
        let joined =
            Map::merge(&[Map::new(job(number(5), 100), Order::Sequential), random]).unwrap().unwrap();
        assert_eq!(found(&joined), [("1First", 30)]);
    }
}
