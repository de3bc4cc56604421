//! Hints by devices against the reference, byte for byte. PoCL is a device of every machine that has it; cards take part
//! where there are any.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warpsmith_device as api;
use warpsmith_device::{Device, Queue, survey};
use warpsmith_hash::Lanes;
use warpsmith_rms24::device::{self, OnDevice, Resident, Tuning};
use warpsmith_rms24::hints::make::{Make, Order, Processor};
use warpsmith_rms24::hints::measure::pseudorandom;
use warpsmith_rms24::hints::{Hints, reference};
use warpsmith_rms24::{Choice, Error, Key, Params, Prf, Result, Version};

/// Every device, and the right to use them: one test at a time, since PoCL 3.1 loses count of its kernels when several threads
/// build and drop them.
struct Devices {
    found: Vec<Arc<dyn Device>>,
    _alone: MutexGuard<'static, ()>,
}

fn devices() -> Devices {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let survey = survey();
    let usable = |device: &Arc<dyn Device>| device.can_build().is_ok();
    let found: Vec<_> = survey.devices.into_iter().filter(usable).collect();
    if found.is_empty() {
        println!("SKIPPED: this machine has no device: {:?}", survey.missing);
    }
    Devices { found, _alone: alone }
}

fn host() -> Processor {
    Processor { lanes: Lanes::detect(), threads: 2 }
}

fn params(entries: u64, entry_size: u32, lambda: u32, block_size: Option<u32>) -> Params {
    Params::new(Choice { lambda, block_size, ..Choice::new(entries, entry_size) }).unwrap()
}

/// Hints that are wanted whatever happens.
fn order<'a>(params: &'a Params, key: &'a Key, regular: Range<u64>, backups: Range<u64>) -> Order<'a> {
    static NEVER: AtomicBool = AtomicBool::new(false);
    Order { params, key, regular, backups, stop: &NEVER }
}

/// Pushes a database in pieces.
fn pieces(database: &[u8], length: usize) -> impl FnOnce(Push<'_>) -> Result<()> {
    move |push| database.chunks(length).try_for_each(push)
}

/// What takes the pieces.
type Push<'a> = &'a mut dyn FnMut(&[u8]) -> Result<()>;

/// All hints of a shape, in windows of a few blocks and launches of one step; then some ids only.
fn check(p: &Params) {
    let database = pseudorandom(p.entries() as usize * p.entry_size());
    let reader = reference::Database::new(p, &database);
    for device in &devices().found {
        let key = Key::random().unwrap();
        let prf = Prf::new(&key, p, Lanes::detect());
        let (m, q) = (p.regular(), p.backups());
        let small = Tuning { window: 8 * 64 * p.block_bytes() as u64, blocks: 4 };
        let far = (1 << 36) + 16;
        for (tuning, piece, regular, backups) in
            [(small, 1000, 0..m, m..m + q), (Tuning::default(), usize::MAX, 16..m.min(48), far..far + 32)]
        {
            let order = order(p, &key, regular.clone(), backups.clone());
            let made = device::hints(device.as_ref(), host(), &tuning, &order, pieces(&database, piece));
            let made: Hints = made.unwrap();
            for (id, &cutoff) in regular.chain(backups).zip(&made.skeleton.cutoffs) {
                assert_eq!(cutoff, reference::cutoff(&prf, p.blocks(), id), "{p:?}, id {id}");
            }
            let expected = reference::hints(&prf, &reader, &made.skeleton);
            assert!(made == expected, "{}, {p:?}", device.info().id);
        }
    }
}

#[test]
fn one_entry_two_blocks_and_odd_sizes() {
    for p in [
        params(1, 8, 80, None),
        params(1, 40, 3, Some(5)),
        params(2, 40, 16, Some(1)),
        params(2, 41, 5, None),
        params(3, 40, 4, Some(1)),
        params(9, 13, 9, Some(4)),
        params(100, 40, 2, Some(7)),
        params(1000, 40, 2, None),
        params(1023, 33, 1, Some(32)),
        params(1025, 64, 1, Some(32)),
        params(4000, 100, 1, Some(100)),
        params(130, 4096, 1, Some(16)),
    ] {
        check(&p);
    }
}

/// More than 65,536 blocks: several blocks share the upper half of nearly every order, also of the cutoff.
#[test]
fn many_blocks_with_many_ties() {
    for block_size in [1, 3] {
        let p = params(70_001 * u64::from(block_size), 8, 16 / block_size, Some(block_size));
        check(&p.with_backups(16).unwrap());
    }
}

#[test]
fn large_blocks() {
    for (block_size, entry_size) in [(4096, 40), (50_000, 40)] {
        let p = params(5 * u64::from(block_size) - 7, entry_size, 1, Some(block_size));
        let database = pseudorandom(p.entries() as usize * p.entry_size());
        let reader = reference::Database::new(&p, &database);
        for device in &devices().found {
            let key = Key::random().unwrap();
            let prf = Prf::new(&key, &p, Lanes::detect());
            // The hints of a few ids only: the reference is slow.
            let (regular, backups) = (32..64, 60_000..60_016);
            let stream = pieces(&database, 123_457);
            let tuning = Tuning::default();
            let made =
                device::hints(device.as_ref(), host(), &tuning, &order(&p, &key, regular, backups), stream)
                    .unwrap();
            assert!(made == reference::hints(&prf, &reader, &made.skeleton), "{}", device.info().id);
        }
    }
}

