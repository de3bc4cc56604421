//! One CUDA stream, and one for copies beside it: modules, memory, launches and events.
//!
//! Each stream retains the device's primary context by itself. When the last stream of a device is dropped the
//! driver destroys the context, and the next stream gets a fresh one: that is how a crashed device comes back.
//! A context is current per thread and streams move between threads, so every entry makes it current first.

use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;

use super::Cuda;
use super::driver::{DevicePointer, Driver, Handle, NOT_FOUND, NOT_READY, OUT_OF_MEMORY};
use super::nvrtc::{Architecture, Nvrtc, Outcome};
use crate::cache::CacheEntry;
use crate::dylib::Status;
use crate::error::{Error, Result, Unusable};
use crate::queue::{Host, Raw, RawArg, Side};
use crate::{Build, Device, Options, Resources, Source};

/// CU_CTX_SCHED_BLOCKING_SYNC: a waiting thread sleeps.
const CONTEXT_SLEEPS: u32 = 4;
/// CU_STREAM_NON_BLOCKING: no ties to the default stream.
const STREAM_ALONE: u32 = 1;
/// CU_EVENT_BLOCKING_SYNC.
const EVENT_SLEEPS: u32 = 1;
/// CU_EVENT_DISABLE_TIMING.
const EVENT_NO_TIME: u32 = 2;

/// The primary context of one device, retained once.
struct Context {
    driver: Arc<Driver>,
    device: c_int,
    handle: Handle,
    id: String,
}

impl Context {
    /// Makes the context current on this thread.
    fn enter(&self) -> Result<()> {
        // SAFETY: The context is retained for as long as this value lives.
        unsafe { self.driver.context_use(self.handle) }.map_err(|status| self.error(status))
    }

    fn error(&self, status: Status) -> Error {
        self.driver.error(&self.id, status)
    }

    /// Runs a release function with the context current; there is nobody to tell of a failure.
    fn release(&self, release: impl FnOnce(&Driver) -> std::result::Result<(), Status>) {
        if self.enter().is_ok() {
            let _ = release(&self.driver);
        }
    }

    /// Bytes free on the device right now.
    fn free_memory(&self) -> Option<u64> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: The pointers are to live integers, and the context is current.
        unsafe { self.driver.memory_info(&mut free, &mut total) }.ok()?;
        Some(free as u64)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: It was retained once; the objects made in it are gone, since each holds this value.
        let _ = unsafe { self.driver.context_release(self.device) };
    }
}

/// Declares an owner of a driver object: a handle that its release function ends on drop.
macro_rules! owner {
    ($(#[$attribute:meta])* $name:ident, $release:ident) => {
        $(#[$attribute])*
        pub(crate) struct $name {
            handle: Handle,
            context: Arc<Context>,
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: The handle is live, and nobody uses it after this.
                self.context.release(|driver| unsafe { driver.$release(self.handle) });
            }
        }
    };
}

owner!(
    /// A loaded module.
    Module, module_unload
);
owner!(
    /// An event.
    Event, event_destroy
);
owner!(
    /// The stream's handle.
    Owned, stream_destroy
);

/// Device memory; a symbol's memory belongs to its module.
pub(crate) struct Memory {
    address: DevicePointer,
    owner: Option<Arc<Context>>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(context) = &self.owner {
            // SAFETY: The memory is live and used no more; the driver waits for work that uses it.
            context.release(|driver| unsafe { driver.memory_free(self.address) });
        }
    }
}

/// Page-locked host memory; the pointer is null once it was abandoned.
pub(crate) struct Pinned {
    pointer: *mut c_void,
    bytes: usize,
    context: Arc<Context>,
}

// SAFETY: The memory belongs to the value alone, and the driver frees it from any thread.
unsafe impl Send for Pinned {}

impl Host for Pinned {
    fn pointer(&self) -> *mut u8 {
        self.pointer.cast()
    }

    fn len(&self) -> usize {
        self.bytes
    }

    fn abandon(mut self) {
        // The context must not be held on to: only its end brings a crashed device back.
        self.pointer = std::ptr::null_mut();
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.pointer.is_null() {
            return;
        }
        // SAFETY: The memory is live, and no copy uses it: the queue sees to that.
        self.context.release(|driver| unsafe { driver.host_free(self.pointer) });
    }
}

