//! A GPU as a device: tens of thousands of lanes, two launches in flight, hits read while the next launch runs.
//!
//! Here: the device, its shape, and how a program is built for it. `walker` is the loop of every walk, and `lanes` where its
//! lanes are; what a walk looks for has its own file: `orbit` for x by its top bits, with `settle` for many patterns, `points`
//! for hashes of points and for all of x. Beside it `salts` counts for contracts and `ranges` scans. `flight` keeps launches
//! under way, `moves` puts lanes elsewhere, `ends` finds out whether they lead where they must, `tweaks` multiplies G for taproot. `shapes` remembers what
//! was found fastest, `field` times the arithmetic by itself.

mod ends;
mod field;
mod flight;
mod lanes;
mod moves;
mod orbit;
mod points;
mod ranges;
mod salts;
mod settle;
pub(crate) mod shapes;
mod timing;
mod tweaks;
mod walker;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use warpsmith_chain::{Form, Recipe};
use warpsmith_curve::field::chains::Op;
use warpsmith_curve::walk::Table;
use warpsmith_curve::{Affine, Fe, Scalar, group};
use warpsmith_device::{
    Api, Buffer, Busy, Cache, CardOptions, Device, Inline, Kernel, Options, Preparing, Program as Built,
    Queue, Source, Vendor,
};
use warpsmith_kernel::{Program as Text, Spec, TablePlace, abi, embedded, join};
use warpsmith_simd::Simd;

use crate::forms;
use crate::prefilter::ScanFilter;
use crate::worker::batch_add::multiples;
use crate::worker::measure::{FieldRate, Measure, Profile};
use crate::worker::scanner::Scanner;
use crate::worker::{Backend, Fault, Held, MOST_HALF, Program, Runner, Search, Worker};
use shapes::Kind;

/// Records a launch has room for. More hits than that are found by walking again in pieces.
const CAPACITY: u32 = 4096;

/// Launches in flight.
const IN_FLIGHT: usize = 2;

/// Why a card without a compiler cannot do something.
const NO_COMPILER: &str = "it has no compiler, and the PTX this build carries is for leading characters of npub only; \
                           NVRTC comes with the CUDA toolkit, and the device opencl needs none";

/// Lanes of a multiprocessor that hash side by side.
const HASHING_LANES: u32 = 512;

/// The shape of a search on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaunchShape {
    pub spec: Spec,
    pub lanes: u32,
}

impl LaunchShape {
    /// The same with at most so many blocks a multiprocessor.
    fn at_most(self, blocks: u32) -> LaunchShape {
        self.with_blocks(self.spec.blocks.min(blocks.max(1)))
    }

    /// The same with so many blocks a multiprocessor, and lanes in proportion.
    fn with_blocks(self, blocks: u32) -> LaunchShape {
        let LaunchShape { spec, lanes } = self;
        let lanes = (u64::from(lanes) * u64::from(blocks) / u64::from(spec.blocks)) as u32;
        LaunchShape {
            spec: Spec { blocks, ..spec },
            lanes: (lanes / spec.block * spec.block).max(spec.block),
        }
    }
}

/// A card, or a processor posing as one.
pub(crate) struct Gpu {
    device: Arc<dyn Device>,
    shape: LaunchShape,
    /// Blocks of a kind of program to be tried.
    tried: Option<(Kind, u32)>,
    /// How long a launch shall take.
    launch_ms: u32,
    entries: OnceLock<Vec<Affine>>,
    strides: OnceLock<Vec<Affine>>,
    neighbours: OnceLock<Vec<Affine>>,
    table: OnceLock<Table>,
}

impl Gpu {
    /// The device in the shape remembered for it, or the default one. Without a compiler it is the default one, which
    /// is what releases carry PTX for.
    pub fn new(device: Arc<dyn Device>, options: impl Into<CardOptions>) -> Gpu {
        let shape = shapes::remembered(device.as_ref()).filter(|_| device.can_build().is_ok());
        let shape = shape.unwrap_or_else(|| default_shape(device.as_ref()));
        Gpu::with_shape(device, shape, options)
    }

