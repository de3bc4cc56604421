/* Entry point that searches taproot outputs: 3 keys a point, a key and its negative being one. beta acts on x alone, so one
 * parity decides for all images of a point. */

/* An element of shared memory, where words stand most significant first, as a number. */
DEV void taproot_load(fe *r, LOCAL const quad *spare, u32 element) {
    fe words;
    fe_load_local(&words, spare, element, BLOCK);
    UNROLL
    for (int i = 0; i < 8; i++) r->v[i] = words.v[7 - i];
}

/* Adds the tweak to image `image` of the point in shared memory, as key k of those that wait. */
DEV void taproot_key(LOCAL const quad *spare, u32 image, GLOBAL quad *sums, GLOBAL const quad *tweaks, u32 lanes, u32 k,
                     u32 one) {
    fe x, y;
    u32 t[8];
    fe_load_local(&x, spare, image, BLOCK);
    taproot_tweak(t, x.v, one);
    taproot_load(&x, spare, image);
    taproot_load(&y, spare, MESSAGE_Y);
    if (y.v[0] & 1) taproot_load(&y, spare, MESSAGE_Y + 1);
    taproot_wait(&x, &y, t, sums, tweaks, lanes, k);
}

/* `steps` groups of each lane, from the centres on; centres are moved on. lanes is a multiple of BLOCK. */
KERNEL void LAUNCH_BOUNDS taproot_walk(GLOBAL u32 *centres, GLOBAL quad *scratch, TABLE_PARAM GLOBAL const u32 *filter,
                                       GLOBAL const quad *tweaks, GLOBAL quad *sums, GLOBAL u32 *hits, u32 lanes,
                                       u32 steps) {
    LOCAL_ARRAY(quad, block, MESSAGE_QUADS * BLOCK);
    LOCAL quad *spare = block + LOCAL_ID;
    u32 lane = GROUP_ID * BLOCK + LOCAL_ID, alive = 1, one = OPAQUE_ONE;
    filter_state state;

    scratch += lane;
    sums += lane;
    filter_load(&state, filter, hits);
    ROLLED
    for (u32 step = 0; step < steps; step++) {
        u32 was = alive, waiting = 0;
        /* The inversion's tree lies where the points will: 4 quads a lane, and a point takes 10. */
        alive = points_prepare(centres, scratch, search_table, block, lanes, lane, alive);
        BARRIER();
        if (was && !alive) search_emit(hits, lane, step, CODE_FAULT, 0);
        ROLLED
        for (u32 n = 0; n <= 2 * GROUP; n++) {
            u32 last;
            fe x, y;
            points_at(&x, &y, scratch, search_table, lanes, n);
            points_images(spare, &x, &y);
            ROLLED
            for (u32 image = 0; image < 3; image++) {
                taproot_key(spare, image, sums, tweaks, lanes, waiting, one);
                waiting++;
            }
            if (waiting < TAPROOT_KEYS && n < 2 * GROUP) continue;
            fe_load_global(&x, sums, SUM_PRODUCT, lanes);
            walk_invert(&x, block);
            BARRIER();
            last = waiting - 1; /* of image 2 of point n */
            ROLLED
            for (; waiting > 0; waiting--) {
                u32 k = waiting - 1, digest[DIGEST_WORDS], told;
                u32 code = points_code(n - (last - k) / 3) | k % 3 << CODE_IMAGE;
                u32 done = taproot_digest(digest, sums, lanes, k, &x);
                if (alive && !done) search_emit(hits, lane, step, code | 1u << CODE_OPEN, 0);
                if (alive && done && filter_test(&state, digest, hits, &told)) {
                    search_emit(hits, lane, step, code, told);
                }
            }
        }
    }
}
