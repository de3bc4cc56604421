//! The kernels' field, points and hashes on many random numbers: as host C under sanitizers, on PoCL and on every GPU there is,
//! against k256 and the crates `sha3`, `sha2` and `ripemd`.
//!
//! Some thousands of each in every run; 10^7 (of hashes 10^6) with `WARPSMITH_LONG=1`.

use std::cell::RefCell;

use crate::support::{HostProgram, SCAN_WALK, address, hash160, limbs, point};
use k256::elliptic_curve::BatchNormalize;
use k256::elliptic_curve::hazmat::FieldArithmetic;
use k256::elliptic_curve::ops::Reduce;
use k256::elliptic_curve::sec1::ToSec1Point;
use k256::{AffinePoint, FieldBytes, ProjectivePoint, Scalar};
use warpsmith_device::{Api, Arg, Cache, Device, Info, Kernel, Options, Queue, Source, Vendor, survey};
use warpsmith_kernel::digest_filter::{Wanted, build};
use warpsmith_kernel::scan::{self, Form, Forms, ScanPart, ScanRecord, ScanTest};
use warpsmith_kernel::{Program, Spec, TablePlace, abi, join, join_field, points};
use warpsmith_trials::{Random, count, is_long};

type Theirs = <k256::Secp256k1 as FieldArithmetic>::FieldElement;
type Pair = ([u8; 32], [u8; 32]);

/// Points whose inversions k256 does together.
const TOGETHER: usize = 64;

/// Which word of a hit buffer says how many records fit (c/base/abi.h).
const HITS_CAPACITY: usize = 1;

/// A program where it runs.
enum Runner {
    Host(HostProgram),
    Device(RefCell<OnDevice>),
}

struct OnDevice {
    queue: Box<dyn Queue>,
    kernel: Kernel,
    block: u32,
}

/// What a kernel is given.
enum Given<'a> {
    /// A buffer with these words, read back if asked for.
    Words(&'a [u32], bool),
    /// A buffer of so many words, all zero, read back if asked for.
    Zeros(usize, bool),
    /// A number.
    Number(u32),
}

impl OnDevice {
    fn new(device: &dyn Device, text: &str, entry: &str, block: u32) -> Self {
        device.can_build().unwrap();
        let mut queue = device.queue().unwrap();
        let options = Options { cache: Cache::Off, ..Options::default() };
        let program = queue.build(&Source { text, key: "test", ptx: None }, &options).unwrap();
        let kernel = queue.kernel(program, entry).unwrap();
        Self { queue, kernel, block }
    }

    /// One launch; the buffers that were asked for come back.
    fn run(&mut self, lanes: u32, given: &[Given]) -> Vec<Vec<u32>> {
        let (mut args, mut buffers) = (Vec::new(), Vec::new());
        for given in given {
            let words = match given {
                Given::Number(number) => {
                    args.push(Arg::U32(*number));
                    continue;
                }
                Given::Words(words, _) => words.len(),
                Given::Zeros(words, _) => *words,
            };
            let buffer = self.queue.alloc(4 * words as u64).unwrap();
            let back = match given {
                Given::Words(words, back) => {
                    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                    self.queue.write(buffer, 0, &bytes).unwrap();
                    *back
                }
                Given::Zeros(words, back) => {
                    self.queue.zero(buffer, 0, 4 * *words as u64).unwrap();
                    *back
                }
                Given::Number(_) => unreachable!("handled above"),
            };
            buffers.push((buffer, words, back));
            args.push(Arg::Buffer(buffer));
        }
        self.queue.launch(self.kernel, lanes.div_ceil(self.block), self.block, &args).unwrap();
        let mut answers = Vec::new();
        for (buffer, words, back) in buffers {
            if back {
                let mut bytes = vec![0; 4 * words];
                self.queue.read(buffer, 0, &mut bytes).unwrap();
                answers.push(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect());
            }
            self.queue.free(buffer).unwrap();
        }
        answers
    }
}

