//! Which address a pattern is about: it includes the address's own head, and the type follows from it.
//!
//! Knows heads only. Whether the rest of a pattern is possible is for patterns to say.

use super::{AddressType, Coin, CoinAddress, Network, looks_secret};
use crate::text::Writing;
use crate::words::{Shown, any_of};

/// Patterns that do not say what kind of address is wanted, or say two things.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No address begins so.
    #[error(
        "pattern '{pattern}': no address on the {network} network begins so; a pattern includes the address's own \
         head: {heads}{}", advice.as_ref().map_or(String::new(), |advice| format!(". {advice}"))
    )]
    Head {
        /// The pattern.
        pattern: String,
        /// The network's name.
        network: &'static str,
        /// The heads of its addresses.
        heads: String,
        /// What to write instead.
        advice: Option<String>,
    },
    /// It begins like another type of address than the one asked for.
    #[error(
        "pattern '{pattern}' begins like a {given} address, but {wanted} addresses begin with {head}; change the \
         pattern or --type"
    )]
    OtherType {
        /// The pattern.
        pattern: String,
        /// The type it is about.
        given: &'static str,
        /// The type asked for.
        wanted: &'static str,
        /// What addresses of that type begin with.
        head: &'static str,
    },
    /// It begins like an address of the other network.
    #[error("pattern '{pattern}' begins like an address of the {given} network; add --network {given}")]
    OtherNetwork {
        /// The pattern.
        pattern: String,
        /// That network.
        given: &'static str,
    },
    /// Patterns about different types.
    #[error(
        "pattern '{first}' is about {} addresses and '{second}' about {}; one search has one type of address, so search \
         for them one after the other", types[0], types[1]
    )]
    Mixed {
        /// A pattern.
        first: String,
        /// One of another type.
        second: String,
        /// Their types.
        types: [&'static str; 2],
    },
    /// No pattern says which type.
    #[error("pattern '{pattern}' does not say what kind of address is wanted; add --type {types}")]
    Open {
        /// The first pattern.
        pattern: String,
        /// The types there are.
        types: String,
    },
    /// The coin has no such addresses.
    #[error("{coin} has no {wanted} addresses that a single key spends; give {types}")]
    NoType {
        /// The coin.
        coin: &'static str,
        /// The type asked for.
        wanted: &'static str,
        /// The types there are.
        types: String,
    },
    /// A private key pasted as a pattern.
    #[error(
        "a pattern is a SECRET key, which is not repeated here; a pattern is what the address shall look like"
    )]
    Secret,
}

/// What the start of a pattern says.
enum Start {
    /// An address of this type and network.
    Says(AddressType, Network),
    /// Nothing: it is about the end, the middle, or may begin with anything.
    Nothing,
    /// No address begins so.
    Never,
}

/// The addresses of a coin that these patterns are about. A type that was asked for decides where patterns leave it open,
/// and chooses between the types that look alike; without one the first of those is meant: `1...` is P2PKH of compressed
/// keys and `bc1p...` is P2TR. Where all types look alike, nothing is left open.
pub fn infer(
    coin: &'static Coin,
    patterns: impl IntoIterator<Item = impl AsRef<str>>,
    wanted: Option<AddressType>,
    network: Network,
) -> Result<CoinAddress, Refusal> {
    let names: Vec<&str> = coin.types.iter().map(|address_type| address_type.name()).collect();
    if let Some(wanted) = wanted.filter(|wanted| !coin.types.contains(wanted)) {
        return Err(Refusal::NoType { coin: coin.title, wanted: wanted.name(), types: any_of(&names) });
    }
    let mut open: Option<String> = None;
    let mut found: Option<(AddressType, String)> = None;
    for pattern in patterns {
        let written = pattern.as_ref();
        if looks_secret(written).is_some() {
            return Err(Refusal::Secret);
        }
        let pattern = || Shown(written).to_string();
        let (given, on) = match start(coin, written, network) {
            Start::Says(given, on) => (given, on),
            Start::Nothing => {
                open.get_or_insert_with(pattern);
                continue;
            }
            Start::Never => {
                let advice = advice(coin, written, wanted, network);
                let (network, heads) = (network.name(), heads(coin, network));
                return Err(Refusal::Head { pattern: pattern(), network, heads, advice });
            }
        };
        if on != network {
            return Err(Refusal::OtherNetwork { pattern: pattern(), given: on.name() });
        }
        if let Some(wanted) = wanted {
            let target = coin.on(network, wanted).writing();
            if target != coin.on(network, given).writing() {
                let (given, wanted, head) = (given.name(), wanted.name(), target.head());
                return Err(Refusal::OtherType { pattern: pattern(), given, wanted, head });
            }
        }
        match &found {
            Some((before, first)) if *before != given => {
                let types = [before.name(), given.name()];
                return Err(Refusal::Mixed { first: first.clone(), second: pattern(), types });
            }
            Some(_) => {}
            None => found = Some((given, pattern())),
        }
    }
    let mut distinct = distinct(coin, network);
    let only = distinct.next().filter(|_| distinct.next().is_none()).map(|(first, _)| first);
    let inferred = wanted.or(found.map(|(given, _)| given)).or(only);
    match inferred {
        Some(address_type) => Ok(coin.on(network, address_type)),
        None => Err(Refusal::Open { pattern: open.unwrap_or_default(), types: any_of(&names) }),
    }
}

