mod owners;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;

use super::*;

pub(super) fn number(value: u64) -> U256 {
    U256::from(value)
}

pub(super) fn targets(count: u64) -> Targets {
    Targets { source: Source::Addresses, count, digest: [0xab; 32] }
}

pub(super) fn job(first: U256, count: u64) -> Job {
    Job::new(Interval::starting(first, number(count)).unwrap(), &["p2wpkh", "p2pkh"], targets(3))
}

pub(super) fn interval(first: u64, last: u64) -> Interval {
    Interval::new(number(first), number(last)).unwrap()
}

/// A map with a bit of everything.
fn sample(order: fn(&Job) -> Order) -> Map {
    let job = job(number(0x8000), 0x8000);
    let order = order(&job);
    let mut map = Map::new(job, order);
    let mut planner = Planner::new(&map);
    map.begin(1_763_200_000);
    for (size, now) in [(100, 1_763_200_005), (7, 1_763_200_005), (5000, 1_763_200_015)] {
        let batch = planner.next(number(size)).unwrap();
        planner.next(number(3));
        map.complete(&batch, now);
    }
    map
}

fn random(job: &Job) -> Order {
    Order::random(&job.range(), 0x1234, number(600))
}

#[test]
fn a_map_is_text_that_a_person_can_read() {
    let map = sample(|_| Order::Sequential);
    let text = text::write(&map);
    let digest = "ab".repeat(32);
    let expected = format!(
        "warpsmith map 2\nrange 8000:ffff\ntypes p2pkh,p2wpkh\ntargets addresses 3 {digest}\norder sequential\n\
         stretch 1763200000 15 5107\ncovered 8000:8063\ncovered 8067:806d\ncovered 8071:93f8\ntotal 5107\nsha256 "
    );
    assert_eq!(text[..expected.len()], expected);
    assert_eq!(text.len(), expected.len() + 65);
}

#[test]
fn what_is_written_is_read() {
    for order in [|_: &Job| Order::Sequential, random] {
        let map = sample(order);
        let read = text::read("m".as_ref(), text::write(&map).as_bytes()).unwrap();
        assert_eq!((read.job(), read.order(), read.history()), (map.job(), map.order(), map.history()));
        assert_eq!(read.covered, map.covered);
    }
}

/// Every single changed byte and every cut is noticed.
#[test]
fn damage_is_noticed_wherever_it_is() {
    let text = text::write(&sample(random)).into_bytes();
    for at in 0..text.len() {
        for change in [1, 0x20, 0x80] {
            let mut damaged = text.clone();
            damaged[at] ^= change;
            assert!(text::read("m".as_ref(), &damaged).is_err(), "byte {at}");
        }
        let error = text::read("m".as_ref(), &text[..at]).unwrap_err();
        assert!(matches!(error, Error::Truncated { .. }), "cut at {at}: {error}");
    }
    let mut longer = text.clone();
    longer.extend(b"covered 1:2\n");
    assert!(matches!(text::read("m".as_ref(), &longer), Err(Error::Truncated { .. })));
}

/// The map that these lines are, with the digest that belongs to them.
pub(super) fn read_lines(body: &str) -> Result<Map, Error> {
    use sha2::Digest as _;
    let sum: String = sha2::Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    text::read("m".as_ref(), format!("{body}sha256 {sum}\n").as_bytes())
}

/// The lines of a map without its digest.
pub(super) fn lines_of(map: &Map) -> String {
    let mut text = text::write(map);
    text.truncate(text.rfind("sha256").unwrap());
    text
}

/// Does with a map all that is done with one: what `map show` and `map merge` ask, and a scan that goes on with it.
fn use_whole(map: &Map) {
    let _ = (map.job().differences(map.job()), map.share(), map.is_complete(), map.is_covered(U256::ONE));
    assert_eq!(map.covered() + map.remaining(), map.job().range().count());
    for keys in [map.covered_keys(), map.gaps()].into_iter().flatten() {
        assert!(keys.total() <= map.job().range().count());
    }
    assert!(map.history().iter().all(|stretch| stretch.rate().is_none_or(|rate| rate >= 0.0)));
    assert!([map.rate(), map.last_rate()].into_iter().flatten().all(|rate| rate >= 0.0));
    if let Some(gaps) = map.survey(3) {
        assert!(gaps.first.len() <= gaps.count && gaps.largest.is_some() == (gaps.count > 0));
        assert_eq!(gaps.count == 0, map.is_complete());
    }
    if let Some(pieces) = map.pieces() {
        assert!(pieces.done + pieces.begun <= pieces.all);
        assert_eq!(pieces.done == pieces.all, map.is_complete());
    }
    if let Ok(joined) = Map::merge(&[map.clone(), map.clone()]) {
        assert_eq!(joined.unwrap().covered(), map.covered());
    }
    let _ = map.with_order(Order::Sequential);
    let mut map = map.clone();
    let mut planner = Planner::new(&map);
    for now in [0, 5, u64::MAX] {
        map.begin(now);
        if let Some(batch) = planner.next(number(1000)) {
            map.complete(&batch, u64::MAX);
        }
    }
    assert_eq!(text::read("m".as_ref(), text::write(&map).as_bytes()).unwrap().covered(), map.covered());
}

