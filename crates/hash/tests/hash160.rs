//! SHA-256, RIPEMD-160 and both together against published digests and the `sha2` and `ripemd` crates; every lane of
//! every instruction set.

use proptest::prelude::*;
use ripemd::Ripemd160;
use sha2::{Digest, Sha256};
use warpsmith_hash::hash160::{
    Digest8, compressed, compressed_keys, hash160, uncompressed, uncompressed_keys, witness_scripts,
};
use warpsmith_hash::ripemd160::{self, ripemd160};
use warpsmith_hash::sha256::{self, Tagged, Word16, sha256};

use crate::common::{all_lanes, bytes, hex, twenty_bytes};

/// The independent implementations.
fn reference_sha256(message: &[u8]) -> [u8; 32] {
    Sha256::digest(message).into()
}
fn reference_ripemd160(message: &[u8]) -> [u8; 20] {
    Ripemd160::digest(message).into()
}
fn reference(message: &[u8]) -> [u8; 20] {
    reference_ripemd160(&reference_sha256(message))
}

#[test]
fn published_digests() {
    // FIPS 180-4's examples; those of the authors of RIPEMD-160.
    let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    let vectors: [(&[u8], &str, &str); 4] = [
        (
            b"",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "9c1185a5c5e9fc54612808977ee8f548b2258d31",
        ),
        (
            b"abc",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc",
        ),
        (
            long,
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            "12a053384a9c0c88e405a06c27dcf49ada62eb2b",
        ),
        (
            &[b'a'; 1_000_000],
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
            "52783243c1697bdbe16d37f97f68f08325dc1528",
        ),
    ];
    for (message, sha, ripemd) in vectors {
        assert_eq!(hex(&sha256(message)), sha);
        assert_eq!(hex(&ripemd160(message)), ripemd);
    }
}

#[test]
fn every_length_over_some_blocks() {
    for len in 0..=300 {
        let message = bytes(len as u64, len);
        assert_eq!(sha256(&message), reference_sha256(&message), "length {len}");
        assert_eq!(ripemd160(&message), reference_ripemd160(&message), "length {len}");
        assert_eq!(hash160(&message), reference(&message), "length {len}");
    }
}

/// Sixteen padded blocks as words; `word` reads four bytes, `length` writes the number of bits.
fn gather(messages: &[Vec<u8>; 16], word: fn([u8; 4]) -> u32, length: fn(u64) -> [u8; 8]) -> [Word16; 16] {
    let mut words = [[0; 16]; 16];
    for (lane, message) in messages.iter().enumerate() {
        let mut block = [0; 64];
        block[..message.len()].copy_from_slice(message);
        block[message.len()] = 0x80;
        block[56..].copy_from_slice(&length(8 * message.len() as u64));
        for (words, bytes) in words.iter_mut().zip(block.as_chunks().0) {
            words[lane] = word(*bytes);
        }
    }
    words
}

#[test]
fn every_length_of_one_block_in_every_lane() {
    for lanes in all_lanes() {
        for len in 0..=55 {
            let messages: [Vec<u8>; 16] = std::array::from_fn(|lane| match lane {
                0 => vec![0; len],
                15 => vec![0xff; len],
                _ => bytes((16 * len + lane) as u64, len),
            });
            let sha = sha256::one_block(lanes, &gather(&messages, u32::from_be_bytes, u64::to_be_bytes));
            let ripemd =
                ripemd160::one_block(lanes, &gather(&messages, u32::from_le_bytes, u64::to_le_bytes));
            for (lane, message) in messages.iter().enumerate() {
                let got: Vec<u8> = sha.iter().flat_map(|w| w[lane].to_be_bytes()).collect();
                assert_eq!(got, reference_sha256(message), "{lanes:?}, lane {lane}, length {len}");
                let got: Vec<u8> = ripemd.iter().flat_map(|w| w[lane].to_le_bytes()).collect();
                assert_eq!(got, reference_ripemd160(message), "{lanes:?}, lane {lane}, length {len}");
            }
        }
    }
}

