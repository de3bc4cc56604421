//! Snapshots as Bitcoin Core writes them: by a writer of its own that follows the other half of Core's rules, from vectors of
//! Core's tests, and one that Core's own code wrote.

use std::collections::BTreeMap;
use std::fs;

use warpsmith_chain::{AddressKind, Digest};

use super::*;
use crate::database::tests::Workshop;
use crate::database::{BuildOptions, Built, Database};

/// Half of a snapshot's numbers: `WriteVarInt` of `serialize.h`.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = vec![(number & 0x7f) as u8];
    while number > 0x7f {
        number = (number >> 7) - 1;
        bytes.push((number & 0x7f) as u8 | 0x80);
    }
    bytes.reverse();
    bytes
}

/// The other half: `WriteCompactSize`.
fn compact(number: u64) -> Vec<u8> {
    match number {
        0..0xfd => vec![number as u8],
        0xfd..=0xffff => [&[0xfd][..], &(number as u16).to_le_bytes()].concat(),
        0x1_0000..=0xffff_ffff => [&[0xfe][..], &(number as u32).to_le_bytes()].concat(),
        _ => [&[0xff][..], &number.to_le_bytes()].concat(),
    }
}

/// `CompressAmount` of `compressor.cpp`.
fn compressed(mut satoshi: u64) -> u64 {
    if satoshi == 0 {
        return 0;
    }
    let mut zeros = 0;
    while satoshi.is_multiple_of(10) && zeros < 9 {
        satoshi /= 10;
        zeros += 1;
    }
    match zeros {
        9 => 1 + (satoshi - 1) * 10 + 9,
        _ => 1 + (satoshi / 10 * 9 + satoshi % 10 - 1) * 10 + zeros,
    }
}

/// A script that is paid to, and as it is in a snapshot.
#[derive(Clone)]
enum Paid {
    Hash(u8),
    Script(u8),
    Key([u8; 33]),
    WholeKey([u8; 65]),
    Other(Vec<u8>),
}

impl Paid {
    fn written(&self) -> Vec<u8> {
        match self {
            Paid::Hash(fill) => [&[0][..], &[*fill; 20]].concat(),
            Paid::Script(fill) => [&[1][..], &[*fill; 20]].concat(),
            Paid::Key(key) => key.to_vec(),
            Paid::WholeKey(key) => [&[4 | (key[64] & 1)][..], &key[1..33]].concat(),
            Paid::Other(script) => [varint(script.len() as u64 + 6), script.clone()].concat(),
        }
    }
}

struct Coin {
    vout: u64,
    height: u64,
    satoshi: u64,
    paid: Paid,
}

fn coin(satoshi: u64, paid: Paid) -> Coin {
    Coin { vout: satoshi % 400, height: 840_000 + satoshi % 7, satoshi, paid }
}

const MAIN: [u8; 4] = [0xf9, 0xbe, 0xb4, 0xd9];
const REGTEST: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

/// A snapshot of these transactions' coins.
fn snapshot(network: [u8; 4], transactions: &[Vec<Coin>]) -> Vec<u8> {
    let count: usize = transactions.iter().map(Vec::len).sum();
    let mut bytes =
        [b"utxo\xff\x02\x00", &network[..], &[0xab; 31], &[0xcd], &(count as u64).to_le_bytes()].concat();
    for (number, coins) in transactions.iter().enumerate() {
        let mut id = [0x5a; 32];
        id[..8].copy_from_slice(&(number as u64).to_be_bytes());
        bytes.extend(id);
        bytes.extend(compact(coins.len() as u64));
        for coin in coins {
            bytes.extend(compact(coin.vout));
            bytes.extend(varint(coin.height * 2 + 1));
            bytes.extend(varint(compressed(coin.satoshi)));
            bytes.extend(coin.paid.written());
        }
    }
    bytes
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn source(bytes: &[u8]) -> Source<'_, &[u8]> {
    Source { path: Path::new("set"), inner: bytes, at: 0, coins: 0 }
}

