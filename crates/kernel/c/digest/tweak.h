/* P + t G for any t below 2^256, by a table of multiples of G. Knows the curve, not where t comes from.
 *
 * t is written in TWEAK_WINDOWS digits of TWEAK_BITS bits, from -(HALF - 1) to HALF = 2^(TWEAK_BITS - 1): the top one has
 * room for the last carry. The table holds d 2^(TWEAK_BITS i) G for every window i and d = 1..HALF, x and y
 * below p, 4 quads an entry; a digit of zero adds nothing.
 *
 * The sum is kept as X, Y, ZZ, ZZZ with x = X / ZZ, y = Y / ZZZ, ZZ^3 = ZZZ^2 (Sutherland's coordinates; "madd-2008-s" of
 * the Explicit-Formulas Database). Adding an affine point takes 8 M + 2 S, 4 M less the first time, where ZZ = ZZZ = 1, and 3 M less
 * the last time, where only X and ZZ are needed. With w windows: w (8 M + 2 S) - 7 M. Batched affine additions would take
 * 5 M + 1 S each, but move some 300 bytes a digit and candidate through memory, as much as a card can.
 *
 * Where the sum and what is added have one x, ZZ becomes zero and stays so: nothing is silently wrong. */

#define TWEAK_HALF (1u << (TWEAK_BITS - 1))

typedef struct {
    fe x, y, zz, zzz;
} tweak_sum;

/* Takes the lowest digit off t: how much, and whether it is negative, which the next digit makes good by *carry. */
DEV u32 tweak_digit(u32 *t, u32 *carry) {
    u32 digit = (t[0] & (2 * TWEAK_HALF - 1)) + *carry;
    UNROLL
    for (int i = 0; i < 7; i++) t[i] = t[i] >> TWEAK_BITS | t[i + 1] << (32 - TWEAK_BITS);
    t[7] >>= TWEAK_BITS;
    *carry = digit > TWEAK_HALF ? 1 : 0;
    return *carry ? 2 * TWEAK_HALF - digit : digit;
}

/* (x, y) = entry of the table, or its negative: p - y = ~y - (K - 1), and no point has y = 0. */
DEV void tweak_load(fe *x, fe *y, GLOBAL const quad *table, u64 entry, u32 negative) {
    u32 mask = 0u - negative;
    fe_from_quads(x, table[4 * entry], table[4 * entry + 1]);
    fe_from_quads(y, table[4 * entry + 2], table[4 * entry + 3]);
    UNROLL
    for (int i = 0; i < 8; i++) y->v[i] ^= mask;
    u256_sub_low(y->v, mask & 976u, mask & 1u);
}

/* Adds (x, y), which is below p, to the sum in window `window`. */
DEV void tweak_add(tweak_sum *sum, const fe *x, const fe *y, u32 window) {
    fe p = *x, r = *y, square, cube, q;
    if (window > 0) {
        fe_mul(&p, x, &sum->zz);
        fe_mul(&r, y, &sum->zzz);
    }
    fe_sub_weak(&p, &p, &sum->x);
    fe_sub_weak(&r, &r, &sum->y);
    fe_sqr(&square, &p);
    fe_mul(&cube, &p, &square);
    fe_mul(&q, &sum->x, &square);
    /* X = R^2 - PPP - 2 Q */
    fe_sqr(&p, &r);
    fe_sub_weak(&p, &p, &cube);
    fe_sub_weak(&p, &p, &q);
    fe_sub_weak(&p, &p, &q);
    if (window > 0) {
        fe_mul(&sum->zz, &sum->zz, &square);
    } else {
        sum->zz = square;
    }
    if (window + 1 < TWEAK_WINDOWS) {
        /* Y = R (Q - X) - Y PPP */
        fe_sub_weak(&q, &q, &p);
        fe_mul(&q, &r, &q);
        fe_mul(&sum->y, &sum->y, &cube);
        fe_sub_weak(&sum->y, &q, &sum->y);
        if (window > 0) {
            fe_mul(&sum->zzz, &sum->zzz, &cube);
        } else {
            sum->zzz = cube;
        }
    }
    sum->x = p;
}

/* X and ZZ of (x, y) + t G, (x, y) below p. t is used up. */
DEV void tweak_point(fe *x, fe *zz, const fe *y, u32 *t, GLOBAL const quad *table) {
    tweak_sum sum;
    u32 carry = 0;
    sum.x = *x;
    sum.y = *y;
    fe_set(&sum.zz, 1);
    fe_set(&sum.zzz, 1);
    ROLLED
    for (u32 window = 0; window < TWEAK_WINDOWS; window++) {
        u32 digit = tweak_digit(t, &carry);
        if (digit > 0) {
            fe a, b;
            tweak_load(&a, &b, table, (u64)window * TWEAK_HALF + digit - 1, carry);
            tweak_add(&sum, &a, &b, window);
        }
    }
    *x = sum.x;
    *zz = sum.zz;
}
