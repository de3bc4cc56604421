//! One in-order OpenCL queue: programs, memory, launches and events.
//!
//! A context holds one device. Profiling is on, so that marks keep the time. Nothing here blocks inside the
//! driver: NVIDIA's clWaitForEvents and clFinish keep a core spinning, so waiting is asking the event's status
//! with sleeps between. A second queue is for copies beside launches, and a third serves only to map host memory, which would otherwise
//! wait for the first.

use std::ffi::{CString, c_void};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cl3::{command_queue as cq, context, event, kernel, memory, program, types::*};

use super::{Id, OpenCl, number, text};
use crate::cache::CacheEntry;
use crate::error::{Error, Result};
use crate::queue::{Host, Raw, RawArg, Side};
use crate::{Build, Device, Info, Options, Resources, Source};

const PROFILING: u64 = 2;
const READ_WRITE: u64 = 1;
const ALLOC_HOST_PTR: u64 = 1 << 4;
const MAP_READ_WRITE: u64 = 3;
const FREE_MEMORY_AMD: u32 = 0x4039;
/// The first pause between two looks at an event, and the longest. A batch lasts many milliseconds and the next
/// is enqueued already, so a millisecond of delay costs nothing.
const PAUSE: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));

/// A code with its name.
pub(crate) fn describe(code: cl_int) -> String {
    format!("{} ({code})", name(code))
}

fn name(code: cl_int) -> &'static str {
    match code {
        -9999 => "an illegal memory access",
        code => cl3::error_codes::error_text(code),
    }
}

/// The context and queues of one stream.
struct Context {
    context: cl_context,
    queue: cl_command_queue,
    /// From the first copy beside launches on: whoever has none is served as if there were no such thing.
    beside: OnceLock<cl_command_queue>,
    side: cl_command_queue,
    device: Id,
    info: Info,
}

// SAFETY: OpenCL's functions are thread-safe but for clSetKernelArg on one kernel, and kernels are never shared.
unsafe impl Send for Context {}
// SAFETY: As above.
unsafe impl Sync for Context {}

impl Context {
    /// The error a code of a call is.
    fn error(&self, call: &str, code: cl_int) -> Error {
        let device = self.info.id.clone();
        match code {
            // Out of device memory (drivers allocate late, so any call may say so), or of host memory.
            -4 | -6 => Error::Memory { device, asked: 0, free: self.free_memory() },
            // What NVIDIA answers after a kernel crashed: out of resources, an invalid queue, its own code; and
            // an error in an event waited for. A device that went away.
            -5 | -14 | -36 | -9999 | -2 => {
                Error::Lost { device, reason: format!("{call} returned {}", describe(code)) }
            }
            _ => Error::Code {
                device,
                call: call.to_owned(),
                name: name(code).to_owned(),
                code,
                text: String::new(),
            },
        }
    }

    /// Bytes free on the device, where the driver tells.
    fn free_memory(&self) -> Option<u64> {
        // The first of two sizes in KiB: all that is free.
        let bytes = self.device.bytes(FREE_MEMORY_AMD)?;
        Some(number(bytes.get(..size_of::<usize>())?)? * 1024)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: Each was created once and is used no more. OpenCL counts references: what is still enqueued or
        // was made in the context keeps it alive.
        unsafe {
            let _ = cq::release_command_queue(self.queue);
            if let Some(beside) = self.beside.take() {
                let _ = cq::release_command_queue(beside);
            }
            let _ = cq::release_command_queue(self.side);
            let _ = context::release_context(self.context);
        }
    }
}

/// Declares an owner of an OpenCL object, released on drop.
macro_rules! owner {
    ($(#[$attribute:meta])* $name:ident($handle:ty), $release:path) => {
        $(#[$attribute])*
        pub(crate) struct $name($handle);

        // SAFETY: The handle is used by one queue, from one thread at a time.
        unsafe impl Send for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: The value owns one reference, given back here. A failure has nobody to tell.
                let _ = unsafe { $release(self.0) };
            }
        }
    };
}

owner!(
    /// A built program.
    Program(cl_program), program::release_program
);
owner!(
    /// An entry point.
    Kernel(cl_kernel), kernel::release_kernel
);
owner!(
    /// Device memory.
    Memory(cl_mem), memory::release_mem_object
);
owner!(
    /// A command's event.
    Event(cl_event), event::release_event
);