/// The whole offline phase, and the benchmark.
#[test]
fn offline_and_measure() {
    let p = params(1000, 40, 2, None);
    let database = pseudorandom(p.entries() as usize * p.entry_size());
    for device in &devices().found {
        let stream = pieces(&database, 7777);
        let (key, made) = device::offline(&p, device.as_ref(), Lanes::detect(), 2, stream).unwrap();
        let prf = Prf::new(&key, &p, Lanes::detect());
        let reader = reference::Database::new(&p, &database);
        assert!(made == reference::hints(&prf, &reader, &made.skeleton), "{}", device.info().id);
        let figures = device::measure(&p, device.as_ref(), Lanes::detect(), 2, 20).unwrap();
        assert_eq!((figures.verified, figures.pairs), (32, p.pairs()));
    }
}

#[test]
fn a_stream_of_the_wrong_length_is_refused() {
    let p = params(1000, 40, 2, None);
    let database = pseudorandom(40_001);
    for device in &devices().found {
        for length in [0, 39_999, 40_001] {
            let stream = pieces(&database[..length], 5000);
            let made = device::offline(&p, device.as_ref(), Lanes::detect(), 1, stream);
            assert!(matches!(made, Err(Error::Format { .. })), "{length} bytes");
        }
    }
}

/// A device that flips one bit of whatever it gives back from some length on.
struct Liar<'a>(&'a dyn Device, usize);

impl Device for Liar<'_> {
    fn info(&self) -> &api::Info {
        self.0.info()
    }
    fn queue(&self) -> api::Result<Box<dyn Queue>> {
        Ok(Box::new(Lying(self.0.queue()?, self.1)))
    }
    fn can_build(&self) -> api::Result<()> {
        self.0.can_build()
    }
}

struct Lying(Box<dyn Queue>, usize);

impl Lying {
    fn spoil(&self, bytes: &mut [u8]) {
        if bytes.len() >= self.1 {
            bytes.iter_mut().step_by(20).for_each(|byte| *byte ^= 1);
        }
    }
}

impl Queue for Lying {
    fn read(&mut self, buffer: api::Buffer, offset: u64, data: &mut [u8]) -> api::Result<()> {
        self.0.read(buffer, offset, data)?;
        self.spoil(data);
        Ok(())
    }
    fn finish_later(&mut self, later: api::Later, out: &mut Vec<u8>) -> api::Result<()> {
        self.0.finish_later(later, out)?;
        self.spoil(out);
        Ok(())
    }
    fn build(&mut self, source: &api::Source<'_>, options: &api::Options) -> api::Result<api::Program> {
        self.0.build(source, options)
    }
    fn built(&self, program: api::Program) -> api::Result<api::Build> {
        self.0.built(program)
    }
    fn kernel(&mut self, program: api::Program, name: &str) -> api::Result<api::Kernel> {
        self.0.kernel(program, name)
    }
    fn resources(&self, kernel: api::Kernel) -> api::Resources {
        self.0.resources(kernel)
    }
    fn occupancy(&self, kernel: api::Kernel, block: u32) -> Option<u32> {
        self.0.occupancy(kernel, block)
    }
    fn symbol(&mut self, program: api::Program, name: &str, data: &[u8]) -> api::Result<()> {
        self.0.symbol(program, name, data)
    }
    fn alloc(&mut self, bytes: u64) -> api::Result<api::Buffer> {
        self.0.alloc(bytes)
    }
    fn free(&mut self, buffer: api::Buffer) -> api::Result<()> {
        self.0.free(buffer)
    }
    fn write(&mut self, buffer: api::Buffer, offset: u64, data: &[u8]) -> api::Result<()> {
        self.0.write(buffer, offset, data)
    }
    fn write_beside(&mut self, buffer: api::Buffer, offset: u64, data: &[u8]) -> api::Result<()> {
        self.0.write_beside(buffer, offset, data)
    }
    fn launches_follow(&mut self) -> api::Result<()> {
        self.0.launches_follow()
    }
    fn copies_follow(&mut self) -> api::Result<()> {
        self.0.copies_follow()
    }
    fn zero(&mut self, buffer: api::Buffer, offset: u64, bytes: u64) -> api::Result<()> {
        self.0.zero(buffer, offset, bytes)
    }
    fn launch(&mut self, kernel: api::Kernel, groups: u32, block: u32, args: &[api::Arg]) -> api::Result<()> {
        self.0.launch(kernel, groups, block, args)
    }
    fn read_later(&mut self, buffer: api::Buffer, offset: u64, bytes: u64) -> api::Result<api::Later> {
        self.0.read_later(buffer, offset, bytes)
    }
    fn mark(&mut self) -> api::Result<api::Mark> {
        self.0.mark()
    }
    fn wait(&mut self, mark: api::Mark) -> api::Result<()> {
        self.0.wait(mark)
    }
    fn milliseconds(&mut self, from: api::Mark, to: api::Mark) -> api::Result<f32> {
        self.0.milliseconds(from, to)
    }
    fn finish(&mut self) -> api::Result<()> {
        self.0.finish()
    }
}