    /// The device in a given shape.
    pub fn with_shape(
        device: Arc<dyn Device>,
        mut shape: LaunchShape,
        options: impl Into<CardOptions>,
    ) -> Gpu {
        let CardOptions { inline, launch_ms } = options.into();
        shape.spec.inline = inline.resolve(&device.info().vendor);
        Gpu {
            device,
            shape,
            tried: None,
            launch_ms,
            entries: OnceLock::new(),
            strides: OnceLock::new(),
            neighbours: OnceLock::new(),
            table: OnceLock::new(),
        }
    }

    /// The same, to try so many blocks of this kind of program.
    pub fn with_blocks(self, kind: Kind, blocks: u32) -> Gpu {
        Gpu { tried: Some((kind, blocks)), ..self }
    }

    /// The shape of the orbit walk.
    pub fn shape(&self) -> LaunchShape {
        self.shape
    }

    /// Blocks a multiprocessor should hold of this kind of program: what is tried, what `tune` found, or what is known to run
    /// well. Without a compiler there is no choice.
    fn blocks(&self, kind: Kind, known: u32) -> u32 {
        if let Some((_, blocks)) = self.tried.filter(|(tried, _)| *tried == kind) {
            return blocks;
        }
        let device = self.device.as_ref();
        let tuned =
            device.can_build().ok().and_then(|()| shapes::remembered_blocks(device, &self.shape, kind));
        tuned.unwrap_or(known)
    }

    /// Programs of searches for this whose blocks can be tuned. Those for x start with the orbit walk, whose whole shape can.
    pub fn kinds(&self, recipe: &Recipe) -> Vec<Kind> {
        match recipe {
            Recipe::Salted(salted) => vec![salts::kind(salted)],
            Recipe::Key(form) => {
                let sets = [true, false].map(|near| Kind::Set { near });
                let sets = sets.into_iter().filter(|_| *form == Form::X);
                sets.chain(points::kinds(self, *form)).collect()
            }
        }
    }

    /// The same of a scan for these.
    pub fn scan_kinds(&self, forms: &[Form]) -> Vec<Kind> {
        ranges::kinds(forms)
    }

    /// Where each lane of a scan but the first starts relative to the first: a group further each.
    fn neighbours(&self) -> &[Affine] {
        self.neighbours.get_or_init(|| {
            let way = Scalar::from_u64(2 * u64::from(self.shape.spec.group) + 1);
            let way = group::multiply(way, Some(Affine::G)).expect("a small multiple of G is not infinity");
            multiples(way, ranges::most_lanes(self) as usize - 1)
        })
    }

    /// The shape for programs that hash as they go, of salts and for taproot: that of the orbit walk, with no more blocks than
    /// leave a lane the registers a hash takes. H200: taproot at 3, 4 and 5 blocks of 128 lanes 0.696, 0.717 and 0.712 G/s.
    fn digest_shape(&self, kind: Kind, program: Text) -> LaunchShape {
        let known = self.shape.at_most(HASHING_LANES / self.shape.spec.block).spec.blocks;
        let LaunchShape { spec, lanes } = self.shape.with_blocks(self.blocks(kind, known));
        LaunchShape { spec: Spec { program, ..spec }, lanes }
    }

    /// i * G for every entry of the table.
    fn entries(&self) -> &[Affine] {
        self.entries.get_or_init(|| multiples(Affine::G, self.shape.spec.group as usize))
    }

    /// What one step moves a centre by, and its multiples: more than a launch of a busy card has steps.
    fn strides(&self) -> &[Affine] {
        self.strides.get_or_init(|| {
            let step = Scalar::from_u64(2 * self.shape.spec.group as u64 + 1);
            let step = group::multiply(step, Some(Affine::G)).expect("a small multiple of G is not infinity");
            multiples(step, 255)
        })
    }

    /// The portable walk of the same shape, for lanes the device cannot do.
    fn table(&self) -> &Table {
        self.table.get_or_init(|| Table::new(Simd::Portable, self.shape.spec.group))
    }
}