/// Texts with a right digest that say something impossible, as a wrong program would write them.
#[test]
fn a_map_that_does_not_add_up_is_refused() {
    let body = lines_of(&sample(|_| Order::Sequential));
    let read = |body: String| read_lines(&body);
    assert!(read(body.clone()).is_ok());
    for (from, to) in [
        ("total 5107", "total 5108"),
        ("covered 8067:806d", "covered 8064:806d"),
        ("covered 8000:8063", "covered 7fff:8063"),
        ("covered 8000:8063", "covered 8063:8000"),
        ("range 8000:ffff", "range 8000:9000"),
        ("order sequential", "order random 1 0"),
        ("order sequential", "order backwards"),
        ("targets addresses", "targets nobody"),
        ("types p2pkh,p2wpkh", "types p2pkh,,"),
        ("stretch 1763200000", "stretch -1"),
        ("total 5107\n", "total 5107\ncovered 9500:9501\n"),
        ("types", "kinds"),
    ] {
        let wrong = body.replace(from, to);
        assert_ne!(wrong, body);
        assert!(matches!(read(wrong), Err(Error::Corrupt { .. })), "{from} -> {to}");
    }
    let many = body.replace("covered 8000", &format!("{}covered 8000", "stretch 1 2 3\n".repeat(512)));
    assert!(read(many.replacen("stretch 1 2 3\n", "", 1)).is_ok());
    assert!(matches!(read(many), Err(Error::Corrupt { .. })));
}

/// The largest numbers a map can say anything with.
#[test]
fn a_map_with_the_largest_numbers_is_used_like_any_other() {
    let (long, wide) = (u64::MAX, U256::MAX);
    for order in [|_: &Job| Order::Sequential, random] {
        let body = lines_of(&sample(order));
        let old = "stretch 1763200000 15 5107";
        for new in [
            format!("stretch {long} {long} {wide}"),
            format!("stretch 0 {long} 0"),
            vec![format!("stretch {long} {long} {wide}"); 512].join("\n"),
        ] {
            use_whole(&read_lines(&body.replace(old, &new)).unwrap());
        }
        use_whole(&read_lines(&body.replace("addresses 3", &format!("addresses {long}"))).unwrap());
    }
    let whole = format!("range 1:{wide:x}\ntypes eth\ntargets database {long} {:064x}\n", 7);
    let least = (U256::MAX >> 62) + U256::ONE;
    for (order, covered, total) in [
        ("sequential".to_owned(), format!("covered 1:{wide:x}\n"), wide),
        ("sequential".to_owned(), String::new(), U256::ZERO),
        (format!("random {long:x} {least:x}"), format!("covered {wide:x}:{wide:x}\n"), U256::ONE),
        (format!("random {long:x} {wide:x}"), format!("covered 2:{wide:x}\n"), wide - U256::ONE),
        (format!("random 0 {wide:x}"), String::new(), U256::ZERO),
    ] {
        let text = format!(
            "warpsmith map 2\n{whole}order {order}\nstretch {long} {long} {wide}\n{covered}total {total}\n"
        );
        use_whole(&read_lines(&text).unwrap());
    }
}

#[test]
fn foreign_and_other_versions_are_told() {
    let read = |text: &str| text::read("m".as_ref(), text.as_bytes()).unwrap_err();
    assert!(matches!(read("# Mapfile. Created by GNU ddrescue\n"), Error::Foreign { .. }));
    assert!(matches!(read("\0\0\0"), Error::Foreign { .. }));
    assert!(matches!(read(""), Error::Truncated { .. }));
    let newer = read("warpsmith map 3\nanything");
    assert!(matches!(newer, Error::Version { found: 3, known: 2, .. }));
    assert!(newer.to_string().contains("newer version"), "{newer}");
    assert!(read("warpsmith map 1\n").to_string().contains("older version"));
    assert!(matches!(read("warpsmith map x\n"), Error::Corrupt { .. }));
}

