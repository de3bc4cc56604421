/* Entry point of a scan that walks: every key of a stretch once. No images and no signs: 3.5 M + 1 S a key.
 *
 * Lane l has the group of 2 GROUP + 1 keys around its centre, and neighbouring lanes neighbouring groups. Entry 0 of the
 * table, by which a step moves all centres, is lanes * (2 GROUP + 1) * G, so one step covers one stretch of keys. Points are
 * written down for scan_test.c. */

DEV quad scan_quad(const fe *a, int part) {
    quad q;
    q.x = a->v[7 - 4 * part];
    q.y = a->v[6 - 4 * part];
    q.z = a->v[5 - 4 * part];
    q.w = a->v[4 - 4 * part];
    return q;
}

/* Writes down point n of a lane. Coordinates are below p. */
DEV void scan_store(GLOBAL quad *points, u32 lanes, u32 lane, u32 n, const fe *x, const fe *y) {
    GLOBAL quad *own = points + (u64)n * SCAN_QUADS * lanes + lane;
    own[0] = scan_quad(x, 0);
    own[lanes] = scan_quad(x, 1);
#if SCAN_KEEP_Y
    own[2 * (u64)lanes] = scan_quad(y, 0);
    own[3 * (u64)lanes] = scan_quad(y, 1);
#else
    ((GLOBAL u32 *)(points + SCAN_LAST(lanes)))[(u64)n * lanes + lane] = y->v[0];
#endif
}

/* The points of a group but for its centre, once more and exactly: for one lane in 2^20, of which a carry was lost. Loads and
 * stores all by itself, so that nobody's registers lie in memory. */
COLD void scan_again(GLOBAL quad *scratch, TABLE const quad *search_table, GLOBAL quad *points, u32 lanes, u32 lane) {
    fe c, yc, product, zero;
    fe_set(&zero, 0);
    fe_load_global(&c, scratch, KEEP_X, lanes);
    fe_load_global(&yc, scratch, KEEP_Y, lanes);
    fe_load_global(&product, scratch, KEEP_PRODUCT, lanes);
    ROLLED
    for (u32 index = GROUP; index > 0; index--) {
        fe t, a, inverse;
        fe_load_table(&t, search_table, index, 0);
        fe_load_global(&inverse, scratch, index - 1, lanes);
        fe_mul(&inverse, &inverse, &product);
        fe_sub(&a, &c, &t);
        fe_mul(&product, &product, &a);
        ROLLED
        for (u32 sign = 0; sign < 2; sign++) {
            fe x, y;
            fe_load_table(&y, search_table, index, 8);
            if (sign == 1) fe_sub(&y, &zero, &y);
            walk_add(&x, &y, &c, &yc, &t, &y, &inverse);
            scan_store(points, lanes, lane, 2 * (GROUP - index) + 1 + sign, &x, &y);
        }
    }
}

/* The next group of each lane, and its centre moved on. A lane that met its table says so, and what it wrote down is
 * nothing. lanes is a multiple of BLOCK. */
KERNEL void LAUNCH_BOUNDS scan_walk(GLOBAL u32 *centres, GLOBAL quad *scratch, TABLE_PARAM GLOBAL quad *points,
                                    GLOBAL u32 *hits, u32 lanes, u32 step) {
    LOCAL_ARRAY(quad, nodes, 4 * BLOCK);
    u32 lane = GROUP_ID * BLOCK + LOCAL_ID;
    fe c, yc, minus_c, minus_yc, product, zero;
    loss lost;

    scratch += lane;
    if (!points_prepare(centres, scratch, search_table, nodes, lanes, lane, 1)) {
        u32 digest[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        scan_emit(hits, lane, step, CODE_FAULT, 0, digest, 0);
    }
    fe_set(&zero, 0);
    fe_load_global(&c, scratch, KEEP_X, lanes);
    fe_load_global(&yc, scratch, KEEP_Y, lanes);
    fe_load_global(&product, scratch, KEEP_PRODUCT, lanes);
    fe_sub(&minus_c, &zero, &c);
    fe_sub(&minus_yc, &zero, &yc);
    scan_store(points, lanes, lane, 0, &c, &yc);
    hasty_clear(&lost);
    ROLLED
    for (u32 index = GROUP; index > 0; index--) {
        fe t, y, a, b, inverse;
        fe_load_table(&t, search_table, index, 0);
        fe_load_table(&y, search_table, index, 8);
        fe_load_global(&inverse, scratch, index - 1, lanes);
        hasty_mul(&inverse, &inverse, &product, &lost);
        hasty_sub(&a, &c, &t, &lost);
        hasty_mul(&product, &product, &a, &lost);
        hasty_sub(&b, &minus_c, &t, &lost);
        SIGN_LOOP
        for (u32 sign = 0; sign < 2; sign++) {
            fe m, x;
            if (sign == 0) {
                hasty_sub(&m, &yc, &y, &lost);
            } else {
                hasty_add(&m, &yc, &y, &lost);
            }
            hasty_mul(&m, &m, &inverse, &lost);
            hasty_sqr_add(&x, &m, &b, &lost);
            hasty_norm(&x, &lost);
            hasty_sub(&a, &c, &x, &lost);
            hasty_mul_add(&a, &m, &a, &minus_yc, &lost);
            hasty_norm(&a, &lost);
            scan_store(points, lanes, lane, 2 * (GROUP - index) + 1 + sign, &x, &a);
        }
    }
    if (hasty_is_wrong(&lost)) scan_again(scratch, search_table, points, lanes, lane);
}