/// Where programs are tested: none is this machine's own C compiler.
fn places() -> Vec<(String, Option<std::sync::Arc<dyn Device>>)> {
    let mut places = vec![("host C".to_owned(), None)];
    let wanted = |info: &Info| info.is_gpu || info.vendor == Vendor::Pocl;
    let found = survey().devices.into_iter().filter(|device| wanted(device.info()));
    places
        .extend(found.map(|device| (format!("{} ({})", device.info().name, device.info().id), Some(device))));
    if places.len() == 1 {
        eprintln!("SKIPPED: no PoCL here (apt install pocl-opencl-icd), and no GPU");
    }
    places
}

/// Whether carries are counted: both ways, but in a short run one of them by chance, since a device takes seconds to build each.
fn variants(random: &mut Random) -> Vec<bool> {
    if is_long() { vec![false, true] } else { vec![random.below(2) == 1] }
}

/// A spec as it is built for a device.
fn on_device(device: &dyn Device, spec: Spec) -> Spec {
    let info = device.info();
    Spec {
        ptx: info.vendor == Vendor::Nvidia,
        table: TablePlace::Global,
        // AMD's compiler takes minutes to inline everything.
        inline: info.vendor != Vendor::Amd || info.api == Api::Cuda,
        ..spec
    }
}

/// p's lowest limb of 64 bits; the others are all ones.
const LOWEST: u64 = 0xffff_fffe_ffff_fc2f;

/// The residue of any 256-bit number: k256 takes canonical ones only.
fn theirs(bytes: &[u8; 32]) -> Theirs {
    Option::from(Theirs::from_bytes(&(*bytes).into())).unwrap_or_else(|| {
        Theirs::from_u64(u64::from_be_bytes(*bytes.last_chunk().expect("32 bytes")) - LOWEST)
    })
}

/// Limbs, least significant first.
fn words_of(bytes: &[u8; 32]) -> [u32; 8] {
    std::array::from_fn(|i| u32::from_be_bytes(bytes[28 - 4 * i..32 - 4 * i].try_into().unwrap()))
}

fn bytes_of(words: &[u32]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes
        .chunks_exact_mut(4)
        .zip(words.iter().rev())
        .for_each(|(to, word)| to.copy_from_slice(&word.to_be_bytes()));
    bytes
}

/// The field of the kernels.
struct Field(Runner);

impl Field {
    fn build(device: Option<&dyn Device>, count_carries: bool) -> Self {
        let spec = Spec { count_carries, ..Spec::default() };
        Self(match device {
            // One lane a block: nothing waits for a neighbour, so no threads are needed.
            None => {
                let text = join_field(&Spec { ptx: false, block: 1, ..spec }).text;
                Runner::Host(HostProgram::build(&text, include_str!("host/field.c")))
            }
            Some(device) => {
                let spec = on_device(device, Spec { block: 64, ..spec });
                let program = OnDevice::new(device, &join_field(&spec).text, "field_check", spec.block);
                Runner::Device(RefCell::new(program))
            }
        })
    }

    fn run(&self, op: u32, pairs: &[Pair]) -> Vec<[u8; 32]> {
        let lists: [Vec<u32>; 2] = [
            pairs.iter().flat_map(|pair| words_of(&pair.0)).collect(),
            pairs.iter().flat_map(|pair| words_of(&pair.1)).collect(),
        ];
        let many = pairs.len() as u32;
        let answer = match &self.0 {
            Runner::Host(host) => {
                host.run(&[&[0, op, many, 0, 0, 0, 0, 0][..], &lists[0], &lists[1]].concat())
            }
            Runner::Device(device) => {
                let [a, b] = &lists;
                let given = [
                    Given::Words(a, false),
                    Given::Words(b, false),
                    Given::Zeros(a.len(), true),
                    Given::Number(op),
                    Given::Number(many),
                ];
                device.borrow_mut().run(many, &given).remove(0)
            }
        };
        assert_eq!(answer.len(), 8 * pairs.len());
        answer.chunks_exact(8).map(bytes_of).collect()
    }
}

