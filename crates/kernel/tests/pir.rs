//! The programs of private retrieval as host C under sanitizers, against ChaCha12 of another crate and plain definitions.

use crate::support::{HostProgram, Random};
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use warpsmith_kernel::pir::{BIN_ROOM, BINS, HintTask, Launch, Part, TIES_HEADER, join};

const LANES: u32 = 32;

/// One text as a program.
struct Kernels(HostProgram);

impl Kernels {
    fn new(shape: &HintTask, part: Part) -> Kernels {
        let text = join(shape, part, &Launch { block: LANES, blocks: 1, inline: true }).text;
        let drive = match part {
            Part::Cutoffs => "#define DRIVE_CUTOFFS 1\n",
            Part::Regular | Part::Pairs => "#define DRIVE_PARITIES 1\n",
            Part::Rest => "",
        };
        Kernels(HostProgram::build(&text, &format!("{drive}{}", include_str!("host/pir.c"))))
    }

    /// Launches an entry point; the buffers come back as it left them.
    fn run(&self, entry: u32, groups: u32, buffers: &[Vec<u32>], scalars: &[u64]) -> Vec<Vec<u32>> {
        let mut request = vec![entry, groups, buffers.len() as u32, scalars.len() as u32];
        for buffer in buffers {
            request.push(buffer.len() as u32);
            request.extend(buffer);
        }
        request.extend(scalars.iter().flat_map(|scalar| [*scalar as u32, (scalar >> 32) as u32]));
        let mut answer = self.0.run(&request).into_iter();
        buffers.iter().map(|buffer| answer.by_ref().take(buffer.len()).collect()).collect()
    }
}

/// The function by its definition.
struct Prf {
    key: [u8; 32],
    shape: HintTask,
}

impl Prf {
    fn new(random: &mut Random, shape: HintTask) -> Prf {
        Prf { key: std::array::from_fn(|_| random.next() as u8), shape }
    }

    fn scalars(&self) -> Vec<u64> {
        self.key.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
    }

