//! Devices through CUDA's driver API, kernels compiled by NVRTC.
//!
//! Only this folder names CUDA: `driver.rs` and `nvrtc.rs` open the two libraries, `queue.rs` works with them,
//! and this file finds the devices. NVRTC is not part of NVIDIA's driver, so a device may be usable and yet
//! unable to compile; the survey then says so.

mod driver;
mod nvrtc;
mod queue;

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use driver::Driver;
use nvrtc::Nvrtc;

use crate::dylib::Status;
use crate::error::{Error, Result, Unusable};
use crate::queue::InOrder;
use crate::{Api, Device, Info, Queue, Survey, Vendor};

/// Device attributes, by their numbers in cuda.h.
mod attribute {
    pub const SHARED_MEMORY: i32 = 8;
    pub const CONSTANT_MEMORY: i32 = 9;
    pub const UNITS: i32 = 16;
    pub const COMPUTE_MODE: i32 = 20;
    pub const PCI_BUS: i32 = 33;
    pub const PCI_DEVICE: i32 = 34;
    pub const THREADS_PER_UNIT: i32 = 39;
    pub const PCI_DOMAIN: i32 = 50;
    pub const MAJOR: i32 = 75;
    pub const MINOR: i32 = 76;
}

/// The compute mode in which nobody may use the device.
const PROHIBITED: c_int = 2;

/// A CUDA device.
struct Cuda {
    info: Info,
    ordinal: c_int,
    /// The compute capability, 90 for 9.0.
    capability: u32,
    driver: Arc<Driver>,
    nvrtc: Arc<std::result::Result<Nvrtc, Unusable>>,
}

impl Device for Cuda {
    fn info(&self) -> &Info {
        &self.info
    }

    fn queue(&self) -> Result<Box<dyn Queue>> {
        let raw = queue::Stream::open(self)?;
        Ok(Box::new(InOrder::new(raw, self.info.id.clone())))
    }

    fn can_build(&self) -> Result<()> {
        self.compiler().map(|_| ())
    }
}

impl Cuda {
    /// NVRTC, if it is there and knows a target this device can run.
    fn compiler(&self) -> Result<(&Nvrtc, nvrtc::Architecture)> {
        let library = |why: &Unusable| Error::Library { name: "nvrtc", reason: why.to_string() };
        let nvrtc = (*self.nvrtc).as_ref().map_err(library)?;
        Ok((nvrtc, nvrtc.target(self.capability).map_err(|why| library(&why))?))
    }
}

/// Adds CUDA's devices, or the reasons there are none.
pub(crate) fn survey(survey: &mut Survey) {
    let reason = match Driver::open() {
        Ok(driver) => match find(Arc::new(driver), survey) {
            Ok(()) => return,
            Err(reason) => reason,
        },
        Err(reason) => reason,
    };
    survey.missing.push(("cuda".to_owned(), reason.to_string()));
}