#[test]
fn field_operations_agree_with_k256() {
    type Operation = fn(Theirs, Theirs) -> Theirs;
    // What carries lazily tells of a lost carry by all ones; the others follow every carry.
    let operations: [(u32, &str, bool, Operation); 13] = [
        (0, "mul", false, |a, b| a * b),
        (1, "sqr", false, |a, _| a.square()),
        (2, "add", false, |a, b| a + b),
        (3, "sub", false, |a, b| a - b),
        (5, "norm", false, |a, _| a),
        (6, "mul_inc", false, |a, b| a * b + Theirs::from_u64(1)),
        (8, "sub_weak", false, |a, b| a - b),
        (9, "mul_add", true, |a, b| a * b + (a - b)),
        (10, "sqr_add", true, |a, b| a.square() + b),
        (11, "mul", true, |a, b| a * b),
        (12, "add", true, |a, b| a + b),
        (13, "sub", true, |a, b| a - b),
        (14, "norm", true, |a, _| a),
    ];
    let (whole, chunk) = (count(20_000, 10_000_000), 20_000);
    for (name, device) in places() {
        let mut random = Random::new(&format!("field, {name}"));
        for count_carries in variants(&mut random) {
            let field = Field::build(device.as_deref(), count_carries);
            let mut told = 0;
            for _ in 0..whole / chunk {
                let pairs: Vec<Pair> = (0..chunk).map(|_| (random.number(), random.number())).collect();
                // A carry that a lazy operation loses is rare in numbers without pattern.
                let plain: Vec<Pair> = (0..chunk).map(|_| (random.uniform(), random.uniform())).collect();
                for (op, what, is_lazy, expected) in operations {
                    let pairs = if is_lazy { &plain } else { &pairs };
                    for ((a, b), got) in pairs.iter().zip(field.run(op, pairs)) {
                        if is_lazy && got == [0xff; 32] {
                            told += 1;
                            continue;
                        }
                        let expected = expected(theirs(a), theirs(b)).normalize().to_bytes();
                        let canonical = theirs(&got).normalize().to_bytes();
                        assert_eq!(canonical, expected, "{what} ({op}) of {a:02x?} and {b:02x?} on {name}");
                        assert!(what != "norm" || canonical == got, "{a:02x?} on {name}");
                    }
                }
                // An inverse is a few hundred products.
                let few = &pairs[..pairs.len() / 64];
                for ((a, _), got) in few.iter().zip(field.run(4, few)) {
                    let product = (theirs(a) * theirs(&got)).normalize();
                    let one = Theirs::from_u64(u64::from(!bool::from(theirs(a).is_zero())));
                    assert_eq!(product.to_bytes(), one.to_bytes(), "1 / {a:02x?} on {name}");
                }
            }
            // One in 2^31 or so.
            assert!(told <= 8, "{told} lost carries in {whole} numbers on {name}");
        }
    }
}

/// The next points of a walk by single steps of G, as limbs of x and y.
fn following(next: &mut ProjectivePoint, many: usize) -> Vec<([u32; 8], [u32; 8])> {
    let mut all = Vec::with_capacity(many.next_multiple_of(TOGETHER));
    let mut last = *next;
    while all.len() < many {
        let some: [ProjectivePoint; TOGETHER] = std::array::from_fn(|_| {
            let point = last;
            last += ProjectivePoint::GENERATOR;
            point
        });
        let affine: [AffinePoint; TOGETHER] = ProjectivePoint::batch_normalize_vartime(&some);
        all.extend(affine.iter().map(|point| {
            let encoded = point.to_sec1_point(false);
            let words = |bytes: &FieldBytes| words_of(&(*bytes).into());
            (words(encoded.x().expect("not infinity")), words(encoded.y().expect("not infinity")))
        }));
    }
    *next += ProjectivePoint::GENERATOR * Scalar::from(many as u64);
    all.truncate(many);
    all
}

/// The walk of a scan, which writes every point down.
struct Walk {
    runner: Runner,
    spec: Spec,
    lanes: u32,
}

impl Walk {
    fn build(device: Option<&dyn Device>, group: u32, count_carries: bool) -> Self {
        let program = Program::Scan(ScanPart::Walk { keep_y: true });
        let spec = Spec { program, group, count_carries, ..Spec::default() };
        match device {
            None => {
                let spec = Spec { block: 4, ..spec };
                let runner = Runner::Host(HostProgram::search(spec, SCAN_WALK));
                Self { runner, spec, lanes: 8 }
            }
            Some(device) => {
                let spec = on_device(device, Spec { block: 64, ..spec });
                let program = OnDevice::new(device, &join(&spec).text, "scan_walk", spec.block);
                Self { runner: Runner::Device(RefCell::new(program)), spec, lanes: 128 }
            }
        }
    }