/// Host memory the driver has pinned: a buffer of its own, mapped for all its life.
pub(crate) struct Pinned {
    memory: Memory,
    pointer: *mut c_void,
    bytes: usize,
    context: Arc<Context>,
}

// SAFETY: The mapping belongs to the value alone, and any thread may end it.
unsafe impl Send for Pinned {}

impl Host for Pinned {
    fn pointer(&self) -> *mut u8 {
        self.pointer.cast()
    }

    fn len(&self) -> usize {
        self.bytes
    }

    fn abandon(self) {
        // A read under way does not hold the memory it writes to, so neither unmapping nor releasing is safe.
        std::mem::forget(self);
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let none = std::ptr::null();
        // SAFETY: The memory is mapped at this pointer, and no copy uses it: the queue sees to that.
        let unmapped =
            unsafe { cq::enqueue_unmap_mem_object(self.context.side, self.memory.0, self.pointer, 0, none) };
        drop(unmapped.map(Event));
    }
}

/// One queue.
pub(crate) struct Stream {
    /// What marks write to.
    scratch: Memory,
    context: Arc<Context>,
}

impl Stream {
    /// Opens a queue on a device.
    pub fn open(device: &OpenCl) -> Result<Stream> {
        let info = device.info().clone();
        let failed = |call: &str, code| Error::Code {
            device: info.id.clone(),
            call: call.to_owned(),
            name: name(code).to_owned(),
            code,
            text: String::new(),
        };
        let id = device.device.0;
        let context = context::create_context(&[id], std::ptr::null(), None, std::ptr::null_mut())
            .map_err(|code| failed("clCreateContext", code))?;
        let release = |code| {
            // SAFETY: The context was just created, and nothing else holds it.
            let _ = unsafe { context::release_context(context) };
            failed("clCreateCommandQueue", code)
        };
        // SAFETY: The device belongs to the context.
        let queue = unsafe { cq::create_command_queue(context, id, PROFILING) }.map_err(release)?;
        // SAFETY: As above.
        let side = unsafe { cq::create_command_queue(context, id, 0) }.map_err(|code| {
            // SAFETY: The queue was just created, and nothing else holds it.
            let _ = unsafe { cq::release_command_queue(queue) };
            release(code)
        })?;
        let beside = OnceLock::new();
        let context = Arc::new(Context { context, queue, beside, side, device: device.device, info });
        Ok(Stream { scratch: create(&context, READ_WRITE, 4)?, context })
    }

    fn id(&self) -> String {
        self.context.info.id.clone()
    }

    fn error(&self, call: &str, code: cl_int) -> Error {
        self.context.error(call, code)
    }

    /// The queue of a side.
    fn side(&self, side: Side) -> Result<cl_command_queue> {
        let Context { context, queue, beside, device, .. } = &*self.context;
        match (side, beside.get()) {
            (Side::Launches, _) => Ok(*queue),
            (Side::Copies, Some(beside)) => Ok(*beside),
            (Side::Copies, None) => {
                // SAFETY: The device belongs to the context. Nobody else makes it meanwhile: a stream is one thread's at a time.
                let made = unsafe { cq::create_command_queue(*context, device.0, 0) };
                let made = made.map_err(|code| self.error("clCreateCommandQueue", code))?;
                Ok(*beside.get_or_init(|| made))
            }
        }
    }

    /// Sends what is enqueued to the device; drivers may hold it back otherwise.
    fn flush(&self) -> Result<()> {
        self.flush_side(Side::Launches)
    }

    fn flush_side(&self, side: Side) -> Result<()> {
        cq::flush(self.side(side)?).map_err(|code| self.error("clFlush", code))
    }

    /// An event that happens when all that is enqueued on a side is done.
    fn end_of(&self, side: Side) -> Result<Event> {
        // SAFETY: The queue is live, and there is no list.
        let marked = unsafe { cq::enqueue_marker_with_wait_list(self.side(side)?, 0, std::ptr::null()) };
        let event = marked.map(Event).map_err(|code| self.error("clEnqueueMarkerWithWaitList", code))?;
        self.flush_side(side)?;
        Ok(event)
    }

