//! Each hash in each kind of lanes, beside the crate everybody uses. The figure is time a batch; elements are
//! messages.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sha3::Digest;
use warpsmith_hash::{Lanes, Simd, keccak};

fn all_lanes() -> impl Iterator<Item = Lanes> {
    Simd::ALL.into_iter().filter(|s| s.is_available()).map(Lanes::new)
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

criterion_group!(benches, keccak);
criterion_main!(benches);
