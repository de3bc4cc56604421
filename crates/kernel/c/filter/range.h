/* Filter RANGE: the top word lies in one of RANGES intervals. Knows words only.
 *
 * Filter buffer: RANGES pairs (first, width), already widened by the host by TOP_BELOW and TOP_ABOVE;
 * an interval may wrap around. A pair accepts w when w - first <= width. Behind them, for level 2 (only what
 * passed level 1 gets there), the same intervals in 64 bits, widened by WIDE_BELOW and WIDE_ABOVE: first
 * (high, low), width (high, low). */

typedef struct {
    u32 first[RANGES], width[RANGES];
    GLOBAL const u32 *filter;
} filter_state;

DEV void filter_load(filter_state *f, GLOBAL const u32 *filter) {
    f->filter = filter;
    UNROLL
    for (int i = 0; i < RANGES; i++) {
        f->first[i] = filter[2 * i];
        f->width[i] = filter[2 * i + 1];
    }
}

/* Bit i of the result: whether tops[i] is accepted. */
DEV u32 filter_test(const filter_state *f, const u32 *tops, int count) {
    u32 mask = 0;
    UNROLL
    for (int i = 0; i < count; i++) {
        UNROLL
        for (int r = 0; r < RANGES; r++) mask |= (tops[i] - f->first[r] <= f->width[r] ? 1u : 0u) << i;
    }
    return mask;
}

/* Whether any of the tops is accepted: what the walk asks first. */
DEV u32 filter_any(const filter_state *f, const u32 *tops, int count) {
    u32 any = 0;
    UNROLL
    for (int i = 0; i < count; i++) {
        UNROLL
        for (int r = 0; r < RANGES; r++) any |= tops[i] - f->first[r] <= f->width[r];
    }
    return any;
}

/* Level 2: whether the top 64 bits are accepted. */
DEV u32 filter_wide(const filter_state *f, u64 top) {
    u32 found = 0;
    ROLLED
    for (int r = 0; r < RANGES; r++) {
        GLOBAL const u32 *w = f->filter + 2 * RANGES + 4 * r;
        u64 first = (u64)w[0] << 32 | w[1], width = (u64)w[2] << 32 | w[3];
        found |= top - first <= width;
    }
    return found;
}
