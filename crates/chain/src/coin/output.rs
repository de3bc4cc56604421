//! Whom an output of Bitcoin pays: the address of a script, as bytes.
//!
//! The counterpart of [`identify`](crate::identify) for those who read chains instead of lists.

use bech32::primitives::decode::SegwitHrpstring;

use super::Network;
use crate::hash::hash160;
use crate::text::base58;
use crate::{Address, AddressKind, Digest};

/// Reads output scripts of one network.
#[derive(Clone, Copy, Debug)]
pub struct Outputs {
    p2pkh: AddressKind,
    p2sh: AddressKind,
    p2wpkh: AddressKind,
    p2tr: AddressKind,
}

impl Outputs {
    /// Those of a network: the scripts are the same on all, but not what their addresses are kept as.
    pub fn on(network: Network) -> Outputs {
        match network {
            Network::Main => Outputs {
                p2pkh: AddressKind::P2PKH,
                p2sh: AddressKind::P2SH,
                p2wpkh: AddressKind::P2WPKH,
                p2tr: AddressKind::P2TR,
            },
            Network::Test => {
                let kind = |name| AddressKind::find(name).expect("Bitcoin has a test network");
                Outputs {
                    p2pkh: kind("p2pkh-test"),
                    p2sh: kind("p2sh-test"),
                    p2wpkh: kind("p2wpkh-test"),
                    p2tr: kind("p2tr-test"),
                }
            }
        }
    }

    /// Whom a script pays. An output to a bare public key (P2PK) is taken for one to the key's hash: whoever has the key has both.
    pub fn address(&self, script: &[u8]) -> Address {
        let key = |kind, digest: &[u8]| Address::Key(kind, Digest::new(digest));
        match script {
            // OP_DUP OP_HASH160, a push of 20 bytes, OP_EQUALVERIFY OP_CHECKSIG.
            [0x76, 0xa9, 0x14, hash @ .., 0x88, 0xac] if hash.len() == 20 => key(self.p2pkh, hash),
            // OP_HASH160, a push of 20 bytes, OP_EQUAL.
            [0xa9, 0x14, hash @ .., 0x87] if hash.len() == 20 => key(self.p2sh, hash),
            // A push of a key, OP_CHECKSIG.
            [0x21, public @ .., 0xac] if public.len() == 33 && is_point(public) => {
                key(self.p2pkh, &hash160(public))
            }
            [0x41, public @ .., 0xac] if public.len() == 65 && public[0] == 4 && is_point(public) => {
                key(self.p2pkh, &hash160(public))
            }
            // Witness programs of version 0 and 1.
            [0x00, 0x14, hash @ ..] if hash.len() == 20 => key(self.p2wpkh, hash),
            [0x51, 0x20, x @ ..] if x.len() == 32 => key(self.p2tr, x),
            [0x00, 0x20, hash @ ..] if hash.len() == 32 => Address::Script("P2WSH, the hash of a script"),
            _ => Address::Script("a script of its own"),
        }
    }
}

/// The output script of a Bitcoin address of any network, that of a hash of a script too; none where the text is no such address.
///
/// ```
/// use warpsmith_chain::coin::output_script;
///
/// let script = output_script("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4").unwrap();
/// assert_eq!(script[..2], [0x00, 0x14], "version 0, and 20 bytes of a hash");
/// assert_eq!(output_script("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5"), None);
/// ```
pub fn output_script(address: &str) -> Option<Vec<u8>> {
    if let Some([version, hash @ ..]) = base58::address_payload(address) {
        // Main network, and the test networks, which share theirs.
        return match version {
            0x00 | 0x6f => Some([&[0x76, 0xa9, 0x14][..], &hash, &[0x88, 0xac]].concat()),
            0x05 | 0xc4 => Some([&[0xa9, 0x14][..], &hash, &[0x87]].concat()),
            _ => None,
        };
    }
    let parsed = SegwitHrpstring::new(address).ok()?;
    if !["bc", "tb", "bcrt"].contains(&parsed.hrp().to_lowercase().as_str()) {
        return None;
    }
    let program: Vec<u8> = parsed.byte_iter().collect();
    // OP_0, or OP_1 to OP_16; then the push of the program.
    let version = match parsed.witness_version().to_u8() {
        0 => 0,
        version => 0x50 + version,
    };
    Some([&[version, program.len() as u8][..], &program].concat())
}

/// Whether a key is on the curve: some outputs are to what only looks like a key.
fn is_point(public: &[u8]) -> bool {
    secp256k1::PublicKey::from_slice(public).is_ok()
}

#[cfg(test)]
mod tests {
    use miniscript::bitcoin::hashes::Hash as _;
    use miniscript::bitcoin::key::Secp256k1;
    use miniscript::bitcoin::{self, KnownHrp, PrivateKey, PublicKey, ScriptBuf, WScriptHash};

    use super::*;
    use crate::identify;

