//! A filter on disk: a head of 128 bytes, the fingerprints, and SHA-256 of both. Numbers are little-endian.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `warpfuse` |
//! | 8 | 4 | format, 1 |
//! | 12 | 4 | bits of a fingerprint, 8 or 16 |
//! | 16 | 16 | the database's identity |
//! | 32 | 8 | different keys |
//! | 40 | 8 | fingerprints |
//! | 48 | 8 | seed |
//! | 56 | 4 | segment length |
//! | 60 | 4 | segment mask |
//! | 64 | 4 | segment count length |
//! | 68 | 4 | how many kinds |
//! | 72 | 56 | the kinds' bytes, then zeros |

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use warpsmith_files::{Draft, with_suffix};

use warpsmith_chain::AddressKind;

use super::{Filter, Fingerprints, Layout, WHAT, Width, kinds_in, path_of};
use crate::Error;
use crate::database::Database;

const MAGIC: &[u8; 8] = b"warpfuse";
const VERSION: u32 = 1;
const HEAD: usize = 128;
const KINDS: std::ops::Range<usize> = 72..HEAD;
const SUM: usize = 32;

impl Filter {
    /// Writes the filter beside its database, in place of one that may be there.
    pub fn save(&self, database: &Database) -> Result<(), Error> {
        let path = path_of(database.path(), database.about(), &self.kinds, self.width());
        let draft = Draft::begin(&path, &with_suffix(&path, ".part"), 0o644)?;
        self.write(draft.file()).map_err(Error::io("write", &path))?;
        Ok(draft.place()?)
    }

    fn write(&self, mut file: &File) -> io::Result<()> {
        let mut hash = Sha256::new();
        let mut write = |bytes: &[u8]| {
            hash.update(bytes);
            file.write_all(bytes)
        };
        write(&self.head())?;
        match &self.fingerprints {
            Fingerprints::Bytes(bytes) => write(bytes)?,
            Fingerprints::Words(words) => {
                for words in words.chunks(1 << 16) {
                    write(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())?;
                }
            }
        }
        file.write_all(&hash.finalize())
    }

    /// Reads the filter of a database's kinds from the file beside it. A filter of another database, a damaged and a
    /// foreign file are refused.
    pub fn open(database: &Database, kinds: &[AddressKind], width: Width) -> Result<Self, Error> {
        let kinds = kinds_in(database.about(), kinds);
        let path = path_of(database.path(), database.about(), &kinds, width);
        let filter = Self::read(&path)?;
        if filter.identity != database.about().identity {
            let found = filter.identity.iter().map(|byte| format!("{byte:02x}")).collect();
            return Err(Error::OtherDatabase { path, found, expected: database.about().identity_text() });
        }
        if filter.kinds != kinds || filter.width() != width {
            let reason = "its kinds or its width are not those of its name".into();
            return Err(Error::Corrupt { path, what: WHAT, reason });
        }
        Ok(filter)
    }

    fn head(&self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        let Layout { seed, segment_length, segment_mask, segment_count_length } = self.layout;
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &self.width().bits().to_le_bytes());
        put(16, &self.identity);
        put(32, &self.keys.to_le_bytes());
        put(40, &(self.size() / u64::from(self.width().bits() / 8)).to_le_bytes());
        put(48, &seed.to_le_bytes());
        put(56, &segment_length.to_le_bytes());
        put(60, &segment_mask.to_le_bytes());
        put(64, &segment_count_length.to_le_bytes());
        put(68, &(self.kinds.len() as u32).to_le_bytes());
        put(KINDS.start, &self.kinds.iter().map(|kind| kind.byte()).collect::<Vec<u8>>());
        head
    }

    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let failed = || Error::io("read the filter", path);
        let mut file = File::open(path).map_err(failed())?;
        let length = file.metadata().map_err(failed())?.len();
        let what = WHAT;
        let corrupt = |reason: &str| Error::Corrupt { path: path.to_owned(), what, reason: reason.into() };
        let truncated = |reason: String| Error::Truncated { path: path.to_owned(), what, reason };
        let mut head = Vec::new();
        (&mut file).take(HEAD as u64).read_to_end(&mut head).map_err(failed())?;
        let known = head.len().min(MAGIC.len());
        if head[..known] != MAGIC[..known] {
            return Err(Error::Foreign { path: path.to_owned(), expected: what });
        }
        let Ok(head) = <[u8; HEAD]>::try_from(head) else {
            return Err(truncated(format!("it has {length} bytes")));
        };
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        if word(8) != VERSION {
            return Err(Error::Version { path: path.to_owned(), what, found: word(8), known: VERSION });
        }
        let width = Width::ALL.into_iter().find(|width| width.bits() == word(12));
        let width = width.ok_or_else(|| corrupt("its fingerprints have a width that is none"))?;
        let layout = Layout {
            seed: long(48),
            segment_length: word(56),
            segment_mask: word(60),
            segment_count_length: word(64),
        };
        // The formula's largest index is below this, so no look-up can leave the fingerprints.
        let count = u64::from(layout.segment_count_length) + 2 * u64::from(layout.segment_length);
        let is_sound = layout.segment_length.is_power_of_two()
            && layout.segment_mask == layout.segment_length - 1
            && layout.segment_count_length.is_multiple_of(layout.segment_length)
            && count <= 1 << 32
            && count == long(40);
        if !is_sound {
            return Err(corrupt("the numbers in its head do not go together"));
        }
        let bytes = count * u64::from(width.bits() / 8);
        let wanted = (HEAD + SUM) as u64 + bytes;
        if length < wanted {
            return Err(truncated(format!("it has {length} bytes of {wanted}")));
        }
        if length > wanted {
            return Err(corrupt("it has bytes after its end"));
        }
        let mut body = vec![0; bytes as usize];
        let mut sum = [0; SUM];
        file.read_exact(&mut body).and_then(|()| file.read_exact(&mut sum)).map_err(failed())?;
        let mut hash = Sha256::new();
        hash.update(head);
        hash.update(&body);
        if hash.finalize().as_slice() != sum {
            return Err(corrupt("its SHA-256 is not the one at its end"));
        }
        let listed = &head[KINDS][..(word(68) as usize).min(KINDS.len())];
        let kinds =
            listed.iter().map(|byte| AddressKind::from_byte(*byte)).collect::<Option<Vec<AddressKind>>>();
        let kinds = kinds.ok_or_else(|| corrupt("it has a kind that is none"))?;
        let fingerprints = match width {
            Width::Fuse8 => Fingerprints::Bytes(body.into()),
            Width::Fuse16 => {
                let (words, _) = body.as_chunks();
                Fingerprints::Words(words.iter().map(|word| u16::from_le_bytes(*word)).collect())
            }
        };
        let identity = std::array::from_fn(|i| head[16 + i]);
        Ok(Self { layout, fingerprints, kinds, keys: long(32), identity })
    }
}
