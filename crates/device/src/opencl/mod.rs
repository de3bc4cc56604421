//! Devices through OpenCL 1.2, by way of the system's loader.
//!
//! Only this folder names OpenCL: this file finds the devices, `loader.rs` helps NVIDIA's library into sight,
//! `queue.rs` works with a device. Answers are read as raw bytes of whatever length the driver gives, since a
//! question one vendor knows is an error, or a longer answer, with another.

mod loader;
mod queue;

use std::sync::Arc;

use cl3::device::{get_device_data, get_device_ids};
use cl3::platform::{get_platform_data, get_platform_ids};

pub(crate) use loader::prepare;

use crate::error::{Result, Unusable};
use crate::queue::InOrder;
use crate::{Api, Device, Info, Queue, Survey, Vendor};

/// Names of questions and codes, by their numbers in cl.h and cl_ext.h.
mod ask {
    pub const PLATFORM_NAME: u32 = 0x0902;
    pub const TYPE: u32 = 0x1000;
    pub const UNITS: u32 = 0x1002;
    pub const LARGEST_BUFFER: u32 = 0x1010;
    pub const MEMORY: u32 = 0x101F;
    pub const CONSTANT_MEMORY: u32 = 0x1020;
    pub const SHARED_MEMORY: u32 = 0x1023;
    pub const LITTLE_ENDIAN: u32 = 0x1026;
    pub const AVAILABLE: u32 = 0x1027;
    pub const COMPILER: u32 = 0x1028;
    pub const NAME: u32 = 0x102B;
    pub const VENDOR: u32 = 0x102C;
    pub const DRIVER: u32 = 0x102D;
    pub const VERSION: u32 = 0x102F;
    pub const UUID: u32 = 0x106A;
    pub const PCI_BUS_NV: u32 = 0x4008;
    pub const PCI_SLOT_NV: u32 = 0x4009;
    pub const PCI_DOMAIN_NV: u32 = 0x400A;
    pub const TOPOLOGY_AMD: u32 = 0x4037;
    pub const PCI_KHR: u32 = 0x410F;
}

const ALL_TYPES: u64 = 0xFFFF_FFFF;
const TYPE_GPU: u64 = 4;

/// An OpenCL device id. It names a device for the whole life of the process.
#[derive(Clone, Copy)]
struct Id(cl3::types::cl_device_id);

// SAFETY: The id is a name for the driver, which is thread-safe; nothing here follows the pointer.
unsafe impl Send for Id {}
// SAFETY: As above.
unsafe impl Sync for Id {}

impl Id {
    /// The answer's bytes; None where the device does not know the question.
    fn bytes(self, question: u32) -> Option<Vec<u8>> {
        get_device_data(self.0, question).ok()
    }

    /// The answer as an integer of 4 or 8 bytes.
    fn number(self, question: u32) -> Option<u64> {
        number(&self.bytes(question)?)
    }

    fn text(self, question: u32) -> String {
        self.bytes(question).map(|bytes| text(&bytes)).unwrap_or_default()
    }
}

