//! Addresses and keys as text on many random digests, there and back: base58check, bech32 and bech32m against the crates
//! `bitcoin` and `nostr`, the checksum of Ethereum against EIP-55 in a few lines.
//!
//! Some thousands of each in every run; 10^6 with `WARPSMITH_LONG=1`.

use miniscript::bitcoin::hashes::Hash;
use miniscript::bitcoin::{
    self, Address, NetworkKind, PubkeyHash, ScriptHash, WitnessProgram, WitnessVersion,
};
use nostr::nips::nip19::ToBech32;
use sha3::Digest as _;
use warpsmith_chain::coin::{AddressType, BITCOIN, CoinAddress, Network, decode_wif};
use warpsmith_chain::nostr::{Npub, decode_secret};
use warpsmith_chain::{Digest, KeyTarget, Target, ethereum};
use warpsmith_trials::{Random, count};

/// 10^6 with `WARPSMITH_LONG=1`.
fn texts() -> u64 {
    count(20_000, 1_000_000)
}

/// The text of the `bitcoin` crate.
fn theirs(target: &CoinAddress, digest: &[u8]) -> String {
    let is_main = target.network == Network::Main;
    let network = if is_main { bitcoin::Network::Bitcoin } else { bitcoin::Network::Testnet };
    let kind = NetworkKind::from(network);
    let address = match target.address_type {
        AddressType::P2pkh | AddressType::P2pkhUncompressed => {
            Address::p2pkh(PubkeyHash::from_slice(digest).expect("20 bytes"), kind)
        }
        AddressType::P2sh => Address::p2sh_from_hash(ScriptHash::from_slice(digest).expect("20 bytes"), kind),
        AddressType::P2wpkh | AddressType::P2tr | AddressType::Rawtr => {
            let version = if digest.len() == 20 { WitnessVersion::V0 } else { WitnessVersion::V1 };
            let program = WitnessProgram::new(version, digest).expect("20 or 32 bytes");
            Address::from_witness_program(
                program,
                if is_main { bitcoin::KnownHrp::Mainnet } else { bitcoin::KnownHrp::Testnets },
            )
        }
    };
    address.to_string()
}

#[test]
fn addresses_of_bitcoin() {
    let targets: Vec<CoinAddress> = BITCOIN.addresses().collect();
    let mut random = Random::new("bitcoin");
    for at in 0..texts() {
        let target = &targets[at as usize % targets.len()];
        let is_hash = !target.is_taproot();
        let number = random.number();
        let digest = if is_hash { &number[..20] } else { &number[..] };
        let (text, digest) = (theirs(target, digest), Digest::new(digest));
        assert_eq!(target.encode(&digest), text, "{target:?}");
        assert_eq!(target.decode(&text), Ok(digest), "{target:?}");
    }
}

#[test]
fn keys_of_bitcoin() {
    let mut random = Random::new("WIF");
    for at in 0..texts() {
        let (secret, is_main, compressed) = (random.uniform(), at & 1 == 0, at & 2 == 0);
        let Ok(inner) = bitcoin::secp256k1::SecretKey::from_slice(&secret) else { continue };
        let (kind, network) =
            if is_main { (NetworkKind::Main, Network::Main) } else { (NetworkKind::Test, Network::Test) };
        let text = bitcoin::PrivateKey { compressed, network: kind, inner }.to_wif();
        let address_type = if compressed { AddressType::P2pkh } else { AddressType::P2pkhUncompressed };
        assert_eq!(*BITCOIN.on(network, address_type).export(&secret), text);
        let read = decode_wif(&text).expect("their text is read");
        let version = BITCOIN.params(network).wif;
        assert_eq!((*read.secret, read.is_compressed, read.version), (secret, compressed, version));
    }
}

#[test]
fn keys_of_nostr() {
    let mut random = Random::new("nostr");
    for _ in 0..texts() {
        let number = random.uniform();
        let Ok(secret) = nostr::key::SecretKey::from_slice(&number) else { continue };
        let text = secret.to_bech32().expect("always");
        assert_eq!(*Npub.export(&number), text);
        assert_eq!(*decode_secret(&text).expect("their text is read"), number);
        let text = nostr::key::PublicKey::from_byte_array(number).to_bech32().expect("always");
        assert_eq!(Npub.encode(&Digest::new(&number)), text);
        // Whether a number is an x coordinate is not the text's business.
        assert_eq!(Npub.decode(&text), Ok(Digest::new(&number)), "{text}");
    }
}

#[test]
fn addresses_of_ethereum() {
    let mut random = Random::new("ethereum");
    for _ in 0..texts() {
        let digest = Digest::new(&random.number()[..20]);
        // EIP-55: a letter is upper case where the hash of the lower-case text has a digit above 7.
        let lower = const_hex::encode(digest.as_bytes());
        let hash = const_hex::encode(sha3::Keccak256::digest(&lower));
        let cased = lower.chars().zip(hash.chars());
        let text: String = cased.map(|(c, h)| if h > '7' { c.to_ascii_uppercase() } else { c }).collect();
        assert_eq!(ethereum::Account.encode(&digest), format!("0x{text}"));
        assert_eq!(ethereum::decode(&format!("0x{text}")).expect("their text is read"), digest.as_bytes());
    }
}
