//! Every lane type against the portable field, element by element.

use warpsmith_curve::Fe;
use warpsmith_curve::field::dispatch::{Job, test_all};
use warpsmith_curve::field::lanes::Lanes;
use warpsmith_curve::field::leading::{Leading, SHORT};
use warpsmith_curve::walk::{Equation, Term};

/// Values with saturated and empty limbs of both radices, and some without pattern.
fn values() -> Vec<Fe> {
    let mut out = vec![Fe::ZERO, Fe::ONE, Fe::BETA, Fe::ZERO.sub(Fe::ONE)];
    let mut bytes = [0u8; 32];
    for at in 0..32 {
        bytes[at] = 0xff;
        out.push(Fe::from_be_bytes(&bytes));
        let mut hole = [0xff; 32];
        hole[at] = 0;
        out.push(Fe::from_be_bytes(&hole));
    }
    // p, p + 1, and other second names of small residues.
    for low in [0u64, 1, 2, 976, 0x1_0000_03d0] {
        let mut p = [0xff; 32];
        p[24..].copy_from_slice(&(0xffff_fffe_ffff_fc2f_u64.wrapping_add(low)).to_be_bytes());
        if low > 0x1_0000_03d0 - 1 {
            p[24..].copy_from_slice(&u64::MAX.to_be_bytes());
        }
        out.push(Fe::from_be_bytes(&p));
    }
    let mut x = Fe::BETA;
    for _ in 0..64 {
        x = x.square().add(Fe::from_u64(0x1234_5678_9abc_def1));
        out.push(x);
    }
    out
}

/// All lanes filled from the list, starting at `from`.
#[inline(always)]
unsafe fn load<L: Leading>(values: &[Fe], from: usize) -> L {
    // SAFETY: called only where the instruction set is present.
    unsafe {
        let mut x = L::splat(&L::constant(Fe::ZERO));
        for lane in 0..L::N {
            x = x.with_lane(lane, values[(from + lane) % values.len()]);
        }
        x
    }
}

struct CheckAll<'a>(&'a [Fe]);

