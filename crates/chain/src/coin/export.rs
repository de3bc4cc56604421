//! What a wallet imports: a private key in wallet import format, and output descriptors (BIP-380 and its followers).
//!
//! SEC: everything with a secret in it is built in a string that has its full capacity from the start, and erased.

use warpsmith_text::any_of;
use zeroize::Zeroizing;

use std::sync::LazyLock;

use super::{AddressType, COINS, Coin, CoinAddress, Network, Params};
use crate::text::base58;
use crate::{Birthday, Error, PublicPoint, taproot_output};

/// Characters of the longest: a key of 34 bytes and a checksum, of 65 bytes in hex, a function or two, a checksum.
const WIF: usize = 52;
const DESCRIPTOR: usize = 160;

/// The private key in wallet import format. Whether the public key is compressed is part of it.
pub(super) fn wif(target: &CoinAddress, secret: &[u8; 32]) -> Zeroizing<String> {
    let mut payload = Zeroizing::new(Vec::with_capacity(34));
    payload.push(target.coin.params(target.network).wif);
    payload.extend_from_slice(secret);
    if target.address_type != AddressType::P2pkhUncompressed {
        payload.push(1);
    }
    let mut text = Zeroizing::new(String::with_capacity(WIF));
    base58::push_checked(&mut text, &payload);
    text
}

/// What a key in wallet import format says.
pub struct Wif {
    /// The private key.
    pub secret: Zeroizing<[u8; 32]>,
    /// Whether its public key is compressed.
    pub is_compressed: bool,
    /// The first byte: which coins and networks it is for.
    pub version: u8,
}

/// What keys begin with, coin by coin.
static HEADS: LazyLock<String> = LazyLock::new(|| {
    let mut heads: Vec<&str> = Vec::new();
    for head in params().flat_map(|params| params.wif_heads) {
        if !heads.contains(head) {
            heads.push(head);
        }
    }
    any_of(&heads)
});

fn params() -> impl Iterator<Item = &'static Params> {
    COINS.iter().flat_map(|coin| &coin.networks)
}

/// The first byte of keys in wallet import format, of every coin.
pub fn wif_versions() -> Vec<u8> {
    let mut versions: Vec<u8> = params().map(|params| params.wif).collect();
    versions.sort_unstable();
    versions.dedup();
    versions
}

/// First characters of keys in wallet import format, by whether their public key is compressed, each with a coin and a network that
/// write so; Bitcoin's first.
pub fn wif_heads(is_compressed: bool) -> impl Iterator<Item = (char, &'static Coin, Network)> {
    let networks =
        COINS.iter().flat_map(|coin| [Network::Main, Network::Test].map(|network| (*coin, network)));
    networks.flat_map(move |(coin, network)| {
        // That of an uncompressed key is the first.
        let heads = coin.params(network).wif_heads;
        let heads = if is_compressed { &heads[1..] } else { &heads[..1] };
        heads.iter().flat_map(|head| head.chars().next()).map(move |head| (head, coin, network))
    })
}

/// Reads a key in wallet import format, of any coin.
pub fn decode_wif(text: &str) -> Result<Wif, Error> {
    let other = || Error::Prefix { given: None, expected: HEADS.as_str() };
    let bytes = base58::bytes(text).ok_or_else(other)?;
    let payload = base58::checked_payload(&bytes).ok_or(Error::Checksum)?;
    let (is_compressed, key) = match payload {
        [_, key @ .., 1] if key.len() == 32 => (true, key),
        [_, key @ ..] if key.len() == 32 => (false, key),
        _ => return Err(Error::Length { given: text.len(), wanted: WIF, expected: "WIF key" }),
    };
    let version = payload[0];
    if params().all(|params| params.wif != version) {
        return Err(other());
    }
    let mut secret = Zeroizing::new([0; 32]);
    secret.copy_from_slice(key);
    Ok(Wif { secret, is_compressed, version })
}

/// The descriptor of the address, for taproot what is between the key and the address, and how to use the key. With no secret the
/// descriptor has the public key: it watches, and becomes the spending one when `join` has made the private key.
pub(super) fn explain(
    target: &CoinAddress,
    point: &PublicPoint,
    secret: Option<&[u8; 32]>,
    birthday: Birthday,
) -> Vec<(&'static str, Zeroizing<String>)> {
    let mut lines = Vec::new();
    if target.coin.descriptors {
        lines.extend(describe(target, point, secret));
    }
    lines.extend(
        secret.map(|_| ("use", Zeroizing::new((target.coin.importing)(target.address_type, birthday)))),
    );
    lines
}

