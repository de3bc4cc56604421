//! The flags that answer errors of the library: libraries say what is missing or wrong, and know no command line.

use warpsmith::chain::coin;
use warpsmith::chain::ethereum::{Refusal, SafeError};
use warpsmith::fleet;
use warpsmith::store::{self, MaskError};

/// Returns why a contract cannot be created as asked, with the flags of `create2` and `create3`.
pub(crate) fn of_contract(refusal: &Refusal) -> String {
    let flag = match refusal {
        Refusal::UnknownInput { name, .. } => return format!("--input {name}: {refusal}"),
        Refusal::BadInput { name, why } => return format!("--input {name}: {why}"),
        Refusal::NoInput { name, example, .. } => {
            return format!("{refusal}; give it with --input {name}={example}");
        }
        Refusal::Unsupported { .. } => "; choose one with --factory",
        Refusal::NoDeployer { .. } => "; give it with --deployer 0x..",
        Refusal::NoCaller { .. } => "; give it with --salt-layout caller:0x..",
        Refusal::WhoCalls { .. } => " with --salt-layout caller:0x..",
        Refusal::NoChains { .. } => "; leave --chain-id out",
        Refusal::NoChain { .. } => "; give it with --chain-id",
        Refusal::UnusedChain { .. } => "; leave --salt or --chain-id out",
        Refusal::Refused { .. } | Refusal::Ambiguous { .. } | Refusal::OutsideSalt { .. } => " (--salt)",
        Refusal::NoCode => "; give it with --init-code FILE, or its hash with --init-code-hash 0x..",
        Refusal::OwnCode { .. } => "; leave --init-code and --init-code-hash out",
        _ => "",
    };
    format!("{refusal}{flag}")
}

/// Returns what is wrong with the owners of a Safe, with the flag that gave it.
pub(crate) fn of_safe(error: &SafeError) -> String {
    match error {
        SafeError::NoOwner => format!("{error}; give each with --owner 0x.."),
        SafeError::Threshold { .. } => format!("--threshold: {error}"),
        SafeError::Factory { factory, known, has_owner } => {
            let input = if *has_owner { ", or --input owner=0x.." } else { "" };
            format!("--owner: {factory} makes no Safe; expected --factory {known}{input}")
        }
        SafeError::Initializer => {
            "--owner and --input initializer=0x.. say the same; give one of them".to_owned()
        }
        _ => format!("--owner: {error}"),
    }
}

/// Returns why patterns do not name one type of address, with the flag that does.
pub(crate) fn of_type(refusal: &coin::Refusal) -> String {
    match refusal {
        coin::Refusal::OtherType { .. } => format!("{refusal} (--type)"),
        coin::Refusal::OtherNetwork { given, .. } => format!("{refusal}; add --network {given}"),
        coin::Refusal::Open { .. } => format!("{refusal}; choose one with --type"),
        _ => refusal.to_string(),
    }
}

/// Returns what is wrong with a mask of a key, with the flag that helps. SEC: repeats nothing of the mask.
pub(crate) fn of_mask(error: &MaskError) -> String {
    match error {
        MaskError::Known => format!("{error}, or give whole keys with --keys"),
        MaskError::Length { given, missing, like: Some((_, length)) } if length > given => {
            format!("{error}: try --missing {}", length - given + missing)
        }
        MaskError::Length { missing: 0, like: Some(_), .. } => error.to_string(),
        MaskError::Length { like: Some(_), .. } => format!("{error} (--missing)"),
        MaskError::Length { like: None, .. } => format!("{error} with --missing N"),
        MaskError::Missing(_) => format!("{error} (--missing)"),
        _ => error.to_string(),
    }
}

/// Returns the flag that resolves an error of a map, behind its message; nothing where there is none.
pub(crate) fn of_map(error: &store::Error) -> &'static str {
    match error {
        store::Error::OtherOrder { has: "random", .. } => " (--random asks for random order)",
        store::Error::OtherOrder { .. } => " (without --random keys are taken in sequential order)",
        _ => "",
    }
}

/// Returns an error of a fleet that another command line prevents, with its flags; none for all others.
pub(crate) fn of_fleet(error: &fleet::Error) -> Option<String> {
    match error {
        fleet::Error::Salts(refusal) => Some(of_contract(refusal)),
        fleet::Error::NoAddress { host, port } => {
            Some(format!("{error}: give it as well, as --listen {host}:{port} --address 203.0.113.7:{port}"))
        }
        fleet::Error::NoServer => Some(format!("--local: {error}")),
        fleet::Error::Usage(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use warpsmith::chain::ethereum::{Deployment, Factory, SaltRequest};
    use warpsmith::store::KeyMask;

    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_flag() {
        let refused = |name: &str, request: &SaltRequest| {
            let made = Deployment::create3(Factory::find(name).unwrap(), None, None, request);
            of_contract(&made.unwrap_err())
        };
        let (nothing, chain) =
            (SaltRequest::default(), SaltRequest { chain_id: Some(1), ..SaltRequest::default() });
        for (text, says) in [
            (refused("arachnid", &nothing), "createx, solmate, solady, sequence"),
            (refused("arachnid", &nothing), "choose one with --factory"),
            (refused("solady", &nothing), "--deployer 0x.."),
            (refused("lifi", &nothing), "--salt-layout caller:0x.."),
            (refused("lifi", &chain), "leave --chain-id out"),
        ] {
            assert!(text.contains(says), "{says}: {text}");
        }
        let mask = |text: &str, missing| of_mask(&KeyMask::parse(text, missing).unwrap_err());
        for (text, says) in [
            (mask(&"a".repeat(61), 0), "try --missing 3"),
            (mask(&"a".repeat(64), 0), "--keys"),
            (mask("abc", 0), "say how many with --missing N"),
            (mask(&"a".repeat(64), 9), "(--missing)"),
        ] {
            assert!(text.contains(says), "{says}: {text}");
        }
    }
}
