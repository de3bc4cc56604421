//! Lists of addresses from outside: files of lines, packed or not, read block by block with their line numbers.
//!
//! Knows lines, and what a line may be. Does not know what becomes of the addresses.

mod line;
mod report;

pub use line::{Line, address_column, read_line};
pub use report::{BadLine, Report};

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Error;

/// Bytes of a block of lines. No line may be longer.
const BLOCK: usize = 1 << 20;

/// Whole lines of a file.
pub struct Block {
    /// Which file.
    pub path: Arc<PathBuf>,
    /// The number of the first line, from 1.
    pub line: u64,
    /// The lines with their ends.
    pub bytes: Vec<u8>,
}

/// A file, or standard input by the name of `-`.
fn open(path: &Path) -> std::io::Result<File> {
    match path == Path::new("-") {
        true => Ok(File::from(std::io::stdin().as_fd().try_clone_to_owned()?)),
        false => File::open(path),
    }
}

/// Reads a file of lines, unpacked if it is gzip or Zstandard (told by its first bytes), and gives it out in blocks until
/// `take` says no. Packed files may have several members, and the last line needs no newline. `read` is told the bytes
/// of the file read since it was last called, for progress.
pub fn read_blocks(path: &Path, read: impl Fn(u64), take: impl FnMut(Block) -> bool) -> Result<(), Error> {
    blocks_of(path, unpacked(path, read)?, take)
}

/// What a file holds, unpacked if it is packed. `read` is told of the bytes of the file itself.
pub(crate) fn unpacked<'r>(path: &Path, read: impl Fn(u64) + 'r) -> Result<Box<dyn Read + 'r>, Error> {
    let failed = || Error::io("read", path);
    let mut file = open(path).map_err(failed())?;
    let mut magic = [0; 4];
    let mut length = 0;
    while length < magic.len() {
        match file.read(&mut magic[length..]).map_err(failed())? {
            0 => break,
            count => length += count,
        }
    }
    // What cannot seek is read on from here.
    let head = std::io::Cursor::new(magic[..length].to_vec());
    let source: Box<dyn Read + 'r> = match file.seek(SeekFrom::Start(0)) {
        Ok(_) => Box::new(Counted { inner: file, read }),
        Err(_) => Box::new(Counted { inner: head.chain(file), read }),
    };
    Ok(match &magic[..length] {
        [0x1f, 0x8b, ..] => {
            Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(1 << 17, source)))
        }
        [0x28, 0xb5, 0x2f, 0xfd] => {
            let mut decoder = zstd::Decoder::new(source).map_err(failed())?;
            // What `zstd --long=31` packs, 2 GiB of memory at most.
            decoder.window_log_max(31).map_err(failed())?;
            Box::new(decoder)
        }
        _ => source,
    })
}

/// The lines of what was opened under this name, in blocks.
pub(crate) fn blocks_of(
    path: &Path,
    mut source: impl Read,
    mut take: impl FnMut(Block) -> bool,
) -> Result<(), Error> {
    let path = Arc::new(path.to_owned());
    let mut line = 1;
    let mut rest = Vec::new();
    loop {
        let mut bytes = std::mem::replace(&mut rest, Vec::with_capacity(BLOCK));
        let room = (BLOCK - bytes.len()) as u64;
        let count = source.by_ref().take(room).read_to_end(&mut bytes).map_err(Error::io("read", &path))?;
        let is_end = (count as u64) < room;
        if !is_end {
            let end = bytes.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1);
            let end = end.ok_or_else(|| Error::NotLines { path: path.to_path_buf(), line })?;
            rest.extend_from_slice(&bytes[end..]);
            bytes.truncate(end);
        }
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let goes_on = bytes.is_empty() || take(Block { path: path.clone(), line, bytes });
        line += lines;
        if is_end || !goes_on {
            return Ok(());
        }
    }
}

/// Tells how much was read.
struct Counted<R, F> {
    inner: R,
    read: F,
}

impl<R: Read, F: Fn(u64)> Read for Counted<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        (self.read)(count as u64);
        Ok(count)
    }
}

impl Block {
    /// The lines with their numbers, without their ends.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let body = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        let lines = body.split(|&byte| byte == b'\n');
        lines.zip(self.line..).map(|(line, number)| (number, line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines_of(bytes: &[u8]) -> Result<Vec<(u64, String)>, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        std::fs::write(&path, bytes).unwrap();
        let mut lines = Vec::new();
        let read = std::cell::Cell::new(0);
        read_blocks(
            &path,
            |count| read.set(read.get() + count),
            |block| {
                assert_eq!(*block.path, path);
                lines.extend(block.lines().map(|(at, line)| (at, String::from_utf8(line.to_vec()).unwrap())));
                true
            },
        )?;
        assert_eq!(read.get(), bytes.len() as u64);
        Ok(lines)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn lines_keep_their_numbers_in_every_packing() {
        // Three megabytes, so that lines cross the ends of blocks, with ends of both kinds and none at the last.
        let texts: Vec<String> = (0..100_000).map(|number| format!("{number:030}")).collect();
        let plain = texts.join("\r\n").into_bytes();
        let (front, back) = plain.split_at(plain.len() / 3);
        let packed = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
        for bytes in [
            plain.clone(),
            gzip(&plain),
            [gzip(front), gzip(back)].concat(),
            packed(&plain),
            [packed(front), packed(back)].concat(),
        ] {
            let lines = lines_of(&bytes).unwrap();
            assert_eq!(lines.len(), texts.len());
            for (index, (number, line)) in lines.into_iter().enumerate() {
                assert_eq!((number, &line), (index as u64 + 1, &texts[index]));
            }
        }
        let read = |text: &str| lines_of(text.as_bytes()).unwrap().len();
        assert_eq!((read(""), read("a"), read("a\n"), read("\n\na")), (0, 1, 1, 3));
    }

    #[test]
    fn a_packed_file_cut_short_is_an_error() {
        let plain = "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2\n".repeat(1000);
        for packed in [gzip(plain.as_bytes()), zstd::encode_all(plain.as_bytes(), 1).unwrap()] {
            for cut in [packed.len() - 1, packed.len() / 2] {
                assert!(matches!(lines_of(&packed[..cut]), Err(Error::Io { .. })));
            }
        }
    }

    #[test]
    fn a_line_without_end_is_not_read_for_ever() {
        let line = vec![b'1'; 3 * BLOCK];
        assert!(matches!(lines_of(&line), Err(Error::NotLines { line: 1, .. })));
        let later = [b"a\nb\n", &line[..]].concat();
        assert!(matches!(lines_of(&later), Err(Error::NotLines { line: 3, .. })));
    }

    #[test]
    fn reading_stops_when_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        std::fs::write(&path, "1\n".repeat(BLOCK)).unwrap();
        let mut blocks = 0;
        read_blocks(
            &path,
            |_| (),
            |_| {
                blocks += 1;
                false
            },
        )
        .unwrap();
        assert_eq!(blocks, 1);
    }
}