    fn word(&self, domain: u32, id: u64, block: u32) -> u32 {
        let mut nonce = [0; 12];
        for (bytes, word) in nonce.chunks_exact_mut(4).zip([domain, block, (id >> 36) as u32]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let mut cipher = chacha20::ChaCha12::new(&self.key.into(), &nonce.into());
        cipher.seek(u64::from((id >> 4) as u32) * 64 + id % 16 * 4);
        let mut word = [0; 4];
        cipher.apply_keystream(&mut word);
        u32::from_le_bytes(word)
    }

    fn order(&self, id: u64, block: u32) -> u32 {
        let word = self.word(0, id, block);
        if self.shape.packed { word >> 16 << 16 | self.word(2, id, block) >> 16 } else { word }
    }

    fn offset(&self, id: u64, block: u32) -> u32 {
        let w = self.shape.block_size;
        if self.shape.packed {
            self.word(0, id, block) % w
        } else {
            ((u64::from(self.word(1, id, block)) * u64::from(w)) >> 32) as u32
        }
    }
}

fn shape(entry_size: u32, block_size: u32, blocks: u32) -> HintTask {
    HintTask { entry_size, block_size, blocks, packed: block_size.is_power_of_two() && block_size <= 1 << 16 }
}

/// The cutoffs of some groups through a window, and the hints left open.
fn cutoffs(
    kernels: &Kernels,
    prf: &Prf,
    groups: (u64, u32),
    (shift, bins): (u32, u32),
) -> (Vec<u32>, Vec<u32>) {
    let launched = groups.1.min(2);
    let lists = (launched * 16 * BINS * BIN_ROOM) as usize;
    // Two hints of someone else's before ours.
    let told = vec![0xaaaa_aaaa; 2 + 16 * groups.1 as usize];
    let room = 16 * groups.1;
    let mut open = vec![0, room];
    open.resize(2 + room as usize, 0);
    let mut scalars = prf.scalars();
    scalars.extend([groups.0, groups.1.into(), 2, prf.shape.blocks.into()]);
    scalars.extend([shift, bins, launched].map(u64::from));
    let after = kernels.run(0, launched, &[told, vec![0; lists], open], &scalars);
    assert_eq!(after[0][..2], [0xaaaa_aaaa; 2]);
    let count = after[2][0] as usize;
    (after[0][2..].to_vec(), after[2][2..2 + count].iter().map(|hint| hint - 2).collect())
}

#[test]
fn cutoffs_are_the_middle_or_left_open() {
    let mut random = Random(1);
    for w in [64, 100] {
        let kernels = Kernels::new(&shape(40, w, 2), Part::Cutoffs);
        // The whole range in the window; a usual window; one that is too narrow; bins that are too small.
        for (c, window, some_open, some_right) in [
            (2, (25, 128), false, true),
            (6, (25, 128), false, true),
            (130, (25, 70), false, true),
            (1000, (22, 128), false, true),
            (1000, (22, 4), true, true),
            (12_000, (25, 128), true, false),
        ] {
            let prf = Prf::new(&mut random, shape(40, w, c));
            let first = (1u64 << 32) + 7;
            let (found, open) = cutoffs(&kernels, &prf, (first, 3), window);
            for (hint, &found) in (0..).zip(&found) {
                let id = 16 * first + u64::from(hint);
                let mut orders: Vec<u32> = (0..c).map(|block| prf.order(id, block)).collect();
                orders.sort_unstable();
                let expected = if open.contains(&hint) { 0 } else { orders[c as usize / 2] };
                assert_eq!(found, expected, "w {w}, c {c}, {window:?}, hint {hint}");
            }
            assert_eq!(!open.is_empty(), some_open, "w {w}, c {c}, {window:?}");
            assert_eq!(open.len() < found.len(), some_right, "w {w}, c {c}, {window:?}");
        }
    }
}

/// A database of random words in the device's layout, from block `first` on.
fn database(random: &mut Random, shape: &HintTask, blocks: u32) -> Vec<u32> {
    (0..u64::from(blocks) * shape.block_words()).map(|_| random.next()).collect()
}

fn entry<'a>(database: &'a [u32], shape: &HintTask, block: u32, offset: u32) -> &'a [u32] {
    let at = (block as usize * shape.block_size as usize + offset as usize) * shape.stride() as usize;
    &database[at..at + shape.row() as usize]
}

fn add(sum: &mut [u32], words: &[u32]) {
    sum.iter_mut().zip(words).for_each(|(sum, word)| *sum ^= word);
}

