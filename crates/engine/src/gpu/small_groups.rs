//! The kernels as a device runs them, in groups of 13 and 199 elements: every centre with every entry, sign, orbit and image,
//! against a table of the group. What shapes there are, `crates/kernel/tests/small_groups.rs` says, which has the same kernels
//! compiled for the host.

#[path = "../../../curve/tests/common/small.rs"]
mod small;

use std::collections::HashSet;

use num_bigint::BigUint;
use small::Small;
use warpsmith_device::Arg;
use warpsmith_kernel::abi::Record;
use warpsmith_kernel::scan::{self, RECORD_WORDS, ScanPart};
use warpsmith_kernel::{Program, XTest, points};

use super::tests::pocl;
use super::*;

const CAPACITY: u32 = 1 << 17;

fn fe(number: &BigUint) -> Fe {
    let mut bytes = [0; 32];
    let digits = number.to_bytes_be();
    bytes[32 - digits.len()..].copy_from_slice(&digits);
    Fe::from_be_bytes(&bytes)
}

fn point(group: &Small, k: i64) -> Affine {
    let (x, y) = group.point(k).expect("not infinity");
    Affine { x: fe(x), y: fe(y) }
}

/// A program on the device, and a walk of all elements but infinity.
struct Setup<'b> {
    group: &'b Small,
    queue: Box<dyn Queue>,
    spec: Spec,
    kernel: Kernel,
    starts: Vec<i64>,
    centres: Buffer,
    hits: Buffer,
    /// Of so many words.
    record: usize,
}

impl<'b> Setup<'b> {
    fn new(gpu: &Gpu, group: &'b Small, spec: Spec, record: usize) -> Self {
        let mut queue = gpu.device.queue().expect("a queue");
        let (_, kernel) =
            build(queue.as_mut(), gpu.device.info(), &spec, spec.program.entry()).expect("built");
        let lanes = (group.order as u32 - 1).next_multiple_of(spec.block);
        let starts: Vec<i64> = (0..i64::from(lanes)).map(|lane| lane % (group.order - 1) + 1).collect();
        let points: Vec<Affine> = starts.iter().map(|k| point(group, *k)).collect();
        let centres = upload(queue.as_mut(), &centre_words(&points)).expect("uploaded");
        let mut hits = vec![0; abi::HITS_HEADER + record * CAPACITY as usize];
        hits[1] = CAPACITY;
        let hits = upload(queue.as_mut(), &hits).expect("uploaded");
        Setup { group, queue, spec, kernel, starts, centres, hits, record }
    }

    fn lanes(&self) -> u32 {
        self.starts.len() as u32
    }

    /// A table for this group: what `words` makes of the step point and the entries.
    fn table(&mut self, words: fn(Affine, &[Affine]) -> Vec<u32>) -> Buffer {
        let entry = |k: u32| point(self.group, k.into());
        let entries: Vec<Affine> = (1..=self.spec.group).map(entry).collect();
        let words = words(entry(2 * self.spec.group + 1), &entries);
        upload(self.queue.as_mut(), &words).expect("uploaded")
    }

    fn launch(&mut self, args: &[Arg]) {
        let (lanes, block) = (self.lanes(), self.spec.block);
        self.queue.launch(self.kernel, lanes / block, block, args).expect("launched");
    }

