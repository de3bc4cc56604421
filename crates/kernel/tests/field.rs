//! The field of the kernels as host C under sanitizers, against num-bigint.

use crate::support::{HostProgram, Random, beta, from_limbs, limbs, p};
use num_bigint::BigUint;
use warpsmith_kernel::{Spec, abi, join_field};

/// The program that tests and times the field.
struct Field(HostProgram);

impl Field {
    fn build(spec: Spec) -> Self {
        let text = join_field(&Spec { ptx: false, ..spec }).text;
        Self(HostProgram::build(&text, include_str!("host/field.c")))
    }

    /// One operation on every pair.
    fn run(&self, op: u32, pairs: &[(BigUint, BigUint)]) -> Vec<[u32; 8]> {
        let mut request = vec![0, op, pairs.len() as u32, 0, 0, 0, 0, 0];
        pairs.iter().for_each(|(a, _)| request.extend(limbs(a)));
        pairs.iter().for_each(|(_, b)| request.extend(limbs(b)));
        self.0.run(&request).chunks_exact(8).map(|w| w.try_into().unwrap()).collect()
    }
}

/// 0, 1, around p and 2^256, each limb saturated or alone empty.
fn edges() -> Vec<BigUint> {
    let one = BigUint::from(1u32);
    let full: BigUint = (&one << 256) - 1u32;
    let mut edges = vec![BigUint::ZERO, one.clone(), 2u32.into(), 977u32.into(), p() - 1u32, p(), p() + 1u32];
    edges.extend([
        full.clone(),
        &full - 1u32,
        &one << 255,
        (&one << 32) + 976u32,
        (&one << 32) + 977u32,
        beta(),
    ]);
    for i in 0..8 {
        let limb = BigUint::from(u32::MAX) << (32 * i);
        edges.push(&full - &limb);
        edges.push(limb);
        edges.push(&one << (32 * i));
    }
    edges
}

fn pairs(random: usize) -> Vec<(BigUint, BigUint)> {
    let edges = edges();
    let mut pairs: Vec<_> = edges.iter().flat_map(|a| edges.iter().map(|b| (a.clone(), b.clone()))).collect();
    let mut source = Random(0x9e37_79b9_7f4a_7c15);
    pairs.extend((0..random).map(|_| (source.number(), source.number())));
    pairs
}

#[test]
fn field_operations_agree_with_big_integers() {
    let pairs = pairs(3000);
    for count_carries in [false, true] {
        let program = Field::build(Spec { block: 4, count_carries, ..Spec::default() });
        type Operation = fn(&BigUint, &BigUint) -> BigUint;
        let operations: [(u32, &str, Operation); 7] = [
            (0, "mul", |a, b| a * b),
            (1, "sqr", |a, _| a * a),
            (2, "add", |a, b| a + b),
            (3, "sub", |a, b| a + p() - b % p()),
            (5, "norm", |a, _| a.clone()),
            (6, "mul_inc", |a, b| a * b + 1u32),
            (8, "sub_weak", |a, b| a + p() + p() - b),
        ];
        for (op, name, expected) in operations {
            for ((a, b), out) in pairs.iter().zip(program.run(op, &pairs)) {
                let out = from_limbs(out.into_iter());
                assert_eq!(&out % p(), expected(a, b) % p(), "{name} of {a:x} and {b:x}");
                assert!(name != "norm" || out < p());
            }
        }
        let few: Vec<_> = pairs.iter().step_by(37).cloned().collect();
        for ((a, _), out) in few.iter().zip(program.run(4, &few)) {
            let expected = if (a % p()) == BigUint::ZERO { 0u32 } else { 1 };
            assert_eq!(from_limbs(out.into_iter()) * a % p(), expected.into(), "inv of {a:x}");
        }
    }
}

/// What does not follow every carry is right unless it tells, tells of nothing in numbers without pattern, and of
/// what it is known to lose.
#[test]
fn lazy_carries_are_right_or_tell() {
    let (edges, random) = (pairs(0), pairs(3000).split_off(pairs(0).len()));
    let one = BigUint::from(1u32);
    let full: BigUint = (&one << 256) - 1u32;
    // A product whose limbs 0 to 2 are all ones once it is folded: m * 2^256 with m K = -1 mod 2^96.
    let (fold, space) = (BigUint::from((1u64 << 32) + 977), &one << 96);
    let m = (&space - fold.modinv(&space).expect("odd")) + (&one << 254);
    let lossy = (&one << 255, &m * 2u32);
    type Pair = (BigUint, BigUint);
    type Operation = fn(&BigUint, &BigUint) -> BigUint;
    let operations: [(u32, &str, Operation, Option<Pair>); 6] = [
        (9, "mul_add", |a, b| a * b + a + p() + p() - b, None),
        (10, "sqr_add", |a, b| a * a + b, None),
        (11, "mul", |a, b| a * b, Some(lossy)),
        (12, "add", |a, b| a + b % p(), Some((full.clone(), &one << 64))),
        (13, "sub", |a, b| a + p() - b % p(), Some((BigUint::ZERO, &full + 1u32 - (&one << 64)))),
        (14, "norm", |a, _| a.clone(), Some((p(), one.clone()))),
    ];
    for count_carries in [false, true] {
        let program = Field::build(Spec { block: 4, count_carries, ..Spec::default() });
        for (op, name, expected, lossy) in &operations {
            let told = |pairs: &[Pair]| {
                let mut told = 0;
                for ((a, b), out) in pairs.iter().zip(program.run(*op, pairs)) {
                    let out = from_limbs(out.into_iter());
                    if out == full {
                        told += 1;
                    } else {
                        assert_eq!(&out % p(), expected(a, b) % p(), "{name} of {a:x} and {b:x}");
                        assert!(*name != "norm" || out < p());
                    }
                }
                told
            };
            assert!(told(&edges) < edges.len() / 2, "{name} tells of too much");
            assert_eq!(told(&random), 0, "{name}");
            if let Some(pair) = lossy {
                assert_eq!(told(std::slice::from_ref(pair)), 1, "{name} of {:x} and {:x}", pair.0, pair.1);
            }
        }
    }
}

