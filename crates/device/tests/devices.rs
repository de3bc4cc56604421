//! What every queue must do, on real devices: PoCL (`pocl_...`) and all GPUs there are (`gpu_...`).
//!
//! The cases know no interface but the public one. A test without its device says so and passes.

use std::fs;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use warpsmith_device::{Api, Arg, Cache, Device, Error, Kernel, Options, Queue, Source, Vendor, survey};

const TEXT: &str = r#"
#ifdef __OPENCL_VERSION__
#define KERNEL __kernel
#define GLOBAL __global
#define ID get_global_id(0)
typedef uint u32;
typedef ulong u64;
#else
#define KERNEL extern "C" __global__
#define GLOBAL
#define ID (blockIdx.x * blockDim.x + threadIdx.x)
typedef unsigned int u32;
typedef unsigned long long u64;
__constant__ u32 table[4];
KERNEL void look(u32 *out) { out[ID] = table[ID & 3]; }
#endif
/* The 64-bit scalar after a 32-bit one: packing must align it. */
KERNEL void blend(GLOBAL u64 *out, GLOBAL const u32 *in, u32 factor, u64 offset, u32 last) {
    u32 i = ID;
    out[i] = (u64)in[i] * factor + offset + last;
}
KERNEL void add(GLOBAL u32 *words, u32 x) { words[ID] += x; }
KERNEL void slow(GLOBAL u32 *words, u32 rounds) {
    u32 x = words[ID];
    for (u32 i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;
    words[ID] = x;
}
"#;

fn source(text: &str) -> Source<'_> {
    Source { text, key: "test", ptx: None }
}

fn uncached() -> Options {
    Options { cache: Cache::Off, ..Options::default() }
}

fn open(device: &dyn Device) -> Box<dyn Queue> {
    device.can_build().unwrap();
    device.queue().unwrap()
}

fn kernel(queue: &mut dyn Queue, name: &str) -> Kernel {
    let program = queue.build(&source(TEXT), &uncached()).unwrap();
    queue.kernel(program, name).unwrap()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|chunk| u32::from_ne_bytes(chunk.try_into().unwrap())).collect()
}

fn arguments_of_each_type_reach_the_kernel(device: &dyn Device) {
    let mut queue = open(device);
    let blend = kernel(&mut *queue, "blend");
    let n = 256u32;
    let (input, output) = (queue.alloc(u64::from(n) * 4).unwrap(), queue.alloc(u64::from(n) * 8).unwrap());
    queue.write(input, 0, &bytes(&(0..n).map(|i| u32::MAX - i).collect::<Vec<_>>())).unwrap();
    let args = [
        Arg::Buffer(output),
        Arg::Buffer(input),
        Arg::U32(0xFFFF_FFF1),
        Arg::U64(0x0123_4567_89AB_CDEF),
        Arg::U32(77),
    ];
    queue.launch(blend, n / 64, 64, &args).unwrap();
    let mut out = vec![0; n as usize * 8];
    queue.read(output, 0, &mut out).unwrap();
    for (i, chunk) in out.chunks_exact(8).enumerate() {
        let want = u64::from(u32::MAX - i as u32)
            .wrapping_mul(0xFFFF_FFF1)
            .wrapping_add(0x0123_4567_89AB_CDEF)
            .wrapping_add(77);
        assert_eq!(u64::from_ne_bytes(chunk.try_into().unwrap()), want, "lane {i}");
    }
    assert!(queue.resources(blend).max_threads.is_some_and(|threads| threads >= 64));
    if device.info().api == Api::Cuda {
        assert!(queue.resources(blend).registers.is_some());
        assert!(queue.occupancy(blend, 64).is_some_and(|blocks| blocks > 0));
    }
}

fn ranges_are_written_zeroed_and_read(device: &dyn Device) {
    let mut queue = open(device);
    let buffer = queue.alloc(100).unwrap();
    queue.write(buffer, 0, &[1; 100]).unwrap();
    queue.write(buffer, 10, &[2; 5]).unwrap();
    queue.zero(buffer, 13, 3).unwrap();
    queue.zero(buffer, 32, 16).unwrap();
    queue.zero(buffer, 100, 0).unwrap();
    let mut want = [1u8; 100];
    want[10..13].fill(2);
    want[13..16].fill(0);
    want[32..48].fill(0);
    let mut out = [9; 100];
    queue.read(buffer, 0, &mut out).unwrap();
    assert_eq!(out, want);
    queue.read(buffer, 9, &mut out[..8]).unwrap();
    assert_eq!(out[..8], want[9..17]);
    for (offset, count) in [(0, 101), (100, 1), (u64::MAX, 2)] {
        let refused = queue.zero(buffer, offset, count).unwrap_err();
        assert!(matches!(refused, Error::Usage { .. }), "{refused}");
        assert!(queue.read_later(buffer, offset, count).is_err());
        assert!(queue.read(buffer, offset, &mut vec![0; count as usize]).is_err());
        assert!(queue.write(buffer, offset, &vec![0; count as usize]).is_err());
    }
}

