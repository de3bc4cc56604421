//! Opening shared libraries and tables of their functions.
//!
//! `table!` makes a struct of function pointers with one method each. A library either has every function or
//! is refused with the names it lacks, so that an old driver is found out at the start and not in mid-run.
//! Results stay raw integers: a code this program does not know must not become an invalid value.

use std::error::Error as _;
use std::ffi::{OsStr, c_int};

use libloading::Library;

use crate::error::Unusable;

/// A function that returned something else than zero.
#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    /// The function's symbol.
    pub call: &'static str,
    /// What it returned.
    pub code: c_int,
}

/// Opens a library for the rest of the process; the error is the operating system's reason.
///
/// # Safety
///
/// The name must be that of a driver or compiler library whose start-up code may be trusted.
pub(crate) unsafe fn open(name: impl AsRef<OsStr>) -> Result<&'static Library, Unusable> {
    let name = name.as_ref();
    // SAFETY: The caller vouches for the library's start-up code.
    match unsafe { Library::new(name) } {
        // Never closed: drivers start threads and register exit handlers that would outlive their code.
        Ok(library) => Ok(Box::leak(Box::new(library))),
        // The message proper says only that opening failed; the reason is the source.
        Err(error) => Err(Unusable(match error.source() {
            Some(reason) => reason.to_string(),
            None => format!("{}: {error}", name.to_string_lossy()),
        })),
    }
}

/// Declares a table: `struct Name { method = "symbol"(argument: type, ...); ... }`.
#[cfg_attr(not(feature = "cuda"), allow(unused_macros))]
macro_rules! table {
    ($(#[$attribute:meta])* struct $name:ident { $($method:ident = $symbol:literal ($($arg:ident: $type:ty),*);)* }) => {
        $(#[$attribute])*
        pub(crate) struct $name {
            $($method: unsafe extern "C" fn($($type),*) -> std::ffi::c_int,)*
        }

        impl $name {
            /// Resolves every function, or names those the library lacks.
            ///
            /// # Safety
            ///
            /// The library must be the one whose header declares these functions, with these types.
            unsafe fn resolve(library: &libloading::Library) -> Result<$name, Vec<&'static str>> {
                let mut lacking = Vec::new();
                $(
                    // SAFETY: The caller vouches that the symbol, if there, has the declared type.
                    let $method = unsafe {
                        library.get::<unsafe extern "C" fn($($type),*) -> std::ffi::c_int>($symbol)
                    };
                    if $method.is_err() {
                        lacking.push($symbol);
                    }
                )*
                match ($($method,)*) {
                    ($(Ok($method),)*) => Ok($name { $($method: *$method,)* }),
                    _ => Err(lacking),
                }
            }

            $(
                #[doc = concat!("Calls `", $symbol, "`.\n\n# Safety\n\nAs its manual says.")]
                #[allow(clippy::too_many_arguments)]
                pub unsafe fn $method(&self, $($arg: $type),*) -> Result<(), crate::dylib::Status> {
                    // SAFETY: The pointer was resolved with this type; the caller keeps the function's contract.
                    match unsafe { (self.$method)($($arg),*) } {
                        0 => Ok(()),
                        code => Err(crate::dylib::Status { call: $symbol, code }),
                    }
                }
            )*
        }
    };
}
#[cfg_attr(not(feature = "cuda"), allow(unused_imports))]
pub(crate) use table;
