//! Which address a pattern is about: it includes the address's own head, and the type follows from it.
//!
//! Knows heads only. Whether the rest of a pattern is possible is for patterns to say.

use super::address::{head, secret};
use super::{AddressType, Bitcoin, Network};

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
        heads: &'static str,
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
    #[error(
        "pattern '{pattern}' does not say what kind of address is wanted; add --type p2pkh, p2pkh-uncompressed, p2sh, \
         p2wpkh, p2tr or rawtr"
    )]
    Open {
        /// The first pattern.
        pattern: String,
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

/// The addresses these patterns are about. A type that was asked for decides where patterns leave it open, and chooses
/// between the types that look alike; without one `1...` is P2PKH of compressed keys and `bc1p...` is P2TR.
pub fn infer(
    patterns: impl IntoIterator<Item = impl AsRef<str>>,
    wanted: Option<AddressType>,
    network: Network,
) -> Result<Bitcoin, Refusal> {
    let mut open: Option<String> = None;
    let mut found: Option<(AddressType, String)> = None;
    for pattern in patterns {
        let written = pattern.as_ref();
        if secret(written).is_some() {
            return Err(Refusal::Secret);
        }
        let pattern = || shown(written);
        let (given, on) = match start(written) {
            Start::Says(given, on) => (given, on),
            Start::Nothing => {
                open.get_or_insert_with(pattern);
                continue;
            }
            Start::Never => {
                let (network_name, heads) = (network.name(), heads(network));
                let advice = advice(written, wanted, network);
                return Err(Refusal::Head { pattern: pattern(), network: network_name, heads, advice });
            }
        };
        if on != network {
            return Err(Refusal::OtherNetwork { pattern: pattern(), given: on.name() });
        }
        if let Some(wanted) = wanted {
            let target = Bitcoin { address_type: wanted, network };
            if head(&target) != head(&Bitcoin { address_type: given, network }) {
                let (given, wanted) = (given.name(), wanted.name());
                return Err(Refusal::OtherType { pattern: pattern(), given, wanted, head: head(&target) });
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
    let inferred = wanted.or(found.map(|(given, _)| given));
    match inferred {
        Some(address_type) => Ok(Bitcoin { address_type, network }),
        None => Err(Refusal::Open { pattern: open.unwrap_or_default() }),
    }
}

/// What addresses of the network begin with.
fn heads(network: Network) -> &'static str {
    match network {
        Network::Main => "1 (p2pkh), 3 (p2sh), bc1q (p2wpkh) or bc1p (p2tr)",
        Network::Test => "m or n (p2pkh), 2 (p2sh), tb1q (p2wpkh) or tb1p (p2tr)",
    }
}

/// The pattern with the head it lacks, where only one is likely.
fn advice(written: &str, wanted: Option<AddressType>, network: Network) -> Option<String> {
    let lower = written.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix("bc1").or_else(|| lower.strip_prefix("tb1")) {
        let hrp = &lower[..3];
        return Some(format!(
            "Try '{}' or '{}'",
            shown(&format!("{hrp}q{rest}")),
            shown(&format!("{hrp}p{rest}"))
        ));
    }
    let address_type = wanted.unwrap_or(AddressType::P2pkh);
    let head = head(&Bitcoin { address_type, network });
    let head = head.split(' ').next().unwrap_or(head);
    Some(format!("Try '{}'", shown(&format!("{head}{written}"))))
}

fn start(written: &str) -> Start {
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
    for (hrp, network) in [("bc1", Network::Main), ("tb1", Network::Test)] {
        if let Some(rest) = lower.strip_prefix(hrp) {
            return match rest.as_bytes().first() {
                Some(b'q') => Start::Says(AddressType::P2wpkh, network),
                Some(b'p') => Start::Says(AddressType::P2tr, network),
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
    match literal.as_bytes()[0] {
        b'1' => Start::Says(AddressType::P2pkh, Network::Main),
        b'3' => Start::Says(AddressType::P2sh, Network::Main),
        b'm' | b'n' => Start::Says(AddressType::P2pkh, Network::Test),
        b'2' => Start::Says(AddressType::P2sh, Network::Test),
        _ => Start::Never,
    }
}

/// A pattern for a message: not too long, no control characters.
fn shown(pattern: &str) -> String {
    const MOST: usize = 100;
    pattern
        .chars()
        .take(MOST)
        .flat_map(|character| match character {
            '\'' | '"' | '\\' => vec![character],
            _ => character.escape_debug().collect(),
        })
        .collect()
}
