//! Names for what a queue owns: small numbers that say which queue they belong to.
//!
//! A handle is never a pointer, so a wrong one is refused by a look-up and cannot do harm.

macro_rules! handles {
    ($($(#[$attribute:meta])* $name:ident($index:ty);)*) => {$(
        $(#[$attribute])*
        #[derive(Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            pub(crate) queue: u32,
            pub(crate) index: $index,
        }
    )*};
}

handles! {
    /// A compiled program of one queue.
    #[derive(Clone, Copy)]
    Program(u32);
    /// An entry point of a program.
    #[derive(Clone, Copy)]
    Kernel(u32);
    /// Device memory of one queue.
    #[derive(Clone, Copy)]
    Buffer(u32);
    /// A point in time of one queue.
    #[derive(Clone, Copy)]
    Mark(u64);
    /// A copy under way. Its host memory is held until [`finish_later`](crate::Queue::finish_later) takes it.
    #[must_use = "the copy's host memory is held until finish_later takes it"]
    Later(u64);
}