/// The ways in which addresses of a network are written, each with the first type that is written so.
pub(crate) fn distinct(
    coin: &'static Coin,
    network: Network,
) -> impl Iterator<Item = (AddressType, Writing)> {
    let written = move |address_type: AddressType| coin.on(network, address_type).writing();
    let is_first = move |address_type: &AddressType| {
        coin.types.iter().find(|other| written(**other) == written(*address_type)) == Some(address_type)
    };
    coin.types.iter().copied().filter(is_first).map(move |address_type| (address_type, written(address_type)))
}

/// What addresses of the network begin with.
fn heads(coin: &'static Coin, network: Network) -> String {
    let each =
        distinct(coin, network).map(|(first, writing)| format!("{} ({})", writing.head(), first.name()));
    any_of(&each.collect::<Vec<_>>())
}

/// The pattern with the head it lacks, where only one is likely.
fn advice(
    coin: &'static Coin,
    written: &str,
    wanted: Option<AddressType>,
    network: Network,
) -> Option<String> {
    let lower = written.to_ascii_lowercase();
    for [v0, v1] in coin.networks.iter().filter_map(|params| params.segwit) {
        let hrp = &v0.head()[..v0.head().len() - 1];
        if let Some(rest) = lower.strip_prefix(hrp) {
            let tried = [v0, v1].map(|start| Shown(&format!("{}{rest}", start.head())).to_string());
            return Some(format!("Try '{}' or '{}'", tried[0], tried[1]));
        }
    }
    let address_type = wanted.or(coin.types.first().copied())?;
    let head = coin.on(network, address_type).writing().heads().next()?;
    Some(format!("Try '{}'", Shown(&format!("{head}{written}"))))
}

fn start(coin: &'static Coin, written: &str, network: Network) -> Start {
    // A regular expression that is tied to the start and has no alternatives begins with what it must begin with.
    let literal = match written.strip_prefix('/') {
        Some(regex) if regex.contains('|') => return Start::Nothing,
        Some(regex) => match regex.strip_prefix('^') {
            Some(rest) => rest,
            None => return Start::Nothing,
        },
        None => written,
    };
    let is_regex = written.starts_with('/');
    if literal.is_empty() || literal.starts_with('?') || literal.starts_with("..") {
        return Start::Nothing;
    }
    if is_regex && !literal.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return Start::Nothing;
    }
    let lower = literal.to_ascii_lowercase();
    // The network asked for comes first: test networks of two coins may write alike.
    let mut networks = Network::ALL;
    networks.sort_by_key(|on| *on != network);
    // Base58 tells upper from lower case, so its heads come before those of bech32 in any case: L is no start of ltc1.
    for on in networks {
        for (address_type, writing) in distinct(coin, on) {
            let begins = |head: &'static str| literal.starts_with(head);
            if let Writing::Base58 { .. } = writing
                && writing.heads().any(begins)
            {
                return Start::Says(address_type, on);
            }
        }
    }
    for on in networks {
        let Some([v0, v1]) = coin.params(on).segwit else { continue };
        // Both begin with the human-readable part and the separator, and end with the version's symbol.
        let (hrp, symbol) = v0.head().split_at(v0.head().len() - 1);
        if let Some(rest) = lower.strip_prefix(hrp) {
            return match rest.as_bytes().first() {
                Some(byte) if symbol.as_bytes() == [*byte] => Start::Says(AddressType::P2wpkh, on),
                Some(byte) if v1.head().as_bytes().last() == Some(byte) => Start::Says(AddressType::P2tr, on),
                Some(b'?' | b'.') | None => Start::Nothing,
                Some(byte) if is_regex && !byte.is_ascii_alphanumeric() => Start::Nothing,
                Some(_) => Start::Never,
            };
        }
        // Part of a head: what comes next may still be anything.
        let fixed: &str = lower.split(['?', '.']).next().unwrap_or_default();
        if hrp.starts_with(fixed) && (fixed.len() < lower.len() || lower.len() < hrp.len()) {
            return Start::Nothing;
        }
    }
    // Prefixes of cashaddr are left out as a rule, and all there is looks alike.
    for on in networks {
        if let Writing::CashAddr { start } = coin.params(on).p2pkh {
            return match lower.starts_with(&start[..start.len() - 1]) {
                true => Start::Says(AddressType::P2pkh, on),
                false if on == network => continue,
                false => Start::Nothing,
            };
        }
    }
    Start::Never
}
