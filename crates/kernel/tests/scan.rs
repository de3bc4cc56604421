//! The scan of a range as host C under sanitizers: every key of small stretches in every form against k256 and the crates
//! `sha3`, `sha2` and `ripemd`; fuse filters against the crate `xorf`.

use std::collections::HashSet;

use crate::support::{
    HostProgram, Point, Random, SCAN_WALK, address, from_limbs, hash160, limbs, point, words,
};
use k256::Scalar;
use warpsmith_kernel::digest_filter::{DigestTest, Wanted, build};
use warpsmith_kernel::scan::{self, Form, Forms, FusePart, Passed, ScanPart, ScanRecord, ScanTest};
use warpsmith_kernel::{Program, Spec, TablePlace, abi, join, points};
use xorf::{BinaryFuse8, BinaryFuse16, Filter as _};

/// The forms scan_test has.
const FORMS: [Form; 5] = [Form::X, Form::Uncompressed, Form::Compressed, Form::Script, Form::Account];

/// Both programs of a scan.
struct Scan {
    walk: HostProgram,
    test: HostProgram,
    spec: Spec,
    forms: Vec<Form>,
    /// Threads of a lane that test.
    parts: u32,
}

struct Answer {
    ends: Vec<Point>,
    count: u32,
    records: Vec<ScanRecord>,
}

impl Answer {
    fn passed(&self) -> HashSet<Passed> {
        let passed: HashSet<Passed> = self
            .records
            .iter()
            .map(|record| match record {
                ScanRecord::Passed(passed) => *passed,
                ScanRecord::Fault { .. } => panic!("{record:?}"),
            })
            .collect();
        assert_eq!(passed.len(), self.records.len(), "each once");
        passed
    }
}

impl Scan {
    fn build(forms: &[Form], filter: ScanTest, spec: Spec) -> Self {
        let keep_y = Forms::of(forms).need_y();
        Self::build_keeping(forms, filter, spec, keep_y, 1)
    }

    fn build_keeping(forms: &[Form], filter: ScanTest, spec: Spec, keep_y: bool, parts: u32) -> Self {
        let program = |part| Spec { program: Program::Scan(part), ..spec };
        let test = ScanPart::Test { forms: Forms::of(forms), filter, keep_y };
        let walk = HostProgram::search(program(ScanPart::Walk { keep_y }), SCAN_WALK);
        let test = HostProgram::search(program(test), include_str!("host/scan_test.c"));
        Self { walk, test, spec, forms: forms.to_vec(), parts }
    }

    /// Keys of a lane in a step.
    fn keys(&self) -> u32 {
        2 * self.spec.group + 1
    }

    /// The key of the first centre of a lane.
    fn centre(&self, first: &Scalar, lane: u32) -> Scalar {
        first + Scalar::from(self.spec.group) + Scalar::from(lane) * Scalar::from(self.keys())
    }

    fn run(&self, first: &Scalar, lanes: u32, steps: u32, filter: &[u32], capacity: u32) -> Answer {
        let group = self.spec.group;
        let mut request = vec![lanes, steps, capacity, 0];
        let centres: Vec<Point> = (0..lanes).map(|lane| point(&self.centre(first, lane))).collect();
        for w in 0..16 {
            request.extend(centres.iter().map(|(x, y)| if w < 8 { limbs(x)[w] } else { limbs(y)[w - 8] }));
        }
        for i in 0..=group {
            let (x, y) = point(&Scalar::from(if i == 0 { lanes * self.keys() } else { i }));
            request.extend(points::entry(&limbs(&x), &limbs(&y)));
        }
        let walked = self.walk.run(&request);
        let (rest, faults) = walked.split_at(walked.len() - scan::hits_words(capacity));
        let (points, centres) = rest.split_at(rest.len() - abi::centres_words(lanes));
        let n = lanes as usize;
        let word = |lane: usize, at: usize| from_limbs((at..at + 8).map(|w| centres[w * n + lane]));
        let mut request = vec![lanes, steps, filter.len() as u32, capacity, self.parts, 0, 0, 0];
        request.extend(filter);
        request.extend(points);
        let tested = self.test.run(&request);
        let records = |hits: &[u32]| -> Vec<ScanRecord> {
            let written = hits[0].min(capacity) as usize;
            let records = hits[abi::HITS_HEADER..].chunks_exact(scan::RECORD_WORDS).take(written);
            records.map(|r| ScanRecord::read(r.try_into().unwrap()).expect("a form")).collect()
        };
        Answer {
            ends: (0..n).map(|lane| (word(lane, 0), word(lane, 8))).collect(),
            count: tested[0] + faults[0],
            records: records(faults).into_iter().chain(records(&tested)).collect(),
        }
    }

