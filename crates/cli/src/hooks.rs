//! `--hook-flags`: what the address of a Uniswap v4 hook says that the hook does.
//!
//! The pool manager reads the permissions of a hook off the last 14 bits of its address (v4-core, `Hooks.sol`): each flag that is set is called,
//! so all others must be clear. A flag that returns a difference needs the one it belongs to.

use clap::Args;
use warpsmith::pattern::{LowBits, Options};
use warpsmith_console::exit::Failure;

use crate::running::CONTRACT;

/// The permissions as `Hooks.Permissions` names them, from the lowest bit on, each with the one it needs.
const FLAGS: [(&str, Option<&str>); 14] = [
    ("afterRemoveLiquidityReturnDelta", Some("afterRemoveLiquidity")),
    ("afterAddLiquidityReturnDelta", Some("afterAddLiquidity")),
    ("afterSwapReturnDelta", Some("afterSwap")),
    ("beforeSwapReturnDelta", Some("beforeSwap")),
    ("afterDonate", None),
    ("beforeDonate", None),
    ("afterSwap", None),
    ("beforeSwap", None),
    ("afterRemoveLiquidity", None),
    ("beforeRemoveLiquidity", None),
    ("afterAddLiquidity", None),
    ("beforeAddLiquidity", None),
    ("afterInitialize", None),
    ("beforeInitialize", None),
];

/// What is asked of the end of an address.
#[derive(Args)]
pub(crate) struct HookFlags {
    /// For a Uniswap v4 hook: these permissions and no others, as beforeSwap,afterSwap, BEFORE_SWAP_FLAG or 0x00c0; beside patterns or scores, or alone
    #[arg(long, value_name = "FLAGS", help_heading = CONTRACT)]
    hook_flags: Option<String>,
}

impl HookFlags {
    /// How patterns are read with them.
    pub fn restrict(&self, options: Options) -> Result<Options, Failure> {
        let low_bits = self.hook_flags.as_deref().map(low_bits).transpose()?;
        Ok(Options { low_bits, ..options })
    }
}

/// The low bits that flags are.
pub(crate) fn low_bits(text: &str) -> Result<LowBits, Failure> {
    parse(text).map(|value| LowBits { count: FLAGS.len() as u32, value })
}

fn parse(text: &str) -> Result<u64, Failure> {
    let usage = |why: String| Failure::Usage(format!("--hook-flags {text}: {why}"));
    let mut value = 0;
    for name in text.split([',', '|']).map(str::trim).filter(|name| !name.is_empty()) {
        let number = match name.strip_prefix("0x") {
            Some(digits) => Some(u64::from_str_radix(digits, 16).ok()),
            None => name.bytes().all(|byte| byte.is_ascii_digit()).then(|| name.parse().ok()),
        };
        value |= match number {
            Some(number) => number.filter(|number| *number < 1 << FLAGS.len()).ok_or_else(|| {
                usage(format!("'{name}' is not a number of 14 bits; expected 0x0001 to 0x3fff"))
            })?,
            None => {
                let bit = FLAGS.iter().position(|(flag, _)| is_named(flag, name));
                1 << bit.ok_or_else(|| {
                    usage(format!(
                        "there is no permission '{name}'; expected one or more of {}, or their number as 0x00c0",
                        known()
                    ))
                })?
            }
        };
    }
    if value == 0 {
        return Err(usage(format!(
            "a hook without a permission is never called; give one or more of {}",
            known()
        )));
    }
    let is_set = |flag: &str| {
        FLAGS.iter().position(|(known, _)| *known == flag).is_some_and(|bit| value >> bit & 1 == 1)
    };
    for (flag, needs) in FLAGS {
        if let Some(needs) = needs.filter(|needs| is_set(flag) && !is_set(needs)) {
            return Err(usage(format!("{flag} is refused by Uniswap without {needs}; add that")));
        }
    }
    Ok(value)
}

/// Whether a text is the name of a permission: as in `Hooks.Permissions`, or as the constant in `Hooks.sol`.
fn is_named(flag: &str, text: &str) -> bool {
    let constant = text.replace('_', "").to_ascii_lowercase();
    let constant = constant.strip_suffix("flag").unwrap_or(&constant);
    constant.replace("returnsdelta", "returndelta") == flag.to_ascii_lowercase()
}

/// The pattern that says the same as flags alone.
pub(crate) fn pattern(low: &LowBits) -> String {
    let digit = |value: u64| char::from_digit(value as u32, 16).expect("a digit");
    // The fourth digit from the end has two of the bits.
    let above: String = (0..4).map(|more| digit(more << 2 | low.value >> 12)).collect();
    format!("/[{above}]{:03x}$/", low.value & 0xfff)
}

fn known() -> String {
    FLAGS.iter().rev().map(|(flag, _)| *flag).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<u64, String> {
        parse(text).map_err(|failure| failure.to_string())
    }

    /// The values of v4-core's `Hooks.sol`.
    #[test]
    fn flags_have_the_bits_of_the_contract() {
        for (text, value) in [
            ("BEFORE_INITIALIZE", 1 << 13),
            ("after_initialize", 1 << 12),
            ("BEFORE_SWAP,AFTER_SWAP", 0xc0),
            ("BEFORE_SWAP_FLAG | AFTER_SWAP_FLAG", 0xc0),
            ("0x00c0", 0xc0),
            ("0x80,AFTER_SWAP", 0xc0),
            ("BEFORE_SWAP,BEFORE_SWAP_RETURNS_DELTA", 0x88),
            ("beforeSwap,afterSwap", 0xc0),
            ("192", 0xc0),
            ("0x80 | afterSwap", 0xc0),
            ("0x3fff", 0x3fff),
        ] {
            assert_eq!(read(text), Ok(value), "{text}");
        }
        for (text, says) in [
            ("", "never called"),
            ("0x0", "never called"),
            ("0x4000", "14 bits"),
            ("0xzz", "14 bits"),
            ("16384", "14 bits"),
            ("BEFORE_SWAPS", "there is no permission"),
            ("beforeSwp", "beforeSwap, "),
            ("AFTER_SWAP_RETURNS_DELTA", "without afterSwap"),
            ("0x8", "without beforeSwap"),
        ] {
            assert!(read(text).is_err_and(|error| error.contains(says)), "{text}: {:?}", read(text));
        }
        // All of `Hooks.Permissions`, in the order of `Hooks.sol`, from BEFORE_INITIALIZE_FLAG = 1 << 13 on.
        let permissions = "beforeInitialize afterInitialize beforeAddLiquidity afterAddLiquidity beforeRemoveLiquidity \
                           afterRemoveLiquidity beforeSwap afterSwap beforeDonate afterDonate beforeSwapReturnDelta \
                           afterSwapReturnDelta afterAddLiquidityReturnDelta afterRemoveLiquidityReturnDelta";
        for (at, name) in permissions.split_whitespace().enumerate() {
            let base = name.strip_suffix("ReturnDelta");
            let given = base.map_or(name.to_owned(), |base| format!("{name},{base}"));
            let bits = base.map_or(0, |base| read(base).unwrap());
            assert_eq!(read(&given), Ok(1 << (13 - at) | bits), "{given}");
        }
        assert_eq!(pattern(&LowBits { count: 14, value: 0xc0 }), "/[048c]0c0$/");
        assert_eq!(pattern(&LowBits { count: 14, value: 0x3fff }), "/[37bf]fff$/");
    }
}
