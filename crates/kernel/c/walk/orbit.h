/* The orbit walk: one table entry gives 18 keys for 10 M. Knows the curve, not the filter.
 *
 * Centre C = (c, yc), table point iG = (t, y). For k = 0, 1, 2 and both signs the points
 * C +- lambda^k iG have x = (T0 - c) + beta^k (T1 - t) + beta^2k T2 (argument: ORBIT.md), with
 *     s = -2 yc / (c^3 - t^3)    Z = 1 + s (yc -+ y)    L = 3 c^2 / (2 yc)
 *     X = L s Z                  Y = c X
 *     T0 - c = c (Y + 2Z - 1)    T1 - t = t (Y + Z - 1)    T2 = t^2 X
 * and images beta^j x, so the nine keys of a sign are beta^j T0' + beta^p T1' + beta^q T2' with
 * j + p + q = 0 mod 3, k = q - p. Cost of an entry: 3 M inversion (Montgomery's trick), 1 M for L s,
 * 3 M for each sign.
 *
 * The filter sees only the top word of a key. The last products (by c, t, t^2 and their multiples by
 * beta) are never formed: the top word of v * tau mod p is that of the fraction v * (tau / p), and
 * tau / p is a constant of the group or of the table, held as nine 32-bit digits, and the top bytes of
 * eight for a finer word. */

/* f[0..9] = the digits of a / p after the point (whole turns dropped), a weak: what they leave is below
 * 1 + 2^-122 units of the last, or of any before it.
 * a / p = (a + a K / p) / 2^256, and a K / p = a K / 2^256 up to 2^-189. */
DEV void walk_digits(u32 *f, const fe *a) {
    u32 product[10];
    u64 sum = 0;
    UNROLL
    for (int i = 0; i < 10; i++) {
        if (i < 8) sum += (u64)a->v[i] * 977;
        if (i > 0 && i < 9) sum += a->v[i - 1];
        product[i] = (u32)sum;
        sum >>= 32;
    }
    f[8] = product[7];
    f[9] = product[6];
    sum = 0;
    UNROLL
    for (int i = 0; i < 8; i++) {
        sum += a->v[i];
        if (i < 2) sum += product[i + 8];
        f[7 - i] = (u32)sum;
        sum >>= 32;
    }
}

/* The top word of v * tau - less * tau, tau given by its digits, v = v[0..7] + high 2^256, less 0 or 1.
 *
 * Limb i times digit m stands at 2^(32 (i - m)): with m = i + 1 only the low half is no whole turn,
 * with m = i + 2 both halves count, from m = i + 3 on a product is below one unit of the word.
 * TOP (src/abi.rs) bounds what is dropped. */
DEV u32 walk_top(const u32 *v, u32 high, u32 less, const u32 *f) {
    u64 sum = (u64)v[0] * f[1];
    u32 top;
    UNROLL
    for (int i = 1; i < 8; i++) sum += (u64)v[i] * f[i + 1];
    top = (u32)(sum >> 32) + (v[0] - less) * f[0];
    UNROLL
    for (int i = 1; i < 8; i++) top += v[i] * f[i];
    return top + high * f[8];
}

/* The top bytes of the eight limbs of v, two words. */
DEV void walk_bytes(u32 *bytes, const u32 *v) {
    bytes[0] = top_bytes(v[0], v[1], v[2], v[3]);
    bytes[1] = top_bytes(v[4], v[5], v[6], v[7]);
}

/* A finer top word of v * tau: also the products with m = i + 3 by their top bytes, and limb 8 times digit 10. `a` holds
 * the bytes of v, b0 and b1 those of digits 3..10 of tau; b1, which begins with the byte of digit 10, stands for it.
 * *parts takes up from below the five bits behind the word. FINE and FINE_KEYS (src/abi.rs) say what is still left out.
 */
DEV u32 walk_fine(const u32 *v, u32 high, const u32 *f, const u32 *a, u32 b0, u32 b1, u32 *parts) {
    u32 top, rest = bytes_mad(a[1], b1, bytes_mad(a[0], b0, 0));
    /* rest 2^16, and a little more: of a power of two the compiler makes two shifts instead of one multiply-add. */
    u64 sum = limbs_wide(rest, 65537u, (u64)v[0] * f[1]);
    UNROLL
    for (int i = 1; i < 8; i++) sum += (u64)v[i] * f[i + 1];
    sum += (u64)high * b1;
    top = (u32)(sum >> 32);
    *parts = *parts << 5 | (u32)sum >> 27;
    UNROLL
    for (int i = 0; i < 8; i++) top += v[i] * f[i];
    return top + high * f[8];
}

/* v -= 1, v = v[0..7] + high 2^256 and not zero; returns the new high. */
DEV u32 walk_less_one(u32 *v, u32 high) {
    const u32 one[8] = {1, 0, 0, 0, 0, 0, 0, 0};
    /* A borrow is out of the way: one in 2^32. */
    if (v[0] == 0) return high + u256_sub(v, one);
    v[0] -= 1;
    return high;
}

/* beta, a cube root of 1 mod p. */
DEV void search_beta(fe *r) {
    const u32 beta[8] = {0x719501eeu, 0xc1396c28u, 0x12f58995u, 0x9cf04975u,
                         0xac3434e9u, 0x6e64479eu, 0x657c0710u, 0x7ae96a2bu};
    UNROLL
    for (int i = 0; i < 8; i++) r->v[i] = beta[i];
}

DEV void fe_from_quads(fe *r, quad a, quad b) {
    r->v[0] = a.x;
    r->v[1] = a.y;
    r->v[2] = a.z;
    r->v[3] = a.w;
    r->v[4] = b.x;
    r->v[5] = b.y;
    r->v[6] = b.z;
    r->v[7] = b.w;
}

