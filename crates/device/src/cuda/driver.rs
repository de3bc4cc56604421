//! CUDA's driver library: where it is, the functions used of it, what its codes mean.
//!
//! All functions are in drivers from 470 on (CUDA 11.4), and each is resolved at the start. Handles are
//! integers of pointer size: they are the driver's business, never followed here, and their holders stay `Send`.

use std::ffi::{CStr, OsString, c_char, c_int, c_uint, c_void};

use crate::dylib::{self, Status, table};
use crate::error::{Error, Unusable};

/// An opaque pointer of the driver.
pub(crate) type Handle = usize;
/// An address in device memory.
pub(crate) type DevicePointer = u64;

table! {
    /// The driver's functions.
    struct Driver {
        init = "cuInit"(flags: c_uint);
        version = "cuDriverGetVersion"(version: *mut c_int);
        error_name = "cuGetErrorName"(code: c_int, text: *mut *const c_char);
        error_text = "cuGetErrorString"(code: c_int, text: *mut *const c_char);
        device_count = "cuDeviceGetCount"(count: *mut c_int);
        device_get = "cuDeviceGet"(device: *mut c_int, ordinal: c_int);
        device_name = "cuDeviceGetName"(name: *mut c_char, length: c_int, device: c_int);
        device_attribute = "cuDeviceGetAttribute"(value: *mut c_int, attribute: c_int, device: c_int);
        device_memory = "cuDeviceTotalMem_v2"(bytes: *mut usize, device: c_int);
        context_flags = "cuDevicePrimaryCtxSetFlags_v2"(device: c_int, flags: c_uint);
        context_retain = "cuDevicePrimaryCtxRetain"(context: *mut Handle, device: c_int);
        context_release = "cuDevicePrimaryCtxRelease_v2"(device: c_int);
        context_use = "cuCtxSetCurrent"(context: Handle);
        module_load = "cuModuleLoadDataEx"(module: *mut Handle, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void);
        module_unload = "cuModuleUnload"(module: Handle);
        module_function = "cuModuleGetFunction"(function: *mut Handle, module: Handle, name: *const c_char);
        module_global = "cuModuleGetGlobal_v2"(address: *mut DevicePointer, bytes: *mut usize, module: Handle, name: *const c_char);
        function_attribute = "cuFuncGetAttribute"(value: *mut c_int, attribute: c_int, function: Handle);
        occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor"(blocks: *mut c_int, function: Handle, threads: c_int, shared: usize);
        launch = "cuLaunchKernel"(function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint, stream: Handle, params: *mut *mut c_void, extra: *mut *mut c_void);
        memory_alloc = "cuMemAlloc_v2"(address: *mut DevicePointer, bytes: usize);
        memory_free = "cuMemFree_v2"(address: DevicePointer);
        memory_info = "cuMemGetInfo_v2"(free: *mut usize, total: *mut usize);
        host_alloc = "cuMemHostAlloc"(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
        host_free = "cuMemFreeHost"(pointer: *mut c_void);
        copy_in = "cuMemcpyHtoDAsync_v2"(to: DevicePointer, from: *const c_void, bytes: usize, stream: Handle);
        copy_out = "cuMemcpyDtoHAsync_v2"(to: *mut c_void, from: DevicePointer, bytes: usize, stream: Handle);
        fill = "cuMemsetD8Async"(to: DevicePointer, value: u8, bytes: usize, stream: Handle);
        stream_create = "cuStreamCreate"(stream: *mut Handle, flags: c_uint);
        stream_destroy = "cuStreamDestroy_v2"(stream: Handle);
        stream_wait = "cuStreamSynchronize"(stream: Handle);
        stream_follow = "cuStreamWaitEvent"(stream: Handle, event: Handle, flags: c_uint);
        event_create = "cuEventCreate"(event: *mut Handle, flags: c_uint);
        event_destroy = "cuEventDestroy_v2"(event: Handle);
        event_record = "cuEventRecord"(event: Handle, stream: Handle);
        event_query = "cuEventQuery"(event: Handle);
        event_wait = "cuEventSynchronize"(event: Handle);
        event_elapsed = "cuEventElapsedTime"(milliseconds: *mut f32, from: Handle, to: Handle);
    }
}

/// CUDA's code for too little memory.
pub(crate) const OUT_OF_MEMORY: c_int = 2;
/// CUDA's code for a name that is not in a module.
pub(crate) const NOT_FOUND: c_int = 500;
/// CUDA's code for an event that has not happened.
pub(crate) const NOT_READY: c_int = 600;

/// Where the driver may be. `libcuda.so` without a number is for developers and may be a stub, so it is not here.
const PLACES: &[&str] = if cfg!(windows) {
    &["nvcuda.dll"]
} else {
    &[
        "libcuda.so.1",
        "/usr/lib/wsl/lib/libcuda.so.1",
        "/usr/local/nvidia/lib64/libcuda.so.1",
        "/run/opengl-driver/lib/libcuda.so.1",
    ]
};

impl Driver {
    /// Opens the driver; the error is a plain reason with what to do. `WARPSMITH_LIBCUDA` names another library.
    pub fn open() -> Result<Driver, Unusable> {
        let named = std::env::var_os("WARPSMITH_LIBCUDA").filter(|name| !name.is_empty());
        let places = match &named {
            Some(name) => vec![name.clone()],
            None => PLACES.iter().map(OsString::from).collect(),
        };
        let mut first = None;
        for place in &places {
            // SAFETY: This is NVIDIA's driver, or what the user put in its place.
            match unsafe { dylib::open(place) } {
                // SAFETY: The table is that of cuda.h, from version 11.4 on.
                Ok(library) => match unsafe { Driver::resolve(library) } {
                    Ok(driver) => return Ok(driver),
                    Err(lacking) => {
                        return Err(Unusable(format!(
                            "the driver {} has no {}; it is too old: install NVIDIA driver 470 or later",
                            place.to_string_lossy(),
                            lacking.join(", ")
                        )));
                    }
                },
                Err(reason) => first = first.or(Some(reason)),
            }
        }
        let reason = first.map_or(String::new(), |reason| reason.to_string());
        Err(Unusable(match named {
            Some(_) => format!("{reason}; WARPSMITH_LIBCUDA names this library: correct it or unset it"),
            None => format!(
                "no NVIDIA driver ({reason}); for an NVIDIA card install its driver, 470 or later (in a container, \
                 pass the GPU through)"
            ),
        }))
    }

    /// The name and explanation of a code; an unknown one has neither.
    pub fn explain(&self, code: c_int) -> (Option<String>, Option<String>) {
        let (mut name, mut text) = (std::ptr::null(), std::ptr::null());
        // SAFETY: Both functions store a pointer to a static string, or null for a code they do not know.
        let _ = unsafe { (self.error_name(code, &mut name), self.error_text(code, &mut text)) };
        let own = |p: *const c_char| {
            if p.is_null() {
                return None;
            }
            // SAFETY: A pointer that is not null is the driver's static string.
            Some(unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned())
        };
        (own(name), own(text))
    }

    /// A code in one line.
    pub fn describe(&self, status: Status) -> String {
        let (name, text) = self.explain(status.code);
        let name = name.unwrap_or_else(|| "an unknown code".to_owned());
        let text = text.map(|text| format!(": {text}")).unwrap_or_default();
        format!("{} returned {name} ({}){text}", status.call, status.code)
    }

    /// The error a code of a call on this device is.
    pub fn error(&self, device: &str, status: Status) -> Error {
        if is_fatal(status.code) {
            return Error::Lost { device: device.to_owned(), reason: self.describe(status) };
        }
        if status.code == OUT_OF_MEMORY {
            return Error::Memory { device: device.to_owned(), asked: 0, free: None };
        }
        let (name, text) = self.explain(status.code);
        Error::Code {
            device: device.to_owned(),
            call: status.call.to_owned(),
            name: name.unwrap_or_else(|| "an unknown code".to_owned()),
            code: status.code,
            text: text.unwrap_or_default(),
        }
    }
}

/// Whether the context is beyond use after this code, by the driver's manual: a kernel that crashed (700, 702,
/// 710, 713 to 719), hardware that failed or went (46, 47, 214, 220, 226), a driver shutting down (4), unknown (999).
fn is_fatal(code: c_int) -> bool {
    matches!(code, 4 | 46 | 47 | 214 | 220 | 226 | 700 | 702 | 709 | 710 | 713..=719 | 999)
}