#[test]
fn hashes_of_the_generator() {
    // The private key 1: BIP-173 names the first of these, every wallet the others.
    let x = [0x79be_667e_f9dc_bbac, 0x55a0_6295_ce87_0b07, 0x029b_fcdb_2dce_28d9, 0x59f2_815b_16f8_1798];
    let y = [0x483a_da77_26a3_c465, 0x5da4_fbfc_0e11_08a8, 0xfd17_b448_a685_5419, 0x9c47_d08f_fb10_d4b8];
    for lanes in all_lanes() {
        let (x, y) = (x.map(|w| [w; 8]), y.map(|w| [w; 8]));
        let keys = compressed(lanes, &x);
        let whole = uncompressed(lanes, &x, &[y, y]);
        let scripts = witness_scripts(lanes, &keys);
        for lane in 0..8 {
            // G has an even y: the first half.
            assert_eq!(hex(&twenty_bytes(&keys[0], lane)), "751e76e8199196d454941c45d1b3a323f1433bd6");
            assert_eq!(hex(&twenty_bytes(&whole[0], lane)), "91b24bf9f5288532960ac687abb035127b1d28a5");
            assert_eq!(hex(&twenty_bytes(&scripts[0], lane)), "bcfeb728b584253d5f3f70bcb780e9ef218a68f4");
        }
    }
}

fn coordinate() -> impl Strategy<Value = [[u64; 8]; 4]> {
    let word = prop_oneof![4 => any::<u64>(), 1 => Just(0), 1 => Just(u64::MAX), 1 => Just(1 << 63)];
    proptest::array::uniform4(proptest::array::uniform8(word))
}

fn lane_bytes(words: &[[u64; 8]], lane: usize) -> Vec<u8> {
    words.iter().flat_map(|w| w[lane].to_be_bytes()).collect()
}

proptest! {
    #[test]
    fn any_message(message in proptest::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert_eq!(sha256(&message), reference_sha256(&message));
        prop_assert_eq!(ripemd160(&message), reference_ripemd160(&message));
    }

    #[test]
    fn tagged_hashes_in_every_lane(x in coordinate(), y in coordinate(), tag in "[A-Za-z/0-9]{0,80}") {
        let tagged = Tagged::new(tag.as_bytes());
        let tag = reference_sha256(tag.as_bytes());
        for lanes in all_lanes() {
            let digests = tagged.of_32_bytes(lanes, [&x, &y]);
            for lane in 0..8 {
                for (digests, message) in digests.iter().zip([&x, &y]) {
                    let expected = reference_sha256(&[&tag[..], &tag, &lane_bytes(message, lane)].concat());
                    prop_assert_eq!(lane_bytes(digests, lane), expected);
                }
            }
        }
    }

    #[test]
    fn any_keys_in_every_lane(x in coordinate(), y in coordinate(), z in coordinate()) {
        for lanes in all_lanes() {
            let keys = compressed(lanes, &x);
            let whole = uncompressed(lanes, &x, &[y, z]);
            let scripts: [Digest8; 2] = witness_scripts(lanes, &keys);
            for lane in 0..8 {
                let own_x = lane_bytes(&x, lane);
                for half in 0..2 {
                    let key = reference(&[&[2 + half as u8], &own_x[..]].concat());
                    prop_assert_eq!(twenty_bytes(&keys[half], lane), key);
                    let own_y = lane_bytes(if half == 0 { &y } else { &z }, lane);
                    let expected = reference(&[&[4], &own_x[..], &own_y].concat());
                    prop_assert_eq!(twenty_bytes(&whole[half], lane), expected);
                    let script = reference(&[&[0x00, 0x14], &key[..]].concat());
                    prop_assert_eq!(twenty_bytes(&scripts[half], lane), script);
                }
            }
        }
    }

    #[test]
    fn any_sixteen_keys(x in coordinate(), z in coordinate(), y in coordinate(), odd in any::<[u8; 2]>()) {
        for lanes in all_lanes() {
            let keys = compressed_keys(lanes, &[x, z], odd);
            let whole = uncompressed_keys(lanes, &[x, z], &[y, x]);
            for lane in 0..8 {
                for (half, (x, y)) in [(&x, &y), (&z, &x)].into_iter().enumerate() {
                    let (own_x, own_y) = (lane_bytes(x, lane), lane_bytes(y, lane));
                    let head = 2 + (odd[half] >> lane & 1);
                    prop_assert_eq!(twenty_bytes(&keys[half], lane), reference(&[&[head], &own_x[..]].concat()));
                    let expected = reference(&[&[4], &own_x[..], &own_y].concat());
                    prop_assert_eq!(twenty_bytes(&whole[half], lane), expected);
                }
            }
        }
    }
}