/// `serialize_tests.cpp`, varints_bitpatterns, and `compress_tests.cpp`.
#[test]
fn numbers_are_those_of_bitcoin_cores_tests() {
    for (number, text) in [
        (0, "00"),
        (0x7f, "7f"),
        (0x80, "8000"),
        (0x1234, "a334"),
        (0xffff, "82fe7f"),
        (0x12_3456, "c7e756"),
        (0x8012_3456, "86ffc7e756"),
        (0xffff_ffff, "8efefefe7f"),
        (0x7fff_ffff_ffff_ffff, "fefefefefefefefe7f"),
        (0xffff_ffff_ffff_ffff, "80fefefefefefefefe7f"),
    ] {
        assert_eq!(source(&unhex(text)).varint().unwrap(), number, "{text}");
        assert_eq!(varint(number), unhex(text));
    }
    assert!(source(&unhex("80fefefefefefefeff00")).varint().is_err(), "2^64");
    assert!(source(&[0xff; 20]).varint().is_err());
    for (satoshi, number) in
        [(0, 0), (1, 1), (1_000_000, 7), (100_000_000, 9), (5_000_000_000, 0x32), (MOST_SATOSHI, 0x0140_6f40)]
    {
        assert_eq!((amount(number), compressed(satoshi)), (Some(satoshi), number));
    }
    for satoshi in (0..100_000).chain((1..60).map(|number| number * 123_456_789)) {
        assert_eq!(amount(compressed(satoshi)), Some(satoshi));
    }
    assert_eq!(amount(u64::MAX), None, "more than 64 bits");
    for number in [0, 1, 252, 253, 254, 0xffff, 0x1_0000, MOST_COMPACT] {
        assert_eq!(source(&compact(number)).compact().unwrap(), number);
    }
    for text in ["fd0100", "fdfc00", "feffff0000", "ffffffffff00000000", "fe01000002"] {
        assert!(source(&unhex(text)).compact().is_err(), "{text}");
    }
}

/// Coins of `coins_tests.cpp`, ccoins_serialization.
#[test]
fn coins_are_those_of_bitcoin_cores_tests() {
    for (text, height, satoshi, hash) in [
        (
            "97f23c835800816115944e077fe7c803cfa57f29b36bf87c1d35",
            203_998 * 2,
            60_000_000_000,
            "816115944e077fe7c803cfa57f29b36bf87c1d35",
        ),
        (
            "8ddf77bbd123008c988f1a4a4de2161e0f50aac7f17e7f9555caa4",
            120_891 * 2 + 1,
            110_397,
            "8c988f1a4a4de2161e0f50aac7f17e7f9555caa4",
        ),
    ] {
        let bytes = unhex(text);
        let (mut source, mut script) = (source(&bytes), Vec::new());
        assert_eq!(source.varint().unwrap(), height);
        assert_eq!(amount(source.varint().unwrap()), Some(satoshi));
        source.script(&mut script).unwrap();
        assert_eq!(script, unhex(&format!("76a914{hash}88ac")));
        assert!(!source.is_more().unwrap());
    }
}

/// The keys of the generator and of a point with an odd y, by their published coordinates.
const X: &str = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
const Y: &str = "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8";
/// The public key of the first block, which is paid 50 coins, and its address.
const FIRST: &str = "04678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5f";
const FIRST_ADDRESS: &str = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa";

/// What a snapshot has, by its address.
fn sums(bytes: &[u8]) -> Result<(Snapshot, BTreeMap<String, u128>), Error> {
    let mut sums = BTreeMap::new();
    let snapshot = read(Path::new("set"), bytes, By::Address, |entries| {
        for entry in entries {
            *sums.entry(entry.record().text()).or_default() += entry.amount().unwrap();
        }
        true
    })?;
    Ok((snapshot, sums))
}