    /// Every record a launch could write, the digests by other implementations.
    fn all(&self, first: &Scalar, lanes: u32, steps: u32) -> Vec<Passed> {
        let mut all = Vec::new();
        for (step, lane) in (0..steps).flat_map(|step| (0..lanes).map(move |lane| (step, lane))) {
            let centre = self.centre(first, step * lanes + lane);
            for (index, minus) in (0..=self.spec.group).flat_map(|i| [(i, false), (i, true)]) {
                if index == 0 && minus {
                    continue;
                }
                let key = if minus { centre - Scalar::from(index) } else { centre + Scalar::from(index) };
                let (x, y) = point(&key);
                let bytes: Vec<u8> = [x, y]
                    .iter()
                    .flat_map(|a| limbs(a).into_iter().rev().flat_map(u32::to_be_bytes))
                    .collect();
                for &form in &self.forms {
                    let digest = words(&digest(form, &bytes));
                    all.push(Passed { lane, step, index, minus, form, open: false, digest });
                }
            }
        }
        all
    }
}

/// The digest of a point given as 64 bytes.
fn digest(form: Form, bytes: &[u8]) -> Vec<u8> {
    let compressed = || hash160(&[&[2 + (bytes[63] & 1)], &bytes[..32]].concat());
    match form {
        Form::X => bytes[..32].to_vec(),
        Form::Uncompressed => hash160(&[&[4], bytes].concat()).to_vec(),
        Form::Compressed => compressed().to_vec(),
        Form::Script => hash160(&[&[0, 20], compressed().as_slice()].concat()).to_vec(),
        Form::Account => address(bytes).to_vec(),
        Form::Taproot => unreachable!("tests/taproot.rs tests these"),
    }
}

fn everything() -> (ScanTest, Vec<u32>) {
    let (shape, words) = build(&Wanted { intervals: vec![(0, u64::MAX)], ..Wanted::default() }, 5);
    (ScanTest::Top(shape), words)
}

/// The top 64 bits of a digest in words.
fn top_of(digest: &[u32; 8]) -> u64 {
    u64::from(digest[0]) << 32 | u64::from(digest[1])
}

fn every_key_is_tested_once(forms: &[Form], spec: Spec, blocks: u32) {
    let (filter, words) = everything();
    let (keep_y, parts) = (Forms::of(forms).need_y() || blocks > 2, blocks);
    let scan = Scan::build_keeping(forms, filter, spec, keep_y, parts);
    let (lanes, steps) = (spec.block * blocks, 3);
    let first = Random(7).scalar();
    let answer = scan.run(&first, lanes, steps, &words, 8192);
    let expected = scan.all(&first, lanes, steps);
    assert_eq!(answer.count as usize, expected.len());
    assert_eq!(expected.len() as u32, lanes * steps * scan.keys() * forms.len() as u32);
    assert_eq!(answer.passed(), expected.into_iter().collect(), "{forms:?}");
    for (lane, end) in answer.ends.into_iter().enumerate() {
        assert_eq!(end, point(&scan.centre(&first, steps * lanes + lane as u32)));
    }
}

#[test]
fn every_key_is_tested_once_in_each_form_alone() {
    for form in FORMS {
        // With three blocks also what needs no y reads points that have one.
        for blocks in [2, 3] {
            every_key_is_tested_once(&[form], Spec { group: 3, block: 4, ..Spec::default() }, blocks);
        }
    }
}

#[test]
fn every_key_is_tested_once_in_forms_together() {
    let spec = Spec { group: 2, block: 2, unroll_signs: true, ..Spec::default() };
    every_key_is_tested_once(&FORMS, spec, 2);
    let alone = Spec { group: 3, block: 1, shared_inversion: false, ..Spec::default() };
    use Form::{Account, Compressed, Script, Uncompressed};
    for forms in [
        &[Uncompressed, Compressed][..],
        &[Compressed, Script],
        &[Uncompressed, Script],
        &[Uncompressed, Compressed, Script],
        &[Compressed, Account],
    ] {
        every_key_is_tested_once(forms, alone, 2);
    }
}

