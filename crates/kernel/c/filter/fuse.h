/* Filter of the first 64 bits of digests by binary fuse: FUSE_BITS bits, 8 or 16, are kept of each digest of a set. Lets every
 * digest of the set pass, and of others one in 2^FUSE_BITS. Knows words only.
 *
 * Filter buffer: FUSE_HEADER words, then the fingerprints, the first one lowest in its word. Formula and layout are those of
 * crates/store/src/filter/mod.rs. (Graf and Lemire, "Binary Fuse Filters", 2022.)
 *
 * The three fingerprints lie anywhere in a table larger than a card's caches, so all three are asked for before one is
 * looked at. */

#define FUSE_HEADER 16
#define FUSE_SEED 0   /* low word, high word */
#define FUSE_LENGTH 2 /* of a segment, a power of two */
#define FUSE_COUNT 3  /* fingerprints of all segments but the last two */
#define FUSE_EACH (32 / FUSE_BITS)

typedef struct {
    GLOBAL const u32 *fingerprints;
    u64 seed;
    u32 length, count;
} filter_state;

DEV void filter_load(filter_state *f, GLOBAL const u32 *filter, GLOBAL const u32 *hits) {
    f->fingerprints = filter + FUSE_HEADER;
    f->seed = (u64)filter[FUSE_SEED + 1] << 32 | filter[FUSE_SEED];
    f->length = filter[FUSE_LENGTH];
    f->count = filter[FUSE_COUNT];
    (void)hits;
}

/* The word with fingerprint i, which stands in its lowest bits. */
DEV u32 fuse_word(const filter_state *f, u32 i) {
    return LOAD_FAR(f->fingerprints + i / FUSE_EACH) >> i % FUSE_EACH * FUSE_BITS;
}

/* Whether a digest of the set may begin with d[0], d[1]. */
DEV u32 filter_test(filter_state *f, const u32 *d, GLOBAL u32 *hits, u32 *told) {
    u64 h = ((u64)d[0] << 32 | d[1]) + f->seed;
    u32 first, second, third, mask = f->length - 1;
    h = (h ^ h >> 33) * U64C(0xff51afd7ed558ccd);
    h = (h ^ h >> 33) * U64C(0xc4ceb9fe1a85ec53);
    h ^= h >> 33;
    /* The high half of h * count. */
    first = (u32)(((h >> 32) * f->count + ((u64)(u32)h * f->count >> 32)) >> 32);
    second = (first + f->length) ^ ((u32)(h >> 18) & mask);
    third = (first + 2 * f->length) ^ ((u32)h & mask);
    *told = d[0];
    (void)hits;
    return ((fuse_word(f, first) ^ fuse_word(f, second) ^ fuse_word(f, third) ^ (u32)(h ^ h >> 32)) &
            (0xffffffffu >> (32 - FUSE_BITS))) == 0;
}
