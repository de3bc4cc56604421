/* Filter SET: very many intervals of the top 64 bits. Knows words only.
 *
 * Level 1, for every key: a bitmap indexed by the leading bits of the top word. Level 2, for what passes:
 * the top 64 bits, computed more finely (walk_top_wide), against a sorted list of disjoint intervals,
 * entered through buckets of the top word.
 *
 * Filter buffer: SET_HEADER words, then bitmap, bucket starts and intervals at the offsets given there.
 * An interval is four words: first (high, low), last (high, low), both inclusive. Bucket b starts at the
 * first interval whose last word reaches it. The host has widened all of it. */

#define SET_HEADER 8
#define SET_SHIFT 0        /* the bitmap's bit is top >> this */
#define SET_BUCKET_SHIFT 1 /* the bucket is top >> this */
#define SET_BITMAP 2       /* offsets in words */
#define SET_BUCKETS 3
#define SET_INTERVALS 4
#define SET_COUNT 5 /* of intervals */

typedef struct {
    GLOBAL const u32 *filter;
    GLOBAL const u32 *bitmap;
    u32 shift;
} filter_state;

DEV void filter_load(filter_state *f, GLOBAL const u32 *filter) {
    f->filter = filter;
    f->bitmap = filter + filter[SET_BITMAP];
    f->shift = filter[SET_SHIFT];
}

/* Bit i of the result: whether tops[i] passes level 1. */
DEV u32 filter_test(const filter_state *f, const u32 *tops, int count) {
    u32 mask = 0;
    UNROLL
    for (int i = 0; i < count; i++) {
        u32 bit = tops[i] >> f->shift;
        mask |= (f->bitmap[bit >> 5] >> (bit & 31) & 1u) << i;
    }
    return mask;
}

DEV u32 filter_any(const filter_state *f, const u32 *tops, int count) {
    return filter_test(f, tops, count);
}

/* Level 2. */
DEV u32 filter_wide(const filter_state *f, u64 top) {
    GLOBAL const u32 *filter = f->filter;
    GLOBAL const u32 *interval = filter + filter[SET_INTERVALS];
    u32 count = filter[SET_COUNT];
    u32 at = filter[filter[SET_BUCKETS] + ((u32)(top >> 32) >> filter[SET_BUCKET_SHIFT])];
    u32 found = 0;
    for (; at < count && !found; at++) {
        GLOBAL const u32 *w = interval + 4 * (u64)at;
        if (((u64)w[0] << 32 | w[1]) > top) break;
        found = top <= ((u64)w[2] << 32 | w[3]);
    }
    return found;
}
