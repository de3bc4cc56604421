/* Entry point: the search. */

/* Shared memory of a lane, in quads: c^3, L, digits of c and beta c (two times 9 words), and for finer words the top
 * bytes of digits 3..10 of each (two times 2 words). */
#define SPARE_CUBE 0
#define SPARE_SLOPE 1
#define SPARE_DIGITS 4
#define SPARE_BYTES 9
#define SPARE_QUADS (FILTER_FINE ? 10 : 9)

#if !FILTER_SET
/* Tests the three images of the centre, f the digits of c and beta c. */
DEV void search_centre(const filter_state *filter, GLOBAL u32 *hits, u32 lane, u32 step, const u32 *f) {
    u32 tops[3], mask;
    tops[0] = f[0];
    tops[1] = f[9];
    tops[2] = 0u - f[0] - f[9];
    mask = filter_test(filter, tops, 3);
    UNROLL
    for (int j = 0; j < 3; j++) {
        if (mask >> j & 1) search_emit(hits, lane, step, (u32)j << CODE_IMAGE, tops[j]);
    }
}
#endif

/* Adds up the nine keys of one sign: tops[3 * m + j] is the top word of beta^j times term m. */
DEV void search_nine(u32 *sums, const u32 *tops) {
    UNROLL
    for (int p = 0; p < 3; p++) {
        UNROLL
        for (int q = 0; q < 3; q++) sums[3 * p + q] = tops[(6 - p - q) % 3] + tops[3 + p] + tops[6 + q];
    }
}

#if !FILTER_SET

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

#endif

#if FILTER_SET
#define SET_PARAMS , GLOBAL quad *log, GLOBAL quad *lists, u32 capacity, u32 room
#else
#define SET_PARAMS
#endif

/* `steps` groups of each lane, from the centres on; centres are moved on. lanes is a multiple of BLOCK.
 * A SET filter leaves candidates in `lists` and their centres in `log` for search_settle. */
