/* Filter SET: very many intervals of the top 64 bits. Knows words only.
 *
 * Level 1, for every key in the walk: a bitmap indexed by the leading bits of the computed top word, widened by the
 * host by the bounds of that word. A small set has a bitmap of 2^17 bits in shared memory (SET_NEAR); a large one
 * reads a larger one through the second-level cache, with finer top words (walk_fine), since what survives it grows
 * with their error. Levels 2 and 3, for survivors (sift.h, settle.c): whether the top word is within its error of an
 * interval, then the exact top 64 bits.
 *
 * Filter buffer: SET_HEADER words, the bitmap (at a place the compiler knows: two instructions a key fewer), then
 * bucket starts, the intervals' top words and the intervals at the offsets given in the header.
 * An interval is four words: first (high, low), last (high, low), both inclusive; sorted, disjoint and exact.
 * Their top words, first and last, stand apart: level 2 reads little else, and less of the cache is lost to it. Pairs of
 * all ones follow: level 2 never looks for the end. Bucket b starts at the first interval whose last word reaches it, or
 * the one before that, so that it is even. */

#define SET_HEADER 8
#define SET_SHIFT 0        /* the bitmap's bit is top >> this */
#define SET_BUCKET_SHIFT 1 /* the bucket is top >> this */
#define SET_BUCKETS 2      /* offsets in words */
#define SET_INTERVALS 3
#define SET_COUNT 4 /* of intervals */
#define SET_PAIRS 5

#define NEAR_SHIFT 15
#define NEAR_WORDS 4096

typedef struct {
#if SET_NEAR
    LOCAL const u32 *bitmap;
#else
    GLOBAL const u32 *bitmap;
    u32 shift;
#endif
} filter_state;

#if SET_NEAR
#define SET_BIT_SHIFT(f) NEAR_SHIFT
#define SET_LOAD(p) (*(p))
#else
#define SET_BIT_SHIFT(f) ((f)->shift)
#define SET_LOAD(p) LOAD_FAR(p)
#endif

/* Level 1: bit 8 - i of the result is whether tops[i] survives. All loads are under way before the first is looked at.
 * A word's bits count from its top, so that one shift brings a bit there and one more takes it over. */
DEV u32 filter_nine(const filter_state *f, const u32 *tops) {
    u32 words[9], mask = 0;
    UNROLL
    for (int i = 0; i < 9; i++) words[i] = SET_LOAD(f->bitmap + (tops[i] >> SET_BIT_SHIFT(f) >> 5));
    UNROLL
    for (int i = 0; i < 9; i++) mask = mask << 1 | (words[i] << (tops[i] >> SET_BIT_SHIFT(f) & 31)) >> 31;
    return mask;
}

/* Where level 2 looks: offsets in words. */
typedef struct {
    GLOBAL const u32 *filter;
    u32 buckets, pairs, shift;
} set_index;

DEV void set_index_load(set_index *set, GLOBAL const u32 *filter) {
    set->filter = filter;
    set->buckets = filter[SET_BUCKETS];
    set->pairs = filter[SET_PAIRS];
    set->shift = filter[SET_BUCKET_SHIFT];
}

/* The first interval that can hold the top word `top` or one above it. */
DEV u32 set_start(const set_index *set, u32 top) {
    return set->filter[set->buckets + (top >> set->shift)];
}

/* The top words with which intervals begin and end, from an even one on, two intervals a quad. */
DEV GLOBAL const quad *set_pairs(const set_index *set, u32 at) {
    return (GLOBAL const quad *)set->filter + (set->pairs / 4 + at / 2);
}

/* Level 2: whether one of two intervals has a top word within first..last. Without branches. */
DEV u32 set_meets(const quad *pairs, u32 first, u32 last) {
    u32 one = (u32)(pairs->y >= first) & (u32)(pairs->x <= last);
    return one | ((u32)(pairs->w >= first) & (u32)(pairs->z <= last));
}

/* The same for any from `at` on, which is even. */
DEV u32 set_scan(const set_index *set, u32 at, u32 first, u32 last) {
    quad pairs;
    do {
        pairs = *set_pairs(set, at);
        at += 2;
    } while (pairs.w < first);
    return set_meets(&pairs, first, last);
}

/* Level 3: whether these 64 bits lie in an interval. */
DEV u32 filter_holds(GLOBAL const u32 *filter, u64 top) {
    GLOBAL const u32 *interval = filter + filter[SET_INTERVALS];
    u32 count = filter[SET_COUNT], found = 0, at;
    set_index set;
    set_index_load(&set, filter);
    at = set_start(&set, (u32)(top >> 32));
    for (; at < count && !found; at++) {
        GLOBAL const u32 *w = interval + 4 * (u64)at;
        if (((u64)w[0] << 32 | w[1]) > top) break;
        found = top <= ((u64)w[2] << 32 | w[3]);
    }
    return found;
}
