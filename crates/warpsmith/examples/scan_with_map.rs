//! A scan that keeps a map of what it covered, is stopped, and goes on where it was.
//!
//!     cargo run --release -p warpsmith --example scan_with_map

use std::error::Error;
use std::path::Path;

use warpsmith::scan;
use warpsmith::store::MapFile;

/// Published as puzzles, with keys that are known to have 16 and 18 bits.
const PUZZLES: [&str; 2] = ["1BDyrQ6WoF8VN3g9SAS1iKZcPzFfnDVieY", "1GnNTmTVLZiqQfLbAdp9DVdicEnB5GoERE"];

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("warpsmith-scan-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let done = scan_twice(&folder.join("puzzle.map"));
    std::fs::remove_dir_all(&folder)?;
    done
}

fn scan_twice(map: &Path) -> Result<(), Box<dyn Error>> {
    let puzzle = || scan("2^15:2^18-1", PUZZLES).map_file(map);

    // Stopped at its first finding. The keys around it do not count as covered before all that was found there was taken.
    let found = puzzle().first()?.ok_or("the range holds two keys")?;
    println!("{} has the key {:02x?}", found.address, &found.secret().as_bytes()[29..]);
    println!("{} keys are covered", MapFile::read(map)?.covered());

    // The same scan with the same map goes on. What was under way is scanned again, and so may be told twice.
    for found in puzzle() {
        println!("found: {}", found?.address);
    }
    let map = MapFile::read(map)?;
    println!("{} keys are covered, all of them: {}", map.covered(), map.is_complete());
    if map.is_complete() { Ok(()) } else { Err("a scan without a time limit covers its range".into()) }
}
