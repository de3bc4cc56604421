//! Whom an output of Bitcoin pays: the address of a script, as bytes.
//!
//! The counterpart of [`identify`](crate::identify) for those who read chains instead of lists.

use super::Network;
use crate::hash::hash160;
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
