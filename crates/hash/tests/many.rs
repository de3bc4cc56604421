//! Keccak-256, SHA-256, RIPEMD-160 and what is made of them, on many random messages: one message at a time and in every lane of
//! every instruction set, against the crates `sha3`, `sha2` and `ripemd`.
//!
//! Some thousands of each in every run; 10^6 with `WARPSMITH_LONG=1`.

use ripemd::Ripemd160;
use sha2::{Digest, Sha256};
use sha3::Keccak256;
use warpsmith_hash::hash160::{
    compressed, compressed_keys, hash160, uncompressed, uncompressed_keys, witness_scripts,
};
use warpsmith_hash::keccak::{
    RATE, RATE_WORDS, address_of_points, keccak256, one_block, one_block_address, padded,
};
use warpsmith_hash::ripemd160::{self, ripemd160};
use warpsmith_hash::sha256::{self, Tagged, sha256};
use warpsmith_trials::{Random, count};

use crate::common::{all_lanes, twenty_bytes};

/// 10^6 with `WARPSMITH_LONG=1`.
fn messages() -> u64 {
    count(20_000, 1_000_000)
}

fn hash160_by_others(message: &[u8]) -> [u8; 20] {
    Ripemd160::digest(Sha256::digest(message)).into()
}

fn address_by_others(message: &[u8]) -> [u8; 20] {
    *Keccak256::digest(message).last_chunk().expect("32 bytes")
}

#[test]
fn one_message_at_a_time() {
    let mut random = Random::new("messages");
    let mut message = [0; 300];
    for _ in 0..messages() {
        random.fill(&mut message);
        let message = &message[..random.below(message.len() as u64 + 1) as usize];
        assert_eq!(keccak256(message), *Keccak256::digest(message), "{message:02x?}");
        assert_eq!(sha256(message), *Sha256::digest(message), "{message:02x?}");
        assert_eq!(ripemd160(message), *Ripemd160::digest(message), "{message:02x?}");
        assert_eq!(hash160(message), hash160_by_others(message), "{message:02x?}");
    }
}

#[test]
fn keccak_blocks_in_every_lane() {
    for lanes in all_lanes() {
        let mut random = Random::new(&format!("keccak, {lanes:?}"));
        for _ in 0..messages() / 8 {
            let messages: [Vec<u8>; 8] = std::array::from_fn(|_| {
                let mut message = vec![0; random.below(RATE as u64) as usize];
                random.fill(&mut message);
                message
            });
            let mut block = [[0; 8]; RATE_WORDS];
            for (lane, message) in messages.iter().enumerate() {
                for (word, bytes) in block.iter_mut().zip(padded(message).as_chunks().0) {
                    word[lane] = u64::from_le_bytes(*bytes);
                }
            }
            let (digests, addresses) = (one_block(lanes, &block), one_block_address(lanes, &block));
            for (lane, message) in messages.iter().enumerate() {
                let expected: [u8; 32] = Keccak256::digest(message).into();
                let got: Vec<u8> = digests.iter().flat_map(|word| word[lane].to_le_bytes()).collect();
                assert_eq!(got, expected, "{lanes:?}, lane {lane}, {message:02x?}");
                assert_eq!(
                    twenty_bytes(&addresses, lane),
                    expected[12..],
                    "{lanes:?}, lane {lane}, {message:02x?}"
                );
            }
        }
    }
}

