/* Filter RANGE: the top word lies in one of RANGES intervals. Knows words only.
 *
 * Filter buffer: RANGES pairs (first, width), already widened by the host by TOP (src/abi.rs);
 * an interval may wrap around. A pair accepts w when w - first <= width. */

typedef struct {
    u32 first[RANGES], width[RANGES];
} filter_state;

DEV void filter_load(filter_state *f, GLOBAL const u32 *filter) {
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