/// Parities of a few groups, some lanes without one, in two launches; and the ties.
fn check_parities(random: &mut Random, shape: HintTask, part: Part) {
    let kernels = Kernels::new(&shape, part);
    let rest = Kernels::new(&shape, Part::Rest);
    let prf = Prf::new(random, shape);
    let (first_group, groups, first_hint, first_row) = (random.next().into(), 5, 16, 32);
    let (row, c, hints) = (shape.row() as usize, shape.blocks, 16 * groups as usize);
    let database = database(random, &shape, c);
    let halves = if part == Part::Pairs { 2 } else { 1 };
    let rows = first_row as usize + hints;
    let apart = rows * row;
    let before: Vec<u32> = (0..halves * apart).map(|_| random.next()).collect();
    let window = 100;
    // Cutoffs that are orders, or share the upper half of one, or are invalid.
    let id = |hint: usize| 16 * first_group + hint as u64;
    let mut limits = vec![0; first_hint as usize];
    for hint in 0..hints {
        let order = prf.order(id(hint), window + random.next() % c);
        limits.push(match hint % 4 {
            0 => order,
            1 => order | 0xffff,
            2 => order & 0xffff_0000,
            _ => random.next() & (0u32.wrapping_sub(u32::from(hint % 8 == 3))),
        });
    }
    let mut ties = vec![0, 1000, 0, 0];
    ties.resize(4 + 2000, 0);
    let mut buffers = vec![database.clone(), limits.clone(), before.clone(), ties];
    // As many blocks as one launch takes, after some that another took: the block numbers go on.
    let half = c / 2 / part.team() * part.team();
    for (skip, blocks) in [(0, half), (half, c - half)] {
        for column in 0..shape.columns() {
            let mut scalars = prf.scalars();
            scalars.push(first_group);
            scalars.extend([groups, first_hint, first_row, window + skip, skip, blocks].map(u64::from));
            scalars.extend([shape.block_size, column * shape.column_words()].map(u64::from));
            scalars.push(apart as u64);
            let teams = LANES / part.team();
            buffers = kernels.run(0, groups.div_ceil(teams), &buffers, &scalars);
        }
    }
    let (mut expected, mut tied) = (before, Vec::new());
    for hint in 0..hints {
        let limit = limits[first_hint as usize + hint];
        for block in 0..c {
            let number = window + block;
            let words = entry(&database, &shape, block, prf.offset(id(hint), number));
            let order = prf.order(id(hint), number);
            let at = (first_row as usize + hint) * row;
            let below = if shape.packed { order >> 16 < limit >> 16 } else { order < limit };
            if below {
                add(&mut expected[at..at + row], words);
            }
            if part == Part::Pairs {
                add(&mut expected[apart + at..apart + at + row], words);
            }
            if shape.packed && order >> 16 == limit >> 16 {
                tied.push((first_hint + hint as u32, number));
            }
        }
    }
    assert!(buffers[2] == expected, "{part:?}, {shape:?}");
    let count = buffers[3][0] as usize;
    let header = TIES_HEADER as usize;
    let mut listed: Vec<(u32, u32)> =
        buffers[3][header..header + 2 * count].chunks_exact(2).map(|tie| (tie[0], tie[1])).collect();
    listed.sort_unstable();
    assert_eq!(listed, tied, "{part:?}, {shape:?}");
    assert_eq!(tied.is_empty(), !shape.packed, "planted");
    if !shape.packed {
        return;
    }
    // The ties that belong below; `first_hint` less the first rows, which are not of this list.
    let mut scalars = prf.scalars();
    let start = first_group.wrapping_sub(u64::from(first_row / 16));
    scalars.extend([start, u64::from(first_hint.wrapping_sub(first_row)), window.into()]);
    scalars.extend([shape.block_size, shape.stride(), shape.row(), 2 * LANES].map(u64::from));
    let settled = rest.run(0, 2, &buffers, &scalars);
    for (hint, number) in tied {
        let (hint, limit) = ((hint - first_hint) as usize, limits[hint as usize]);
        if prf.order(id(hint), number) < limit {
            let at = (first_row as usize + hint) * row;
            let words = entry(&database, &shape, number - window, prf.offset(id(hint), number));
            add(&mut expected[at..at + row], words);
        }
    }
    assert!(settled[2] == expected, "ties: {part:?}, {shape:?}");
    assert_eq!(settled[3][2], 0);
    // A list that is too short says so.
    buffers[3][1] = count as u32 - 1;
    assert_eq!(rest.run(0, 2, &buffers, &scalars)[3][2], 1);
}

#[test]
fn parities_by_their_definition() {
    let mut random = Random(2);
    for part in [Part::Regular, Part::Pairs] {
        // Forty bytes; the smallest entries; four words; several columns; offsets with a word of their own.
        for (entry_size, w) in [(40, 32), (8, 4), (13, 1), (100, 8), (40, 7), (33, 16)] {
            check_parities(&mut random, shape(entry_size, w, 24), part);
        }
    }
}

