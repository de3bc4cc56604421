/* The second kernel of a SET filter: settles the candidates of the walk, exactly.
 *
 * Computes the x of a candidate by affine addition, with one inversion for all candidates of a block
 * of the walk, and reports true hits only. Tests the centres' own keys as well. */

/* Level 3 for an exact x. */
DEV u32 settle_holds(GLOBAL const u32 *filter, const fe *x) {
    fe r;
    fe_norm(&r, x);
    return filter_holds(filter, (u64)r.v[7] << 32 | r.v[6]);
}

/* x of an image of a centre. That by beta^2 is minus the sum of the others, both below p. */
DEV void settle_centre(fe *x, GLOBAL const quad *centre, u32 image) {
    fe beta;
    fe_from_quads(x, centre[image == 1 ? 4 : 0], centre[image == 1 ? 5 : 1]);
    if (image == 2) {
        fe_from_quads(&beta, centre[4], centre[5]);
        fe_add(&beta, &beta, x);
        fe_norm(&beta, &beta);
        fe_set(x, 0);
        fe_sub(x, x, &beta);
    }
}

/* The centres' own keys of a lane. */
DEV void settle_centres(GLOBAL const u32 *filter, GLOBAL u32 *hits, GLOBAL const quad *log, u32 lane, u32 lanes,
                        u32 steps) {
    ROLLED
    for (u32 step = 0; step < steps; step++) {
        GLOBAL const quad *at = log + ((u64)step * lanes + lane) * LOG_QUADS;
        fe x;
        u32 any = 0;
        fe_from_quads(&x, at[2], at[3]);
        UNROLL
        for (int i = 0; i < 8; i++) any |= x.v[i];
        /* No point has y = 0: the lane had met its table. */
        if (any == 0) continue;
        ROLLED
        for (u32 image = 0; image < 3; image++) {
            settle_centre(&x, at, image);
            if (settle_holds(filter, &x)) search_emit(hits, lane, step, image << CODE_IMAGE, x.v[7]);
        }
    }
}

/* The code of a hit from that of a candidate: key 3 p + q of search_nine has orbit q - p, and image j where
 * j + p + q = 0, all mod 3. */
DEV u32 settle_code(u32 code) {
    u32 key = code >> CANDIDATE_KEY, p = key / 3, q = key % 3;
    return (code & ~(~0u << CANDIDATE_KEY)) | (3 + q - p) % 3 << CODE_ORBIT | (6 - p - q) % 3 << CODE_IMAGE;
}

/* x of the two points whose sum or difference a candidate is: lambda^j (C +- lambda^k iG) is lambda^j C +- lambda^(j+k) iG,
 * and the y of a point are those of its images. */
DEV void settle_load(fe *c, fe *t, GLOBAL const quad *points, GLOBAL const quad *centre, u32 code) {
    u32 image = code >> CODE_IMAGE & 3, orbit = code >> CODE_ORBIT & 3;
    GLOBAL const quad *point = points + ((code & 0xffffu) - 1) * POINT_QUADS + 2 * ((image + orbit) % 3);
    settle_centre(c, centre, image);
    fe_from_quads(t, point[0], point[1]);
}

/* Behind search_walk of the same lanes, steps and buffers, with as many blocks. */
KERNEL void LAUNCH_BOUNDS search_settle(GLOBAL quad *scratch, GLOBAL const quad *points, GLOBAL const u32 *filter,
                                        GLOBAL u32 *hits, GLOBAL const quad *log, GLOBAL const quad *lists,
                                        u32 capacity, u32 room, u32 lanes, u32 steps) {
    LOCAL_ARRAY(quad, nodes, INVERT_SHARED ? 4 * BLOCK : 1);
    GLOBAL const quad *list = lists + LIST_AT(lanes, capacity, room);
    u32 lane = GROUP_ID * BLOCK + LOCAL_ID, count = list[0].x, lost = list[0].y;

    scratch += lane;
    list += 1 + LOCAL_ID;
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
        /* Prefix products of c - t. None is zero: the walk has seen the product of all c^3 - t^3 of the step. */
        fe_set(&acc, 1);
        ROLLED
        for (u32 n = 0; n < own; n++) {
            quad candidate = list[first + n * BLOCK];
            GLOBAL const quad *centre = log + ((u64)candidate.y * lanes + candidate.x) * LOG_QUADS;
            settle_load(&c, &t, points, centre, settle_code(candidate.z));
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
            u32 code = settle_code(candidate.z);
            fe slope, yc, y;
            settle_load(&c, &t, points, centre, code);
            fe_load_global(&slope, scratch, n - 1, lanes);
            fe_mul(&slope, &slope, &acc); /* 1 / (c - t) */
            fe_sub(&y, &c, &t);
            fe_mul(&acc, &acc, &y);
            fe_from_quads(&yc, centre[2], centre[3]);
            fe_from_quads(&y, point[6], point[7]);
            if (code >> CODE_SIGN & 1) {
                fe_add(&y, &yc, &y);
            } else {
                fe_sub(&y, &yc, &y);
            }
            fe_mul(&slope, &slope, &y);
            fe_sqr(&y, &slope);
            fe_sub(&y, &y, &c);
            fe_sub(&y, &y, &t);
            if (settle_holds(filter, &y)) {
                search_emit(hits, candidate.x, candidate.y, code, candidate.w);
            }
        }
    }
}
