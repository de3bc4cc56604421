//! How fast a database and its filters are built, and how large they are.
//!
//!     cargo run --release -p warpsmith-store --example build_speed -- FOLDER MILLIONS
//!
//! Makes a list of random addresses in FOLDER (P2PKH, P2SH and P2WPKH in turn, with amounts for every other one) unless it
//! is there, builds a database from it, verifies it, looks addresses up, and makes both filters.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use warpsmith_chain::{AddressKind, Digest};
use warpsmith_store::{BuildOptions, Database, Filter, Width};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("name a folder")?);
    let count = arguments.next().ok_or("say how many million addresses")?.parse::<u64>()? * 1_000_000;
    fs::create_dir_all(&folder)?;
    let (list, path) = (folder.join(format!("{count}.tsv")), folder.join(format!("{count}.db")));
    if !list.exists() {
        let mut file = BufWriter::new(File::create(&list)?);
        for number in 0..count {
            let (kind, digest) = address(number);
            match number % 2 {
                0 => writeln!(file, "{}", kind.text(&digest))?,
                _ => writeln!(file, "{}\t{number}", kind.text(&digest))?,
            }
        }
        file.flush()?;
    }
    if path.exists() {
        fs::remove_file(&path)?;
    }
    let threads = std::thread::available_parallelism()?.get();
    let stop = AtomicBool::new(false);
    let options = BuildOptions { strict: true, threads, memory: 512 << 20, stop: &stop, progress: &|_| () };
    let rate = |what: &str, (time, processor): (Instant, f64), count: u64| {
        let (seconds, processor) = (time.elapsed().as_secs_f64(), processor_seconds() - processor);
        let each = processor / count as f64 * 1e9;
        println!(
            "{what}: {seconds:.1} s, {:.2} M a second; {processor:.1} s of processor time, {each:.0} ns each",
            count as f64 / seconds / 1e6
        );
    };
    let now = || (Instant::now(), processor_seconds());
    let time = now();
    let built = Database::build(&path, &[list], &options)?;
    rate("build", time, count);
    assert_eq!(built.about.records, count);
    let database = Database::open(&path)?;
    println!("size: {:.1} bytes an address", database.size() as f64 / count as f64);
    let time = now();
    database.verify(|_| ())?;
    rate("verify", time, count);
    let reader = database.reader();
    let time = now();
    let lookups = count.min(1_000_000);
    for number in 0..lookups {
        // Half of them are there.
        let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (2 * count);
        let (kind, digest) = address(number);
        assert_eq!(reader.find(kind, digest.as_bytes())?.is_some(), number < count);
    }
    rate("look-ups on one thread", time, lookups);
    for width in Width::ALL {
        let time = now();
        let filter = Filter::build(&database, &[], width)?;
        rate(width.name(), time, count);
        println!("  {:.3} bytes an address", filter.size() as f64 / count as f64);
        filter.save(&database)?;
        let time = now();
        Filter::open(&database, &[], width)?;
        rate("  read again", time, count);
    }
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        status.lines().filter(|line| line.starts_with("VmHWM")).for_each(|line| println!("{line}"));
    }
    Ok(())
}

/// What all threads took so far: the 14th and 15th field of Linux' `stat`, in hundredths of a second; zero elsewhere.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Address number so and so: bytes of a mixer, without a pattern.
fn address(number: u64) -> (AddressKind, Digest) {
    let mut bytes = [0; 24];
    for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
        let mixed = (number * 3 + index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word.copy_from_slice(&(mixed ^ mixed >> 31).to_be_bytes());
    }
    let kind = [AddressKind::P2PKH, AddressKind::P2WPKH, AddressKind::P2SH][(number % 3) as usize];
    (kind, Digest::new(&bytes[..20]))
}
