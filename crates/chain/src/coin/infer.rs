//! Which address a pattern is about: it includes the address's own head, and the type follows from it.
//!
//! Knows heads only. Whether the rest of a pattern is possible is for patterns to say.

use warpsmith_text::{Shown, any_of};

use super::{AddressType, Coin, CoinAddress, Network, looks_secret};
use crate::text::Writing;

/// Patterns that do not say what kind of address is wanted, or say two things.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No address begins so.
    #[error(
        "pattern '{pattern}': no address on the {network} network begins so; a pattern includes the address's own \
         head: {heads}"
    )]
    Head {
        /// The pattern.
        pattern: String,
        /// The network's name.
        network: &'static str,
        /// The heads of its addresses.
        heads: String,
        /// The pattern with the heads it may lack, and the types they are of, the likeliest first. Whether addresses of that
        /// type can go on so nobody has looked at.
        tries: Vec<(AddressType, String)>,
    },
    /// It begins like another type of address than the one asked for.
    #[error(
        "pattern '{pattern}' begins like a {given} address, but {wanted} addresses begin with {head}; change the \
         pattern or the type"
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
    #[error(
        "pattern '{pattern}' begins like an address of the {given} network, which is not the one that is searched"
    )]
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
    #[error("pattern '{pattern}' does not say what kind of address is wanted; there are {types}")]
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
    let mut inference = Inference::new(coin, wanted, network)?;
    for pattern in patterns {
        inference.take(pattern.as_ref())?;
    }
    inference.finish()
}

/// The same, one pattern after the other: one that is refused changes nothing.
pub struct Inference {
    coin: &'static Coin,
    wanted: Option<AddressType>,
    network: Network,
    /// The first pattern that leaves it open.
    open: Option<String>,
    /// The type, and the first pattern that says so.
    found: Option<(AddressType, String)>,
}

impl Inference {
    /// Begins with the type that was asked for, if one was.
    ///
    /// # Errors
    ///
    /// When the coin has no such addresses.
    pub fn new(
        coin: &'static Coin,
        wanted: Option<AddressType>,
        network: Network,
    ) -> Result<Inference, Refusal> {
        if let Some(wanted) = wanted.filter(|wanted| !coin.types.contains(wanted)) {
            return Err(Refusal::NoType {
                coin: coin.title,
                wanted: wanted.name(),
                types: any_of(&names(coin)),
            });
        }
        Ok(Inference { coin, wanted, network, open: None, found: None })
    }

    /// Looks at a pattern.
    ///
    /// # Errors
    ///
    /// When no address begins so, or one of another kind than the patterns before it.
    pub fn take(&mut self, written: &str) -> Result<(), Refusal> {
        let Inference { coin, wanted, network, .. } = *self;
        if looks_secret(written).is_some() {
            return Err(Refusal::Secret);
        }
        let pattern = || Shown(written).to_string();
        let (given, on) = match start(coin, written, network) {
            Start::Says(given, on) => (given, on),
            Start::Nothing => {
                self.open.get_or_insert_with(pattern);
                return Ok(());
            }
            Start::Never => {
                let tries = tries(coin, written, wanted, network);
                let (network, heads) = (network.name(), heads(coin, network));
                return Err(Refusal::Head { pattern: pattern(), network, heads, tries });
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
        match &self.found {
            Some((before, first)) if *before != given => {
                let types = [before.name(), given.name()];
                return Err(Refusal::Mixed { first: first.clone(), second: pattern(), types });
            }
            Some(_) => {}
            None => self.found = Some((given, pattern())),
        }
        Ok(())
    }

    /// The addresses that all of them are about.
    ///
    /// # Errors
    ///
    /// When none of them says it.
    pub fn finish(self) -> Result<CoinAddress, Refusal> {
        let Inference { coin, wanted, network, open, found } = self;
        let mut distinct = distinct(coin, network);
        let only = distinct.next().filter(|_| distinct.next().is_none()).map(|(first, _)| first);
        let inferred = wanted.or(found.map(|(given, _)| given)).or(only);
        match inferred {
            Some(address_type) => Ok(coin.on(network, address_type)),
            None => Err(Refusal::Open { pattern: open.unwrap_or_default(), types: any_of(&names(coin)) }),
        }
    }
}

fn names(coin: &'static Coin) -> Vec<&'static str> {
    coin.types.iter().map(|address_type| address_type.name()).collect()
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

/// The pattern with each head it may lack, the likeliest first.
fn tries(
    coin: &'static Coin,
    written: &str,
    wanted: Option<AddressType>,
    network: Network,
) -> Vec<(AddressType, String)> {
    let bare = written.strip_prefix('^').unwrap_or(written);
    let lower = bare.to_ascii_lowercase();
    for [v0, v1] in coin.networks.iter().filter_map(|params| params.segwit) {
        let hrp = &v0.head()[..v0.head().len() - 1];
        if let Some(rest) = lower.strip_prefix(hrp) {
            let tried = [(AddressType::P2wpkh, v0), (AddressType::P2tr, v1)];
            return tried.map(|(kind, writing)| (kind, format!("{}{rest}", writing.head()))).to_vec();
        }
    }
    let types: Vec<(AddressType, Writing)> = match wanted {
        Some(wanted) => vec![(wanted, coin.on(network, wanted).writing())],
        None => distinct(coin, network).collect(),
    };
    let tried = types
        .iter()
        .filter_map(|(kind, writing)| writing.heads().next().map(|head| (*kind, format!("{head}{bare}"))));
    tried.collect()
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
    // Outside of slashes '^' is a slip, which whoever reads the pattern will say; what is meant is clear.
    let literal = literal.strip_prefix('^').unwrap_or(literal);
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
