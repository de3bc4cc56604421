//! Reads the tree of an LMDB data file (format 1, of 64-bit little-endian machines) by positioned reads.
//!
//! LMDB itself maps the file and believes its pages, so that a damaged one ends the process; and pages have no checksums.
//! Here every number is held against the page and the file before it is used, pages must be of the kind and number their
//! parents say, keys must ascend over the whole tree, and there must be as many as the tree says it has. What remains
//! unseen are changed bytes within a record.
//!
//! | a page | |
//! |---|---|
//! | 0 | its number (8) |
//! | 10 | flags (2): 1 branch, 2 leaf, 8 meta |
//! | 12 | where the list of nodes ends (2) |
//! | 16 | where each node is (2 each); in a meta page what follows |
//!
//! | a node | |
//! |---|---|
//! | 0 | in a leaf bytes of the value (4) and flags (2), in a branch the child's number (6) |
//! | 6 | bytes of the key (2) |
//! | 8 | the key, then the value |
//!
//! | a meta page, from 16 on | |
//! |---|---|
//! | 0 | 0xbeefc0de (4), format (4) |
//! | 24 | the tree of free pages, of which only the first number, the size of a page, matters here |
//! | 72 | the tree of tables by name |
//! | 128 | the transaction (8) |
//!
//! | a tree | |
//! |---|---|
//! | 4 | flags (2), depth (2) |
//! | 32 | entries (8), number of the root (8), all ones if it is empty |

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::WHAT;
use crate::Error;

const MAGIC: u32 = 0xbeef_c0de;
const FORMAT: u32 = 1;
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
/// Flags of a leaf's node: the value is elsewhere; it is a tree; it is several values.
const ELSEWHERE: u16 = 1;
const TREE: u16 = 2;
/// Where the nodes of a page begin, and where the bytes of a meta page do.
const BODY: usize = 16;
/// Bytes of a node before its key, and of a tree.
const NODE: usize = 8;
const TABLE: usize = 48;
const PAGES: std::ops::RangeInclusive<usize> = 512..=32768;
/// LMDB's own limit.
const DEEPEST: usize = 32;
const EMPTY: u64 = u64::MAX;

/// An LMDB data file.
pub(super) struct Tree {
    path: PathBuf,
    file: File,
    page: usize,
    tables: Table,
}

/// One tree of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    flags: u16,
    depth: usize,
    entries: u64,
    root: u64,
}

impl Table {
    fn read(bytes: &[u8; TABLE]) -> Self {
        Self {
            flags: short(bytes, 4),
            depth: short(bytes, 6).into(),
            entries: long(bytes, 32),
            root: long(bytes, 40),
        }
    }
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// What is done with a pair; `false` ends the reading.
type Take<'a> = dyn FnMut(&[u8], &[u8], u16) -> Result<bool, Error> + 'a;

/// How far a walk through a tree is.
struct Walk<'a> {
    take: &'a mut Take<'a>,
    depth: usize,
    last: Option<Vec<u8>>,
    count: u64,
}