/// Every way in which a script is written, and none of a single key.
fn mixed() -> Vec<Vec<Coin>> {
    let whole: [u8; 65] = unhex(&format!("04{X}{Y}")).try_into().unwrap();
    let half: [u8; 33] = unhex(&format!("02{X}")).try_into().unwrap();
    let first: [u8; 65] = unhex(FIRST).try_into().unwrap();
    let other = |text: &str| Paid::Other(unhex(text));
    let mut no_point = [0; 33];
    (no_point[0], no_point[32]) = (3, 5);
    vec![
        vec![coin(50, Paid::Hash(1)), coin(7_000, Paid::Script(2))],
        vec![
            coin(5_000_000_000, Paid::WholeKey(first)),
            coin(3, Paid::WholeKey(whole)),
            coin(4, Paid::Key(half)),
        ],
        vec![coin(1_000, other("0014751e76e8199196d454941c45d1b3a323f1433bd6"))],
        vec![coin(2_000, other(&format!("5120{X}"))), coin(60, Paid::Hash(1))],
        // P2WSH, a bare multisig, an empty script, a witness program of another length, a long script, and keys that are no points.
        vec![
            coin(10, other(&format!("0020{X}"))),
            coin(20, other(&format!("512102{X}51ae"))),
            coin(30, Paid::Other(vec![])),
            coin(40, other("5102abcd")),
            coin(70, Paid::Other(vec![0x51; 9_999])),
            coin(80, other(&format!("41{}ac", "04".to_owned() + &"11".repeat(64)))),
            coin(90, Paid::Key(no_point)),
        ],
    ]
}

#[test]
fn coins_of_every_kind_are_read() {
    let (snapshot_read, sums) = sums(&snapshot(MAIN, &mixed())).unwrap();
    assert_eq!((snapshot_read.network, snapshot_read.coins, snapshot_read.scripts), ("mainnet", 15, 7));
    assert_eq!(snapshot_read.block, format!("cd{}", "ab".repeat(31)));
    let expected: BTreeMap<String, u128> = [
        (AddressKind::P2PKH.text(&Digest::new(&[1; 20])), 110),
        (AddressKind::P2SH.text(&Digest::new(&[2; 20])), 7_000),
        (FIRST_ADDRESS.to_owned(), 5_000_000_000),
        // The two addresses of the private key 1, and the witness program of its hash.
        ("1EHNa6Q4Jz2uvNExL497mE43ikXhwF6kZm".to_owned(), 3),
        ("1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH".to_owned(), 4),
        ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4".to_owned(), 1_000),
        (AddressKind::P2TR.text(&Digest::new(&unhex(X))), 2_000),
    ]
    .into();
    assert_eq!(sums, expected);
}

