//! All hints of a client on a device, the database on it already; a sample is recomputed by the processor.
//!
//! `cargo bench -p warpsmith-rms24 --bench device [-- ENTRIES [ENTRY_SIZE [BLOCK_SIZE]]] [DEVICE]`, by default 2^20 entries of 40
//! bytes on every device; a block size of 0 is the usual one. `--stream` streams the database to the device instead, and
//! counts that. With `--test` a small size, to see that it runs.

use std::time::Instant;

use warpsmith_device::survey;
use warpsmith_hash::Lanes;
use warpsmith_rms24::device::{measure, offline};
use warpsmith_rms24::hints::measure::pseudorandom;
use warpsmith_rms24::{Choice, Params};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let test = arguments.iter().any(|a| a == "--test");
    let mut numbers = arguments.iter().filter_map(|a| a.parse::<u64>().ok());
    let entries = numbers.next().unwrap_or(if test { 1 << 10 } else { 1 << 20 });
    let entry_size = numbers.next().unwrap_or(40) as u32;
    let block_size = numbers.next().filter(|w| *w > 0).map(|w| w as u32);
    let wanted = arguments.iter().find(|a| a.contains(':'));
    let params =
        Params::new(Choice { block_size, ..Choice::new(entries, entry_size) }).expect("good parameters");
    println!(
        "{entries} entries of {entry_size} bytes, {} blocks of {}",
        params.blocks(),
        params.block_size()
    );
    println!("{} regular hints, {} pairs", params.regular(), params.backups());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for device in survey().devices {
        let info = device.info();
        if wanted.is_some_and(|wanted| *wanted != info.id) {
            continue;
        }
        if arguments.iter().any(|a| a == "--stream") {
            let piece = pseudorandom(64 << 20);
            let mut left = params.entries() * params.entry_size() as u64;
            let begin = Instant::now();
            let made = offline(&params, device.as_ref(), Lanes::detect(), threads, |push| {
                while left > 0 {
                    let now = left.min(piece.len() as u64);
                    push(&piece[..now as usize])?;
                    left -= now;
                }
                Ok(())
            });
            let time = begin.elapsed().as_secs_f64();
            let whole = params.entries() as f64 * params.entry_size() as f64;
            match made {
                Ok(_) => println!("{}: streamed in {time:.3} s, {:.2} GB/s", info.id, whole / time / 1e9),
                Err(error) => println!("{}: {error}", info.id),
            }
            continue;
        }
        for _ in 0..if test { 1 } else { 3 } {
            match measure(&params, device.as_ref(), Lanes::detect(), threads, 64) {
                Ok(figures) => {
                    let time = (figures.skeleton + figures.parities).as_secs_f64();
                    println!(
                        "{}: {time:.3} s: skeleton {:.3} s, parities {:.3} s; {:.3} M regular hints/s with their share of \
                         pairs, {:.1} G entries/s; {} hints verified",
                        info.id,
                        figures.skeleton.as_secs_f64(),
                        figures.parities.as_secs_f64(),
                        params.regular() as f64 / time / 1e6,
                        figures.gathers as f64 / figures.parities.as_secs_f64() / 1e9,
                        figures.verified
                    );
                }
                Err(error) => println!("{}: {error}", info.id),
            }
        }
    }
}
