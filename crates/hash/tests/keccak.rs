//! Keccak-256 against published digests and against the `sha3` crate; every lane of every instruction set.

use proptest::prelude::*;
use sha3::{Digest, Keccak256};
use warpsmith_hash::keccak::{
    RATE, RATE_WORDS, address_of_points, keccak256, one_block, one_block_address, padded,
};

use crate::common::{all_lanes, bytes, hex, twenty_bytes};

/// The independent implementation.
fn reference(message: &[u8]) -> [u8; 32] {
    Keccak256::digest(message).into()
}

/// Eight padded blocks in structure-of-arrays form.
fn gather(messages: &[Vec<u8>; 8]) -> [[u64; 8]; RATE_WORDS] {
    let mut block = [[0; 8]; RATE_WORDS];
    for (lane, message) in messages.iter().enumerate() {
        for (word, bytes) in block.iter_mut().zip(padded(message).chunks_exact(8)) {
            word[lane] = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
    }
    block
}

fn digest_of(words: &[[u64; 8]; 4], lane: usize) -> [u8; 32] {
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word[lane].to_le_bytes());
    }
    digest
}

#[test]
fn published_digests() {
    // The empty message and "abc" as in the Ethereum wiki and the Keccak team's vectors; the ERC-20 transfer
    // signature, whose first four bytes are the selector a9059cbb.
    let vectors: [(&[u8], &str); 3] = [
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
        (b"transfer(address,uint256)", "a9059cbb2ab09eb219583f4a59a5d0623ade346d962bcd4e46b11da047c9049b"),
    ];
    for (message, digest) in vectors {
        assert_eq!(hex(&keccak256(message)), digest);
    }
}

#[test]
fn every_length_over_two_blocks() {
    for len in 0..=300 {
        let message = bytes(len as u64, len);
        assert_eq!(keccak256(&message), reference(&message), "length {len}");
    }
}

#[test]
fn every_length_of_one_block_in_every_lane() {
    for lanes in all_lanes() {
        for len in 0..RATE {
            let messages: [Vec<u8>; 8] = std::array::from_fn(|lane| bytes((len * 8 + lane) as u64, len));
            let block = gather(&messages);
            let (digests, addresses) = (one_block(lanes, &block), one_block_address(lanes, &block));
            for (lane, message) in messages.iter().enumerate() {
                let expected = reference(message);
                assert_eq!(digest_of(&digests, lane), expected, "{lanes:?}, lane {lane}, length {len}");
                assert_eq!(
                    twenty_bytes(&addresses, lane),
                    expected[12..],
                    "{lanes:?}, lane {lane}, length {len}"
                );
            }
        }
    }
}

#[test]
fn blocks_of_equal_bits() {
    for lanes in all_lanes() {
        for byte in [0x00, 0xff, 0x80, 0x01] {
            let messages: [Vec<u8>; 8] = std::array::from_fn(|lane| vec![byte; RATE - 1 - lane]);
            let digests = one_block(lanes, &gather(&messages));
            for (lane, message) in messages.iter().enumerate() {
                assert_eq!(
                    digest_of(&digests, lane),
                    reference(message),
                    "{lanes:?}, lane {lane}, {byte:02x}"
                );
            }
        }
    }
}

#[test]
fn address_of_the_generator() {
    // The address of the private key 1, known to every Ethereum wallet.
    let x = [0x79be_667e_f9dc_bbac, 0x55a0_6295_ce87_0b07, 0x029b_fcdb_2dce_28d9, 0x59f2_815b_16f8_1798];
    let y = [0x483a_da77_26a3_c465, 0x5da4_fbfc_0e11_08a8, 0xfd17_b448_a685_5419, 0x9c47_d08f_fb10_d4b8];
    for lanes in all_lanes() {
        let words = address_of_points(lanes, &x.map(|w| [w; 8]), &y.map(|w| [w; 8]));
        for lane in 0..8 {
            assert_eq!(hex(&twenty_bytes(&words, lane)), "7e5f4552091a69125d5dfcb7b8c2659029395bdf");
        }
    }
}

#[test]
#[should_panic(expected = "136 bytes leave no room for padding")]
fn a_full_block_is_not_the_last() {
    padded(&[0; RATE]);
}

fn coordinate() -> impl Strategy<Value = [[u64; 8]; 4]> {
    // Runs of zeros and ones beside random words: edges of carries do not exist here, but of masks and shuffles.
    let word = prop_oneof![4 => any::<u64>(), 1 => Just(0), 1 => Just(u64::MAX), 1 => Just(1 << 63)];
    proptest::array::uniform4(proptest::array::uniform8(word))
}

proptest! {
    #[test]
    fn any_message(message in proptest::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert_eq!(keccak256(&message), reference(&message));
    }

    #[test]
    fn any_points_in_every_lane(x in coordinate(), y in coordinate()) {
        for lanes in all_lanes() {
            let words = address_of_points(lanes, &x, &y);
            for lane in 0..8 {
                let message: Vec<u8> = x.iter().chain(&y).flat_map(|w| w[lane].to_be_bytes()).collect();
                prop_assert_eq!(&twenty_bytes(&words, lane)[..], &reference(&message)[12..]);
            }
        }
    }
}