    fn fill(&self, memory: &Memory, offset: u64, bytes: u64) -> Result<Event> {
        // The widest pattern both numbers allow: narrow ones are slow with some drivers.
        let width = 1usize << (offset | bytes | 16).trailing_zeros();
        let zeros = [0u64; 2];
        // SAFETY: The memory is live, the range was checked, and the pattern is copied during the call.
        let filled = unsafe {
            let pattern = zeros.as_ptr().cast::<c_void>();
            let (offset, bytes) = (offset as usize, bytes as usize);
            cq::enqueue_fill_buffer(
                self.context.queue,
                memory.0,
                pattern,
                width,
                offset,
                bytes,
                0,
                std::ptr::null(),
            )
        };
        filled.map(Event).map_err(|code| self.error("clEnqueueFillBuffer", code))
    }

    /// Builds a program object; the error is the code and the whole log.
    fn make(&self, program: &Program, options: &CString) -> std::result::Result<String, (cl_int, String)> {
        let device = self.context.device.0;
        let built = program::build_program(program.0, &[device], options, None, std::ptr::null_mut());
        // CL_PROGRAM_BUILD_LOG.
        let log = program::get_program_build_data(program.0, device, 0x1183)
            .map(|log| text(&log))
            .unwrap_or_default();
        match built {
            Ok(()) => Ok(log),
            Err(code) => Err((code, log)),
        }
    }

    /// The program's machine code, where the driver gives it.
    fn image(&self, program: &Program) -> Option<Vec<u8>> {
        // CL_PROGRAM_BINARIES; the context has one device, so there is one.
        match program::get_program_info(program.0, 0x1166).ok()? {
            cl3::info_type::InfoType::VecVecUchar(mut images) => {
                images.pop().filter(|image| !image.is_empty())
            }
            _ => None,
        }
    }

    fn ask(&self, kernel: &Kernel, question: u32) -> Option<u64> {
        number(&kernel::get_kernel_work_group_data(kernel.0, self.context.device.0, question).ok()?)
    }

    fn set(
        &self,
        kernel: &Kernel,
        index: usize,
        value: &RawArg<'_, Memory>,
    ) -> std::result::Result<(), cl_int> {
        let (size, pointer) = match value {
            RawArg::Memory(memory) => (size_of::<cl_mem>(), (&raw const memory.0).cast::<c_void>()),
            RawArg::U32(value) => (4, (&raw const *value).cast::<c_void>()),
            RawArg::U64(value) => (8, (&raw const *value).cast::<c_void>()),
        };
        // SAFETY: The pointer is to a live value of this size, copied during the call. That the kernel's
        // parameter has this type is the launch's contract; most drivers check it. Only this queue uses the kernel.
        unsafe { kernel::set_kernel_arg(kernel.0, index as cl_uint, size, pointer) }
    }
}

fn create(context: &Context, flags: u64, bytes: usize) -> Result<Memory> {
    // SAFETY: The context is live, and no host memory is handed over.
    let made = unsafe { memory::create_buffer(context.context, flags, bytes, std::ptr::null_mut()) };
    made.map(Memory).map_err(|code| match code {
        // Allocation failed, out of resources, out of host memory, an invalid size.
        -4 | -5 | -6 | -61 => Error::Memory {
            device: context.info.id.clone(),
            asked: bytes as u64,
            free: context.free_memory().or(Some(context.info.largest_buffer)),
        },
        code => context.error("clCreateBuffer", code),
    })
}

impl Raw for Stream {
    type Program = Program;
    type Kernel = Kernel;
    type Memory = Memory;
    type Host = Pinned;
    type Event = Event;

    fn build(&self, source: &Source<'_>, options: &Options) -> Result<(Program, Build)> {
        let info = &self.context.info;
        let arguments = options.extra.join(" ");
        let zero = |_| Error::usage(&info.id, "a compiler option holds a zero byte");
        let terminated = CString::new(arguments.as_str()).map_err(zero)?;
        let parts = ["opencl", &info.name, &info.arch, &info.driver, &arguments, source.key, source.text];
        let entry = CacheEntry::new(&options.cache, &parts);
        if let Some(image) = entry.load() {
            let (context, device) = (self.context.context, self.context.device.0);
            // SAFETY: The device belongs to the context. One image, since cl3 passes the list of slices on as it
            // is, which is right for one alone. The image is the one this driver gave, by its checksum.
            let loaded = unsafe { program::create_program_with_binary(context, &[device], &[&image]) };
            // An image the driver refuses is compiled anew.
            if let Ok(program) = loaded.map(Program)
                && self.make(&program, &terminated).is_ok()
            {
                return Ok((program, Build { cached: true, ..Build::default() }));
            }
        }
        // One text, for the same reason.
        let program = program::create_program_with_source(self.context.context, &[source.text])
            .map(Program)
            .map_err(|code| self.error("clCreateProgramWithSource", code))?;
        let log = self.make(&program, &terminated).map_err(|(code, log)| {
            let log =
                if log.is_empty() { format!("clBuildProgram returned {}", describe(code)) } else { log };
            Error::Compile { device: self.id(), compiler: format!("OpenCL, driver {}", info.driver), log }
        })?;
        if let Some(image) = self.image(&program) {
            entry.store(&image);
        }
        Ok((program, Build { log, ..Build::default() }))
    }

