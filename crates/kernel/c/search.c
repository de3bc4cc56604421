/* Entry point: the search. */

/* Shared memory of a lane, in quads: c^3, L, digits of c and beta c (two times 9 words), then
 * digits 10 and 11 of each. */
#define SPARE_CUBE 0
#define SPARE_SLOPE 1
#define SPARE_DIGITS 4
#define SPARE_QUADS 10

/* Tests the three images of the centre, f the digits of c and beta c. */
DEV void search_centre(const filter_state *filter, GLOBAL u32 *hits, u32 lane, u32 step, const u32 *f) {
    u32 tops[3], mask;
    tops[0] = f[0];
    tops[1] = f[9];
    tops[2] = 0u - f[0] - f[9];
    mask = filter_test(filter, tops, 3);
#if FILTER_WIDE
    {
        u64 wide[3];
        wide[0] = (u64)f[0] << 32 | f[1];
        wide[1] = (u64)f[9] << 32 | f[10];
        wide[2] = 0u - wide[0] - wide[1];
        UNROLL
        for (int j = 0; j < 3; j++) {
            if (mask >> j & 1 && !filter_wide(filter, wide[j])) mask ^= 1u << j;
        }
    }
#endif
    UNROLL
    for (int j = 0; j < 3; j++) {
        if (mask >> j & 1) search_emit(hits, lane, step, (u32)j << CODE_IMAGE, tops[j]);
    }
}

/* Adds up the nine keys of one sign: tops[3 * m + j] is the top word of beta^j times term m. */
DEV void search_nine(u32 *sums, const u32 *tops) {
    UNROLL
    for (int p = 0; p < 3; p++) {
        UNROLL
        for (int q = 0; q < 3; q++) sums[3 * p + q] = tops[(6 - p - q) % 3] + tops[3 + p] + tops[6 + q];
    }
}

#if FILTER_WIDE
/* Level 2 of the filter for the keys under mask: takes off those it does not accept.
 * v0 = Y + 2Z with limb 8 `high`, z = Z, e = L s.
 * Out of line, and given copies: inlined, its arrays cost the loop above it a quarter of its speed (H200,
 * 122 to 94 G keys/s), and arguments whose address is taken live in memory. */
COLD u32 search_settle(const filter_state *filter, TABLE const quad *table, LOCAL const quad *spare, u32 entry, u32 mask,
                      const fe *v0, u32 high, const fe *z, const fe *e) {
    u32 v[27], f[66], g[36];
    u64 wide[9];
    fe t = *v0;
    UNROLL
    for (int i = 0; i < 8; i++) v[i] = t.v[i];
    v[8] = high;
    v[17] = high - (u256_sub(t.v, z->v) & 1u);
    UNROLL
    for (int i = 0; i < 8; i++) v[9 + i] = t.v[i];
    fe_mul(&t, e, z);
    UNROLL
    for (int i = 0; i < 8; i++) v[18 + i] = t.v[i];
    v[26] = 0;
    walk_load_digits(g, table, entry);
    UNROLL
    for (int m = 0; m < 4; m++) {
        quad fine = table[entry * TABLE_QUADS + TABLE_FINE / 4 + m / 2];
        UNROLL
        for (int i = 0; i < 9; i++) f[22 + 11 * m + i] = g[9 * m + i];
        f[22 + 11 * m + 9] = m % 2 ? fine.z : fine.x;
        f[22 + 11 * m + 10] = m % 2 ? fine.w : fine.y;
    }
    UNROLL
    for (int i = 0; i < 6; i++) {
        quad q = spare[(SPARE_DIGITS + i) * BLOCK];
        g[4 * i] = q.x;
        g[4 * i + 1] = q.y;
        g[4 * i + 2] = q.z;
        g[4 * i + 3] = q.w;
    }
    UNROLL
    for (int m = 0; m < 2; m++) {
        UNROLL
        for (int i = 0; i < 9; i++) f[11 * m + i] = g[9 * m + i];
        f[11 * m + 9] = g[18 + 2 * m];
        f[11 * m + 10] = g[19 + 2 * m];
    }
    ROLLED
    for (int m = 0; m < 3; m++) {
        wide[3 * m] = walk_top_wide(v + 9 * m, m < 2, f + 22 * m);
        wide[3 * m + 1] = walk_top_wide(v + 9 * m, m < 2, f + 22 * m + 11);
        wide[3 * m + 2] = 0u - wide[3 * m] - wide[3 * m + 1];
    }
    ROLLED
    for (u32 at = 0; at < 9; at++) {
        u32 p = at / 3, q = at % 3;
        if (mask >> at & 1 && !filter_wide(filter, wide[(6 - p - q) % 3] + wide[3 + p] + wide[6 + q])) mask ^= 1u << at;
    }
    return mask;
}
#endif