/// One stream, with another for copies beside it.
pub(crate) struct Stream {
    stream: Owned,
    beside: Owned,
    context: Arc<Context>,
    nvrtc: Arc<std::result::Result<Nvrtc, Unusable>>,
    target: std::result::Result<Architecture, Unusable>,
    /// What of the device decides a compiled kernel.
    name: String,
    driver_version: String,
    /// All of the device's memory, in bytes.
    memory: u64,
}

impl Stream {
    /// Opens a stream on a device.
    pub fn open(device: &Cuda) -> Result<Stream> {
        let driver = Arc::clone(&device.driver);
        let info = device.info();
        let (mut handle, mut number) = (0, 0);
        // SAFETY: The pointer is to a live integer.
        unsafe { driver.device_get(&mut number, device.ordinal) }.map_err(|s| driver.error(&info.id, s))?;
        // SAFETY: The device is valid. The flags count from the next activation; where another part of the
        // process has activated the context, its flags stay and only the waiting differs.
        let _ = unsafe { driver.context_flags(number, CONTEXT_SLEEPS) };
        // SAFETY: The pointer is to a live integer; `Context` releases what is retained here.
        unsafe { driver.context_retain(&mut handle, number) }.map_err(|s| driver.error(&info.id, s))?;
        let context = Arc::new(Context { driver, device: number, handle, id: info.id.clone() });
        context.enter()?;
        let stream = || {
            let mut handle = 0;
            // SAFETY: The pointer is to a live integer, and the context is current.
            unsafe { context.driver.stream_create(&mut handle, STREAM_ALONE) }
                .map_err(|status| context.error(status))?;
            Ok(Owned { handle, context: Arc::clone(&context) })
        };
        Ok(Stream {
            stream: stream()?,
            beside: stream()?,
            nvrtc: Arc::clone(&device.nvrtc),
            target: device.compiler().map(|(_, target)| target).map_err(|error| {
                Unusable(match error {
                    Error::Library { reason, .. } => reason,
                    other => other.to_string(),
                })
            }),
            name: info.name.clone(),
            driver_version: info.driver.clone(),
            memory: info.memory,
            context,
        })
    }

    fn driver(&self) -> &Driver {
        &self.context.driver
    }

    fn error(&self, status: Status) -> Error {
        self.context.error(status)
    }

    fn side(&self, side: Side) -> Handle {
        match side {
            Side::Launches => self.stream.handle,
            Side::Copies => self.beside.handle,
        }
    }

    fn event(&self, side: Side, flags: u32) -> Result<Event> {
        let mut handle = 0;
        // SAFETY: The pointer is to a live integer, and the context is current.
        unsafe { self.driver().event_create(&mut handle, flags) }.map_err(|s| self.error(s))?;
        let event = Event { handle, context: Arc::clone(&self.context) };
        // SAFETY: Event and stream are live and of one context.
        unsafe { self.driver().event_record(handle, self.side(side)) }.map_err(|s| self.error(s))?;
        Ok(event)
    }

    fn load(&self, mut image: Vec<u8>) -> std::result::Result<Module, (Status, String)> {
        // PTX must end in zero; machine code does not mind.
        image.push(0);
        let mut log = vec![0u8; 64 << 10];
        // CU_JIT_ERROR_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES; the size travels as a pointer's value.
        let mut options = [5, 6];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len() - 1)];
        let mut handle = 0;
        // SAFETY: Image, options and log live through the call, and the log's size leaves its last byte 0.
        let loaded = unsafe {
            let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
            self.driver().module_load(&mut handle, image.as_ptr().cast(), 2, options, values)
        };
        match loaded {
            Ok(()) => Ok(Module { handle, context: Arc::clone(&self.context) }),
            Err(status) => {
                let end = log.iter().position(|byte| *byte == 0).unwrap_or(0);
                Err((status, String::from_utf8_lossy(&log[..end]).trim().to_owned()))
            }
        }
    }

    /// Lets the driver translate PTX that the caller brought.
    fn load_ptx(&self, ptx: &str) -> Result<(Module, Build)> {
        let compiler = "the driver, from PTX made elsewhere";
        let module = self
            .load(ptx.as_bytes().to_vec())
            .map_err(|(status, linker)| self.refused(compiler, status, [String::new(), linker]))?;
        Ok((module, Build { from_ptx: true, ..Build::default() }))
    }

    /// The error of an image that did not load: what the driver says of the image itself belongs to the compiler's log.
    fn refused(&self, compiler: &str, status: Status, logs: [String; 2]) -> Error {
        match self.error(status) {
            Error::Code { .. } => {
                let parts = logs.into_iter().chain([self.driver().describe(status)]);
                let log = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
                Error::Compile { device: self.context.id.clone(), compiler: compiler.to_owned(), log }
            }
            error => error,
        }
    }

    fn missing(&self, what: &'static str, name: &str) -> Error {
        Error::Missing { device: self.context.id.clone(), what, name: name.to_owned() }
    }

    fn terminated(&self, what: &'static str, name: &str) -> Result<CString> {
        CString::new(name).map_err(|_| self.missing(what, name))
    }

    fn attribute(&self, function: Handle, attribute: c_int) -> Option<u32> {
        let mut value = 0;
        // SAFETY: The pointer is to a live integer, and the function belongs to a loaded module.
        unsafe { self.driver().function_attribute(&mut value, attribute, function) }.ok()?;
        u32::try_from(value).ok()
    }
}