#[test]
fn another_job_is_refused_with_every_difference_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map");
    drop(MapFile::open(&path, job(number(5), 10), |_| Order::Sequential).unwrap());
    let before = fs::read(&path).unwrap();
    let other = Job::new(interval(5, 15), &["eth"], Targets { source: Source::Database, ..targets(3) });
    let error = MapFile::open(&path, other, |_| Order::Sequential).unwrap_err();
    let Error::OtherJob { ref differences, .. } = error else { panic!("{error}") };
    let digest = "ab".repeat(32);
    assert_eq!(
        differences,
        &[
            "range: the map has 5:e, asked for is 5:f".to_owned(),
            "types: the map has p2pkh,p2wpkh, asked for is eth".to_owned(),
            format!("targets: the map has addresses 3 {digest}, asked for is database 3 {digest}"),
        ]
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    // The order of types is no difference.
    let same = Job::new(interval(5, 14), &["p2pkh", "p2wpkh", "p2pkh"], targets(3));
    MapFile::open(&path, same, |_| Order::Sequential).unwrap();
}

/// Who asks for one order and gets the other would not learn of it for days.
#[test]
fn another_order_is_refused_and_other_pieces_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map");
    let open = |order: fn(&Job) -> Order| MapFile::open(&path, job(number(5), 5000), order);
    drop(open(|_| Order::Sequential).unwrap());
    let before = fs::read(&path).unwrap();
    let error = open(random).unwrap_err().to_string();
    assert!(error.contains("in sequential order, and asked for is random order"), "{error}");
    assert!(error.contains("ask for sequential order to resume it"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    fs::remove_file(&path).unwrap();
    let first = open(random).unwrap().map().order();
    let error = open(|_| Order::Sequential).unwrap_err().to_string();
    assert!(
        error.contains("in random order") && error.contains("ask for random order to resume it"),
        "{error}"
    );
    // Another machine, another seed: it goes on as it was.
    let other = open(|job| Order::random(&job.range(), 77, number(9))).unwrap();
    assert_eq!(other.map().order(), first);
}

#[test]
fn two_cannot_have_one_map() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map");
    let open = || MapFile::open(&path, job(number(5), 10), |_| Order::Sequential);
    let first = open().unwrap();
    assert!(matches!(open(), Err(Error::InUse { .. })));
    // Looking is always possible.
    assert_eq!(MapFile::read(&path).unwrap().covered(), U256::ZERO);
    drop(first);
    open().unwrap();
}

#[test]
fn merged_maps_cover_what_any_covers() {
    let whole = job(number(0x8000), 0x8000);
    let part = |order: Order, skip: usize| {
        let mut map = Map::new(whole.clone(), order);
        let mut planner = Planner::new(&map);
        let mut batches = Vec::new();
        while let Some(batch) = planner.next(number(100)) {
            batches.push(batch);
        }
        for batch in batches.iter().skip(skip).step_by(3) {
            map.complete(batch, 10);
        }
        map
    };
    let random = random(&whole);
    for orders in [[Order::Sequential; 3], [random; 3], [Order::Sequential, random, random]] {
        let maps: Vec<Map> = (0..3).map(|skip| part(orders[skip], skip)).collect();
        let joined = Map::merge(&maps).unwrap().unwrap();
        let mut expected = IntervalSet::new();
        for map in &maps {
            expected.extend(&map.covered_keys().unwrap());
        }
        assert_eq!(joined.covered_keys().unwrap(), expected);
        assert_eq!(joined.covered(), expected.total());
        for key in (0x7ff0..0x10010).map(number) {
            assert_eq!(joined.is_covered(key), expected.contains(key));
            assert_eq!(joined.is_covered(key), maps.iter().any(|map| map.is_covered(key)));
        }
        let gaps = joined.gaps().unwrap();
        assert_eq!(gaps.total() + joined.covered(), number(0x8000));
        if orders[0] == orders[1] {
            assert!(joined.is_complete() && joined.order() == orders[0]);
        }
    }
    assert!(Map::merge(&[]).unwrap().is_none());
    let other = Map::new(job(number(0x8000), 0x8001), Order::Sequential);
    let error = Map::merge(&[part(random, 0), other]).unwrap_err().to_string();
    assert!(error.contains("map 2 is of another job") && error.contains("8000:10000"), "{error}");
}

