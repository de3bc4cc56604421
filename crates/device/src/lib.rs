//! Compute devices through CUDA's driver API and through OpenCL, both opened at run time.
//!
//! Finds devices, compiles kernel text for them, moves bytes, launches and times. It knows neither keys nor
//! kernels: what the text computes is the caller's business. Nothing is needed at build time, and a machine
//! without drivers gets an empty list with the reasons, never a crash.
//!
//! [`survey`] lists what there is; [`Device::queue`] opens an in-order [`Queue`], which owns all it makes.
//! Files: `queue.rs` is the queue both interfaces share, `cuda/` and `opencl/` the calls beneath it,
//! `cache.rs` keeps compiled kernels, `error.rs` says what went wrong. [`Selector`] reads the names by which users choose devices,
//! [`CardOptions`] holds how GPUs are used, [`under_way`] lists what is being prepared.

#[cfg_attr(not(any(feature = "cuda", feature = "opencl")), allow(dead_code))]
mod cache;
mod choose;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(any(feature = "cuda", feature = "opencl"))]
mod dylib;
mod error;
mod handle;
mod in_driver;
#[cfg(feature = "opencl")]
mod opencl;
mod options;
#[cfg(any(feature = "cuda", feature = "opencl"))]
mod queue;
mod selector;
mod under_way;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

pub use cache::user_cache;
pub use choose::{Chosen, IsUsable, choose, defaults};
pub use error::{Error, Refusal, Result};
pub use handle::{Buffer, Kernel, Later, Mark, Program};
pub use in_driver::{InDriver, drivers_are_busy};
pub use options::{CardOptions, Inline};
pub use selector::Selector;
pub use under_way::{Busy, Preparing, UnderWay, under_way};

/// The interface a device is used through.
///
/// ```
/// use warpsmith_device::Api;
///
/// assert_eq!(Api::ALL.map(Api::name), ["cuda", "opencl"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// NVIDIA's driver interface, kernels compiled by NVRTC.
    Cuda,
    /// OpenCL 1.2, kernels compiled by the driver.
    OpenCl,
}

impl Api {
    /// All interfaces, in the order in which [`survey`] lists their devices. What people write and read of interfaces
    /// follows from it.
    pub const ALL: [Api; 2] = [Api::Cuda, Api::OpenCl];

    /// The name by which a person selects it, and with which the ids of its devices begin.
    pub const fn name(self) -> &'static str {
        match self {
            Api::Cuda => "cuda",
            Api::OpenCl => "opencl",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who made the device, or the software that poses as one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Vendor {
    /// NVIDIA.
    Nvidia,
    /// AMD, through ROCm or an older driver.
    Amd,
    /// Intel; its OpenCL also offers processors, so see [`Info::is_gpu`].
    Intel,
    /// PoCL, which runs OpenCL on the processor.
    Pocl,
    /// Anyone else, by the name the driver gives.
    Other(String),
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Vendor::Nvidia => "NVIDIA",
            Vendor::Amd => "AMD",
            Vendor::Intel => "Intel",
            Vendor::Pocl => "PoCL",
            Vendor::Other(name) => name,
        })
    }
}

/// What is known of a device without opening it.
#[derive(Clone, Debug)]
pub struct Info {
    /// `cuda:0`, `opencl:1`: the index counts usable devices of that interface, in the driver's order.
    pub id: String,
    /// The interface.
    pub api: Api,
    /// The name the driver gives.
    pub name: String,
    /// The maker.
    pub vendor: Vendor,
    /// The driver's version.
    pub driver: String,
    /// `sm_90`, or OpenCL's device version.
    pub arch: String,
    /// Multiprocessors or compute units.
    pub units: u32,
    /// The most threads a unit holds at once, where the driver tells.
    pub threads_per_unit: Option<u32>,
    /// Bytes of device memory.
    pub memory: u64,
    /// The most bytes one buffer may have.
    pub largest_buffer: u64,
    /// Bytes of constant memory one kernel can read.
    pub constant_memory: u64,
    /// Bytes of shared (local) memory a block can use.
    pub shared_memory: u64,
    /// `pci:0000:65:00.0` or `uuid:...`: equal for one card seen twice. None when the driver does not tell.
    pub identity: Option<String>,
    /// The id of an earlier device in the list that is the same card; count the card once.
    pub same_as: Option<String>,
    /// False for processors, which callers use only when they are named.
    pub is_gpu: bool,
}