fn large_copies_come_back_whole(device: &dyn Device) {
    let mut queue = open(device);
    let data: Vec<u8> = (0..(9 << 20) + 3u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let buffer = queue.alloc(data.len() as u64 + 5).unwrap();
    queue.write(buffer, 5, &data).unwrap();
    let mut out = vec![0; data.len()];
    queue.read(buffer, 5, &mut out).unwrap();
    assert!(out == data);
}

fn reads_in_flight_keep_their_place_in_the_order(device: &dyn Device) {
    let mut queue = open(device);
    let add = kernel(&mut *queue, "add");
    let buffer = queue.alloc(256).unwrap();
    queue.zero(buffer, 0, 256).unwrap();
    let step = |queue: &mut dyn Queue, x| {
        queue.launch(add, 1, 64, &[Arg::Buffer(buffer), Arg::U32(x)]).unwrap();
        queue.read_later(buffer, 0, 256).unwrap()
    };
    let (first, second) = (step(&mut *queue, 1), step(&mut *queue, 10));
    let third = step(&mut *queue, 100);
    let mut out = vec![7; 3];
    for (later, want) in [(second, 11), (first, 1), (third, 111)] {
        queue.finish_later(later, &mut out).unwrap();
        assert_eq!(words(&out), [want; 64]);
    }
    // Unfinished reads and writes at the end are no harm.
    let _ = queue.read_later(buffer, 0, 256).unwrap();
}

fn many_small_writes_keep_their_order(device: &dyn Device) {
    let mut queue = open(device);
    let add = kernel(&mut *queue, "add");
    let buffer = queue.alloc(256).unwrap();
    let mut laters = Vec::new();
    for i in 0..100 {
        // The data dies at once; what the kernel sees must be a copy.
        queue.write(buffer, 0, &bytes(&[i; 64])).unwrap();
        queue.launch(add, 1, 64, &[Arg::Buffer(buffer), Arg::U32(1000)]).unwrap();
        laters.push(queue.read_later(buffer, 0, 256).unwrap());
    }
    let mut out = Vec::new();
    for (i, later) in laters.into_iter().enumerate() {
        queue.finish_later(later, &mut out).unwrap();
        assert_eq!(words(&out), [1000 + i as u32; 64]);
    }
}

/// Each part of an input that travels beside the work comes after the launch that read the part before it, and before the one that
/// reads it; and it does not wait for what is behind that launch.
fn copies_beside_are_in_order_where_that_is_asked(device: &dyn Device) {
    let mut queue = open(device);
    let (blend, slow) = (kernel(&mut *queue, "blend"), kernel(&mut *queue, "slow"));
    let [input, output, other] = [256, 512, 256].map(|size| queue.alloc(size).unwrap());
    queue.zero(other, 0, 256).unwrap();
    let mut laters = Vec::new();
    for i in 0..40 {
        queue.write_beside(input, 0, &bytes(&[i; 64])).unwrap();
        queue.launches_follow().unwrap();
        let args = [Arg::Buffer(output), Arg::Buffer(input), Arg::U32(3), Arg::U64(5), Arg::U32(0)];
        queue.launch(blend, 1, 64, &args).unwrap();
        queue.copies_follow().unwrap();
        laters.push(queue.read_later(output, 0, 512).unwrap());
        queue.launch(slow, 1, 64, &[Arg::Buffer(other), Arg::U32(20_000)]).unwrap();
    }
    let mut out = Vec::new();
    for (i, later) in laters.into_iter().enumerate() {
        queue.finish_later(later, &mut out).unwrap();
        let want = (3 * i as u64 + 5).to_ne_bytes();
        assert!(out.chunks_exact(8).all(|value| value == want), "part {i}");
    }
    for (offset, count) in [(0, 257), (256, 1), (u64::MAX, 2)] {
        assert!(queue.write_beside(input, offset, &vec![0; count]).is_err());
    }
    // What is under way at the end is no harm.
    queue.write_beside(input, 0, &[7; 256]).unwrap();
}

fn marks_tell_the_time_and_grow_old(device: &dyn Device) {
    let mut queue = open(device);
    let slow = kernel(&mut *queue, "slow");
    let buffer = queue.alloc(64 * 4).unwrap();
    queue.zero(buffer, 0, 256).unwrap();
    let launch = |queue: &mut dyn Queue, rounds| {
        queue.launch(slow, 1, 64, &[Arg::Buffer(buffer), Arg::U32(rounds)]).unwrap();
    };
    launch(&mut *queue, 1);
    queue.finish().unwrap();
    let start = Instant::now();
    let from = queue.mark().unwrap();
    launch(&mut *queue, 3_000_000);
    let to = queue.mark().unwrap();
    queue.wait(to).unwrap();
    let host = start.elapsed().as_secs_f32() * 1e3;
    let device_time = queue.milliseconds(from, to).unwrap();
    assert!(device_time > 0.5 && device_time <= host + 1.0, "{device_time} ms of {host}");
    let first = queue.mark().unwrap();
    for _ in 0..63 {
        let _ = queue.mark().unwrap();
    }
    queue.wait(first).unwrap();
    let _ = queue.mark().unwrap();
    assert!(matches!(queue.wait(first), Err(Error::Usage { .. })));
}

fn waiting_does_not_burn_the_processor(device: &dyn Device) {
    // On a processor posing as a device, work and waiting cannot be told apart.
    if !device.info().is_gpu {
        return;
    }
    let mut queue = open(device);
    let slow = kernel(&mut *queue, "slow");
    let buffer = queue.alloc(256).unwrap();
    queue.launch(slow, 1, 64, &[Arg::Buffer(buffer), Arg::U32(200_000_000)]).unwrap();
    let later = queue.read_later(buffer, 0, 256).unwrap();
    let (start, cpu) = (Instant::now(), cpu_time());
    queue.finish_later(later, &mut Vec::new()).unwrap();
    let (wall, cpu) = (start.elapsed(), cpu_time() - cpu);
    eprintln!("{}: waited {wall:?}, used {cpu:?} of the processor", device.info().id);
    assert!(wall > Duration::from_millis(100) && cpu < wall / 4, "{wall:?} {cpu:?}");
}

/// This thread's processor time so far, in ticks of 10 ms.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields: Vec<u64> =
        stat.rsplit(')').next().unwrap().split_whitespace().filter_map(|f| f.parse().ok()).collect();
    // After the state letter: utime and stime are the 11th and 12th numbers.
    Duration::from_millis(10 * (fields[10] + fields[11]))
}

