//! Ranges by brute force over all short prefixes, against texts at the edges of every range.

use super::*;
use proptest::prelude::*;

/// Versions of Bitcoin's addresses, and others whose numbers cross a power of 58 or come last.
const VERSIONS: [u8; 7] = [0, 5, 111, 196, 1, 2, 255];

fn values(text: &str) -> Vec<u8> {
    text.bytes().map(|character| value(character).unwrap()).collect()
}

fn hash(number: &Number) -> [u8; 20] {
    let bytes = number.to_bytes();
    std::array::from_fn(|i| bytes[12 + i])
}

/// The ranges with neighbours joined.
fn joined(ranges: &[Range]) -> Vec<(Number, Number)> {
    let mut all: Vec<(Number, Number)> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(before) if before.1.plus_one() == range.first => before.1 = range.last,
            _ => all.push((range.first, range.last)),
        }
    }
    all
}

/// Every prefix of up to three characters, also those no text has. A hash inside a range has the prefix, one outside
/// does not, and of the two at its ends the number with their checksum decides.
#[test]
fn every_short_prefix_is_right_at_the_edges_of_its_ranges() {
    let most = Number::below_bit(160);
    let mut checked = 0;
    for version in VERSIONS {
        let encoding = Base58::new(version);
        let number = |hash: &Number| {
            let bytes = bytes(&encoding.text(&Digest::new(&self::hash(hash)))).unwrap();
            let mut padded = [0; 32];
            padded[8..].copy_from_slice(&bytes[1..]);
            let (words, _) = padded.as_chunks();
            Number(std::array::from_fn(|i| u64::from_be_bytes(words[i])))
        };
        for length in 1..=3 {
            // The number zero has 25 ones and no digit; its checksum is not zero, so it is no address.
            let mut next = Number::from(u8::from(version == 0));
            let mut all: Vec<(Number, Number)> = Vec::new();
            for index in 0..58u32.pow(length) {
                let prefix: Vec<u8> = (0..length).rev().map(|i| (index / 58u32.pow(i) % 58) as u8).collect();
                let ranges = joined(&encoding.ranges(&prefix));
                assert_eq!(encoding.is_possible(&prefix), !ranges.is_empty());
                for (first, last) in &ranges {
                    let [lowest, highest] = [first, last].map(|n| {
                        let bytes = n.to_bytes();
                        Number::of_hash(&std::array::from_fn(|i| bytes[8 + i]))
                    });
                    let mut near = vec![lowest, highest];
                    near.extend((lowest < highest).then(|| lowest.plus_one()));
                    near.extend((lowest < highest).then(|| highest.minus_one()));
                    near.extend((lowest > Number::from(0)).then(|| lowest.minus_one()));
                    near.extend((highest < most).then(|| highest.plus_one()));
                    for hash in near {
                        let text = encoding.text(&Digest::new(&self::hash(&hash)));
                        let begins = values(&text).starts_with(&prefix);
                        let inside = (*first..=*last).contains(&number(&hash));
                        let elsewhere = ranges.iter().any(|(a, b)| (*a..=*b).contains(&number(&hash)));
                        assert_eq!(begins, elsewhere, "{version} {prefix:?} {text}");
                        assert!(inside || hash <= lowest || hash >= highest);
                        checked += 1;
                    }
                }
                all.extend(ranges);
            }
            // Together they are all numbers, each once. Every text has three characters.
            all.sort_unstable();
            for (first, last) in all {
                assert_eq!(first, next);
                next = last.plus_one();
            }
            assert_eq!(next, Number::below_bit(192).plus_one());
        }
    }
    assert!(checked > 100_000, "{checked}");
}

