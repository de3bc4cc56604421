//! NVIDIA's management library (NVML), opened at run time: it comes with the driver.
//!
//! Five of its functions, as its reference declares them; every other one is left alone.

use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong, c_void};

use libloading::{Library, Symbol};

/// Names of the library, the one that drivers install first.
const NAMES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// `nvmlReturn_t` of a call that succeeded.
const SUCCESS: c_int = 0;

/// `NVML_TEMPERATURE_GPU`, the sensor on the die.
const TEMPERATURE_GPU: c_uint = 0;

/// `nvmlDevice_t`.
type Handle = *mut c_void;

type GetHandle = unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int;
type GetTemperature = unsafe extern "C" fn(Handle, c_uint, *mut c_uint) -> c_int;
type GetNumber = unsafe extern "C" fn(Handle, *mut c_uint) -> c_int;
type GetBits = unsafe extern "C" fn(Handle, *mut c_ulonglong) -> c_int;

/// Reasons for which a card holds its clock down: bits of `nvmlClocksThrottleReasons`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThrottleReasons(pub u64);

impl ThrottleReasons {
    #[cfg(test)]
    pub const GPU_IDLE: u64 = 0x1;
    #[cfg(test)]
    pub const APPLICATIONS_CLOCKS_SETTING: u64 = 0x2;
    pub const SW_POWER_CAP: u64 = 0x4;
    pub const HW_SLOWDOWN: u64 = 0x8;
    pub const SW_THERMAL_SLOWDOWN: u64 = 0x20;
    pub const HW_THERMAL_SLOWDOWN: u64 = 0x40;
    pub const HW_POWER_BRAKE_SLOWDOWN: u64 = 0x80;
}

/// The library, initialised. It stays loaded until the process ends, since drivers do not like to be unloaded.
pub(crate) struct Nvml {
    library: &'static Library,
}

impl Nvml {
    /// Opens and initialises the library; `None` where there is none, or no driver.
    pub fn open() -> Option<Nvml> {
        // SAFETY: NVML's initialisers do nothing but register the library.
        let library = NAMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok())?;
        let nvml = Nvml { library: Box::leak(Box::new(library)) };
        // SAFETY: `nvmlReturn_t nvmlInit_v2(void)`.
        let init: Symbol<'_, unsafe extern "C" fn() -> c_int> =
            unsafe { nvml.library.get(b"nvmlInit_v2\0") }.ok()?;
        // SAFETY: may be called any number of times.
        (unsafe { init() } == SUCCESS).then_some(nvml)
    }

    /// The card at a PCI address such as `0000:3b:00.0`.
    pub fn device(&self, pci_bus_id: &str) -> Option<Card<'_>> {
        let id = CString::new(pci_bus_id).ok()?;
        // SAFETY: `nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *, nvmlDevice_t *)`.
        let get: Symbol<'_, GetHandle> =
            unsafe { self.library.get(b"nvmlDeviceGetHandleByPciBusId_v2\0") }.ok()?;
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: a text that ends with zero, and a place for the handle.
        (unsafe { get(id.as_ptr(), &mut handle) } == SUCCESS).then_some(Card { nvml: self, handle })
    }
}

/// One card.
pub(crate) struct Card<'n> {
    nvml: &'n Nvml,
    handle: Handle,
}

impl Card<'_> {
    /// The temperature of the chip in degrees Celsius.
    pub fn celsius(&self) -> Option<u32> {
        // SAFETY: `nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t, nvmlTemperatureSensors_t, unsigned int *)`.
        let get: Symbol<'_, GetTemperature> =
            unsafe { self.nvml.library.get(b"nvmlDeviceGetTemperature\0") }.ok()?;
        let mut celsius = 0;
        // SAFETY: a handle of this library, and a place for the number.
        (unsafe { get(self.handle, TEMPERATURE_GPU, &mut celsius) } == SUCCESS).then_some(celsius)
    }

    /// The power it draws, in milliwatts.
    pub fn milliwatts(&self) -> Option<u32> {
        // SAFETY: `nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t, unsigned int *)`.
        let get: Symbol<'_, GetNumber> =
            unsafe { self.nvml.library.get(b"nvmlDeviceGetPowerUsage\0") }.ok()?;
        let mut milliwatts = 0;
        // SAFETY: as above.
        (unsafe { get(self.handle, &mut milliwatts) } == SUCCESS).then_some(milliwatts)
    }

    /// Reasons for which its clock is held down now.
    pub fn throttle_reasons(&self) -> Option<ThrottleReasons> {
        // SAFETY: `nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t, unsigned long long *)`.
        let get: Symbol<'_, GetBits> =
            unsafe { self.nvml.library.get(b"nvmlDeviceGetCurrentClocksThrottleReasons\0") }.ok()?;
        let mut bits = 0;
        // SAFETY: as above.
        (unsafe { get(self.handle, &mut bits) } == SUCCESS).then_some(ThrottleReasons(bits))
    }
}