    /// Quads of points and the centres moved on.
    fn step(&self, centres: &[u32], table: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let (lanes, group) = (self.lanes, self.spec.group);
        let quads = (scan::points_bytes(group, true) / 4) as usize * lanes as usize;
        let hits = scan::hits_words(1);
        let (points, centres, hits) = match &self.runner {
            Runner::Host(host) => {
                let mut answer = host.run(&[&[lanes, 1, 1, 0][..], centres, table].concat());
                let mut rest = answer.split_off(quads);
                let hits = rest.split_off(abi::centres_words(lanes));
                (answer, rest, hits)
            }
            Runner::Device(device) => {
                let mut header = vec![0; hits];
                header[HITS_CAPACITY] = 1;
                let given = [
                    Given::Words(centres, true),
                    Given::Zeros(points::scratch_words(group, lanes), false),
                    Given::Words(table, false),
                    Given::Zeros(quads, true),
                    Given::Words(&header, true),
                    Given::Number(lanes),
                    Given::Number(0),
                ];
                let [centres, points, hits] =
                    device.borrow_mut().run(lanes, &given).try_into().expect("three");
                (points, centres, hits)
            }
        };
        assert_eq!(hits[0], 0, "no point meets another");
        (points, centres)
    }
}

#[test]
fn points_of_long_walks_agree_with_k256() {
    let whole = count(20_000, 10_000_000);
    for (name, device) in places() {
        let mut random = Random::new(&format!("walk, {name}"));
        for count_carries in variants(&mut random) {
            let walk = Walk::build(device.as_deref(), 64, count_carries);
            let (lanes, group) = (walk.lanes as usize, walk.spec.group as usize);
            let keys = 2 * group + 1;
            let first = <Scalar as Reduce<FieldBytes>>::reduce(&random.uniform().into());
            let mut next = ProjectivePoint::mul_by_generator(&first);
            let centre = |lane: usize| point(&(first + Scalar::from((group + lane * keys) as u64)));
            let starts: Vec<_> = (0..lanes).map(centre).map(|(x, y)| (limbs(&x), limbs(&y))).collect();
            let word = |w: usize| starts.iter().map(move |(x, y)| if w < 8 { x[w] } else { y[w - 8] });
            let mut centres: Vec<u32> = (0..16).flat_map(word).collect();
            let table: Vec<u32> = (0..=group)
                .map(|i| point(&Scalar::from(if i == 0 { lanes * keys } else { i } as u64)))
                .flat_map(|(x, y)| points::entry(&limbs(&x), &limbs(&y)))
                .collect();
            for _ in 0..whole.div_ceil((lanes * keys) as u64) {
                let points;
                (points, centres) = walk.step(&centres, &table);
                let expected = following(&mut next, lanes * keys);
                for (lane, n) in (0..lanes).flat_map(|lane| (0..keys).map(move |n| (lane, n))) {
                    // The centre, then both signs of each entry from the last down (c/walk/scan.h).
                    let index = if n == 0 { 0 } else { group - (n - 1) / 2 };
                    let at = lane * keys + if n % 2 == 1 { group + index } else { group - index };
                    let quad = |q: usize| {
                        let from = 4 * ((n * 4 + q) * lanes + lane);
                        &points[from..from + 4]
                    };
                    let got = |q: usize| -> Vec<u32> {
                        [quad(q), quad(q + 1)].concat().into_iter().rev().collect()
                    };
                    let (x, y) = expected[at];
                    assert_eq!(
                        (got(0), got(2)),
                        (x.to_vec(), y.to_vec()),
                        "point {n} of lane {lane} on {name}"
                    );
                }
            }
        }
    }
}