/// A shape that runs well on what is known and runs at all on the rest; `tune` finds better ones.
pub(crate) fn default_shape(device: &dyn Device) -> LaunchShape {
    let info = device.info();
    if !info.is_gpu {
        // OpenCL on a processor is for tests: few lanes, and no sharing across its slow barriers.
        let spec = Spec {
            ptx: false,
            group: 16,
            block: 8,
            blocks: 1,
            table: TablePlace::Global,
            shared_inversion: false,
            ..Spec::default()
        };
        return LaunchShape { spec, lanes: 64 };
    }
    let nvidia = info.vendor == Vendor::Nvidia;
    let table_bytes = 4 * abi::table_words(256) as u64;
    let table = if info.constant_memory >= table_bytes { TablePlace::Constant } else { TablePlace::Global };
    // H200: 4 blocks of 128 lanes a multiprocessor 121.6 G keys/s, 5 blocks 122.4 (docs/measurements/npub-gpu.md).
    let blocks = if nvidia { 5 } else { 4 };
    let spec = Spec { ptx: nvidia, group: 256, block: 128, blocks, table, ..Spec::default() };
    // Prefix products take 8 KiB a lane; a quarter of the memory is enough for any card that can fill itself.
    let fit = info.memory / 4 / (4 * abi::scratch_words(spec.group, 1) as u64);
    let wanted = info.units as u64 * (blocks * spec.block) as u64;
    let lanes = wanted.min(fit).max(spec.block as u64) / spec.block as u64 * spec.block as u64;
    LaunchShape { spec, lanes: lanes as u32 }
}

/// Whether this build carries PTX for all that an untuned search by leading characters of x runs on this device.
pub(crate) fn carries_ptx(device: &dyn Device) -> bool {
    let spec = default_shape(device).spec;
    let programs =
        orbit::programs(&spec).iter().map(join).chain([warpsmith_kernel::moves::join()]).collect::<Vec<_>>();
    device.takes_ptx() && programs.iter().all(|source| embedded(source).is_some())
}

impl Backend for Gpu {
    fn id(&self) -> String {
        self.device.info().id.clone()
    }

    fn describe(&self) -> String {
        let info = self.device.info();
        let LaunchShape { spec, lanes } = self.shape;
        let mut line = format!(
            "{} ({}, driver {}, {} units, {:.1} GiB), {lanes} lanes of {} entries, {} lanes a block",
            info.name,
            info.arch,
            info.driver,
            info.units,
            info.memory as f64 / (1u64 << 30) as f64,
            spec.group,
            spec.block
        );
        if !spec.inline {
            line += "; helpers out of line, which builds in seconds and runs several times slower (inlined it is the \
                     other way round, and AMD's compiler may take many minutes once)";
        }
        if self.device.can_build().is_err() && carries_ptx(self.device.as_ref()) {
            line += "; without NVRTC, by the PTX this build carries (tuned shapes need NVRTC)";
        }
        line
    }

    fn runner(&self) -> Runner {
        Runner::Card(Arc::clone(&self.device))
    }

    fn workers(&self) -> usize {
        1
    }

    fn max_false(&self, recipe: &Recipe) -> f64 {
        match recipe {
            // At 10^11 keys a second, one in 2^30 is a hundred verifications a second.
            Recipe::Key(Form::X) => 2f64.powi(-30),
            // At some 10^9, one in 2^25.
            _ => 2f64.powi(-25),
        }
    }

