/* Entry points: the field operations one by one, for tests and timing. A program of their own, so that they carry
 * none of the search's shared memory and registers. */

/* One field operation for each element: a, b and out hold 8 words an element. */
KERNEL void field_check(GLOBAL const u32 *a, GLOBAL const u32 *b, GLOBAL u32 *out, u32 op, u32 count) {
    u32 n = GROUP_ID * BLOCK + LOCAL_ID;
    fe x, y, r;
    if (n >= count) return;
    UNROLL
    for (int i = 0; i < 8; i++) {
        x.v[i] = a[8 * (u64)n + i];
        y.v[i] = b[8 * (u64)n + i];
    }
    fe_set(&r, 0);
    if (op == 0) {
        fe_mul(&r, &x, &y);
    } else if (op == 1) {
        fe_sqr(&r, &x);
    } else if (op == 2) {
        fe_norm(&y, &y);
        fe_add(&r, &x, &y);
    } else if (op == 3) {
        fe_norm(&y, &y);
        fe_sub(&r, &x, &y);
    } else if (op == 4) {
        fe_inv(&r, &x);
    } else if (op == 5) {
        fe_norm(&r, &x);
    } else if (op == 6) {
        fe_mul_inc(&r, &x, &y);
    } else if (op == 7) {
        /* The top words of x * y, y by digits: with high word 0, and with 2 and one y less; then finer ones with
         * high word 0, 1 and 2, the second with one y less, and what is behind the first, third and second. */
        u32 f[10], own[2], b0, b1, high, parts = 0;
        walk_digits(f, &y);
        walk_bytes(own, x.v);
        b0 = top_bytes(f[2], f[3], f[4], f[5]);
        b1 = top_bytes(f[6], f[7], f[8], f[9]);
        r.v[0] = walk_top(x.v, 0, 0, f);
        r.v[1] = walk_top(x.v, 2, 1, f);
        r.v[2] = f[9];
        r.v[3] = f[7];
        r.v[4] = walk_fine(x.v, 0, f, own, b0, b1, &parts);
        r.v[6] = walk_fine(x.v, 2, f, own, b0, b1, &parts);
        high = walk_less_one(x.v, 1);
        walk_bytes(own, x.v);
        r.v[5] = walk_fine(x.v, high, f, own, b0, b1, &parts);
        r.v[7] = parts;
    } else if (op == 8) {
        fe_sub_weak(&r, &x, &y);
    } else if (op >= 9) {
        /* What is lost shows as all ones. */
        loss lost;
        hasty_clear(&lost);
        if (op == 9) {
            fe_sub_weak(&r, &x, &y);
            hasty_mul_add(&r, &x, &y, &r, &lost);
        } else if (op == 10) {
            hasty_sqr_add(&r, &x, &y, &lost);
        } else if (op == 11) {
            hasty_mul(&r, &x, &y, &lost);
        } else if (op == 12) {
            fe_norm(&y, &y);
            hasty_add(&r, &x, &y, &lost);
        } else if (op == 13) {
            fe_norm(&y, &y);
            hasty_sub(&r, &x, &y, &lost);
        } else {
            r = x;
            hasty_norm(&r, &lost);
        }
        UNROLL
        for (int i = 0; i < 8; i++) r.v[i] |= hasty_is_wrong(&lost) ? 0xffffffffu : 0;
    }
    UNROLL
    for (int i = 0; i < 8; i++) out[8 * (u64)n + i] = r.v[i];
}

/* Where lane n's chain starts: x = data[0..7] and y = data[8..15], each with n added to its lowest limb. */
DEV void chain_start(fe *x, fe *y, GLOBAL const u32 *data, u32 n) {
    UNROLL
    for (int i = 0; i < 8; i++) {
        x->v[i] = data[i];
        y->v[i] = data[8 + i];
    }
    x->v[0] += n;
    y->v[0] += n;
}

/* Leaves the end of lane n's chain, weak, at data[16 + 8 n]. */
DEV void chain_end(GLOBAL u32 *data, u32 n, const fe *x) {
    UNROLL
    for (int i = 0; i < 8; i++) data[16 + 8 * (u64)n + i] = x->v[i];
}

/* Times the field: x = x * y (op 0) or x = x * x (op 1), `count` times, which is even, a chain a lane. */
KERNEL void LAUNCH_BOUNDS field_bench(GLOBAL u32 *data, u32 op, u32 count) {
    u32 n = GROUP_ID * BLOCK + LOCAL_ID;
    fe x, y;
    chain_start(&x, &y, data, n);
    if (op == 0) {
        ROLLED
        for (u32 j = 0; j < count; j += 2) {
            fe_mul(&x, &x, &y);
            fe_mul(&x, &x, &y);
        }
    } else {
        ROLLED
        for (u32 j = 0; j < count; j += 2) {
            fe_sqr(&x, &x);
            fe_sqr(&x, &x);
        }
    }
    chain_end(data, n, &x);
}

/* Times inversion: x = (y / x)^2, `count` times. An entry of its own, so that the saved powers of an inversion take no registers from
 * the chains above. */
KERNEL void LAUNCH_BOUNDS field_invert(GLOBAL u32 *data, u32 count) {
    u32 n = GROUP_ID * BLOCK + LOCAL_ID;
    fe x, y;
    chain_start(&x, &y, data, n);
    ROLLED
    for (u32 j = 0; j < count; j++) {
        fe_inv(&x, &x);
        fe_mul(&x, &x, &y);
        fe_sqr(&x, &x);
    }
    chain_end(data, n, &x);
}
