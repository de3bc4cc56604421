//! Selecting devices by text: `all`, `cpu`, `cpu:avx2`, `cuda`, `opencl:1`.

use std::fmt;
use std::str::FromStr;

use warpsmith_simd::Simd;
use warpsmith_text::Shown;

use crate::{Api, Refusal};

/// A device as the user names it.
///
/// ```
/// use warpsmith_device::Selector;
///
/// let first: Selector = "cuda:0".parse()?;
/// assert_eq!(first.to_string(), "cuda:0");
/// let error = "gpu".parse::<Selector>().unwrap_err();
/// assert!(error.to_string().contains("cpu, cuda"), "{error}");
/// # Ok::<(), warpsmith_device::Refusal>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Every GPU and the processor.
    All,
    /// The processor, with a given instruction set or the best available.
    Cpu(Option<Simd>),
    /// GPUs through an interface: one by its number, or all of them.
    Gpu(Api, Option<u32>),
}

impl Selector {
    /// Instruction sets that can be chosen for the processor, the fastest first.
    pub const INSTRUCTION_SETS: [Simd; 5] = Simd::ALL;

    /// Lists valid selectors, for help texts and errors.
    pub fn examples() -> String {
        let all = Api::ALL.iter().map(|api| api.to_string());
        let single = Api::ALL.iter().enumerate().map(|(number, api)| format!("{api}:{number}"));
        format!("cpu, {} or all", all.chain(single).collect::<Vec<_>>().join(", "))
    }
}

impl FromStr for Selector {
    type Err = Refusal;

    fn from_str(text: &str) -> std::result::Result<Selector, Refusal> {
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (text, None),
        };
        let number = || {
            rest.map(|r| {
                r.parse().map_err(|_| {
                    Refusal(format!("'{}' in '{}' is not a device number", Shown(r), Shown(text)))
                })
            })
            .transpose()
        };
        match (kind, rest) {
            ("all", None) => Ok(Selector::All),
            ("cpu", None) => Ok(Selector::Cpu(None)),
            ("cpu", Some(rest)) => match Selector::INSTRUCTION_SETS.into_iter().find(|s| s.name() == rest) {
                Some(simd) => Ok(Selector::Cpu(Some(simd))),
                None => {
                    let names = Selector::INSTRUCTION_SETS.map(|s| format!("cpu:{s}")).join(" or ");
                    Err(Refusal(format!(
                        "'{}' is no instruction set of the cpu device; give cpu, {names}",
                        Shown(rest)
                    )))
                }
            },
            _ => match Api::ALL.into_iter().find(|api| api.name() == kind) {
                Some(api) => Ok(Selector::Gpu(api, number()?)),
                None => {
                    Err(Refusal(format!("'{}' is no device; give {}", Shown(text), Selector::examples())))
                }
            },
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::All => f.write_str("all"),
            Selector::Cpu(None) => f.write_str("cpu"),
            Selector::Cpu(Some(simd)) => write!(f, "cpu:{simd}"),
            Selector::Gpu(api, None) => write!(f, "{api}"),
            Selector::Gpu(api, Some(number)) => write!(f, "{api}:{number}"),
        }
    }
}
