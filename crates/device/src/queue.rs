//! The queue both interfaces share: handles, bounds, host memory in flight, marks.
//!
//! An interface supplies [`Raw`], a thin layer over its calls; [`InOrder`] makes a [`Queue`] of it. All copies
//! go through pinned host memory that the queue owns: a copy never touches a caller's memory after the call
//! that started it returned, so the safe interface stays sound while copies are asynchronous.
//! Host memory a lost device may still write to is leaked, never reused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result};
use crate::{Arg, Buffer, Build, Kernel, Later, Mark, Options, Program, Queue, Resources, Source};

/// The largest piece a write or a blocking read is cut into.
const PIECE: usize = 4 << 20;
/// How many pieces of writes may be under way before the host waits for the first.
const WRITES: usize = 16;
/// How many marks are kept.
const MARKS: usize = 64;

/// Pinned host memory. The pointer is valid for `len` bytes until the value is dropped.
pub(crate) trait Host: Send + Sized {
    fn pointer(&self) -> *mut u8;
    fn len(&self) -> usize;
    /// Never gives the memory back, because the device may still write to it; lets go of all else.
    fn abandon(self);
}

/// An argument of a launch, looked up.
pub(crate) enum RawArg<'a, M> {
    Memory(&'a M),
    U32(u32),
    U64(u64),
}

/// The two sequences of work. Each is in order; [`Raw::follow`] orders one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Launches, and copies in order with them.
    Launches,
    /// Copies to the device beside launches.
    Copies,
}

/// What an interface supplies. One value is one in-order stream of work, and one of copies beside it; its objects release themselves.
pub(crate) trait Raw: Send {
    type Program: Send;
    type Kernel: Send;
    type Memory: Send;
    type Host: Host;
    type Event: Send;

    fn build(&self, source: &Source<'_>, options: &Options) -> Result<(Self::Program, Build)>;
    fn kernel(&self, program: &Self::Program, name: &str) -> Result<Self::Kernel>;
    fn resources(&self, kernel: &Self::Kernel) -> Resources;
    fn occupancy(&self, kernel: &Self::Kernel, block: u32) -> Option<u32>;
    /// The memory and size of a variable the host may set; it lives as long as the program.
    fn symbol(&self, program: &Self::Program, name: &str) -> Result<(Self::Memory, u64)>;
    /// `bytes` is not zero.
    fn alloc(&self, bytes: u64) -> Result<Self::Memory>;
    fn host(&self, bytes: usize) -> Result<Self::Host>;
    /// Enqueues a copy of the host block's first bytes to the device.
    ///
    /// # Safety
    ///
    /// Both ranges lie within their memory. The block is neither dropped nor written to before the event.
    unsafe fn copy_in(
        &self,
        side: Side,
        to: &Self::Memory,
        offset: u64,
        from: &Self::Host,
        bytes: usize,
    ) -> Result<Self::Event>;
    /// Enqueues a copy from the device to the host block's first bytes.
    ///
    /// # Safety
    ///
    /// Both ranges lie within their memory. The block is neither dropped nor touched before the event.
    unsafe fn copy_out(
        &self,
        from: &Self::Memory,
        offset: u64,
        to: &Self::Host,
        bytes: usize,
    ) -> Result<Self::Event>;
    /// Enqueues zeros; the range lies within the memory and is not empty.
    fn zero(&self, memory: &Self::Memory, offset: u64, bytes: u64) -> Result<()>;
    /// `groups` and `block` are not zero.
    fn launch(
        &self,
        kernel: &Self::Kernel,
        name: &str,
        groups: u32,
        block: u32,
        args: &[RawArg<'_, Self::Memory>],
    ) -> Result<()>;
    /// What is enqueued on this side from now on waits for all that is enqueued on the other.
    fn follow(&self, side: Side) -> Result<()>;
    /// Enqueues an event that keeps the time, among launches.
    fn record(&self) -> Result<Self::Event>;
    fn is_done(&self, event: &Self::Event) -> Result<bool>;
    /// Sleeps until the event has happened.
    fn wait(&self, event: &Self::Event) -> Result<()>;
    /// Milliseconds between two events of [`Raw::record`] that have happened.
    fn elapsed(&self, from: &Self::Event, to: &Self::Event) -> Result<f32>;
    /// Sleeps until both sides are empty.
    fn finish(&self) -> Result<()>;
}

/// A copy to the host under way.
struct Pending<R: Raw> {
    event: R::Event,
    host: R::Host,
    bytes: usize,
}

/// The queue. Fields drop in this order, the stream last.
pub(crate) struct InOrder<R: Raw> {
    id: u32,
    device: String,
    serial: u64,
    marks: VecDeque<(u64, R::Event)>,
    laters: BTreeMap<u64, Pending<R>>,
    writes: VecDeque<(R::Event, R::Host)>,
    spare: Vec<R::Host>,
    kernels: Vec<(String, R::Kernel)>,
    programs: Vec<(R::Program, Build)>,
    /// None where it was given back: an index is never used again.
    buffers: Vec<Option<(R::Memory, u64)>>,
    raw: R,
}

impl<R: Raw> InOrder<R> {
    /// A queue over an empty stream; `device` is for messages.
    pub fn new(raw: R, device: String) -> InOrder<R> {
        static ID: AtomicU32 = AtomicU32::new(0);
        InOrder {
            id: ID.fetch_add(1, Ordering::Relaxed),
            device,
            serial: 0,
            marks: VecDeque::new(),
            laters: BTreeMap::new(),
            writes: VecDeque::new(),
            spare: Vec::new(),
            kernels: Vec::new(),
            programs: Vec::new(),
            buffers: Vec::new(),
            raw,
        }
    }

    fn own<'a, T>(&self, queue: u32, found: Option<&'a T>, what: &str) -> Result<&'a T> {
        found.filter(|_| queue == self.id).ok_or_else(|| {
            let why =
                if queue == self.id { "was given back or is too old" } else { "belongs to another queue" };
            Error::usage(&self.device, format!("this {what} {why}"))
        })
    }