/// Lanes that have lost a carry begin again: here one product in sixteen comes out wrong and tells, so that nothing of a group
/// is right before it is walked again.
#[test]
fn lanes_that_lost_a_carry_walk_again() {
    let spec = Spec { group: 3, block: 4, ..Spec::default() };
    let fold = "u96_add_short(low, fold[0], fold[1], fold[2], &lost->carries);";
    let spoil = "if (low[3] >> 28 == 0) low[3] ^= 1, lost->carries++;";
    for keep_y in [false, true] {
        let (filter, words) = everything();
        let mut scan = Scan::build_keeping(&[Form::Compressed], filter, spec, keep_y, 2);
        let walk = Spec {
            program: Program::Scan(ScanPart::Walk { keep_y }),
            ptx: false,
            table: TablePlace::Global,
            ..spec
        };
        let text = join(&walk).text;
        assert_eq!(text.matches(fold).count(), 1, "what every product with lazy carries ends with");
        let text = text.replace(fold, &format!("{fold} {spoil}"));
        scan.walk = HostProgram::build(&text, SCAN_WALK);
        let (first, lanes, steps) = (Random(23).scalar(), 8, 3);
        let expected = scan.all(&first, lanes, steps);
        let answer = scan.run(&first, lanes, steps, &words, 8192);
        assert_eq!(answer.passed(), expected.into_iter().collect());
        for (lane, end) in answer.ends.into_iter().enumerate() {
            assert_eq!(end, point(&scan.centre(&first, steps * lanes + lane as u32)));
        }
    }
}

/// Keys planted at the edges of lanes, steps and entries, in every form, come back alone, through every kind of filter.
#[test]
fn planted_keys_come_back_through_every_filter() {
    let spec = Spec { group: 4, block: 2, ..Spec::default() };
    let (first, lanes, steps) = (Random(11).scalar(), 4, 2);
    let probe = Scan::build(&FORMS, everything().0, spec);
    let mut planted = probe.all(&first, lanes, steps);
    let total = planted.len();
    planted.retain(|p| [0, 3].contains(&p.lane) && [0, 1, 4].contains(&p.index));
    let tops: Vec<u64> = planted.iter().map(|p| top_of(&p.digest)).collect();
    let mut random = Random(5);
    let decoys = (0..3000).map(|_| u64::from(random.next()) << 32 | u64::from(random.next()));
    let keys: Vec<u64> = tops.iter().copied().chain(decoys).collect();

    let intervals = keys.iter().map(|top| (*top, *top)).collect();
    let (shape, words) = build(&Wanted { intervals, ..Wanted::default() }, 5);
    assert_eq!(shape, DigestTest { set: true, ..DigestTest::default() });
    let scan = Scan::build(&FORMS, ScanTest::Top(shape), spec);
    assert_eq!(scan.run(&first, lanes, steps, &words, 8192).passed(), planted.iter().copied().collect());

    let mut one = None;
    for planted in planted.iter().step_by(7) {
        let intervals = vec![(top_of(&planted.digest), top_of(&planted.digest))];
        let (shape, words) = build(&Wanted { intervals, ..Wanted::default() }, 5);
        let scan = one.get_or_insert_with(|| Scan::build(&FORMS, ScanTest::Top(shape), spec));
        assert_eq!(scan.run(&first, lanes, steps, &words, 64).passed(), HashSet::from([*planted]));
    }

    for bits in [8, 16] {
        let scan = Scan::build(&FORMS, ScanTest::Fuse { bits, many: false }, spec);
        let passed = scan.run(&first, lanes, steps, &fuse(bits, 1, &keys).0, 8192).passed();
        assert!(planted.iter().all(|p| passed.contains(p)), "fuse{bits} lost a key");
        let others = passed.len() - planted.len();
        assert!(others < if bits == 8 { 12 } else { 2 }, "{others} of {total} others passed fuse{bits}");
    }
}

/// What the crate says of a key.
type Contains = Box<dyn Fn(u64) -> bool>;

