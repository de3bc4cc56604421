/* Records of what passes in a scan. Its points lie as walk/written.h says: x, and all of y or its last word. */

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