/* Emits the keys under mask. */
DEV void search_emit_nine(GLOBAL u32 *hits, u32 lane, u32 step, u32 index, u32 mask, const u32 *sums) {
    ROLLED
    for (u32 at = 0; at < 9; at++) {
        /* One emission in the code instead of nine: the sum is picked by comparisons. */
        u32 p = at / 3, q = at % 3, sum = 0;
        UNROLL
        for (u32 i = 0; i < 9; i++) sum = at == i ? sums[i] : sum;
        if (mask >> at & 1) {
            u32 code = index | (3 + q - p) % 3 << CODE_ORBIT | (6 - p - q) % 3 << CODE_IMAGE;
            search_emit(hits, lane, step, code, sum);
        }
    }
}

#if STAGE < 2
/* Ends a key's way early, for timing: folds the words into one and lets the filter see it, so that no compiler can
 * leave out what led here. What it emits is no hit. */
DEV void search_fold(const filter_state *filter, GLOBAL u32 *hits, u32 lane, u32 step, const u32 *words, int count) {
    u32 word[1] = {0};
    UNROLL
    for (int i = 0; i < count; i++) word[0] ^= words[i];
    if (filter_any(filter, word, 1)) search_emit(hits, lane, step, 0, word[0]);
}
#endif

/* `steps` groups of each lane, from the centres on; centres are moved on. lanes is a multiple of BLOCK. */
KERNEL void LAUNCH_BOUNDS search_walk(GLOBAL u32 *centres, GLOBAL quad *scratch, TABLE_PARAM GLOBAL const u32 *filter,
                                      GLOBAL u32 *hits, u32 lanes, u32 steps) {
    LOCAL_ARRAY(quad, spare_block, SPARE_QUADS * BLOCK);
    LOCAL_ARRAY(quad, nodes, INVERT_SHARED ? 4 * BLOCK : 1);
    u32 lane = GROUP_ID * BLOCK + LOCAL_ID;
    LOCAL quad *spare = spare_block + LOCAL_ID;
    u32 alive = 1;
    filter_state state;

    scratch += lane;
    filter_load(&state, filter);
    ROLLED
    for (u32 step = 0; step < steps; step++) {
        fe c, yc, acc;
        UNROLL
        for (int i = 0; i < 8; i++) {
            c.v[i] = centres[(u64)i * lanes + lane];
            yc.v[i] = centres[(u64)(i + 8) * lanes + lane];
        }

        /* Prefix products of c^3 - t^3: scratch[i] holds those of entries 1..i. */
        {
            fe cube, a;
            fe_sqr(&cube, &c);
            fe_mul(&cube, &cube, &c);
            fe_store_local(spare, SPARE_CUBE, BLOCK, &cube);
            fe_set(&acc, 1);
            ROLLED
            for (u32 i = 1; i <= GROUP; i++) {
                fe_store_global(scratch, i - 1, lanes, &acc);
                fe_load_table(&a, search_table, i, TABLE_CUBE);
                fe_sub(&a, &cube, &a);
                fe_mul(&acc, &acc, &a);
            }
        }

        /* One inversion for the products, 2 yc and the centre's step. */
        {
            fe q, dx, y2, a, b, xs, ys, x, y;
            fe_load_table(&xs, search_table, 0, TABLE_CUBE);
            fe_load_table(&ys, search_table, 0, TABLE_Y);
            fe_sub(&dx, &c, &xs);
            fe_norm(&yc, &yc);
            fe_add(&y2, &yc, &yc);
            fe_mul(&b, &y2, &dx);
            fe_mul(&q, &acc, &b);
            if (fe_is_zero(&q)) {
                if (alive) search_emit(hits, lane, step, CODE_FAULT, 0);
                alive = 0;
                fe_set(&q, 1);
            }
            walk_invert(&q, nodes);
            fe_mul(&a, &q, &acc); /* 1 / (2 yc (c - xs)) */
            /* acc = -2 yc / product */
            fe_mul(&acc, &q, &b);
            fe_mul(&acc, &acc, &y2);
            fe_norm(&b, &acc);
            fe_set(&q, 0);
            fe_sub(&acc, &q, &b);
            /* L = 3 c^2 / (2 yc) */
            fe_mul(&b, &a, &dx);
            fe_sqr(&x, &c);
            fe_norm(&x, &x);
            fe_add(&q, &x, &x);
            fe_add(&q, &q, &x);
            fe_mul(&b, &b, &q);
            fe_store_local(spare, SPARE_SLOPE, BLOCK, &b);
            /* The next centre: m = (yc - ys) / (c - xs), x = m^2 - c - xs, y = m (c - x) - yc. */
            fe_mul(&a, &a, &y2);
            fe_sub(&b, &yc, &ys);
            fe_mul(&a, &a, &b);
            fe_norm(&c, &c);
            fe_sqr(&x, &a);
            fe_sub(&x, &x, &c);
            fe_sub(&x, &x, &xs);
            fe_norm(&x, &x);
            fe_sub(&y, &c, &x);
            fe_mul(&y, &y, &a);
            fe_sub(&y, &y, &yc);
            fe_norm(&y, &y);
            if (alive) {
                UNROLL
                for (int i = 0; i < 8; i++) {
                    centres[(u64)i * lanes + lane] = x.v[i];
                    centres[(u64)(i + 8) * lanes + lane] = y.v[i];
                }
            }
        }

        /* The centre's own keys, and its digits. */
        {
            u32 f[24];
            fe beta;
            quad q;
            search_beta(&beta);
            fe_mul(&beta, &beta, &c);
            {
                u32 fine[11];
                walk_digits(f, &c);
                walk_digits(fine, &beta);
                f[18] = f[9];
                f[19] = f[10];
                f[20] = fine[9];
                f[21] = fine[10];
                f[22] = f[23] = 0;
                UNROLL
                for (int i = 0; i < 9; i++) f[9 + i] = fine[i];
            }
            UNROLL
            for (int i = 0; i < 6; i++) {
                q.x = f[4 * i];
                q.y = f[4 * i + 1];
                q.z = f[4 * i + 2];
                q.w = f[4 * i + 3];
                spare[(SPARE_DIGITS + i) * BLOCK] = q;
            }
            if (alive) search_centre(&state, hits, lane, step, f);
        }

        /* The keys, last entry first: acc = -2 yc / product of entries 1..i. */
        ROLLED
        for (u32 i = GROUP; i > 0; i--) {
            fe s, e, y, a;
            fe_load_global(&s, scratch, i - 1, lanes);
            fe_mul(&s, &s, &acc);
            fe_load_local(&e, spare, SPARE_CUBE, BLOCK);
            fe_load_table(&a, search_table, i, TABLE_CUBE);
            fe_sub(&a, &e, &a);
            fe_mul(&acc, &acc, &a);
            fe_load_local(&e, spare, SPARE_SLOPE, BLOCK);
            fe_mul(&e, &e, &s);
            fe_load_table(&y, search_table, i, TABLE_Y);
            SIGN_LOOP
            for (u32 sign = 0; sign < 2; sign++) {
                fe z, x;
                u32 tops[9], sums[9], f[36], g[20], high;
                if (sign == 0) {
                    fe_sub(&z, &yc, &y);
                } else {
                    fe_add(&z, &yc, &y);
                }
                fe_mul_inc(&z, &s, &z);
                fe_mul(&x, &e, &z);
#if STAGE == 0
                fe_mul(&x, &c, &x);
                search_fold(&state, hits, lane, step, x.v, 8);
                continue;
#endif
                walk_load_digits(f, search_table, i);
                tops[6] = walk_top(x.v, 0, 0, f + 18);
                tops[7] = walk_top(x.v, 0, 0, f + 27);
                fe_mul(&x, &c, &x);
                high = u256_add(x.v, z.v);
                tops[3] = walk_top(x.v, high, 1, f);
                tops[4] = walk_top(x.v, high, 1, f + 9);
                high += u256_add(x.v, z.v);
                UNROLL
                for (int j = 0; j < 5; j++) {
                    quad q = spare[(SPARE_DIGITS + j) * BLOCK];
                    g[4 * j] = q.x;
                    g[4 * j + 1] = q.y;
                    g[4 * j + 2] = q.z;
                    g[4 * j + 3] = q.w;
                }
                tops[0] = walk_top(x.v, high, 1, g);
                tops[1] = walk_top(x.v, high, 1, g + 9);
#if STAGE == 1
                tops[2] = tops[5] = tops[8] = 0;
                search_fold(&state, hits, lane, step, tops, 9);
                continue;
#endif
                UNROLL
                for (int m = 0; m < 9; m += 3) tops[m + 2] = 0u - tops[m] - tops[m + 1];
                search_nine(sums, tops);
                if (filter_any(&state, sums, 9) && alive) {
                    u32 mask = filter_test(&state, sums, 9);
#if FILTER_WIDE
                    filter_state state_copy = state;
                    fe x_copy = x, z_copy = z, e_copy = e;
                    mask = search_settle(&state_copy, search_table, spare, i, mask, &x_copy, high, &z_copy, &e_copy);
#endif
                    search_emit_nine(hits, lane, step, i | sign << CODE_SIGN, mask, sums);
                }
            }
        }
    }
}
