//! What a query costs: the client's search and query, the server's answer from memory and from its file, an update.
//!
//! `cargo bench -p warpsmith-rms24 --bench online [-- LOG2_ENTRIES]`; with `--test` a small size, to see that it runs. The
//! figures are the best and the median of many; the entries are zeros on the client's side, which costs the same.

use std::time::Instant;

use warpsmith_hash::Lanes;
use warpsmith_rms24::answer::answer;
use warpsmith_rms24::database::Builder;
use warpsmith_rms24::hints::measure::pseudorandom;
use warpsmith_rms24::hints::{Hints, Skeleton};
use warpsmith_rms24::updates::Live;
use warpsmith_rms24::wire::{Picks, Update, answers_body, read_queries};
use warpsmith_rms24::{Choice, Client, Key, Params, Prf, Version};

fn report(what: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    println!("{what}: best {:.3} ms, median {:.3} ms", times[0] * 1e3, times[times.len() / 2] * 1e3);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let test = arguments.iter().any(|a| a == "--test");
    let log2 = arguments.iter().find_map(|a| a.parse::<u32>().ok()).unwrap_or(if test { 12 } else { 24 });
    let p = Params::new(Choice::new(1 << log2, 40)).expect("good parameters");
    println!(
        "2^{log2} entries of 40 bytes; query {} bytes, answer {} bytes",
        p.query_bytes(),
        p.answer_bytes()
    );
    let lanes = Lanes::detect();
    let key = Key::random().expect("random bytes");
    let prf = Prf::new(&key, &p, lanes);
    let skeleton = Skeleton::new(&prf, &p, 2).expect("a skeleton");
    let (m, q) = (skeleton.regular_len(), skeleton.backups_len());
    let hints = Hints { skeleton, parities: vec![0; m * 40], low: vec![0; q * 40], high: vec![0; q * 40] };
    let folder = tempfile::tempdir().expect("a folder");
    let version = Version { database: [0; 32], epoch: 0 };
    let mut client =
        Client::create(&folder.path().join("state"), p, version, key, hints, lanes).expect("a new state");
    let database = pseudorandom(p.blocks() as usize * p.block_bytes());
    let path = folder.path().join("data");
    let mut builder = Builder::new(&path, Choice::new(1 << log2, 40), 0, None).expect("a new database");
    builder.push(&database[..(p.entries() * 40) as usize]).expect("entries");
    builder.finish().expect("a database");
    let lives = [true, false].map(|in_memory| {
        let mut live = Live::open(&path, lanes, 0).expect("the database");
        let begin = Instant::now();
        live.load(in_memory, &mut |_| Ok(())).expect("a good database");
        let rate = database.len() as f64 / begin.elapsed().as_secs_f64() / 1e9;
        println!(
            "server: reads and checks {rate:.2} GB/s{}",
            if in_memory { ", and copies them" } else { "" }
        );
        live
    });
    let (mut searches, mut asks, mut answers, mut updates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut served = [Vec::new(), Vec::new()];
    for i in 0..if test { 5 } else { 60 } {
        let begin = Instant::now();
        assert!(client.holds(i * 7919 % p.entries()).expect("an entry"));
        searches.push(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        let asked = client.ask(&[i * 7919 % p.entries()]).expect("a query");
        asks.push(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        let (_, mut queries) = read_queries(&p, &asked.body).expect("queries");
        let picks = Picks::read(&p, queries.next().expect("one query")).expect("a good query");
        let sums = answer(&p, lanes, &database, &picks);
        answers.push(begin.elapsed().as_secs_f64());
        // The same query, as of the one epoch the database has.
        let body = [&asked.body[..4], &[0; 8], &asked.body[12..]].concat();
        for (live, times) in lives.iter().zip(&mut served) {
            let begin = Instant::now();
            let answered = live.answer(&body, 1).expect("an answer");
            times.push(begin.elapsed().as_secs_f64());
            assert!(answered[16..] == sums);
        }
        client.receive(&asked, &answers_body(client.version().epoch, &[sums])).expect("an answer");
        let update = Update { number: i + 1, indices: vec![i], deltas: vec![1; 40] };
        let begin = Instant::now();
        client.update(&update).expect("an update");
        updates.push(begin.elapsed().as_secs_f64());
    }
    report("client: search alone", searches);
    report("client: search, query, journal", asks);
    report("server: check and answer", answers);
    let [memory, file] = served;
    report("server: the same, a database in memory", memory);
    report("server: the same, a database in its file", file);
    report("client: one changed entry, journal", updates);
}
