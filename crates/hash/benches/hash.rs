//! Each hash in each kind of lanes, beside the crate everybody uses. The figure is time a batch; elements are
//! messages.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sha3::Digest;
use warpsmith_hash::{Lanes, SETS, Simd, chacha, hash160, keccak};

fn all_lanes() -> impl Iterator<Item = Lanes> {
    Simd::available(&SETS).map(Lanes::new)
}

fn keccak(c: &mut Criterion) {
    let mut g = c.benchmark_group("keccak-64-bytes");
    let message = [7u8; 64];
    g.throughput(Throughput::Elements(1));
    g.bench_function("sha3", |b| b.iter(|| sha3::Keccak256::digest(black_box(message))));
    g.bench_function("scalar", |b| b.iter(|| keccak::keccak256(black_box(&message))));
    g.throughput(Throughput::Elements(8));
    for lanes in all_lanes() {
        let point = [[7; 8]; 4];
        g.bench_function(lanes.simd().name(), |b| {
            b.iter(|| keccak::address_of_points(lanes, black_box(&point), black_box(&point)))
        });
        let block = [[7; 8]; keccak::RATE_WORDS];
        g.bench_function(format!("{}-any-block", lanes.simd()), |b| {
            b.iter(|| keccak::one_block(lanes, black_box(&block)))
        });
    }
    g.finish();
}

fn hash160(c: &mut Criterion) {
    let mut g = c.benchmark_group("hash160-33-bytes");
    let message = [7u8; 33];
    g.throughput(Throughput::Elements(1));
    g.bench_function("sha2-ripemd", |b| {
        b.iter(|| ripemd::Ripemd160::digest(sha2::Sha256::digest(black_box(message))))
    });
    g.bench_function("scalar", |b| b.iter(|| hash160::hash160(black_box(&message))));
    g.throughput(Throughput::Elements(16));
    for lanes in all_lanes() {
        let x = [[7; 8]; 4];
        let name = lanes.simd().name();
        g.bench_function(name, |b| b.iter(|| hash160::compressed(lanes, black_box(&x))));
        g.bench_function(format!("{name}-65-bytes"), |b| {
            b.iter(|| hash160::uncompressed(lanes, black_box(&x), black_box(&[x, x])))
        });
        let digests = [[[7; 8]; 3]; 2];
        g.bench_function(format!("{name}-22-bytes"), |b| {
            b.iter(|| hash160::witness_scripts(lanes, black_box(&digests)))
        });
    }
    g.finish();
}

fn chacha(c: &mut Criterion) {
    let mut g = c.benchmark_group("chacha12-64-bytes");
    let (key, place) = ([7; 8], [7; 4]);
    g.throughput(Throughput::Elements(1));
    g.bench_function("scalar", |b| b.iter(|| chacha::words(black_box(&key), black_box(place))));
    g.throughput(Throughput::Elements(16));
    for lanes in all_lanes() {
        let places = [[7; 16]; 4];
        g.bench_function(lanes.simd().name(), |b| {
            b.iter(|| chacha::words_of_sixteen(lanes, black_box(&key), black_box(&places)))
        });
    }
    g.finish();
}

criterion_group!(benches, keccak, hash160, chacha);
criterion_main!(benches);