/// Adds the devices of an open driver; the error says which are left out, and why.
fn find(driver: Arc<Driver>, survey: &mut Survey) -> std::result::Result<(), Unusable> {
    let plain = |status: Status| {
        Unusable(match status.code {
            // CUDA_ERROR_NO_DEVICE, by every version of the driver.
            100 => "the NVIDIA driver is there but shows no device; see nvidia-smi and CUDA_VISIBLE_DEVICES"
                .to_owned(),
            _ => format!("the NVIDIA driver does not start: {}; see nvidia-smi", driver.describe(status)),
        })
    };
    let (mut version, mut count) = (0, 0);
    // SAFETY: The flags must be 0, and are.
    unsafe { driver.init(0) }.map_err(plain)?;
    // SAFETY: The pointers are to live integers.
    unsafe { driver.version(&mut version).and_then(|()| driver.device_count(&mut count)) }.map_err(plain)?;
    if count <= 0 {
        return Err(plain(Status { call: "cuDeviceGetCount", code: 100 }));
    }
    let nvrtc = Arc::new(Nvrtc::open(version / 1000));
    if let Err(reason) = &*nvrtc {
        survey.missing.push(("nvrtc".to_owned(), reason.to_string()));
    }
    let mut found = 0;
    let mut refused = Vec::new();
    for ordinal in 0..count {
        match describe(&driver, ordinal, found, version) {
            Ok((mut info, capability)) => {
                info.same_as = survey.twin(info.identity.as_deref());
                let (driver, nvrtc) = (Arc::clone(&driver), Arc::clone(&nvrtc));
                survey.devices.push(Arc::new(Cuda { info, ordinal, capability, driver, nvrtc }));
                found += 1;
            }
            Err(reason) => refused.push(format!("CUDA device {ordinal}: {reason}")),
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(Unusable(refused.join("; "))) }
}

/// What the driver says of one device, and its compute capability.
fn describe(
    driver: &Driver,
    ordinal: c_int,
    index: u32,
    version: c_int,
) -> std::result::Result<(Info, u32), Unusable> {
    let explain = |status| Unusable(driver.describe(status));
    let (mut device, mut memory, mut name) = (0, 0, [0u8; 256]);
    // SAFETY: The pointer is to a live integer.
    unsafe { driver.device_get(&mut device, ordinal) }.map_err(explain)?;
    // SAFETY: The buffer has the given length, and one byte more that stays 0.
    unsafe { driver.device_name(name.as_mut_ptr().cast::<c_char>(), 255, device) }.map_err(explain)?;
    // SAFETY: The pointer is to a live integer.
    unsafe { driver.device_memory(&mut memory, device) }.map_err(explain)?;
    let get = |attribute| {
        let mut value = 0;
        // SAFETY: The pointer is to a live integer.
        unsafe { driver.device_attribute(&mut value, attribute, device) }.map(|()| value).map_err(explain)
    };
    if get(attribute::COMPUTE_MODE)? == PROHIBITED {
        return Err(Unusable(
            "its compute mode is 'prohibited' (nvidia-smi -q -d COMPUTE shows it)".to_owned(),
        ));
    }
    let unsigned = |attribute| get(attribute).map(|value| u32::try_from(value).unwrap_or(0));
    let (major, minor) = (unsigned(attribute::MAJOR)?, unsigned(attribute::MINOR)?);
    let pci = (get(attribute::PCI_DOMAIN)?, get(attribute::PCI_BUS)?, get(attribute::PCI_DEVICE)?);
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let info = Info {
        id: format!("cuda:{index}"),
        api: Api::Cuda,
        name: String::from_utf8_lossy(&name[..length]).trim().to_owned(),
        vendor: Vendor::Nvidia,
        driver: driver_version(version),
        arch: format!("sm_{major}{minor}"),
        units: unsigned(attribute::UNITS)?,
        threads_per_unit: unsigned(attribute::THREADS_PER_UNIT).ok(),
        memory: memory as u64,
        largest_buffer: memory as u64,
        constant_memory: unsigned(attribute::CONSTANT_MEMORY)?.into(),
        shared_memory: unsigned(attribute::SHARED_MEMORY)?.into(),
        // CUDA does not tell the function; a GPU's is 0.
        identity: Some(format!("pci:{:04x}:{:02x}:{:02x}.0", pci.0, pci.1, pci.2)),
        same_as: None,
        is_gpu: true,
    };
    Ok((info, major * 10 + minor))
}

/// `580.95.05 (CUDA 13.0)`, the first part where the kernel module tells it.
fn driver_version(version: c_int) -> String {
    let cuda = format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
    let module = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let is_version =
        |word: &&str| word.contains('.') && word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match module.lines().next().unwrap_or_default().split_whitespace().find(is_version) {
        Some(number) => format!("{number} ({cuda})"),
        None => cuda,
    }
}