    fn supports(&self, search: &Search<'_>) -> Result<(), Fault> {
        let by_orbit = *search.recipe == Recipe::Key(Form::X) && search.filter.terms.is_empty();
        if !by_orbit && self.device.can_build().is_err() {
            return Err(NO_COMPILER.to_owned());
        }
        match search.recipe {
            Recipe::Key(Form::X) if search.filter.score.is_some() => {
                Err("x coordinates have no score".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn measure(&self) -> Option<&dyn Measure> {
        Some(self)
    }

    fn half(&self) -> u32 {
        self.shape.spec.group
    }

    fn with_half(&self, half: u32) -> Option<Arc<dyn Backend>> {
        if !(1..=MOST_HALF).contains(&half) || self.device.can_build().is_err() {
            return None;
        }
        let (mut shape, info) = (self.shape, self.device.info());
        shape.spec.group = half;
        if info.constant_memory < 4 * abi::table_words(half) as u64 {
            shape.spec.table = TablePlace::Global;
        }
        // No more memory for the products of a group than the shape had.
        let fit = u64::from(shape.lanes) * u64::from(self.shape.spec.group) / u64::from(half);
        let fit = fit.min(u64::from(shape.lanes)) as u32;
        shape.lanes = (fit / shape.spec.block * shape.spec.block).max(shape.spec.block);
        let inline = if shape.spec.inline { Inline::Yes } else { Inline::No };
        let options = CardOptions { launch_ms: self.launch_ms, ..CardOptions::from(inline) };
        Some(Arc::new(Gpu::with_shape(Arc::clone(&self.device), shape, options)))
    }

    fn scanner<'a>(
        &'a self,
        forms: &'a [Form],
        filter: &'a ScanFilter,
    ) -> Result<Box<dyn Scanner + 'a>, Fault> {
        if self.device.can_build().is_err() {
            return Err(NO_COMPILER.to_owned());
        }
        if let ScanFilter::Open = filter {
            return Err("it finds keys by a filter, and there is none".to_owned());
        }
        forms::scanned(forms)?;
        let scanner = ranges::RangeScanner::new(self, forms, filter).map_err(|e| e.to_string())?;
        Ok(Box::new(scanner))
    }

    fn hold(&self) -> Held {
        // Where it cannot be opened its first worker says why.
        Held(self.device.queue().ok())
    }

    fn program(&self, search: &Search<'_>) -> Program {
        let shape = match search.recipe {
            Recipe::Salted(salted) => salts::shape(self, salted, search.filter),
            Recipe::Key(Form::X) if search.filter.terms.is_empty() => orbit::shape(self, search.filter),
            Recipe::Key(form) => points::shape(self, *form, search.filter),
        };
        Program(format!("{:032x}", join(&shape.spec).hash))
    }

    fn worker<'a>(&'a self, search: &Search<'_>) -> Result<Box<dyn Worker + 'a>, Fault> {
        self.supports(search)?;
        let worker: Outcome<Box<dyn Worker + 'a>> = match search.recipe {
            Recipe::Salted(salted) => salts::SaltsWorker::new(self, salted, search).map(|w| Box::new(w) as _),
            Recipe::Key(Form::X) if search.filter.terms.is_empty() => {
                orbit::worker(self, search.filter).map(|w| Box::new(w) as _)
            }
            Recipe::Key(_) => points::worker(self, search).map(|w| Box::new(w) as _),
        };
        worker.map_err(|e| e.to_string())
    }
}

impl Measure for Gpu {
    fn field(&self, op: Op, time: Duration) -> Result<FieldRate, Fault> {
        field::bench(self, op, time)
    }

    fn profile(&self, search: &Search<'_>) -> Option<Result<Profile, Fault>> {
        Some(match search.recipe {
            Recipe::Salted(salted) => salts::SaltsWorker::profile(self, salted, search),
            Recipe::Key(Form::X) if search.filter.terms.is_empty() => orbit::profile(self, search.filter),
            Recipe::Key(_) => points::profile(self, search),
        })
    }

