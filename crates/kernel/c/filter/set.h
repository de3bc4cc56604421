/* Filter SET: very many intervals of the top 64 bits. Knows words only.
 *
 * Level 1, for every key in the walk: a bitmap indexed by the leading bits of the computed top word, widened by the
 * host by the bounds of that word. A small set has a bitmap of 2^17 bits in shared memory (SET_NEAR); a large one
 * reads a larger one through the second-level cache, with finer top words (walk_rest), since what survives it grows
 * with their error. Levels 2 and 3, for survivors (settle.c): whether the top word is within its error of an
 * interval, then the exact top 64 bits.
 *
 * Filter buffer: SET_HEADER words, the bitmap (at a place the compiler knows: two instructions a key fewer), then
 * bucket starts, the intervals' top words and the intervals at the offsets given in the header.
 * An interval is four words: first (high, low), last (high, low), both inclusive; sorted, disjoint and exact.
 * Their top words, first and last, stand apart: level 2 reads little else, and less of the cache is lost to it. Two more
 * pairs of all ones follow: level 2 never looks for the end. Bucket b starts at the first interval whose last word
 * reaches it. */

#define SET_HEADER 8
#define SET_SHIFT 0        /* the bitmap's bit is top >> this */
#define SET_BUCKET_SHIFT 1 /* the bucket is top >> this */
#define SET_BUCKETS 2      /* offsets in words */
#define SET_INTERVALS 3
#define SET_COUNT 4 /* of intervals */
#define SET_WORDS 5

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

/* The first interval that can hold the top word `top` or one above it. */
DEV u32 filter_start(GLOBAL const u32 *filter, u32 top) {
    return filter[filter[SET_BUCKETS] + (top >> filter[SET_BUCKET_SHIFT])];
}

/* The top words an interval begins and ends with. */
DEV void filter_words(GLOBAL const u32 *filter, u32 at, u32 *first, u32 *last) {
    GLOBAL const u32 *pair = filter + filter[SET_WORDS] + 2 * (u64)at;
    *first = pair[0];
    *last = pair[1];
}

/* Level 2: whether an interval, from `at` on, has a top word within first..last. */
DEV u32 filter_near(GLOBAL const u32 *filter, u32 at, u32 first, u32 last) {
    u32 from, to;
    do {
        filter_words(filter, at++, &from, &to);
    } while (to < first);
    return from <= last;
}

/* Level 3: whether these 64 bits lie in an interval. */
DEV u32 filter_holds(GLOBAL const u32 *filter, u64 top) {
    GLOBAL const u32 *interval = filter + filter[SET_INTERVALS];
    u32 at = filter_start(filter, (u32)(top >> 32)), count = filter[SET_COUNT], found = 0;
    for (; at < count && !found; at++) {
        GLOBAL const u32 *w = interval + 4 * (u64)at;
        if (((u64)w[0] << 32 | w[1]) > top) break;
        found = top <= ((u64)w[2] << 32 | w[3]);
    }
    return found;
}