    fn kernel(&self, program: &Program, name: &str) -> Result<Kernel> {
        let missing = || Error::Missing { device: self.id(), what: "kernel", name: name.to_owned() };
        let text = CString::new(name).map_err(|_| missing())?;
        kernel::create_kernel(program.0, &text).map(Kernel).map_err(|code| match code {
            // CL_INVALID_KERNEL_NAME.
            -46 => missing(),
            code => self.error("clCreateKernel", code),
        })
    }

    fn resources(&self, kernel: &Kernel) -> Resources {
        // CL_KERNEL_PRIVATE_MEM_SIZE, LOCAL_MEM_SIZE, WORK_GROUP_SIZE; OpenCL does not tell registers.
        Resources {
            registers: None,
            local_bytes: self.ask(kernel, 0x11B4),
            shared_bytes: self.ask(kernel, 0x11B2),
            max_threads: self.ask(kernel, 0x11B0).map(|threads| u32::try_from(threads).unwrap_or(u32::MAX)),
        }
    }

    fn occupancy(&self, _kernel: &Kernel, _block: u32) -> Option<u32> {
        None
    }

    fn symbol(&self, _program: &Program, name: &str) -> Result<(Memory, u64)> {
        let what = format!("OpenCL has no symbols a host can set; pass '{name}' as a buffer");
        Err(Error::usage(&self.context.info.id, what))
    }

    fn alloc(&self, bytes: u64) -> Result<Memory> {
        // Drivers allocate late and would fail at the first use, so the limit they state is held here.
        let most = self.context.info.largest_buffer;
        match usize::try_from(bytes) {
            Ok(size) if bytes <= most => create(&self.context, READ_WRITE, size),
            _ => Err(Error::Memory { device: self.id(), asked: bytes, free: Some(most) }),
        }
    }

    fn host(&self, bytes: usize) -> Result<Pinned> {
        let memory = create(&self.context, READ_WRITE | ALLOC_HOST_PTR, bytes)?;
        let mut pointer = std::ptr::null_mut();
        // SAFETY: The memory is live and has this size. The map blocks, on a queue that is always empty.
        let mapped = unsafe {
            let side = self.context.side;
            cq::enqueue_map_buffer(
                side,
                memory.0,
                CL_TRUE,
                MAP_READ_WRITE,
                0,
                bytes,
                &mut pointer,
                0,
                std::ptr::null(),
            )
        };
        drop(mapped.map(Event).map_err(|code| self.error("clEnqueueMapBuffer", code))?);
        Ok(Pinned { memory, pointer, bytes, context: Arc::clone(&self.context) })
    }

    unsafe fn copy_in(
        &self,
        side: Side,
        to: &Memory,
        offset: u64,
        from: &Pinned,
        bytes: usize,
    ) -> Result<Event> {
        // SAFETY: The caller vouches for both ranges and for the block until the event.
        let copied = unsafe {
            let (queue, none) = (self.side(side)?, std::ptr::null());
            cq::enqueue_write_buffer(queue, to.0, CL_FALSE, offset as usize, bytes, from.pointer, 0, none)
        };
        let event = copied.map(Event).map_err(|code| self.error("clEnqueueWriteBuffer", code))?;
        self.flush_side(side)?;
        Ok(event)
    }

    fn follow(&self, side: Side) -> Result<()> {
        let other = if side == Side::Launches { Side::Copies } else { Side::Launches };
        let before = self.end_of(other)?;
        // SAFETY: The list is of one live event, and is read during the call, which keeps the event as long as it is needed.
        let waits = unsafe { cq::enqueue_barrier_with_wait_list(self.side(side)?, 1, &before.0) };
        drop(waits.map(Event).map_err(|code| self.error("clEnqueueBarrierWithWaitList", code))?);
        self.flush_side(side)
    }

