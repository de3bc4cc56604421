/* The point walk: whole points, and what digests are made of. 11 M for the twelve keys of an entry, or 9 M without y.
 *
 * Centre C = (c, yc), table point iG = (t, y). C + iG and C - iG share one inverse of c - t, all inverses of a
 * group come from one (Montgomery's trick): m = (yc -+ y) / (c - t), x = m^2 - c - t, y = m (c - x) - yc.
 * With beta^j x and both signs of y a point gives six keys: 3 M inversion for both points, 3 M for each point (2 M where
 * y is not needed, POINT_Y 0), 1 M for beta x, while beta^2 x = -(x + beta x). What becomes of the keys costs ten times as
 * much and more, so all that the walk keeps across them lies in memory. */

/* Elements of a lane in shared memory: beta^j x at j, y and -y behind, where there is a y. */
#define MESSAGE_Y 3
#define MESSAGE_ELEMENTS (POINT_Y ? 5 : 3)
#define MESSAGE_QUADS (2 * MESSAGE_ELEMENTS)

/* Elements of a lane in scratch, behind the prefix products. */
#define KEEP_X (GROUP + 0)
#define KEEP_Y (GROUP + 1)
#define KEEP_PRODUCT (GROUP + 2) /* the inverse of the product of the entries still to come */
#define KEEP_INVERSE (GROUP + 3) /* 1 / (c - t) of the entry at hand */

/* Stores a, which is below p, as digests read it: most significant word first, and in it for Keccak the first byte lowest. */
DEV void points_store(LOCAL quad *spare, u32 element, const fe *a) {
    fe words;
    UNROLL
    for (int i = 0; i < 8; i++) words.v[i] = MESSAGE_SWAPPED ? SWAP_BYTES(a->v[7 - i]) : a->v[7 - i];
    fe_store_local(spare, element, BLOCK, &words);
}

/* Stores beta^j x and both y of a point whose coordinates are below p. */
DEV void points_images(LOCAL quad *spare, const fe *x, const fe *y) {
    fe a, b, zero;
    fe_set(&zero, 0);
    points_store(spare, 0, x);
    search_beta(&a);
    fe_mul(&a, &a, x);
    fe_norm(&a, &a);
    points_store(spare, 1, &a);
    /* p - x, as x > 0 (7 is no square), and without beta x a value from 1 to p - 1, or p added: below p as it is. */
    fe_sub(&b, &zero, x);
    fe_sub(&b, &b, &a);
    points_store(spare, 2, &b);
#if POINT_Y
    points_store(spare, MESSAGE_Y, y);
    fe_sub(&b, &zero, y); /* p - y: no point has y = 0 */
    points_store(spare, MESSAGE_Y + 1, &b);
#endif
    (void)y;
}

/* The point C + iG (sign 0) or C - iG (sign 1). acc is read and written in scratch with sign 0, which comes first. */
DEV void points_add(fe *x, fe *y, GLOBAL quad *scratch, TABLE const quad *search_table, u32 lanes, u32 index, u32 sign) {
    fe c, t, a, inverse;
    fe_load_global(&c, scratch, KEEP_X, lanes);
    fe_load_table(&t, search_table, index, 0);
    if (sign == 0) {
        fe product;
        fe_load_global(&product, scratch, KEEP_PRODUCT, lanes);
        fe_load_global(&inverse, scratch, index - 1, lanes);
        fe_mul(&inverse, &inverse, &product);
        fe_store_global(scratch, KEEP_INVERSE, lanes, &inverse);
        fe_sub(&a, &c, &t);
        fe_mul(&product, &product, &a);
        fe_store_global(scratch, KEEP_PRODUCT, lanes, &product);
    } else {
        fe_load_global(&inverse, scratch, KEEP_INVERSE, lanes);
    }
    fe_load_global(y, scratch, KEEP_Y, lanes);
    fe_load_table(&a, search_table, index, 8);
    if (sign == 0) {
        fe_sub(&a, y, &a);
    } else {
        fe_add(&a, y, &a);
    }
    fe_mul(&a, &a, &inverse);
    fe_sqr(x, &a);
    fe_sub(x, x, &c);
    fe_sub(x, x, &t);
    fe_norm(x, x);
#if POINT_Y
    fe_sub(&c, &c, x);
    fe_mul(&a, &a, &c);
    fe_sub(y, &a, y);
    fe_norm(y, y);
#endif
}

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

DEV void points_at(fe *x, fe *y, GLOBAL quad *scratch, TABLE const quad *search_table, u32 lanes, u32 n) {
    if (n == 0) {
        fe_load_global(x, scratch, KEEP_X, lanes);
        fe_load_global(y, scratch, KEEP_Y, lanes);
    } else {
        u32 code = points_code(n);
        points_add(x, y, scratch, search_table, lanes, code & 0xffff, code >> CODE_SIGN);
    }
}