/// What this machine has, and why it lacks the rest.
pub struct Survey {
    /// Usable devices, CUDA first. A card both interfaces show is here twice, see [`Info::same_as`].
    pub devices: Vec<Arc<dyn Device>>,
    /// `cuda`, `nvrtc` or `opencl`, and a plain reason with what to do about it.
    pub missing: Vec<(String, String)>,
}

/// Looks for devices of both interfaces. One broken driver or platform does not hide the others.
///
/// Call it before other threads start: only then can it use NVIDIA's OpenCL where no ICD file registers it,
/// since that takes an environment variable (`opencl/loader.rs` has the reason).
pub fn survey() -> Survey {
    // One at a time: drivers set themselves up at the first question, and not all of them guard that (PoCL 3.1
    // crashes when two threads ask at once).
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    #[cfg_attr(not(any(feature = "cuda", feature = "opencl")), expect(unused_mut))]
    let mut survey = Survey { devices: Vec::new(), missing: Vec::new() };
    // First, because CUDA's start-up makes threads.
    #[cfg(feature = "opencl")]
    opencl::prepare(&mut survey.missing);
    #[cfg(feature = "cuda")]
    cuda::survey(&mut survey);
    #[cfg(feature = "opencl")]
    opencl::survey(&mut survey);
    survey
}

impl Survey {
    /// The id of a device already listed that has this identity.
    #[cfg(any(feature = "cuda", feature = "opencl"))]
    fn twin(&self, identity: Option<&str>) -> Option<String> {
        let identity = identity?;
        let mut known = self.devices.iter().map(|device| device.info());
        known.find(|info| info.identity.as_deref() == Some(identity)).map(|info| info.id.clone())
    }
}

/// A device that can be opened.
pub trait Device: Send + Sync {
    /// What is known of it.
    fn info(&self) -> &Info;

    /// Opens a queue on the device. Queues share nothing; two of them overlap where the device can.
    fn queue(&self) -> Result<Box<dyn Queue>>;

    /// Whether kernels can be compiled right now: CUDA without NVRTC cannot, and the error says what to do.
    fn can_build(&self) -> Result<()>;

    /// Whether [`Source::ptx`] can stand in for a compiler.
    fn takes_ptx(&self) -> bool {
        self.info().api == Api::Cuda
    }
}

/// Kernel text.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The whole text, defines and all.
    pub text: &'a str,
    /// The caller's name for this text, usually its content hash. It is part of the cache's key, as the text is.
    pub key: &'a str,
    /// The same kernels as PTX, should there be any: used by CUDA where NVRTC is missing or does not know the device.
    pub ptx: Option<&'a str>,
}

/// How to compile.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Compiler options, one argument each, in the words of the device's compiler (NVRTC or OpenCL's).
    pub extra: Vec<String>,
    /// Where compiled kernels are kept.
    pub cache: Cache,
}

/// Where compiled kernels are kept between runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// `$WARPSMITH_CACHE` (empty: nowhere), else `warpsmith/kernels` in the user's cache folder.
    #[default]
    User,
    /// Nowhere.
    Off,
    /// In this folder.
    At(PathBuf),
}

/// How a program came to be.
#[derive(Clone, Debug, Default)]
pub struct Build {
    /// Whether it came from the cache.
    pub cached: bool,
    /// Whether the driver made it from the PTX given.
    pub from_ptx: bool,
    /// The compiler's warnings; empty for a cached program.
    pub log: String,
}

/// What a kernel takes of the device; None where the interface does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers a thread.
    pub registers: Option<u32>,
    /// Bytes of local memory a thread: spilled registers and indexed arrays.
    pub local_bytes: Option<u64>,
    /// Bytes of shared memory a block.
    pub shared_bytes: Option<u64>,
    /// The most threads a block of this kernel may have.
    pub max_threads: Option<u32>,
}

/// A kernel's argument. Order and types must be those of the kernel's signature.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    /// A pointer to global (or OpenCL constant) memory.
    Buffer(Buffer),
    /// A 32-bit scalar.
    U32(u32),
    /// A 64-bit scalar.
    U64(u64),
}