DEV quad fe_quad(const fe *a, int part) {
    quad q;
    q.x = a->v[4 * part];
    q.y = a->v[4 * part + 1];
    q.z = a->v[4 * part + 2];
    q.w = a->v[4 * part + 3];
    return q;
}

/* Element `i` of scratch or of shared memory: quads 2i and 2i + 1 of this lane, `stride` lanes apart. */
DEV void fe_load_global(fe *r, GLOBAL const quad *at, u64 i, u32 stride) {
    fe_from_quads(r, at[2 * i * stride], at[(2 * i + 1) * stride]);
}

DEV void fe_store_global(GLOBAL quad *at, u64 i, u32 stride, const fe *a) {
    at[2 * i * stride] = fe_quad(a, 0);
    at[(2 * i + 1) * stride] = fe_quad(a, 1);
}

DEV void fe_load_local(fe *r, LOCAL const quad *at, u32 i, u32 stride) {
    fe_from_quads(r, at[2 * i * stride], at[(2 * i + 1) * stride]);
}

DEV void fe_store_local(LOCAL quad *at, u32 i, u32 stride, const fe *a) {
    at[2 * i * stride] = fe_quad(a, 0);
    at[(2 * i + 1) * stride] = fe_quad(a, 1);
}

DEV void fe_load_table(fe *r, TABLE const quad *table, u32 entry, u32 word) {
    fe_from_quads(r, table[entry * TABLE_QUADS + word / 4], table[entry * TABLE_QUADS + word / 4 + 1]);
}

/* digits[0..35] = the digits of entry: t, beta t, t^2, beta t^2. */
DEV void walk_load_digits(u32 *digits, TABLE const quad *table, u32 entry) {
    UNROLL
    for (int i = 0; i < 9; i++) {
        quad q = table[entry * TABLE_QUADS + TABLE_T / 4 + i];
        digits[4 * i] = q.x;
        digits[4 * i + 1] = q.y;
        digits[4 * i + 2] = q.z;
        digits[4 * i + 3] = q.w;
    }
}

/* (x, y) = (c, yc) + (xs, ys), all below p, given 1 / (c - xs): m = (yc - ys) / (c - xs), x = m^2 - c - xs,
 * y = m (c - x) - yc. */
DEV void walk_add(fe *x, fe *y, const fe *c, const fe *yc, const fe *xs, const fe *ys, const fe *inverse) {
    fe m;
    fe_sub(&m, yc, ys);
    fe_mul(&m, inverse, &m);
    fe_sqr(x, &m);
    fe_sub(x, x, c);
    fe_sub(x, x, xs);
    fe_norm(x, x);
    fe_sub(y, c, x);
    fe_mul(y, y, &m);
    fe_sub(y, y, yc);
    fe_norm(y, y);
}

/* Moves the centre (c, yc) of a lane on by the step point (xs, ys), given 1 / (c - xs). */
DEV void walk_next(GLOBAL u32 *centres, u32 lanes, u32 lane, const fe *c, const fe *yc, const fe *xs, const fe *ys,
                   const fe *inverse, u32 alive) {
    fe x, y;
    walk_add(&x, &y, c, yc, xs, ys, inverse);
    if (alive) {
        UNROLL
        for (int i = 0; i < 8; i++) {
            centres[(u64)i * lanes + lane] = x.v[i];
            centres[(u64)(i + 8) * lanes + lane] = y.v[i];
        }
    }
}

/* x = 1 / x for every lane of the block, none of them zero. `nodes` holds 4 * BLOCK quads.
 *
 * A binary tree of products in shared memory: level n has n nodes, at [n, 2n); its node l is the
 * product of nodes l and l + n of level 2n. One lane inverts the root, then each node's inverse is its
 * parent's times its sibling's value. 1 M + 1 M a lane at the leaves, halving upwards, and one
 * inversion a block. */
DEV void walk_invert(fe *x, LOCAL quad *nodes) {
#if BLOCK == 1 || !INVERT_SHARED
    fe_inv(x, x);
    (void)nodes;
#else
    fe a, b;
    u32 lane = LOCAL_ID;
    BARRIER();
    fe_store_local(nodes + BLOCK + lane, 0, 2 * BLOCK, x);
    ROLLED
    for (u32 n = BLOCK / 2; n > 0; n >>= 1) {
        BARRIER();
        if (lane < n) {
            fe_load_local(&a, nodes + 2 * n + lane, 0, 2 * BLOCK);
            fe_load_local(&b, nodes + 3 * n + lane, 0, 2 * BLOCK);
            fe_mul(&a, &a, &b);
            fe_store_local(nodes + n + lane, 0, 2 * BLOCK, &a);
        }
    }
    /* Lane 0 wrote the root. */
    if (lane == 0) {
        fe_load_local(&a, nodes + 1, 0, 2 * BLOCK);
        fe_inv(&a, &a);
        fe_store_local(nodes + 1, 0, 2 * BLOCK, &a);
    }
    ROLLED
    for (u32 n = 1; n < BLOCK; n <<= 1) {
        BARRIER();
        if (lane < 2 * n) {
            fe_load_local(&a, nodes + n + (lane & (n - 1)), 0, 2 * BLOCK);
            fe_load_local(&b, nodes + 2 * n + (lane ^ n), 0, 2 * BLOCK);
            fe_mul(&a, &a, &b);
        }
        BARRIER();
        if (lane < 2 * n) fe_store_local(nodes + 2 * n + lane, 0, 2 * BLOCK, &a);
    }
    *x = a;
#endif
}
