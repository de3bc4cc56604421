/* The point walk: whole points. 3 M for both points of an entry and 3 M for each, 1 M less where y is not needed.
 *
 * Centre C = (c, yc), table point iG = (t, y). C + iG and C - iG share one inverse of c - t, all inverses of a
 * group come from one (Montgomery's trick): m = (yc -+ y) / (c - t), x = m^2 - c - t, y = m (c - x) - yc. */

/* Elements of a lane in scratch, behind the prefix products. */
#define KEEP_X (GROUP + 0)
#define KEEP_Y (GROUP + 1)
#define KEEP_PRODUCT (GROUP + 2) /* the inverse of the product of the entries still to come */
#define KEEP_INVERSE (GROUP + 3) /* 1 / (c - t) of the entry at hand, for who takes one point at a time */

/* Prepares a group: prefix products, their inverse, the next centre. Returns 0 where two points of it have
 * one x, and leaves the centre. */
DEV u32 points_prepare(GLOBAL u32 *centres, GLOBAL quad *scratch, TABLE const quad *search_table, LOCAL quad *nodes,
                       u32 lanes, u32 lane, u32 alive) {
    fe c, yc, acc, q, dx, a, b;
    UNROLL
    for (int i = 0; i < 8; i++) {
        c.v[i] = centres[(u64)i * lanes + lane];
        yc.v[i] = centres[(u64)(i + 8) * lanes + lane];
    }
    fe_norm(&c, &c);
    fe_norm(&yc, &yc);
    fe_store_global(scratch, KEEP_X, lanes, &c);
    fe_store_global(scratch, KEEP_Y, lanes, &yc);
    /* scratch[i] holds the product of c - t over entries 1..i. */
    fe_set(&acc, 1);
    ROLLED
    for (u32 i = 1; i <= GROUP; i++) {
        fe_store_global(scratch, i - 1, lanes, &acc);
        fe_load_table(&a, search_table, i, 0);
        fe_sub(&a, &c, &a);
        fe_mul(&acc, &acc, &a);
    }
    fe_load_table(&a, search_table, 0, 0);
    fe_load_table(&b, search_table, 0, 8);
    fe_sub(&dx, &c, &a);
    fe_mul(&q, &acc, &dx);
    if (fe_is_zero(&q)) {
        alive = 0;
        fe_set(&q, 1);
    }
    walk_invert(&q, nodes);
    fe_mul(&dx, &q, &dx);
    fe_store_global(scratch, KEEP_PRODUCT, lanes, &dx);
    fe_mul(&acc, &q, &acc);
    walk_next(centres, lanes, lane, &c, &yc, &a, &b, &acc, alive);
    return alive;
}

/* Point n of a group: the centre, then both signs of each entry from the last down. The code of its first key. */
DEV u32 points_code(u32 n) {
    return n == 0 ? 0 : (GROUP - (n - 1) / 2) | (n - 1) % 2 << CODE_SIGN;
}
