/* The point walk that writes points down for programs that make digests of them. By themselves both keep a card's arithmetic
 * busy; in one loop, whose code is larger than the instruction cache, they take longer (docs/performance.md).
 *
 * `points`, in quads: point n of lane l has WRITTEN_QUADS of them, two an element, at [(n * WRITTEN_QUADS + q) * lanes + l]. Point
 * 0 is the centre, then come both signs of each entry from the last down (points_code). Elements are below p, words most
 * significant first, with MESSAGE_SWAPPED each with its first byte lowest: x, with WRITE_IMAGES also beta x and beta^2 x; with
 * WRITE_Y 2 then y, with images also -y. With WRITE_Y 1, behind all of them, the last word of y at [n * lanes + l]; with 0 y is
 * not computed. */
#define WRITTEN_IMAGES (WRITE_IMAGES ? 3 : 1)
#define WRITTEN_Y WRITTEN_IMAGES
#define WRITTEN_ELEMENTS (WRITTEN_IMAGES + (WRITE_Y < 2 ? 0 : WRITE_IMAGES ? 2 : 1))
#define WRITTEN_QUADS (2 * WRITTEN_ELEMENTS)
#define WRITTEN_POINTS (2 * GROUP + 1)
#define WRITTEN_LAST(lanes) ((u64)WRITTEN_POINTS * WRITTEN_QUADS * (lanes))

/* A point in memory. */
typedef struct {
    GLOBAL const quad *quads;
    u32 lanes;
} written;

DEV written written_at(GLOBAL const quad *points, u32 lanes, u32 lane, u32 n) {
    written point;
    point.quads = points + (u64)n * WRITTEN_QUADS * lanes + lane;
    point.lanes = lanes;
    return point;
}

/* Words of an element as they were written. */
DEV void written_load(fe *words, const written *point, u32 element) {
    fe_load_global(words, point->quads, element, point->lanes);
}

/* Whether it is a point: those of a lane that met its table are cleared, and no point has x = 0 (7 is no square). */
DEV u32 written_is_there(const written *point) {
    quad a = point->quads[0], b = point->quads[point->lanes];
    return (a.x | a.y | a.z | a.w | b.x | b.y | b.z | b.w) != 0;
}

#if WRITE_POINTS

/* Writes an element down. */
DEV void written_element(GLOBAL quad *own, u32 lanes, u32 element, const fe *a) {
    fe words;
    UNROLL
    for (int i = 0; i < 8; i++) words.v[i] = MESSAGE_SWAPPED ? SWAP_BYTES(a->v[7 - i]) : a->v[7 - i];
    fe_store_global(own, element, lanes, &words);
}

/* Writes down point n of a lane; all below p. */
DEV void written_store(GLOBAL quad *points, u32 lanes, u32 lane, u32 n, const fe *x, const fe *beta_x, const fe *y) {
    GLOBAL quad *own = points + (u64)n * WRITTEN_QUADS * lanes + lane;
    written_element(own, lanes, 0, x);
#if WRITE_IMAGES
    {
        fe a, zero;
        fe_set(&zero, 0);
        written_element(own, lanes, 1, beta_x);
        /* p - x, as x > 0, and without beta x a value from 1 to p - 1, or p added: below p as it is. */
        fe_sub(&a, &zero, x);
        fe_sub(&a, &a, beta_x);
        written_element(own, lanes, 2, &a);
#if WRITE_Y == 2
        fe_sub(&a, &zero, y); /* p - y: no point has y = 0 */
        written_element(own, lanes, WRITTEN_Y + 1, &a);
#endif
    }
#endif
#if WRITE_Y == 2
    written_element(own, lanes, WRITTEN_Y, y);
#elif WRITE_Y == 1
    ((GLOBAL u32 *)(points + WRITTEN_LAST(lanes)))[(u64)n * lanes + lane] = y->v[0];
#endif
    (void)beta_x;
    (void)y;
}

/* The same with beta x made here. */
DEV void written_store_exact(GLOBAL quad *points, u32 lanes, u32 lane, u32 n, const fe *x, const fe *y) {
    fe a;
    search_beta(&a);
#if WRITE_IMAGES
    fe_mul(&a, &a, x);
    fe_norm(&a, &a);
#endif
    written_store(points, lanes, lane, n, x, &a, y);
}

/* Writes down that a lane has no points. */
DEV void written_clear(GLOBAL quad *points, u32 lanes, u32 lane) {
    fe zero;
    fe_set(&zero, 0);
    ROLLED
    for (u32 n = 0; n < WRITTEN_POINTS; n++) {
        fe_store_global(points + (u64)n * WRITTEN_QUADS * lanes + lane, 0, lanes, &zero);
    }
}

/* The points of a group but for its centre, once more and exactly: for one lane in 2^20, of which a carry was lost. Loads and
 * stores all by itself, so that nobody's registers lie in memory. */
COLD void written_again(GLOBAL quad *scratch, TABLE const quad *search_table, GLOBAL quad *points, u32 lanes,
                        u32 lane) {
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
            written_store_exact(points, lanes, lane, 2 * (GROUP - index) + 1 + sign, &x, &y);
        }
    }
}

/* Writes down the next group of a lane and moves its centre on: 3.5 M + 1 S a point, 1 M less without y, 1 M more with images.
 * Returns 0 where the lane met its table, or had before: then what was written is nothing, and the centre is left. `scratch`
 * is that of the lane, `nodes` holds 4 * BLOCK quads. */
DEV u32 written_group(GLOBAL u32 *centres, GLOBAL quad *scratch, TABLE const quad *search_table, GLOBAL quad *points,
                      LOCAL quad *nodes, u32 lanes, u32 lane, u32 alive) {
    fe c, yc, minus_c, minus_yc, product, zero;
    loss lost;

    alive = points_prepare(centres, scratch, search_table, nodes, lanes, lane, alive);
    fe_set(&zero, 0);
    fe_load_global(&c, scratch, KEEP_X, lanes);
    fe_load_global(&yc, scratch, KEEP_Y, lanes);
    fe_load_global(&product, scratch, KEEP_PRODUCT, lanes);
    fe_sub(&minus_c, &zero, &c);
    fe_sub(&minus_yc, &zero, &yc);
    written_store_exact(points, lanes, lane, 0, &c, &yc);
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
            fe m, x, beta_x;
            if (sign == 0) {
                hasty_sub(&m, &yc, &y, &lost);
            } else {
                hasty_add(&m, &yc, &y, &lost);
            }
            hasty_mul(&m, &m, &inverse, &lost);
            hasty_sqr_add(&x, &m, &b, &lost);
            hasty_norm(&x, &lost);
#if WRITE_Y
            hasty_sub(&a, &c, &x, &lost);
            hasty_mul_add(&a, &m, &a, &minus_yc, &lost);
            hasty_norm(&a, &lost);
#endif
            search_beta(&beta_x);
#if WRITE_IMAGES
            hasty_mul(&beta_x, &beta_x, &x, &lost);
            hasty_norm(&beta_x, &lost);
#endif
            written_store(points, lanes, lane, 2 * (GROUP - index) + 1 + sign, &x, &beta_x, &a);
        }
    }
    if (hasty_is_wrong(&lost)) written_again(scratch, search_table, points, lanes, lane);
    return alive;
}

#endif