impl Raw for Stream {
    type Program = Module;
    type Kernel = Handle;
    type Memory = Memory;
    type Host = Pinned;
    type Event = Event;

    fn build(&self, source: &Source<'_>, options: &Options) -> Result<(Module, Build)> {
        self.context.enter()?;
        if options.extra.iter().map(String::as_str).chain([source.text]).any(|text| text.contains('\0')) {
            return Err(Error::usage(&self.context.id, "the kernel text or an option holds a zero byte"));
        }
        let library = |why: &Unusable| Error::Library { name: "nvrtc", reason: why.to_string() };
        let nvrtc = (*self.nvrtc).as_ref().map_err(library);
        let target = self.target.as_ref().map_err(library);
        let (nvrtc, target) = match (nvrtc, target, source.ptx) {
            (Ok(nvrtc), Ok(target), _) => (nvrtc, *target),
            (_, _, Some(ptx)) => return self.load_ptx(ptx),
            (Err(error), ..) | (_, Err(error), None) => return Err(error),
        };
        let arguments = Nvrtc::options(target, &options.extra);
        let compiler = nvrtc.name();
        let mut parts = vec!["cuda", &self.name, &self.driver_version, &compiler, source.key, source.text];
        parts.extend(arguments.iter().map(String::as_str));
        let entry = CacheEntry::new(&options.cache, &parts);
        // A stored image the driver refuses is compiled anew.
        if let Some(module) = entry.load().and_then(|image| self.load(image).ok()) {
            return Ok((module, Build { cached: true, ..Build::default() }));
        }
        match nvrtc.compile(source.text, target, &arguments) {
            Ok(Outcome::Image(image, log)) => {
                let module = self
                    .load(image.clone())
                    .map_err(|(status, linker)| self.refused(&compiler, status, [log.clone(), linker]))?;
                entry.store(&image);
                Ok((module, Build { log, ..Build::default() }))
            }
            Ok(Outcome::Refused(log)) => {
                Err(Error::Compile { device: self.context.id.clone(), compiler: compiler.clone(), log })
            }
            Err(why) => Err(library(&why)),
        }
    }

    fn kernel(&self, program: &Module, name: &str) -> Result<Handle> {
        self.context.enter()?;
        let text = self.terminated("kernel", name)?;
        let mut function = 0;
        // SAFETY: The module is live, and the name ends in zero.
        match unsafe { self.driver().module_function(&mut function, program.handle, text.as_ptr()) } {
            Ok(()) => Ok(function),
            Err(status) if status.code == NOT_FOUND => Err(self.missing("kernel", name)),
            Err(status) => Err(self.error(status)),
        }
    }

    fn resources(&self, kernel: &Handle) -> Resources {
        if self.context.enter().is_err() {
            return Resources::default();
        }
        // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, SHARED_SIZE_BYTES, LOCAL_SIZE_BYTES, NUM_REGS.
        Resources {
            max_threads: self.attribute(*kernel, 0),
            shared_bytes: self.attribute(*kernel, 1).map(u64::from),
            local_bytes: self.attribute(*kernel, 3).map(u64::from),
            registers: self.attribute(*kernel, 4),
        }
    }

