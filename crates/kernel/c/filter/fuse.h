/* Filter of the first 64 bits of digests by binary fuse: FUSE_BITS bits, 8 or 16, are kept of each digest of a set. Lets every
 * digest of the set pass, and of others one in 2^FUSE_BITS. Knows words only.
 *
 * Filter buffer: FUSE_HEADER words of the first part; with FUSE_MANY the same of every part, the first one's too; then the
 * fingerprints, the first one lowest in its word. A part has the digests of one range of d[0]. Formula and layout are those of
 * crates/store/src/filter/mod.rs. (Graf and Lemire, "Binary Fuse Filters", 2022.)
 *
 * The three fingerprints lie anywhere in a table larger than a card's caches, so all three are asked for before one is
 * looked at. The parts' headers are few and stay in the nearest cache. */

#define FUSE_HEADER 16
#define FUSE_SEED 0   /* low word, high word */
#define FUSE_LENGTH 2 /* of a segment, a power of two */
#define FUSE_COUNT 3  /* fingerprints of all segments but the last two */
#define FUSE_FIRST 4  /* where its fingerprints begin, in words */
#define FUSE_PARTS 5  /* how many parts there are */
#define FUSE_EACH (32 / FUSE_BITS)

typedef struct {
    GLOBAL const u32 *fingerprints;
    u64 seed;
    u32 length, count;
#if FUSE_MANY
    GLOBAL const u32 *headers;
    GLOBAL const u32 *all;
    u32 parts;
#endif
} filter_state;

/* Turns to the part with this header. */
DEV void fuse_part(filter_state *f, GLOBAL const u32 *header, GLOBAL const u32 *all) {
    f->fingerprints = all + header[FUSE_FIRST];
    f->seed = (u64)header[FUSE_SEED + 1] << 32 | header[FUSE_SEED];
    f->length = header[FUSE_LENGTH];
    f->count = header[FUSE_COUNT];
}

DEV void filter_load(filter_state *f, GLOBAL const u32 *filter, GLOBAL const u32 *hits) {
#if FUSE_MANY
    f->parts = filter[FUSE_PARTS];
    f->headers = filter + FUSE_HEADER;
    f->all = f->headers + FUSE_HEADER * f->parts;
#else
    fuse_part(f, filter, filter + FUSE_HEADER);
#endif
    (void)hits;
}

/* The word with fingerprint i, which stands in its lowest bits. */
DEV u32 fuse_word(const filter_state *f, u32 i) {
    return LOAD_FAR(f->fingerprints + i / FUSE_EACH) >> i % FUSE_EACH * FUSE_BITS;
}

/* Whether a digest of the set may begin with d[0], d[1]. */
DEV u32 filter_test(filter_state *f, const u32 *d, GLOBAL u32 *hits, u32 *told) {
    u64 h;
    u32 first, second, third, mask;
#if FUSE_MANY
    fuse_part(f, f->headers + FUSE_HEADER * (u32)((u64)d[0] * f->parts >> 32), f->all);
#endif
    h = ((u64)d[0] << 32 | d[1]) + f->seed;
    mask = f->length - 1;
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
