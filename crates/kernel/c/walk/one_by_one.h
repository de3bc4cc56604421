/* Points one at a time, for a program that makes its digests as it walks: 11 M for the twelve keys of an entry. With beta^j x and
 * both signs of y a point gives six keys: 1 M for beta x, while beta^2 x = -(x + beta x). What becomes of the keys costs far more
 * than the walk, so all that it keeps across them lies in memory. */

/* Elements of a lane in shared memory: beta^j x at j, y and -y behind. */
#define MESSAGE_Y 3
#define MESSAGE_QUADS 10

/* Stores a, which is below p, most significant word first. */
DEV void points_store(LOCAL quad *spare, u32 element, const fe *a) {
    fe words;
    UNROLL
    for (int i = 0; i < 8; i++) words.v[i] = a->v[7 - i];
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
    points_store(spare, MESSAGE_Y, y);
    fe_sub(&b, &zero, y); /* p - y: no point has y = 0 */
    points_store(spare, MESSAGE_Y + 1, &b);
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
    fe_sub(&c, &c, x);
    fe_mul(&a, &a, &c);
    fe_sub(y, &a, y);
    fe_norm(y, y);
}

/* Point n of a group. */
DEV void points_at(fe *x, fe *y, GLOBAL quad *scratch, TABLE const quad *search_table, u32 lanes, u32 n) {
    if (n == 0) {
        fe_load_global(x, scratch, KEEP_X, lanes);
        fe_load_global(y, scratch, KEEP_Y, lanes);
    } else {
        u32 code = points_code(n);
        points_add(x, y, scratch, search_table, lanes, code & 0xffff, code >> CODE_SIGN);
    }
}