    fn profile_scan(&self, forms: &[Form], filter: &ScanFilter) -> Option<Result<Profile, Fault>> {
        Some(ranges::profile(self, forms, filter))
    }
}

type Outcome<T> = Result<T, warpsmith_device::Error>;

fn as_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// A buffer with these words.
fn upload(queue: &mut dyn Queue, words: &[u32]) -> Outcome<Buffer> {
    let bytes = as_bytes(words);
    let buffer = queue.alloc(bytes.len() as u64)?;
    queue.write(buffer, 0, &bytes)?;
    Ok(buffer)
}

/// Limbs of 32 bits, least significant first.
fn limbs(x: Fe) -> [u32; 8] {
    let words = x.to_words();
    std::array::from_fn(|i| (words[3 - i / 2] >> (32 * (i % 2))) as u32)
}

/// Centres as the device has them: one point a lane.
fn centre_words(points: &[Affine]) -> Vec<u32> {
    let mut words = vec![0u32; abi::centres_words(points.len() as u32)];
    for (lane, point) in points.iter().enumerate() {
        for (w, limb) in limbs(point.x).into_iter().chain(limbs(point.y)).enumerate() {
            words[w * points.len() + lane] = limb;
        }
    }
    words
}

/// The table of walks over points: the step point, then i * G.
fn point_table(step: Affine, entries: &[Affine]) -> Vec<u32> {
    let points = std::iter::once(&step).chain(entries);
    points.flat_map(|point| warpsmith_kernel::points::entry(&limbs(point.x), &limbs(point.y))).collect()
}

/// Puts the table of multiples of G where the program looks for it: constant memory, which on CUDA is a symbol and no
/// argument, or a buffer.
fn place_table(
    queue: &mut dyn Queue,
    info: &warpsmith_device::Info,
    program: Built,
    spec: &Spec,
    words: &[u32],
) -> Outcome<Option<Buffer>> {
    if spec.table == TablePlace::Constant && info.api == Api::Cuda {
        queue.symbol(program, "search_table", &as_bytes(words))?;
        return Ok(None);
    }
    upload(queue, words).map(Some)
}

/// Compiles a program for a device, or finds it in the cache, and takes its entry point.
fn build(
    queue: &mut dyn Queue,
    info: &warpsmith_device::Info,
    spec: &Spec,
    entry: &str,
) -> Outcome<(Built, Kernel)> {
    build_source(queue, info, spec, &join(spec), entry)
}

/// The same for a text already joined.
fn build_source(
    queue: &mut dyn Queue,
    info: &warpsmith_device::Info,
    spec: &Spec,
    source: &warpsmith_kernel::Source,
    entry: &str,
) -> Outcome<(Built, Kernel)> {
    let key = format!("{:032x}", source.hash);
    let options = options(info, spec);
    let busy = Busy::with(Preparing::Compiling, Some(info.id.clone()));
    let program = queue.build(&Source { text: &source.text, key: &key, ptx: embedded(source) }, &options)?;
    drop(busy);
    let kernel = queue.kernel(program, entry)?;
    Ok((program, kernel))
}

/// How a program of this shape is compiled.
fn options(info: &warpsmith_device::Info, spec: &Spec) -> Options {
    let mut options = Options::default();
    if info.api == Api::OpenCl && info.vendor == Vendor::Nvidia {
        // OpenCL has no launch bounds: without this the compiler takes as many registers as it likes.
        let registers = 65536 / (spec.block * spec.blocks) / 8 * 8;
        options.extra.push(format!("-cl-nv-maxrregcount={}", registers.min(255)));
    }
    options
}

/// What the compiler of a device says of the usual search, which is compiled anew whatever the cache has.
pub(crate) fn compile_anew(device: &dyn Device) -> Result<String, Fault> {
    let spec = default_shape(device).spec;
    let Some(spec) = orbit::programs(&spec).into_iter().next() else { return Ok(String::new()) };
    let source = join(&spec);
    let key = format!("{:032x}", source.hash);
    let mut queue = device.queue().map_err(|error| error.to_string())?;
    let options = Options { cache: Cache::Off, ..options(device.info(), &spec) };
    let built = queue.build(&Source { text: &source.text, key: &key, ptx: None }, &options);
    let built = built.and_then(|program| queue.built(program));
    built.map(|built| built.log).map_err(|error| error.to_string())
}

#[cfg(test)]
mod small_groups;
#[cfg(test)]
pub(crate) mod tests;
