//! `warpsmith scan --public-key HEX`: a key whose public half is known.

use std::collections::HashMap;

use warpsmith::chain::KeyType;
use warpsmith::keys::{parse_public_key, public_point};
use warpsmith::scan::ScanTargets;
use warpsmith::store::TargetList;
use warpsmith_console::exit::Failure;

use super::Scan;
use crate::mining::bad_public_key;

impl Scan {
    /// The public keys given, as the addresses that are nothing but a key: an npub as itself, others as a taproot output.
    pub(super) fn read_public_keys(&self) -> Result<(ScanTargets, TargetList), Failure> {
        let keys = self.public_keys()?;
        let list = TargetList::of(keys.iter().map(|(_, address, _)| address));
        let list = list.map_err(|error| Failure::Usage(error.to_string()))?;
        let mut types: Vec<&KeyType> = keys.iter().map(|(found_as, ..)| *found_as).collect();
        types.dedup();
        let targets = ScanTargets::list(&list, &types);
        Ok((targets.map_err(|error| Failure::Usage(error.to_string()))?, list))
    }

    /// Each public key given: the type and the address it is looked for as, and how it was written.
    fn public_keys<'s>(&'s self) -> Result<Vec<(&'static KeyType, String, &'s str)>, Failure> {
        let read = |text: &'s String| {
            let key = parse_public_key(text).map_err(|error| bad_public_key("--public-key", text, &error))?;
            let written = text.trim();
            let is_npub = written.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("npub"));
            let found_as = KeyType::find(if is_npub { "npub" } else { "rawtr" }).expect("both are known");
            let target = found_as.on[0].target.as_ref();
            Ok((found_as, target.encode(&target.digest(&public_point(&key))), written))
        };
        self.public_key.iter().map(read).collect()
    }

    /// The public keys that were asked for in hexadecimal digits, by the addresses they are found as: results name the key.
    pub(super) fn asked(&self) -> Result<HashMap<String, String>, Failure> {
        let is_hex = |(found_as, ..): &(&'static KeyType, String, &str)| found_as.name == "rawtr";
        let keys = self.public_keys()?.into_iter().filter(is_hex);
        Ok(keys
            .map(|(_, address, written)| {
                (address, written.to_ascii_lowercase().trim_start_matches("0x").to_owned())
            })
            .collect())
    }
}