    fn occupancy(&self, kernel: &Handle, block: u32) -> Option<u32> {
        self.context.enter().ok()?;
        let mut blocks = 0;
        let threads = c_int::try_from(block).ok()?;
        // SAFETY: The pointer is to a live integer, and the function belongs to a loaded module.
        unsafe { self.driver().occupancy(&mut blocks, *kernel, threads, 0) }.ok()?;
        u32::try_from(blocks).ok()
    }

    fn symbol(&self, program: &Module, name: &str) -> Result<(Memory, u64)> {
        self.context.enter()?;
        let text = self.terminated("symbol", name)?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: The pointers are to live integers, the module is live, and the name ends in zero.
        match unsafe { self.driver().module_global(&mut address, &mut bytes, program.handle, text.as_ptr()) }
        {
            Ok(()) => Ok((Memory { address, owner: None }, bytes as u64)),
            Err(status) if status.code == NOT_FOUND => Err(self.missing("symbol", name)),
            Err(status) => Err(self.error(status)),
        }
    }

    fn alloc(&self, bytes: u64) -> Result<Memory> {
        self.context.enter()?;
        let memory = || Error::Memory {
            device: self.context.id.clone(),
            asked: bytes,
            free: self.context.free_memory(),
        };
        // More than there is may come back as an invalid value; it is the same refusal.
        let size = usize::try_from(bytes).ok().filter(|_| bytes <= self.memory).ok_or_else(memory)?;
        let mut address = 0;
        // SAFETY: The pointer is to a live integer.
        match unsafe { self.driver().memory_alloc(&mut address, size) } {
            Ok(()) => Ok(Memory { address, owner: Some(Arc::clone(&self.context)) }),
            Err(status) if status.code == OUT_OF_MEMORY => Err(memory()),
            Err(status) => Err(self.error(status)),
        }
    }

    fn host(&self, bytes: usize) -> Result<Pinned> {
        self.context.enter()?;
        let mut pointer = std::ptr::null_mut();
        // Flags 0: cached memory. Write-combined memory would be very slow to read.
        // SAFETY: The pointer is to a live pointer; `Pinned` frees what is allocated here.
        unsafe { self.driver().host_alloc(&mut pointer, bytes, 0) }.map_err(|status| {
            match self.error(status) {
                Error::Memory { device, .. } => Error::Memory { device, asked: bytes as u64, free: None },
                error => error,
            }
        })?;
        Ok(Pinned { pointer, bytes, context: Arc::clone(&self.context) })
    }

    unsafe fn copy_in(
        &self,
        side: Side,
        to: &Memory,
        offset: u64,
        from: &Pinned,
        bytes: usize,
    ) -> Result<Event> {
        self.context.enter()?;
        let address = to.address + offset;
        // SAFETY: The caller vouches for both ranges and for the block until the event.
        unsafe { self.driver().copy_in(address, from.pointer, bytes, self.side(side)) }
            .map_err(|s| self.error(s))?;
        self.event(side, EVENT_SLEEPS | EVENT_NO_TIME)
    }

    fn follow(&self, side: Side) -> Result<()> {
        self.context.enter()?;
        let other = if side == Side::Launches { Side::Copies } else { Side::Launches };
        let event = self.event(other, EVENT_SLEEPS | EVENT_NO_TIME)?;
        // SAFETY: Stream and event are live and of one context; the wait outlasts the event's handle.
        unsafe { self.driver().stream_follow(self.side(side), event.handle, 0) }.map_err(|s| self.error(s))
    }

    unsafe fn copy_out(&self, from: &Memory, offset: u64, to: &Pinned, bytes: usize) -> Result<Event> {
        self.context.enter()?;
        let address = from.address + offset;
        // SAFETY: The caller vouches for both ranges and for the block until the event.
        unsafe { self.driver().copy_out(to.pointer, address, bytes, self.stream.handle) }
            .map_err(|s| self.error(s))?;
        self.event(Side::Launches, EVENT_SLEEPS | EVENT_NO_TIME)
    }

    fn zero(&self, memory: &Memory, offset: u64, bytes: u64) -> Result<()> {
        self.context.enter()?;
        let address = memory.address + offset;
        // SAFETY: The queue has checked that the range lies within the memory.
        unsafe { self.driver().fill(address, 0, bytes as usize, self.stream.handle) }
            .map_err(|s| self.error(s))
    }