    fn find_program(&self, program: Program) -> Result<&(R::Program, Build)> {
        self.own(program.queue, self.programs.get(program.index as usize), "program")
    }

    fn find_kernel(&self, kernel: Kernel) -> Result<&(String, R::Kernel)> {
        self.own(kernel.queue, self.kernels.get(kernel.index as usize), "kernel")
    }

    fn find_buffer(&self, buffer: Buffer) -> Result<&(R::Memory, u64)> {
        let found = self.buffers.get(buffer.index as usize).and_then(Option::as_ref);
        self.own(buffer.queue, found, "buffer")
    }

    fn find_mark(&self, mark: Mark) -> Result<&R::Event> {
        let found = self.marks.iter().find(|m| m.0 == mark.index).map(|m| &m.1);
        self.own(mark.queue, found, "mark")
    }

    /// The buffer's memory, if the range lies within it.
    fn range(&self, buffer: Buffer, offset: u64, bytes: u64) -> Result<&R::Memory> {
        let (memory, size) = self.find_buffer(buffer)?;
        match offset.checked_add(bytes) {
            Some(end) if end <= *size => Ok(memory),
            _ => {
                let what = format!("{bytes} bytes at {offset} lie outside a buffer of {size} bytes");
                Err(Error::usage(&self.device, what))
            }
        }
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Host memory for at least so many bytes, used before if possible. Sizes are powers of two, so that few
    /// blocks serve many sizes.
    fn take_host(&mut self, bytes: usize) -> Result<R::Host> {
        while let Some((event, _)) = self.writes.front() {
            if self.writes.len() >= WRITES {
                self.raw.wait(event)?;
            } else if !self.raw.is_done(event)? {
                break;
            }
            self.spare.extend(self.writes.pop_front().map(|write| write.1));
        }
        let size = bytes.next_power_of_two().max(4096);
        match self.spare.iter().position(|host| host.len() == size) {
            Some(i) => Ok(self.spare.swap_remove(i)),
            None => self.raw.host(size),
        }
    }

    /// Enqueues a write of at most one piece through a block that is large enough and not in use.
    ///
    /// # Safety
    ///
    /// The memory has room for the data at `offset`.
    unsafe fn send(
        raw: &R,
        side: Side,
        writes: &mut VecDeque<(R::Event, R::Host)>,
        host: R::Host,
        (memory, offset): (&R::Memory, u64),
        data: &[u8],
    ) -> Result<()> {
        debug_assert!(data.len() <= host.len());
        // SAFETY: The block has room and is ours alone, so it does not overlap the caller's memory.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), host.pointer(), data.len()) };
        // SAFETY: The caller vouches for the range; the block stays in `writes` until the event, or is leaked.
        match unsafe { raw.copy_in(side, memory, offset, &host, data.len()) } {
            Ok(event) => {
                writes.push_back((event, host));
                Ok(())
            }
            Err(error) => {
                host.abandon();
                Err(error)
            }
        }
    }

    /// Copies into a buffer, piece by piece.
    fn put(&mut self, side: Side, buffer: Buffer, offset: u64, data: &[u8]) -> Result<()> {
        self.range(buffer, offset, data.len() as u64)?;
        for (i, piece) in data.chunks(PIECE).enumerate() {
            let host = self.take_host(piece.len())?;
            if let Some((memory, _)) = &self.buffers[buffer.index as usize] {
                let place = (memory, offset + (i * PIECE) as u64);
                // SAFETY: The buffer has room for all of the data, as was checked.
                unsafe { Self::send(&self.raw, side, &mut self.writes, host, place, piece)? };
            }
        }
        Ok(())
    }

    fn begin_read(&mut self, buffer: Buffer, offset: u64, bytes: u64) -> Result<Pending<R>> {
        self.range(buffer, offset, bytes)?;
        let bytes =
            usize::try_from(bytes).map_err(|_| Error::usage(&self.device, "the read is too large"))?;
        let host = self.take_host(bytes)?;
        let memory = self.range(buffer, offset, bytes as u64)?;
        // SAFETY: Both ranges were checked; the block is held in `Pending` until the event, or leaked.
        match unsafe { self.raw.copy_out(memory, offset, &host, bytes) } {
            Ok(event) => Ok(Pending { event, host, bytes }),
            Err(error) => {
                host.abandon();
                Err(error)
            }
        }
    }

    fn end_read(&mut self, pending: Pending<R>, take: impl FnOnce(&[u8])) -> Result<()> {
        let Pending { event, host, bytes } = pending;
        if let Err(error) = self.raw.wait(&event) {
            host.abandon();
            return Err(error);
        }
        // SAFETY: The copy is done, so the block's first bytes are initialised and nothing writes to them.
        take(unsafe { std::slice::from_raw_parts(host.pointer(), bytes) });
        self.spare.push(host);
        Ok(())
    }
}

impl<R: Raw> Queue for InOrder<R> {
    fn build(&mut self, source: &Source<'_>, options: &Options) -> Result<Program> {
        let built = self.raw.build(source, options)?;
        self.programs.push(built);
        Ok(Program { queue: self.id, index: self.programs.len() as u32 - 1 })
    }

