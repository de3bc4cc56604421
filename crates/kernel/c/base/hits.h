/* What every search shares: the records of its hits. */

/* Counts a record, and writes it while there is room. */
DEV void search_emit(GLOBAL u32 *hits, u32 lane, u32 step, u32 code, u32 top) {
    u32 at = ATOMIC_ADD(hits + HITS_COUNT, 1u);
    if (at < hits[HITS_CAPACITY]) {
        GLOBAL u32 *record = hits + HITS_HEADER + (u64)at * HIT_WORDS;
        record[HIT_LANE] = lane;
        record[HIT_STEP] = step;
        record[HIT_CODE] = code;
        record[HIT_TOP] = top;
    }
}