fn describe(
    target: &CoinAddress,
    point: &PublicPoint,
    secret: Option<&[u8; 32]>,
) -> Vec<(&'static str, Zeroizing<String>)> {
    let key = match secret {
        Some(secret) => wif(target, secret),
        None => Zeroizing::new(match target.address_type {
            AddressType::P2pkhUncompressed => hex(&point.uncompressed()),
            AddressType::P2pkh | AddressType::P2sh | AddressType::P2wpkh => hex(&point.compressed()),
            AddressType::P2tr | AddressType::Rawtr => hex(&point.x),
        }),
    };
    let mut lines = Vec::new();
    if target.address_type == AddressType::P2tr {
        lines.push(("internal key", Zeroizing::new(hex(&point.x))));
        lines.push(("output key", Zeroizing::new(hex(&taproot_output(&point.x)))));
    }
    lines.push(("descriptor", descriptor(target.address_type, &key)));
    if let Some(note) = note(target.address_type) {
        lines.push(("import", Zeroizing::new(note.to_owned())));
    }
    lines
}

/// What must be known to import the key of such an address.
fn note(address_type: AddressType) -> Option<&'static str> {
    match address_type {
        AddressType::P2tr => Some(
            "the private key is the internal key's, before the tweak of BIP-341; the wallet adds the tweak. A split \
             result is joined to the internal key as well. Import the descriptor",
        ),
        AddressType::Rawtr => Some(
            "the private key is the output key's itself, with no tweak. A split result is joined to the output key. \
             Import the descriptor; a wallet that takes only a WIF key would add a tweak and show another address",
        ),
        _ => None,
    }
}

/// The descriptor with its checksum.
fn descriptor(address_type: AddressType, key: &str) -> Zeroizing<String> {
    let (before, after) = match address_type {
        AddressType::P2pkh | AddressType::P2pkhUncompressed => ("pkh(", ")"),
        AddressType::P2sh => ("sh(wpkh(", "))"),
        AddressType::P2wpkh => ("wpkh(", ")"),
        AddressType::P2tr => ("tr(", ")"),
        AddressType::Rawtr => ("rawtr(", ")"),
    };
    let mut text = Zeroizing::new(String::with_capacity(DESCRIPTOR));
    for part in [before, key, after] {
        text.push_str(part);
    }
    let checksum =
        descriptor_checksum(&text).expect("keys and functions are of the characters of descriptors");
    text.push('#');
    text.push_str(&checksum);
    debug_assert!(text.len() <= DESCRIPTOR);
    text
}

/// The checksum of a descriptor without one, eight characters (BIP-380); `None` when it has a character no descriptor
/// has.
pub fn descriptor_checksum(descriptor: &str) -> Option<String> {
    /// The characters of descriptors in groups of 32: within a group they are told apart by a symbol of their own.
    const INPUT: &str =
        "0123456789()[],'/*abcdefgh@:$%{}IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~ijklmnopqrstuvwxyzABCDEFGH`#\"\\ ";
    const SYMBOLS: usize = 8;
    let mut state: u64 = 1;
    // Each character is a symbol, and after three of them comes one for their groups.
    let (mut groups, mut count) = (0, 0);
    for character in descriptor.chars() {
        let position = INPUT.find(character)? as u64;
        state = step(state, position & 31);
        (groups, count) = (groups * 3 + (position >> 5), count + 1);
        if count == 3 {
            state = step(state, groups);
            (groups, count) = (0, 0);
        }
    }
    if count > 0 {
        state = step(state, groups);
    }
    let sum = (0..SYMBOLS).fold(state, |state, _| step(state, 0)) ^ 1;
    let symbol =
        |i: usize| crate::text::bech32::ALPHABET.as_bytes()[(sum >> (5 * (SYMBOLS - 1 - i)) & 31) as usize];
    Some((0..SYMBOLS).map(|i| char::from(symbol(i))).collect())
}

/// One step of the remainder, eight coefficients of five bits (BIP-380, `descsum_polymod`).
fn step(state: u64, value: u64) -> u64 {
    const MULTIPLES: [u64; 5] =
        [0xf5_dee5_1989, 0xa9_fdca_3312, 0x1b_ab10_e32d, 0x37_06b1_677a, 0x64_4d62_6ffd];
    let carry = state >> 35;
    let shifted = (state & 0x7_ffff_ffff) << 5 ^ value;
    MULTIPLES
        .iter()
        .enumerate()
        .fold(shifted, |s, (i, multiple)| if carry >> i & 1 == 1 { s ^ multiple } else { s })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
