/* The same field, for results that are looked at again: a carry that goes on beyond the limb where all but one in 2^31 end is
 * not followed but told of. Knows limbs and fe.
 *
 * Of the instructions around a product a third follow carries that are nearly never there. Whoever is told that something
 * was lost has wrong numbers, and starts again with the exact functions of field.h. What is told of may also be right. */

/* What was lost since it was clear: carries and borrows apart, since both count. */
typedef struct {
    u32 carries, borrows;
} loss;

DEV void hasty_clear(loss *lost) {
    lost->carries = lost->borrows = 0;
}

DEV u32 hasty_is_wrong(const loss *lost) {
    return (lost->carries | lost->borrows) != 0;
}

/* Tells of an a that may be p or more: one in 2^32 has such a top limb. */
DEV void hasty_norm(const fe *a, loss *lost) {
    lost->carries += a->v[7] == 0xffffffffu ? 1 : 0;
}

/* r = a + b; b below p. */
DEV void hasty_add(fe *r, const fe *a, const fe *b, loss *lost) {
    fe t = *a;
    u32 carry = u256_add(t.v, b->v);
    u64_add_short(t.v, carry * 977u, carry, &lost->carries);
    *r = t;
}

/* r = a - b; b below p. */
DEV void hasty_sub(fe *r, const fe *a, const fe *b, loss *lost) {
    fe t = *a;
    u32 borrow = u256_sub(t.v, b->v);
    u64_sub_short(t.v, borrow & 977u, borrow & 1u, &lost->borrows);
    *r = t;
}

/* r = low[0..7] + (top + more 2^32) 2^256, bounded as in fe_above. A carry goes on beyond limb 2 where that is all ones; only
 * then can there be more to fold. */
DEV void hasty_fold(fe *r, u32 *low, u32 top, u32 more, loss *lost) {
    u32 fold[3];
    fe_above(fold, top, more);
    u96_add_short(low, fold[0], fold[1], fold[2], &lost->carries);
    UNROLL
    for (int i = 0; i < 8; i++) r->v[i] = low[i];
}

/* r = wide. */
DEV void hasty_reduce(fe *r, const u32 *wide, loss *lost) {
    u32 low[9], more = fe_fold(low, wide);
    hasty_fold(r, low, low[8], more, lost);
}

DEV void hasty_mul(fe *r, const fe *a, const fe *b, loss *lost) {
    u32 wide[16];
    u256_mul(wide, a->v, b->v, 0);
    hasty_reduce(r, wide, lost);
}

/* r = a * b + c, c neither a nor b. */
DEV void hasty_mul_add(fe *r, const fe *a, const fe *b, const fe *c, loss *lost) {
    u32 wide[16];
    u256_mul_add(wide, a->v, b->v, c->v);
    hasty_reduce(r, wide, lost);
}

/* r = a^2 + c. */
DEV void hasty_sqr_add(fe *r, const fe *a, const fe *c, loss *lost) {
    u32 wide[16], low[9], more, carry, top;
    u256_sqr(wide, a->v);
    more = fe_fold(low, wide);
    carry = u256_add(low, c->v);
    top = low[8] + carry;
    more += top < carry ? 1 : 0;
    hasty_fold(r, low, top, more, lost);
}