    fn built(&self, program: Program) -> Result<Build> {
        Ok(self.find_program(program)?.1.clone())
    }

    fn kernel(&mut self, program: Program, name: &str) -> Result<Kernel> {
        let kernel = self.raw.kernel(&self.find_program(program)?.0, name)?;
        self.kernels.push((name.to_owned(), kernel));
        Ok(Kernel { queue: self.id, index: self.kernels.len() as u32 - 1 })
    }

    fn resources(&self, kernel: Kernel) -> Resources {
        self.find_kernel(kernel).map(|k| self.raw.resources(&k.1)).unwrap_or_default()
    }

    fn occupancy(&self, kernel: Kernel, block: u32) -> Option<u32> {
        self.raw.occupancy(&self.find_kernel(kernel).ok()?.1, block)
    }

    fn symbol(&mut self, program: Program, name: &str, data: &[u8]) -> Result<()> {
        let (memory, size) = self.raw.symbol(&self.find_program(program)?.0, name)?;
        if data.len() as u64 > size {
            let what = format!("{} bytes do not fit into symbol '{name}' of {size} bytes", data.len());
            return Err(Error::usage(&self.device, what));
        }
        for (i, piece) in data.chunks(PIECE).enumerate() {
            let host = self.take_host(piece.len())?;
            let place = (&memory, (i * PIECE) as u64);
            // SAFETY: The symbol has room for all of the data, as was checked.
            unsafe { Self::send(&self.raw, Side::Launches, &mut self.writes, host, place, piece)? };
        }
        Ok(())
    }

    fn alloc(&mut self, bytes: u64) -> Result<Buffer> {
        if bytes == 0 {
            return Err(Error::usage(&self.device, "a buffer of 0 bytes was asked for"));
        }
        let memory = self.raw.alloc(bytes)?;
        self.buffers.push(Some((memory, bytes)));
        Ok(Buffer { queue: self.id, index: self.buffers.len() as u32 - 1 })
    }