    unsafe fn copy_out(&self, from: &Memory, offset: u64, to: &Pinned, bytes: usize) -> Result<Event> {
        // SAFETY: The caller vouches for both ranges and for the block until the event.
        let copied = unsafe {
            let (queue, none) = (self.context.queue, std::ptr::null());
            cq::enqueue_read_buffer(queue, from.0, CL_FALSE, offset as usize, bytes, to.pointer, 0, none)
        };
        let event = copied.map(Event).map_err(|code| self.error("clEnqueueReadBuffer", code))?;
        self.flush()?;
        Ok(event)
    }

    fn zero(&self, memory: &Memory, offset: u64, bytes: u64) -> Result<()> {
        self.fill(memory, offset, bytes).map(|_| ())
    }

    fn launch(
        &self,
        kernel: &Kernel,
        name: &str,
        groups: u32,
        block: u32,
        args: &[RawArg<'_, Memory>],
    ) -> Result<()> {
        let launch =
            |reason| Error::Launch { device: self.id(), kernel: name.to_owned(), groups, block, reason };
        // CL_KERNEL_NUM_ARGS. Arguments of an earlier launch would otherwise stand in for missing ones.
        let wanted = kernel::get_kernel_data(kernel.0, 0x1191).ok().and_then(|bytes| number(&bytes));
        if wanted.is_some_and(|wanted| wanted != args.len() as u64) {
            let (wanted, given) = (wanted.unwrap_or(0), args.len());
            return Err(launch(format!("it has {wanted} parameters, and {given} arguments were given")));
        }
        for (i, arg) in args.iter().enumerate() {
            self.set(kernel, i, arg).map_err(|code| {
                launch(format!("clSetKernelArg of argument {i} returned {}", describe(code)))
            })?;
        }
        let (global, local) = ([groups as usize * block as usize], [block as usize]);
        // SAFETY: All arguments are set; the sizes are of one dimension and are read during the call.
        let launched = unsafe {
            let (global, local, none) = (global.as_ptr(), local.as_ptr(), std::ptr::null());
            let queue = self.context.queue;
            cq::enqueue_nd_range_kernel(queue, kernel.0, 1, std::ptr::null(), global, local, 0, none)
        };
        match launched {
            Ok(event) => drop(Event(event)),
            // Here the kernel has not started: too many resources is a matter of its shape.
            Err(code @ (-5 | -4)) => return Err(launch(describe(code))),
            Err(code) => {
                return Err(match self.error("clEnqueueNDRangeKernel", code) {
                    Error::Code { .. } => launch(describe(code)),
                    error => error,
                });
            }
        }
        self.flush()
    }

    fn record(&self) -> Result<Event> {
        // A small real command and not a marker: some drivers keep no time for markers.
        let event = self.fill(&self.scratch, 0, 4)?;
        self.flush()?;
        Ok(event)
    }

    fn is_done(&self, event: &Event) -> Result<bool> {
        // CL_EVENT_COMMAND_EXECUTION_STATUS: 0 is complete, above that waiting, below it failed.
        let status = event::get_event_data(event.0, 0x11D3)
            .map_err(|code| self.error("clGetEventInfo", code))
            .map(|bytes| number(&bytes).unwrap_or(0) as u32 as cl_int)?;
        if status < 0 {
            let reason = format!("a command ended with {}", describe(status));
            return Err(Error::Lost { device: self.id(), reason });
        }
        Ok(status == 0)
    }

    fn wait(&self, event: &Event) -> Result<()> {
        let (mut pause, longest) = PAUSE;
        while !self.is_done(event)? {
            std::thread::sleep(pause);
            pause = (pause * 2).min(longest);
        }
        Ok(())
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Result<f32> {
        // CL_PROFILING_COMMAND_END, in nanoseconds.
        let end = |event: &Event| {
            let bytes = event::get_event_profiling_data(event.0, 0x1283)
                .map_err(|code| self.error("clGetEventProfilingInfo", code))?;
            Ok(number(&bytes).unwrap_or(0))
        };
        Ok((end(to)?.wrapping_sub(end(from)?) as i64) as f32 / 1e6)
    }

    fn finish(&self) -> Result<()> {
        if self.context.beside.get().is_some() {
            self.wait(&self.end_of(Side::Copies)?)?;
        }
        self.wait(&self.record()?)
    }
}
