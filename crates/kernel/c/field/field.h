/* Integers mod p = 2^256 - K, K = 2^32 + 977. Knows limbs, no curve.
 *
 * Elements are weak: any value in [0, 2^256), where a value and the same minus p mean one element.
 * A function that needs an argument below p says so. */

typedef struct {
    u32 v[8];
} fe;

DEV void fe_set(fe *r, u32 low) {
    r->v[0] = low;
    UNROLL
    for (int i = 1; i < 8; i++) r->v[i] = 0;
}

/* r = a, below p. */
DEV void fe_norm(fe *r, const fe *a) {
    fe t = *a;
    /* a >= p exactly when a + K reaches 2^256, and a + K - 2^256 = a - p. */
    u32 over = u256_add_low(t.v, 977, 1, 0);
    UNROLL
    for (int i = 0; i < 8; i++) r->v[i] = over ? t.v[i] : a->v[i];
}

DEV u32 fe_is_zero(const fe *a) {
    fe t;
    u32 any = 0;
    fe_norm(&t, a);
    UNROLL
    for (int i = 0; i < 8; i++) any |= t.v[i];
    return any == 0;
}

/* r = a + b; b must be below p. With a carry, a + b - 2^256 <= p - 2 and adding K cannot overflow. */
DEV void fe_add(fe *r, const fe *a, const fe *b) {
    fe t = *a;
    u32 carry = u256_add(t.v, b->v);
    u256_add_low(t.v, carry * 977u, carry, 0);
    *r = t;
}

/* r = a - b; b must be below p. With a borrow, a - b + 2^256 > K and taking K off cannot borrow. */
DEV void fe_sub(fe *r, const fe *a, const fe *b) {
    fe t = *a;
    u32 borrow = u256_sub(t.v, b->v);
    u256_sub_low(t.v, borrow & 977u, borrow & 1u);
    *r = t;
}

/* r = a - b, b weak as well. The second borrow, which needs b > p, leaves a value above 2^256 - K: taking K off once more
 * stays within limbs 0 and 1, since those above are all ones before and after. */
DEV void fe_sub_weak(fe *r, const fe *a, const fe *b) {
    fe t = *a, fold;
    u64 low;
    u32 borrow = u256_sub(t.v, b->v);
    fe_set(&fold, borrow & 977u);
    fold.v[1] = borrow & 1u;
    borrow = u256_sub(t.v, fold.v);
    low = ((u64)t.v[1] << 32 | t.v[0]) - ((u64)(borrow & 1u) << 32 | (borrow & 977u));
    t.v[0] = (u32)low;
    t.v[1] = (u32)(low >> 32);
    *r = t;
}

/* low[0..8] and a count above them = wide mod p, not yet below 2^256: returns the count, 0 or 1, and with 1 low[8] <= 977. */
DEV u32 fe_fold(u32 *low, const u32 *wide) {
    /* wide = low + high 2^256 = low + high K, and high K = 977 even(high) + (977 odd(high) + high) 2^32
     * where even and odd limbs of high stand 64 bits apart: two chains, the second with high itself
     * as addend. */
    u32 high[9];
    UNROLL
    for (int i = 0; i < 8; i++) {
        low[i] = wide[i];
        high[i] = wide[i + 8];
    }
    limbs_mad_carry(low, low + 8, wide[8], wide[10], wide[12], wide[14], 977);
    limbs_mad_carry(high, high + 8, wide[9], wide[11], wide[13], wide[15], 977);
    /* Sum = low + high 2^32 < 2^256 (2^32 + 978): 33 bits above limb 7. */
    return u256_add_count(low + 1, high, high[8]);
}

/* fold[0..2] = (top + more 2^32) K, where top + more 2^32 <= 2^32 + 978: what is to be added for what lies above 2^256. */
DEV void fe_above(u32 *fold, u32 top, u32 more) {
    u64 product = limbs_wide(top, 977, 0);
    fold[0] = (u32)product;
    fold[1] = (u32)(product >> 32);
    fold[2] = more;
    /* With more = 1 top <= 978 and the sum does not wrap. */
    u64_add_low(fold + 1, top + more * 977u);
}

/* r = wide mod p, weakly. */
DEV void fe_reduce(fe *r, const u32 *wide) {
    u32 low[9], fold[3], top, more = fe_fold(low, wide);
    fe_above(fold, low[8], more);
    /* With a carry what remains is below 2^67: the last K ends in limb 2. */
    top = u256_add_low(low, fold[0], fold[1], fold[2]);
    u96_add_low(low, top * 977u, top);
    UNROLL
    for (int i = 0; i < 8; i++) r->v[i] = low[i];
}

DEV void fe_mul(fe *r, const fe *a, const fe *b) {
    u32 wide[16];
    u256_mul(wide, a->v, b->v, 0);
    fe_reduce(r, wide);
}

/* r = a * b + 1. The largest product leaves room for the addend. */
DEV void fe_mul_inc(fe *r, const fe *a, const fe *b) {
    u32 wide[16];
    u256_mul(wide, a->v, b->v, 1);
    fe_reduce(r, wide);
}

DEV void fe_sqr(fe *r, const fe *a) {
    u32 wide[16];
    u256_sqr(wide, a->v);
    fe_reduce(r, wide);
}

/* r = 1 / a, and 0 for 0: a^(p - 2) in 255 S + 15 M.
 *
 * p - 2 in binary is 223 ones, a zero, 22 ones, 0000101101. Each step squares t some times,
 * multiplies by a saved power and saves the result; xN is a^(2^N - 1). Rolled, so that the code holds
 * two multiplications instead of thirty: the saved powers live in memory, off the hot path. */
DEV void fe_inv(fe *r, const fe *a) {
    /* squarings in bits 0..7, factor in 8..11, where to save in 12..15 */
    const u32 steps[15] = {
        0x1001, 0x2001, 0x7203, 0x7203, 0x3102, /* x2, x3, x6, x9, x11 */
        0x430b, 0x5416, 0x652c, 0x7658, 0x752c, /* x22, x44, x88, x176, x220 */
        0x7203, 0x7417, 0x7005, 0x7103, 0x7002, /* x223, then the low 33 bits */
    };
    fe saved[8], t = *a;
    saved[0] = t;
    ROLLED
    for (int i = 0; i < 15; i++) {
        u32 n = steps[i] & 0xff;
        ROLLED
        for (u32 j = 0; j < n; j++) fe_sqr(&t, &t);
        fe_mul(&t, &t, &saved[steps[i] >> 8 & 15]);
        saved[steps[i] >> 12] = t;
    }
    *r = t;
}