#[test]
fn lengths_and_heads_are_those_of_bitcoin() {
    let lengths =
        |version| -> Vec<usize> { Base58::new(version).lengths().iter().map(|(l, _)| *l).collect() };
    let main = lengths(0);
    assert!(main.starts_with(&[34, 33, 32]) && main.ends_with(&[26, 25]), "{main:?}");
    assert_eq!((lengths(5), lengths(111), lengths(196)), (vec![34], vec![34], vec![35]));
    for version in VERSIONS {
        let total: f64 = Base58::new(version).lengths().iter().map(|(_, share)| share).sum();
        assert!((total - 1.0).abs() < 1e-12);
    }
    let heads = |version| -> String {
        let encoding = Base58::new(version);
        (0..58)
            .filter(|&c| encoding.share(&[c]) > 0.0)
            .map(|c| char::from(ALPHABET.as_bytes()[usize::from(c)]))
            .collect()
    };
    assert_eq!([0, 5, 111, 196].map(heads), ["1", "3", "mn", "2"]);
    // Of a thousand '1' addresses 957 have 34 characters: 58^32 / 2^192 is 0.0428, less those with two zero bytes.
    let (_, share) = Base58::new(0).lengths()[0];
    assert!((share - 0.957).abs() < 0.005, "{share}");
}

#[test]
fn a_whole_text_is_possible_only_with_its_checksum() {
    let encoding = Base58::new(0);
    let whole = values("1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH");
    assert!((1..=whole.len()).all(|length| encoding.is_possible(&whole[..length])));
    for position in 29..whole.len() {
        let mut wrong = whole.clone();
        wrong[position] = (wrong[position] + 1) % 58;
        assert!(!encoding.is_possible(&wrong), "{position}");
    }
    assert!(!encoding.is_possible(&[whole, vec![0]].concat()));
    let zeros = values("1111111111111111111114oLvT2");
    assert!(
        encoding.is_possible(&zeros) && encoding.is_possible(&zeros[..21]) && !encoding.is_possible(&[0; 26])
    );
    assert!(encoding.ranges(&[vec![0; 30], vec![5; 3]].concat()).is_empty());
    assert!(encoding.ranges(&[5; 40]).is_empty());
}

#[test]
fn samples_and_edges_are_as_rare_as_they_say() {
    use crate::Encoding;
    for version in [0, 5, 111, 196] {
        let base58 = Base58::new(version);
        let encoding = Encoding::Base58(base58.clone());
        for bits in [5.0, 20.0, 35.0, 60.0] {
            let rare = -base58.share(&values(&encoding.sample(bits))).log2();
            assert!((rare - bits).abs() < 6.5, "{version} {bits} {rare}");
            for ones in [false, true] {
                let edge = encoding.edge(ones, bits as usize);
                let rare = -base58.share(&values(&edge)).log2();
                assert!(rare >= bits && rare < bits + 9.0, "{version} {edge} {rare}");
                assert!(base58.text(&Digest::new(&[if ones { 0xff } else { 0 }; 20])).starts_with(&edge));
            }
        }
        let text = base58.text(&Digest::new(&[0x5a; 20]));
        for bits in [1.0, 8.0, 30.0] {
            let prefix = encoding.prefix(&text, bits);
            let share = base58.share(&values(prefix));
            assert!(text.starts_with(prefix) && share < 1.0, "{prefix}");
        }
    }
}

proptest! {
    #[test]
    fn every_start_of_a_text_has_its_number_in_a_range(hash: [u8; 20], zeros in 0usize..=20, version: u8) {
        let mut hash = hash;
        hash[..zeros].fill(0);
        let encoding = Base58::new(version);
        let text = encoding.text(&Digest::new(&hash));
        let values = values(&text);
        let mut before = 1.0;
        for length in 0..=values.len() {
            let ranges = encoding.ranges(&values[..length]);
            let top = u64::from_be_bytes(*hash.first_chunk().unwrap());
            let within = ranges.iter().filter(|range| {
                let [first, last] = range.hashes();
                (first..=last).contains(&hash) && (range.top()[0]..=range.top()[1]).contains(&top)
            });
            prop_assert!(within.filter(|range| range.length == text.len()).count() >= 1);
            let share = encoding.share(&values[..length]);
            prop_assert!(share <= before * (1.0 + 1e-12) && share > 0.0);
            before = share;
        }
    }

    #[test]
    fn reading_undoes_writing(payload in proptest::collection::vec(any::<u8>(), 0..64), zeros in 0usize..8) {
        let payload = [vec![0; zeros], payload].concat();
        let mut text = String::new();
        push_checked(&mut text, &payload);
        prop_assert_eq!(&text, &miniscript::bitcoin::base58::encode_check(&payload));
        let bytes = bytes(&text).unwrap();
        prop_assert_eq!(checked_payload(&bytes), Some(&payload[..]));
    }
}
