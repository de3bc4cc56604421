//! Which devices there are, and which of them a person asked for.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::thread::available_parallelism;

use warpsmith_curve::platform::Simd;

use crate::error::{Error, Result};
use crate::worker::Backend;
use crate::worker::cpu::Cpu;

/// A device as a person names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Everything found, GPUs and the processor.
    All,
    /// The processor, with a given instruction set or the best it has.
    Cpu(Option<Simd>),
    /// NVIDIA cards through CUDA: one, or all of them.
    Cuda(Option<u32>),
    /// Cards through OpenCL: one, or all of them.
    OpenCl(Option<u32>),
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Selector, String> {
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (text, None),
        };
        let number = || {
            rest.map(|r| r.parse().map_err(|_| format!("'{r}' in '{text}' is not a device number")))
                .transpose()
        };
        match (kind, rest) {
            ("all", None) => Ok(Selector::All),
            ("cpu", None) => Ok(Selector::Cpu(None)),
            ("cpu", Some(rest)) => match Simd::ALL.into_iter().find(|s| s.name() == rest) {
                Some(simd) => Ok(Selector::Cpu(Some(simd))),
                None => {
                    let names = Simd::ALL.map(|s| format!("cpu:{s}")).join(" or ");
                    Err(format!("'{rest}' is no instruction set of the cpu device; give cpu, {names}"))
                }
            },
            ("cuda", _) => Ok(Selector::Cuda(number()?)),
            ("opencl", _) => Ok(Selector::OpenCl(number()?)),
            _ => Err(format!(
                "'{text}' is no device; give cpu, cuda, opencl, cuda:0, opencl:1 or all (`warpsmith devices` \
                 lists what this machine has)"
            )),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::All => f.write_str("all"),
            Selector::Cpu(None) => f.write_str("cpu"),
            Selector::Cpu(Some(simd)) => write!(f, "cpu:{simd}"),
            Selector::Cuda(None) => f.write_str("cuda"),
            Selector::Cuda(Some(n)) => write!(f, "cuda:{n}"),
            Selector::OpenCl(None) => f.write_str("opencl"),
            Selector::OpenCl(Some(n)) => write!(f, "opencl:{n}"),
        }
    }
}

/// One device of this machine.
#[derive(Clone, Debug)]
pub struct Found {
    /// What a person calls it.
    pub id: String,
    /// One line about it.
    pub description: String,
    /// Whether a search without `--device` uses it.
    pub default: bool,
}

/// What this machine has, and why it lacks the rest.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Usable devices.
    pub found: Vec<Found>,
    /// Interfaces without a usable device, with the reason.
    pub missing: Vec<(String, String)>,
}

/// Why there is no device of this interface.
fn no_gpu(api: &str) -> (String, String) {
    (api.to_owned(), format!("this version of warpsmith does not search on {api} devices yet"))
}

/// Looks around.
pub fn survey() -> Survey {
    let mut found = Vec::new();
    for simd in Simd::ALL.into_iter().filter(|s| s.is_available()) {
        let cpu = Cpu::new(simd, threads(None));
        let default = simd == Simd::detect();
        let id = if default { cpu.id() } else { format!("cpu:{simd}") };
        found.push(Found { id, description: cpu.describe(), default });
    }
    let mut missing = vec![no_gpu("cuda"), no_gpu("opencl")];
    if !Simd::Avx512Ifma.is_available() {
        let why = "this processor lacks AVX-512 IFMA; the portable lanes are used".to_owned();
        missing.push(("cpu:avx512ifma".to_owned(), why));
    }
    Survey { found, missing }
}

fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| available_parallelism().map_or(1, |n| n.get()))
}

/// The devices of a search.
pub struct Devices {
    pub(crate) list: Vec<Arc<dyn Backend>>,
}

impl Devices {
    /// Opens what was asked for; without a wish every GPU found, else the processor. A device that was named
    /// and is not there is an error, not a silent change of plan.
    pub fn open(selectors: &[Selector], thread_count: Option<usize>) -> Result<Devices> {
        let mut list: Vec<Arc<dyn Backend>> = Vec::new();
        let mut simd = None;
        for selector in selectors {
            match *selector {
                Selector::All | Selector::Cpu(None) => simd = simd.or(Some(Simd::detect())),
                Selector::Cpu(Some(wanted)) if wanted.is_available() => simd = Some(wanted),
                Selector::Cpu(Some(wanted)) => {
                    return Err(Error::NoDevice(format!(
                        "{selector} was asked for, but this processor has no {wanted}"
                    )));
                }
                Selector::Cuda(_) => return Err(unavailable(selector, no_gpu("cuda"))),
                Selector::OpenCl(_) => return Err(unavailable(selector, no_gpu("opencl"))),
            }
        }
        if selectors.is_empty() {
            simd = Some(Simd::detect());
        }
        if let Some(simd) = simd {
            list.push(Arc::new(Cpu::new(simd, threads(thread_count).max(1))));
        }
        Ok(Devices { list })
    }

    /// Each device alone.
    pub(crate) fn each(&self) -> impl Iterator<Item = Devices> {
        self.list.iter().map(|device| Devices { list: vec![Arc::clone(device)] })
    }

    /// What each device is called, with a line about it.
    pub fn describe(&self) -> Vec<(String, String)> {
        self.list.iter().map(|d| (d.id(), d.describe())).collect()
    }
}

fn unavailable(selector: &Selector, (_, why): (String, String)) -> Error {
    Error::NoDevice(format!("{selector} was asked for, but {why} (try --device cpu)"))
}