    fn launch(
        &self,
        kernel: &Handle,
        name: &str,
        groups: u32,
        block: u32,
        args: &[RawArg<'_, Memory>],
    ) -> Result<()> {
        self.context.enter()?;
        let mut packed = pack(args);
        let mut size = packed.len();
        // The packed form, because the other one makes the driver read as many pointers as the kernel has
        // parameters, however few the caller gave. The tags are those of CU_LAUNCH_PARAM_*.
        let mut extra = [
            std::ptr::without_provenance_mut(1),
            packed.as_mut_ptr().cast::<c_void>(),
            std::ptr::without_provenance_mut(2),
            (&raw mut size).cast::<c_void>(),
            std::ptr::null_mut(),
        ];
        let (none, stream) = (std::ptr::null_mut(), self.stream.handle);
        // SAFETY: The list ends in the end tag; it and what it points to live through the call, which copies them.
        let launched = unsafe {
            self.driver().launch(*kernel, groups, 1, 1, block, 1, 1, 0, stream, none, extra.as_mut_ptr())
        };
        launched.map_err(|status| match self.error(status) {
            Error::Code { .. } => Error::Launch {
                device: self.context.id.clone(),
                kernel: name.to_owned(),
                groups,
                block,
                reason: self.driver().describe(status),
            },
            error => error,
        })
    }

    fn record(&self) -> Result<Event> {
        self.context.enter()?;
        self.event(Side::Launches, EVENT_SLEEPS)
    }

    fn is_done(&self, event: &Event) -> Result<bool> {
        self.context.enter()?;
        // SAFETY: The event is live.
        match unsafe { self.driver().event_query(event.handle) } {
            Ok(()) => Ok(true),
            Err(status) if status.code == NOT_READY => Ok(false),
            Err(status) => Err(self.error(status)),
        }
    }

    fn wait(&self, event: &Event) -> Result<()> {
        self.context.enter()?;
        // SAFETY: The event is live.
        unsafe { self.driver().event_wait(event.handle) }.map_err(|s| self.error(s))
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Result<f32> {
        self.context.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: The pointer is to a live float; both events are live and keep the time.
        unsafe { self.driver().event_elapsed(&mut milliseconds, from.handle, to.handle) }
            .map_err(|s| self.error(s))?;
        Ok(milliseconds)
    }

    fn finish(&self) -> Result<()> {
        self.context.enter()?;
        for stream in [&self.stream, &self.beside] {
            // SAFETY: The stream is live.
            unsafe { self.driver().stream_wait(stream.handle) }.map_err(|s| self.error(s))?;
        }
        Ok(())
    }
}

/// The arguments as a kernel's parameter block: each at the next multiple of its size.
fn pack(args: &[RawArg<'_, Memory>]) -> Vec<u8> {
    let mut packed = Vec::new();
    for arg in args {
        let (bytes, size) = match arg {
            RawArg::Memory(memory) => (memory.address.to_ne_bytes(), 8),
            RawArg::U64(value) => (value.to_ne_bytes(), 8),
            RawArg::U32(value) => {
                let mut bytes = [0; 8];
                bytes[..4].copy_from_slice(&value.to_ne_bytes());
                (bytes, 4)
            }
        };
        packed.resize(packed.len().next_multiple_of(size), 0);
        packed.extend_from_slice(&bytes[..size]);
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_packed_at_multiples_of_their_size() {
        let memory = Memory { address: 0x1122_3344_5566_7788, owner: None };
        let packed =
            pack(&[RawArg::U32(1), RawArg::Memory(&memory), RawArg::U32(2), RawArg::U32(3), RawArg::U64(4)]);
        let word = |at: usize| u64::from_ne_bytes(packed[at..at + 8].try_into().unwrap());
        assert_eq!(packed.len(), 32);
        assert_eq!(packed[..4], 1u32.to_ne_bytes());
        assert_eq!(word(8), 0x1122_3344_5566_7788);
        assert_eq!(packed[16..20], 2u32.to_ne_bytes());
        assert_eq!(packed[20..24], 3u32.to_ne_bytes());
        assert_eq!(word(24), 4);
        assert_eq!(pack(&[RawArg::Memory(&memory), RawArg::U32(9)]).len(), 12);
    }
}