fn a_failing_compile_shows_the_whole_log(device: &dyn Device) {
    let mut queue = open(device);
    let text = format!(
        "{TEXT}\n#line 41 \"walk.h\"\nKERNEL void bad(GLOBAL u32 *p) {{ p[0] = undeclared_thing; }}\n"
    );
    let error = queue.build(&source(&text), &uncached()).unwrap_err();
    assert!(matches!(error, Error::Compile { .. }), "{error}");
    let shown = error.to_string();
    assert!(shown.contains("undeclared_thing"), "{shown}");
    // NVIDIA's OpenCL counts the lines of the whole text, whatever that says of itself.
    let info = device.info();
    if info.api != Api::OpenCl || info.vendor != Vendor::Nvidia {
        assert!(shown.contains("walk.h") && shown.contains("41"), "{shown}");
    }
}

fn options_reach_the_compiler(device: &dyn Device) {
    let mut queue = open(device);
    let text = format!("{TEXT}\n#ifndef WANTED\n#error not wanted\n#endif\n");
    assert!(queue.build(&source(&text), &uncached()).is_err());
    let options = Options { extra: vec!["-DWANTED=1".to_owned()], ..uncached() };
    queue.build(&source(&text), &options).unwrap();
}

fn an_unknown_kernel_is_named(device: &dyn Device) {
    let mut queue = open(device);
    let program = queue.build(&source(TEXT), &uncached()).unwrap();
    for name in ["no_such_kernel", "with\0zero"] {
        let error = queue.kernel(program, name).unwrap_err();
        assert!(matches!(error, Error::Missing { what: "kernel", .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

fn too_much_memory_is_refused_with_numbers(device: &dyn Device) {
    let mut queue = open(device);
    for asked in [1 << 50, u64::MAX] {
        match queue.alloc(asked) {
            Err(Error::Memory { asked: said, free: Some(_), .. }) => assert_eq!(said, asked),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(queue.alloc(0), Err(Error::Usage { .. })));
    queue.alloc(64).unwrap();
}

fn the_cache_is_used_and_heals(device: &dyn Device) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { cache: Cache::At(dir.path().join("kernels")), ..Options::default() };
    let build = |text: &str, options: &Options| {
        let mut queue = open(device);
        let program = queue.build(&source(text), options).unwrap();
        let add = queue.kernel(program, "add").unwrap();
        let buffer = queue.alloc(256).unwrap();
        queue.zero(buffer, 0, 256).unwrap();
        queue.launch(add, 1, 64, &[Arg::Buffer(buffer), Arg::U32(5)]).unwrap();
        let mut out = [0; 256];
        queue.read(buffer, 0, &mut out).unwrap();
        assert_eq!(words(&out), [5; 64]);
        queue.built(program).unwrap().cached
    };
    assert!(!build(TEXT, &options));
    assert!(build(TEXT, &options));
    assert!(!build(&format!("{TEXT}\n/* other */\n"), &options));
    assert!(!build(TEXT, &Options { extra: vec!["-DX=1".to_owned()], ..options.clone() }));
    assert!(!build(TEXT, &uncached()));
    for entry in fs::read_dir(dir.path().join("kernels")).unwrap() {
        let path = entry.unwrap().path();
        let mut file = fs::read(&path).unwrap();
        let middle = file.len() / 2;
        file[middle] ^= 1;
        fs::write(&path, file).unwrap();
    }
    assert!(!build(TEXT, &options), "a damaged file is not believed");
    assert!(build(TEXT, &options), "and is written anew");
}

fn foreign_and_freed_handles_are_refused(device: &dyn Device) {
    let (mut one, mut two) = (open(device), open(device));
    let add = kernel(&mut *one, "add");
    let (mine, theirs) = (one.alloc(256).unwrap(), two.alloc(256).unwrap());
    let launch =
        |queue: &mut dyn Queue, buffer| queue.launch(add, 1, 64, &[Arg::Buffer(buffer), Arg::U32(1)]);
    for refused in [launch(&mut *one, theirs), launch(&mut *two, theirs), one.write(theirs, 0, &[0])] {
        let error = refused.unwrap_err();
        assert!(error.to_string().contains("belongs to another queue"), "{error}");
    }
    launch(&mut *one, mine).unwrap();
    one.free(mine).unwrap();
    for refused in [launch(&mut *one, mine), one.free(mine), one.zero(mine, 0, 1)] {
        assert!(refused.unwrap_err().to_string().contains("was given back"));
    }
    let buffer = one.alloc(256).unwrap();
    assert!(matches!(one.launch(add, 0, 64, &[Arg::Buffer(buffer), Arg::U32(1)]), Err(Error::Usage { .. })));
    let error = one.launch(add, 1, 1 << 30, &[Arg::Buffer(buffer), Arg::U32(1)]).unwrap_err();
    assert!(matches!(error, Error::Launch { .. }), "{error}");
    launch(&mut *one, buffer).unwrap();
    one.finish().unwrap();
}

fn a_wrong_count_of_arguments_is_refused(device: &dyn Device) {
    // OpenCL tells how many a kernel has; CUDA does not. Wrong sizes are for the driver to see, and not all do.
    if device.info().api != Api::OpenCl {
        return;
    }
    let mut queue = open(device);
    let add = kernel(&mut *queue, "add");
    let buffer = queue.alloc(256).unwrap();
    for args in [&[Arg::Buffer(buffer)][..], &[Arg::Buffer(buffer), Arg::U32(1), Arg::U32(1)], &[]] {
        let error = queue.launch(add, 1, 64, args).unwrap_err();
        assert!(matches!(error, Error::Launch { .. }), "{error}");
    }
}

fn a_queue_moves_between_threads(device: &dyn Device) {
    let mut queue = open(device);
    let add = kernel(&mut *queue, "add");
    let buffer = queue.alloc(256).unwrap();
    queue.zero(buffer, 0, 256).unwrap();
    for _ in 0..3 {
        queue = std::thread::spawn(move || {
            queue.launch(add, 1, 64, &[Arg::Buffer(buffer), Arg::U32(2)]).unwrap();
            queue
        })
        .join()
        .unwrap();
    }
    let mut out = [0; 256];
    queue.read(buffer, 0, &mut out).unwrap();
    assert_eq!(words(&out), [6; 64]);
    std::thread::spawn(move || drop(queue)).join().unwrap();
}

fn symbols_are_set_on_cuda_and_refused_on_opencl(device: &dyn Device) {
    let mut queue = open(device);
    let program = queue.build(&source(TEXT), &uncached()).unwrap();
    let set = queue.symbol(program, "table", &bytes(&[4, 3, 2, 1]));
    if device.info().api == Api::OpenCl {
        return assert!(set.unwrap_err().to_string().contains("pass 'table' as a buffer"));
    }
    set.unwrap();
    assert!(matches!(queue.symbol(program, "table", &[0; 17]), Err(Error::Usage { .. })));
    assert!(matches!(queue.symbol(program, "no_table", &[0]), Err(Error::Missing { what: "symbol", .. })));
    let look = queue.kernel(program, "look").unwrap();
    let buffer = queue.alloc(256).unwrap();
    queue.launch(look, 1, 64, &[Arg::Buffer(buffer)]).unwrap();
    let mut out = [0; 256];
    queue.read(buffer, 0, &mut out).unwrap();
    assert_eq!(words(&out)[..5], [4, 3, 2, 1, 4]);
}

/// The devices a kind of test is for. What there is is told once, so that a log shows what was tested.
fn devices(gpu: bool) -> Vec<Arc<dyn Device>> {
    static TELL: Once = Once::new();
    let survey = survey();
    TELL.call_once(|| {
        survey.devices.iter().for_each(|device| eprintln!("found {:?}", device.info()));
        survey.missing.iter().for_each(|(what, why)| eprintln!("missing {what}: {why}"));
    });
    let wanted = |device: &Arc<dyn Device>| {
        let info = device.info();
        if gpu { info.is_gpu } else { info.vendor == Vendor::Pocl }
    };
    let found: Vec<_> = survey.devices.into_iter().filter(wanted).collect();
    if found.is_empty() {
        eprintln!("SKIPPED: no {} here", if gpu { "GPU" } else { "PoCL (apt install pocl-opencl-icd)" });
    }
    found
}

macro_rules! cases {
    ($($case:ident)*) => {
        mod pocl { $(#[test] fn $case() { super::devices(false).iter().for_each(|d| super::$case(&**d)); })* }
        mod gpu { $(#[test] fn $case() { super::devices(true).iter().for_each(|d| super::$case(&**d)); })* }
    };
}

cases! {
    arguments_of_each_type_reach_the_kernel
    ranges_are_written_zeroed_and_read
    large_copies_come_back_whole
    reads_in_flight_keep_their_place_in_the_order
    many_small_writes_keep_their_order
    copies_beside_are_in_order_where_that_is_asked
    marks_tell_the_time_and_grow_old
    waiting_does_not_burn_the_processor
    a_failing_compile_shows_the_whole_log
    options_reach_the_compiler
    an_unknown_kernel_is_named
    too_much_memory_is_refused_with_numbers
    the_cache_is_used_and_heals
    foreign_and_freed_handles_are_refused
    a_wrong_count_of_arguments_is_refused
    a_queue_moves_between_threads
    symbols_are_set_on_cuda_and_refused_on_opencl
}

#[test]
fn pocl_is_listed_as_a_processor() {
    for device in devices(false) {
        let info = device.info();
        assert!(!info.is_gpu && info.api == Api::OpenCl && info.id.starts_with("opencl:"));
        assert!(info.units > 0 && info.memory > 0 && info.constant_memory > 0 && info.shared_memory > 0);
        assert!(!info.name.is_empty() && !info.driver.is_empty() && !info.arch.is_empty());
    }
}

#[test]
fn a_card_seen_twice_names_its_twin() {
    let infos: Vec<_> = survey().devices.iter().map(|device| device.info().clone()).collect();
    for (i, info) in infos.iter().enumerate() {
        let twin =
            infos[..i].iter().find(|other| other.identity.is_some() && other.identity == info.identity);
        assert_eq!(info.same_as, twin.map(|twin| twin.id.clone()));
    }
}

#[test]
fn an_interface_without_a_device_has_a_reason() {
    let survey = survey();
    for api in [Api::Cuda, Api::OpenCl] {
        let found = survey.devices.iter().any(|device| device.info().api == api);
        let reason = survey.missing.iter().find(|entry| entry.0 == api.to_string());
        assert!(
            found || reason.is_some_and(|(_, why)| why.contains(" install") || why.contains("; ")),
            "{api}"
        );
    }
}
