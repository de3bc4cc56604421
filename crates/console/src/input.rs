//! Input from files and standard input, each up to a limit.
//!
//! A name can lead to anything (an endless device, a disk image, a file with one line), so every read has a limit.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

/// Returns the name of an input for messages.
pub fn name(file: &str) -> &str {
    if file == "-" { "standard input" } else { file }
}

/// Opens a file, or standard input for `-`.
fn open(file: &str) -> io::Result<Box<dyn Read>> {
    Ok(match file {
        "-" => Box::new(io::stdin().lock()),
        path => Box::new(File::open(path)?),
    })
}

/// Reads an input of at most `max_bytes`.
pub fn read(file: &str, max_bytes: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = open(file).and_then(|source| source.take(max_bytes + 1).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    match bytes.len() as u64 > max_bytes {
        true => Err(format!("it is longer than {max_bytes} bytes, the most that is read of such a file")),
        false => Ok(bytes),
    }
}

/// Limits of a text.
pub struct Limits {
    /// Longest line in bytes.
    pub line: usize,
    /// Longest text in bytes.
    pub total: u64,
}

/// Calls `take` with each line of a text and its number, without the byte order mark that some editors put at the start. The first
/// error, of `take` or of reading, ends it and is returned with the number of its line.
pub fn lines(
    file: &str,
    limits: &Limits,
    take: &mut dyn FnMut(usize, &str) -> Result<(), String>,
) -> Result<(), (usize, String)> {
    let source = open(file).map_err(|error| (0, error.to_string()))?;
    let mut source = BufReader::with_capacity(1 << 16, source);
    let (mut line, mut number, mut total) = (Vec::new(), 0, 0u64);
    loop {
        line.clear();
        number += 1;
        // One byte more than allowed, and the end of the line.
        let got = source.by_ref().take(limits.line as u64 + 2).read_until(b'\n', &mut line);
        if got.map_err(|error| (number, error.to_string()))? == 0 {
            return Ok(());
        }
        total += line.len() as u64;
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if text.len() > limits.line {
            return Err((
                number,
                format!("the line is longer than {} bytes, the most a line may have", limits.line),
            ));
        }
        if total > limits.total {
            let most = limits.total;
            return Err((number, format!("the text is longer than {most} bytes, the most that is read")));
        }
        let text = std::str::from_utf8(text).map_err(|_| (number, "this is not text (UTF-8)".to_owned()))?;
        let text = if number == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        take(number, text).map_err(|why| (number, why))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(content: &[u8], limits: &Limits) -> Result<Vec<(usize, String)>, (usize, String)> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("text");
        std::fs::write(&path, content).expect("a file");
        let mut taken = Vec::new();
        lines(path.to_str().expect("a name"), limits, &mut |number, line| {
            taken.push((number, line.to_owned()));
            Ok(())
        })?;
        Ok(taken)
    }

    #[test]
    fn lines_are_told_apart_and_bounded() {
        let limits = Limits { line: 5, total: 20 };
        let taken = all("\u{feff}a\r\n\n  cd\nlast".as_bytes(), &limits).expect("short lines");
        let expected = [(1, "a\r"), (2, ""), (3, "  cd"), (4, "last")];
        assert_eq!(taken, expected.map(|(number, line)| (number, line.to_owned())));
        assert_eq!(all(b"", &limits).expect("nothing"), []);
        assert!(all(b"12345\n12345", &limits).is_ok());
        let (line, why) = all(b"12345\n123456\n", &limits).expect_err("a long line");
        assert!(line == 2 && why.contains("longer than 5 bytes"), "{line}: {why}");
        let (line, why) = all(b"1234\n1234\n1234\n1234\n1234\n", &limits).expect_err("a long text");
        assert!(line == 5 && why.contains("longer than 20 bytes"), "{line}: {why}");
        let (line, why) = all(b"12\n\xff\n", &limits).expect_err("no text");
        assert!(line == 2 && why.contains("UTF-8"), "{line}: {why}");
    }

    #[test]
    fn what_has_no_end_is_refused() {
        assert!(read("/dev/zero", 1000).expect_err("endless").contains("longer than 1000 bytes"));
        let (line, _) =
            lines("/dev/zero", &Limits { line: 5, total: 20 }, &mut |_, _| Ok(())).expect_err("endless");
        assert_eq!(line, 1);
        assert_eq!(read("/dev/null", 0), Ok(Vec::new()));
    }
}
