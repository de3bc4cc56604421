//! Values of the PRF for other implementations, devices among them; and the function against ChaCha12 of another crate.

use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use warpsmith_hash::{Lanes, Simd};
use warpsmith_rms24::{Choice, Domain, Key, Params, Prf};

fn key() -> [u8; 32] {
    std::array::from_fn(|i| i as u8)
}

fn prf(block_size: u32, simd: Simd) -> Prf {
    let choice = Choice { block_size: Some(block_size), lambda: 1, ..Choice::new(1 << 20, 40) };
    Prf::new(&Key::from_bytes(key()), &Params::new(choice).unwrap(), Lanes::new(simd))
}

/// The word as the head of `prf.rs` defines it, by the `chacha20` crate.
fn reference(domain: u32, id: u64, block: u32) -> u32 {
    let mut nonce = [0; 12];
    for (bytes, word) in nonce.chunks_exact_mut(4).zip([domain, block, (id >> 36) as u32]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let mut cipher = chacha20::ChaCha12::new(&key().into(), &nonce.into());
    cipher.seek(u64::from((id >> 4) as u32) * 64 + id % 16 * 4);
    let mut word = [0; 4];
    cipher.apply_keystream(&mut word);
    u32::from_le_bytes(word)
}

#[test]
fn words_are_those_of_chacha12() {
    let packed = prf(4096, Simd::Portable);
    let wide = prf(1000, Simd::Portable);
    for id in [0, 1, 15, 16, 17, 1 << 20, (1 << 36) - 17, 1 << 36, (1 << 59) + 5] {
        for block in [0, 1, 77, u32::MAX] {
            for (domain, number) in [(Domain::Choice, 0), (Domain::Offset, 1), (Domain::Tie, 2)] {
                assert_eq!(
                    packed.word(domain, id, block),
                    reference(number, id, block),
                    "{domain:?} {id} {block}"
                );
            }
            let [choice, offset, tie] = [0, 1, 2].map(|domain| reference(domain, id, block));
            assert_eq!(packed.order(id, block), (choice >> 16 << 16) + (tie >> 16));
            assert_eq!(packed.offset(id, block), choice % 4096);
            assert_eq!(wide.order(id, block), choice);
            assert_eq!(wide.offset(id, block), ((u64::from(offset) * 1000) >> 32) as u32);
        }
    }
}

/// Key 00 01 .. 1f. (id, block): order and offset with blocks of 4096, order and offset with blocks of 1000.
const PUBLISHED: [((u64, u32), [u32; 4]); 5] = [
    ((0, 0), [0xfff9_9d34, 0x1f2, 0xfff9_31f2, 0x1e5]),
    ((1, 0), [0x5ec6_7102, 0xad1, 0x5ec6_7ad1, 0x18c]),
    ((16, 3), [0xe717_a679, 0xc17, 0xe717_7c17, 0x26e]),
    ((1_000_003, 255), [0xab35_13b5, 0x69b, 0xab35_f69b, 0x309]),
    ((1 << 36 | 21, 9), [0x2f60_7a20, 0xdf1, 0x2f60_7df1, 0x339]),
];

#[test]
fn published_values() {
    let (packed, wide) = (prf(4096, Simd::Portable), prf(1000, Simd::Portable));
    let values = PUBLISHED.map(|((id, block), _)| {
        [packed.order(id, block), packed.offset(id, block), wide.order(id, block), wide.offset(id, block)]
    });
    assert_eq!(values, PUBLISHED.map(|(_, values)| values), "{values:#x?}");
}