/// Wrong cutoffs and wrong parities are noticed by the sample, in hints and in the benchmark.
#[test]
fn a_device_that_errs_is_found_out() {
    let p = params(1000, 40, 2, None);
    let database = pseudorandom(p.entries() as usize * p.entry_size());
    for device in &devices().found {
        // Cutoffs are the first to be read; the parities of pairs and regular hints are the longest.
        for from in [4 * (p.regular() + p.backups()) as usize, 40 * p.backups() as usize] {
            let liar = Liar(device.as_ref(), from);
            let made = device::offline(&p, &liar, Lanes::detect(), 2, pieces(&database, 7777));
            assert!(matches!(made, Err(Error::Wrong { .. })), "{from}");
            let measured = device::measure(&p, &liar, Lanes::detect(), 2, 20);
            assert!(matches!(measured, Err(Error::Wrong { .. })), "{from}");
        }
        // The same device, believed where it says the truth.
        let honest = Liar(device.as_ref(), usize::MAX);
        assert!(device::offline(&p, &honest, Lanes::detect(), 2, pieces(&database, 7777)).is_ok());
    }
}

/// A database that is too large for the device is a plain error, and nothing is read from the stream.
#[test]
fn what_does_not_fit_is_an_error() {
    let p = params(1 << 34, 4096, 1, Some(1 << 28));
    for device in &devices().found {
        let none = |_: Push<'_>| -> Result<()> { panic!("the stream was opened") };
        let key = Key::random().unwrap();
        let tuning = Tuning::default();
        let made = device::hints(device.as_ref(), host(), &tuning, &order(&p, &key, 0..16, 0..0), none);
        assert!(matches!(made, Err(Error::Device(api::Error::Memory { .. }))));
    }
}

/// A database that stays: each version is loaded once, and hints are of the version that was asked for.
#[test]
fn a_database_that_stays_gives_every_client_its_hints() {
    for (p, window) in [
        (params(1000, 40, 3, Some(16)), 8 * 64 * 640),
        (params(777, 13, 2, Some(7)), 1 << 30),
        (params(1, 8, 1, None), 1 << 30),
    ] {
        let size = p.entries() as usize * p.entry_size();
        let mut database = pseudorandom(size);
        for device in devices().found.iter() {
            let host = Processor { lanes: Lanes::detect(), threads: 2 };
            let maker = OnDevice::new(Arc::clone(device), host, Tuning { window, blocks: 4 });
            let make = |epoch: u64, regular: Range<u64>, pairs: Range<u64>, entries: &[u8]| {
                let key = Key::random().unwrap();
                let version = Version { database: [7; 32], epoch };
                let made = maker.hints_of(&order(&p, &key, regular, pairs), version, entries)?;
                let prf = Prf::new(&key, &p, Lanes::detect());
                let expected = reference::hints(&prf, &reference::Database::new(&p, entries), &made.skeleton);
                assert!(made == expected, "{}, {p:?}, epoch {epoch}", device.info().id);
                Ok(())
            };
            let (m, q) = (p.regular(), p.backups());
            make(1, 0..m, m..m + q, &database).unwrap();
            make(1, 0..0, m + q..m + q + 32, &database).unwrap();
            // The next version is loaded anew.
            database.iter_mut().for_each(|byte| *byte ^= 0x5a);
            make(2, 0..m, m..m + q, &database).unwrap();
            // Other entries under a known version: nobody loads them, and the sample tells.
            let other = vec![0x33; size];
            let result: Result<()> = make(2, 0..m, m..m + q, &other);
            assert!(matches!(result, Err(Error::Wrong { .. })), "{result:?}");
            // What proved wrong is not used again.
            make(2, 0..m, m..m + q, &other).unwrap();
            // Who leaves gets nothing, and takes nothing with him: the database is still there for the next.
            let tuning = Tuning { window, blocks: 4 };
            let version = Version { database: [7; 32], epoch: 2 };
            let mut resident = Resident::load(&p, device.as_ref(), &tuning, version, &other).unwrap();
            let (key, stop) = (Key::random().unwrap(), AtomicBool::new(true));
            let left = Order { params: &p, key: &key, regular: 0..m, backups: m..m + q, stop: &stop };
            let host = Processor { lanes: Lanes::detect(), threads: 2 };
            assert!(matches!(resident.hints(host, &left, &other), Err(Error::Stopped)));
            resident.hints(host, &order(&p, &key, 0..m, m..m + q), &other).unwrap();
            assert!(matches!(maker.hints_of(&left, version, &other), Err(Error::Stopped)));
            make(2, 0..m, m..m + q, &other).unwrap();
            let short: Result<()> = make(3, 0..m, m..m + q, &other[1..]);
            assert!(matches!(short, Err(Error::Format { .. })), "{short:?}");
        }
    }
}