impl Job for CheckAll<'_> {
    type Output = ();

    /// Applies an operation to all pairs, as many at a time as there are lanes, and compares with the portable twin. The lane operands
    /// are also brought in as sums and differences, whose limbs are loose.
    #[inline(always)]
    unsafe fn run<L: Leading>(self) {
        let values = self.0;
        // SAFETY: the caller checked the instruction set.
        unsafe {
            for shift in 0..values.len() {
                for from in (0..values.len()).step_by(L::N) {
                    let (a, b) = (load::<L>(values, from), load::<L>(values, from + shift));
                    let tight = L::splat(&L::constant(Fe::ONE));
                    let (sum, difference) = (a.mul(tight).add(b.mul(tight)), a.mul(tight).sub(b.mul(tight)));
                    let products =
                        [a.mul(b), sum.mul(difference), sum.square(), a.square(), difference.square()];
                    let fused = sum.mul_add(difference, b.mul(tight));
                    // Three differences in a row, as many as are allowed, and what a walk makes of x and beta x.
                    let low = difference.sub(products[0]).sub(products[1]);
                    let wide = [
                        sum.wide(),
                        difference.wide(),
                        a.wide(),
                        low.wide(),
                        difference.sub(products[0]).add(products[1]).negate().wide(),
                        a.sub(a.mul(tight)).negate().wide(),
                    ];
                    let term = Term {
                        mask: [0, 0xff, 0, 1 << 63],
                        value: [0, 0x80, 0, 0],
                        equations: vec![Equation { mask: [3, 5, 7, u64::MAX], odd: true }],
                    };
                    let accepted = [L::wide_accepts(&wide[0], &term), L::wide_accepts(&wide[1], &term)];
                    // Loaded and gathered elements, of any name of their residue, are tight: factors and addends.
                    let mut stored = [[0; 8]; 4];
                    L::wide_store(&low.wide(), &mut stored, 0);
                    let loaded = L::wide_load(&stored, 0);
                    let mut from_memory = [&values[0]; 8];
                    for lane in 0..L::N {
                        from_memory[lane] = &values[(from + lane) % values.len()];
                    }
                    let gathered = L::gather(&from_memory);
                    let minus = 0b1011_0010 ^ shift as u32;
                    let either = loaded.add_or_sub(gathered, minus);
                    let tightened =
                        [low.tighten(), either.tighten(), sum.tighten(), a.sub(a.mul(tight)).tighten()];
                    let of_tight = tightened[0].sub(tightened[1]).mul_add(tightened[2], tightened[3]);
                    // Raw ones as factors of each other, and of what reads them.
                    let (ta, tb) = (a.mul(tight), b.mul(tight));
                    let raw = [
                        a.mul_raw(b),
                        sum.mul_add_raw(difference, tb),
                        difference.square_raw(),
                        ta.add_raw(tb).mul_raw(tight),
                    ];
                    let of_raw = [
                        raw[0].mul(raw[1]),
                        raw[2].mul_raw(raw[3]).mul(tight),
                        raw[3].square_raw().square(),
                        raw[1].mul_add(raw[2], ta),
                    ];
                    let tops = [
                        ta.tops(),
                        a.product_tops(b, tb.tops()),
                        sum.product_tops(difference, ta.tops()),
                        raw[0].product_tops(raw[1], tb.tops()),
                        raw[2].product_tops(raw[3], ta.tops()),
                    ];
                    let words = L::tops_words(tops[1], tops[3]);
                    for lane in 0..L::N {
                        let (x, y) = (
                            values[(from + lane) % values.len()],
                            values[(from + lane + shift) % values.len()],
                        );
                        let (s, d) = (x.add(y), x.sub(y));
                        assert_eq!(sum.lane(lane), s);
                        assert_eq!(difference.lane(lane), d);
                        let expected = [x.mul(y), s.mul(d), s.square(), x.square(), d.square()];
                        for (got, want) in products.iter().zip(expected) {
                            assert_eq!(got.lane(lane), want);
                        }
                        assert_eq!(fused.lane(lane), s.mul(d).add(y));
                        let (first, second) = (expected[0], expected[1]);
                        let low = d.sub(first).sub(second);
                        let sixth = d.sub(first).add(second).negate();
                        for (got, want) in wide.iter().zip([s, d, x, low, sixth, Fe::ZERO]) {
                            let mut stored = [[0; 8]; 4];
                            L::wide_store(got, &mut stored, 0);
                            assert_eq!(stored.map(|w| w[lane]), want.to_words());
                        }
                        assert_eq!((loaded.lane(lane), gathered.lane(lane)), (low, x));
                        let portable = <Fe as Lanes>::add_or_sub(low, x, minus >> lane);
                        assert_eq!(portable, if minus >> lane & 1 == 1 { low.sub(x) } else { low.add(x) });
                        for (got, want) in tightened.iter().zip([low, portable, s, Fe::ZERO]) {
                            assert_eq!(got.lane(lane), want);
                        }
                        assert_eq!(of_tight.lane(lane), low.sub(portable).mul(s));
                        for (got, want) in accepted.iter().zip([s, d]) {
                            let portable = <Fe as Lanes>::wide_accepts(&want.to_words(), &term);
                            assert_eq!(got >> lane & 1, portable);
                        }
                        let raw = [expected[0], s.mul(d).add(y), d.square(), s];
                        let expected = [
                            raw[0].mul(raw[1]),
                            raw[2].mul(raw[3]),
                            s.square().square(),
                            raw[1].mul(raw[2]).add(x),
                        ];
                        for (got, want) in of_raw.iter().zip(expected) {
                            assert_eq!(got.lane(lane), want);
                        }
                        let want = [
                            x,
                            x.mul(y).add(y),
                            s.mul(d).add(x),
                            raw[0].mul(raw[1]).add(y),
                            raw[2].mul(raw[3]).add(x),
                        ];
                        for (got, want) in tops.iter().zip(want) {
                            near(L::tops_lane(got, lane), want);
                        }
                        for (side, top) in [&tops[1], &tops[3]].into_iter().enumerate() {
                            let top = L::tops_lane(top, lane);
                            assert_eq!(L::word(&words, lane, side), (top >> 32) as u32);
                        }
                    }
                }
            }
        }
    }
}

/// Checks the top of an element. That of zero may be that of p, a whole turn less next to nothing.
fn near(got: u64, want: Fe) {
    let want = want.to_words()[0];
    assert!(want.wrapping_sub(got) <= SHORT, "{got:x} for {want:x}");
}

#[test]
fn lanes_agree_with_the_portable_field() {
    let values = values();
    test_all(|| CheckAll(&values));
}

#[test]
fn portable_tops_of_products_are_hardly_short() {
    let values = values();
    for (i, x) in values.iter().enumerate() {
        for y in &values[i..] {
            // SAFETY: the portable lane needs no instruction set.
            let got = unsafe { x.product_tops(*y, Leading::tops(*x)) };
            near(got, x.mul(*y).add(*x));
        }
    }
}

struct Zeros;

impl Job for Zeros {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Leading>(self) {
        // SAFETY: the caller checked the instruction set.
        unsafe {
            let one = L::splat(&L::constant(Fe::ONE));
            assert!(!one.any_zero());
            let p = Fe::ZERO.sub(Fe::ONE).add(Fe::ONE);
            for lane in 0..L::N {
                assert!(one.with_lane(lane, Fe::ZERO).any_zero());
                assert!(one.with_lane(lane, p).any_zero());
            }
        }
    }
}

#[test]
fn zero_is_seen_in_any_lane_and_by_both_names() {
    test_all(|| Zeros);
}
