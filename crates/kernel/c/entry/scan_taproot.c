/* Entry point of a scan that tests taproot outputs of the points of a step, y and all: one thread a lane. */

KERNEL void LAUNCH_BOUNDS scan_taproot(GLOBAL const quad *points, GLOBAL const u32 *filter, GLOBAL const quad *tweaks,
                                       GLOBAL quad *sums, GLOBAL u32 *hits, u32 lanes, u32 step) {
    LOCAL_ARRAY(quad, nodes, 4 * BLOCK);
    u32 lane = GROUP_ID * BLOCK + LOCAL_ID, waiting = 0, one = OPAQUE_ONE;
    filter_state state;

    points += lane;
    sums += lane;
    filter_load(&state, filter, hits);
    ROLLED
    for (u32 n = 0; n < WRITTEN_POINTS; n++) {
        fe words, x, y;
        u32 t[8], last;
        fe_load_global(&words, points, 2 * n, lanes);
        taproot_tweak(t, words.v, one);
        UNROLL
        for (int i = 0; i < 8; i++) x.v[i] = words.v[7 - i];
        fe_load_global(&words, points, 2 * n + 1, lanes);
        UNROLL
        for (int i = 0; i < 8; i++) y.v[i] = words.v[7 - i];
        if (y.v[0] & 1) {
            fe_set(&words, 0);
            fe_sub(&y, &words, &y); /* p - y: no point has y = 0 */
        }
        taproot_wait(&x, &y, t, sums, tweaks, lanes, waiting);
        waiting++;
        if (waiting < TAPROOT_KEYS && n + 1 < WRITTEN_POINTS) continue;
        fe_load_global(&x, sums, SUM_PRODUCT, lanes);
        walk_invert(&x, nodes);
        last = waiting - 1; /* is point n */
        ROLLED
        for (; waiting > 0; waiting--) {
            u32 k = waiting - 1, digest[8], told, code = points_code(n - (last - k));
            if (!taproot_digest(digest, sums, lanes, k, &x)) {
                scan_emit(hits, lane, step, code | 1u << CODE_OPEN, FORM_TAPROOT, digest, 0);
            } else if (filter_test(&state, digest, hits, &told)) {
                scan_emit(hits, lane, step, code, FORM_TAPROOT, digest, 8);
            }
        }
    }
}