#[test]
fn a_map_with_countless_pieces_is_not_listed() {
    let job = Job::new(Interval::new(U256::ONE, U256::MAX).unwrap(), &["eth"], targets(1));
    let order = Order::random(&job.range(), 1, U256::ONE);
    let mut map = Map::new(job, order);
    let batch = Planner::new(&map).next(number(1000)).unwrap();
    assert_eq!(map.complete(&batch, 1), number(1000));
    // What is covered is one piece; what is not are 2^62.
    assert_eq!(map.covered_keys().unwrap().total(), number(1000));
    assert!(matches!(map.gaps(), Err(Error::TooManyPieces { .. })));
    assert!(map.is_covered(batch.keys().last()) && !map.is_covered(batch.keys().last() + U256::ONE));
}

#[test]
fn history_counts_seconds_and_keys_and_stays_short() {
    let mut map = Map::new(job(number(1), 1 << 40), Order::Sequential);
    let mut planner = Planner::new(&map);
    let (mut keys, mut now) = (U256::ZERO, 1_000_000);
    map.begin(now);
    for _ in 0..60_000 {
        let batch = planner.next(number(1000)).unwrap();
        now += 600;
        keys += map.complete(&batch, now);
    }
    let history = map.history();
    assert!(history.len() <= Stretch::MOST);
    assert_eq!(history.iter().fold(U256::ZERO, |sum, stretch| sum + stretch.keys), keys);
    assert_eq!(history.iter().map(|stretch| stretch.seconds).sum::<u64>(), 60_000 * 600);
    assert!(history.windows(2).all(|pair| pair[0].began < pair[1].began));
    assert!(history.iter().all(|stretch| (stretch.rate().unwrap() - 1000.0 / 600.0).abs() < 1e-9));
    assert_eq!(history.last().unwrap().seconds, 3600);
}

#[test]
fn short_batches_lose_no_time_and_a_clock_put_back_none_either() {
    let mut map = Map::new(job(number(1), 1 << 20), Order::Sequential);
    let mut planner = Planner::new(&map);
    map.begin(100);
    for now in [100, 100, 101, 101, 101, 103, 90, 95, 104] {
        map.complete(&planner.next(number(10)).unwrap(), now);
    }
    assert_eq!(map.history(), [Stretch { began: 100, seconds: 4, keys: number(90) }]);
    // Another run, hours later: the time between is not worked.
    map.begin(9000);
    map.complete(&planner.next(number(10)).unwrap(), 9010);
    assert_eq!(map.history()[1..], [Stretch { began: 9000, seconds: 10, keys: number(10) }]);
}

