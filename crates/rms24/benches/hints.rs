//! (hint, block) pairs a second of one core, for every instruction set, beside S3PIR's rate.
//!
//! `cargo bench -p warpsmith-rms24 --bench hints [-- LOG2_ENTRIES [ENTRY_SIZE]]`; with `--test` a small size, to see that
//! it runs. The time is processor time, so that other programs disturb little. Three rounds, the best of each.

use warpsmith_hash::{Lanes, SETS, Simd};
use warpsmith_rms24::{Choice, Params, hints::measure::measure};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let test = arguments.iter().any(|a| a == "--test");
    let mut numbers = arguments.iter().filter_map(|a| a.parse::<u32>().ok());
    let log2 = numbers.next().unwrap_or(if test { 10 } else { 20 });
    let entry_size = numbers.next().unwrap_or(40);
    let params = Params::new(Choice::new(1 << log2, entry_size)).expect("good parameters");
    println!("2^{log2} entries of {entry_size} bytes, {} blocks of {}", params.blocks(), params.block_size());
    println!(
        "{} regular hints, {} pairs; S3PIR: 28 to 35 M pairs a core-second",
        params.regular(),
        params.backups()
    );
    let kinds: Vec<Simd> = Simd::available(&SETS).collect();
    let mut best = vec![0f64; kinds.len()];
    for _ in 0..if test { 1 } else { 3 } {
        for (simd, best) in kinds.iter().zip(&mut best) {
            let figures = measure(&params, Lanes::new(*simd), 1, 20).expect("hints are made");
            let wall = figures.skeleton + figures.parities;
            let time = figures.processor.unwrap_or(wall);
            let rate = figures.pairs as f64 / time.as_secs_f64() / 1e6;
            *best = best.max(rate);
            println!(
                "{simd:>9}: {rate:7.1} M pairs/s; skeleton {:.3} s, parities {:.3} s; {} hints verified",
                figures.skeleton.as_secs_f64(),
                figures.parities.as_secs_f64(),
                figures.verified
            );
        }
    }
    for (simd, best) in kinds.iter().zip(best) {
        println!("best {simd}: {best:.1} M pairs a core-second, {:.1} times 35 M", best / 35.0);
    }
}