#[test]
fn timed_chains_end_where_powers_say() {
    let program = Field::build(Spec { block: 4, ..Spec::default() });
    let full: BigUint = (BigUint::from(1u32) << 256) - 1u32;
    for (start, by) in [(beta(), p() - 1u32), (full.clone() - 50u32, full - 50u32)] {
        for (op, count) in [(0, 0), (0, 2), (0, 1000), (1, 2), (1, 300)] {
            let mut request = vec![1, op, count, 2, 0, 0, 0, 0];
            request.extend(limbs(&start).into_iter().chain(limbs(&by)));
            let ends = program.0.run(&request);
            assert_eq!(ends.len(), 2 * 4 * 8);
            for (lane, end) in ends.chunks_exact(8).enumerate() {
                let (x, y) = (&start + lane, &by + lane);
                let expected = match op {
                    0 => x * y.modpow(&count.into(), &p()),
                    _ => x.modpow(&(BigUint::from(1u32) << count), &p()),
                };
                assert_eq!(from_limbs(end.iter().copied()) % p(), expected % p(), "lane {lane}");
            }
        }
    }
}

#[test]
fn top_words_of_products_stay_within_their_bound() {
    let program = Field::build(Spec { block: 4, ..Spec::default() });
    let mut pairs = pairs(5000);
    // Factors whose limbs and digits begin with ones, of which top bytes leave out the most; and factors that leave little but
    // limb 8.
    let mut random = Random(31);
    for _ in 0..5000 {
        let mut number = || from_limbs((0..8).map(|_| random.next() | 0xffff_0000)) % p();
        pairs.push((number(), number()));
    }
    pairs.extend((0..20_000).map(|_| ((random.next() >> 16).into(), random.number())));
    let one = BigUint::from(1u32);
    let unit = |thousandths: i64| (thousandths << 32) / 1000;
    let mut extremes = [(0, 0); 8];
    for ((a, b), out) in pairs.iter().zip(program.run(7, &pairs)) {
        // The products of abi's argument: 8 limbs, and 9 limbs with one factor taken off; then the finer words.
        let long = |high: u32, less: u32| (a + (&one << 256) * high - less) * b;
        // The last three again with the five bits behind the word.
        let word = |at: usize| u64::from(out[at]) << 32;
        let part = |at: usize, shift: u32| word(at) | u64::from(out[7] >> shift & 31) << 27;
        let cases = [
            ("plain", long(0, 0), word(0), 0, 9000),
            ("plain, 9 limbs", long(2, 1), word(1), 1000, 11000),
            ("fine T2", long(0, 0), word(4), 1, 1063),
            ("fine T1", long(1, 1), word(5), 5, 1067),
            ("fine T0", long(2, 0), word(6), 9, 1071),
            ("parts of T2", long(0, 0), part(4, 10), 1, 94),
            ("parts of T1", long(1, 1), part(5, 0), 5, 98),
            ("parts of T0", long(2, 0), part(6, 5), 9, 102),
        ];
        for ((name, value, word, below, above), (low, high)) in cases.into_iter().zip(&mut extremes) {
            let fraction: BigUint = ((value % p()) << 64) / p();
            let fraction: u64 = fraction.try_into().unwrap();
            let error = fraction.wrapping_sub(word) as i64;
            assert!((-unit(below)..unit(above)).contains(&error), "{name}: {a:x} * {b:x}: {error:x}");
            (*low, *high) = (error.min(*low), error.max(*high));
        }
        assert_eq!(&out[2..4], &[abi::digits(&limbs(b))[9], abi::digits(&limbs(b))[7]]);
    }
    // The bounds are no wider than they must be: both sides were nearly met.
    for (term, (low, high)) in extremes[2..].iter().enumerate() {
        assert!(*high > unit(if term < 3 { 1045 } else { 85 }), "term {term}: {high:x}");
        assert!(term % 3 == 0 || *low < -unit(term as i64 % 3) / 2, "term {term}: {low:x}");
    }
}

#[test]
fn digits_leave_less_than_one_unit_of_the_last() {
    let mut random = Random(7);
    let numbers = edges().into_iter().filter(|a| *a < p()).chain((0..1000).map(|_| random.number() % p()));
    for a in numbers {
        let found = from_limbs(abi::digits(&limbs(&a)).into_iter().rev());
        let rest = (&a << 320) - found * p();
        assert!(rest < p() + (p() >> 122), "{a:x}");
    }
}
