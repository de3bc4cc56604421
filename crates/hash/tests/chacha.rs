//! ChaCha12 against published keystreams and the `chacha20` crate; every lane of every instruction set.

use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use proptest::prelude::*;
use warpsmith_hash::chacha::{words, words_of_sixteen};

use crate::common::{all_lanes, hex};

fn keystream(words: [u32; 16]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// The independent implementation: 64 bytes of keystream.
fn reference(key: &[u32; 8], [counter, nonce @ ..]: [u32; 4]) -> Vec<u8> {
    let key: Vec<u8> = key.iter().flat_map(|w| w.to_le_bytes()).collect();
    let nonce: Vec<u8> = nonce.iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut cipher = chacha20::ChaCha12::new_from_slices(&key, &nonce).expect("sizes fit");
    cipher.seek(u64::from(counter) * 64);
    let mut bytes = vec![0; 64];
    // The last block of all cannot be asked for: the crate refuses to let its counter wrap.
    cipher.try_apply_keystream(&mut bytes).expect("the counter does not wrap");
    bytes
}

/// draft-strombergson-chacha-test-vectors-01: keys of 256 bits, 12 rounds, blocks 0 and 1.
#[test]
fn published_keystreams() {
    let vectors = [
        (
            [0; 8],
            [
                "9bf49a6a0755f953811fce125f2683d50429c3bb49e074147e0089a52eae155f\
                 0564f879d27ae3c02ce82834acfa8c793a629f2ca0de6919610be82f411326be",
                "0bd58841203e74fe86fc71338ce0173dc628ebb719bdcbcc151585214cc089b4\
                 42258dcda14cf111c602b8971b8cc843e91e46ca905151c02744a6b017e69316",
            ],
        ),
        (
            // The first byte of the key is 1.
            [1, 0, 0, 0, 0, 0, 0, 0],
            [
                "12056e595d56b0f6eef090f0cd25a20949248c2790525d0f930218ff0b4ddd10\
                 a6002239d9a454e29e107a7d06fefdfef0210feba044f9f29b1772c960dc29c0",
                "0c7366c5cbc604240e665eb02a69372a7af979b26fbb78092ac7c4b88029a7c8\
                 54513bc217bbfc7d90432e308eba15afc65aeb48ef100d5601e6afba257117a9",
            ],
        ),
    ];
    for (key, blocks) in vectors {
        for (counter, expected) in blocks.into_iter().enumerate() {
            let place = [counter as u32, 0, 0, 0];
            assert_eq!(hex(&keystream(words(&key, place))), expected);
            for lanes in all_lanes() {
                let all = words_of_sixteen(lanes, &key, &place.map(|word| [word; 16]));
                for lane in 0..16 {
                    assert_eq!(
                        hex(&keystream(all.map(|word| word[lane]))),
                        expected,
                        "{lanes:?}, lane {lane}"
                    );
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_place_in_every_lane(
        key in any::<[u32; 8]>(),
        counters in any::<[u32; 16]>(),
        nonces in any::<[[u32; 16]; 3]>(),
    ) {
        let counters = counters.map(|c| c.min(u32::MAX - 1));
        let places = [counters, nonces[0], nonces[1], nonces[2]];
        for lanes in all_lanes() {
            let all = words_of_sixteen(lanes, &key, &places);
            for lane in 0..16 {
                let place = places.map(|word| word[lane]);
                let expected = reference(&key, place);
                prop_assert_eq!(keystream(words(&key, place)), expected.clone());
                prop_assert_eq!(keystream(all.map(|word| word[lane])), expected, "{:?}, lane {}", lanes, lane);
            }
        }
    }
}
