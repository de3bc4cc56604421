//! What a server sees of a client that always asks for one entry, and of one that asks for any: recorded on the way, and compared.
//! With four blocks of four entries there are 96 queries that can be, so what is compared is all there is to see.

use crate::support::running::{Running, start_on};
use crate::support::{Dice, fast_folder, offline};
use crate::transport::Forwarder;
use warpsmith_hash::Lanes;
use warpsmith_rms24::remote::Remote;
use warpsmith_rms24::server::{Limits, Role};
use warpsmith_rms24::wire::read_queries;
use warpsmith_rms24::{Choice, Client, Params, Version};

const REQUESTS: usize = 120;
const EACH: usize = 50;
/// Standard deviations from which on two samples are told apart. Chance alone goes so far about once in two million runs: a
/// chi-square has a long tail.
const BOUND: f64 = 7.0;
/// The entry that one of them always asks for: the second of the third block.
const ENTRY: u64 = 9;

/// What went over the wire: heads and bodies of all requests of a client that asks for these entries.
fn recorded(server: &Running, mut index: impl FnMut() -> u64) -> Vec<(String, Vec<u8>)> {
    let choice = Choice { backups: Some((REQUESTS * EACH) as u64), ..server.live.params().choice() };
    let params = Params::new(Choice { lambda: 80, ..choice }).unwrap();
    let (key, hints) = offline(&server.live.base(), &params);
    let version = Version { database: server.live.base().description().identity, epoch: 0 };
    let folder = fast_folder();
    let path = folder.path().join("state");
    let mut client = Client::create(&path, params, version, key, hints, Lanes::detect()).unwrap();
    let forwarder = Forwarder::before(server, |_| ());
    let remote = Remote::new(&format!("http://{}", forwarder.address)).unwrap();
    for _ in 0..REQUESTS {
        let indices: Vec<u64> = (0..EACH).map(|_| index()).collect();
        let asked = client.ask(&indices).unwrap();
        for (index, fetched) in indices.iter().zip(remote.fetch(&mut client, &asked).unwrap()) {
            assert_eq!(fetched.unwrap().entry, server.live.entry(*index).unwrap());
        }
    }
    // The port is another for each, and no secret.
    let port = forwarder.address.port().to_string();
    let bytes = forwarder.heard.lock().unwrap().clone();
    let mut rest = &bytes[..];
    let mut requests = Vec::new();
    while !rest.is_empty() {
        let end = rest.windows(4).position(|four| four == b"\r\n\r\n").expect("a head ends") + 4;
        let head = String::from_utf8(rest[..end].to_vec()).unwrap().to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let length: usize = length.parse().unwrap();
        requests.push((head.replace(&port, "PORT"), rest[end..end + length].to_vec()));
        rest = &rest[end + length..];
    }
    requests
}

/// The queries of all requests, as numbers: the colours of four blocks, and two offsets.
fn queries(params: &Params, requests: &[(String, Vec<u8>)]) -> Vec<[usize; 2]> {
    let bodies = requests.iter().flat_map(|(_, body)| read_queries(params, body).unwrap().1);
    bodies.map(|query| [usize::from(query[0]), usize::from(query[1])]).collect()
}

/// By how many standard deviations two samples differ more than two of the same kind would: the chi-square of both.
fn distance(one: &[usize], other: &[usize]) -> f64 {
    let most = one.iter().chain(other).max().unwrap() + 1;
    let mut counts = vec![[0.0; 2]; most];
    one.iter().for_each(|&what| counts[what][0] += 1.0);
    other.iter().for_each(|&what| counts[what][1] += 1.0);
    let (sizes, mut sum, mut free) = ([one.len() as f64, other.len() as f64], 0.0, -1.0);
    for count in counts.iter().filter(|count| count[0] + count[1] > 0.0) {
        let both = (count[0] + count[1]) / (sizes[0] + sizes[1]);
        sum += (0..2).map(|i| (count[i] - sizes[i] * both).powi(2) / (sizes[i] * both)).sum::<f64>();
        free += 1.0;
    }
    (sum - free) / (2.0 * free).sqrt()
}

#[test]
fn requests_for_one_entry_and_for_random_ones_cannot_be_told_apart() {
    let choice = Choice { block_size: Some(4), ..Choice::new(16, 8) };
    let limits = Limits { rate: 1e6, burst: 1e6, ..Limits::default() };
    let server = start_on(choice, Role::Library, limits, |server| server);
    let mut dice = Dice::new();
    let params = server.live.params();
    assert_eq!((params.blocks(), params.query_bytes()), (4, 2));
    let one = recorded(&server, || ENTRY);
    let random = recorded(&server, || dice.below(16));
    // The same heads and lengths, byte for byte, of every request of both.
    assert_eq!((one.len(), random.len()), (REQUESTS, REQUESTS));
    for (head, body) in one.iter().chain(&random) {
        assert_eq!((head, body.len()), (&one[0].0, one[0].1.len()));
    }
    // Nothing of the program, its version or the system.
    let names: std::collections::BTreeSet<&str> =
        one[0].0.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0)).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["content-length", "host"]);
    let [one, random] = [&one, &random].map(|requests| queries(&params, requests));
    let whole = |all: &[[usize; 2]]| all.iter().map(|query| query[0] << 4 | query[1]).collect::<Vec<_>>();
    // Two in a row, and no query in two pairs: the colours, and the offsets.
    let pairs = |all: &[[usize; 2]], part: usize| {
        all.chunks_exact(2).map(|two| two[0][part] << 4 | two[1][part]).collect::<Vec<_>>()
    };
    assert_eq!(whole(&one).into_iter().collect::<std::collections::BTreeSet<_>>().len(), 96);
    for (what, distance) in [
        ("queries", distance(&whole(&one), &whole(&random))),
        ("colours of two in a row", distance(&pairs(&one, 0), &pairs(&random, 0))),
        ("offsets of two in a row", distance(&pairs(&one, 1), &pairs(&random, 1))),
    ] {
        assert!(distance < BOUND, "{what} differ by {distance} standard deviations");
    }
    // The same comparison sees a client that does not toss the coin for the colours, ...
    let block = ENTRY / 4;
    let untossed: Vec<[usize; 2]> = one
        .iter()
        .map(|[mask, offsets]| [if mask >> block & 1 == 1 { mask ^ 0xf } else { *mask }, *offsets])
        .collect();
    assert!(distance(&whole(&untossed), &whole(&random)) > BOUND);
    // ... and one that sends every fourth query a second time.
    let mut repeating = one.clone();
    (5..repeating.len()).step_by(4).for_each(|at| repeating[at] = repeating[at - 1]);
    assert!(distance(&pairs(&repeating, 1), &pairs(&random, 1)) > BOUND);
}