    fn free(&mut self, buffer: Buffer) -> Result<()> {
        self.find_buffer(buffer)?;
        self.buffers[buffer.index as usize] = None;
        Ok(())
    }

    fn write(&mut self, buffer: Buffer, offset: u64, data: &[u8]) -> Result<()> {
        self.put(Side::Launches, buffer, offset, data)
    }

    fn write_beside(&mut self, buffer: Buffer, offset: u64, data: &[u8]) -> Result<()> {
        self.put(Side::Copies, buffer, offset, data)
    }

    fn launches_follow(&mut self) -> Result<()> {
        self.raw.follow(Side::Launches)
    }

    fn copies_follow(&mut self) -> Result<()> {
        self.raw.follow(Side::Copies)
    }

    fn read(&mut self, buffer: Buffer, offset: u64, data: &mut [u8]) -> Result<()> {
        self.range(buffer, offset, data.len() as u64)?;
        for (i, piece) in data.chunks_mut(PIECE).enumerate() {
            let pending = self.begin_read(buffer, offset + (i * PIECE) as u64, piece.len() as u64)?;
            self.end_read(pending, |bytes| piece.copy_from_slice(bytes))?;
        }
        Ok(())
    }

    fn zero(&mut self, buffer: Buffer, offset: u64, bytes: u64) -> Result<()> {
        let memory = self.range(buffer, offset, bytes)?;
        if bytes == 0 { Ok(()) } else { self.raw.zero(memory, offset, bytes) }
    }

    fn launch(&mut self, kernel: Kernel, groups: u32, block: u32, args: &[Arg]) -> Result<()> {
        let (name, kernel) = self.find_kernel(kernel)?;
        if groups == 0 || block == 0 {
            let what = format!("a launch of {groups} x {block} threads was asked for");
            return Err(Error::usage(&self.device, what));
        }
        let mut raw = Vec::with_capacity(args.len());
        for arg in args {
            raw.push(match *arg {
                Arg::Buffer(buffer) => RawArg::Memory(&self.find_buffer(buffer)?.0),
                Arg::U32(value) => RawArg::U32(value),
                Arg::U64(value) => RawArg::U64(value),
            });
        }
        self.raw.launch(kernel, name, groups, block, &raw)
    }

    fn read_later(&mut self, buffer: Buffer, offset: u64, bytes: u64) -> Result<Later> {
        if bytes == 0 {
            return Err(Error::usage(&self.device, "a read of 0 bytes was asked for"));
        }
        let pending = self.begin_read(buffer, offset, bytes)?;
        let index = self.next_serial();
        self.laters.insert(index, pending);
        Ok(Later { queue: self.id, index })
    }

    fn finish_later(&mut self, later: Later, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        self.look_later(later, &mut |bytes| out.extend_from_slice(bytes))
    }

    fn look_later(&mut self, later: Later, look: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.own(later.queue, self.laters.get(&later.index), "read")?;
        match self.laters.remove(&later.index) {
            Some(pending) => self.end_read(pending, |bytes| look(bytes)),
            None => Ok(()),
        }
    }

    fn mark(&mut self) -> Result<Mark> {
        let event = self.raw.record()?;
        let index = self.next_serial();
        if self.marks.len() == MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back((index, event));
        Ok(Mark { queue: self.id, index })
    }

    fn wait(&mut self, mark: Mark) -> Result<()> {
        self.raw.wait(self.find_mark(mark)?)
    }

    fn milliseconds(&mut self, from: Mark, to: Mark) -> Result<f32> {
        let (from, to) = (self.find_mark(from)?, self.find_mark(to)?);
        self.raw.wait(from)?;
        self.raw.wait(to)?;
        self.raw.elapsed(from, to)
    }

    fn finish(&mut self) -> Result<()> {
        self.raw.finish()
    }
}

impl<R: Raw> Drop for InOrder<R> {
    fn drop(&mut self) {
        // Copies under way must end before their host memory is given back. Where the device does not even
        // answer, that memory is leaked: a stray late write then hits nothing of ours.
        if self.raw.finish().is_err() {
            let laters = std::mem::take(&mut self.laters).into_values().map(|pending| pending.host);
            let writes = std::mem::take(&mut self.writes).into_iter().map(|write| write.1);
            laters.chain(writes).for_each(Host::abandon);
        }
    }
}
