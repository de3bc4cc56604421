/* What the two parts of a scan share: the points between them, and records of what passes.
 *
 * scan_walk.c writes the points of a step down and scan_test.c makes digests of them. By themselves both keep a card's
 * arithmetic busy; in one loop, whose code is larger than the instruction cache, they take longer (docs/performance.md).
 *
 * `points`, in quads: point n of lane l has SCAN_QUADS of them, x and with SCAN_KEEP_Y also y, at [(n * SCAN_QUADS + q) * lanes
 * + l], words most significant first; without y, behind all of them the last word of y at [n * lanes + l]. Point 0 is the
 * centre, then come both signs of each entry from the last down (points_code). */
#define SCAN_QUADS (SCAN_KEEP_Y ? 4 : 2)
#define SCAN_POINTS (2 * GROUP + 1)
#define SCAN_LAST(lanes) ((u64)SCAN_POINTS * SCAN_QUADS * (lanes))

/* Records, in words: lane, step, code as in abi.h, form, and the digest, zeros behind one of five words. */
#define SCAN_WORDS 12
#define SCAN_FORM 3
#define SCAN_DIGEST 4

/* Forms. Those in the middle are also numbers of messages, the first block of an uncompressed key being 0. */
#define FORM_X 0
#define FORM_UNCOMPRESSED 1
#define FORM_COMPRESSED 2
#define FORM_SCRIPT 3
#define FORM_ACCOUNT 4
#define FORM_TAPROOT 5

/* Counts a record, and writes it while there is room. */
DEV void scan_emit(GLOBAL u32 *hits, u32 lane, u32 step, u32 code, u32 form, const u32 *digest, u32 words) {
    u32 at = ATOMIC_ADD(hits + HITS_COUNT, 1u);
    if (at < hits[HITS_CAPACITY]) {
        GLOBAL u32 *record = hits + HITS_HEADER + (u64)at * SCAN_WORDS;
        record[HIT_LANE] = lane;
        record[HIT_STEP] = step;
        record[HIT_CODE] = code;
        record[SCAN_FORM] = form;
        UNROLL
        for (u32 i = 0; i < 8; i++) record[SCAN_DIGEST + i] = i < words ? digest[i] : 0;
    }
}