    /// Scripts as the `bitcoin` crate writes them, and the addresses it gives them, read by the one and by the other.
    #[test]
    fn scripts_pay_the_addresses_that_others_say_they_do() {
        let secp = Secp256k1::new();
        for network in [bitcoin::Network::Bitcoin, bitcoin::Network::Testnet] {
            let (hrp, outputs) = match network {
                bitcoin::Network::Bitcoin => (KnownHrp::Mainnet, Outputs::on(Network::Main)),
                _ => (KnownHrp::Testnets, Outputs::on(Network::Test)),
            };
            for number in 1..50 {
                let key = PrivateKey::from_slice(&[number; 32], network).unwrap();
                let public = key.public_key(&secp);
                let uncompressed = PublicKey::new_uncompressed(public.inner);
                let compressed = bitcoin::CompressedPublicKey(public.inner);
                let all = [
                    bitcoin::Address::p2pkh(public, network),
                    bitcoin::Address::p2pkh(uncompressed, network),
                    bitcoin::Address::p2shwpkh(&compressed, network),
                    bitcoin::Address::p2wpkh(&compressed, hrp),
                    bitcoin::Address::p2tr(&secp, public.inner.x_only_public_key().0, None, hrp),
                ];
                for address in &all {
                    let expected = identify(&address.to_string()).unwrap();
                    assert!(matches!(expected, Address::Key(..)));
                    assert_eq!(outputs.address(address.script_pubkey().as_bytes()), expected, "{address}");
                    assert_eq!(output_script(&address.to_string()), Some(address.script_pubkey().to_bytes()));
                }
                // A bare key is paid as its hash is.
                for (key, address) in [(public, &all[0]), (uncompressed, &all[1])] {
                    let script = ScriptBuf::new_p2pk(&key);
                    assert_eq!(outputs.address(script.as_bytes()), identify(&address.to_string()).unwrap());
                }
            }
        }
    }

    #[test]
    fn addresses_of_scripts_and_of_versions_to_come_have_scripts_too() {
        let (p2wsh, p2sh) =
            (ScriptBuf::new_p2wsh(&WScriptHash::all_zeros()), ScriptBuf::new_op_return([]).to_p2sh());
        for network in [bitcoin::Network::Bitcoin, bitcoin::Network::Testnet, bitcoin::Network::Regtest] {
            for script in [&p2wsh, &p2sh] {
                let address = bitcoin::Address::from_script(script, network).unwrap().to_string();
                assert_eq!(output_script(&address), Some(script.to_bytes()), "{address}");
                assert_eq!(output_script(&address.to_uppercase()).is_some(), script == &p2wsh);
            }
        }
        // BIP-350: OP_16 with two bytes.
        assert_eq!(output_script("BC1SW50QGDZ25J"), Some(vec![0x60, 2, 0x75, 0x1e]));
        for wrong in [
            "",
            "bob",
            "0x00000000219ab540356cbb839cbe05303d7705fa",
            "ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9",
            "LM2WMpR1Rp6j3Sa59cMXMs1SPzj9eXpGc1",
            "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMJ",
        ] {
            assert_eq!(output_script(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn other_scripts_have_no_key() {
        let outputs = Outputs::on(Network::Main);
        let p2wsh = ScriptBuf::new_p2wsh(&WScriptHash::all_zeros());
        let mut odd: Vec<Vec<u8>> = vec![vec![], vec![0x6a, 1, 2], p2wsh.to_bytes(), vec![0x51; 40]];
        // One byte too many or too few, and keys that are none.
        for (head, length, tail) in [
            (&[0x76, 0xa9, 0x14][..], 20, &[0x88, 0xac][..]),
            (&[0xa9, 0x14], 20, &[0x87]),
            (&[0x00, 0x14], 20, &[]),
            (&[0x51, 0x20], 32, &[]),
        ] {
            let with = |length: usize| [head, &vec![7; length], tail].concat();
            assert!(matches!(outputs.address(&with(length)), Address::Key(..)));
            odd.extend([with(length - 1), with(length + 1)]);
        }
        // The generator's key is one; a byte less, another sign, and an x coordinate that no point has are not.
        let secret = secp256k1::SecretKey::from_secret_bytes([1; 32]).unwrap();
        let public = secp256k1::PublicKey::from_secret_key(&secret);
        let pay = |key: &[u8]| [&[key.len() as u8], key, &[0xac]].concat();
        let (whole, half) = (public.serialize_uncompressed(), public.serialize());
        assert!(
            [pay(&whole), pay(&half)]
                .iter()
                .all(|script| matches!(outputs.address(script), Address::Key(..)))
        );
        let changed = |key: &[u8], at: usize, to: u8| {
            let mut key = key.to_vec();
            key[at] = to;
            pay(&key)
        };
        let hybrid = changed(&whole, 0, 6 | (whole[64] & 1));
        odd.extend([
            pay(&whole[..64]),
            pay(&half[..32]),
            hybrid,
            changed(&whole, 64, whole[64] ^ 1),
            changed(&half, 0, 5),
        ]);
        let mut five = [0; 33];
        (five[0], five[32]) = (2, 5);
        odd.push(pay(&five));
        for script in odd {
            assert!(matches!(outputs.address(&script), Address::Script(_)), "{script:02x?}");
        }
    }
}