/// What a hand may write in place of a word of a map.
fn word() -> impl Strategy<Value = String> {
    let edges = [
        "",
        "0",
        "1",
        "-1",
        "+5",
        "18446744073709551615",
        "18446744073709551616",
        "7fffffffffffffff",
        "8000:ffff",
        "1:0",
        "0:5",
        "ffff:8000",
        "sequential",
        "random",
        "stretch",
        "covered",
        "match",
        "unlisted",
        "total",
        "p2pkh,p2tr",
        "database",
        "99999999999999999999999999999999999999999999999999999999999999999999999999999999",
    ];
    let wide = [U256::MAX, U256::MAX - U256::ONE, U256::ONE << 64, (U256::MAX >> 62) + U256::ONE];
    let wide = wide.map(|wide| prop_oneof![Just(format!("{wide:x}")), Just(wide.to_string())]);
    let hex = (any::<[u128; 2]>(), 0..255u32).prop_map(|(bits, shift)| format!("{:x}", U256(bits) >> shift));
    let pair = (any::<u64>(), any::<u64>()).prop_map(|(a, b)| format!("{a:x}:{b:x}"));
    prop_oneof![
        prop::sample::select(edges.to_vec()).prop_map(str::to_owned),
        proptest::strategy::Union::new(wide),
        hex,
        any::<u64>().prop_map(|number| number.to_string()),
        pair,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Maps in which words and lines were changed, with the digest that belongs to them then: refused, or used without a panic.
    #[test]
    fn hand_made_maps_are_refused_or_used(
        is_random in any::<bool>(),
        changes in prop::collection::vec((0..5u8, any::<prop::sample::Index>(), any::<prop::sample::Index>(), word()), 0..5),
        (with_total, with_match) in any::<(bool, bool)>(),
    ) {
        let mut map = sample(if is_random { random } else { |_| Order::Sequential });
        if with_match {
            map.note_match("1Address", 1_763_200_010);
            map.note_match("bc1address", 1_763_200_011);
        }
        let mut lines: Vec<Vec<String>> =
            lines_of(&map).lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
        for (what, line, at, new) in changes {
            // The head stays, or nothing else would be read.
            let line = 1 + line.index(lines.len() - 1);
            match what {
                0 => lines.insert(line, lines[line].clone()),
                1 if lines.len() > 3 => _ = lines.remove(line),
                _ => {
                    let at = at.index(lines[line].len());
                    lines[line][at] = new;
                }
            }
        }
        if with_total {
            // The sum as it would have to be, so that more than sums is tested.
            let words = |line: &Vec<String>| line.join(" ");
            let ends = lines.iter().filter_map(|line| words(line).strip_prefix("covered ").and_then(|ends| {
                let (first, last) = ends.split_once(':')?;
                let bound = |text| U256::from_str_radix(text, 16).ok();
                Interval::new(bound(first)?, bound(last)?)
            }).map(|interval| interval.count()));
            let total = ends.fold(U256::ZERO, U256::saturating_add);
            lines.retain(|line| line[0] != "total");
            lines.push(vec!["total".to_owned(), total.to_string()]);
        }
        let text: String = lines.iter().map(|line| line.join(" ") + "\n").collect();
        if let Ok(map) = read_lines(&text) {
            use_whole(&map);
        }
    }
}

proptest! {
    /// Batches of any sizes, some given back, some cut short, some lost with their process: every key is given out, none
    /// twice at a time, and the sums are exact.
    #[test]
    fn plans_cover_every_key_once(
        base in any::<[u128; 2]>(),
        near_order in any::<bool>(),
        count in 1u64..3000,
        piece in prop::option::of(1u64..700),
        seed in any::<u64>(),
        steps in prop::collection::vec((0..8u8, 1u64..900), 1..60),
    ) {
        let highest = crate::key_order() - number(count);
        let first = if near_order { highest } else { U256(base).max(U256::ONE).min(highest) };
        let job = job(first, count);
        let range = job.range();
        let order = piece.map_or(Order::Sequential, |piece| Order::random(&range, seed, number(piece)));
        let mut map = Map::new(job, order);
        let mut planner = Planner::new(&map);
        let mut done = vec![0u32; count as usize];
        let mut out: Vec<Batch> = Vec::new();
        let mut finish = |map: &mut Map, batch: &Batch| {
            let keys = batch.keys();
            for key in 0..keys.count().as_usize() {
                done[(keys.first() - range.first()).as_usize() + key] += 1;
            }
            assert_eq!(map.complete(batch, 1), keys.count());
        };
        for (step, size) in steps {
            match (step, out.is_empty()) {
                (0, false) => planner.give_back(out.swap_remove(0)),
                (1, false) => {
                    let part = planner.split(out.remove(0), number(size - 1));
                    part.iter().for_each(|batch| finish(&mut map, batch));
                }
                // A kill: what is out is lost, what is covered was saved.
                (2, _) => {
                    out.clear();
                    let read = text::read("m".as_ref(), text::write(&map).as_bytes()).unwrap();
                    prop_assert_eq!(&read.covered, &map.covered);
                    map = read;
                    planner = Planner::new(&map);
                }
                (3 | 4, false) => finish(&mut map, &out.swap_remove(size as usize % out.len())),
                _ => {
                    if let Some(batch) = planner.next(number(size)) {
                        prop_assert!(range.covers(&batch.keys()) && batch.keys().count() <= number(size));
                        for other in &out {
                            prop_assert!(other.keys().intersection(&batch.keys()).is_none());
                        }
                        out.push(batch);
                    }
                }
            }
        }
        for batch in out.drain(..) {
            finish(&mut map, &batch);
        }
        while let Some(batch) = planner.next(number(97)) {
            finish(&mut map, &batch);
        }
        prop_assert!(done.iter().all(|&times| times == 1));
        prop_assert!(map.is_complete() && map.remaining() == U256::ZERO && map.gaps().unwrap().is_empty());
        prop_assert_eq!(map.covered(), number(count));
        prop_assert_eq!(map.covered_keys().unwrap().iter().collect::<Vec<_>>(), vec![range]);
    }
}
