//! The layers of the arithmetic, one by one: field, inversion, group of additions, walk.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warpsmith_curve::field::chains::{self, Op};
use warpsmith_curve::field::dispatch;
use warpsmith_curve::walk::{self, Bits, Block, Points, Range, Sieve, Table, Term, Walk};
use warpsmith_curve::{Affine, Scalar, group};
use warpsmith_simd::Simd;

fn field(c: &mut Criterion) {
    let mut g = c.benchmark_group("field");
    let (a, b) = (Affine::G.x, Affine::G.y);
    let mut x = a;
    g.bench_function("mul", |bench| {
        bench.iter(|| {
            x = x.mul(b);
            x
        })
    });
    g.bench_function("square", |bench| {
        bench.iter(|| {
            x = x.square();
            x
        })
    });
    g.bench_function("invert", |bench| bench.iter(|| black_box(a).invert()));
    g.finish();
    // Chains side by side, as the walk has them.
    const TIMES: u32 = 256;
    for simd in Simd::available(&warpsmith_curve::SETS) {
        let mut g = c.benchmark_group(format!("field-{simd}"));
        let mut x = vec![a; chains::elements(simd)];
        g.throughput(Throughput::Elements(x.len() as u64 * u64::from(TIMES)));
        for (name, op) in [("mul", Op::Mul), ("square", Op::Square)] {
            g.bench_function(name, |bench| bench.iter(|| chains::run(simd, op, &mut x, b, TIMES)));
        }
        g.finish();
    }
}

fn points(c: &mut Criterion) {
    let mut g = c.benchmark_group("group");
    let (a, b) = (Affine::G, Affine::G.double());
    g.bench_function("add", |bench| bench.iter(|| black_box(a).plus(b)));
    g.bench_function("multiply", |bench| bench.iter(|| group::multiply(Scalar::LAMBDA, Some(black_box(a)))));
    g.finish();
}

/// 2^20 ranges, spread over the circle.
fn million() -> Vec<Range> {
    let mut firsts: Vec<u64> = (0..1u64 << 20).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    firsts.sort_unstable();
    firsts.into_iter().map(|first| Range { first, last: first }).collect()
}

/// Takes points and does nothing with them.
struct Taken<const Y: bool>;

impl<const Y: bool> Points for Taken<Y> {
    const Y: bool = Y;

    fn points(&mut self, block: &Block) {
        black_box(block);
    }
}

fn walks(c: &mut Criterion) {
    const HALF: u32 = 512;
    let one = Range { first: 1 << 40, last: 1 << 40 };
    let term = Term { mask: [0, 0, 0, u64::MAX], value: [0, 0, 0, 7], equations: vec![] };
    let sieves = [
        ("prefix", Sieve { ranges: vec![one], ..Sieve::default() }),
        ("million prefixes", Sieve { bits: Some(Bits::new(&million(), 23)), ..Sieve::default() }),
        ("suffix", Sieve { terms: vec![term], ..Sieve::default() }),
    ];
    for simd in Simd::available(&warpsmith_curve::SETS) {
        let table = Table::new(simd, HALF);
        let mut g = c.benchmark_group(format!("walk-{simd}"));
        let keys =
            dispatch::lane_count(simd) as u64 * (walk::KEYS_PER_CENTRE + walk::KEYS_PER_ENTRY * HALF as u64);
        g.throughput(Throughput::Elements(keys));
        let start = |lane| group::multiply(Scalar::LAMBDA.mul(Scalar::from_u64(lane + 2)), Some(Affine::G));
        for (name, sieve) in &sieves {
            let starts: Vec<_> = (0..dispatch::lane_count(simd) as u64).map(start).collect();
            let mut walk = Walk::new(&table, &starts);
            let mut hits = Vec::new();
            g.bench_function(*name, |bench| bench.iter(|| walk.group(sieve, &mut hits)));
        }
        let keys = dispatch::lane_count(simd) as u64 * walk::KEYS_PER_POINT * (2 * HALF as u64 + 1);
        g.throughput(Throughput::Elements(keys));
        let starts: Vec<_> = (0..dispatch::lane_count(simd) as u64).map(start).collect();
        let mut walk = Walk::new(&table, &starts);
        g.bench_function("points", |bench| bench.iter(|| walk.points(&mut Taken::<true>)));
        g.bench_function("points without y", |bench| bench.iter(|| walk.points(&mut Taken::<false>)));
        g.finish();
    }
}

criterion_group!(benches, field, points, walks);
criterion_main!(benches);