    fn read(&mut self, buffer: Buffer, words: usize) -> Vec<u32> {
        let mut bytes = vec![0; 4 * words];
        self.queue.read(buffer, 0, &mut bytes).expect("read");
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    fn records(&mut self) -> Vec<Vec<u32>> {
        let hits = self.read(self.hits, abi::HITS_HEADER + self.record * CAPACITY as usize);
        assert!(hits[0] <= CAPACITY);
        let records = hits[abi::HITS_HEADER..].chunks_exact(self.record).take(hits[0] as usize);
        records.map(<[u32]>::to_vec).collect()
    }

    /// Whether each lane is where it must be after so many steps: where it met its table, if it did.
    fn assert_ends(&mut self, steps: u32, images: bool) {
        let ends = self.read(self.centres, abi::centres_words(self.lanes()));
        let half = self.spec.group;
        let must = self.starts.iter().map(|start| {
            let (walked, _) = self.group.fare(*start, half, steps, images);
            point(self.group, start + walked.len() as i64 * (2 * i64::from(half) + 1))
        });
        assert_eq!(ends, centre_words(&must.collect::<Vec<_>>()));
    }
}

#[test]
fn the_orbit_walk_is_right_at_every_element() {
    let Some(gpu) = pocl() else { return };
    for (group, half, steps) in [(&Small::both()[0], 1, 6), (&Small::both()[1], 8, 3)] {
        let spec = Spec { group: half, filter: XTest::Range { count: 1 }, ..gpu.shape.spec };
        let mut bench = Setup::new(&gpu, group, spec, abi::HIT_WORDS);
        let lanes = bench.lanes();
        let table = bench.table(orbit::table_of);
        let filter = upload(bench.queue.as_mut(), &abi::range_words(&[(0, u64::MAX)])).expect("uploaded");
        let scratch = bench.queue.alloc(4 * abi::scratch_words(half, lanes) as u64).expect("memory");
        let buffers = [bench.centres, scratch, table, filter, bench.hits].map(Arg::Buffer);
        bench.launch(&[&buffers[..], &[Arg::U32(lanes), Arg::U32(steps)]].concat());
        let (mut seen, mut faults) = (HashSet::new(), HashSet::new());
        for record in bench.records() {
            match Record::read(record.try_into().expect("a record")) {
                Record::Fault { lane, step } => assert!(faults.insert((lane, step))),
                Record::Hit(hit) => {
                    let entry = group.image(hit.index.into(), hit.orbit);
                    let centre =
                        bench.starts[hit.lane as usize] + i64::from(hit.step) * (2 * i64::from(half) + 1);
                    let k = group.image(if hit.minus { centre - entry } else { centre + entry }, hit.image);
                    let error = limbs(point(group, k).x)[7].wrapping_sub(hit.top) as i32;
                    let bound = -(abi::TOP.below as i32)..=abi::TOP.above as i32;
                    assert!(bound.contains(&error), "{hit:?} around {centre} is not {k}");
                    assert!(seen.insert(abi::Hit { top: 0, ..hit }), "{hit:?} twice");
                }
            }
        }
        let fares = bench.starts.iter().map(|start| group.fare(*start, half, steps, true));
        let (mut keys, mut met) = (0, HashSet::new());
        for (lane, (walked, fault)) in (0..).zip(fares) {
            keys += walked.len() as u64 * abi::keys_per_step(half);
            met.extend(fault.map(|step| (lane, step)));
        }
        assert!(keys > 0 && !met.is_empty());
        assert_eq!((seen.len() as u64, faults), (keys, met));
        bench.assert_ends(steps, true);
    }
}

#[test]
fn the_walk_of_a_scan_is_right_at_every_element() {
    let Some(gpu) = pocl() else { return };
    let (half, steps) = (5, 3);
    let spec =
        Spec { group: half, program: Program::Scan(ScanPart::Walk { keep_y: true }), ..gpu.shape.spec };
    for group in &Small::both() {
        let mut bench = Setup::new(&gpu, group, spec, RECORD_WORDS);
        let lanes = bench.lanes();
        let table = bench.table(point_table);
        let scratch = bench.queue.alloc(4 * points::scratch_words(half, lanes) as u64).expect("memory");
        let bytes = u64::from(lanes) * scan::points_bytes(half, true);
        let written = bench.queue.alloc(bytes).expect("memory");
        let buffers = [bench.centres, scratch, table, written, bench.hits].map(Arg::Buffer);
        let (mut right, mut met) = (0, HashSet::new());
        for step in 0..steps {
            bench.launch(&[&buffers[..], &[Arg::U32(lanes), Arg::U32(step)]].concat());
            let words = bench.read(written, bytes as usize / 4);
            for (lane, start) in bench.starts.iter().enumerate() {
                let (walked, _) = group.fare(*start, half, step + 1, false);
                let Some(centre) = walked.get(step as usize) else {
                    met.insert((lane as u32, step));
                    continue;
                };
                for at in 0..2 * i64::from(half) + 1 {
                    // The centre, then both signs of each entry from the last down.
                    let entry = i64::from(half) - (at - 1) / 2;
                    let k = if at == 0 { *centre } else { centre + if at % 2 == 1 { entry } else { -entry } };
                    let word =
                        |w: usize| words[((at as usize * 4 + w / 4) * lanes as usize + lane) * 4 + w % 4];
                    let Affine { x, y } = point(group, k);
                    let must = limbs(x).into_iter().rev().chain(limbs(y).into_iter().rev());
                    assert!(must.eq((0..16).map(word)), "lane {lane}, step {step}, point {at} is not {k}");
                    right += 1;
                }
            }
        }
        let faults = bench.records().into_iter().map(|record| {
            match scan::ScanRecord::read(&record.try_into().expect("a record")) {
                Some(scan::ScanRecord::Fault { lane, step }) => (lane, step),
                other => panic!("{other:?}"),
            }
        });
        assert_eq!(faults.collect::<HashSet<_>>(), met);
        assert!(right > 0 && !met.is_empty());
        bench.assert_ends(steps, false);
    }
}