/// An integer of 4 or 8 bytes.
fn number(bytes: &[u8]) -> Option<u64> {
    match bytes.len() {
        4 => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
        8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// Text up to its zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

/// An OpenCL device.
struct OpenCl {
    info: Info,
    device: Id,
}

impl Device for OpenCl {
    fn info(&self) -> &Info {
        &self.info
    }

    fn queue(&self) -> Result<Box<dyn Queue>> {
        let raw = queue::Stream::open(self)?;
        Ok(Box::new(InOrder::new(raw, self.info.id.clone())))
    }

    fn can_build(&self) -> Result<()> {
        // A device without a compiler is not listed.
        Ok(())
    }
}

/// Adds OpenCL's devices, platform by platform, or the reasons there are none.
pub(crate) fn survey(survey: &mut Survey) {
    const HINT: &str = "NVIDIA's and AMD's drivers bring one; for Intel install intel-opencl-icd, for the processor \
                        pocl-opencl-icd";
    let mut missing = |reason: String| survey.missing.push(("opencl".to_owned(), reason));
    let platforms = match get_platform_ids() {
        Ok(platforms) if platforms.is_empty() => {
            return missing(format!("no OpenCL platform is installed; {HINT}"));
        }
        Ok(platforms) => platforms,
        Err(cl3::error_codes::DLOPEN_RUNTIME_LOAD_FAILED) => {
            return missing(
                "the OpenCL loader (libOpenCL.so.1) cannot be opened; install it ('apt install ocl-icd-libopencl1') or \
                 name one in OPENCL_DYLIB_PATH"
                    .to_owned(),
            );
        }
        // CL_PLATFORM_NOT_FOUND_KHR.
        Err(-1001) => return missing(format!("no OpenCL platform is installed; {HINT}")),
        Err(code) => return missing(format!("clGetPlatformIDs returned {}", queue::describe(code))),
    };
    let mut found = 0;
    let mut empty = Vec::new();
    for platform in platforms {
        let name =
            get_platform_data(platform, ask::PLATFORM_NAME).map(|bytes| text(&bytes)).unwrap_or_default();
        let devices = match get_device_ids(platform, ALL_TYPES) {
            Ok(devices) => devices,
            Err(code) => {
                empty.push(format!("platform '{name}': clGetDeviceIDs returned {}", queue::describe(code)));
                continue;
            }
        };
        if devices.is_empty() {
            empty.push(format!("platform '{name}' shows no device"));
        }
        for device in devices.into_iter().map(Id) {
            match describe(device, &name, found) {
                Ok(mut info) => {
                    info.same_as = survey.twin(info.identity.as_deref());
                    survey.devices.push(Arc::new(OpenCl { info, device }));
                    found += 1;
                }
                Err(reason) => empty.push(format!("platform '{name}': {reason}")),
            }
        }
    }
    survey.missing.extend(empty.into_iter().map(|reason| ("opencl".to_owned(), reason)));
}

/// What the driver says of one device, or why it is of no use.
fn describe(device: Id, platform: &str, index: u32) -> std::result::Result<Info, Unusable> {
    let name = device.text(ask::NAME);
    for (question, reason) in [
        (ask::AVAILABLE, "is not available"),
        (ask::COMPILER, "has no compiler"),
        (ask::LITTLE_ENDIAN, "has its bytes in the other order"),
    ] {
        if device.number(question) != Some(1) {
            return Err(Unusable(format!("device '{name}' {reason}")));
        }
    }
    let amount = |question| device.number(question).unwrap_or(0);
    Ok(Info {
        id: format!("opencl:{index}"),
        api: Api::OpenCl,
        vendor: vendor(platform, &device.text(ask::VENDOR)),
        name,
        driver: device.text(ask::DRIVER),
        arch: device.text(ask::VERSION),
        units: u32::try_from(amount(ask::UNITS)).unwrap_or(0),
        threads_per_unit: None,
        memory: amount(ask::MEMORY),
        largest_buffer: amount(ask::LARGEST_BUFFER),
        constant_memory: amount(ask::CONSTANT_MEMORY),
        shared_memory: amount(ask::SHARED_MEMORY),
        identity: identity(|question| device.bytes(question)),
        same_as: None,
        is_gpu: amount(ask::TYPE) & TYPE_GPU != 0,
    })
}

/// The vendor. PoCL reports the processor's maker, so the platform's name decides first.
fn vendor(platform: &str, vendor: &str) -> Vendor {
    let lower = vendor.to_lowercase();
    if platform.contains("Portable Computing Language") {
        Vendor::Pocl
    } else if lower.contains("nvidia") {
        Vendor::Nvidia
    } else if lower.contains("advanced micro devices") || lower.contains("amd") {
        Vendor::Amd
    } else if lower.contains("intel") {
        Vendor::Intel
    } else {
        Vendor::Other(vendor.to_owned())
    }
}

/// The card's place on the bus, else its UUID: from the common question, NVIDIA's, AMD's, the UUID's.
fn identity(ask: impl Fn(u32) -> Option<Vec<u8>>) -> Option<String> {
    let pci = |domain: u64, bus: u64, device: u64, function: u64| {
        Some(format!("pci:{domain:04x}:{bus:02x}:{device:02x}.{function:x}"))
    };
    let one = |question| number(&ask(question)?);
    if let Some(bytes) = ask(ask::PCI_KHR).filter(|bytes| bytes.len() == 16) {
        let word = |i: usize| number(&bytes[4 * i..4 * i + 4]).unwrap_or(0);
        return pci(word(0), word(1), word(2), word(3));
    }
    if let (Some(bus), Some(slot)) = (one(ask::PCI_BUS_NV), one(ask::PCI_SLOT_NV)) {
        // Device and function share the slot's byte. Older drivers do not tell the domain, which then is 0.
        return pci(one(ask::PCI_DOMAIN_NV).unwrap_or(0), bus, slot >> 3, slot & 7);
    }
    // AMD: a type (1 is PCI Express), padding, then bus, device and function in the last three bytes.
    if let Some(bytes) =
        ask(ask::TOPOLOGY_AMD).filter(|bytes| bytes.len() == 24 && number(&bytes[..4]) == Some(1))
    {
        return pci(0, bytes[21].into(), bytes[22].into(), bytes[23].into());
    }
    let uuid = ask(ask::UUID).filter(|bytes| bytes.len() == 16 && bytes.iter().any(|byte| *byte != 0))?;
    Some(format!("uuid:{}", uuid.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_card_has_one_identity_through_every_question() {
        let answers = |list: Vec<(u32, Vec<u8>)>| {
            identity(move |q| list.iter().find(|a| a.0 == q).map(|a| a.1.clone()))
        };
        let word = |value: u32| value.to_ne_bytes().to_vec();
        let card = Some("pci:0001:65:02.3".to_owned());
        let khr = [1, 0x65, 2, 3].map(u32::to_ne_bytes).concat();
        assert_eq!(answers(vec![(ask::PCI_KHR, khr)]), card);
        let nvidia = vec![
            (ask::PCI_BUS_NV, word(0x65)),
            (ask::PCI_SLOT_NV, word(0x13)),
            (ask::PCI_DOMAIN_NV, word(1)),
        ];
        assert_eq!(answers(nvidia), card);
        let mut amd = vec![0; 24];
        amd[..4].copy_from_slice(&word(1));
        amd[21..].copy_from_slice(&[0x65, 2, 3]);
        assert_eq!(answers(vec![(ask::TOPOLOGY_AMD, amd)]), Some("pci:0000:65:02.3".to_owned()));
        assert_eq!(answers(vec![(ask::UUID, vec![0xAB; 16])]), Some(format!("uuid:{}", "ab".repeat(16))));
        assert_eq!(answers(vec![(ask::UUID, vec![0; 16])]), None);
        assert_eq!(answers(vec![(ask::PCI_KHR, vec![1, 2])]), None);
    }

    #[test]
    fn vendors_are_told_apart() {
        assert_eq!(vendor("Portable Computing Language", "GenuineIntel"), Vendor::Pocl);
        assert_eq!(vendor("NVIDIA CUDA", "NVIDIA Corporation"), Vendor::Nvidia);
        assert_eq!(
            vendor("AMD Accelerated Parallel Processing", "Advanced Micro Devices, Inc."),
            Vendor::Amd
        );
        assert_eq!(vendor("Intel(R) OpenCL", "Intel(R) Corporation"), Vendor::Intel);
        assert_eq!(vendor("rusticl", "Mesa"), Vendor::Other("Mesa".to_owned()));
    }
}