/// `core.dat` was written by Bitcoin Core's own `serialize.h` and `compressor.cpp` (commit 58a7869f860) from 70 random scripts and
/// amounts; `core.txt` is what these hold, added up in Python with Python's own addresses.
#[test]
fn a_set_that_bitcoin_cores_code_wrote_is_read() {
    let (snapshot, sums) = sums(include_bytes!("core.dat")).unwrap();
    assert_eq!((snapshot.network, snapshot.coins, snapshot.scripts), ("mainnet", 70, 29));
    let lines: Vec<String> = sums.iter().map(|(address, sum)| format!("{address}\t{sum}")).collect();
    let mut expected: Vec<&str> = include_str!("core.txt").lines().collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

/// With little memory, so that coins of one address lie in several runs; beside another source, of which the larger amount is
/// kept and nothing is added up.
#[test]
fn coins_of_an_address_are_added_up_and_sources_are_not() {
    let shop = Workshop::new();
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let coins: Vec<Coin> = (0..60_000)
        .map(|_| {
            let (fill, satoshi) = (random(200) as u8, random(1 << 40) * 10u64.pow(random(3) as u32));
            coin(satoshi, if random(2) == 0 { Paid::Hash(fill) } else { Paid::Script(fill) })
        })
        .collect();
    let mut expected: BTreeMap<Vec<u8>, u128> = BTreeMap::new();
    for coin in &coins {
        let (kind, fill) = match coin.paid {
            Paid::Hash(fill) => (AddressKind::P2PKH, fill),
            Paid::Script(fill) => (AddressKind::P2SH, fill),
            _ => unreachable!("no others were made"),
        };
        *expected.entry([&[kind.byte()][..], &[fill; 20]].concat()).or_default() += u128::from(coin.satoshi);
    }
    let mut transactions: Vec<Vec<Coin>> = Vec::new();
    for coin in coins {
        match transactions.last_mut().filter(|last| last.len() < 300) {
            Some(last) => last.push(coin),
            None => transactions.push(vec![coin]),
        }
    }
    let set = shop.file("set", snapshot(MAIN, &transactions));
    let packed = shop.file("set.zst", zstd::encode_all(&fs::read(&set).unwrap()[..], 1).unwrap());
    // By script too, with how many there are.
    let mut by_script: BTreeMap<[u8; 32], (u64, u64)> = BTreeMap::new();
    for coin in transactions.iter().flatten() {
        let script = match coin.paid {
            Paid::Hash(fill) => [&[0x76, 0xa9, 20][..], &[fill; 20], &[0x88, 0xac]].concat(),
            Paid::Script(fill) => [&[0xa9, 20][..], &[fill; 20], &[0x87]].concat(),
            _ => unreachable!("no others were made"),
        };
        let sum = by_script.entry(Sha256::digest(script).into()).or_default();
        *sum = (sum.0 + coin.satoshi, sum.1 + 1);
    }
    for set in [&set, &packed] {
        let options = BuildOptions { threads: 2, memory: 1 << 20, ..Default::default() };
        let mut told = Vec::new();
        let read = Snapshot::each_script(set, &shop.path("beside"), &options, &mut |script| {
            told.push((script.script, (script.satoshi, script.coins)));
            true
        });
        assert_eq!((read.unwrap().coins, Snapshot::is_at(set)), (60_000, true));
        assert!(told.iter().copied().eq(by_script.iter().map(|(script, sum)| (*script, *sum))), "in order");
    }
    let build = |name: &str, sources: &[_]| -> Built {
        let options = BuildOptions { threads: 2, memory: 1 << 20, ..Default::default() };
        Database::build(&shop.path(name), sources, &options).unwrap()
    };
    let contents = |name: &str| -> BTreeMap<Vec<u8>, u128> {
        let database = Database::open(&shop.path(name)).unwrap();
        let entries = database.entries().map(|entry| entry.unwrap());
        entries.map(|entry| (entry.key().to_vec(), entry.amount().unwrap())).collect()
    };
    let built = build("db", std::slice::from_ref(&set));
    assert_eq!(contents("db"), expected);
    assert_eq!((built.report.addresses, built.report.duplicates), (expected.len() as u64, 0));
    let [(path, told)] = &built.snapshots[..] else { panic!("{built:?}") };
    assert_eq!((path, told.coins, told.scripts), (&set, 60_000, 0));
    build("packed", &[packed]);
    assert_eq!(contents("packed"), expected);
    // The same set twice is one set; and a list says more of one address, less of another.
    let (rich, poor) = ([0x01; 21], [&[0x01][..], &[2; 20]].concat());
    let text = |key: &[u8]| AddressKind::P2PKH.text(&Digest::new(&key[1..]));
    let list = shop.file("list", format!("{}\t{}\n{}\t1\n", text(&rich), u64::MAX, text(&poor)));
    let built = build("both", &[set.clone(), list, set]);
    assert_eq!(built.report.duplicates, 2 + expected.len() as u64);
    expected.insert(rich.to_vec(), u64::MAX.into());
    assert_eq!(contents("both"), expected);
    assert_eq!(shop.names(), ["both", "db", "list", "packed", "set", "set.zst"]);
}

#[test]
fn test_networks_have_kinds_of_their_own() {
    let shop = Workshop::new();
    let set = shop.file("set", snapshot(REGTEST, &mixed()));
    let built = shop.build("db", &[set]).unwrap();
    assert_eq!(built.snapshots[0].1.network, "regtest");
    let names: Vec<&str> = built.about.kinds.iter().map(|(kind, _)| kind.name()).collect();
    assert_eq!(names, ["p2pkh-test", "p2sh-test", "p2wpkh-test", "p2tr-test"]);
    assert_eq!(built.report.scripts, 7);
}

fn refused(bytes: &[u8]) -> String {
    match sums(bytes) {
        Err(error @ Error::Snapshot { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Wherever a snapshot ends early it is refused with the place, and a database is not made.
#[test]
fn every_cut_is_found() {
    let mut transactions = mixed();
    transactions[4].remove(4);
    let whole = snapshot(MAIN, &transactions);
    assert_eq!(sums(&whole).unwrap().0.coins, 14);
    for cut in 0..whole.len() {
        let error = refused(&whole[..cut]);
        assert!(error.contains("its end is missing (before byte "), "{cut}: {error}");
    }
    let error = refused(&[&whole[..], &[0]].concat());
    assert!(error.contains("more behind the last coin") && error.contains("after 14 coins"), "{error}");
    // The count of the head.
    for (count, says) in
        [(13u64, "where 5 are left"), (15, "its end is missing"), (0, "more behind the last coin")]
    {
        let mut bytes = whole.clone();
        bytes[43..51].copy_from_slice(&count.to_le_bytes());
        let error = refused(&bytes);
        assert!(error.contains(says), "{count}: {error}");
    }
    let shop = Workshop::new();
    let cut = shop.file("set", &whole[..whole.len() - 1]);
    assert!(matches!(shop.build("db", &[cut]), Err(Error::Snapshot { .. })));
    assert_eq!(shop.names(), ["set"]);
}

/// Whatever is changed: refused, or read as what it says, and never a crash.
#[test]
fn changed_bytes_are_refused_or_read() {
    let mut transactions = mixed();
    transactions[4].remove(4);
    let whole = snapshot(MAIN, &transactions);
    let (mut errors, mut read) = (0, 0);
    for at in HEAD..whole.len() {
        for change in [1, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            match sums(&bytes) {
                Ok((snapshot, _)) => {
                    assert_eq!(snapshot.coins, 14);
                    read += 1;
                }
                Err(Error::Snapshot { .. }) => errors += 1,
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(errors > 50 && read > 50, "{errors} {read}");
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let whole = snapshot(MAIN, &mixed());
    let changed = |at: usize, to: &[u8]| {
        let mut bytes = whole.clone();
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    };
    assert!(refused(&changed(5, &[1])).contains("format 1"));
    assert!(refused(&changed(5, &[3])).contains("format 3"));
    let error = refused(&changed(7, &[1, 2, 3, 4]));
    assert!(error.contains("01020304") && error.contains("testnet4"), "{error}");
    let one = |coins: Vec<Coin>| snapshot(MAIN, &[coins]);
    // An x coordinate that no point has, in a key of which only that is written.
    let mut key = [4; 65];
    key[1..33].fill(0);
    key[32] = 5;
    assert!(refused(&one(vec![coin(5, Paid::WholeKey(key))])).contains("no point has"));
    assert!(refused(&one(vec![coin(MOST_SATOSHI + 1, Paid::Hash(1))])).contains("more than there is"));
    assert!(refused(&one(vec![coin(1, Paid::Other(vec![1; 10_001]))])).contains("longer than any"));
    let high = Coin { height: 1 << 32, ..coin(1, Paid::Hash(1)) };
    assert!(refused(&one(vec![high])).contains("height"));
    assert!(
        refused(&snapshot(MAIN, &[vec![coin(1, Paid::Hash(1))], vec![], vec![coin(1, Paid::Hash(2))]]))
            .contains("has 0 coins")
    );
}

/// The format before had no magic: the hash of a block and a count, then each coin with its transaction's id.
#[test]
fn the_older_format_is_known_and_refused() {
    let shop = Workshop::new();
    // The block at height 840,000, last byte first, as in the snapshot that Bitcoin Core 26 was made for.
    let mut block = unhex("0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5");
    block.reverse();
    let coin = [vec![7; 36], varint(840_000), varint(9), Paid::Hash(3).written()].concat();
    let old_set = shop.file("old", [&block[..], &1u64.to_le_bytes(), &coin].concat());
    let error = shop.build("db", &[old_set]).unwrap_err();
    assert!(matches!(&error, Error::Snapshot { .. }), "{error}");
    assert!(
        error.to_string().contains("Bitcoin Core 26 or 27") && error.to_string().contains("28"),
        "{error}"
    );
    // No list of addresses is taken for one.
    assert!(!is_old(b"1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2\n1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2\n"));
    assert!(!is_old(&[0; 40]) && !is_old(&block) && !is_old(b""));
    let empty = shop.file("empty", snapshot(MAIN, &[]));
    assert!(matches!(shop.build("db", &[empty]), Err(Error::NoAddress { .. })));
}
