/* The second kernel of a SET filter: settles the candidates of the walk, exactly.
 *
 * Computes the x of a candidate by affine addition, C +- lambda^k iG, with one inversion for all candidates of a block
 * of the walk, and reports true hits only. Tests the centres' own keys as well. */

/* r = beta^image, image 1 or 2. */
DEV void settle_root(fe *r, u32 image) {
    const u32 square[8] = {0x8e6afa40u, 0x3ec693d6u, 0xed0a766au, 0x630fb68au,
                           0x53cbcb16u, 0x919bb861u, 0x9a83f8efu, 0x851695d4u};
    search_beta(r);
    UNROLL
    for (int i = 0; i < 8; i++) r->v[i] = image == 2 ? square[i] : r->v[i];
}

/* Level 3 for an exact x. */
DEV u32 settle_holds(GLOBAL const u32 *filter, const fe *x) {
    fe r;
    fe_norm(&r, x);
    return filter_holds(filter, (u64)r.v[7] << 32 | r.v[6]);
}

/* The centres' own keys of a lane. */
DEV void settle_centres(GLOBAL const u32 *filter, GLOBAL u32 *hits, GLOBAL const quad *log, u32 lane, u32 lanes,
                        u32 steps) {
    ROLLED
    for (u32 step = 0; step < steps; step++) {
        GLOBAL const quad *at = log + ((u64)step * lanes + lane) * LOG_QUADS;
        fe x, beta;
        u32 any = 0;
        fe_from_quads(&x, at[2], at[3]);
        UNROLL
        for (int i = 0; i < 8; i++) any |= x.v[i];
        /* No point has y = 0: the lane had met its table. */
        if (any == 0) continue;
        fe_from_quads(&x, at[0], at[1]);
        search_beta(&beta);
        ROLLED
        for (u32 image = 0; image < 3; image++) {
            if (settle_holds(filter, &x)) search_emit(hits, lane, step, image << CODE_IMAGE, x.v[7]);
            fe_mul(&x, &x, &beta);
        }
    }
}

/* x of a candidate's centre, and of lambda^k times its table point. */
DEV void settle_load(fe *c, fe *t, GLOBAL const quad *points, GLOBAL const quad *centre, u32 code) {
    GLOBAL const quad *point = points + ((code & 0xffffu) - 1) * POINT_QUADS + 2 * (code >> CODE_ORBIT & 3);
    fe_from_quads(c, centre[0], centre[1]);
    fe_from_quads(t, point[0], point[1]);
}

/* Behind search_walk of the same lanes, steps and buffers, with as many blocks. */
KERNEL void LAUNCH_BOUNDS search_settle(GLOBAL quad *scratch, GLOBAL const quad *points, GLOBAL const u32 *filter,
                                        GLOBAL u32 *hits, GLOBAL const quad *log, GLOBAL const quad *lists,
                                        u32 capacity, u32 room, u32 lanes, u32 steps) {
    LOCAL_ARRAY(quad, nodes, INVERT_SHARED ? 4 * BLOCK : 1);
    GLOBAL const quad *list = lists + GROUP_ID * LIST_QUADS(capacity, room);
    u32 lane = GROUP_ID * BLOCK + LOCAL_ID, count = list[0].x, lost = list[0].y;

    scratch += lane;
    list += 1 + (u64)capacity * SURVIVOR_QUADS + LOCAL_ID;
    if (lost || count > room) {
        if (LOCAL_ID == 0) ATOMIC_ADD(hits + HITS_LOST, 1u);
        return;
    }
    settle_centres(filter, hits, log, lane, lanes, steps);
    ROLLED
    for (u32 first = 0; first < count; first += BLOCK * GROUP) {
        u32 left = count - first, own = left > LOCAL_ID ? (left - LOCAL_ID + BLOCK - 1) / BLOCK : 0;
        fe acc, c, t;
        if (own > GROUP) own = GROUP;
        /* Prefix products of c - beta^k t. None is zero: the walk has seen the product of all c^3 - t^3 of the step. */
        fe_set(&acc, 1);
        ROLLED
        for (u32 n = 0; n < own; n++) {
            quad candidate = list[first + n * BLOCK];
            GLOBAL const quad *centre = log + ((u64)candidate.y * lanes + candidate.x) * LOG_QUADS;
            settle_load(&c, &t, points, centre, candidate.z);
            fe_store_global(scratch, n, lanes, &acc);
            fe_sub(&c, &c, &t);
            fe_mul(&acc, &acc, &c);
        }
        walk_invert(&acc, nodes);
        ROLLED
        for (u32 n = own; n > 0; n--) {
            quad candidate = list[first + (n - 1) * BLOCK];
            GLOBAL const quad *centre = log + ((u64)candidate.y * lanes + candidate.x) * LOG_QUADS;
            GLOBAL const quad *point = points + ((candidate.z & 0xffffu) - 1) * POINT_QUADS;
            u32 image = candidate.z >> CODE_IMAGE & 3;
            fe slope, yc, y;
            settle_load(&c, &t, points, centre, candidate.z);
            fe_load_global(&slope, scratch, n - 1, lanes);
            fe_mul(&slope, &slope, &acc); /* 1 / (c - beta^k t) */
            fe_sub(&y, &c, &t);
            fe_mul(&acc, &acc, &y);
            fe_from_quads(&yc, centre[2], centre[3]);
            fe_from_quads(&y, point[6], point[7]);
            if (candidate.z >> CODE_SIGN & 1) {
                fe_add(&y, &yc, &y);
            } else {
                fe_sub(&y, &yc, &y);
            }
            fe_mul(&slope, &slope, &y);
            fe_sqr(&y, &slope);
            fe_sub(&y, &y, &c);
            fe_sub(&y, &y, &t);
            if (image > 0) {
                settle_root(&t, image);
                fe_mul(&y, &y, &t);
            }
            if (settle_holds(filter, &y)) {
                search_emit(hits, candidate.x, candidate.y, candidate.z, candidate.w);
            }
        }
    }
}