KERNEL void LAUNCH_BOUNDS search_walk(GLOBAL u32 *centres, GLOBAL quad *scratch, TABLE_PARAM GLOBAL const u32 *filter,
                                      GLOBAL u32 *hits, u32 lanes, u32 steps SET_PARAMS) {
    LOCAL_ARRAY(quad, spare_block, SPARE_QUADS * BLOCK);
    u32 lane = GROUP_ID * BLOCK + LOCAL_ID;
    LOCAL quad *spare = spare_block + LOCAL_ID;
    /* The inversion is over before a lane's digits are written, and begins when all lanes are through with theirs; at
     * its end a lane writes to its own place only. */
    LOCAL quad *nodes = spare_block + SPARE_DIGITS * BLOCK;
    u32 alive = 1;
    filter_state state;
#if FILTER_SET
    LOCAL_ARRAY(u32, candidates, 1);
    LOCAL_ARRAY(u32, lost, 1);
    u32 next = GROUP_ID * capacity + LOCAL_ID;
    GLOBAL quad *found = lists + LIST_AT(lanes, capacity, room);
#if SET_NEAR
    LOCAL_ARRAY(u32, bitmap, NEAR_WORDS);
    for (u32 i = LOCAL_ID; i < NEAR_WORDS; i += BLOCK) bitmap[i] = filter[SET_HEADER + i];
    state.bitmap = bitmap;
#else
    state.bitmap = filter + SET_HEADER;
    state.shift = filter[SET_SHIFT];
#endif
    if (LOCAL_ID == 0) candidates[0] = lost[0] = 0;
    BARRIER();
#else
    filter_load(&state, filter);
#endif

    scratch += lane;
    ROLLED
    for (u32 step = 0; step < steps; step++) {
        fe c, yc, acc;
        UNROLL
        for (int i = 0; i < 8; i++) {
            c.v[i] = centres[(u64)i * lanes + lane];
            yc.v[i] = centres[(u64)(i + 8) * lanes + lane];
        }
#if FILTER_SET
        {
            GLOBAL quad *to = log + ((u64)step * lanes + lane) * LOG_QUADS;
            UNROLL
            for (int i = 0; i < 2; i++) {
                to[i] = fe_quad(&c, i);
                to[2 + i] = fe_quad(&yc, i);
            }
        }
#endif

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
            fe q, dx, y2, a, b, xs, ys, x;
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
#if FILTER_SET
            if (!alive) {
                quad zero;
                next |= SIFT_CLOSED;
                zero.x = zero.y = zero.z = zero.w = 0;
                UNROLL
                for (int i = 0; i < 4; i++) log[((u64)step * lanes + lane) * LOG_QUADS + i] = zero;
            }
#endif
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
            fe_mul(&a, &a, &y2);
            fe_norm(&c, &c);
            walk_next(centres, lanes, lane, &c, &yc, &xs, &ys, &a, alive);
        }

        /* The centre's own keys, and its digits. */
        {
            u32 f[20];
            fe beta;
            quad q;
            search_beta(&beta);
            fe_mul(&beta, &beta, &c);
#if FILTER_SET
            {
                GLOBAL quad *to = log + ((u64)step * lanes + lane) * LOG_QUADS + 4;
                fe_norm(&beta, &beta);
                to[0] = fe_quad(&beta, 0);
                to[1] = fe_quad(&beta, 1);
            }
#endif
            {
                u32 second[10];
                walk_digits(f, &c);
                walk_digits(second, &beta);
#if FILTER_FINE
                q.x = top_bytes(f[2], f[3], f[4], f[5]);
                q.y = top_bytes(f[6], f[7], f[8], f[9]);
                q.z = top_bytes(second[2], second[3], second[4], second[5]);
                q.w = top_bytes(second[6], second[7], second[8], second[9]);
                spare[SPARE_BYTES * BLOCK] = q;
#endif
                UNROLL
                for (int i = 0; i < 9; i++) f[9 + i] = second[i];
                f[18] = f[19] = 0;
            }
            UNROLL
            for (int i = 0; i < 5; i++) {
                q.x = f[4 * i];
                q.y = f[4 * i + 1];
                q.z = f[4 * i + 2];
                q.w = f[4 * i + 3];
                spare[(SPARE_DIGITS + i) * BLOCK] = q;
            }
#if !FILTER_SET
            if (alive) search_centre(&state, hits, lane, step, f);
#endif
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
#if FILTER_SET
                u32 parts = 0;
#endif
#if FILTER_FINE
                u32 own[2];
                quad bytes;
#endif
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
#if FILTER_FINE
                bytes = search_table[i * TABLE_QUADS + TABLE_BYTES / 4 + 1];
                walk_bytes(own, x.v);
                tops[6] = walk_fine(x.v, 0, f + 18, own, bytes.x, bytes.y, &parts);
                tops[7] = walk_fine(x.v, 0, f + 27, own, bytes.z, bytes.w, &parts);
#else
                tops[6] = walk_top(x.v, 0, 0, f + 18);
                tops[7] = walk_top(x.v, 0, 0, f + 27);
#endif
                fe_mul(&x, &c, &x);
                high = u256_add(x.v, z.v);
#if FILTER_FINE
                high = walk_less_one(x.v, high);
                bytes = search_table[i * TABLE_QUADS + TABLE_BYTES / 4];
                walk_bytes(own, x.v);
                tops[3] = walk_fine(x.v, high, f, own, bytes.x, bytes.y, &parts);
                tops[4] = walk_fine(x.v, high, f + 9, own, bytes.z, bytes.w, &parts);
#else
                tops[3] = walk_top(x.v, high, 1, f);
                tops[4] = walk_top(x.v, high, 1, f + 9);
#endif
                high += u256_add(x.v, z.v);
                UNROLL
                for (int j = 0; j < 5; j++) {
                    quad q = spare[(SPARE_DIGITS + j) * BLOCK];
                    g[4 * j] = q.x;
                    g[4 * j + 1] = q.y;
                    g[4 * j + 2] = q.z;
                    g[4 * j + 3] = q.w;
                }
#if FILTER_FINE
                bytes = spare[SPARE_BYTES * BLOCK];
                walk_bytes(own, x.v);
                tops[0] = walk_fine(x.v, high, g, own, bytes.x, bytes.y, &parts);
                tops[1] = walk_fine(x.v, high, g + 9, own, bytes.z, bytes.w, &parts);
#else
                tops[0] = walk_top(x.v, high, 1, g);
                tops[1] = walk_top(x.v, high, 1, g + 9);
#endif
#if STAGE == 1
                tops[2] = tops[5] = tops[8] = 0;
                search_fold(&state, hits, lane, step, tops, 9);
                continue;
#endif
                UNROLL
                for (int m = 0; m < 9; m += 3) tops[m + 2] = 0u - tops[m] - tops[m + 1];
                search_nine(sums, tops);
#if FILTER_SET
                {
                    u32 mask = filter_nine(&state, sums);
                    if (mask && next < (GROUP_ID + 1) * capacity) {
                        u32 code = i | sign << CODE_SIGN | mask << SURVIVOR_MASK;
                        next = sift_keep(lists, next, code, tops, parts);
                    }
                }
#else
                if (filter_any(&state, sums, 9) && alive) {
                    u32 mask = filter_test(&state, sums, 9);
                    search_emit_nine(hits, lane, step, i | sign << CODE_SIGN, mask, sums);
                }
#endif
            }
        }
#if FILTER_SET
        {
            set_index set;
            u32 closed = next & SIFT_CLOSED, end = next - closed, first = GROUP_ID * capacity + LOCAL_ID;
            set_index_load(&set, filter);
            /* Whether there were more, nobody knows. */
            if (end >= (GROUP_ID + 1) * capacity) {
                ATOMIC_ADD_LOCAL(lost, 1u);
                end = first;
            }
            sift_out(&set, lists, first, end, found + 1, candidates, room, lane, step);
            next = first | closed;
        }
#endif
    }
#if FILTER_SET
    BARRIER();
    if (LOCAL_ID == 0) {
        quad q;
        q.x = candidates[0];
        q.y = lost[0];
        q.z = q.w = 0;
        found[0] = q;
    }
#endif
}