/// One in-order queue with its own programs and buffers; all is released on drop, after enqueued work ended.
///
/// A queue may move between threads. Handles belong to the queue that made them; another queue refuses them.
/// The kernels are trusted: a kernel that writes outside its buffers is the caller's fault.
/// After [`Error::Lost`] every call may fail; drop the queue, and all others of that device, to start anew.
pub trait Queue: Send {
    /// Compiles, or loads from the cache. On failure the error holds the compiler's whole log.
    fn build(&mut self, source: &Source<'_>, options: &Options) -> Result<Program>;

    /// How a program of this queue came to be.
    fn built(&self, program: Program) -> Result<Build>;

    /// Finds an entry point.
    fn kernel(&mut self, program: Program, name: &str) -> Result<Kernel>;

    /// What the kernel takes of the device.
    fn resources(&self, kernel: Kernel) -> Resources;

    /// How many blocks of so many threads a multiprocessor holds at once; None where the interface does not tell.
    fn occupancy(&self, kernel: Kernel, block: u32) -> Option<u32>;

    /// Sets a `__constant__` variable, in order with launches. OpenCL has none that a host can set: use a buffer.
    fn symbol(&mut self, program: Program, name: &str, data: &[u8]) -> Result<()>;

    /// Takes device memory; its contents are undefined.
    fn alloc(&mut self, bytes: u64) -> Result<Buffer>;

    /// Gives a buffer back before the queue's end. Enqueued work that uses it is not disturbed.
    fn free(&mut self, buffer: Buffer) -> Result<()>;

    /// Copies into a buffer. The data is taken over at once; the copy itself is ordered with launches.
    /// Returns without waiting for the device, unless 16 pieces of up to 4 MiB are under way already.
    fn write(&mut self, buffer: Buffer, offset: u64, data: &[u8]) -> Result<()>;

    /// As [`Queue::write`], but beside launches: neither waits for the other, in whatever order they are enqueued, but for
    /// [`Queue::launches_follow`] and [`Queue::copies_follow`]. So the next part of a long input travels while the device works on this one. A
    /// queue that has no such way copies in order with launches.
    fn write_beside(&mut self, buffer: Buffer, offset: u64, data: &[u8]) -> Result<()> {
        self.write(buffer, offset, data)
    }

    /// Launches from now on wait for the copies beside that were enqueued so far.
    fn launches_follow(&mut self) -> Result<()> {
        Ok(())
    }

    /// Copies beside from now on wait for the launches that were enqueued so far.
    fn copies_follow(&mut self) -> Result<()> {
        Ok(())
    }

    /// Copies from a buffer, after all that is enqueued, and waits for it.
    fn read(&mut self, buffer: Buffer, offset: u64, data: &mut [u8]) -> Result<()>;

    /// Sets bytes to zero, in order with launches.
    fn zero(&mut self, buffer: Buffer, offset: u64, bytes: u64) -> Result<()>;

    /// Enqueues `groups` blocks of `block` threads, in one dimension.
    fn launch(&mut self, kernel: Kernel, groups: u32, block: u32, args: &[Arg]) -> Result<()>;

    /// Enqueues a copy into pinned host memory, after all that is enqueued so far, and returns at once.
    fn read_later(&mut self, buffer: Buffer, offset: u64, bytes: u64) -> Result<Later>;

    /// Sleeps until that copy is there and puts its bytes into `out`, whatever was in it before.
    /// Work enqueued after the copy goes on meanwhile.
    fn finish_later(&mut self, later: Later, out: &mut Vec<u8>) -> Result<()>;

    /// The same, but the bytes are looked at where they are, for reads of which only a part may matter.
    fn look_later(&mut self, later: Later, look: &mut dyn FnMut(&[u8])) -> Result<()> {
        let mut out = Vec::new();
        self.finish_later(later, &mut out)?;
        look(&out);
        Ok(())
    }

    /// Marks a point in time in the queue. The last 64 marks are kept; older ones are refused.
    fn mark(&mut self) -> Result<Mark>;

    /// Sleeps until the device has passed the mark.
    fn wait(&mut self, mark: Mark) -> Result<()>;

    /// The device's time between two marks; waits for the second.
    fn milliseconds(&mut self, from: Mark, to: Mark) -> Result<f32>;

    /// Sleeps until all enqueued work is done.
    fn finish(&mut self) -> Result<()>;
}