/// The words of a fuse filter of these keys in so many parts, and what the crate says of a key.
fn fuse(bits: u32, parts: u64, keys: &[u64]) -> (Vec<u32>, Contains) {
    let part_of = move |key: u64| (((key >> 32) * parts) >> 32) as usize;
    let (mut all, mut bytes, mut says): (Vec<FusePart>, Vec<u8>, Vec<Contains>) = Default::default();
    for part in 0..parts as usize {
        let keys: Vec<u64> = keys.iter().copied().filter(|key| part_of(*key) == part).collect();
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        let first = bytes.len() as u32 / 4;
        let about = if bits == 8 {
            let filter = BinaryFuse8::try_from(&keys).unwrap();
            bytes.extend_from_slice(&filter.fingerprints);
            let d = &filter.descriptor;
            let about = (d.seed, d.segment_length, d.segment_count_length);
            says.push(Box::new(move |key| filter.contains(&key)));
            about
        } else {
            let filter = BinaryFuse16::try_from(&keys).unwrap();
            bytes.extend(filter.fingerprints.iter().flat_map(|word| word.to_le_bytes()));
            let d = &filter.descriptor;
            let about = (d.seed, d.segment_length, d.segment_count_length);
            says.push(Box::new(move |key| filter.contains(&key)));
            about
        };
        let (seed, segment_length, segment_count_length) = about;
        all.push(FusePart { first, seed, segment_length, segment_count_length });
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let (body, _) = bytes.as_chunks();
    let words = scan::fuse_words(&all).into_iter().chain(body.iter().map(|word| u32::from_le_bytes(*word)));
    (words.collect(), Box::new(move |key| says[part_of(key)](key)))
}

/// A million random digests, those of the set and those at the seams of parts get the same answer as from the crate.
#[test]
fn fuse_filters_are_those_of_the_crate() {
    let sizes = [(8, 1usize, 1), (16, 1, 1), (8, 100, 1), (16, 3000, 1), (8, 200_000, 1), (16, 200_000, 1)];
    let in_parts = [(8, 1, 2), (16, 3, 7), (8, 3000, 3), (16, 3000, 64), (8, 200_000, 5), (16, 200_000, 2)];
    for (bits, size, parts) in sizes.into_iter().chain(in_parts) {
        let mut random = Random(size as u64 + u64::from(bits));
        let mut key = || u64::from(random.next()) << 32 | u64::from(random.next());
        let set: Vec<u64> = (0..size).map(|_| key()).collect();
        let (filter, contains) = fuse(bits, parts, &set);
        let spec = Spec { group: 1, block: 1, ..Spec::default() };
        let scan = Scan::build(&[Form::X], ScanTest::Fuse { bits, many: parts > 1 }, spec);
        let count = if size == 200_000 { 1_000_000 } else { 10_000 };
        let seams = (0..u128::from(parts)).map(|part| (part << 64).div_ceil(u128::from(parts)) as u64);
        let seams = seams.flat_map(|seam| [seam.wrapping_sub(1), seam, seam + 1]);
        let asked: Vec<u64> =
            set.iter().copied().chain((0..count).map(|_| key())).chain(seams).chain([0, u64::MAX]).collect();
        let mut request = vec![0, asked.len() as u32, filter.len() as u32, 1, 0, 0, 0, 0];
        request.extend(filter);
        request.extend(asked.iter().flat_map(|key| [(key >> 32) as u32, *key as u32]));
        let passed = scan.test.run(&request);
        assert_eq!(passed.len(), asked.len());
        assert!(asked.iter().zip(&passed).all(|(key, passed)| contains(*key) == (*passed == 1)));
        assert!(passed[..size].iter().all(|passed| *passed == 1));
    }
}

#[test]
fn a_full_hit_buffer_is_counted_past_and_not_written_past() {
    let (filter, words) = everything();
    let scan = Scan::build(&[Form::X], filter, Spec { group: 2, block: 1, ..Spec::default() });
    let answer = scan.run(&Random(1).scalar(), 1, 1, &words, 3);
    assert_eq!((answer.count, answer.records.len()), (5, 3));
}

#[test]
fn meeting_points_are_reported_and_spoil_no_other_lane() {
    let (filter, words) = everything();
    let spec = Spec { group: 8, block: 4, ..Spec::default() };
    let scan = Scan::build(&[Form::Compressed], filter, spec);
    // The second lane begins on the step point: 4 * 17 = (first + 8) + 17.
    let first = Scalar::from(4 * 17 - 17 - 8u32);
    let answer = scan.run(&first, 4, 2, &words, 8192);
    let faults: Vec<&ScanRecord> =
        answer.records.iter().filter(|record| matches!(record, ScanRecord::Fault { .. })).collect();
    // Its centre stays, and every step says so.
    let fault = |step| ScanRecord::Fault { lane: 1, step };
    assert_eq!(faults, [&fault(0), &fault(1)]);
    let passed: HashSet<Passed> = answer
        .records
        .iter()
        .filter_map(|record| if let ScanRecord::Passed(passed) = record { Some(*passed) } else { None })
        .filter(|passed| passed.lane != 1)
        .collect();
    let expected = scan.all(&first, 4, 2).into_iter().filter(|p| p.lane != 1);
    assert_eq!(passed, expected.collect());
    assert_eq!(answer.ends[1], point(&scan.centre(&first, 1)));
    assert_eq!(answer.ends[2], point(&scan.centre(&first, 10)));
}