#[test]
fn extras_and_halves() {
    let mut random = Random(3);
    let shape = shape(40, 5, 8);
    let (row, hints, first, blocks) = (shape.row() as usize, 50u32, 7u32, 6u32);
    let kernels = Kernels::new(&shape, Part::Rest);
    let database = database(&mut random, &shape, blocks);
    let cutoffs: Vec<u32> = (0..hints).map(|i| if i % 5 == 0 { 0 } else { random.next() | 1 }).collect();
    let extras: Vec<u32> = (0..hints).flat_map(|_| [98 + random.next() % 10, random.next() % 5]).collect();
    let sums: Vec<u32> = (0..2 * hints as usize * row).map(|_| random.next()).collect();
    let scalars = [first, 40, 100, blocks, shape.block_size, shape.stride(), shape.row()].map(u64::from);
    let after =
        kernels.run(1, 2, &[database.clone(), cutoffs.clone(), sums.clone(), extras.clone()], &scalars);
    let mut expected = sums.clone();
    for hint in first as usize..47 {
        let (block, offset) = (extras[2 * hint], extras[2 * hint + 1]);
        if cutoffs[hint] != 0 && (100..100 + blocks).contains(&block) {
            add(&mut expected[hint * row..][..row], entry(&database, &shape, block - 100, offset));
        }
    }
    assert!(after[2] == expected && after[2] != sums);

    // Pairs of rows 3..40, whose cutoffs begin after 7 others.
    let apart = hints as usize * row;
    let scalars = [u64::from(first), 3, 37, u64::from(shape.row()), apart as u64];
    let after = kernels.run(2, 2, &[cutoffs.clone(), sums.clone()], &scalars);
    for r in 0..hints as usize {
        for k in r * row..(r + 1) * row {
            let (low, all) = (sums[k], sums[apart + k]);
            let expected = match r {
                3..40 if cutoffs[first as usize + r] == 0 => (0, 0),
                3..40 => (low, low ^ all),
                _ => (low, all),
            };
            assert_eq!((after[1][k], after[1][apart + k]), expected, "row {r}");
        }
    }
}

/// SplitMix64 of the place, as bytes.
fn made_up(length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..length.div_ceil(8) as u64 {
        let mut z = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend((z ^ z >> 31).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[test]
fn databases_are_spread_and_made_up() {
    for size in [8, 9, 13, 31, 33, 40, 41, 63, 64, 100] {
        let shape = shape(size, 4, 4);
        let kernels = Kernels::new(&shape, Part::Rest);
        let (entries, words) = (13, u64::from(shape.blocks) * shape.block_words());
        let packed = made_up(entries * size as usize);
        // The words it may read are these and one more, whatever is in it.
        let mut padded = packed.clone();
        padded.resize(packed.len().div_ceil(4) * 4 + 4, 0xee);
        let aligned: Vec<u32> = padded.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let mut expected = Vec::new();
        for entry in packed.chunks_exact(size as usize) {
            let mut entry = entry.to_vec();
            entry.resize(4 * shape.stride() as usize, 0);
            expected.extend(entry.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)));
        }
        expected.resize(words as usize, 0);
        let target = vec![0xffff_ffff; words as usize];
        let tail = [u64::from(size), shape.stride().into(), 2 * u64::from(LANES)];
        // At the beginning of the database, and behind other blocks, which stay as they are.
        for first in [0, words] {
            let scalars = [&[packed.len() as u64, words, first][..], &tail].concat();
            let before = vec![0xffff_ffff; (first + words) as usize];
            let after = kernels.run(3, 2, &[aligned.clone(), before.clone()], &scalars);
            assert_eq!(after[1][..first as usize], before[..first as usize], "before it, {size} bytes");
            assert_eq!(after[1][first as usize..], expected, "spread, {size} bytes");
        }
        let scalars = [&[entries as u64, words][..], &tail].concat();
        assert_eq!(kernels.run(4, 2, &[target], &scalars)[0], expected, "made up, {size} bytes");
    }
}