impl Tree {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let not = |reason: &str| Error::NotADatabase { path: path.to_owned(), reason: reason.to_owned() };
        let file = match path.metadata() {
            Ok(facts) if facts.is_file() => File::open(path).map_err(Error::io("read", path))?,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(Error::io("read", path)(error));
            }
            _ => return Err(not("there is no such file")),
        };
        let mut tree = Self {
            path: path.to_owned(),
            file,
            page: *PAGES.start(),
            tables: Table { flags: 0, depth: 0, entries: 0, root: EMPTY },
        };
        let first = tree.meta(0)?.ok_or_else(|| not("it is no LMDB file of this kind of machine"))?;
        tree.page = first.1;
        // Two meta pages are written in turn, and the newer one counts.
        let second = tree.meta(first.1 as u64)?;
        let newest = second.filter(|second| second.2 > first.2 && second.1 == first.1).unwrap_or(first);
        tree.tables = newest.0;
        Ok(tree)
    }

    /// The tables, the size of a page and the transaction of the meta page there, if one is.
    fn meta(&self, at: u64) -> Result<Option<(Table, usize, u64)>, Error> {
        let mut page = [0; BODY + 136];
        self.read_at(&mut page, at)?;
        let body = &page[BODY..];
        let size = word(body, 24) as usize;
        if word(body, 0) != MAGIC
            || word(body, 4) != FORMAT
            || !PAGES.contains(&size)
            || !size.is_power_of_two()
        {
            return Ok(None);
        }
        let table = body[72..72 + TABLE].try_into().expect("as long as a table");
        Ok(Some((Table::read(table), size, long(body, 128))))
    }

    /// The table of this name.
    pub fn table(&self, name: &str) -> Result<Option<Table>, Error> {
        let mut found = None;
        self.walk(&self.tables, &mut |key, value, flags| {
            if key == name.as_bytes() {
                let table = <&[u8; TABLE]>::try_from(value).ok().filter(|_| flags & TREE != 0);
                found = Some(Table::read(table.ok_or_else(|| self.corrupt("a table's name has none"))?));
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// Hands on all pairs of a table in the order of their keys, until `take` says no. Whether all were handed on.
    pub fn each(
        &self,
        table: &Table,
        mut take: impl FnMut(&[u8], &[u8]) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        self.walk(table, &mut |key, value, flags| match flags {
            0 => take(key, value),
            _ => Err(self.corrupt("it holds values that are no records'")),
        })
    }

    fn walk(&self, table: &Table, take: &mut Take<'_>) -> Result<bool, Error> {
        // Those LMDB keeps in a file: keys in another order, several values a key.
        if table.flags & 0x7fff != 0 {
            return Err(self.corrupt("its keys or values are of a kind no address database has"));
        }
        if table.depth > DEEPEST {
            return Err(self.corrupt("it is deeper than any tree"));
        }
        let mut take = |key: &[u8], value: &[u8], flags| take(key, value, flags);
        let mut walk = Walk { take: &mut take, depth: table.depth, last: None, count: 0 };
        if table.root != EMPTY && !self.page(table.root, 1, &mut walk)? {
            return Ok(false);
        }
        match walk.count == table.entries {
            true => Ok(true),
            false => {
                Err(self.corrupt(&format!("it has {} records where {} should be", walk.count, table.entries)))
            }
        }
    }

    /// Walks through the page of this number and what is below.
    fn page(&self, number: u64, depth: usize, walk: &mut Walk<'_>) -> Result<bool, Error> {
        let wrong = || self.corrupt(&format!("page {number} is not one of its tree"));
        let place = number.checked_mul(self.page as u64).ok_or_else(wrong)?;
        let mut page = vec![0; self.page];
        self.read_at(&mut page, place)?;
        // All leaves lie at one depth, and none is empty: so no page is its own child, and none is walked through twice without
        // its keys being out of order.
        let kind = if depth < walk.depth { BRANCH } else { LEAF };
        let end = usize::from(short(&page, 12));
        if long(&page, 0) != number || short(&page, 10) != kind || !(BODY + 2..=page.len()).contains(&end) {
            return Err(wrong());
        }
        for at in (BODY..end & !1).step_by(2) {
            let node = usize::from(short(&page, at));
            let node = page.get(node..).filter(|node| node.len() >= NODE).ok_or_else(wrong)?;
            let (key_end, flags) = (NODE + usize::from(short(node, 6)), short(node, 4));
            let goes_on = if kind == BRANCH {
                let child = u64::from(word(node, 0)) | u64::from(flags) << 32;
                self.page(child, depth + 1, walk)?
            } else {
                let length = if flags & ELSEWHERE == 0 { word(node, 0) as usize } else { 8 };
                let key = node.get(NODE..key_end).ok_or_else(wrong)?;
                let value = node.get(key_end..).and_then(|rest| rest.get(..length)).ok_or_else(wrong)?;
                if walk.last.as_deref().is_some_and(|last| last >= key) {
                    return Err(self.corrupt(&format!("the records of page {number} are out of order")));
                }
                let last = walk.last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
                walk.count += 1;
                (walk.take)(key, value, flags)?
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> Result<(), Error> {
        self.file.read_exact_at(into, at).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                let reason = format!("it ends before page {}", at / self.page as u64);
                Error::Truncated { path: self.path.clone(), what: WHAT, reason }
            }
            _ => Error::io("read", &self.path)(error),
        })
    }

    fn corrupt(&self, reason: &str) -> Error {
        Error::Corrupt { path: self.path.clone(), what: WHAT, reason: reason.to_owned() }
    }
}
