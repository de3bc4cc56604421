//! Scores as host C under sanitizers, on digests that have much to count, against a plain count on the text.

use std::collections::{HashMap, HashSet};

use crate::support::{HostProgram, Random};
use warpsmith_kernel::digest_filter::{Count, Score, Wanted, build};
use warpsmith_kernel::salts::Stages;
use warpsmith_kernel::{Program, Spec};

const LIKE: &str = "c0ffee????0000dead??????????444477777777";

fn like(text: &str) -> Count {
    let (mut value, mut mask) = ([0; 5], [0; 5]);
    for (place, digit) in text.chars().enumerate().filter(|(_, digit)| *digit != '?') {
        let shift = 28 - 4 * (place % 8);
        value[place / 8] |= digit.to_digit(16).unwrap() << shift;
        mask[place / 8] |= 15 << shift;
    }
    Count::Like { value, mask }
}

/// The number of digits at the start of one text that another has there.
fn common(a: impl Iterator<Item = char>, b: impl Iterator<Item = char>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

fn naive(count: Count, text: &str) -> u32 {
    let pairs = || (0..20).map(|i| &text[2 * i..2 * i + 2]);
    let number = match count {
        Count::Zeros => pairs().filter(|pair| *pair == "00").count(),
        Count::LeadingZeros => pairs().take_while(|pair| *pair == "00").count(),
        Count::Leading(digit) => {
            common(text.chars(), std::iter::repeat(char::from_digit(digit.into(), 16).unwrap()))
        }
        Count::Like { .. } => LIKE.chars().zip(text.chars()).filter(|(a, b)| a == b).count(),
        Count::Letters => text.matches(char::is_alphabetic).count(),
        Count::Digits => text.matches(char::is_numeric).count(),
        Count::Pairs => pairs().take_while(|pair| pair[..1] == pair[1..]).count(),
        Count::Run => (1..=40)
            .rev()
            .find(|&n| (0..=40 - n).any(|at| text[at..at + n].chars().all(|c| text[at..].starts_with(c))))
            .unwrap(),
        Count::Mirrored => common(text[..20].chars().rev(), text[20..].chars()),
        Count::Uniswap => {
            let rest = text.trim_start_matches('0');
            let fours = common(rest.chars(), std::iter::repeat('4'));
            let start = [0, 0, 0, 0, 60, 40][fours.min(5)];
            let end = if text.ends_with("4444") { 20 } else { 0 };
            if fours == 0 { 0 } else { 10 * (40 - rest.len()) + start + end + text.matches('4').count() }
        }
    };
    number as u32
}

/// Digests with zeros, fours, runs, pairs and mirrors of every length at every place.
fn digests(random: &mut Random) -> Vec<String> {
    let mut texts =
        vec!["0".repeat(40), "4".repeat(40), "f".repeat(40), "a5".repeat(20), LIKE.replace('?', "1")];
    let mut below = |n: u32| random.next() % n;
    for round in 0..4000 {
        let mut text: Vec<char> = (0..40).map(|_| char::from_digit(below(16), 16).unwrap()).collect();
        let (from, length) = (below(40) as usize, below(41) as usize);
        let to = (from + length).min(40);
        match round % 6 {
            0 => text[from..to].fill(['0', '4', '7', 'f'][below(4) as usize]),
            1 => text[..from].fill('0'),
            2 => {
                text[..from].fill('0');
                let end = (from + below(8) as usize).min(40);
                text[from..end].fill('4');
                if below(2) == 0 {
                    text[36..].fill('4');
                }
            }
            3 => (0..from / 2).for_each(|i| text[20 + i] = text[19 - i]),
            4 => (0..from / 2).for_each(|i| text[2 * i + 1] = text[2 * i]),
            _ => (0..40).filter(|_| below(2) == 0).for_each(|i| {
                text[i] = LIKE.replace('?', "0").chars().nth(i).unwrap();
            }),
        }
        texts.push(text.into_iter().collect());
    }
    texts
}

#[test]
fn every_count_is_that_of_the_text() {
    let texts = digests(&mut Random(25));
    let counts = [
        Count::Zeros,
        Count::LeadingZeros,
        Count::Leading(0),
        Count::Leading(4),
        Count::Leading(15),
        like(LIKE),
        Count::Letters,
        Count::Digits,
        Count::Pairs,
        Count::Run,
        Count::Mirrored,
        Count::Uniswap,
    ];
    let mut programs = HashMap::new();
    let alone = counts.map(|count| vec![(1, count)]);
    let twice = counts.map(|count| vec![(2, count)]);
    let sums = [counts.map(|count| (7, count)).to_vec(), vec![(100, Count::Run), (3, Count::Mirrored)]];
    for parts in alone.into_iter().chain(twice).chain(sums) {
        let wanted = Wanted { score: Some(Score { parts: parts.clone(), each: true }), ..Wanted::default() };
        let (filter, words) = build(&wanted, 5);
        let stages = Stages { guarded: false, create: false, byte: 0 };
        let spec = Spec { program: Program::Salts { stages, filter }, ..Spec::default() };
        // Most share a text.
        let host = programs
            .entry(filter)
            .or_insert_with(|| HostProgram::search(spec, include_str!("host/scores.c")));
        let digests = texts
            .iter()
            .flat_map(|text| (0..5).map(|i| u32::from_str_radix(&text[8 * i..8 * i + 8], 16).unwrap()));
        let request: Vec<u32> =
            [words.len() as u32, texts.len() as u32].into_iter().chain(words).chain(digests).collect();
        let told = host.run(&request);
        assert_eq!(told.len(), texts.len());
        let mut seen = HashSet::new();
        for (text, told) in texts.iter().zip(told) {
            let expected: u32 = parts.iter().map(|(weight, count)| weight * naive(*count, text)).sum();
            assert_eq!(told, expected, "{parts:?} {text}");
            seen.insert(told);
        }
        assert!(seen.len() > 8, "{parts:?} shows {} scores", seen.len());
    }
    assert_eq!(programs.len(), 4, "three have a text of their own");
}