#[test]
fn hashes_of_random_coordinates_agree_with_other_crates() {
    let (group, forms) = (40, [Form::X, Form::Uncompressed, Form::Compressed, Form::Script, Form::Account]);
    let keys = 2 * group as usize + 1;
    let (shape, filter) = build(&Wanted { intervals: vec![(0, u64::MAX)], ..Wanted::default() }, 5);
    let part = ScanPart::Test { forms: Forms::of(&forms), filter: ScanTest::Top(shape), keep_y: true };
    let spec = Spec { program: Program::Scan(part), group, ..Spec::default() };
    for (name, device) in places() {
        let (runner, lanes) = match device.as_deref() {
            None => {
                let spec = Spec { block: 1, shared_inversion: false, ..spec };
                (Runner::Host(HostProgram::search(spec, include_str!("host/scan_test.c"))), 8)
            }
            Some(device) => {
                let spec = on_device(device, Spec { block: 64, ..spec });
                let program = OnDevice::new(device, &join(&spec).text, "scan_test", spec.block);
                (Runner::Device(RefCell::new(program)), 128)
            }
        };
        let mut random = Random::new(&format!("hashes, {name}"));
        let capacity = (lanes * keys * forms.len()) as u32;
        for _ in 0..count(4_000, 1_000_000).div_ceil((lanes * keys) as u64) {
            // No point of the curve has these coordinates: hashes do not mind.
            let coordinates: Vec<Pair> =
                (0..lanes * keys).map(|_| (random.number(), random.number())).collect();
            let mut points = vec![0; 16 * lanes * keys];
            for (at, (x, y)) in coordinates.iter().enumerate() {
                let (lane, n) = (at % lanes, at / lanes);
                let words = words_of(x).into_iter().rev().chain(words_of(y).into_iter().rev());
                words
                    .enumerate()
                    .for_each(|(i, word)| points[4 * ((n * 4 + i / 4) * lanes + lane) + i % 4] = word);
            }
            let hits = match &runner {
                Runner::Host(host) => {
                    let head = [lanes as u32, 1, filter.len() as u32, capacity, 1, 0, 0, 0];
                    host.run(&[&head[..], &filter, &points].concat())
                }
                Runner::Device(device) => {
                    let mut header = vec![0; scan::hits_words(capacity)];
                    header[HITS_CAPACITY] = capacity;
                    let given = [
                        Given::Words(&points, false),
                        Given::Words(&filter, false),
                        Given::Words(&header, true),
                        Given::Number(lanes as u32),
                        Given::Number(0),
                        Given::Number(1),
                    ];
                    device.borrow_mut().run(lanes as u32, &given).remove(0)
                }
            };
            assert_eq!(hits[0], capacity, "{name}");
            let mut seen = vec![false; capacity as usize];
            for words in hits[abi::HITS_HEADER..].as_chunks::<{ scan::RECORD_WORDS }>().0 {
                let Some(ScanRecord::Passed(passed)) = ScanRecord::read(words) else {
                    panic!("{words:?} on {name}")
                };
                let n = match (passed.index, passed.minus) {
                    (0, _) => 0,
                    (index, minus) => 2 * (group - index) as usize + 1 + usize::from(minus),
                };
                let at = n * lanes + passed.lane as usize;
                let (x, y) = &coordinates[at];
                let compressed = || hash160(&[&[2 + (y[31] & 1)], &x[..]].concat());
                let digest = match passed.form {
                    Form::X => x.to_vec(),
                    Form::Uncompressed => hash160(&[&[4], &x[..], y].concat()).to_vec(),
                    Form::Compressed => compressed().to_vec(),
                    Form::Script => hash160(&[&[0, 20], &compressed()[..]].concat()).to_vec(),
                    Form::Account => address(&[*x, *y].concat()).to_vec(),
                    Form::Taproot => unreachable!("not asked for"),
                };
                assert_eq!(
                    passed.digest,
                    crate::support::words(&digest),
                    "{passed:?} of {x:02x?} {y:02x?} on {name}"
                );
                let form = forms.iter().position(|form| *form == passed.form).expect("asked for");
                assert!(
                    !std::mem::replace(&mut seen[at * forms.len() + form], true),
                    "{passed:?} twice on {name}"
                );
            }
        }
    }
}