#[test]
fn sha_and_ripemd_blocks_in_every_lane() {
    for lanes in all_lanes() {
        let mut random = Random::new(&format!("sha and ripemd, {lanes:?}"));
        for _ in 0..messages() / 16 {
            let messages: [Vec<u8>; 16] = std::array::from_fn(|_| {
                let mut message = vec![0; random.below(56) as usize];
                random.fill(&mut message);
                message
            });
            let (mut big, mut little) = ([[0; 16]; 16], [[0; 16]; 16]);
            for (lane, message) in messages.iter().enumerate() {
                let mut block = [0; 64];
                block[..message.len()].copy_from_slice(message);
                block[message.len()] = 0x80;
                let bits = 8 * message.len() as u64;
                block[56..].copy_from_slice(&bits.to_be_bytes());
                let words = big.iter_mut().zip(block.as_chunks().0);
                words.for_each(|(word, bytes)| word[lane] = u32::from_be_bytes(*bytes));
                block[56..].copy_from_slice(&bits.to_le_bytes());
                let words = little.iter_mut().zip(block.as_chunks().0);
                words.for_each(|(word, bytes)| word[lane] = u32::from_le_bytes(*bytes));
            }
            let (sha, ripemd) = (sha256::one_block(lanes, &big), ripemd160::one_block(lanes, &little));
            for (lane, message) in messages.iter().enumerate() {
                let got: Vec<u8> = sha.iter().flat_map(|word| word[lane].to_be_bytes()).collect();
                assert_eq!(got[..], Sha256::digest(message)[..], "{lanes:?}, lane {lane}, {message:02x?}");
                let got: Vec<u8> = ripemd.iter().flat_map(|word| word[lane].to_le_bytes()).collect();
                assert_eq!(got[..], Ripemd160::digest(message)[..], "{lanes:?}, lane {lane}, {message:02x?}");
            }
        }
    }
}

#[test]
fn keys_in_every_lane() {
    let tag = Sha256::digest(b"TapTweak");
    let tagged = Tagged::new(b"TapTweak");
    for lanes in all_lanes() {
        let mut random = Random::new(&format!("keys, {lanes:?}"));
        for _ in 0..messages() / 8 {
            let mut coordinate =
                || -> [[u64; 8]; 4] { std::array::from_fn(|_| std::array::from_fn(|_| random.word())) };
            let (x, z, y, w) = (coordinate(), coordinate(), coordinate(), coordinate());
            let odd = [y[3][0] as u8, w[3][0] as u8];
            let keys = compressed(lanes, &x);
            let both = compressed_keys(lanes, &[x, z], odd);
            let scripts = witness_scripts(lanes, &keys);
            let whole = [uncompressed(lanes, &x, &[y, w]), uncompressed_keys(lanes, &[x, z], &[y, w])];
            let accounts = address_of_points(lanes, &x, &y);
            let tweaks = tagged.of_32_bytes(lanes, [&x, &z]);
            for lane in 0..8 {
                let bytes = |words: &[[u64; 8]]| -> Vec<u8> {
                    words.iter().flat_map(|word| word[lane].to_be_bytes()).collect()
                };
                let (x, z, y, w) = (bytes(&x), bytes(&z), bytes(&y), bytes(&w));
                let key = |head: u8, x: &[u8]| hash160_by_others(&[&[head], x].concat());
                let point = |x: &[u8], y: &[u8]| hash160_by_others(&[&[4], x, y].concat());
                for half in 0..2 {
                    let own = key(2 + half as u8, &x);
                    assert_eq!(twenty_bytes(&keys[half], lane), own, "{lanes:?}, lane {lane}");
                    let script = hash160_by_others(&[&[0, 20], &own[..]].concat());
                    assert_eq!(twenty_bytes(&scripts[half], lane), script, "{lanes:?}, lane {lane}");
                    let (own_x, own_y) = if half == 0 { (&x, &y) } else { (&z, &w) };
                    let expected = key(2 + (odd[half] >> lane & 1), own_x);
                    assert_eq!(twenty_bytes(&both[half], lane), expected, "{lanes:?}, lane {lane}");
                    assert_eq!(
                        twenty_bytes(&whole[0][half], lane),
                        point(&x, own_y),
                        "{lanes:?}, lane {lane}"
                    );
                    assert_eq!(
                        twenty_bytes(&whole[1][half], lane),
                        point(own_x, own_y),
                        "{lanes:?}, lane {lane}"
                    );
                    let expected = Sha256::digest([&tag[..], &tag, own_x].concat());
                    assert_eq!(bytes(&tweaks[half]), expected[..], "{lanes:?}, lane {lane}");
                }
                let expected = address_by_others(&[&x[..], &y].concat());
                assert_eq!(twenty_bytes(&accounts, lane), expected, "{lanes:?}, lane {lane}");
            }
        }
    }
}
